//! Makes undefined symbols an error, which shared libraries allow by default.
fn main() {
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,defs");
    println!("cargo::rustc-link-arg-cdylib=-Wl,-soname,libdotnet_ipc.so.0");
    println!("cargo::rustc-link-arg-cdylib=-lc"); // memcpy and similar functions
}
