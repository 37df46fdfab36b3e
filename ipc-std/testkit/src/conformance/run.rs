//! Tries cases on a server.
use std::io::{self, ErrorKind};
use std::net::Shutdown;

use ipc_proto::StopTracing;
use ipc_std::{Connection, DriveError, Observer, Stream};

use super::answer::ReceivedAnswer;
use super::case::Case;
use super::case_exchange::CaseExchange;
use super::cases::cases as all_cases;
use super::difference::{Against, Difference};
use super::outcome::{NotTried, Outcome, Report};

/// Tries a case on a server that should give the [expected](Case::expect) answer.
///
/// `connect` opens the connection of the request, and another to stop a session that the request started. Both streams
/// have the deadlines that `connect` gives them.
///
/// # Errors
/// If the server gives another answer, or the connection fails.
pub fn run(case: &Case, connect: impl Fn() -> io::Result<Stream>) -> Result<Outcome, Difference> {
    judge(case, send(case, None, connect))
}

fn judge(case: &Case, answer: io::Result<ReceivedAnswer>) -> Result<Outcome, Difference> {
    match answer {
        Ok(answer) => case.judge(Against::Expected, &answer).map(|()| Outcome::Passed),
        Err(e) if e.kind() == ErrorKind::Unsupported => Ok(Outcome::NotTried(NotTried::HalfClose)),
        Err(e) => Err(case.difference(Against::Expected, format!("no connection: {e}"))),
    }
}

/// Tries cases on a server, in their order, as [`run`] does.
///
/// A server can be silent: it hangs, or it has ended and its connections wait. After a case without an answer in time,
/// the kit sends another request, the first of all cases. If that has no answer either, no other case is
/// [tried](NotTried::Silent). So a silent server costs two deadlines of `connect`.
pub fn run_all(cases: impl IntoIterator<Item = Case>, connect: impl Fn() -> io::Result<Stream>) -> Report {
    let is_silent = |answer: &io::Result<ReceivedAnswer>| match answer {
        Ok(answer) => *answer == ReceivedAnswer::Silence,
        Err(e) => e.kind() == ErrorKind::TimedOut,
    };
    let (mut report, mut silent) = (Report::default(), false);
    for case in cases {
        if silent {
            report.not_tried.push((case.name, NotTried::Silent));
            continue;
        }
        let answer = send(&case, None, &connect);
        if is_silent(&answer) {
            silent = all_cases().first().is_some_and(|first| is_silent(&send(first, None, &connect)));
        }
        match judge(&case, answer) {
            Ok(Outcome::Passed) => report.passed.push(case.name),
            Ok(Outcome::NotTried(reason)) => report.not_tried.push((case.name, reason)),
            Err(difference) => report.differences.push(difference),
        }
    }
    report
}

/// Sends the request of a case and receives the answer.
///
/// If the request starts a session, this function stops the session: it sends StopTracing on a second connection, and
/// reads the first connection to its end. Closing the first connection is not enough: a runtime notices the close only
/// when it has something to write, and .NET Core 3.1 can end then.
///
/// # Errors
/// If `connect` or the stream fails; with the kind `Unsupported` if the case has a [half-close](Case::half_close) or a
/// [descriptor](Case::descriptor), and the transport has none: a pipe, a transport with a thread. A stream that ends too early, or not
/// before its deadline, is not an error but a [`ReceivedAnswer`].
pub fn send(
    case: &Case,
    observer: Option<&Observer>,
    connect: impl Fn() -> io::Result<Stream>,
) -> io::Result<ReceivedAnswer> {
    let mut connection = Connection::new(connect()?).with_observer(observer.cloned());
    let answer = exchange(&mut connection, case)?;
    if let (Some(session_id), true) = (answer.session_id(), case.starts_sessions()) {
        let mut stream = connection.into_stream();
        std::thread::scope(|scope| {
            // Errors do not matter: if copying or stopping fails, the session ends with its connection.
            scope.spawn(|| io::copy(&mut stream, &mut io::sink()));
            if let Ok(stream) = connect() {
                let mut stop = Connection::new(stream).with_observer(observer.cloned());
                let _ = stop.call(&StopTracing { session_id });
            }
        });
    }
    Ok(answer)
}

/// Sends the request of a case and receives the answer.
fn exchange(connection: &mut Connection<Stream>, case: &Case) -> io::Result<ReceivedAnswer> {
    let mut exchange = CaseExchange::new(case);
    loop {
        match connection.exchange(&mut exchange) {
            Ok(()) if exchange.awaits_half_close() || exchange.awaits_descriptor() => {
                let stream = connection.stream();
                let sent = match exchange.awaits_descriptor() {
                    true => send_descriptor(stream),
                    false => stream.shutdown(Shutdown::Write),
                };
                match sent {
                    Err(e) if e.kind() == ErrorKind::Unsupported => return Err(e),
                    // A peer that has closed the connection needs no more bytes.
                    Ok(()) | Err(_) => exchange.receive(),
                }
            }
            // The request was not sent in time. The server can answer before it has received all bytes.
            Err(DriveError::Send(e)) if e.kind() == ErrorKind::TimedOut => exchange.receive(),
            Err(DriveError::Receive(e)) if e.kind() == ErrorKind::TimedOut => return Ok(exchange.finish()),
            Err(DriveError::Send(e) | DriveError::Receive(e)) => return Err(e),
            Ok(()) => return Ok(exchange.finish()),
            Err(e) => return Err(io::Error::other(e)),
        }
    }
}

/// Sends the descriptor of a file. Which file it is does not matter: a runtime reads the request first.
#[cfg(unix)]
fn send_descriptor(stream: &Stream) -> io::Result<()> {
    stream.send_descriptor(std::fs::File::open("/dev/null")?)
}
/// Windows has no descriptors to send.
#[cfg(windows)]
fn send_descriptor(_: &Stream) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}
