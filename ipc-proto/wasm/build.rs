//! Sets the size of the stack, and makes the module smaller.
fn main() {
    // The largest frame has about a kilobyte, and nothing recurses.
    println!("cargo::rustc-link-arg-cdylib=-zstack-size=65536");
    println!("cargo::rustc-link-arg-cdylib=--compress-relocations");
}
