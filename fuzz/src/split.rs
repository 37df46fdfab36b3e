//! The property of an exchange: the same result for pieces of any size.
use core::iter;

use ipc_proto::types::{DumpFlags, DumpType, EnvironmentEntries, EnvironmentEntry, ProcessEnvironment};
use ipc_proto::wire::{Reader, TextBuf, WireError, Writer, decode_prefix, to_u32};
use ipc_proto::{
    Answer, Code, Command, Decode, DecodeError, Encode, Exchange, GenerateCoreDump3, Message, Parsed,
    ProtocolError, ReceiveEnvironment, Reply, Request, RequestError, Serve, Step, Text, UntypedCall,
};

use crate::wire::{feed, sizes, take};

/// Checks that the result of an exchange does not depend on the sizes of the pieces that it receives, and that an
/// exchange takes only its own bytes.
///
/// The sizes of the pieces are the bytes in reverse. A file of `testdata/` is therefore a good input unchanged, and
/// appended bytes vary the pieces.
pub fn split(bytes: &[u8]) {
    calls(bytes);
    serves(bytes);
    environments(bytes);
}

fn calls(bytes: &[u8]) {
    let small = REQUEST_LEN + bytes.last().map_or(0, |byte| usize::from(*byte));
    let (mut one, mut other) = (Buffers::new(Message::MAX_LEN), Buffers::new(small));
    let whole = call(bytes, iter::empty(), &mut one);
    let pieces = call(bytes, sizes(bytes.iter().rev()), &mut other);
    assert_eq!(pieces.0, whole.0);
    match Message::parse(bytes) {
        // The magic is checked byte by byte, so the number of bytes taken of a wrong magic depends on the pieces.
        Err(_) => assert!(pieces.1 <= Message::HEADER_LEN && whole.1 <= Message::HEADER_LEN),
        Ok(Parsed::Complete { value, used }) if value.code.set() == Code::OK.set() && whole.0.is_ok() => {
            assert_eq!((pieces.1, whole.1), (used, used));
        }
        Ok(_) => assert_eq!(pieces.1, whole.1),
    }
}

/// The first buffer, and a larger one to resume with.
struct Buffers(Vec<u8>, Vec<u8>);

impl Buffers {
    fn new(len: usize) -> Self {
        Self(vec![0xa5; len], vec![0xa5; Message::MAX_LEN])
    }
}

/// The shortest request of the command that has a message in its error response.
const REQUEST: GenerateCoreDump3<'_> =
    GenerateCoreDump3 { dump_name: Text::NULL, dump_type: DumpType::FULL, flags: DumpFlags::NONE };
const REQUEST_LEN: usize = 32;

/// Runs a `Call` that receives `bytes`. Returns its result and the number of bytes that it took.
fn call<'b>(
    bytes: &[u8],
    mut sizes: impl Iterator<Item = usize>,
    Buffers(small, large): &'b mut Buffers,
) -> (Result<Answer<'b, Bytes<'b>>, ProtocolError>, usize) {
    let mut call = UntypedCall::untyped(GenerateCoreDump3::CODE, &REQUEST, small).expect("the request fits");
    assert_eq!(take(&mut call, &mut sizes, usize::MAX).len(), REQUEST_LEN);
    let mut wire = bytes;
    let mut outcome = feed(&mut call, &mut wire, &mut sizes);
    if let Err(ProtocolError::BufferTooSmall { needed }) = outcome {
        let suspended = call.suspend();
        let received = bytes.len() - wire.len();
        large[..received].copy_from_slice(&bytes[..received]);
        call = suspended.resume(&mut large[..needed]).expect("it is large enough");
        outcome = feed(&mut call, &mut wire, &mut sizes);
    }
    let taken = bytes.len() - wire.len();
    assert_eq!(call.received(), taken);
    let answer = call.finish_as();
    if let Err(error) = outcome {
        assert_eq!(answer, Err(error));
    }
    (answer, taken)
}

/// A payload that is not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Encode for Bytes<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.bytes(self.0);
    }
}
impl<'a> Decode<'a> for Bytes<'a> {
    const MIN_LEN: usize = 0;

    fn decode(r: &mut Reader<'a>) -> Result<Self, WireError> {
        r.bytes(r.rest().len()).map(Self)
    }
}

fn serves(bytes: &[u8]) {
    let (mut one, mut other) = (Buffers::new(Message::MAX_LEN), Buffers::new(Message::MAX_LEN));
    let (request, refusal, taken) = serve(bytes, iter::empty(), &mut one);
    assert_eq!(serve(bytes, sizes(bytes.iter().rev()), &mut other), (request, refusal.clone(), taken));

    let size = bytes.get(14..16).map_or(0, |size| usize::from(u16::from_le_bytes([size[0], size[1]])));
    assert_eq!(taken, size.max(Message::HEADER_LEN).min(bytes.len()));
    match Message::parse(bytes).map(|parsed| match parsed {
        Parsed::Complete { value, .. } => Some(value.request()),
        Parsed::Partial { .. } => None,
    }) {
        Ok(Some(parsed)) => assert_eq!(request, accepted(parsed)),
        Ok(None) | Err(_) => assert!(request.is_err()),
    }
}

