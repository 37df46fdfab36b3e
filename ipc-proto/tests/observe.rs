//! An observer of a connection: whole conversations, one direction, bytes from the middle, and peers that violate the
//! protocol.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test says what it expects by unwrapping it"
)]

use ipc_proto::types::{Format, ProcessEnvironment, SessionConfig, SessionId, Status, UserEventsSession};
use ipc_proto::wire::Writer;
use ipc_proto::{
    Answer, Array, Code, CollectTracing2, CollectTracing5, Command, Continuation, DecodeError,
    DecodeErrorKind, Direction, Encode, EncodeError, GetProcessEnvironment, HResult, Message, Observation,
    Observe, Parsed, ProtocolError, Request, Response, ResumeRuntime, ServerError, Text, encode_command,
    encode_to_vec,
};

const TO_RUNTIME: Direction = Direction::ToRuntime;
const TO_CLIENT: Direction = Direction::ToClient;

fn command(command: &impl Command) -> Vec<u8> {
    encode_command(command, &mut [0; 1024]).unwrap().to_vec()
}

fn ok(response: &impl Encode) -> Vec<u8> {
    encode_to_vec(Code::OK, response).unwrap()
}

/// An observer, and what it has returned as text.
struct Watch {
    observe: Observe<Vec<u8>>,
    seen: Vec<String>,
}

impl Watch {
    fn new() -> Self {
        Self {
            observe: Observe::new(vec![0; Message::MAX_LEN], vec![0; Message::MAX_LEN]).unwrap(),
            seen: Vec::new(),
        }
    }

    /// Observes bytes in pieces of this size, and returns what they were.
    fn pieces(&mut self, direction: Direction, bytes: &[u8], size: usize) -> Vec<String> {
        let before = self.seen.len();
        for mut piece in bytes.chunks(size) {
            while !piece.is_empty() {
                let (taken, observed) = self.observe.supply(direction, piece);
                piece = &piece[taken..];
                self.seen.extend(observed.map(|observed| {
                    let what = match observed.observation {
                        Observation::Request(message) => match message.request() {
                            Ok(request) => format!("{}", request.code()),
                            Err(error) => format!("{} {error}", message.code),
                        },
                        Observation::Answer { to: None, .. } => "answer to ?".to_owned(),
                        Observation::Answer { to: Some(to), message } => match message.response(to) {
                            Ok(Answer::Ok(Response::Unknown(_))) => "ok".to_owned(),
                            Ok(Answer::Ok(_)) => format!("ok to {to}"),
                            Ok(Answer::Refused(error)) => format!("refused {to} {:?}", error.hresult),
                            Err(error) => format!("to {to}: {error}"),
                        },
                        Observation::Advertise(advertise) => format!("advertise {}", advertise.process_id),
                        other => format!("{other:?}"),
                    };
                    format!("{}: {what}, {} bytes", observed.offset, observed.bytes.len())
                }));
            }
        }
        self.seen[before..].to_vec()
    }

    fn whole(&mut self, direction: Direction, bytes: &[u8]) -> Vec<String> {
        self.pieces(direction, bytes, usize::MAX)
    }
}

/// Any payload.
struct Bytes<'a>(&'a [u8]);

impl Encode for Bytes<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.bytes(self.0);
    }
}

const TRACE: CollectTracing2<'_> =
    CollectTracing2 { buffer_mb: 1, format: Format::NET_TRACE, rundown: false, providers: Array::EMPTY };

#[test]
fn a_session_has_a_stream_after_its_answer() {
    for size in [1, 7, 1000] {
        let mut watch = Watch::new();
        let request = command(&TRACE);
        assert_eq!(watch.pieces(TO_RUNTIME, &request, size), [format!("0: 0x0203, {} bytes", request.len())]);
        let answer = ok(&SessionId { session_id: 7 });
        assert_eq!(watch.pieces(TO_CLIENT, &answer, size), ["0: ok to 0x0203, 28 bytes"]);
        let stream = watch.whole(TO_CLIENT, b"Nettrace");
        assert_eq!(stream, ["28: Continuation(Some(Stream)), 8 bytes"]);
        assert_eq!(watch.whole(TO_CLIENT, b"!"), ["36: Continuation(Some(Stream)), 1 bytes"]);
    }
}

