//! Messages part by part: the parts cover the message without gaps, and inspecting has the same errors as decoding.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod cases;

use cases::cases;
use ipc_proto::wire::{Part, PartValue, Path, WireError, WireErrorKind};
use ipc_proto::{
    Advertise, Code, CommandInfo, Decode, DecodeError, DecodeErrorKind, Message, Parsed, Request,
    ServerError, wire,
};
use ipc_testdata::{MALFORMED, MESSAGES, REFUSED, TOLERATED, Vector};
use proptest::prelude::*;

/// Returns name and value of every part, the end of the last part, and the result. Checks that the parts have no gaps.
fn inspect(bytes: &[u8], answer_to: Option<Code>) -> (Vec<(String, String)>, usize, Result<(), DecodeError>) {
    let (mut seen, mut end) = (Vec::new(), 0);
    let result = Message::inspect(bytes, answer_to, &mut |part| {
        assert_eq!(part.offset, end, "{} does not follow the previous part", part.path);
        end += part.bytes.len();
        assert_eq!(part.bytes, &bytes[part.offset..end]);
        let value = match part.value {
            PartValue::Number { number, name: None } => number.to_string(),
            PartValue::Number { number, name: Some(name) } => format!("{number} {name}"),
            other => format!("{other:?}"),
        };
        seen.push((part.path.to_string(), value));
    });
    (seen, end, result)
}

/// Returns the command in the name of a file.
fn command(vector: &Vector) -> Option<Code> {
    let name = vector.name().split('.').next().unwrap();
    Request::ALL.iter().find(|row| row.name == name).map(|row| row.code)
}

#[test]
fn good_messages_are_tiled() {
    for vector in [MESSAGES, REFUSED, TOLERATED].into_iter().flatten() {
        let Ok(Parsed::Complete { used, .. }) = Message::parse(vector.bytes) else { continue };
        let (seen, end, result) = inspect(vector.bytes, command(vector));
        assert_eq!((end, result), (used, Ok(())), "{}", vector.path);
        assert!(seen.iter().all(|(path, _)| path != "payload"), "{}", vector.path);
    }
}

#[test]
fn malformed_ones_are_tiled_up_to_the_error() {
    for vector in MALFORMED {
        let file = vector.path;
        let (seen, end, result) = inspect(vector.bytes, None);
        let expected = match Message::parse(vector.bytes) {
            Ok(Parsed::Complete { value, .. }) => value.request().map(|_| ()),
            Ok(Parsed::Partial { .. }) => {
                Err(DecodeError { kind: DecodeErrorKind::UnexpectedEnd, offset: vector.bytes.len() })
            }
            Err(e) => Err(e),
        };
        assert_eq!(result, expected, "{file}");
        assert!(result.map_or_else(|e| end <= e.offset, |()| end == vector.bytes.len()), "{file}");
        assert!(seen.len() >= 5 || end < Message::HEADER_LEN, "{file}");
    }
}

#[test]
fn fields_have_names_and_values() {
    let of = |name: &str| {
        let vector = MESSAGES.iter().find(|vector| vector.path.ends_with(name)).unwrap();
        let (seen, _, result) = inspect(vector.bytes, command(vector));
        result.unwrap();
        seen[4..].iter().map(|(path, value)| format!("{path} = {value}")).collect::<Vec<_>>()
    };
    assert_eq!(
        of("CollectTracing3.no-stackwalk.request.hex")[..10],
        [
            "reserved = Reserved(0)",
            "buffer_mb = 256",
            "format = 1 NET_TRACE",
            "rundown = Bool(true)",
            "stackwalk = Bool(false)",
            "providers.count = 1",
            "providers[0].keywords = 89142578365",
            "providers[0].level = 5 VERBOSE",
            "providers[0].name.count = 32",
            "providers[0].name = Text(\"Microsoft-Windows-DotNETRuntime\")",
        ]
    );
    let refusal = of("GenerateCoreDump3.single-file.refusal.hex");
    assert_eq!(refusal[1], "hresult = HResult(0x80004005 DS_IPC_E_FAIL)");
    assert!(refusal[3].starts_with("message = Text("), "{refusal:?}");
    assert_eq!(of("ResumeRuntime.response.hex")[1], "status = HResult(0x00000000)");
    assert_eq!(of("ResumeRuntime.no-payload.response.hex").len(), 1);
    let newer = of("GetProcessInfo3.version2.response.hex");
    assert!(newer.last().unwrap().starts_with("rest = Bytes([6, 0, 0, 0, 108"), "{newer:?}");
}

