//! The buffer of a session, which is full if the events since the last piece of the stream have its size.
use ipc_proto::plan::TraceConfig;
use ipc_proto::types::SessionBufferMode;

use super::recording::Recorded;

/// The room for the events between two pieces of the stream.
#[derive(Debug)]
pub(super) struct SessionBuffer {
    size: usize,
    used: usize,
    /// Whether the program waits while the buffer is full. Otherwise events are lost.
    pub(super) blocks: bool,
}

impl SessionBuffer {
    pub(super) fn new(config: Option<&TraceConfig<'_>>) -> Self {
        const MB: usize = 1 << 20;
        let size = config.and_then(|config| usize::try_from(config.buffer_mb).ok());
        let blocks = config.is_some_and(|config| config.buffer_mode == SessionBufferMode::BLOCK);
        Self { size: size.unwrap_or(usize::MAX).saturating_mul(MB), used: 0, blocks }
    }

    pub(super) fn clear(&mut self) {
        self.used = 0;
    }

    /// Buffers as many of these events as there is room for, at least one while the buffer is empty, and returns their
    /// number. Events that the session does not include need no room.
    pub(super) fn buffer(
        &mut self,
        events: &[Recorded<'_>],
        includes: impl Fn(&Recorded<'_>) -> bool,
    ) -> usize {
        /// The bytes of an event besides its payload and its stack.
        const FIELDS: usize = 100;
        let fits = |recorded: &Recorded<'_>| {
            if !includes(recorded) {
                return true;
            }
            let len = recorded.event.payload.len().saturating_add(recorded.stack.len());
            let used = self.used.saturating_add(len).saturating_add(FIELDS);
            let fits = self.used == 0 || used <= self.size;
            if fits {
                self.used = used;
            }
            fits
        };
        events.iter().map(fits).take_while(|fits| *fits).count()
    }
}
