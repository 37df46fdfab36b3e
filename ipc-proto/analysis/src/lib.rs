#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod call_tree;
pub mod counters;
mod event;
pub mod formats;
pub mod gc;
pub mod jit;
pub mod live;
pub mod locks;
pub mod names;
pub mod requests;
pub mod samples;
mod stacks;
mod trace;

pub use event::known_provider::KnownProvider;
pub use event::runtime_event::RuntimeEvent;
pub use names::own_code::OwnCode;
pub use stacks::outline::outline;
pub use stacks::wait_kind::WaitKind;
pub use stacks::{StackId, Stacks};
pub use trace::analysis::Analysis;
pub use trace::durations::Durations;
pub use trace::loss_report::{EventBuffer, LossReport};
pub use trace::part::{Part, TraceTime};
