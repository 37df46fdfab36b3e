//! `decode`: messages, field by field.
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path as FilePath, PathBuf};

use ipc_proto::legacy::{self, Legacy};
use ipc_proto::types::{Environment, ProcessEnvironment};
use ipc_proto::wire::{Part, Path, Reader, See, Value};
use ipc_proto::{
    Advertise, Code, Command, CommandInfo, Decode, DecodeError, DecodeErrorKind, GetProcessEnvironment,
    Message, Parsed, Request,
};
use serde_json::{Value as Json, json};

use crate::Globals;
use crate::failure::{Failure, Kind, name_of};
use crate::hex;
use crate::output::{json_to_stdout, to_stdout};

/// Show messages field by field, with the place of every byte
#[derive(Debug, clap::Args)]
#[command(after_help = "\
HEX is pairs of digits; blanks, `:`, `|`, `,` and `0x` may stand between them. FILE
holds messages, one after the other, in bytes or as such digits with `#` before
comments, or is what --wire-log wrote, which tells the command of every answer.
Offsets count from the start of a message.

Malformed bytes are pointed at, after what is good before them; the exit status is
6 then. What is well-formed need not be something that a runtime takes.

Examples:
  dotnet-ipc decode 444f544e45545f4950435f56310014000408 0000
  dotnet-ipc decode answer.bin --answer-to GetProcessInfo3
  dotnet-ipc info 4242 --wire-log log.jsonl; dotnet-ipc decode log.jsonl
  xxd -p message.bin | dotnet-ipc decode - --json | jq .fields")]
pub(crate) struct Args {
    /// The messages: digits, a file, or `-` for standard input
    #[arg(value_name = "HEX|FILE|-")]
    input: Vec<String>,
    /// The command that the answers are to, by its name or code: an OK answer does not say it. Without this it is the
    /// request before the answer
    #[arg(long, value_name = "COMMAND", value_parser = parse_command)]
    answer_to: Option<Code>,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let mut decoder = Decoder { answer_to: args.answer_to, asked: HashMap::new(), frames: Vec::new() };
    for piece in pieces(args)? {
        decoder.decode(&piece);
    }
    let frames = decoder.frames;
    if globals.output.json {
        frames.iter().try_for_each(|frame| json_to_stdout(&frame.to_json()))?;
    } else {
        to_stdout(|out| {
            for (i, frame) in frames.iter().enumerate() {
                if i > 0 {
                    writeln!(out)?;
                }
                frame.write(out)?;
            }
            Ok(())
        })?;
    }
    let mut malformed =
        frames.iter().enumerate().filter_map(|(i, frame)| Some((i, frame.error?.to_string())));
    let Some((i, error)) = malformed.next() else { return Ok(()) };
    let which = match frames.len() {
        1 => "the message".to_owned(),
        _ => format!("message {}", i.saturating_add(1)),
    };
    let more = match malformed.count() {
        0 => String::new(),
        more => format!(", and {more} more are malformed too"),
    };
    Err(Failure::new(Kind::Protocol, format!("{which} is malformed: {error}{more}"))
        .with_hint("what is good before that byte is shown"))
}

/// A command, by either of its names or its code.
fn parse_command(text: &str) -> Result<Code, String> {
    let named = |row: &&CommandInfo| {
        [row.name, row.specification_name].iter().any(|name| name.eq_ignore_ascii_case(text))
    };
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let code =
        || Some(digits).filter(|digits| digits.len() == 4).and_then(|d| u16::from_str_radix(d, 16).ok());
    let found = Request::ALL.iter().find(named).map(|row| row.code);
    found.or_else(|| code().map(Code)).ok_or_else(|| {
        let names: Vec<_> = Request::ALL.iter().map(|row| row.name).collect();
        format!("no such command: give a code such as 0x0408, or one of {}", names.join(", "))
    })
}

/// Bytes that were sent in one direction of a connection.
#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    /// Where in a wire log they stand.
    logged: Option<Logged>,
}

#[derive(Debug, Clone)]
struct Logged {
    connection: Json,
    direction: Json,
}

