//! `Frame`: one unit that `decode` shows, such as a message; and `FieldError`, why a frame is malformed.
use core::fmt;
use std::io::{self, Write};

use dotnet_ipc_sans_io::syntax::decode_input::{ADVERTISE, Logged};
use dotnet_ipc_sans_io::syntax::hex;
use ipc_proto::legacy::{self, Legacy};
use ipc_proto::types::EnvironmentEntries;
use ipc_proto::wire::{Part, PartValue, Path, Reader, Visitor, WireError, WireErrorKind};
use ipc_proto::{
    Advertise, Code, Command, CommandInfo, Decode, DecodeError, DecodeErrorKind, GetProcessEnvironment,
    InvalidValue, Message, Parsed,
};
use serde::Serialize;
use serde_json::Value;

use crate::output::field::Field;
use crate::run::failure::name_of;
use crate::text::printable::{json_line, write_json_string};

/// A message, an advertise frame, an environment or a trace.
///
/// Its fields are not stored, because there can be millions: they are decoded once for the summary, and again to be
/// written.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) kind: FrameKind,
    /// The command of the request, or of the request before the response.
    pub(super) command: Option<Code>,
    /// The offset of the frame in the input.
    pub(super) at: usize,
    pub(super) logged: Option<&'a Logged>,
    pub(super) bytes: &'a [u8],
    form: Form<'a>,
    summary: FrameSummary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// Unknown bytes.
    NoMessage,
    Request,
    Ok,
    Error,
    Advertise,
    Environment,
    Stream,
}

/// How the bytes of a frame are decoded.
#[derive(Debug)]
enum Form<'a> {
    /// A message. `answer_to` is the command of a response, if it is known.
    Message { answer_to: Option<Code> },
    /// A message of a protocol older than the first release.
    Legacy(Legacy<'a>),
    /// An advertise frame.
    Advertise,
    /// An environment of this many bytes.
    Environment { len: usize },
    /// A trace, which has no fields here.
    Stream,
}

/// Facts about all fields, which must be known before the first field is written.
#[derive(Debug, Default)]
struct FrameSummary {
    /// The numbers in the header.
    command_set: Option<u64>,
    command_id: Option<u64>,
    size: Option<u64>,
    /// The end of the last field.
    end: usize,
    error: Option<FieldError>,
    /// The value of the request that runtimes refuse, if there is one.
    invalid: Option<InvalidValue>,
}

/// An error and the path of its field; empty if it is in no field.
#[derive(Debug, Clone)]
pub(super) struct FieldError {
    error: DecodeError,
    field: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { error, field } = self;
        if field.is_empty() { error.fmt(f) } else { write!(f, "{field}: {error}") }
    }
}

impl<'a> Frame<'a> {
    /// Returns the frame at the beginning of the bytes.
    pub(super) fn new(bytes: &'a [u8], answer_to: Option<Code>) -> Self {
        if is_stream(bytes) {
            Self::summarised(FrameKind::Stream, bytes, Form::Stream)
        } else if bytes.starts_with(ADVERTISE) {
            // With an unknown magic the length of the frame is unknown, so the frame gets all bytes.
            let whole = bytes.get(..Advertise::LEN).filter(|_| Advertise::parse(bytes).is_ok());
            Self::summarised(FrameKind::Advertise, whole.unwrap_or(bytes), Form::Advertise)
        } else {
            Self::message(bytes, answer_to)
        }
    }

    /// Returns the environment, which has `len` bytes.
    pub(super) fn environment(bytes: &'a [u8], len: usize) -> Self {
        let bytes = bytes.get(..len).unwrap_or(bytes);
        let frame = Self::summarised(FrameKind::Environment, bytes, Form::Environment { len });
        Self { command: Some(GetProcessEnvironment::CODE), ..frame }
    }

    /// Returns the message at the beginning of the bytes, or all bytes if there is none.
    fn message(bytes: &'a [u8], answer_to: Option<Code>) -> Self {
        let bytes = match Message::parse(bytes) {
            Ok(Parsed::Complete { used, .. }) => bytes.get(..used).unwrap_or_default(),
            Ok(Parsed::Partial { .. }) | Err(_) => bytes,
        };
        let form = match legacy::recognise(bytes) {
            None => Form::Message { answer_to },
            Some(found) => Form::Legacy(found),
        };
        let mut frame = Self::summarised(FrameKind::Request, bytes, form);
        (frame.kind, frame.command) = match frame.code() {
            Some(Code::OK) => (FrameKind::Ok, answer_to),
            Some(Code::ERROR) => (FrameKind::Error, answer_to),
            None if frame.legacy().is_none() => (FrameKind::NoMessage, None),
            code => (FrameKind::Request, code),
        };
        frame
    }

