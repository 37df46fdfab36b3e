//! The width of the terminal, and lines that fit it.
use std::io::{self, IsTerminal};

/// Returns the width of the terminal, if standard output is one.
pub(crate) fn width() -> Option<usize> {
    let terminal = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    terminal.map(|(terminal_size::Width(width), _)| usize::from(width))
}

/// Cuts a line to a width, with an ellipsis at its end.
pub(crate) fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}
