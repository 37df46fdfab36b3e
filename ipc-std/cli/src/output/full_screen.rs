//! The terminal while a command shows one screen that changes.
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::panic;
use std::sync::Once;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyEvent};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{execute, queue};
use unicode_width::UnicodeWidthStr;

use super::failure::Failure;
use super::threads::spawn;

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Bold,
    Dim,
    Reverse,
}

/// A line of the screen, which is no wider than the terminal.
pub(crate) type Line = (Style, String);

/// Whether the terminal must be restored.
static IS_CHANGED: AtomicBool = AtomicBool::new(false);

/// A terminal with another screen and without line input. Drop restores it.
#[derive(Debug)]
pub(crate) struct FullScreen;

/// Returns whether the tool has a terminal to draw on, with keys.
pub(crate) fn is_available() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb
}

impl FullScreen {
    pub(crate) fn enter() -> Result<Self, Failure> {
        restore_on_panic();
        IS_CHANGED.store(true, Ordering::SeqCst);
        let screen = Self;
        let enter = || {
            enable_raw_mode()?;
            execute!(io::stdout(), EnterAlternateScreen, Hide, DisableLineWrap)
        };
        enter().map_err(|e| Failure::io("cannot use the terminal", &e))?;
        Ok(screen)
    }

    /// Passes each key, and `None` for each new size, to `take` on another thread, until that returns false or the
    /// terminal ends.
    pub(crate) fn send_keys(
        &self,
        mut take: impl FnMut(Option<KeyEvent>) -> bool + Send + 'static,
    ) -> Result<(), Failure> {
        let read = move || {
            loop {
                let key = match event::read() {
                    Ok(Event::Key(key)) => Some(key),
                    Ok(Event::Resize(..)) => None,
                    Ok(_) => continue,
                    Err(_) => return,
                };
                if !take(key) {
                    return;
                }
            }
        };
        spawn("keys", read).map(drop)
    }

    /// Returns the next key that was pressed, without waiting for one.
    pub(crate) fn next_key(&self) -> io::Result<Option<KeyEvent>> {
        while event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()? {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// Returns the columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        let (width, height) = size().unwrap_or((80, 24));
        (width.into(), height.into())
    }

    /// Replaces what the terminal shows.
    pub(crate) fn draw(&self, lines: &[Line]) -> io::Result<()> {
        let (width, height) = self.size();
        let mut out = BufWriter::new(io::stdout().lock());
        queue!(out, BeginSynchronizedUpdate)?;
        for (row, (style, text)) in (0_u16..).zip(lines) {
            let attribute = match style {
                Style::Plain => Attribute::Reset,
                Style::Bold => Attribute::Bold,
                Style::Dim => Attribute::Dim,
                Style::Reverse => Attribute::Reverse,
            };
            queue!(out, MoveTo(0, row), SetAttribute(attribute), Print(text))?;
            queue!(out, SetAttribute(Attribute::Reset))?;
            // A text of the full width leaves the cursor on the last column, which `Clear` would erase.
            if text.width() < width {
                queue!(out, Clear(ClearType::UntilNewLine))?;
            }
        }
        if let Some(rest) = u16::try_from(lines.len()).ok().filter(|rest| usize::from(*rest) < height) {
            queue!(out, MoveTo(0, rest), Clear(ClearType::FromCursorDown))?;
        }
        queue!(out, EndSynchronizedUpdate)?;
        out.flush()
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal before the message of a panic, which would otherwise disappear with the other screen.
fn restore_on_panic() {
    static IS_SET: Once = Once::new();
    IS_SET.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            report(info);
        }));
    });
}

/// Restores the terminal if it is changed.
pub(crate) fn restore() {
    if IS_CHANGED.swap(false, Ordering::SeqCst) {
        // An error means that the terminal is gone, so there is nothing to restore.
        let _ = execute!(io::stdout(), EnableLineWrap, Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_is_restored_before_the_message_of_a_panic() {
        static WAS_RESTORED: AtomicBool = AtomicBool::new(false);
        // The earlier hook writes the message of a panic. This test's hook looks at the terminal at that moment.
        let is_restored = || !IS_CHANGED.load(Ordering::SeqCst);
        panic::set_hook(Box::new(move |_| WAS_RESTORED.store(is_restored(), Ordering::SeqCst)));
        restore_on_panic();
        IS_CHANGED.store(true, Ordering::SeqCst);
        let panicked = panic::catch_unwind(|| panic!("a panic"));
        let _ = panic::take_hook();
        assert!(panicked.is_err() && WAS_RESTORED.load(Ordering::SeqCst));
    }
}
