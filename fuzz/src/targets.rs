//! Checks of a package's fuzz targets and of their inputs in `testdata/`.
use std::{fs, panic, thread};

use ipc_testdata::{corpus, regressions};

use crate::Property;

/// Makes a program the fuzz target of a property, in a package of this repository: other projects use
/// `libfuzzer_sys::fuzz_target!`. Without `cfg(fuzzing)`, the program does nothing.
#[doc(hidden)]
#[macro_export]
macro_rules! target {
    ($property:path) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $property(bytes));

        #[cfg(not(fuzzing))]
        fn main() {}
    };
}

/// Returns whether the property holds for these bytes.
#[must_use]
pub fn holds(property: Property, bytes: &[u8]) -> bool {
    panic::catch_unwind(|| property(bytes)).is_ok()
}

/// Asserts that each property holds for the inputs that fuzzing has found for it, and for those that once failed.
pub fn assert_stored_inputs_hold(properties: &[(&str, Property)]) {
    thread::scope(|scope| {
        for (name, property) in properties {
            scope.spawn(move || {
                let inputs = corpus(name);
                assert!(inputs.len() > 10, "{name}: there is more");
                for (input, line) in inputs.iter().zip(1..) {
                    assert!(holds(*property, input), "corpus/{name}.txt, line {line}");
                }
                for vector in regressions(name) {
                    assert!(holds(*property, vector.bytes), "{}", vector.path);
                }
            });
        }
    });
}

/// Asserts that the fuzz targets of a package are its properties. `folder` is that of the package, and `library` has
/// the properties.
pub fn assert_targets_are(properties: &[(&str, Property)], folder: &str, library: &str) {
    let read =
        |file: &str| fs::read_to_string(format!("{folder}/{file}")).unwrap_or_else(|e| panic!("{file}: {e}"));
    let manifest = read("Cargo.toml");
    let mut targets: Vec<&str> = manifest.lines().filter_map(|line| line.strip_prefix("path = ")).collect();
    targets.sort_unstable();
    let files = properties.iter().map(|(name, _)| format!("fuzz_targets/{name}.rs"));
    assert_eq!(targets, files.clone().map(|file| format!("{file:?}")).collect::<Vec<_>>());
    for ((name, _), file) in properties.iter().zip(files) {
        assert!(read(&file).contains(&format!("target!({library}::{name})")), "{file}");
    }
}