#[test]
fn an_environment_ends_after_the_announced_bytes() {
    let mut watch = Watch::new();
    watch.whole(TO_RUNTIME, &command(&GetProcessEnvironment {}));
    let answer = ok(&ProcessEnvironment { incoming_bytes: 4, future: 0 });
    let bytes = [&answer[..], b"\0\0\0\0!"].concat();
    assert_eq!(
        watch.whole(TO_CLIENT, &bytes),
        [
            "0: ok to 0x0402, 26 bytes",
            "26: Continuation(Some(Counted)), 4 bytes",
            "30: Lost(Decode(DecodeError { kind: TrailingBytes, offset: 0 })), 0 bytes",
        ]
    );
    let mut empty = Watch::new();
    empty.whole(TO_RUNTIME, &command(&GetProcessEnvironment {}));
    let answer = ok(&ProcessEnvironment { incoming_bytes: 0, future: 0 });
    assert_eq!(empty.whole(TO_CLIENT, &answer).len(), 1);
    assert!(empty.whole(TO_CLIENT, b"!")[0].starts_with("26: Lost"));
}

#[test]
fn a_runtime_that_connects_begins_with_its_frame() {
    let mut watch = Watch::new();
    let frame = b"ADVR_V1\0a runtime's name\x92\x10\0\0\0\0\0\0\0\0";
    let answer = ok(&Status::OK);
    for piece in [&frame[..8], &frame[8..]] {
        watch.whole(TO_CLIENT, piece);
    }
    watch.whole(TO_RUNTIME, &command(&ResumeRuntime {}));
    watch.whole(TO_CLIENT, &answer);
    assert_eq!(
        watch.seen,
        ["0: advertise 4242, 34 bytes", "0: 0x0401, 20 bytes", "34: ok to 0x0401, 24 bytes"]
    );
    // Only a runtime sends the frame, and only once.
    assert!(Watch::new().whole(TO_RUNTIME, frame)[0].contains("BadMagic"));
    let mut twice = Watch::new();
    assert!(twice.whole(TO_CLIENT, &[&frame[..], frame].concat())[1].starts_with("34: Lost(Decode"));
}

#[test]
fn a_descriptor_has_one_byte() {
    let mut watch = Watch::new();
    let session =
        SessionConfig::UserEvents(UserEventsSession { rundown_keyword: 0, providers: Array::EMPTY });
    let request = command(&CollectTracing5 { session });
    let at = request.len();
    let bytes = [&request[..], b"\0"].concat();
    assert_eq!(
        watch.whole(TO_RUNTIME, &bytes),
        [format!("0: 0x0206, {at} bytes"), format!("{at}: Continuation(Some(UserEvents)), 1 bytes")]
    );
    assert!(watch.whole(TO_RUNTIME, b"\0")[0].contains("Lost"));
    watch.whole(TO_CLIENT, &ok(&SessionId { session_id: 7 }));
    assert!(watch.whole(TO_CLIENT, b"\0")[0].starts_with("28: Lost"));
}

#[test]
fn nothing_follows_a_refusal() {
    let mut watch = Watch::new();
    watch.whole(TO_RUNTIME, &command(&TRACE));
    let refusal = encode_to_vec(Code::ERROR, &ServerError::from(HResult::FAIL)).unwrap();
    assert_eq!(watch.whole(TO_CLIENT, &refusal), ["0: refused 0x0203 0x80004005 DS_IPC_E_FAIL, 24 bytes"]);
    assert!(watch.whole(TO_CLIENT, b"Nettrace")[0].starts_with("24: Lost"));
}

#[test]
fn an_answer_before_its_request_is_an_answer_to_something() {
    let mut watch = Watch::new();
    let answer = ok(&SessionId { session_id: 7 });
    assert_eq!(watch.whole(TO_CLIENT, &answer), ["0: answer to ?, 28 bytes"]);
    // The request arrives before the first byte of the stream, so that the kind of the bytes is known.
    watch.whole(TO_RUNTIME, &command(&TRACE));
    assert_eq!(watch.whole(TO_CLIENT, b"N"), ["28: Continuation(Some(Stream)), 1 bytes"]);

    let mut late = Watch::new();
    late.whole(TO_CLIENT, &answer);
    assert_eq!(late.whole(TO_CLIENT, b"N"), ["28: Continuation(None), 1 bytes"]);
    late.whole(TO_RUNTIME, &command(&ResumeRuntime {}));
    assert_eq!(late.whole(TO_CLIENT, b"e"), ["29: Continuation(None), 1 bytes"], "the kind does not change");
}

