//! The property of an observer: it returns the bytes that were sent, however the directions are divided and mixed.
use ipc_proto::{Advertise, Direction, Message, Observation, Observe};

use crate::wire::sizes;

/// Checks an observer of two directions: the last byte is the length of the one to the runtime, or all if it is larger,
/// and the others are the one to the client.
///
/// The observer returns the bytes as they were sent, without a gap up to the point where it is lost. The result does not
/// depend on the pieces. The frames depend neither on the order of the directions nor on a missing one, and a message that
/// fits a small buffer is the same as in a large one.
pub fn observe(bytes: &[u8]) {
    let Some((&len, streams)) = bytes.split_last() else { return };
    let (to_runtime, to_client) = streams.split_at(usize::from(len).min(streams.len()));
    let pieces = |direction, stream| Pieces { direction, rest: stream, sizes: sizes(bytes.iter().rev()) };
    let runtime = || pieces(Direction::ToRuntime, to_runtime);
    let client = || pieces(Direction::ToClient, to_client);
    let whole = |direction, stream| core::iter::once((direction, stream));

    let requests = whole(Direction::ToRuntime, to_runtime);
    let seen = run(requests.chain(whole(Direction::ToClient, to_client)), Message::MAX_LEN);
    assert_eq!(run(runtime().chain(client()), Message::MAX_LEN), seen);
    check(&seen, Direction::ToRuntime, to_runtime);
    check(&seen, Direction::ToClient, to_client);

    let (mut answers, mut mixed) = (client(), Vec::new());
    for piece in runtime() {
        mixed.extend([Some(piece), answers.next()].into_iter().flatten());
    }
    let mixed = mixed.into_iter().chain(answers);
    for other in [run(mixed, Message::MAX_LEN), run(client().chain(runtime()), Message::MAX_LEN)] {
        for direction in [Direction::ToRuntime, Direction::ToClient] {
            assert_eq!(frames(&other, direction), frames(&seen, direction));
        }
    }
    let alone = run(client(), Message::MAX_LEN);
    assert_eq!(frames(&alone, Direction::ToClient), frames(&seen, Direction::ToClient));

    let small = Advertise::LEN + usize::from(len);
    let fits = |seen: &&Sighting| seen.bytes.len() <= small;
    let expected = frames(&seen, Direction::ToRuntime);
    let in_small = run(whole(Direction::ToRuntime, to_runtime), small);
    for frame in expected.iter().filter(fits) {
        assert!(in_small.contains(frame), "{frame:?} is not among {in_small:?}");
    }
}

/// Something that was observed. Adjacent pieces of a continuation are one.
#[derive(Debug, Clone, PartialEq)]
struct Sighting {
    direction: Direction,
    offset: u64,
    bytes: Vec<u8>,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// With the observation as text.
    Frame(String),
    TooLong(usize),
    Continuation(String),
    Lost(String),
}

/// Returns the frames of a direction.
fn frames(seen: &[Sighting], direction: Direction) -> Vec<Sighting> {
    let is_frame = |seen: &&Sighting| seen.direction == direction && matches!(seen.kind, Kind::Frame(_));
    seen.iter().filter(is_frame).cloned().collect()
}

/// Observes pieces, with buffers of this size.
fn run<'a>(pieces: impl Iterator<Item = (Direction, &'a [u8])>, buffer: usize) -> Vec<Sighting> {
    let mut observe = Observe::new(vec![0; buffer], vec![0; buffer]).expect("the buffers are large enough");
    let mut all: Vec<Sighting> = Vec::new();
    for (direction, mut bytes) in pieces {
        while !bytes.is_empty() {
            let (taken, observed) = observe.supply(direction, bytes);
            assert!(taken > 0, "no byte of {} is taken", bytes.len());
            bytes = &bytes[taken..];
            let Some(observed) = observed else { continue };
            let kind = match observed.observation {
                // Without the request: it is known only if its direction came first, in which the runs differ.
                Observation::Answer { message, .. } => Kind::Frame(format!("answer {message:?}")),
                Observation::Continuation(kind) => Kind::Continuation(format!("{kind:?}")),
                Observation::TooLong { len, .. } => Kind::TooLong(len),
                Observation::Lost(error) => Kind::Lost(format!("{error:?}")),
                frame => Kind::Frame(format!("{frame:?}")),
            };
            let (offset, bytes) = (observed.offset, observed.bytes.to_vec());
            match all.iter_mut().rev().find(|seen| seen.direction == direction) {
                Some(last) if matches!(kind, Kind::Continuation(_)) && last.kind == kind => {
                    last.bytes.extend(bytes)
                }
                _ => all.push(Sighting { direction, offset, bytes, kind }),
            }
        }
    }
    for direction in [Direction::ToRuntime, Direction::ToClient] {
        assert!(observe.unfinished(direction).len() <= Message::MAX_LEN);
    }
    all
}

/// Checks that what was seen of a direction lies in its bytes without a gap, and that a lost observer returns no more.
fn check(seen: &[Sighting], direction: Direction, stream: &[u8]) {
    let mut at = 0;
    let mut lost = false;
    for seen in seen.iter().filter(|seen| seen.direction == direction) {
        assert!(!lost, "{seen:?} after the observer was lost");
        assert_eq!(usize::try_from(seen.offset), Ok(at));
        assert!(stream[at..].starts_with(&seen.bytes), "{seen:?} was not sent");
        lost = matches!(seen.kind, Kind::Lost(_));
        at += match seen.kind {
            Kind::TooLong(len) => len,
            _ => seen.bytes.len(),
        };
    }
}

/// A direction in pieces.
struct Pieces<'a, S> {
    direction: Direction,
    rest: &'a [u8],
    sizes: S,
}

impl<'a, S: Iterator<Item = usize>> Iterator for Pieces<'a, S> {
    type Item = (Direction, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let n = self.sizes.next().unwrap_or(usize::MAX).min(self.rest.len());
        let (piece, rest) = self.rest.split_at(n);
        self.rest = rest;
        (n > 0).then_some((self.direction, piece))
    }
}