/// What there is to decode.
fn pieces(args: &Args) -> Result<Vec<Piece>, Failure> {
    let (name, bytes) = match args.input.as_slice() {
        [] if io::stdin().is_terminal() => {
            return Err(Failure::new(Kind::Usage, "there is nothing to decode"));
        }
        [] => read("-")?,
        [one] if one == "-" || FilePath::new(one).exists() => read(one)?,
        all => match hex::parse(&all.join(" ")) {
            Ok(bytes) => return Ok(vec![Piece { bytes, logged: None }]),
            Err(_) if all.len() == 1 && all.iter().any(|one| one.contains(['/', '.'])) => {
                return Err(Failure::new(Kind::Io, format!("there is no file {}", all.join(" "))));
            }
            Err(e) => return Err(Failure::new(Kind::Usage, format!("{e}, nor is there such a file"))),
        },
    };
    understand(bytes).map_err(|e| Failure::new(Kind::Usage, format!("{name}: {e}")))
}

fn read(input: &str) -> Result<(String, Vec<u8>), Failure> {
    let mut bytes = Vec::new();
    let (name, result) = if input == "-" {
        ("standard input".to_owned(), io::stdin().read_to_end(&mut bytes))
    } else {
        let path = PathBuf::from(input);
        let read = File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes));
        (path.display().to_string(), read)
    };
    match result {
        Ok(_) => Ok((name, bytes)),
        Err(e) => Err(Failure::io(format_args!("cannot read {name}"), &e)),
    }
}

/// Takes bytes for what they look like: messages, a wire log, or digits.
fn understand(bytes: Vec<u8>) -> Result<Vec<Piece>, String> {
    let messages = |bytes| Ok(vec![Piece { bytes, logged: None }]);
    // Every whole message has a NUL, and no text does.
    if bytes.contains(&0) || bytes.starts_with(b"DOTNET_IPC") || bytes.starts_with(ADVERTISE) {
        return messages(bytes);
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => return messages(e.into_bytes()),
    };
    if !text.trim_start().starts_with('{') {
        return hex::parse(&text).and_then(messages);
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(i, line)| logged(line).map_err(|e| format!("line {}: {e}", i.saturating_add(1)))).collect()
}

/// A line of a wire log.
fn logged(line: &str) -> Result<Piece, String> {
    let entry: Json = serde_json::from_str(line).map_err(|e| format!("no JSON: {e}"))?;
    let hex = entry.get("hex").and_then(Json::as_str);
    let hex = hex.ok_or("no line of a wire log: it has no \"hex\"")?;
    let get = |key| entry.get(key).cloned().unwrap_or_default();
    let logged = Logged { connection: get("connection"), direction: get("direction") };
    Ok(Piece { bytes: hex::parse(hex)?, logged: Some(logged) })
}

/// Cuts pieces into frames.
struct Decoder {
    /// The command of all answers, if that is told.
    answer_to: Option<Code>,
    /// The last request on each connection.
    asked: HashMap<String, Code>,
    frames: Vec<Frame>,
}

/// A message, or something else that a connection carries as a whole.
#[derive(Debug)]
struct Frame {
    kind: FrameKind,
    /// What it asks for or answers to.
    command: Option<Code>,
    /// Where it begins in its input.
    at: usize,
    logged: Option<Logged>,
    bytes: Vec<u8>,
    fields: Vec<Field>,
    error: Option<DecodeError>,
    /// Of which protocol it is, if not of today's.
    legacy: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    /// Nothing that is known.
    NoMessage,
    Request,
    Ok,
    Error,
    Advertise,
    Environment,
    Stream,
}

/// A part, as it is shown.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    offset: usize,
    len: usize,
    value: Json,
    pub(crate) text: String,
}

/// What an advertise frame is known by, even a broken one.
const ADVERTISE: &[u8] = b"ADVR";

impl Decoder {
    fn decode(&mut self, piece: &Piece) {
        let connection =
            piece.logged.as_ref().map(|logged| logged.connection.to_string()).unwrap_or_default();
        let (mut at, mut announced) = (0, None);
        loop {
            let rest = piece.bytes.get(at..).unwrap_or_default();
            let mut frame = match announced.take() {
                Some(len) => environment(rest, len),
                None if is_stream(rest) => Frame::new(FrameKind::Stream, rest),
                None if rest.starts_with(ADVERTISE) => advertise(rest),
                None => self.message(rest, &connection),
            };
            if frame.kind == FrameKind::Ok && frame.command == Some(GetProcessEnvironment::CODE) {
                let payload = frame.bytes.get(Message::HEADER_LEN..).unwrap_or_default();
                let answer: Option<ProcessEnvironment> = ipc_proto::wire::decode(payload).ok();
                announced = answer.and_then(|answer| usize::try_from(answer.incoming_bytes).ok());
            }
            frame.at = at;
            frame.logged.clone_from(&piece.logged);
            at = at.saturating_add(frame.bytes.len());
            self.frames.push(frame);
            if at >= piece.bytes.len() {
                return;
            }
        }
    }