#[test]
fn an_observer_is_lost_once_in_each_direction() {
    let mut watch = Watch::new();
    let middle = watch.whole(TO_CLIENT, b"of a stream, not its beginning");
    assert_eq!(middle, ["0: Lost(Decode(DecodeError { kind: BadMagic, offset: 0 })), 0 bytes"]);
    // Not even a whole message is taken for one: it can be a part of the stream.
    assert_eq!(watch.whole(TO_CLIENT, &ok(&Status::OK)), [""; 0]);
    assert_eq!(watch.whole(TO_RUNTIME, &command(&ResumeRuntime {})), ["0: 0x0401, 20 bytes"]);

    // A second request on the same connection, which no runtime reads.
    let again = watch.whole(TO_RUNTIME, &command(&ResumeRuntime {}));
    assert_eq!(again, ["20: Lost(Decode(DecodeError { kind: TrailingBytes, offset: 0 })), 0 bytes"]);
    assert_eq!(watch.whole(TO_RUNTIME, &command(&ResumeRuntime {})), [""; 0]);
}

#[test]
fn a_runtime_answers_with_an_answer() {
    let mut watch = Watch::new();
    let lost = watch.whole(TO_CLIENT, &command(&ResumeRuntime {}));
    assert_eq!(lost, ["0: Lost(Unexpected(0x0401)), 20 bytes"]);
}

#[test]
fn a_malformed_request_is_a_request() {
    let mut watch = Watch::new();
    let request = encode_to_vec(TRACE_CODE, &7_u16).unwrap();
    assert!(watch.whole(TO_RUNTIME, &request)[0].starts_with("0: 0x0203 "));
    watch.whole(TO_CLIENT, &ok(&SessionId { session_id: 7 }));
    // The runtime took it for valid, so what follows is unknown.
    assert_eq!(watch.whole(TO_CLIENT, b"N"), ["28: Continuation(None), 1 bytes"]);
}

const TRACE_CODE: Code = CollectTracing2::CODE;

#[test]
fn a_message_that_is_too_long_is_skipped() {
    let mut observe = Observe::new([0; 34], [0; 34]).unwrap();
    let request = encode_to_vec(TRACE_CODE, &Bytes(&[0; 100])).unwrap();
    let mut seen = Vec::new();
    for byte in [&request[..], b"!"].concat() {
        let (taken, observed) = observe.supply(TO_RUNTIME, core::slice::from_ref(&byte));
        assert_eq!(taken, 1);
        seen.extend(observed.map(|observed| format!("{observed:?}")));
    }
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen[0].contains("TooLong { code: 0x0203, len: 120 }"), "{seen:?}");
    assert!(seen[1].contains("offset: 120") && seen[1].contains("Continuation(None)"), "{seen:?}");
    assert_eq!(Observe::new([0; 33], [0; 33]).unwrap_err(), EncodeError::BufferTooSmall { needed: 34 });
}

#[test]
fn a_frame_that_is_cut_off_or_malformed_remains() {
    let mut observe = Observe::new([0; 64], [0; 64]).unwrap();
    assert_eq!(observe.supply(TO_RUNTIME, b""), (0, None));
    assert_eq!(observe.supply(TO_RUNTIME, b"DOTNET"), (6, None));
    assert_eq!(observe.unfinished(TO_RUNTIME), b"DOTNET");
    assert_eq!(observe.unfinished(TO_CLIENT), b"");
    let bad_size = b"DOTNET_IPC_V1\0\x13\0\x04\x01\0\0";
    let mut observe = Observe::new([0; 64], [0; 64]).unwrap();
    let (taken, observed) = observe.supply(TO_RUNTIME, bad_size);
    let error = ProtocolError::Decode(DecodeError { kind: DecodeErrorKind::BadSize, offset: 14 });
    assert_eq!((taken, observed.unwrap().observation), (20, Observation::Lost(error)));
    assert_eq!(observe.supply(TO_RUNTIME, b"more"), (4, None));
    assert_eq!(observe.unfinished(TO_RUNTIME), bad_size);
}

#[test]
fn what_follows_an_answer_is_what_the_request_says() {
    let mut kinds = Vec::new();
    for vector in ipc_testdata::MESSAGES {
        let Ok(Parsed::Complete { value, .. }) = Message::parse(vector.bytes) else { continue };
        let Ok(request) = value.request() else { continue };
        if matches!(request, Request::Unknown(_)) {
            continue;
        }
        let mut watch = Watch::new();
        watch.whole(TO_RUNTIME, vector.bytes);
        watch.whole(TO_CLIENT, &ok(&Bytes(&[4, 0, 0, 0, 0, 0, 0, 0])));
        let follows = watch.whole(TO_CLIENT, b"\0");
        match request.continuation() {
            Continuation::Nothing | Continuation::UserEvents => assert!(follows[0].contains("Lost")),
            kind => assert_eq!(follows, [format!("28: Continuation(Some({kind:?})), 1 bytes")]),
        }
        if !kinds.contains(&request.continuation()) {
            kinds.push(request.continuation());
        }
    }
    assert_eq!(kinds.len(), 4, "{kinds:?}");
}

