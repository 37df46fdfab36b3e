//! A table on a full screen: lines above it, a heading, the rows that fit, and a footer. Its keys end, scroll and pause it.
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use unicode_width::UnicodeWidthStr;

use super::full_screen::{Line, Style};
use crate::text::columns::{aligned_right, cut_end, cut_middle, padded};

/// Which rows of a table are on the screen, and whether they change.
#[derive(Debug, Default)]
pub(crate) struct ScreenTable {
    /// The rows above the first one on the screen.
    pub(crate) skip: usize,
    /// Whether the table ignores new numbers.
    pub(crate) is_paused: bool,
}

/// The lines of a table around its rows.
#[derive(Debug)]
pub(crate) struct TableFrame {
    /// The lines above the heading.
    pub(crate) head: Vec<Line>,
    pub(crate) heading: String,
    pub(crate) footer: Footer,
}

/// The place of the last line. A table without that line has room for one more row.
#[derive(Debug)]
pub(crate) enum Footer {
    None,
    AfterRows(String),
    AtBottom(String),
}

/// The columns of a line, with this many spaces between two of them.
#[derive(Debug)]
pub(crate) struct Columns<'a> {
    pub(crate) gap: usize,
    pub(crate) columns: &'a [Column],
}

/// A column with its minimum width: a longer text pushes the columns after it to the right.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    Left(usize),
    Right(usize),
    /// Takes the width that the other columns leave. A longer text loses its middle.
    Rest(usize),
}

impl Columns<'_> {
    /// Returns a row of at most this width.
    pub(crate) fn row(&self, cells: &[&str], width: usize) -> String {
        self.line(cells, width, cut_middle)
    }

    /// Returns the headings of the columns. A heading is cut at its end, and not in its middle.
    pub(crate) fn heading(&self, cells: &[&str], width: usize) -> String {
        self.line(cells, width, |text, _| text.to_owned())
    }

    fn line(&self, cells: &[&str], width: usize, cut: fn(&str, usize) -> String) -> String {
        let mut line = String::new();
        let mut columns = self.columns.iter();
        for cell in cells {
            let Some(column) = columns.next() else { break };
            let (text, least) = match *column {
                Column::Left(least) => ((*cell).to_owned(), least),
                Column::Right(least) => (aligned_right(cell, least), least),
                Column::Rest(least) => {
                    let after = columns.clone().fold(0_usize, |sum, column| {
                        let (Column::Left(least) | Column::Right(least) | Column::Rest(least)) = column;
                        sum.saturating_add(self.gap).saturating_add(*least)
                    });
                    let rest = width.saturating_sub(line.width()).saturating_sub(after).max(least);
                    (cut(cell, rest), rest)
                }
            };
            // Nothing needs spaces after the last column.
            if columns.len() == 0 {
                line.push_str(&text);
            } else {
                line.push_str(&padded(&text, least));
                line.push_str(&" ".repeat(self.gap));
            }
        }
        cut_end(&line, width)
    }
}

/// What a key requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Quit,
    Redraw,
    Nothing,
}

impl ScreenTable {
    /// Applies a key. Passes a key that only some tables have to `other`, which returns whether the key has a meaning.
    pub(crate) fn key(&mut self, key: KeyEvent, other: impl FnOnce(&mut Self, KeyCode) -> bool) -> Request {
        const PAGE: usize = 10;
        if key.kind == KeyEventKind::Release {
            return Request::Nothing;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c' | 'd') => Request::Quit,
                KeyCode::Char('l') => Request::Redraw,
                _ => Request::Nothing,
            };
        }
        if other(self, key.code) {
            return Request::Redraw;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Request::Quit,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Up => self.skip = self.skip.saturating_sub(1),
            KeyCode::Down => self.skip = self.skip.saturating_add(1),
            KeyCode::PageUp => self.skip = self.skip.saturating_sub(PAGE),
            KeyCode::PageDown => self.skip = self.skip.saturating_add(PAGE),
            KeyCode::Home => self.skip = 0,
            _ => return Request::Nothing,
        }
        Request::Redraw
    }

    /// Returns the lines for a terminal of this size: at most `height`, none wider than `width`. `rows` gets the number
    /// of rows to skip, and the maximum number of rows to return, of the `len` rows of the table.
    pub(crate) fn lines(
        &mut self,
        (width, height): (usize, usize),
        frame: TableFrame,
        len: usize,
        rows: impl FnOnce(usize, usize) -> Vec<String>,
    ) -> Vec<Line> {
        let TableFrame { head: mut lines, heading, footer } = frame;
        lines.push((Style::Reverse, heading));
        let has_footer = !matches!(footer, Footer::None);
        let room = height.saturating_sub(lines.len()).saturating_sub(usize::from(has_footer));
        // Scrolling ends when the last rows fill the room.
        self.skip = self.skip.min(len.saturating_sub(room.max(1)));
        lines.extend(rows(self.skip, room).into_iter().map(|row| (Style::Plain, row)));
        match footer {
            Footer::None => {}
            Footer::AfterRows(text) => lines.push((Style::Dim, text)),
            Footer::AtBottom(text) => {
                lines.resize(height.saturating_sub(1), (Style::Plain, String::new()));
                lines.push((Style::Dim, text));
            }
        }
        lines.truncate(height);
        for (_, line) in &mut lines {
            *line = cut_end(line, width);
        }
        lines
    }
}