    fn summarised(kind: FrameKind, bytes: &'a [u8], form: Form<'a>) -> Self {
        let mut frame =
            Self { kind, command: None, at: 0, logged: None, bytes, form, summary: FrameSummary::default() };
        let (mut summary, mut failed) = (FrameSummary::default(), String::new());
        let result = frame.visit(&mut Summarise { summary: &mut summary, failed: &mut failed });
        match (result, &frame.form) {
            (Ok(()), Form::Message { .. }) => summary.invalid = invalid_value(bytes),
            (Ok(()), _) => {}
            (Err(error), Form::Message { answer_to }) => {
                let field = Message::field_at(bytes, *answer_to, error.offset);
                let field = field.map(|field| field.to_string()).unwrap_or_default();
                summary.error = Some(FieldError { error, field });
            }
            (Err(error), _) => summary.error = Some(FieldError { error, field: failed }),
        }
        frame.summary = summary;
        frame
    }

    /// Decodes the fields.
    fn visit(&self, see: &mut dyn Visitor) -> Result<(), DecodeError> {
        let bytes = self.bytes;
        match &self.form {
            Form::Message { answer_to } => Message::inspect(bytes, *answer_to, &mut |part| see.visit(part)),
            Form::Legacy(found) => Ok(visit_legacy(found, bytes, see)?),
            Form::Advertise => {
                // The fields of an advertise frame have fixed lengths: it can only be truncated, or have another magic.
                Advertise::inspect(&mut Reader::new(bytes), &Path::Root, see).map_err(|e| match e.kind {
                    WireErrorKind::UnexpectedEnd => {
                        DecodeError { kind: DecodeErrorKind::UnexpectedEnd, offset: bytes.len() }
                    }
                    _ => DecodeError { kind: DecodeErrorKind::BadAdvertise, offset: e.offset },
                })
            }
            Form::Environment { len } => {
                let mut r = Reader::new(bytes);
                let path = Path::Field(&Path::Root, "environment");
                let inspected = EnvironmentEntries::inspect(&mut r, &path, see);
                if bytes.len() < *len {
                    return Err(DecodeError { kind: DecodeErrorKind::UnexpectedEnd, offset: bytes.len() });
                }
                inspected?;
                if r.rest().is_empty() { Ok(()) } else { Err(r.error(WireErrorKind::TrailingBytes).into()) }
            }
            Form::Stream => Ok(()),
        }
    }

    /// Decodes the fields, and writes them with `write` until it fails.
    fn write_fields(&self, mut write: impl FnMut(&Part<'_>) -> io::Result<()>) -> io::Result<()> {
        let mut written = Ok(());
        // The error is ignored, because the summary already has it.
        let _ = self.visit(&mut |part: &Part<'_>| {
            if written.is_ok() {
                written = write(part);
            }
        });
        written
    }

    pub(super) const fn error(&self) -> Option<&FieldError> {
        self.summary.error.as_ref()
    }

    /// Returns the code in the header.
    fn code(&self) -> Option<Code> {
        let byte = |number: Option<u64>| number.and_then(|byte| u8::try_from(byte).ok());
        let FrameSummary { command_set, command_id, .. } = self.summary;
        Some(Code(u16::from_be_bytes([byte(command_set)?, byte(command_id)?])))
    }

