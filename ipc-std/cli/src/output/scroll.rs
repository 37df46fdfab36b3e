//! The keys that all tables on a full screen have: they end the table, scroll and pause it.
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Which rows of a table are on the screen, and whether they change.
#[derive(Debug, Default)]
pub(crate) struct Scroll {
    /// The rows above the first one on the screen.
    pub(crate) skip: usize,
    /// New numbers are not shown.
    pub(crate) is_paused: bool,
}

/// What a key requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Quit,
    Redraw,
    Nothing,
}

impl Scroll {
    /// Applies a key. Passes those that only some tables have to `other`, which returns whether it has a meaning.
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

    /// Returns how many of the rows to skip, so that the last ones fill the room.
    pub(crate) fn skip(&mut self, rows: usize, room: usize) -> usize {
        self.skip = self.skip.min(rows.saturating_sub(room));
        self.skip
    }
}
