use core::iter;

use arbitrary::{Arbitrary, Unstructured};
use ipc_proto::types::{ProcessEnvironment, ProcessInfo, ProcessInfo2, ProcessInfo3, SessionId, Status};
use ipc_proto::{
    Advertise, Code, Command, DecodeError, DecodeErrorKind, Encode, GenerateCoreDump3, HResult, Message,
    Parsed, ProtocolError, ReceiveAdvertise, Request, ServerError, Text, encode_to_vec,
};

use crate::message::encoded;
use crate::wire::feed;
use crate::{message, split};

/// What a peer that means no good says, made of good messages: out of place, one behind the other, cut, or damaged just
/// where it matters. The properties `message` and `split` hold for it, and it is shown part by part without a gap, up to
/// the error of decoding it.
pub fn hostile(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let answer_to =
        u.arbitrary().map_or(None, |at: u8| Request::ALL.get(usize::from(at))).map(|row| row.code);
    inspect(bytes, answer_to);
    advertised(bytes);
    let Ok(said) = said(&mut u) else { return };
    message(&said);
    split(&said);
    inspect(&said, answer_to);
    advertised(&said);
}

/// One thing after the other.
#[derive(Debug, Arbitrary)]
enum Say<'a> {
    Request(Request<'a>),
    Status(Status),
    SessionId(SessionId),
    ProcessInfo(ProcessInfo<'a>),
    ProcessInfo2(ProcessInfo2<'a>),
    ProcessInfo3(ProcessInfo3<'a>),
    ProcessEnvironment(ProcessEnvironment),
    Refuse(ServerError<'a>),
    /// What a runtime says on another connection, or at another time.
    Advertise(Advertise),
    Environment(Vec<Text<'a>>),
    /// A request with a text of so many letters, up to more than a message holds.
    Long {
        code: Code,
        letters: u16,
    },
    Bytes(&'a [u8]),
    /// The last bytes are other ones: sizes and counts in front, the ends of texts behind.
    Damage {
        back: u8,
        bytes: &'a [u8],
    },
    /// The size that the last message claims is off by a little.
    Resize(i8),
    Cut(u8),
    Again,
}

fn said(u: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let (mut said, mut last) = (Vec::new(), 0);
    let says: Vec<Say<'_>> = (0..u.int_in_range(1..=6)?).map(|_| u.arbitrary()).collect::<Result<_, _>>()?;
    for say in says {
        let before = said.len();
        match say {
            Say::Request(request) => say_message(&mut said, request.code(), &request),
            Say::Status(status) => say_message(&mut said, Code::OK, &status),
            Say::SessionId(session) => say_message(&mut said, Code::OK, &session),
            Say::ProcessInfo(info) => say_message(&mut said, Code::OK, &info),
            Say::ProcessInfo2(info) => say_message(&mut said, Code::OK, &info),
            Say::ProcessInfo3(info) => say_message(&mut said, Code::OK, &info),
            Say::ProcessEnvironment(announced) => say_message(&mut said, Code::OK, &announced),
            Say::Refuse(error) => say_message(&mut said, Code::ERROR, &error),
            Say::Advertise(advertise) => said.extend(encoded(&advertise)),
            Say::Environment(entries) => {
                said.extend(u32::try_from(entries.len()).unwrap_or(0).to_le_bytes());
                entries.iter().for_each(|entry| said.extend(encoded(entry)));
            }
            Say::Long { code, letters } => {
                let text = vec![u16::from(b'a'); usize::from(letters)];
                say_message(&mut said, code, &Text::from_utf16(&text));
            }
            Say::Bytes(bytes) => said.extend(bytes),
            Say::Damage { back, bytes } => {
                let at = said.len().saturating_sub(usize::from(back));
                said.iter_mut().skip(at).zip(bytes).for_each(|(old, new)| *old = *new);
            }
            Say::Resize(by) => {
                if let Some(size) = said.get_mut(last + 14..last + 16) {
                    let new = u16::from_le_bytes([size[0], size[1]]).wrapping_add_signed(by.into());
                    size.copy_from_slice(&new.to_le_bytes());
                }
            }
            Say::Cut(n) => said.truncate(said.len().saturating_sub(n.into())),
            Say::Again => said.extend_from_within(last..),
        }
        if said.len() > before {
            last = before;
        }
        last = last.min(said.len());
    }
    Ok(said)
}

fn say_message(said: &mut Vec<u8>, code: Code, payload: &impl Encode) {
    // One that is too long for any message is not said.
    said.extend(encode_to_vec(code, payload).unwrap_or_default());
}

/// What comes of a frame byte by byte: how receiving it ends, and what it is then.
pub(crate) fn received(bytes: &[u8]) -> (Result<(), ProtocolError>, Result<Advertise, ProtocolError>) {
    let mut receive = ReceiveAdvertise::new();
    let outcome = feed(&mut receive, &mut &*bytes, &mut iter::repeat(1));
    (outcome, receive.finish())
}

/// A frame comes to the same whole or byte by byte, and is written as it was read.
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

/// The parts of a message tile it, up to the error of decoding it if there is one.
fn inspect(bytes: &[u8], answer_to: Option<Code>) {
    let mut end = 0;
    let result = Message::inspect(bytes, answer_to, &mut |part| {
        assert_eq!(part.offset, end, "{} lies elsewhere", part.path);
        end += part.bytes.len();
        assert_eq!(part.bytes, &bytes[part.offset..end]);
    });
    let (used, expected) = match Message::parse(bytes) {
        Ok(Parsed::Complete { value, used }) => (used, decoded(&value, answer_to)),
        Ok(Parsed::Partial { .. }) => {
            let cut_off = DecodeError { kind: DecodeErrorKind::UnexpectedEnd, offset: bytes.len() };
            // Of a header that is not whole, the size may be seen to be wrong already.
            let bad_size = DecodeError { kind: DecodeErrorKind::BadSize, offset: 14 };
            let early = bytes.len() < Message::HEADER_LEN && result == Err(bad_size);
            (bytes.len(), Err(if early { bad_size } else { cut_off }))
        }
        Err(error) => (0, Err(error)),
    };
    assert_eq!(result, expected);
    match result {
        Ok(()) => assert_eq!(end, used),
        Err(error) => assert!(end <= error.offset.max(bytes.len().min(used)), "shows more than there is"),
    }
}

/// The payload as the response of the command that makes such a request.
fn response<'r, C: Command>(
    _: impl FnOnce(C) -> Request<'r>,
    message: &Message<'_>,
) -> Result<(), DecodeError> {
    message.decode::<C::Response<'_>>().map(|_| ())
}

fn decoded(message: &Message<'_>, answer_to: Option<Code>) -> Result<(), DecodeError> {
    /// The response of each command.
    macro_rules! responses {
        ($code:expr, $($command:ident)*) => {
            match $code {
                $(ipc_proto::$command::CODE =>
                    response(Request::$command, message),)*
                other => panic!("{other} is not in the list below"),
            }
        };
    }
    match (message.code, answer_to) {
        (Code::OK, Some(command)) => responses! { command,
            GenerateCoreDump GenerateCoreDump2 GenerateCoreDump3
            StopTracing CollectTracing CollectTracing2 CollectTracing3 CollectTracing4 CollectTracing5 CollectTracing6
            AttachProfiler StartupProfiler
            GetProcessInfo GetProcessInfo2 GetProcessInfo3 ResumeRuntime GetProcessEnvironment SetEnvironmentVariable
            EnablePerfMap DisablePerfMap ApplyStartupHook
        },
        (Code::OK, None) => Ok(()),
        (Code::ERROR, Some(GenerateCoreDump3::CODE)) => message.decode::<ServerError<'_>>().map(|_| ()),
        (Code::ERROR, _) => message.decode::<HResult>().map(|_| ()),
        _ => message.request().map(|_| ()),
    }
}
