//! Results that are rows with the same columns: as lines of JSON, or as CSV.
use core::ops::ControlFlow;
use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value};

use super::stdout::to_stdout;
use crate::run::Failure;
use crate::text::printable::json_line;

/// Returns the names and the values of a row.
pub(crate) fn fields(row: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(row) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Writes the rows that `read` passes to its argument to standard output, as lines of JSON or as CSV. The argument
/// breaks if no more rows can be written. If `is_live`, each row is written immediately. CSV without rows has only the
/// names of `empty`.
pub(crate) fn rows_to_stdout<R: Serialize>(
    is_csv: bool,
    is_live: bool,
    empty: &R,
    read: impl FnOnce(&mut dyn FnMut(&R) -> ControlFlow<()>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut result = Ok(());
    to_stdout(|out| {
        let mut rows = Rows::new(out, is_csv, is_live);
        result = read(&mut |row| rows.add(row));
        if result.is_ok() {
            rows.add_header(empty);
        }
        rows.finish()
    })?;
    result
}

/// Writes rows one by one.
struct Rows<'o> {
    output: RowWriter<'o>,
    has_header: bool,
    is_live: bool,
    /// The first error; nothing is written after it.
    written: io::Result<()>,
}

enum RowWriter<'o> {
    Json(&'o mut dyn Write),
    Csv(Box<csv::Writer<&'o mut dyn Write>>),
}

impl<'o> Rows<'o> {
    fn new(output: &'o mut dyn Write, is_csv: bool, is_live: bool) -> Self {
        let output = if is_csv {
            RowWriter::Csv(Box::new(csv::Writer::from_writer(output)))
        } else {
            RowWriter::Json(output)
        };
        Self { output, has_header: false, is_live, written: Ok(()) }
    }

    /// Writes a row. In CSV, the first row has a header before it. Breaks if no more rows can be written.
    fn add(&mut self, row: &impl Serialize) -> ControlFlow<()> {
        if self.written.is_ok() {
            self.written = self.write(row);
            if self.is_live && self.written.is_ok() {
                self.written = self.flush();
            }
        }
        if self.written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Writes the header of CSV, unless a row has written it.
    fn add_header(&mut self, empty: &impl Serialize) {
        if let (RowWriter::Csv(csv), false, Ok(())) = (&mut self.output, self.has_header, &self.written) {
            self.written = csv.write_record(fields(empty).keys()).map_err(io::Error::from);
        }
    }

    /// Returns the error of the first row that could not be written.
    fn finish(mut self) -> io::Result<()> {
        core::mem::replace(&mut self.written, Ok(()))?;
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.output {
            RowWriter::Json(out) => out.flush(),
            RowWriter::Csv(csv) => csv.flush(),
        }
    }

    fn write(&mut self, row: &impl Serialize) -> io::Result<()> {
        match &mut self.output {
            RowWriter::Json(out) => writeln!(out, "{}", json_line(row)),
            RowWriter::Csv(csv) => {
                let fields = fields(row);
                if !core::mem::replace(&mut self.has_header, true) {
                    csv.write_record(fields.keys())?;
                }
                Ok(csv.write_record(fields.into_iter().map(|(_, value)| cell(value)))?)
            }
        }
    }
}

/// Returns a value as a cell of CSV: text without quotation marks, and nothing for null.
fn cell(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => match text_cell(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(cell) => cell,
        },
        value => value.to_string(),
    }
}

/// Returns a text as a cell of CSV that a spreadsheet shows, and does not execute: a `'` precedes a text that would be a
/// formula, also after spaces and quotation marks. Numbers are unchanged, also those that are text in JSON.
pub(crate) fn text_cell(text: &str) -> Cow<'_, str> {
    /// The characters that begin a formula. The last four are those of wide keyboards.
    const FORMULA: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];
    let start = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
    let is_formula = start.starts_with(FORMULA) || text.starts_with(['\t', '\r', '\n']);
    if is_formula && text.parse::<f64>().is_err() { format!("'{text}").into() } else { text.into() }
}

/// Returns nanoseconds as milliseconds.
pub(crate) fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

/// Returns nanoseconds since the start of the trace, or before it, as milliseconds.
pub(crate) fn milliseconds_at(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e6
}

/// Returns nanoseconds as milliseconds in the cell of a table.
pub(crate) fn time_cell(nanoseconds: u64) -> String {
    format!("{:.3}", milliseconds(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_formulas() {
        for text in
            ["=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", " =1", "\"=1", "'=1", "\"'-cmd|'/C calc'!A0"]
        {
            assert_eq!(text_cell(text), format!("'{text}"));
        }
        for text in ["", "a=1", "-1", "+1.5", "-1e300", "-Infinity", "NaN", "1-2", "'a", "\"a\"", "a\t=1"] {
            assert_eq!(text_cell(text), text);
        }
        assert_eq!(cell((-1.5).into()), "-1.5");
    }
}
