//! Tables for people.
use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};

/// Returns a table whose columns are texts.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    table
}

/// Returns a table whose columns are numbers, but for those of these places.
pub(crate) fn table_of_numbers(header: &[&str], texts: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for (place, column) in table.column_iter_mut().enumerate() {
        if !texts.contains(&place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Writes an empty line, and the table.
pub(crate) fn write_table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    table.lines().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}
