//! Modules of the folder of this name in the tool.
#[path = "../../../ipc-std/cli/src/args/durations.rs"]
pub(crate) mod durations;
#[path = "../../../ipc-std/cli/src/args/only_arg.rs"]
pub(crate) mod only_arg;
#[path = "../../../ipc-std/cli/src/args/unsigned.rs"]
pub(crate) mod unsigned;
