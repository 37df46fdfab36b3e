//! Text in the columns of a terminal, in which some characters take two and some none.
use std::io::{self, IsTerminal};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns the width of the terminal, if standard output is one.
pub(crate) fn terminal_width() -> Option<usize> {
    let terminal = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    terminal.map(|(terminal_size::Width(width), _)| usize::from(width))
}

/// Cuts a text to a width, with an ellipsis at its end.
pub(crate) fn cut_end(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    format!("{}{}", start_of(text.chars(), width.saturating_sub(1)), ellipsis(width))
}

/// Cuts a name to a width, with an ellipsis instead of its middle: its end says most.
pub(crate) fn cut_middle(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let rest = width.saturating_sub(1);
    let start = start_of(text.chars(), rest / 2);
    let end = start_of(text.chars().rev(), rest.saturating_sub(start.width()));
    format!("{start}{}{}", ellipsis(width), end.chars().rev().collect::<String>())
}

/// Fills a text with spaces at its end, up to a width.
pub(crate) fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Puts spaces before a text, up to a width.
pub(crate) fn aligned_right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}

const fn ellipsis(width: usize) -> &'static str {
    if width == 0 { "" } else { "…" }
}

/// Returns the first characters that fit in a width.
fn start_of(chars: impl Iterator<Item = char>, width: usize) -> String {
    let mut used = 0_usize;
    let fits = |c: &char| {
        used = used.saturating_add(c.width().unwrap_or(0));
        used <= width
    };
    chars.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_to_columns() {
        for (text, width, expected) in [
            ("System.Runtime/cpu", 18, "System.Runtime/cpu"),
            ("System.Runtime/cpu", 9, "Syst…/cpu"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
            ("好好好好", 6, "好…好"),
            ("e\u{301}e\u{301}", 2, "e\u{301}e\u{301}"),
        ] {
            assert_eq!(cut_middle(text, width), expected, "{text} {width}");
        }
        assert_eq!(cut_end("好好好", 5), "好好…");
        assert_eq!(cut_end("abc", 0), "");
    }

    #[test]
    fn padding() {
        assert_eq!(padded("好a", 5), "好a  ");
        assert_eq!(padded("abc", 2), "abc");
        assert_eq!(aligned_right("好a", 5), "  好a");
    }
}
