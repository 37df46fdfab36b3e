//! Makes an undefined symbol in the shared library a link error. Linkers allow undefined symbols there by default.
fn main() {
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,defs");
    println!("cargo::rustc-link-arg-cdylib=-lc"); // memcpy and similar functions
}
