//! Requests and the answers that a server of the protocol must give: a test for servers of any origin.
//!
//! The cases are data: `conformance/cases.jsonl` in the repository's folder `testdata/`, whose README describes them.
//! This module has them as types, and [`run`] tries one on a server.
//!
//! Some cases end real runtimes: [`Case::is_deadly`]. Some have [effects](Case::effects) if the answer is OK. Their
//! order matters: one sets a variable that the next one removes, and those that resume the runtime come last.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use ipc_std::conformance::{self, State};
//! use ipc_std::{Stream, fake::{FakeRuntime, Profile}};
//!
//! let server = FakeRuntime::start(Profile { version: 11, ..Profile::net10() })?; // in your tests: your server
//! let connect = || Stream::connect(server.path(), Instant::now() + Duration::from_secs(10));
//! for case in conformance::cases().iter().filter(|case| case.state == State::Running).take(20) {
//!     if let Err(difference) = conformance::run(case, connect) {
//!         panic!("{difference}");
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
mod answer;
mod case;
mod difference;

use std::io::{self, ErrorKind, Read, Write};

use ipc_proto::{Message, Parsed, StopTracing};

use crate::connection::Connection;
use crate::drive::is_closed;
use crate::observer::{Observer, Tap};
use crate::transport::Stream;

pub use answer::{ExpectedAnswer, ReceivedAnswer, Seen};
pub use case::{Case, InvalidCase, State};
pub use difference::{Against, Difference};

/// The data. `testdata/conformance/cases.jsonl` is a link to this file, because a copy would become outdated.
const CASES: &str = include_str!("conformance/cases.jsonl");

/// Returns all cases, in the order in which to try them.
#[must_use]
pub fn cases() -> Vec<Case> {
    CASES.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Tries a case on a server that should give the [expected](Case::expect) answer.
///
/// `connect` opens the connection of the request, and another to stop a session that the request started. Both streams
/// have the deadlines that `connect` gives them. A transport that cannot close one direction (a pipe, a transport with a
/// thread) cannot carry the cases with a [half-close](Case::half_close): these are left out.
///
/// # Errors
/// If the answer is another, or the connection fails.
pub fn run(case: &Case, connect: impl Fn() -> io::Result<Stream>) -> Result<(), Difference> {
    match send(case, None, connect) {
        Ok(answer) => case.judge(Against::Expected, &answer),
        Err(e) if case.half_close && e.kind() == ErrorKind::Unsupported => Ok(()),
        Err(e) => Err(case.difference(Against::Expected, format!("no connection: {e}"))),
    }
}

/// Sends the request of a case and receives the answer.
///
/// If the request starts a session, this stops it: it sends StopTracing on another connection, and reads the first one
/// to its end. It does not just close the first one: a runtime notices that only when it has something to write, and
/// .NET Core 3.1 can end then.
///
/// # Errors
/// If `connect` fails, or the stream fails in another way than by ending too early or too late, which is a
/// [`ReceivedAnswer`].
pub fn send(
    case: &Case,
    observer: Option<&Observer>,
    connect: impl Fn() -> io::Result<Stream>,
) -> io::Result<ReceivedAnswer> {
    let mut tap = Tap::new(connect()?);
    tap.observe(observer.cloned());
    tap.begin();
    let answer = exchange(&mut tap, &case.request, case.half_close)?;
    tap.end();
    if let (Some(session_id), true) = (answer.session_id(), case.starts_sessions()) {
        std::thread::scope(|scope| {
            // If one of the two fails, the session ends with its connection.
            scope.spawn(|| io::copy(&mut tap, &mut io::sink()));
            if let Ok(stream) = connect() {
                let mut stop = Connection::new(stream).with_observer(observer.cloned());
                let _ = stop.call(&StopTracing { session_id });
            }
        });
    }
    Ok(answer)
}

/// Sends a request and receives the answer. It is not a [`Call`](ipc_proto::Call), which sends only valid requests and
/// does not return invalid answers.
fn exchange(tap: &mut Tap<Stream>, request: &[u8], half_close: bool) -> io::Result<ReceivedAnswer> {
    match tap.write_all(request) {
        Ok(()) if half_close => {
            match tap.stream.channel().finish() {
                Err(e) if e.kind() == ErrorKind::Unsupported => return Err(e),
                // A peer that has closed the connection needs no more bytes.
                Ok(()) | Err(_) => {}
            }
        }
        // The server can answer before it has received all bytes.
        Err(e) if e.kind() != ErrorKind::TimedOut && !is_closed(&e) => return Err(e),
        Ok(()) | Err(_) => {}
    }
    let mut received = Vec::new();
    loop {
        let needed = match Message::parse(&received) {
            Ok(Parsed::Complete { .. }) => return Ok(ReceivedAnswer::Message(received)),
            Ok(Parsed::Partial { needed }) => needed,
            Err(_) => return Ok(ReceivedAnswer::Garbage(received)),
        };
        let mut more = vec![0; needed.saturating_sub(received.len())];
        match tap.read(&mut more) {
            Ok(n) if n > 0 => received.extend_from_slice(more.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() != ErrorKind::TimedOut && !is_closed(&e) => return Err(e),
            _ if !received.is_empty() => return Ok(ReceivedAnswer::Garbage(received)),
            Err(e) if e.kind() == ErrorKind::TimedOut => return Ok(ReceivedAnswer::Silence),
            Ok(_) | Err(_) => return Ok(ReceivedAnswer::Closed),
        }
    }
}
