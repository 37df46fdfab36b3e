//! A terminal with room for the echo of Ctrl-C.
use std::io;

use console::Term;
use indicatif::{ProgressDrawTarget, TermLike};

/// A terminal that is two columns narrower than the real one.
///
/// A progress bar fills its line with spaces up to the last column. The terminal echoes Ctrl-C as `^C`, which would
/// begin another line there, and the bar would then clear that line instead of its own.
#[derive(Debug)]
struct NarrowTerminal<T>(T);

/// The columns of `^C`.
const ECHO: u16 = 2;

/// Returns standard error as the target of a progress bar, which shows nothing if it is no terminal.
pub(crate) fn stderr() -> ProgressDrawTarget {
    let stderr = Term::stderr();
    if stderr.is_term() {
        return ProgressDrawTarget::term_like(Box::new(NarrowTerminal(stderr)));
    }
    ProgressDrawTarget::hidden()
}

impl<T: TermLike> TermLike for NarrowTerminal<T> {
    fn width(&self) -> u16 {
        self.0.width().saturating_sub(ECHO)
    }
    fn height(&self) -> u16 {
        self.0.height()
    }
    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_up(n)
    }
    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_down(n)
    }
    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_right(n)
    }
    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_left(n)
    }
    fn write_line(&self, s: &str) -> io::Result<()> {
        self.0.write_line(s)
    }
    fn write_str(&self, s: &str) -> io::Result<()> {
        self.0.write_str(s)
    }
    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line()
    }
    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressBar, ProgressStyle};

    use super::*;

    /// A terminal of 40 columns that records the column of the cursor.
    #[derive(Debug, Default, Clone)]
    struct Recorder {
        columns: Arc<Mutex<Vec<usize>>>,
    }

    impl TermLike for Recorder {
        fn width(&self) -> u16 {
            40
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, _: &str) -> io::Result<()> {
            Ok(())
        }
        fn write_str(&self, s: &str) -> io::Result<()> {
            let mut columns = self.columns.lock().unwrap();
            let column = if s == "\r" {
                0
            } else {
                columns.last().copied().unwrap_or(0).saturating_add(s.chars().count())
            };
            columns.push(column);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.columns.lock().unwrap().push(0);
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn echo_of_ctrl_c_fits_after_the_line() {
        for text in ["short".to_owned(), "x".repeat(38)] {
            let recorder = Recorder::default();
            let target = ProgressDrawTarget::term_like(Box::new(NarrowTerminal(recorder.clone())));
            let bar = ProgressBar::with_draw_target(None, target)
                .with_style(ProgressStyle::with_template("{msg}").unwrap())
                .with_message(text.clone());
            bar.tick();
            bar.tick();
            assert_eq!(recorder.columns.lock().unwrap().iter().max(), Some(&38), "{text}");
            bar.finish_and_clear();
        }
    }
}
