//! A transport in memory, and the conditions that every step over it must meet.
use ipc_proto::{Exchange, ProtocolError, Step};

/// Sizes of the pieces in which bytes travel: each byte of `bytes` is one size, from the start again after the last
/// one. Without bytes, everything is one piece.
pub fn sizes<'a>(bytes: impl Iterator<Item = &'a u8> + Clone) -> impl Iterator<Item = usize> {
    bytes.cycle().map(|byte| usize::from(byte % 32) + 1)
}

/// Takes at most `limit` bytes of what the exchange sends, then closes.
pub fn take(exchange: &mut impl Exchange, sizes: &mut impl Iterator<Item = usize>, limit: usize) -> Vec<u8> {
    let mut taken = Vec::new();
    while let Step::Send(bytes) = step(exchange) {
        let n = bytes.len().min(sizes.next().unwrap_or(usize::MAX)).min(limit - taken.len());
        taken.extend_from_slice(&bytes[..n]);
        assert!(taken.len() < 1 << 22, "sends without end");
        let outcome = exchange.advance(n);
        if n == 0 {
            assert!(!matches!(exchange.step(), Step::Send(_)), "sends to a peer that closed");
        } else {
            assert_eq!(outcome, Ok(()));
        }
    }
    taken
}

/// Feeds the exchange from the front of `wire`, then closes.
///
/// # Errors
/// As the exchange.
pub fn feed(
    exchange: &mut impl Exchange,
    wire: &mut &[u8],
    sizes: &mut impl Iterator<Item = usize>,
) -> Result<(), ProtocolError> {
    let mut closed = false;
    while let Step::Receive(space) = step(exchange) {
        assert!(!closed, "wants more of a peer that closed");
        let n = space.len().min(sizes.next().unwrap_or(usize::MAX)).min(wire.len());
        let (now, later) = wire.split_at(n);
        space[..n].copy_from_slice(now);
        *wire = later;
        closed = n == 0;
        match exchange.advance(n) {
            Ok(()) => {}
            Err(error @ ProtocolError::BufferTooSmall { .. }) => return Err(error),
            Err(error) => {
                assert!(matches!(exchange.step(), Step::Done), "continues after {error:?}");
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Returns the next step. Checks that a second call returns the same step, and that the step lends at least one byte.
fn step<E: Exchange>(exchange: &mut E) -> Step<'_> {
    let shape = |step: &Step<'_>| match step {
        Step::Send(bytes) => Some((bytes.as_ptr(), bytes.len())),
        Step::Receive(space) => Some((space.as_ptr(), space.len())),
        Step::Done => None,
    };
    let first = shape(&exchange.step());
    assert!(first.is_none_or(|(_, len)| len > 0), "lends nothing");
    let step = exchange.step();
    assert_eq!(shape(&step), first);
    step
}
