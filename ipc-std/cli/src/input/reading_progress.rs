//! The progress of reading a long file, on a terminal.
use core::time::Duration;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use ipc_proto::wire::to_u64;

use crate::terminal::narrow_terminal;

/// Shows how much of a file was read in one line of standard error, if that is a terminal. Drop removes the line.
///
/// The line appears late, because most files are read before a person would see it.
#[derive(Debug)]
pub(crate) struct ReadingProgress {
    started: Instant,
    read: u64,
    /// The length of the file, if it has one.
    len: Option<u64>,
    bar: Option<ProgressBar>,
}

impl ReadingProgress {
    const DELAY: Duration = Duration::from_millis(500);

    pub(crate) fn new(len: Option<u64>) -> Self {
        Self { started: Instant::now(), read: 0, len, bar: None }
    }

    /// Adds bytes that were read.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.read = self.read.saturating_add(to_u64(bytes));
        if self.bar.is_none() && self.started.elapsed() >= Self::DELAY {
            self.bar = Some(self.bar());
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.read);
        }
    }

    fn bar(&self) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(self.len, narrow_terminal::stderr());
        let template = match self.len {
            Some(_) => "{spinner} Reading: {decimal_bytes} of {decimal_total_bytes}, {percent} %",
            None => "{spinner} Reading: {decimal_bytes}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar
    }
}

impl Drop for ReadingProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_comes_after_the_delay() {
        let mut progress = ReadingProgress::new(Some(100));
        progress.started = Instant::now().checked_add(Duration::from_secs(3600)).unwrap();
        progress.add(30);
        assert!(progress.bar.is_none());
        progress.started = Instant::now().checked_sub(ReadingProgress::DELAY).unwrap();
        progress.add(40);
        let bar = progress.bar.clone().unwrap();
        assert_eq!((bar.position(), bar.length()), (70, Some(100)));
        drop(progress);
        assert!(bar.is_finished());
    }
}