    /// Returns the name of the older protocol that the frame belongs to.
    const fn legacy(&self) -> Option<&'static str> {
        match &self.form {
            Form::Legacy(Legacy::Old(_)) => Some("before_draft"),
            Form::Legacy(_) => Some("draft"),
            _ => None,
        }
    }

    /// Writes the frame as one line of JSON.
    pub(super) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let kind = match self.kind {
            FrameKind::NoMessage => None,
            FrameKind::Request => Some("request"),
            FrameKind::Ok => Some("ok"),
            FrameKind::Error => Some("error"),
            FrameKind::Advertise => Some("advertise"),
            FrameKind::Environment => Some("environment"),
            FrameKind::Stream => Some("stream"),
        };
        let size = self.code().map_or_else(|| u64::try_from(self.bytes.len()).ok(), |_| self.summary.size);
        let head = FrameHead {
            kind,
            command: self.command.map(name_of),
            code: self.code().map(|code| code.to_string()),
            size,
        };
        let tail = FrameTail {
            legacy: self.legacy(),
            error: self.error().map(|FieldError { error, field }| ErrorRow {
                offset: error.offset,
                field: Some(field.as_str()).filter(|field| !field.is_empty()),
                error: error.kind.to_string(),
            }),
            violation: self.summary.invalid.map(|InvalidValue { violation, place }| ViolationRow {
                field: place.to_string(),
                error: violation.to_string(),
                hresult: violation.hresult().to_string(),
            }),
            direction: self.logged.map(|logged| &logged.direction),
            connection: self.logged.map(|logged| &logged.connection),
        };
        // The two objects become one, with the array of fields in the middle.
        let (head, tail) = (json_line(&head), json_line(&tail));
        write!(out, "{},\"fields\":[", head.trim_end_matches('}'))?;
        let mut separator = "";
        self.write_fields(|part| {
            if is_rest(part) {
                return Ok(());
            }
            out.write_all(separator.as_bytes())?;
            separator = ",";
            Field(part).write_json(out)
        })?;
        write!(out, "],\"rest\":")?;
        let mut has_rest = false;
        self.write_fields(|part| match part.value {
            PartValue::Bytes(rest) if is_rest(part) => {
                has_rest = true;
                write_json_string(out, hex::digits(rest))
            }
            _ => Ok(()),
        })?;
        let null = if has_rest { "" } else { "null" };
        writeln!(out, "{null},{}", tail.trim_start_matches('{'))
    }

    /// Writes the frame for people.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut what = match (self.kind, self.command) {
            (FrameKind::Request, Some(code)) => format!("{}, request", named(code)),
            (FrameKind::Request, None) => "request".to_owned(),
            (FrameKind::NoMessage, _) => "no message".to_owned(),
            (FrameKind::Ok, None) => "OK response; --answer-to COMMAND shows its fields".to_owned(),
            (FrameKind::Error, None) => "error response".to_owned(),
            (FrameKind::Ok, Some(code)) => format!("OK response to {}", named(code)),
            (FrameKind::Error, Some(code)) => format!("error response to {}", named(code)),
            (FrameKind::Advertise, _) => "advertise frame".to_owned(),
            (FrameKind::Environment, _) => "environment, after the response".to_owned(),
            (FrameKind::Stream, _) => "trace, up to the end of the connection (not shown)".to_owned(),
        };
        match self.legacy() {
            Some("before_draft") => what.push_str(" older than the draft of 2019"),
            Some(_) => what.push_str(" of the draft of 2019"),
            None => {}
        }
        let place = match (self.logged, self.at) {
            (Some(Logged { connection, direction }), _) => {
                format!(", {} on connection {connection}", direction.as_str().unwrap_or("seen"))
            }
            (None, 0) => String::new(),
            (None, at) => format!(", at byte {at}"),
        };
        writeln!(out, "{what} ({} bytes{place})", self.bytes.len())?;
        self.write_fields(|part| {
            let mut rows = rows(part.offset, part.bytes);
            if let Some((offset, row)) = rows.next() {
                writeln!(out, "{offset:6}  {:47}  {}", hex::spaced(row), Field(part))?;
            }
            rows.try_for_each(|(offset, row)| write_row(out, offset, row))
        })?;
        if let Some(invalid) = self.summary.invalid {
            writeln!(out, "{:8}runtimes refuse {invalid}", "")?;
        }
        self.error().map_or(Ok(()), |error| self.point_at(error, out))
    }

    /// Shows the bytes from the last valid field to the error, and a caret below the byte with the error.
    fn point_at(&self, error: &FieldError, out: &mut dyn Write) -> io::Result<()> {
        let (from, offset) = (self.summary.end, error.error.offset);
        let column = offset.saturating_sub(from) % ROW;
        let bad_row = offset.saturating_sub(column);
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
            // Of many rows, only the first one and those next to the error are written, with `…` for the others.
            if offset == from || offset.saturating_add(ROW) >= bad_row {
                write_row(out, offset, row)?;
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
        // The error is at the end of a full row: the caret is below an empty row.
        write_row(out, bad_row, &[])?;
        caret(out)
    }
}

