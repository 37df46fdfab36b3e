//! Links the shared library as its system expects it, and writes the files by which CMake finds the library. The package
//! in `analysis` has this script too.
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let target = |part: &str| variable(&format!("CARGO_CFG_TARGET_{part}"));
    let has_analysis = env::var_os("CARGO_FEATURE_ANALYSIS").is_some();
    let (system, abi) = (target("OS"), target("ENV"));
    let arguments: &[&str] = match (system.as_str(), abi.as_str()) {
        // Undefined symbols are an error, which ELF allows by default. memcpy and similar functions are in libc.
        ("linux" | "android" | "freebsd" | "netbsd" | "openbsd", _) => &["-Wl,-z,defs", "-lc"],
        // A DLL without a start function.
        ("windows", "gnu") if !has_analysis => &["-nostartfiles", "-Wl,--entry=0"],
        _ => &[],
    };
    for argument in arguments {
        println!("cargo::rustc-link-arg-cdylib={argument}");
    }
    // What std needs in a program that links the static library.
    let libraries = match (has_analysis, system.as_str(), abi.as_str()) {
        (true, "linux", "gnu") => "gcc_s;m;dl;pthread",
        (true, "windows", _) => "kernel32;ntdll;userenv;ws2_32;dbghelp",
        _ => "",
    };
    let (name, folder) =
        if has_analysis { ("dotnet_ipc_analysis", "../cmake") } else { ("dotnet_ipc", "cmake") };
    let cmake = Path::new(&variable("OUT_DIR")).join("cmake");
    fs::create_dir_all(&cmake)?;
    for file in ["config", "config-version"] {
        println!("cargo::rerun-if-changed={folder}/{file}.cmake.in");
        let template = fs::read_to_string(format!("{folder}/{file}.cmake.in"))?;
        let text = template.replace("@VERSION@", &variable("CARGO_PKG_VERSION"));
        let text = text.replace("@NAME@", name).replace("@LIBRARIES@", libraries);
        fs::write(cmake.join(format!("{name}-{file}.cmake")), text)?;
    }
    Ok(())
}
