#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod call_tree;
pub mod counters;
mod durations;
mod event_fields;
mod event_kinds;
pub mod formats;
pub mod gc;
pub mod jit;
mod known_provider;
pub mod live;
pub mod locks;
mod loss_report;
pub mod names;
mod outline;
mod own_code;
mod part;
mod place;
pub mod requests;
mod rows;
pub mod samples;
mod snapshot;
mod stacks;
mod text;
mod wait_kind;

pub use durations::Durations;
pub use known_provider::KnownProvider;
pub use loss_report::{EventBuffer, LossReport};
pub use outline::outline;
pub use own_code::OwnCode;
pub use part::{Part, TraceTime};
pub use stacks::{StackId, Stacks};
pub use wait_kind::WaitKind;