/// Returns the request as a server accepts it: a server also checks the values.
fn accepted(parsed: Result<Request<'_>, DecodeError>) -> Result<Request<'_>, RequestError<'_>> {
    parsed?.into_checked()
}

/// Runs a `Serve` that receives `bytes`. Returns the request, the error response that it prepares, and the number of
/// bytes that it took.
fn serve<'b>(
    bytes: &[u8],
    mut sizes: impl Iterator<Item = usize>,
    Buffers(receive, send): &'b mut Buffers,
) -> (Result<Request<'b>, RequestError<'b>>, Vec<u8>, usize) {
    let mut serve = Serve::new(receive, send).expect("the buffers hold a header and a refusal");
    let mut wire = bytes;
    assert_eq!(feed(&mut serve, &mut wire, &mut sizes), Ok(()));
    let taken = bytes.len() - wire.len();
    assert_eq!(serve.bytes(), &bytes[..taken]);
    let (request, mut reply): (_, Reply<'_>) = serve.finish();
    let refusal = take(&mut reply, &mut sizes, usize::MAX);
    assert_eq!(refusal.len(), 24);
    (request, refusal, taken)
}

/// Receives the bytes as an environment, in a buffer for all of them, and in the smallest buffer for the longest entry.
fn environments(bytes: &[u8]) {
    let whole = environment(bytes, iter::empty(), bytes.len().max(4));
    let pieces = environment(bytes, sizes(bytes.iter().rev()), 4);
    assert_eq!(pieces, whole);
    match decode_prefix::<EnvironmentEntries<'_>>(bytes) {
        Ok((all, [])) => assert!(whole.1.is_ok() && whole.0.iter().map(TextBuf::as_text).eq(all)),
        Ok(_) | Err(_) => assert!(whole.1.is_err()),
    }
    // The environment is shorter than announced.
    let longer = ProcessEnvironment { incoming_bytes: to_u32(bytes.len()) + 1, future: 0 };
    let mut buf = vec![0xa5; bytes.len() + 4];
    let mut receive = ReceiveEnvironment::new(&longer, u32::MAX, &mut buf).expect("no limit");
    let received = bytes.len();
    assert_eq!(feed(&mut receive, &mut &*bytes, &mut iter::empty()), Err(ProtocolError::Closed { received }));
}

/// Receives an environment. Returns its entries and the result. Grows the buffer as the error requests.
pub(crate) fn environment(
    bytes: &[u8],
    mut sizes: impl Iterator<Item = usize>,
    mut room: usize,
) -> (Vec<TextBuf>, Result<(), ProtocolError>) {
    let incoming_bytes = to_u32(bytes.len());
    let announced = ProcessEnvironment { incoming_bytes, future: 0 };
    let wire = [bytes, b"next message"].concat();
    loop {
        let mut buf = vec![0xa5; room];
        let mut receive = ReceiveEnvironment::new(&announced, u32::MAX, &mut buf).expect("no limit");
        let (mut rest, mut entries) = (&wire[..], Vec::new());
        let outcome = loop {
            assert_eq!(feed(&mut receive, &mut rest, &mut sizes), Ok(()));
            assert!(rest.len() >= 12, "took bytes of the next message");
            match receive.next_entry().map(|entry| entry.map(owned_entry)) {
                Ok(Some(entry)) => entries.push(entry),
                Ok(None) if receive.is_finished() => break Ok(()),
                Ok(None) => assert!(
                    matches!(receive.step(), Step::Receive(_)),
                    "no progress: neither an entry nor a request for bytes"
                ),
                Err(error) => break Err(error),
            }
        };
        match outcome {
            Err(ProtocolError::BufferTooSmall { needed }) => {
                assert!(room < needed && needed <= bytes.len());
                room = needed;
            }
            _ => return (entries, outcome),
        }
    }
}

/// Copies an entry. It is split into name and value as a naive reading splits it, whatever the form of the text is.
fn owned_entry(entry: Text<'_>) -> TextBuf {
    let owned = entry.to_text_buf();
    let units: Vec<u16> = entry.units().collect();
    let equals = u16::from(b'=');
    let end = (1..units.len()).find(|at| units[*at] == equals);
    let naive = end.map(|at| (Text::from_utf16(&units[..at]), Text::from_utf16(&units[at + 1..])));
    let utf8 = owned.to_utf8().filter(|utf8| Text::from(&utf8[..]) == entry);
    for form in [entry, owned.as_text(), utf8.as_deref().map_or(entry, Text::from)] {
        let split = EnvironmentEntry::parse(form).map(|EnvironmentEntry { name, value }| (name, value));
        assert_eq!(split, naive, "{entry:?}");
    }
    owned
}
