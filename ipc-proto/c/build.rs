//! Links the shared library as its system expects it.
fn main() {
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    let arguments: &[&str] = match (target("OS").as_str(), target("ENV").as_str()) {
        // Undefined symbols are an error, which ELF allows by default. memcpy and similar functions are in libc.
        ("linux" | "android" | "freebsd" | "netbsd" | "openbsd", _) => {
            &["-Wl,-z,defs", "-Wl,-soname,libdotnet_ipc.so.0", "-lc"]
        }
        // A DLL without a start function.
        ("windows", "gnu") => &["-nostartfiles", "-Wl,--entry=0"],
        _ => &[],
    };
    for argument in arguments {
        println!("cargo::rustc-link-arg-cdylib={argument}");
    }
}
