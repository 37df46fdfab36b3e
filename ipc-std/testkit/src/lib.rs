#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

pub mod conformance;
#[cfg(feature = "io")]
mod fake;
mod heap;
mod profile;
mod replay;
#[cfg(all(feature = "io", unix))]
mod sys;

#[cfg(feature = "io")]
pub use fake::{FakeRuntime, Fault, LoggedRequest, Response};
pub use heap::FakeHeap;
#[cfg(feature = "io")]
pub use ipc_std;
pub use profile::{FakePort, Profile};
pub use replay::{Recording, Replay};
pub use {ipc_proto, nettrace};
