//! Conversations of a monitor with real, suspended runtimes, frame by frame.
//!
//! A line of `testdata/conversations/reverse-connect-*.jsonl` is the advertise frame of a connection, or the request on
//! that connection with its response and the following bytes.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]
use std::path::Path;
use std::{fs, str};

use ipc_fuzz::wire::{feed, sizes, take};
use ipc_proto::types::{EnvironmentEntries, ProcessEnvironment, ProcessInfo3};
use ipc_proto::wire::{Writer, decode_prefix};
use ipc_proto::{
    Advertise, Answer, Call, Code, Command, Encode, HResult, Message, Parsed, ReceiveAdvertise, Request,
    Serve, encode,
};

/// Inputs of [`sizes`] for pieces of 1 byte, of 32 bytes, and of different lengths.
const PIECES: [&[u8]; 3] = [&[0], &[31], &[3, 12, 0, 26]];

/// A line of a file: its names and texts, one after the other.
struct Line<'t>(Vec<&'t str>);

impl<'t> Line<'t> {
    /// Splits a line at its quotes: the files contain only names and texts without escapes.
    fn new(line: &'t str) -> Self {
        Self(line.split('"').skip(1).step_by(2).collect())
    }

    fn text(&self, name: &str) -> Option<&'t str> {
        self.0.chunks(2).find(|pair| pair[0] == name).map(|pair| pair[1])
    }

    fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let digits = self.text(name)?.as_bytes();
        Some(
            digits
                .chunks(2)
                .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
                .collect(),
        )
    }
}

fn whole(bytes: &[u8]) -> Message<'_> {
    match Message::parse(bytes) {
        Ok(Parsed::Complete { value, used }) if used == bytes.len() => value,
        other => panic!("{other:?}"),
    }
}

/// Encodes over non-zero bytes, so that a skipped byte does not look like a 0.
fn encoded(code: Code, payload: &impl Encode) -> Vec<u8> {
    let mut buf = [0xa5; 4096];
    encode(code, payload, &mut buf).unwrap().to_vec()
}

fn frame(bytes: &[u8], pieces: &[u8]) -> Advertise {
    let mut receive = ReceiveAdvertise::new();
    let mut wire = bytes;
    feed(&mut receive, &mut wire, &mut sizes(pieces.iter())).unwrap();
    assert_eq!(wire, []);
    let advertise = receive.finish().unwrap();
    let mut again = [0xa5; Advertise::LEN];
    let mut w = Writer::new(&mut again);
    advertise.encode(&mut w);
    w.finish().unwrap();
    assert_eq!(again, bytes);
    advertise
}

/// Sends `command` and receives its response: the OK, encoded again, or the refusal.
fn call<C: Command>(command: &C, request: &[u8], response: &[u8], pieces: &[u8]) -> Result<Vec<u8>, HResult> {
    let mut buf = [0; 4096];
    let mut call = Call::new(command, &mut buf).unwrap();
    assert_eq!(take(&mut call, &mut sizes(pieces.iter()), usize::MAX), request);
    let mut wire = response;
    feed(&mut call, &mut wire, &mut sizes(pieces.iter())).unwrap();
    assert_eq!(wire, []);
    match call.finish().unwrap() {
        Answer::Ok(answer) => Ok(encoded(Code::OK, &answer)),
        Answer::Refused(error) => Err(error.hresult),
    }
}

/// Defines `call_any`: [`call`] for the command of any request.
macro_rules! call_any {
    ($([$code:literal $name:ident $($rest:tt)*])*) => {
        fn call_any(request: &Request<'_>, bytes: &[u8], response: &[u8], pieces: &[u8]) -> Result<Vec<u8>, HResult> {
            match request {
                $(Request::$name(command) => call(command, bytes, response, pieces),)*
                other => panic!("{other:?} is not in the table"),
            }
        }
    };
}
ipc_proto::for_each_command!(call_any);

fn conversation(name: &str, pieces: &[u8]) {
    let path = format!("../testdata/conversations/reverse-connect-{name}.jsonl");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let mut lines = text.lines().map(Line::new).peekable();
    let who = frame(&lines.peek().unwrap().bytes("bytes").unwrap(), pieces);
    let (mut connections, mut commands) = (0, 0);
    for line in lines {
        let what = line.text("what").unwrap();
        if what == "advertise" {
            assert_eq!(frame(&line.bytes("bytes").unwrap(), pieces), who);
            connections += 1;
            continue;
        }
        commands += 1;
        assert_eq!(connections, commands, "{name}, {what}: one command for each connection");
        let (bytes, response) = (line.bytes("request").unwrap(), line.bytes("response").unwrap());
        let (mut receive, mut send) = ([0; 4096], [0; 4096]);
        let mut serve = Serve::new(&mut receive, &mut send).unwrap();
        feed(&mut serve, &mut &bytes[..], &mut sizes(pieces.iter())).unwrap();
        let (request, _) = serve.finish();
        if what == "startup-prof-trunc" {
            // The request is truncated, and real runtimes differ in their responses to it.
            assert!(request.is_err());
            continue;
        }
        let request = request.unwrap();
        assert_eq!(encoded(request.code(), &request), bytes, "{name}, {what}");
        let answer = call_any(&request, &bytes, &response, pieces);
        match answer {
            Ok(again) => assert_eq!(again, response, "{name}, {what}"),
            Err(hresult) => assert_eq!(encoded(Code::ERROR, &hresult), response, "{name}, {what}"),
        }
        match what {
            "info3" => {
                let info: ProcessInfo3<'_> = whole(&response).decode().unwrap();
                assert_eq!((info.runtime_cookie, info.process_id), (who.runtime_cookie, who.process_id));
            }
            "env" => {
                let announced: ProcessEnvironment = whole(&response).decode().unwrap();
                let following = line.bytes("continuation").unwrap();
                let (environment, rest) = decode_prefix::<EnvironmentEntries<'_>>(&following).unwrap();
                assert_eq!(usize::try_from(announced.incoming_bytes), Ok(following.len()));
                assert_eq!(
                    (&encoded(Code::OK, &environment)[Message::HEADER_LEN..], rest),
                    (&following[..], &[][..])
                );
            }
            _ => {}
        }
    }
    assert!(commands > 10);
    // Two connections carry no command: one is closed while the runtime waits, after which the runtime makes another.
    assert_eq!(connections, commands + 2);
}

#[test]
fn conversations_of_real_runtimes_are_decoded() {
    for pieces in PIECES {
        for name in [
            "net10",
            "net10-linux",
            "net8-linux",
            "net9-aot-linux",
            "net10-aot-linux",
            "net11-aot-linux",
            "net11-linux",
        ] {
            conversation(name, pieces);
        }
    }
}
