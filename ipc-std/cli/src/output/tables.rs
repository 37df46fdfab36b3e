//! Tables for people.
use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};

/// Returns a table whose columns are texts.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    table
}

/// Returns a table whose columns are numbers, except for the columns in `texts`.
pub(crate) fn table_of_numbers(header: &[&str], texts: &[usize]) -> Table {
    numbers(Table::new(), header, texts)
}

fn numbers(mut table: Table, header: &[&str], texts: &[usize]) -> Table {
    table.load_preset(presets::NOTHING).set_header(header);
    for (place, column) in table.column_iter_mut().enumerate() {
        if !texts.contains(&place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The cells of a row, each with the heading of its column.
pub(crate) type Cells<const N: usize> = [(&'static str, String); N];

/// Returns a table of rows, of which there is at least one. The columns are numbers, except for those in `texts`.
pub(crate) fn table_of_rows(
    rows: impl IntoIterator<Item = impl IntoIterator<Item = (&'static str, String)>>,
    texts: &[usize],
) -> Table {
    let (mut header, mut table) = (Vec::new(), Table::new());
    for row in rows {
        let (names, cells): (_, Vec<String>) = row.into_iter().unzip();
        header = names;
        table.add_row(cells);
    }
    numbers(table, &header, texts)
}

/// Writes names and values, one pair a line, with the values in a column.
pub(crate) fn write_fields(fields: &[(&str, String)], out: &mut dyn Write) -> io::Result<()> {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or_default().saturating_add(1);
    fields.iter().try_for_each(|(name, value)| writeln!(out, "{:width$} {value}", format!("{name}:")))
}

/// Writes an empty line, and the table.
pub(crate) fn write_table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    table.lines().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}

/// Writes how many rows there are beyond those that `--top` has let through. `what` names them, after a space.
pub(crate) fn write_more(all: usize, shown: usize, what: &str, out: &mut dyn Write) -> io::Result<()> {
    match all.saturating_sub(shown) {
        0 => Ok(()),
        more => writeln!(out, "{more} more{what}; --top {all} shows all"),
    }
}
