//! `EventOutput`: writes the lines of events to standard output.
use core::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;

use nettrace::Value;

use crate::events::json;
use crate::events::lines::{Lines, ShownEvent};
use crate::output::bulk_stdout::BulkStdout;
use crate::run::{Failure, Globals};
use crate::text::date::Zone;
use crate::text::printable::{is_rounded, write_json_string};

/// A reader that flushes the output before each read, so that all events are visible while the read waits.
pub(super) struct FlushingReader<R> {
    pub(super) reader: R,
    pub(super) output: Rc<RefCell<EventOutput>>,
}

impl<R: Read> Read for FlushingReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.output.borrow_mut().flush();
        self.reader.read(buf)
    }
}

/// Collects the lines of events, and writes them to standard output.
pub(super) struct EventOutput {
    json: bool,
    pub(super) lines: Lines,
    stdout: BulkStdout,
}

impl EventOutput {
    pub(super) fn new(stdout: BulkStdout, zone: Option<Zone>, globals: &Globals) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self { json: globals.json, lines: Lines::new(globals.json, zone), stdout }))
    }

    pub(super) fn add(&mut self, shown: ShownEvent<'_, '_>) {
        self.lines.add(shown);
        self.flush_full();
    }

    /// Adds a line of fields.
    pub(super) fn add_columns(&mut self, values: &[Option<Value<'_>>], names: &[String]) {
        write_columns(values, names, self.json, &mut self.lines.buffer.bytes);
        self.lines.buffer.bytes.push(b'\n');
        self.flush_full();
    }

    fn flush_full(&mut self) {
        if self.lines.buffer.bytes.len() >= self.stdout.batch() {
            self.flush();
        }
    }

    pub(super) fn flush(&mut self) {
        self.stdout.write(&mut self.lines.buffer.bytes);
    }

    /// Returns whether writing has failed.
    pub(super) const fn is_closed(&self) -> bool {
        self.stdout.is_closed()
    }

    /// Writes the remaining lines.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.flush();
        self.stdout.finish()
    }
}

/// Writes the fields of an event as one line, without the line break.
fn write_columns(values: &[Option<Value<'_>>], names: &[String], is_json: bool, out: &mut Vec<u8>) {
    let mut separator: &[u8] = b"";
    for (place, (name, value)) in names.iter().zip(values).enumerate() {
        let is_rounded_id = matches!((&**name, value), ("thread_id" | "process_id", Some(Value::UInt(id))) if is_rounded(*id));
        let mut value = value.map(json::short_value);
        if is_json {
            // A JSON object has each key once, so a repeated column is left out.
            if names.iter().take(place).any(|before| before == name) {
                continue;
            }
            out.extend_from_slice(if separator.is_empty() { b"{" } else { separator });
            separator = b",";
            // Writing to a vector cannot fail.
            let _ = write_json_string(out, name.chars());
            out.push(b':');
            if is_rounded_id {
                value = value.map(|id| format!("\"{id}\""));
            }
            out.extend_from_slice(value.as_deref().unwrap_or("null").as_bytes());
        } else {
            out.extend_from_slice(separator);
            separator = b"\t";
            let shown = value.map_or_else(|| "-".to_owned(), |value| json::shown(&value));
            out.extend_from_slice(shown.as_bytes());
        }
    }
    if is_json {
        out.push(b'}');
    }
}
