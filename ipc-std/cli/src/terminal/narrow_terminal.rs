//! A terminal with room for the echo of Ctrl-C, for progress bars.
use core::time::Duration;
use std::{io, thread};

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, TermLike};

use super::foreground::is_foreground;
use crate::run::threads::spawn;

/// A terminal that is two columns narrower than the real one.
///
/// A progress bar fills its line with spaces up to the last column. The terminal echoes Ctrl-C as `^C`, which would
/// begin another line there, and the bar would then clear that line instead of its own.
///
/// In the background, the terminal shows another job, and nothing is drawn.
#[derive(Debug)]
struct NarrowTerminal(Term);

/// The columns of `^C`.
const ECHO: u16 = 2;

impl NarrowTerminal {
    fn draw(&self, draw: impl FnOnce(&Term) -> io::Result<()>) -> io::Result<()> {
        if is_foreground(&io::stderr()) { draw(&self.0) } else { Ok(()) }
    }
}

/// Returns standard error as the target of a progress bar, which shows nothing if it is not a terminal.
pub(crate) fn stderr() -> ProgressDrawTarget {
    let stderr = Term::stderr();
    if stderr.is_term() {
        return ProgressDrawTarget::term_like(Box::new(NarrowTerminal(stderr)));
    }
    ProgressDrawTarget::hidden()
}

/// Draws the bar from time to time, until it is finished or dropped. A bar that shows nothing has no thread.
pub(crate) fn draw_steadily(bar: &ProgressBar) {
    const INTERVAL: Duration = Duration::from_millis(250);
    if bar.is_hidden() {
        return;
    }
    let bar = bar.downgrade();
    // The thread of the progress bar would panic if the system has no threads. Without it, only the line is missing.
    let _ = spawn("progress", move || {
        loop {
            thread::sleep(INTERVAL);
            match bar.upgrade().filter(|bar| !bar.is_finished()) {
                Some(bar) => bar.tick(),
                None => return,
            }
        }
    });
}

impl TermLike for NarrowTerminal {
    fn width(&self) -> u16 {
        self.0.width().saturating_sub(ECHO)
    }
    fn height(&self) -> u16 {
        self.0.height()
    }
    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.draw(|terminal| terminal.move_cursor_up(n))
    }
    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.draw(|terminal| terminal.move_cursor_down(n))
    }
    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.draw(|terminal| terminal.move_cursor_right(n))
    }
    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.draw(|terminal| terminal.move_cursor_left(n))
    }
    fn write_line(&self, s: &str) -> io::Result<()> {
        self.draw(|terminal| terminal.write_line(s))
    }
    fn write_str(&self, s: &str) -> io::Result<()> {
        self.draw(|terminal| terminal.write_str(s))
    }
    fn clear_line(&self) -> io::Result<()> {
        self.draw(|terminal| terminal.clear_line())
    }
    fn flush(&self) -> io::Result<()> {
        self.draw(|terminal| terminal.flush())
    }
}
