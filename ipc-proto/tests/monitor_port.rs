//! [`MonitorPort`]: the life of connections and runtimes, at given times. The property `monitor` of `ipc-fuzz` compares
//! a port with a model.
#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

use ipc_proto::port::{
    Accepted, MonitorChange, MonitorFull, MonitorLimits, MonitorPort, MonitorSlot, Rejection, RuntimeEntry,
    RuntimeState,
};
use ipc_proto::{Guid, ProtocolError};

type Port = MonitorPort<&'static str, char, Vec<Option<MonitorSlot<&'static str, char>>>>;
type Change = MonitorChange<&'static str, char>;

const A: Guid = Guid([b'a'; 16]);
const B: Guid = Guid([b'b'; 16]);

fn port(slots: usize) -> Port {
    MonitorPort::new(vec![None; slots])
}

fn frame(cookie: Guid) -> Vec<u8> {
    [&b"ADVR_V1\0"[..], &cookie.0, &[42, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat()
}

/// Passes these bytes to the port up to the first change, and returns the change.
fn send(port: &mut Port, token: u64, mut bytes: &[u8], now: u64) -> Option<Change> {
    while let Some((_, space)) = port.receive(token) {
        let n = space.len().min(bytes.len());
        if n == 0 {
            break;
        }
        let (piece, rest) = bytes.split_at(n);
        space.get_mut(..n).unwrap().copy_from_slice(piece);
        bytes = rest;
        if let Some(change) = port.advance(token, n, now) {
            return Some(change);
        }
    }
    None
}

/// Accepts a connection of the runtime with this cookie at time `now`, and passes its frame to the port.
fn arrive(port: &mut Port, cookie: Guid, connection: &'static str, now: u64) -> Change {
    let token = port.accept(connection, 'p', now).unwrap().token;
    send(port, token, &frame(cookie), now).unwrap()
}

const fn arrived(runtime_cookie: Guid, first: bool, stale: Option<&'static str>) -> Change {
    Change::Arrived { runtime_cookie, first, stale }
}

fn rejected(connection: &'static str, rejection: Rejection) -> Option<Change> {
    Some(Change::Rejected { connection, peer: 'p', rejection })
}

const LEFT: Option<Change> = Some(Change::Left(RuntimeEntry { cookie: A, process_id: 42, peer: 'p' }));

#[test]
fn runtime_arrives_once_and_its_newest_connection_counts() {
    let mut port = port(4);
    assert_eq!(arrive(&mut port, A, "1", 0), arrived(A, true, None));
    assert_eq!(arrive(&mut port, B, "2", 0), arrived(B, true, None));
    assert_eq!(arrive(&mut port, A, "3", 5), arrived(A, false, Some("1")));
    assert_eq!(port.runtimes().count(), 2);
    assert_eq!(port.take(&A, 6), Some("3"));
    assert_eq!(port.take(&A, 6), None);
    assert_eq!(arrive(&mut port, A, "4", 7), arrived(A, false, None));
    assert_eq!(port.remove(&A).unwrap().1, Some("4"));
    assert_eq!(arrive(&mut port, A, "5", 8), arrived(A, true, None));
}

#[test]
fn frame_can_arrive_in_pieces_until_its_deadline() {
    let mut port = port(2);
    let frame = frame(A);
    let (front, back) = frame.split_at(20);
    let in_time = port.accept("1", 'p', 0).unwrap().token;
    let late = port.accept("2", 'p', 1).unwrap().token;
    assert_eq!(send(&mut port, in_time, front, 10), None);
    assert_eq!(send(&mut port, late, front, 10), None);
    assert_eq!(port.due(), Some(250));
    assert_eq!(send(&mut port, in_time, back, 249), Some(arrived(A, true, None)));
    assert_eq!(port.on_due(250, |_| true), None);
    assert_eq!(port.due(), Some(251));
    assert_eq!(port.on_due(251, |_| true), rejected("2", Rejection::TooLate { received: 20 }));
    assert_eq!(port.on_due(251, |_| true), None);
    assert_eq!(port.due(), None);
    assert_eq!(port.receive(late), None, "the token of a closed connection has no effect");
    assert_eq!(port.advance(late, 14, 251), None);
}

#[test]
fn other_peers_are_rejected_at_the_first_wrong_byte() {
    let mut port = port(1);
    let token = port.accept("1", 'p', 0).unwrap().token;
    let Some(Change::Rejected { rejection: Rejection::Protocol(ProtocolError::Decode(error)), .. }) =
        send(&mut port, token, b"ADVR_X", 0)
    else {
        panic!("it is not rejected")
    };
    assert_eq!(error.offset, 5);
    let token = port.accept("2", 'p', 0).unwrap().token;
    let probe = Rejection::Protocol(ProtocolError::Closed { received: 0 });
    assert_eq!(port.advance(token, 0, 0), rejected("2", probe));
    assert!(probe.is_probe());
}

#[test]
fn idle_runtime_that_closes_has_a_second_to_connect_again() {
    let mut port = port(2);
    arrive(&mut port, A, "1", 0);
    let (token, _) = port.idle(&A).unwrap();
    let disconnected = Change::Disconnected { runtime_cookie: A, connection: "1", unsolicited: false };
    assert_eq!(port.advance(token, 0, 500), Some(disconnected));
    assert_eq!(port.state(&A), Some(RuntimeState::Disconnected));
    for now in (520..1500).step_by(20) {
        assert_eq!(port.on_due(now, |_| false), None);
        assert_eq!(port.due(), Some(now + 20));
    }
    assert_eq!(port.on_due(1500, |_| false), LEFT);
    assert_eq!(arrive(&mut port, A, "2", 1501), arrived(A, true, None));
    // A runtime that connects again within a second does not leave.
    let (token, _) = port.idle(&A).unwrap();
    assert!(matches!(port.advance(token, 1, 2000), Some(Change::Disconnected { unsolicited: true, .. })));
    assert_eq!(arrive(&mut port, A, "3", 2999), arrived(A, false, None));
    assert_eq!(port.on_due(9999, |_| true), None);
}

#[test]
fn runtime_in_use_leaves_when_its_process_ends() {
    let mut port = port(2);
    arrive(&mut port, A, "1", 0);
    assert_eq!(port.take(&A, 0), Some("1"));
    assert_eq!(port.on_due(60_000, |_| false), None, "a command can take any time");
    assert_eq!(port.due(), Some(60_100));
    assert_eq!(port.on_due(60_099, |_| true), None, "it is checked every 100 ms only");
    assert_eq!(port.on_due(60_100, |_| true), LEFT);
    assert_eq!(port.state(&A), None);
}

/// Nothing vouches for the process of a remote runtime: only the ends of its connections count.
#[test]
fn remote_runtime_whose_taken_connection_ended_has_a_second_to_connect_again() {
    let mut port = port(4);
    let arrive = |port: &mut Port, connection, now| {
        let token = port.accept(connection, 'p', now).unwrap().token;
        assert!(matches!(send(port, token, &frame(A), now), Some(Change::Arrived { .. })));
        token
    };
    let first = arrive(&mut port, "first", 0);
    port.released(first, 5);
    assert_eq!(port.state(&A), Some(RuntimeState::Idle), "it was not taken");
    assert_eq!(port.take(&A, 10), Some("first"));
    assert_eq!(port.on_due(5000, |_| false), None, "a command has no time limit");
    let second = arrive(&mut port, "second", 5000);
    port.released(first, 5001);
    assert_eq!(port.take(&A, 5002), Some("second"));
    port.released(first, 5003);
    assert_eq!(port.state(&A), Some(RuntimeState::InUse), "an older connection says nothing of the newest");
    port.released(second, 6000);
    assert_eq!(port.state(&A), Some(RuntimeState::Disconnected));
    port.released(second, 6900);
    assert_eq!((port.on_due(6999, |_| false), port.on_due(7000, |_| false)), (None, LEFT));
    port.released(second, 7001);
    assert_eq!((port.on_due(9000, |_| false), port.due()), (None, None));
}

#[test]
fn oldest_of_too_many_arriving_connections_is_evicted() {
    let limits = MonitorLimits { max_arriving: 2, ..MonitorLimits::DEFAULT };
    let mut port: Port = MonitorPort::with_limits(vec![None; 8], limits);
    for connection in ["1", "2"] {
        assert_eq!(port.accept(connection, 'p', 0).unwrap().evicted, None);
    }
    let Accepted { token, evicted } = port.accept("3", 'p', 0).unwrap();
    assert_eq!(evicted, rejected("1", Rejection::Crowded));
    assert_eq!(send(&mut port, token, &frame(A), 0), Some(arrived(A, true, None)));
    assert_eq!(port.arriving(), 1);
    assert_eq!(port.evict_oldest(), rejected("2", Rejection::Crowded));
    assert_eq!(port.evict_oldest(), None, "a runtime is never evicted");
}

#[test]
fn full_storage_returns_the_connection() {
    let mut port = port(1);
    arrive(&mut port, A, "1", 0);
    assert_eq!(port.accept("2", 'p', 0), Err(MonitorFull { connection: "2", peer: 'p' }));
    port.grow(1);
    assert_eq!(arrive(&mut port, B, "2", 0), arrived(B, true, None));
    assert_eq!(port.capacity(), 2);
}

#[test]
fn accepting_pauses() {
    let mut port = port(1);
    port.pause_accept(5);
    assert_eq!(port.on_due(104, |_| false), None);
    assert_eq!(port.on_due(105, |_| false), Some(Change::AcceptAgain));
    assert_eq!(port.on_due(105, |_| false), None);
    assert_eq!(port.due(), None);
}