/// Returns the bytes of hexadecimal digits.
fn unhex(digits: &str) -> Vec<u8> {
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The connections of Microsoft's client and of runtimes to monitors, as they were recorded.
#[test]
fn recorded_conversations_are_understood() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/conversations");
    let (mut advertised, mut answered) = (0, 0);
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        // Microsoft's client also received answers that no runtime sends: malformed ones, and cut off ones.
        let is_scripted = path.file_name().unwrap().to_str().unwrap().starts_with("reference-client");
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let Ok(line) = serde_json::from_str::<serde_json::Value>(line) else { continue };
            if line["what"] == "advertise" {
                let seen = Watch::new().whole(TO_CLIENT, &unhex(line["bytes"].as_str().unwrap()));
                assert!(seen.len() == 1 && seen[0].starts_with("0: advertise "), "{seen:?}");
                advertised += 1;
            }
            let one = [(&line["request"], &line["response"])];
            let several = line["requests"].as_array().into_iter().flatten();
            let several = several.map(|one| (&one["hex"], &one["answer"]));
            for (request, answer) in one.into_iter().chain(several) {
                let (Some(request), Some(answer)) = (request.as_str(), answer.as_str()) else { continue };
                let (mut watch, answer) = (Watch::new(), unhex(answer));
                watch.whole(TO_RUNTIME, &unhex(request));
                let seen = watch.pieces(TO_CLIENT, &answer, 5);
                match Message::parse(&answer) {
                    Ok(Parsed::Complete { value, .. }) if matches!(value.code, Code::OK | Code::ERROR) => {
                        let expected = if value.code == Code::OK { "0: ok to 0x" } else { "0: refused 0x" };
                        let is_malformed = is_scripted && seen[0].starts_with("0: to 0x");
                        assert!(is_malformed || seen[0].starts_with(expected), "{request}: {seen:?}");
                    }
                    Ok(Parsed::Partial { .. }) => {
                        assert!(is_scripted && seen.is_empty(), "{request}: {seen:?}")
                    }
                    _ => assert!(is_scripted && seen[0].starts_with("0: Lost("), "{request}: {seen:?}"),
                }
                answered += 1;
            }
        }
    }
    assert!(advertised > 2 && answered > 20, "{advertised} {answered}");
}

/// It is lost at the header, whatever the buffers and the pieces are.
#[test]
fn messages_of_the_other_direction() {
    let long = command(&CollectTracing2 {
        buffer_mb: 1,
        format: Format::NET_TRACE,
        rundown: false,
        providers: Array::from(
            &[ipc_proto::types::Provider {
                keywords: 1,
                level: ipc_proto::types::EventLevel::VERBOSE,
                name: "a name that is longer than the small buffer".into(),
                arguments: Text::NULL,
            }][..],
        ),
    });
    let answers = [ok(&Status::OK), encode_to_vec(Code(0xff07), &Status::OK).unwrap()];
    for (direction, message) in [(TO_CLIENT, &long), (TO_RUNTIME, &answers[0]), (TO_RUNTIME, &answers[1])] {
        let code = Code(u16::from_be_bytes([message[16], message[17]]));
        let stream = [&message[..], b"and more"].concat();
        for buffer in [34, 64, Message::MAX_LEN] {
            for size in [1, 7, stream.len()] {
                let mut observe = Observe::new(vec![0; buffer], vec![0; buffer]).unwrap();
                let mut seen = Vec::new();
                for mut piece in stream.chunks(size) {
                    while !piece.is_empty() {
                        let (taken, observed) = observe.supply(direction, piece);
                        piece = &piece[taken..];
                        seen.extend(
                            observed.map(|seen| {
                                (seen.offset, seen.bytes.len(), format!("{:?}", seen.observation))
                            }),
                        );
                    }
                }
                let lost = Observation::Lost(ProtocolError::Unexpected(code));
                assert_eq!(seen, [(0, 20, format!("{lost:?}"))], "{buffer} {size}");
            }
        }
    }
}
