//! Modules of the folder of this name in the tool.
#[path = "../../../ipc-std/cli/src/input/decode_input.rs"]
pub(crate) mod decode_input;
