//! Modules of the folder of this name in the tool.
#[path = "../../../ipc-std/cli/src/output/hex.rs"]
pub(crate) mod hex;
