//! The vectors of `testdata/`: each decodes to the text in the file beside it, and encodes to the same bytes.
//!
//! `BLESS=1 cargo test -p ipc-proto --test golden` rewrites the texts; review the changes.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
use core::{fmt::Debug, iter};
use std::path::Path;
use std::{env, fs};

use ipc_fuzz::wire::{feed, take};
use ipc_proto::types::{EnvironmentEntries, ProcessEnvironment, ProcessInfo3, Status};
use ipc_proto::wire::{decode, decode_prefix};
use ipc_proto::{
    Advertise, Code, Command, CommandInfo, Continuation, Decode, Encode, GenerateCoreDump3, HResult,
    InvalidValue, Message, Parsed, Request, RequestError, Serve, ServerError, Text, Violation, encode,
};
use ipc_testdata::{MALFORMED, MESSAGES, REFUSED, TOLERATED, Vector};

/// Compares decoded text with the text file beside the vector; with `BLESS`, writes the text file.
fn expect(vector: &Vector, decoded: &str) {
    let file = vector.path.replace(".hex", ".txt");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata").join(file);
    if env::var_os("BLESS").is_some() {
        return fs::write(path, decoded).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(decoded, expected, "{}; BLESS=1 rewrites it", path.display());
}

/// Returns the parts of the file's name: command or other subject, and kind.
fn name(vector: &Vector) -> (&str, &str) {
    let stem = vector.name().strip_suffix(".hex").unwrap();
    (stem.split('.').next().unwrap(), stem.rsplit('.').next().unwrap())
}

/// Returns the row of the command in the name of the vector.
fn row(vector: &Vector) -> &'static CommandInfo {
    let (command, _) = name(vector);
    Request::ALL.iter().find(|row| row.name == command).unwrap_or_else(|| panic!("{command} is in no row"))
}

/// Returns the message at the front of the bytes, if it is complete and well-formed.
fn whole(bytes: &[u8]) -> Option<Message<'_>> {
    match Message::parse(bytes) {
        Ok(Parsed::Complete { value, .. }) => Some(value),
        Ok(Parsed::Partial { .. }) | Err(_) => None,
    }
}

/// Encodes into a buffer of `0xa5`, so that a byte that is not written differs from 0.
fn encoded(code: Code, payload: &impl Encode) -> Vec<u8> {
    let mut buf = [0xa5; 4096];
    let len = encode(code, payload, &mut buf).unwrap().len();
    assert!(buf[len..].iter().all(|byte| *byte == 0xa5));
    buf[..len].to_vec()
}

/// Decodes the payload as a `T`; returns it as text, and the encoded message.
fn show<'a, T: Decode<'a> + Encode + Debug>(message: Message<'a>) -> (String, Vec<u8>) {
    let value: T = message.decode().unwrap();
    (format!("{value:#?}\n"), encoded(message.code, &value))
}

fn show_request(message: Message<'_>) -> (String, Vec<u8>) {
    let request = message.request().unwrap();
    assert!(!matches!(request, Request::Unknown(_)));
    (format!("{request:#?}\n"), encoded(request.code(), &request))
}

macro_rules! show_response {
    ($([
        $code:literal $name:ident / $specification_name:ident since $since:literal:
        $request:ty { $($field:ident: $ty:ty,)* }
        -> $response_name:ident: $response:ty, then $then:ident
    ])*) => {
        fn show_response<'r>(message: Message<'r>, row: &CommandInfo) -> (String, Vec<u8>) {
            assert_eq!(message.code, Code::OK);
            match row.code.0 {
                $($code => show::<$response>(message),)*
                _ => panic!("{} is not in the table", row.name),
            }
        }
    };
}
ipc_proto::for_each_command!(show_response);

fn show_refusal(message: Message<'_>, row: &CommandInfo) -> (String, Vec<u8>) {
    assert_eq!(message.code, Code::ERROR);
    if row.code == GenerateCoreDump3::CODE {
        show::<ServerError<'_>>(message)
    } else {
        show::<HResult>(message)
    }
}

