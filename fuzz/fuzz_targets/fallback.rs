//! Fuzz target of the property of the same name.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ipc_fuzz::fallback(bytes));

#[cfg(not(fuzzing))]
fn main() {}
