//! Counts the events in a trace while it is recorded.
use ipc_proto::nettrace::{End, Limits, LossBuf, Parser, Record};

/// Counts the events in a trace, and those that the runtime lost, from the bytes as they arrive.
///
/// The counter only observes. Bytes that it cannot parse end the count, but do not change the recording.
#[derive(Debug)]
pub(crate) struct EventCounter {
    parser: Parser,
    /// Bytes that the parser has not released.
    window: Vec<u8>,
    events: u64,
    loss: LossBuf,
    end: Option<End>,
}

impl EventCounter {
    pub(crate) fn new() -> Self {
        Self {
            parser: Parser::new(Limits::default()),
            window: Vec::new(),
            events: 0,
            loss: LossBuf::default(),
            end: None,
        }
    }

    /// Counts the events in the next bytes of the trace.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.end.is_some() {
            return;
        }
        self.window.extend_from_slice(bytes);
        loop {
            let record = self.parser.next(&self.window);
            self.loss.record(&record);
            match record {
                Record::Event(_) => self.events = self.events.saturating_add(1),
                Record::More { .. } => break,
                Record::End(end) => {
                    self.end = Some(end);
                    self.window = Vec::new();
                    return;
                }
                _ => {}
            }
        }
        let released = self.parser.release().min(self.window.len());
        self.window.drain(..released);
    }

    pub(crate) const fn events(&self) -> u64 {
        self.events
    }

    pub(crate) const fn lost(&self) -> u64 {
        self.loss.get().lost()
    }

    pub(crate) const fn lost_at_start(&self) -> u64 {
        self.loss.get().lost_at_start()
    }

    /// Returns where and why the counter could not parse the trace. The counts are then those of the valid part.
    pub(crate) const fn corrupt(&self) -> Option<End> {
        match self.end {
            Some(end @ End::Corrupt { .. }) => Some(end),
            _ => None,
        }
    }
}
