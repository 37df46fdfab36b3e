//! The terminal while a command shows one screen that changes.
use core::sync::atomic::{AtomicU8, Ordering};
use core::time::Duration;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::panic;
use std::sync::{Mutex, Once};
use std::thread;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{execute, queue};
use unicode_width::UnicodeWidthStr;

use super::foreground;
use crate::output::direct_stdout::raw_stdout;
use crate::run::Failure;
use crate::run::changed_terminal;
use crate::run::stops::{handle_stops, stop_job};
use crate::run::threads::{lock, spawn};
use crate::text::printable::printable;

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

/// The state of the terminal: one of the constants below.
static STATE: AtomicU8 = AtomicU8::new(USUAL);
/// The terminal shows its usual screen.
const USUAL: u8 = 0;
/// The terminal shows the screen of the command.
const SHOWN: u8 = 1;
/// The screen returns when the tool is in the foreground again.
const SUSPENDED: u8 = 2;
/// The terminal shows the screen of the command, in modes that the shell may have set while the tool was stopped.
const OUTDATED: u8 = 3;

/// Held while the screen is drawn.
static DRAWING: Mutex<()> = Mutex::new(());

/// How often the thread that reads keys looks for the end of the terminal, and for its return to the foreground.
const TICK: Duration = Duration::from_millis(100);

/// The key that stops a job. The terminal passes it on, because the screen has no line input.
const CTRL_Z: KeyEvent = KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL);

/// A terminal with another screen and without line input. Drop restores it.
#[derive(Debug)]
pub(crate) struct FullScreen(());

/// Returns whether the tool has a terminal to draw on, with keys. A job in the background has none: the system would
/// stop it.
pub(crate) fn is_available() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdin().is_terminal()
        && io::stdout().is_terminal()
        && !is_dumb
        && foreground::is_foreground(&io::stdin())
}

impl FullScreen {
    /// Shows the screen, and passes each key, and `None` for each reason to draw again, to `take` on another thread,
    /// until that returns false or the terminal ends.
    pub(crate) fn enter(
        take: impl FnMut(Option<KeyEvent>) -> bool + Send + 'static,
    ) -> Result<Self, Failure> {
        changed_terminal::restore_by(restore);
        restore_on_panic();
        handle_stops(suspend, resume)?;
        STATE.store(SHOWN, Ordering::SeqCst);
        // From here on, each return restores the terminal.
        let screen = Self(());
        change().map_err(|e| Failure::io("cannot use the terminal", &e))?;
        spawn("keys", move || read_keys(take))?;
        Ok(screen)
    }

    /// Returns the columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        let (width, height) = size().unwrap_or((80, 24));
        (width.into(), height.into())
    }

    /// Replaces what the terminal shows. In the background, the terminal stays as it is.
    pub(crate) fn draw(&self, lines: &[Line]) -> io::Result<()> {
        let _drawing = lock(&DRAWING);
        match STATE.load(Ordering::SeqCst) {
            USUAL => return Ok(()),
            _ if !foreground::is_foreground(&io::stdin()) => return Ok(()),
            SUSPENDED | OUTDATED => {
                // The terminal has the modes of the shell.
                let _ = disable_raw_mode();
                STATE.store(SHOWN, Ordering::SeqCst);
                change()?;
            }
            _ => {}
        }
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
            queue!(out, MoveTo(0, row), SetAttribute(attribute), Print(printable(text)))?;
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

/// Shows the screen of the command.
fn change() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Hide, DisableLineWrap)
}

/// Returns whether the terminal shows the screen of the command.
fn is_shown(state: u8) -> bool {
    matches!(state, SHOWN | OUTDATED)
}

/// Restores the terminal if it is changed. An error means that the terminal is gone, so there is nothing to restore.
pub(crate) fn restore() {
    leave(USUAL);
}

/// Restores the terminal if it is changed, and sets the state that follows.
fn leave(next: u8) {
    if !is_shown(STATE.swap(next, Ordering::SeqCst)) {
        return;
    }
    if foreground::is_foreground(&io::stdin()) {
        let _ = disable_raw_mode();
    }
    // The lock of the usual standard output belongs to a thread that a stopped terminal can block.
    if let Ok(mut stdout) = raw_stdout() {
        if foreground::takes_output(&stdout) {
            let _ = execute!(stdout, EnableLineWrap, Show, LeaveAlternateScreen);
        }
    }
}

/// Restores the terminal, if it is changed, before `stop` stops the tool.
fn suspend(stop: &dyn Fn()) {
    /// The number of ticks of a millisecond to wait for the end of a drawing, which a stopped terminal can block.
    const ATTEMPTS: u32 = 200;
    let mut attempts = 0..ATTEMPTS;
    let _drawing = attempts.find_map(|_| {
        let drawing = DRAWING.try_lock().ok();
        if drawing.is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        drawing
    });
    if is_shown(STATE.load(Ordering::SeqCst)) {
        leave(SUSPENDED);
    }
    stop();
}

/// Makes the next drawing change the terminal again: the shell has changed it while the tool was stopped.
fn resume() {
    if !is_shown(STATE.load(Ordering::SeqCst)) {
        return;
    }
    if foreground::is_foreground(&io::stdin()) {
        let _ = STATE.compare_exchange(SHOWN, OUTDATED, Ordering::SeqCst, Ordering::SeqCst);
    } else {
        leave(SUSPENDED);
    }
}

/// Passes keys to `take`, as [`FullScreen::enter`] states.
fn read_keys(mut take: impl FnMut(Option<KeyEvent>) -> bool) {
    loop {
        if !foreground::is_foreground(&io::stdin()) {
            // The keys are those of the shell.
            thread::sleep(TICK);
            continue;
        }
        if matches!(STATE.load(Ordering::SeqCst), SUSPENDED | OUTDATED) && !take(None) {
            return;
        }
        // At the end of the terminal, `event::poll` would never return.
        if !foreground::waits_for_input(&io::stdin(), TICK) {
            return;
        }
        if !foreground::is_foreground(&io::stdin()) {
            continue;
        }
        while let Ok(true) = event::poll(Duration::ZERO) {
            let key = match event::read() {
                Ok(Event::Key(key)) if key == CTRL_Z => {
                    stop_job(&io::stdin());
                    continue;
                }
                Ok(Event::Key(key)) => Some(key),
                Ok(Event::Resize(..)) => None,
                Ok(_) => continue,
                Err(_) => return,
            };
            if !take(key) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn the_terminal_is_restored_before_the_message_of_a_panic() {
        static WAS_RESTORED: AtomicBool = AtomicBool::new(false);
        // The earlier hook writes the message of a panic. This test's hook looks at the terminal at that moment.
        let is_restored = || STATE.load(Ordering::SeqCst) == USUAL;
        panic::set_hook(Box::new(move |_| WAS_RESTORED.store(is_restored(), Ordering::SeqCst)));
        restore_on_panic();
        STATE.store(SHOWN, Ordering::SeqCst);
        let panicked = panic::catch_unwind(|| panic!("a panic"));
        let _ = panic::take_hook();
        assert!(panicked.is_err() && WAS_RESTORED.load(Ordering::SeqCst));
    }
}