    /// The message that the bytes begin with, or all of them if it is none.
    fn message(&mut self, bytes: &[u8], connection: &str) -> Frame {
        let bytes = match Message::parse(bytes) {
            Ok(Parsed::Complete { used, .. }) => bytes.get(..used).unwrap_or_default(),
            Ok(Parsed::Partial { .. }) | Err(_) => bytes,
        };
        let answer_to = self.answer_to.or_else(|| self.asked.get(connection).copied());
        let mut frame = Frame::new(FrameKind::Request, bytes);
        let found = legacy::recognise(bytes);
        frame.inspect(|bytes, see| match &found {
            None => Message::inspect(bytes, answer_to, see),
            Some(found) => inspect_legacy(found, bytes, see),
        });
        frame.legacy = found.map(|found| match found {
            Legacy::Old(_) => "before_draft",
            _ => "draft",
        });
        (frame.kind, frame.command) = match frame.code() {
            Some(Code::OK) => (FrameKind::Ok, answer_to),
            Some(Code::ERROR) => (FrameKind::Error, answer_to),
            None if frame.legacy.is_none() => (FrameKind::NoMessage, None),
            code => (FrameKind::Request, code),
        };
        if let (FrameKind::Request, Some(code)) = (frame.kind, frame.command) {
            self.asked.insert(connection.to_owned(), code);
        }
        frame
    }
}

/// Shows what released runtimes never spoke.
fn inspect_legacy(found: &Legacy<'_>, bytes: &[u8], see: &mut See<'_>) -> Result<(), DecodeError> {
    if let Legacy::Old(_) = found {
        return legacy::OldRequest::inspect(&mut Reader::new(bytes), &Path::Root, see);
    }
    // The header is today's; what is wrong with the payload, as a payload of today, is not.
    let _ = Message::inspect(bytes, None, &mut |part| {
        if part.offset < Message::HEADER_LEN {
            see(part);
        }
    });
    let payload = bytes.get(Message::HEADER_LEN..).unwrap_or_default();
    let mut r = Reader::at(payload, Message::HEADER_LEN);
    match found {
        Legacy::CollectTracing(_) => legacy::CollectTracing::inspect(&mut r, &Path::Root, see),
        _ => legacy::ErrorCode::inspect(&mut r, &Path::Field(&Path::Root, "error_code"), see),
    }
}

/// Whether a trace begins here.
fn is_stream(bytes: &[u8]) -> bool {
    bytes.starts_with(b"Nettrace") || bytes.starts_with(b"\x14\0\0\0!FastSerialization")
}

/// What a runtime says first on a connection that it made. With another magic nobody knows how long it is, so it is all
/// of the bytes.
fn advertise(bytes: &[u8]) -> Frame {
    let whole = bytes.get(..Advertise::LEN).filter(|_| Advertise::parse(bytes).is_ok());
    let mut frame = Frame::new(FrameKind::Advertise, whole.unwrap_or(bytes));
    frame.inspect(|bytes, see| {
        // Its fields have fixed lengths: it can only be cut off, or have another magic.
        Advertise::inspect(&mut Reader::new(bytes), &Path::Root, see).map_err(|e| match e.kind {
            DecodeErrorKind::UnexpectedEnd => DecodeError { offset: bytes.len(), ..e },
            _ => e,
        })
    });
    frame
}

