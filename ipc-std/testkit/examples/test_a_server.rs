//! Tries the conformance kit on a server, as the tests of a server would: `test_a_server [SOCKET]`. Without an argument
//! the server is a fake runtime.
#![allow(clippy::arithmetic_side_effects, reason = "an example is short")]
use core::time::Duration;
use std::path::PathBuf;
use std::time::Instant;

use ipc_std::Stream;
use ipc_testkit::conformance::{self, State};
use ipc_testkit::{FakeRuntime, Profile};

fn main() -> Result<(), Box<dyn core::error::Error>> {
    // A runtime of a version that knows every command.
    let fake = FakeRuntime::start(Profile { careful: true, ..Profile::net11() })?;
    let path = std::env::args_os().nth(1).map_or_else(|| fake.path().to_owned(), PathBuf::from);
    let connect = || Stream::connect(&path, Instant::now() + Duration::from_secs(10));
    // Some cases end a real runtime. Your own server should survive these cases: try them, too.
    let cases = conformance::cases().into_iter();
    let cases = cases.filter(|case| case.state == State::Running && !case.is_deadly());
    let report = conformance::run_all(cases, connect);
    println!("{report}");
    if report.differences.is_empty() { Ok(()) } else { Err("the server differs".into()) }
}
