//! The property of messages from a hostile peer.
use core::iter;

use arbitrary::{Arbitrary, Unstructured};
use ipc_proto::wire::to_u32;
use ipc_proto::{
    Advertise, Code, Command, DecodeError, DecodeErrorKind, Encode, GenerateCoreDump3, HResult, Message,
    Parsed, ProtocolError, ReceiveAdvertise, Request, Response, ServerError, Text, encode_to_vec,
};

use crate::message::encoded;
use crate::wire::feed;
use crate::{message, split};

/// Checks the bytes of a hostile peer: valid messages out of order, one after another, cut off, or with damaged sizes,
/// counts and ends of texts.
///
/// The properties `message` and `split` hold for these bytes. `Message::inspect` reports their parts without a gap, up
/// to the decoding error.
pub fn hostile(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let answer_to =
        u.arbitrary().map_or(None, |at: u8| Request::ALL.get(usize::from(at))).map(|row| row.code);
    inspect(bytes, answer_to);
    advertised(bytes);
    let Ok(stream) = hostile_bytes(&mut u) else { return };
    message(&stream);
    split(&stream);
    inspect(&stream, answer_to);
    advertised(&stream);
}

/// One step of building the bytes.
#[derive(Debug, Arbitrary)]
enum Action<'a> {
    /// A request.
    Request(Request<'a>),
    /// An OK response.
    Response(Response<'a>),
    /// An error response.
    Refusal(ServerError<'a>),
    /// A message that a runtime sends on another connection or at another time.
    Advertise(Advertise),
    /// The entries of an environment, after their number.
    Environment(Vec<Text<'a>>),
    /// A message with a text of this many letters, which may exceed the largest message.
    Long { code: Code, letters: u16 },
    /// Any bytes.
    Bytes(&'a [u8]),
    /// Overwrites bytes near the end: sizes and counts, or the ends of texts.
    Damage { back: u8, bytes: &'a [u8] },
    /// Changes the size in the header of the last message by a small number.
    Resize(i8),
    /// Removes the last bytes.
    Cut(u8),
    /// Repeats what the last action has added.
    Again,
}

/// Returns the bytes of a hostile peer.
pub(crate) fn hostile_bytes(u: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let (mut stream, mut last) = (Vec::new(), 0);
    let actions: Vec<Action<'_>> =
        (0..u.int_in_range(1..=6)?).map(|_| u.arbitrary()).collect::<Result<_, _>>()?;
    for action in actions {
        let before = stream.len();
        match action {
            Action::Request(request) => push_message(&mut stream, request.code(), &request),
            Action::Response(response) => push_message(&mut stream, Code::OK, &response),
            Action::Refusal(error) => push_message(&mut stream, Code::ERROR, &error),
            Action::Advertise(advertise) => stream.extend(encoded(&advertise)),
            Action::Environment(entries) => {
                stream.extend(to_u32(entries.len()).to_le_bytes());
                entries.iter().for_each(|entry| stream.extend(encoded(entry)));
            }
            Action::Long { code, letters } => {
                let text = vec![u16::from(b'a'); usize::from(letters)];
                push_message(&mut stream, code, &Text::from_utf16(&text));
            }
            Action::Bytes(bytes) => stream.extend(bytes),
            Action::Damage { back, bytes } => {
                let at = stream.len().saturating_sub(usize::from(back));
                stream.iter_mut().skip(at).zip(bytes).for_each(|(old, new)| *old = *new);
            }
            Action::Resize(by) => {
                if let Some(size) = stream.get_mut(last + 14..last + 16) {
                    let new = u16::from_le_bytes([size[0], size[1]]).wrapping_add_signed(by.into());
                    size.copy_from_slice(&new.to_le_bytes());
                }
            }
            Action::Cut(n) => stream.truncate(stream.len().saturating_sub(n.into())),
            Action::Again => stream.extend_from_within(last..),
        }
        if stream.len() > before {
            last = before;
        }
        last = last.min(stream.len());
    }
    Ok(stream)
}

pub(crate) fn push_message(stream: &mut Vec<u8>, code: Code, payload: &impl Encode) {
    // A payload that is too long for a message is left out.
    stream.extend(encode_to_vec(code, payload).unwrap_or_default());
}

/// Receives a frame byte by byte. Returns the result of receiving it, and the frame.
pub(crate) fn received(bytes: &[u8]) -> (Result<(), ProtocolError>, Result<Advertise, ProtocolError>) {
    let mut receive = ReceiveAdvertise::new();
    let outcome = feed(&mut receive, &mut &*bytes, &mut iter::repeat(1));
    (outcome, receive.finish())
}

/// Checks that parsing a whole frame and receiving it byte by byte agree, and that the frame encodes to the same bytes.
fn advertised(bytes: &[u8]) {
    let (outcome, received) = received(bytes);
    match Advertise::parse(bytes) {
        Ok(Parsed::Complete { value, used }) => {
            assert_eq!((outcome, received), (Ok(()), Ok(value)));
            assert_eq!(encoded(&value), bytes[..used]);
        }
        Ok(Parsed::Partial { needed }) => {
            let closed = ProtocolError::Closed { received: bytes.len() };
            assert_eq!((needed, received), (Advertise::LEN, Err(closed)));
        }
        Err(error) => assert_eq!(outcome, Err(error.into())),
    }
}

/// Checks that the parts of a message cover it without a gap, up to its decoding error if there is one. The error must
/// be in a field.
fn inspect(bytes: &[u8], answer_to: Option<Code>) {
    let (mut end, mut last) = (0, (0, String::new()));
    let result = Message::inspect(bytes, answer_to, &mut |part| {
        assert_eq!(part.offset, end, "{} is at the wrong offset", part.path);
        if !part.bytes.is_empty() {
            last = (end, part.path.to_string());
        }
        end += part.bytes.len();
        assert_eq!(part.bytes, &bytes[part.offset..end]);
    });
    let (used, expected) = match Message::parse(bytes) {
        Ok(Parsed::Complete { value, used }) => (used, decoded(&value, answer_to)),
        Ok(Parsed::Partial { .. }) => {
            let cut_off = DecodeError { kind: DecodeErrorKind::UnexpectedEnd, offset: bytes.len() };
            // The size in the header can be wrong before the header is complete.
            let bad_size = DecodeError { kind: DecodeErrorKind::BadSize, offset: 14 };
            let early = bytes.len() < Message::HEADER_LEN && result == Err(bad_size);
            (bytes.len(), Err(if early { bad_size } else { cut_off }))
        }
        Err(error) => (0, Err(error)),
    };
    assert_eq!(result, expected);
    let field = |offset| Message::field_at(bytes, answer_to, offset).map(|field| field.to_string());
    if !last.1.is_empty() {
        assert_eq!(field(last.0), Some(last.1));
    }
    match result {
        Ok(()) => assert_eq!((end, field(end)), (used, None)),
        Err(error) => {
            assert!(end <= error.offset.max(bytes.len().min(used)), "parts beyond the end");
            assert!(field(error.offset).is_some_and(|field| !field.is_empty()), "an error in no field");
        }
    }
}

fn decoded(message: &Message<'_>, answer_to: Option<Code>) -> Result<(), DecodeError> {
    match (message.code, answer_to) {
        (Code::OK, Some(command)) => match message.response(command) {
            Err(ProtocolError::Decode(error)) => Err(error),
            answer => answer.map(|_| ()).map_err(|error| panic!("{error}")),
        },
        (Code::OK, None) => Ok(()),
        (Code::ERROR, Some(GenerateCoreDump3::CODE)) => message.decode::<ServerError<'_>>().map(|_| ()),
        (Code::ERROR, _) => message.decode::<HResult>().map(|_| ()),
        _ => message.request().map(|_| ()),
    }
}