/// The parts before an error have been visited.
#[test]
fn an_error_hides_nothing_before_it() {
    let shown = |command: u16, payload: &[u8]| {
        let mut message = b"DOTNET_IPC_V1\0\0\0".to_vec();
        message.extend(command.to_be_bytes());
        message.extend([0, 0]);
        message.extend(payload);
        let size = u16::try_from(message.len()).unwrap();
        message[14..16].copy_from_slice(&size.to_le_bytes());
        let (mut seen, _, result) = inspect(&message, None);
        let e = result.unwrap_err();
        (seen.pop().unwrap().0, e.kind, e.offset)
    };
    let text = [3, 0, 0, 0, b'a', 0, b'b', 0, b'c', 0];
    assert_eq!(
        shown(0x0407, &text),
        ("startup_hook_path.count".to_owned(), DecodeErrorKind::Unterminated, 28)
    );
    let mut attach = vec![0; 24];
    attach.extend([1, 0, 0, 0, 7, 8]);
    assert_eq!(shown(0x0301, &attach), ("client_data".to_owned(), DecodeErrorKind::TrailingBytes, 49));
    let unknown = [&b"DOTNET_IPC_V1\0\x1a\0\x02\x06\0\0"[..], &[2, 0, 0, 0, 9, 9]].concat();
    assert_eq!(inspect(&unknown, None).0[6].0, "rest");
}

