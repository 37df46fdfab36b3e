//! The public types can be sent to another thread and shared with it: tests start the fake runtime in one thread and
//! use it in others. The compiler derives `Send` and `Sync` from private fields, so a new field could remove them.
#![cfg(feature = "io")]

use core::error::Error;

use ipc_testkit::conformance::{Case, Difference, InvalidCase};
use ipc_testkit::{FakePort, FakeRuntime, LoggedRequest, Profile, Recording, Replay, Response};

fn crosses_threads<T: Send + Sync + Unpin>() {}

/// An error can be returned from a thread, and stored as `Box<dyn Error + Send + Sync>`.
fn is_error<T: Error + Send + Sync + Unpin + 'static>() {}

#[test]
fn fakes_cross_threads() {
    crosses_threads::<FakeRuntime>();
    crosses_threads::<LoggedRequest>();
    crosses_threads::<Response>();
    crosses_threads::<FakePort>();
    crosses_threads::<Profile>();
    crosses_threads::<Recording<'_>>();
    crosses_threads::<Replay<'_, '_>>();
    crosses_threads::<Case>();
}

#[test]
fn errors_cross_threads() {
    is_error::<Difference>();
    is_error::<InvalidCase>();
}
