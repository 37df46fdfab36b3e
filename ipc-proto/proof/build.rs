//! A shared library may leave symbols undefined. This one must not.
fn main() {
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,defs");
    println!("cargo::rustc-link-arg-cdylib=-lc"); // memcpy and its kin
}
