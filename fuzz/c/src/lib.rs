//! Compares the C interface of `ipc-proto` with `ipc-proto` itself.
//!
//! The C half is a process, `messages.c`, which the sanitizers check together with the library. It describes each
//! message as a text, and so does this half, in Rust. `fuzz/README.md` explains how both are built and run.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a property that does not hold panics"
)]
use core::fmt::{Display, Write as _};
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex};

use ipc_proto::types::{ProcessInfo, ProcessInfo2, ProcessInfo3, SessionId};
use ipc_proto::wire::{PartValue, Reader, WireError};
use ipc_proto::{
    Advertise, Answer, Code, Decode, DecodeError, Exchange, GetProcessInfo2, HResult, Message, Parsed,
    ProtocolError, Request, RequestError, Serve, Step, Text, UntypedCall, encode,
};
use nettrace::{
    Event, IndexedPart, IndexedValues, Limits, Metadata, Parser, Record, Str, Value, Version, clr,
};

/// The C interface returns for every message what `ipc-proto` returns.
pub fn c_messages(bytes: &[u8]) {
    let in_c = C_HALF.lock().unwrap().describe(bytes);
    let in_rust = describe(bytes);
    for (c, rust) in in_c.lines().zip(in_rust.lines()) {
        assert_eq!(c, rust, "first in C, then in Rust");
    }
    assert_eq!(in_c, in_rust, "first in C, then in Rust");
}

/// The process that runs `messages.c`.
struct CHalf {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
}

static C_HALF: LazyLock<Mutex<CHalf>> = LazyLock::new(|| {
    // Nothing but its folder is known to a target that runs on another machine.
    let program = std::env::current_exe().unwrap().with_file_name("c_messages.child");
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    Mutex::new(CHalf { child, stdin, stdout })
});

impl CHalf {
    fn describe(&mut self, bytes: &[u8]) -> String {
        let mut text = Vec::new();
        let done = u32::try_from(bytes.len()).map_err(std::io::Error::other).and_then(|len| {
            self.stdin.write_all(&[&len.to_ne_bytes(), bytes].concat())?;
            let mut len = [0; 4];
            self.stdout.read_exact(&mut len)?;
            text.resize(u32::from_ne_bytes(len) as usize, 0);
            self.stdout.read_exact(&mut text)
        });
        if let Err(e) = done {
            // A sanitizer that finds an error prints it and ends the process.
            panic!("{e}; the process in C ends with {}", self.child.wait().unwrap());
        }
        String::from_utf8(text).unwrap()
    }
}

/// Returns the description of a message that `messages.c` writes.
fn describe(bytes: &[u8]) -> String {
    let mut out = Out { text: String::new(), pick: bytes.iter().copied().map(usize::from).sum() };
    let parsed = Message::parse(bytes);
    if let Some((value, used)) = out.complete("parse", &parsed) {
        out.ok("parse");
        out.line(format_args!("{} {} {used}", value.code.0, value.payload.len()));
    }
    out.inspect(bytes, None);
    out.inspect(bytes, Some(Request::ALL[out.pick % Request::ALL.len()].code));
    out.check(bytes, &parsed);

    // The payload of an OK answer, or the error that the C functions return for any other message.
    let answer = |out: &mut Out, what: &str| {
        let (value, _) = out.complete(what, &parsed)?;
        if value.code != Code::OK {
            out.error(what, &ProtocolError::Unexpected(value.code));
            return None;
        }
        Some(value.payload)
    };
    for version in 1..=3 {
        if let Some(payload) = answer(&mut out, "process info") {
            out.process_info(match version {
                1 => decode(payload).map(|info: ProcessInfo<'_>| info.into()),
                2 => decode(payload).map(|info: ProcessInfo2<'_>| info.into()),
                _ => decode(payload),
            });
        }
    }
    if let Some(payload) = answer(&mut out, "session") {
        match decode::<SessionId>(payload) {
            Ok(SessionId { session_id }) => {
                out.ok("session");
                out.line(session_id);
            }
            Err(e) => out.error("session", &e),
        }
    }
    if let Some((value, _)) = out.complete("advertise", &Advertise::parse(bytes)) {
        out.ok("advertise");
        out.line(format_args!("{} {} {}", value.process_id, value.future, hex(&value.runtime_cookie.0)));
    }
    out.serve(bytes);
    out.call(bytes);
    out.stream(bytes);
    out.values(bytes, Version::V4);
    out.values(bytes, Version::V6);
    out.text
}

/// Decodes the fields at the front of a payload.
fn decode<'a, T: Decode<'a>>(payload: &'a [u8]) -> Result<T, WireError> {
    Reader::at(payload, Message::HEADER_LEN).read()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a string of a trace as C has it: invalid UTF-8 becomes U+FFFD.
fn of_trace(text: Str<'_>) -> String {
    match text {
        Str::Utf8(bytes) => utf16_of(String::from_utf8_lossy(bytes).encode_utf16()),
        Str::Utf16(bytes) => {
            utf16_of(bytes.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])))
        }
    }
}