/// What precedes the fields of a frame in JSON.
#[derive(Serialize)]
struct FrameHead {
    kind: Option<&'static str>,
    command: Option<String>,
    code: Option<String>,
    size: Option<u64>,
}

/// What follows the fields of a frame in JSON.
#[derive(Serialize)]
struct FrameTail<'f> {
    legacy: Option<&'static str>,
    error: Option<ErrorRow<'f>>,
    violation: Option<ViolationRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<&'f Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<&'f Value>,
}

#[derive(Serialize)]
struct ErrorRow<'f> {
    offset: usize,
    field: Option<&'f str>,
    error: String,
}

#[derive(Serialize)]
struct ViolationRow {
    field: String,
    error: String,
    hresult: String,
}

/// Returns the name and the code of a command.
fn named(code: Code) -> String {
    CommandInfo::find(code)
        .map_or_else(|| format!("unknown command {code}"), |row| format!("{} {code}", row.name))
}

/// The number of bytes in a row.
const ROW: usize = 16;

/// Returns the rows of bytes with their offsets; one empty row if there are no bytes.
fn rows(offset: usize, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let empty = bytes.is_empty().then_some(&[][..]);
    (offset..).step_by(ROW).zip(bytes.chunks(ROW).chain(empty))
}

fn write_row(out: &mut dyn Write, offset: usize, bytes: &[u8]) -> io::Result<()> {
    let row = format!("{offset:6}  {}", hex::spaced(bytes));
    writeln!(out, "{}", row.trim_end())
}

/// Adds the fields to a summary, and stores the path of the field that fails.
struct Summarise<'s> {
    summary: &'s mut FrameSummary,
    failed: &'s mut String,
}

impl Visitor for Summarise<'_> {
    fn visit(&mut self, part: &Part<'_>) {
        self.summary.add(part);
    }
    fn failed(&mut self, path: &Path<'_>, _: WireError) {
        *self.failed = path.to_string();
    }
}

impl FrameSummary {
    fn add(&mut self, part: &Part<'_>) {
        self.end = part.offset.saturating_add(part.bytes.len());
        if let (PartValue::Number { number, .. }, true) = (part.value, part.offset < Message::HEADER_LEN) {
            let number = u64::try_from(number).ok();
            match &*part.path.to_string() {
                "command_set" => self.command_set = number,
                "command_id" => self.command_id = number,
                "size" => self.size = number,
                _ => {}
            }
        }
    }
}

/// Returns whether the part is the bytes after the known fields.
fn is_rest(part: &Part<'_>) -> bool {
    matches!(part.path, Path::Field(Path::Root, "rest"))
}

/// Returns whether the bytes begin with a trace.
fn is_stream(bytes: &[u8]) -> bool {
    bytes.starts_with(b"Nettrace") || bytes.starts_with(b"\x14\0\0\0!FastSerialization")
}

/// Returns the value of the request that runtimes refuse.
fn invalid_value(bytes: &[u8]) -> Option<InvalidValue> {
    let Ok(Parsed::Complete { value, .. }) = Message::parse(bytes) else { return None };
    value.request().ok()?.check().err()
}

/// Decodes a message of a protocol older than the first release.
fn visit_legacy(found: &Legacy<'_>, bytes: &[u8], see: &mut dyn Visitor) -> Result<(), WireError> {
    if let Legacy::Old(_) = found {
        return legacy::OldRequest::inspect(&mut Reader::new(bytes), &Path::Root, see);
    }
    // Only the header has the current format. The payload has an older one, so the error of its decoding is ignored.
    let _ = Message::inspect(bytes, None, &mut |part| {
        if part.offset < Message::HEADER_LEN {
            see.visit(part);
        }
    });
    let payload = bytes.get(Message::HEADER_LEN..).unwrap_or_default();
    let mut r = Reader::at(payload, Message::HEADER_LEN);
    match found {
        Legacy::CollectTracing(_) => legacy::DraftCollectTracing::inspect(&mut r, &Path::Root, see),
        _ => legacy::DraftErrorCode::inspect(&mut r, &Path::Field(&Path::Root, "error_code"), see),
    }
}