/// Returns the names of the parts with a problem.
fn problems(inspect: impl FnOnce(&mut dyn FnMut(&Part<'_>)) -> Result<(), DecodeError>) -> Vec<String> {
    let mut found = Vec::new();
    inspect(&mut |part| found.extend(part.value.problem().map(|_| part.path.to_string()))).unwrap();
    found
}

/// Runtimes accept a reserved number other than 0. So the number is a problem of the part, but not an error.
#[test]
fn a_reserved_number_other_than_0_is_a_problem() {
    let of = |bytes: &[u8]| problems(|visitor| Message::inspect(bytes, None, visitor));
    for reserved in [[1, 0], [0, 1], [0xff, 0xff]] {
        let message = [&b"DOTNET_IPC_V1\0\x1c\0\x02\x01"[..], &reserved, &[9; 8]].concat();
        assert_eq!(of(&message), ["reserved"]);
        let Ok(Parsed::Complete { value, .. }) = Message::parse(&message) else { panic!("{message:?}") };
        assert!(value.request().is_ok());

        let frame = [&b"ADVR_V1\0"[..], &[7; 24], &reserved].concat();
        let mut r = wire::Reader::new(&frame);
        assert_eq!(
            problems(|mut visitor| Ok(Advertise::inspect(&mut r, &Path::Root, &mut visitor)?)),
            ["future"]
        );
    }
    for vector in MESSAGES {
        let answer_to = command(vector);
        let Ok(Parsed::Complete { .. }) = Message::parse(vector.bytes) else { continue };
        let found = problems(|visitor| Message::inspect(vector.bytes, answer_to, visitor));
        assert_eq!(found, [""; 0], "{}", vector.path);
    }
}

#[test]
fn the_payload_of_an_unknown_command_and_of_its_answer_is_one_part() {
    let asked = (b"DOTNET_IPC_V1\0\x16\0\x04\xf0\0\0\x07\x08", None);
    let answered = (b"DOTNET_IPC_V1\0\x16\0\xff\x00\0\0\x07\x08", Some(Code(0x04f0)));
    for (message, answer_to) in [asked, answered] {
        let (seen, _, result) = inspect(message, answer_to);
        assert_eq!((seen[5].0.as_str(), result), ("payload", Ok(())));
    }
}

#[test]
fn the_message_of_a_refusal_begins_with_a_count() {
    let shown = |size, words: &[u8]| {
        let head = [&b"DOTNET_IPC_V1\0"[..], &[size, 0, 0xff, 0xff, 0, 0, 5, 0x40, 0, 0x80], words].concat();
        let (seen, _, result) = inspect(&head, Some(Code(0x0103)));
        assert_eq!(result, Ok(()));
        seen[4..].iter().map(|(path, _)| path.clone()).collect::<Vec<_>>()
    };
    assert_eq!(shown(24, &[]), ["reserved", "hresult"]);
    assert_eq!(shown(27, &[0; 3]), ["reserved", "hresult", "rest"]);
    assert_eq!(shown(28, &[0; 4]), ["reserved", "hresult", "message.count", "message"]);
}

/// Offsets count from the start of the reader, not from the start of the frame.
#[test]
fn an_advertise_frame_after_other_bytes() {
    fn at_frame(bytes: &[u8]) -> wire::Reader<'_> {
        let mut r = wire::Reader::new(bytes);
        r.bytes(3).unwrap();
        r
    }
    let mut bytes = [&b"abc"[..], b"ADVR_V1\0", &[9; 16], &[7, 0, 0, 0, 0, 0, 0, 0, 1, 0]].concat();
    let mut seen = Vec::new();
    Advertise::inspect(&mut at_frame(&bytes), &Path::Root, &mut |part: &Part<'_>| {
        seen.push((part.path.to_string(), part.offset));
    })
    .unwrap();
    let parts = [("magic", 3), ("runtime_cookie", 11), ("process_id", 27), ("future", 35)];
    assert_eq!(seen, parts.map(|(path, offset)| (path.to_owned(), offset)));
    assert_eq!(at_frame(&bytes).read::<Advertise>().unwrap().process_id, 7);

    bytes[8] = b'?';
    let error = Err(WireError { kind: WireErrorKind::BadValue, offset: 8 });
    assert_eq!(Advertise::inspect(&mut at_frame(&bytes), &Path::Root, &mut |_: &Part<'_>| {}), error);
    assert_eq!(at_frame(&bytes).read::<Advertise>().map(|_| ()), error);
}

#[test]
fn parts_of_parts() {
    let filter = Path::Field(&Path::Index(&Path::Field(&Path::Root, "providers"), 3), "filter");
    assert_eq!(filter.to_string(), "providers[3].filter");
    assert_eq!(Path::Root.to_string(), "");
}

/// Returns the result of decoding, which inspecting must also have.
fn decoded(bytes: &[u8], answer_to: Option<Code>) -> Result<(), DecodeError> {
    let message = match Message::parse(bytes)? {
        Parsed::Complete { value, .. } => value,
        Parsed::Partial { .. } => {
            return Err(DecodeError { kind: DecodeErrorKind::UnexpectedEnd, offset: bytes.len() });
        }
    };
    let refusal = |message: &Message<'_>| match answer_to {
        Some(Code(0x0103)) => message.decode::<ServerError<'_>>().map(|_| ()),
        _ => message.decode::<ipc_proto::HResult>().map(|_| ()),
    };
    match (message.code, answer_to.and_then(CommandInfo::find)) {
        (Code::ERROR, _) => refusal(&message),
        (Code::OK, None) => Ok(()),
        (Code::OK, Some(row)) => response(row.code, message.payload),
        _ => message.request().map(|_| ()),
    }
}

macro_rules! response {
    ($([
        $code:literal $name:ident / $specification_name:ident since $since:literal:
        $request:ty { $($field:ident: $ty:ty,)* }
        -> $response_name:ident: $response:ty, then $then:ident
    ])*) => {
        /// Decodes the payload as the response to a command.
        fn response<'r>(command: Code, payload: &'r [u8]) -> Result<(), DecodeError> {
            let mut r = wire::Reader::at(payload, Message::HEADER_LEN);
            match command.0 {
                $($code => Ok(r.read::<$response>().map(|_| ())?),)*
                _ => panic!("{command} is not in the table"),
            }
        }
    };
}
ipc_proto::for_each_command!(response);

proptest! {
    #![proptest_config(cases(1))]

    /// A well-formed message, with one byte changed or its end cut off, inspected as the answer to any command.
    #[test]
    fn results_are_those_of_decoding(
        file: prop::sample::Index,
        at: prop::sample::Index,
        byte: u8,
        cut: bool,
        command in prop::option::of(0..Request::ALL.len()),
    ) {
        let mut bytes = file.get(MESSAGES).bytes.to_vec();
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] = byte;
        }
        let answer_to = command.map(|index| Request::ALL[index].code);
        let (_, end, result) = inspect(&bytes, answer_to);
        let short_and_bad = bytes.len() < Message::HEADER_LEN
            && matches!(result, Err(DecodeError { kind: DecodeErrorKind::BadSize, .. }));
        if !short_and_bad {
            prop_assert_eq!(result, decoded(&bytes, answer_to));
        }
        match result {
            Ok(()) => prop_assert!(end >= Message::HEADER_LEN),
            Err(e) => prop_assert!(end <= e.offset),
        }
    }
}
