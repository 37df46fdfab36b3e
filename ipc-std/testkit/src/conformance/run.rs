//! Tries a case on a server.
use std::io::{self, ErrorKind};
use std::net::Shutdown;

use ipc_proto::StopTracing;
use ipc_std::{Connection, DriveError, Observer, Stream};

use super::answer::ReceivedAnswer;
use super::case::Case;
use super::case_exchange::CaseExchange;
use super::difference::{Against, Difference};

/// Tries a case on a server that should give the [expected](Case::expect) answer.
///
/// `connect` opens the connection of the request, and another to stop a session that the request started. Both streams
/// have the deadlines that `connect` gives them. A transport that cannot close one direction (a pipe, a transport with
/// a thread) cannot carry a case with a [half-close](Case::half_close): `run` leaves out such a case and returns `Ok`.
///
/// # Errors
/// If the server gives another answer, or the connection fails.
pub fn run(case: &Case, connect: impl Fn() -> io::Result<Stream>) -> Result<(), Difference> {
    match send(case, None, connect) {
        Ok(answer) => case.judge(Against::Expected, &answer),
        Err(e) if case.half_close && e.kind() == ErrorKind::Unsupported => Ok(()),
        Err(e) => Err(case.difference(Against::Expected, format!("no connection: {e}"))),
    }
}

/// Sends the request of a case and receives the answer.
///
/// If the request starts a session, this function stops the session: it sends StopTracing on a second connection, and
/// reads the first connection to its end. Closing the first connection is not enough: a runtime notices the close only
/// when it has something to write, and .NET Core 3.1 can end then.
///
/// # Errors
/// If `connect` or the stream fails. A stream that ends too early, or not before its deadline, is not an error but a
/// [`ReceivedAnswer`].
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
            Ok(()) if exchange.awaits_half_close() => {
                match connection.stream().shutdown(Shutdown::Write) {
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
