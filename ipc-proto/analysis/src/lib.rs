#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod account;
pub mod call_tree;
pub mod counters;
mod event;
pub mod formats;
pub mod gc;
pub mod heap;
pub mod jit;
pub mod live;
pub mod locks;
pub mod names;
pub mod report;
pub mod requests;
pub mod samples;
mod stacks;
mod trace;

pub use event::{KnownProvider, RuntimeEvent};
// The types of other packages in the signatures of this one.
pub use ipc_proto::Guid;
pub use ipc_proto::types::{EventLevel, Provider};
pub use names::OwnCode;
pub use nettrace::{self, FileTime, Losses, Str, TraceClock, TraceEvent};
#[cfg(feature = "firefox")]
pub use serde_json;
pub use stacks::{StackId, Stacks, WaitKind, outline};
pub use trace::{Analysis, Durations, EventBuffer, LossReport, Part, RecordingEnd, TraceTime};