fn utf16_of(units: impl Iterator<Item = u16>) -> String {
    units.fold("+".to_owned(), |hex, unit| format!("{hex}{unit:04x}"))
}

fn utf16(text: &Text<'_>) -> String {
    match text.non_null() {
        Some(text) => utf16_of(text.units()),
        None => "-".to_owned(),
    }
}

/// A payload of any bytes, which are not checked.
struct Anything;

impl Decode<'_> for Anything {
    const MIN_LEN: usize = 0;

    fn decode(_: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Self)
    }
}

/// The text about a message.
struct Out {
    text: String,
    /// A number for the choices that the message does not make.
    pick: usize,
}

impl Out {
    fn line(&mut self, line: impl Display) {
        writeln!(self.text, "{line}").unwrap();
    }

    fn ok(&mut self, what: &str) {
        self.line(format_args!("{what}: ok"));
    }

    fn error(&mut self, what: &str, error: &impl Display) {
        self.line(format_args!("{what}: {error}"));
    }

    fn result<T, E: Display>(&mut self, what: &str, result: &Result<T, E>) {
        match result {
            Ok(_) => self.ok(what),
            Err(e) => self.error(what, e),
        }
    }

    /// Returns a complete value and its length, or writes why there is none.
    fn complete<'p, T>(
        &mut self,
        what: &str,
        parsed: &'p Result<Parsed<T>, DecodeError>,
    ) -> Option<(&'p T, usize)> {
        match parsed {
            Ok(Parsed::Complete { value, used }) => return Some((value, *used)),
            Ok(Parsed::Partial { needed }) => self.line(format_args!("{what}: more, {needed}")),
            Err(e) => self.error(what, e),
        }
        None
    }

    fn inspect(&mut self, bytes: &[u8], answer_to: Option<Code>) {
        let mut reserved = None;
        let inspected = Message::inspect(bytes, answer_to, &mut |part| {
            let (kind, number, text, name) = match part.value {
                // The number is sign-extended to 64 bits.
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as C has it")]
                PartValue::Number { number, name } => (0, number as u64, Text::NULL, name),
                PartValue::Bool(value) => (1, value.into(), Text::NULL, None),
                PartValue::Text(text) => (2, 0, text, None),
                PartValue::Guid(_) => (3, 0, Text::NULL, None),
                PartValue::HResult(code) => (4, code.0.into(), Text::NULL, code.name()),
                PartValue::Reserved(number) => (5, number.into(), Text::NULL, None),
                _ => (6, 0, Text::NULL, None),
            };
            let path = part.path.to_string();
            let name = name.map_or(Text::NULL, Text::new);
            writeln!(
                self.text,
                "part {path} {} {} {kind} {number} {} {}",
                part.offset,
                part.bytes.len(),
                utf16(&text),
                utf16(&name)
            )
            .unwrap();
            if path == "reserved" {
                reserved = Some(number);
            }
        });
        self.result("inspect", &inspected);
        if let Err(error) = inspected {
            self.field(bytes, answer_to, error);
        }
        if let (Ok(_), Some(reserved)) = (inspected, reserved) {
            self.line(format_args!("reserved {reserved}"));
        }
    }

    fn field(&mut self, bytes: &[u8], answer_to: Option<Code>, error: DecodeError) {
        match Message::field_at(bytes, answer_to, error.offset) {
            Some(field) => self.line(format_args!("field {field}")),
            None => self.line("no field"),
        }
    }

    fn check(&mut self, bytes: &[u8], parsed: &Result<Parsed<Message<'_>>, DecodeError>) {
        let checked = match parsed {
            Ok(Parsed::Partial { needed }) => {
                self.line(format_args!("check: more, {needed}"));
                return self.line(0);
            }
            Ok(Parsed::Complete { value, .. }) => value.request().map_err(RequestError::from),
            Err(error) => Err((*error).into()),
        };
        let checked = checked.and_then(|request| request.into_checked());
        self.checked("check", &checked);
        match checked {
            Err(RequestError::Decode(error)) => self.field(bytes, None, error),
            Err(RequestError::Violation { place, .. }) => self.line(format_args!("field {place}")),
            _ => {}
        }
        self.line(checked.map_or_else(|error| HResult::from(error).0, |_| 0));
    }

    /// Writes the rule of a refused value without the path of the value, as C has it.
    fn checked(&mut self, what: &str, checked: &Result<Request<'_>, RequestError<'_>>) {
        match checked {
            Err(RequestError::Violation { violation, .. }) => self.error(what, violation),
            result => self.result(what, result),
        }
    }

    fn process_info(&mut self, info: Result<ProcessInfo3<'_>, WireError>) {
        self.result("process info", &info);
        if let Ok(info) = info {
            let texts = [
                info.command_line,
                info.os,
                info.arch,
                info.managed_entrypoint_assembly_name,
                info.clr_product_version,
                info.portable_rid,
            ];
            let texts: Vec<_> = texts.iter().map(utf16).collect();
            let cookie = hex(&info.runtime_cookie.0);
            self.line(format_args!("{} {} {cookie} {}", info.version, info.process_id, texts.join(" ")));
        }
    }

    /// Fills the space of a step with the next bytes of the message, and returns their number.
    fn receive(&self, space: &mut [u8], rest: &mut &[u8]) -> usize {
        let n = rest.len().min(space.len()).min(1 + self.pick % 13);
        let (now, later) = rest.split_at(n);
        space[..n].copy_from_slice(now);
        *rest = later;
        n
    }

    fn serve(&mut self, bytes: &[u8]) {
        let (mut receive, mut send, mut rest) = (vec![0; 20 + self.pick % 300], [0; 64], bytes);
        let mut serve = Serve::new(&mut receive, &mut send).unwrap();
        while let Step::Receive(space) = serve.step() {
            let n = self.receive(space, &mut rest);
            let advanced = serve.advance(n);
            self.result("advance", &advanced);
        }
        let received = format!("code {} of {}", serve.code().map_or(0, |code| code.0), hex(serve.bytes()));
        let (request, mut reply) = serve.finish();
        self.checked("serve", &request);
        self.line(received);
        self.text.push_str("reply");
        while let Step::Send(bytes) = reply.step() {
            let n = bytes.len().min(7);
            write!(self.text, " {}", hex(&bytes[..n])).unwrap();
            reply.advance(n).unwrap();
        }
        self.text.push('\n');
    }

    fn stream(&mut self, bytes: &[u8]) {
        let mut parser = Parser::new(Limits::default());
        loop {
            let event = match parser.next(bytes) {
                Record::Event(event) => event,
                Record::More { .. } | Record::End(_) => return,
                _ => continue,
            };
            let Event { metadata_id, timestamp, thread, stack_id, capture_thread, .. } = event;
            let Event { sequence, processor, label_list, sorted, .. } = event;
            let ids = [event.activity_id, event.related_activity_id].map(|id| hex(&id.0));
            self.line(format_args!(
                "event {metadata_id} {timestamp} {thread} {stack_id} {capture_thread} {sequence} {processor} \
                 {label_list} {} {} {} {}",
                u8::from(sorted),
                ids.join(" "),
                hex(event.payload),
                hex(event.stack)
            ));
        }
    }

    fn values(&mut self, bytes: &[u8], version: Version) {
        let (len, rest) = bytes.split_first().map_or((0, bytes), |(len, rest)| (usize::from(*len), rest));
        let (record, payload) = rest.split_at(len.min(rest.len()));
        let Ok(metadata) = Metadata::decode(version, record) else { return };
        let mut fields = Vec::new();
        clr::describe(metadata, 8).fields.shapes(|index, name, shape| {
            let index = usize::try_from(index).unwrap();
            fields.resize(fields.len().max(index + 1), None);
            fields[index] = Some((name, shape));
        });
        let (names, shapes): (Vec<_>, Vec<_>) = fields.into_iter().map(Option::unwrap).unzip();
        let mut values = IndexedValues::new(&shapes, payload);
        let items: Vec<_> = values.by_ref().collect();
        match values.error() {
            Some(error) => self.error("values", &error),
            None => self.ok("values"),
        }
        for (field, part) in items {
            let (kind, content) = match part {
                IndexedPart::Value(value) => match value {
                    Value::Boolean(value) => (0, u8::from(value).to_string()),
                    #[allow(clippy::cast_sign_loss, reason = "as C has it")]
                    Value::Int(number) => (1, (number as u64).to_string()),
                    Value::UInt(number) => (2, number.to_string()),
                    Value::Single(number) => (3, f64::from(number).to_bits().to_string()),
                    Value::Double(number) => (3, number.to_bits().to_string()),
                    Value::Text(text) => (4, of_trace(text)),
                    Value::Guid(guid) => (5, hex(&guid.0)),
                    Value::DateTime(time) => (6, time.0.to_string()),
                    Value::Bytes(bytes) => (7, hex(bytes)),
                    Value::Decimal(bytes) => (8, hex(&bytes)),
                    Value::CodeUnit(unit) => (9, unit.to_string()),
                    value => panic!("{value:?} is new"),
                },
                IndexedPart::BeginObject => (10, "0".to_owned()),
                IndexedPart::EndObject => (11, "0".to_owned()),
                IndexedPart::BeginArray => (12, "0".to_owned()),
                IndexedPart::EndArray => (13, "0".to_owned()),
            };
            let name = of_trace(names[usize::try_from(field).unwrap()]);
            self.line(format_args!("value {field} {kind} {name} {content}"));
        }
    }

    fn call(&mut self, bytes: &[u8]) {
        let (mut buf, mut rest) = (vec![0; 20 + self.pick % 200], bytes);
        let len = encode(Code(0x0404), &GetProcessInfo2 {}, &mut buf).unwrap().len();
        let mut call = UntypedCall::encoded(len, &mut buf).unwrap();
        loop {
            let n = match call.step() {
                Step::Send(bytes) => bytes.len(),
                Step::Receive(space) => self.receive(space, &mut rest),
                Step::Done => break,
            };
            match call.advance(n) {
                Err(ProtocolError::BufferTooSmall { needed }) => {
                    self.line(format_args!("grow {needed}"));
                    let suspended = call.suspend();
                    buf.resize(needed, 0);
                    call = suspended.resume(&mut buf).unwrap();
                }
                Err(e) => self.error("receive", &e),
                Ok(()) => {}
            }
        }
        let suspended = call.suspend();
        let answer = suspended.resume(&mut buf).and_then(|call| {
            Ok(match call.finish_as::<Anything>()? {
                Answer::Ok(_) => None,
                Answer::Refused(error) => Some(error.hresult.0),
            })
        });
        self.result("call", &answer);
        if let Ok(hresult) = answer {
            let Ok(Parsed::Complete { used, .. }) = Message::parse(&buf) else { unreachable!() };
            let refused = u8::from(hresult.is_some());
            self.line(format_args!("refused {refused}, {} {}", hresult.unwrap_or(0), hex(&buf[..used])));
        }
    }
}
