//! The properties over every file of `testdata/`, and over each of them with a byte changed or the end cut off.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test may panic, and these are short"
)]
use ipc_fuzz::{conversation, message, monitor, port_config, split, testdata};

fn each_input(property: fn(&[u8])) {
    let mut inputs = 0;
    for vector in ["messages", "malformed", "refused", "tolerated"].into_iter().flat_map(testdata) {
        property(&vector.bytes);
        property(&[&vector.bytes[..], &[7, 0, 30, 2]].concat()); // see `split`: other pieces, and bytes that follow
        // Lengths, counts and flags lie in the front; the large files would take long, and show nothing new.
        for at in 0..vector.bytes.len().min(100) {
            property(&vector.bytes[..at]);
            for flip in [0x01, 0x80, 0xff] {
                let mut bytes = vector.bytes.clone();
                bytes[at] ^= flip;
                property(&bytes);
                inputs += 1;
            }
        }
    }
    assert!(inputs > 10_000, "there is more in testdata/");
}

#[test]
fn message_holds() {
    each_input(message);
}

#[test]
fn split_holds() {
    each_input(split);
}

#[test]
fn conversation_holds() {
    each_input(conversation);
}

#[test]
fn port_config_holds() {
    each_input(port_config);
}

#[test]
fn monitor_holds() {
    each_input(monitor);
}
