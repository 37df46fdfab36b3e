//! Modules of the folder of this name in the tool.
#[path = "../../../ipc-std/cli/src/recording/event_ids.rs"]
pub(crate) mod event_ids;
#[path = "../../../ipc-std/cli/src/recording/keywords.rs"]
pub(crate) mod keywords;
#[path = "../../../ipc-std/cli/src/recording/provider.rs"]
pub(crate) mod provider;
