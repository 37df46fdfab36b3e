//! [`BusyBackoff`]: the delays between attempts to connect to a runtime that accepts no connection now.
/// The pauses between two attempts of a client to connect while a runtime is busy.
///
/// ```text
/// 1, 2, 4, 8, 16, 32, 50, 50 … milliseconds
/// ```
///
/// A runtime accepts a connection only between two commands. While its backlog is full, or all instances of its pipe
/// are in use, connecting fails immediately, and no event reports when connecting would succeed. So a client must
/// retry. The first pauses are short, so that a short command of another client delays this client little.
///
/// A runtime that finds no monitor has longer pauses than a client: see [`port::Backoff`](crate::port::Backoff).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusyBackoff {
    /// The next pause, in milliseconds.
    pause: u32,
}

impl BusyBackoff {
    /// The first pause, in milliseconds.
    pub const FIRST_MS: u32 = 1;
    /// The longest pause, in milliseconds.
    pub const LONGEST_MS: u32 = 50;

    /// Creates the back-off of a client that has made no attempt yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { pause: Self::FIRST_MS }
    }

    /// Returns the pause after an attempt, in milliseconds: twice the previous pause, up to the longest pause.
    pub const fn next(&mut self) -> u32 {
        let pause = self.pause;
        self.pause = match pause.saturating_mul(2) {
            longer if longer < Self::LONGEST_MS => longer,
            _ => Self::LONGEST_MS,
        };
        pause
    }
}

impl Default for BusyBackoff {
    fn default() -> Self {
        Self::new()
    }
}
