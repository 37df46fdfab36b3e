//! Writes the inputs with which each fuzz target of this repository begins, to where `cargo fuzz run TARGET` looks for them:
//! `corpus/TARGET/` in the folder of the target's package.
#![allow(clippy::print_stdout, reason = "it says what it has written")]
use std::path::Path;

use ipc_testdata::CORPUS;

fn main() -> std::io::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut written = 0_usize;
    // `c_messages` has no stored inputs of its own.
    for target in CORPUS.iter().map(|corpus| corpus.target).chain(["c_messages"]) {
        let packages = [here.to_owned(), here.join("std"), here.join("c")];
        let package =
            packages.iter().find(|package| package.join(format!("fuzz_targets/{target}.rs")).exists());
        if let Some(package) = package {
            ipc_fuzz::write_seeds(target, &package.join("corpus").join(target))?;
            written = written.saturating_add(1);
        }
    }
    println!("{written} targets have seeds");
    Ok(())
}