/// The environment, of so many bytes.
fn environment(bytes: &[u8], len: usize) -> Frame {
    let mut frame = Frame::new(FrameKind::Environment, bytes.get(..len).unwrap_or(bytes));
    frame.command = Some(GetProcessEnvironment::CODE);
    frame.inspect(|bytes, see| {
        let mut r = Reader::new(bytes);
        let inspected = Environment::inspect(&mut r, &Path::Field(&Path::Root, "environment"), see);
        if bytes.len() < len {
            return Err(DecodeError { kind: DecodeErrorKind::UnexpectedEnd, offset: bytes.len() });
        }
        inspected?;
        if r.rest().is_empty() { Ok(()) } else { Err(r.error(DecodeErrorKind::TrailingBytes)) }
    });
    frame
}

impl Frame {
    fn new(kind: FrameKind, bytes: &[u8]) -> Self {
        let bytes = bytes.to_vec();
        Self {
            kind,
            command: None,
            at: 0,
            logged: None,
            bytes,
            fields: Vec::new(),
            error: None,
            legacy: None,
        }
    }

    fn inspect(&mut self, inspect: impl FnOnce(&[u8], &mut See<'_>) -> Result<(), DecodeError>) {
        let fields = &mut self.fields;
        self.error = inspect(&self.bytes, &mut |part| fields.push(Field::new(part))).err();
    }

    /// The number that a field of the header has.
    fn header(&self, name: &str) -> Option<u64> {
        self.fields.iter().take(5).find(|field| field.name == name)?.value.as_u64()
    }

    /// What the header says that it is.
    fn code(&self) -> Option<Code> {
        let byte = |name| self.header(name).and_then(|byte| u8::try_from(byte).ok());
        Some(Code(u16::from_be_bytes([byte("command_set")?, byte("command_id")?])))
    }

    /// Where the fields end.
    fn shown(&self) -> usize {
        self.fields.last().map_or(0, |field| field.offset.saturating_add(field.len))
    }

    fn to_json(&self) -> Json {
        let fields = self.fields.iter().filter(|field| field.name != "rest");
        let rest = self.fields.iter().find(|field| field.name == "rest");
        let kind = match self.kind {
            FrameKind::NoMessage => None,
            FrameKind::Request => Some("request"),
            FrameKind::Ok => Some("ok"),
            FrameKind::Error => Some("error"),
            FrameKind::Advertise => Some("advertise"),
            FrameKind::Environment => Some("environment"),
            FrameKind::Stream => Some("stream"),
        };
        let size =
            if self.code().is_some() { self.header("size") } else { u64::try_from(self.bytes.len()).ok() };
        let mut json = json!({
            "kind": kind,
            "command": self.command.map(name_of),
            "code": self.code().map(|code| code.to_string()),
            "size": size,
            "fields": fields.map(Field::to_json).collect::<Vec<_>>(),
            "rest": rest.map(|rest| &rest.value),
            "legacy": self.legacy,
            "error": self.error.map(|e| json!({ "offset": e.offset, "error": e.kind.to_string() })),
        });
        if let (Some(logged), Some(json)) = (&self.logged, json.as_object_mut()) {
            json.insert("direction".to_owned(), logged.direction.clone());
            json.insert("connection".to_owned(), logged.connection.clone());
        }
        json
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut what = match (self.kind, self.command) {
            (FrameKind::Request, Some(code)) => format!("{}, request", named(code)),
            (FrameKind::Request, None) => "request".to_owned(),
            (FrameKind::NoMessage, _) => "no message".to_owned(),
            (FrameKind::Ok, None) => "OK answer; --answer-to COMMAND says what is in it".to_owned(),
            (FrameKind::Error, None) => "Error answer".to_owned(),
            (FrameKind::Ok, Some(code)) => format!("OK answer to {}", named(code)),
            (FrameKind::Error, Some(code)) => format!("Error answer to {}", named(code)),
            (FrameKind::Advertise, _) => "advertise frame".to_owned(),
            (FrameKind::Environment, _) => "environment, behind the answer".to_owned(),
            (FrameKind::Stream, _) => "trace, up to the end of the connection, not shown".to_owned(),
        };
        match self.legacy {
            Some("before_draft") => what.push_str(" from before the draft of 2019"),
            Some(_) => what.push_str(" of the draft of 2019"),
            None => {}
        }
        let place = match (&self.logged, self.at) {
            (Some(Logged { connection, direction }), _) => {
                format!(", {} on connection {connection}", direction.as_str().unwrap_or("seen"))
            }
            (None, 0) => String::new(),
            (None, at) => format!(", at byte {at}"),
        };
        writeln!(out, "{what} ({} bytes{place})", self.bytes.len())?;
        for field in &self.fields {
            let bytes = self.bytes.get(field.offset..).and_then(|bytes| bytes.get(..field.len));
            let mut text = format!("{}: {}", field.name, field.text);
            for (offset, row) in rows(field.offset, bytes.unwrap_or_default()) {
                write_row(out, offset, row, &text)?;
                text.clear();
            }
        }
        self.error.map_or(Ok(()), |error| self.point_at(error, out))
    }

    /// Shows the bytes from the last good part to the error, and a caret below the byte where it is.
    fn point_at(&self, error: DecodeError, out: &mut dyn Write) -> io::Result<()> {
        let from = self.shown();
        let column = error.offset.saturating_sub(from) % ROW;
        let bad_row = error.offset.saturating_sub(column);
        let caret = |out: &mut dyn Write| {
            let before = column.saturating_mul(3).saturating_add(8);
            writeln!(out, "{:before$}^ {}", "", error)
        };
        let (mut skipping, mut pointed) = (false, false);
        for (offset, row) in rows(from, self.bytes.get(from..).unwrap_or_default()) {
            if offset > bad_row {
                let left = self.bytes.len().saturating_sub(offset);
                return writeln!(out, "{:8}… {left} bytes more", "");
            }
            // Of many the first and the last.
            if offset == from || offset.saturating_add(ROW) >= bad_row {
                write_row(out, offset, row, "")?;
            } else if !skipping {
                skipping = true;
                writeln!(out, "{:8}…", "")?;
            }
            if offset == bad_row {
                caret(out)?;
                pointed = true;
            }
        }
        if pointed {
            return Ok(());
        }
        // Behind a line that is full.
        write_row(out, bad_row, &[], "")?;
        caret(out)
    }
}

/// A command, by name and code.
fn named(code: Code) -> String {
    CommandInfo::find(code)
        .map_or_else(|| format!("unknown command {code}"), |row| format!("{} {code}", row.name))
}

/// Bytes shown in a line.
const ROW: usize = 16;

/// The bytes from `offset` on, a line each; an empty one if there are none.
fn rows(offset: usize, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let empty = bytes.is_empty().then_some(&[][..]);
    (offset..).step_by(ROW).zip(bytes.chunks(ROW).chain(empty))
}

fn write_row(out: &mut dyn Write, offset: usize, bytes: &[u8], text: &str) -> io::Result<()> {
    let row = format!("{offset:6}  {:47}  {text}", hex::spaced(bytes));
    writeln!(out, "{}", row.trim_end())
}

impl Field {
    pub(crate) fn new(part: &Part<'_>) -> Self {
        let (value, text) = match part.value {
            Value::Number { number, name } => {
                let json = u64::try_from(number).map_or_else(|_| json!(number.to_string()), |n| json!(n));
                let text = match name {
                    Some(name) => format!("{number} {name}"),
                    // Keywords and ids of sessions are read by their digits.
                    None if part.bytes.len() == 8 && number > 0xffff => format!("{number} ({number:#x})"),
                    None => number.to_string(),
                };
                (json, text)
            }
            Value::Bool(value) => (json!(value), value.to_string()),
            Value::Text(text) => (json!(text.non_null().map(|text| text.to_string())), format!("{text:?}")),
            Value::Guid(guid) => (json!(guid.to_string()), guid.to_string()),
            Value::HResult(hresult) => (json!(hresult.to_string()), format!("{hresult:?}")),
            Value::Bytes(bytes) => (json!(hex::hex(bytes)), described(bytes)),
            other => (Json::Null, format!("{other:?}")),
        };
        Self { name: part.path.to_string(), offset: part.offset, len: part.bytes.len(), value, text }
    }

    fn to_json(&self) -> Json {
        json!({ "name": self.name, "offset": self.offset, "length": self.len, "value": self.value })
    }
}

/// Bytes whose digits are shown already.
fn described(bytes: &[u8]) -> String {
    let letters = bytes.strip_suffix(b"\0").filter(|letters| !letters.is_empty());
    match letters {
        Some(letters) if letters.iter().all(u8::is_ascii_graphic) => {
            format!("\"{}\\0\"", letters.escape_ascii())
        }
        _ => format!("{} bytes", bytes.len()),
    }
}