#[test]
fn messages() {
    for vector in MESSAGES {
        let bytes = vector.bytes;
        let message = || whole(bytes).unwrap_or_else(|| panic!("{}", vector.path));
        let (decoded, again) = match name(vector).1 {
            "request" => {
                assert_eq!(message().code, row(vector).code);
                show_request(message())
            }
            "response" => show_response(message(), row(vector)),
            "refusal" => show_refusal(message(), row(vector)),
            "continuation" => {
                let (environment, rest) = decode_prefix::<EnvironmentEntries<'_>>(bytes).unwrap();
                assert_eq!(rest, []);
                (
                    format!("{environment:#?}\n"),
                    encoded(Code::OK, &environment)[Message::HEADER_LEN..].to_vec(),
                )
            }
            // An advertise frame is not a message.
            "frame" => {
                let advertise: Advertise = decode(bytes).unwrap();
                (format!("{advertise:#?}\n"), encoded(Code::OK, &advertise)[Message::HEADER_LEN..].to_vec())
            }
            other => panic!("{other} is no kind of message"),
        };
        expect(vector, &decoded);
        match vector.name() {
            // The payload ends with a field of a later version, which encoding omits.
            "GetProcessInfo3.version2.response.hex" => {
                let (_, unknown) = decode_prefix::<ProcessInfo3<'_>>(message().payload).unwrap();
                assert_eq!(decode::<Text<'_>>(unknown).unwrap(), "later");
                assert_eq!([&again[Message::HEADER_LEN..], unknown].concat(), message().payload);
            }
            // An OK without a payload decodes as a status, which is encoded with a payload.
            "ResumeRuntime.no-payload.response.hex" => {
                assert_eq!((bytes.len(), again), (20, encoded(Code::OK, &Status::OK)));
            }
            file => assert_eq!(again, bytes, "{file}"),
        }
    }
}

#[test]
fn every_command_has_a_request_and_a_response() {
    for row in Request::ALL {
        for kind in ["request", "response"] {
            let has = MESSAGES.iter().any(|vector| name(vector) == (row.name, kind));
            assert!(has, "testdata/messages/{}[.CASE].{kind}.hex is missing", row.name);
        }
    }
}

#[test]
fn continuations() {
    for vector in MESSAGES.iter().filter(|vector| name(vector).1 == "request") {
        let message = whole(vector.bytes).unwrap();
        let session_type = message.payload.first();
        let expected = match (message.code.0, session_type) {
            (0x0402, _) => Continuation::Counted,
            (0x0202..=0x0205, _) | (0x0206..=0x0207, Some(0)) => Continuation::Stream,
            (0x0206..=0x0207, Some(1)) => Continuation::UserEvents,
            _ => Continuation::Nothing,
        };
        assert_eq!(message.request().unwrap().continuation(), expected, "{}", vector.path);
    }
}

#[test]
fn continuations_are_as_long_as_announced() {
    for vector in MESSAGES.iter().filter(|vector| name(vector).1 == "continuation") {
        let response = vector.path.replace(".continuation.", ".response.");
        let announcing = MESSAGES.iter().find(|vector| vector.path == response).unwrap();
        let announced: ProcessEnvironment = whole(announcing.bytes).unwrap().decode().unwrap();
        assert_eq!(usize::try_from(announced.incoming_bytes), Ok(vector.bytes.len()), "{response}");
    }
}

/// Passes the bytes and then the end of the connection to a server. Returns the request and the default refusal.
fn serve<'b>(vector: &Vector, buf: &'b mut [u8]) -> (Result<Request<'b>, RequestError<'b>>, HResult) {
    let (receive, send) = buf.split_at_mut(4096);
    let mut serve = Serve::new(receive, send).unwrap();
    feed(&mut serve, &mut &*vector.bytes, &mut iter::empty()).unwrap();
    let (request, mut reply) = serve.finish();
    let answer = take(&mut reply, &mut iter::empty(), usize::MAX);
    let refusal = whole(&answer).unwrap();
    assert_eq!(refusal.code, Code::ERROR);
    (request, decode(refusal.payload).unwrap())
}

#[test]
fn malformed() {
    for vector in MALFORMED {
        let mut buf = [0; 8192];
        let (request, refusal) = serve(vector, &mut buf);
        let file = vector.path;
        assert_eq!(vector.server().unwrap(), refusal.to_string(), "{file}");
        let parsed = whole(vector.bytes).map(|message| message.request());
        if name(vector).0 == "unknown" {
            assert!(matches!(request, Ok(Request::Unknown(_))), "{file}");
            assert_eq!(parsed, Some(Ok(request.unwrap())));
            assert_eq!(refusal, HResult::UNKNOWN_COMMAND);
            expect(vector, &format!("{:#?}\n", request.unwrap()));
        } else {
            assert!(!matches!(parsed, Some(Ok(_))), "{file}");
            let RequestError::Decode(error) = request.expect_err(file) else {
                panic!("{file}: its layout is good")
            };
            let field = Message::field_at(vector.bytes, None, error.offset);
            let field = field.unwrap_or_else(|| panic!("{file}: the error is in no field"));
            expect(vector, &format!("{:?} at byte {}, {field}\n{refusal:?}\n", error.kind, error.offset));
        }
    }
}

/// Decoding accepts these requests, because it checks the layout only. The rules refuse their values.
#[test]
fn refused() {
    let mut broken = Vec::new();
    for vector in REFUSED {
        let file = vector.path;
        let (decoded, again) = show_request(whole(vector.bytes).unwrap());
        assert_eq!(again, vector.bytes, "{file}");
        let mut buf = [0; 8192];
        let (request, refusal) = serve(vector, &mut buf);
        let error = request.expect_err(file);
        expect(vector, &format!("{decoded}{error}\n"));
        let RequestError::Violation { request, violation, place } = error else { panic!("{file}: {error}") };
        assert_eq!(request.check(), Err(InvalidValue { violation, place }), "{file}");
        assert_eq!(Ok(request), whole(vector.bytes).unwrap().request(), "{file}");
        broken.push(violation);
        assert_eq!(vector.server().unwrap(), refusal.to_string(), "{file}");
    }
    for rule in Violation::ALL {
        assert!(broken.contains(rule), "no file in testdata/refused breaks the rule: {rule}");
    }
}

#[test]
fn tolerated() {
    for vector in TOLERATED {
        let mut buf = [0; 8192];
        let (decoded, again) = show_request(whole(vector.bytes).unwrap());
        expect(vector, &decoded);
        assert_ne!(again, vector.bytes, "{} has nothing odd", vector.path);
        let (request, _) = serve(vector, &mut buf);
        assert_eq!((vector.server().unwrap(), request.ok()), ("OK", whole(&again).unwrap().request().ok()));
    }
}
