//! Counts the events in a trace while it is recorded.
use std::collections::BTreeSet;

use dotnet_ipc_sans_io::syntax::only_arg::OnlyArg;
use nettrace::{
    Counter, End, Limits, LossCounter, Losses, Metadata, ParserBuf, Record, Slot, TraceClock, Version,
};

/// Counts the events in a trace, and those that the runtime lost, from the bytes as they arrive.
///
/// The counter only observes. Bytes that it cannot parse end the count, but do not change the recording.
#[derive(Debug)]
pub(crate) struct EventCounter {
    records: ParserBuf,
    events: u64,
    loss: LossCounter<Vec<Slot<Counter>>>,
    clock: Option<TraceClock>,
    end: Option<End>,
    until: UntilEvents,
}

/// Waits for one of the events of `--until`.
#[derive(Debug, Default)]
pub(crate) struct UntilEvents {
    events: Vec<OnlyArg>,
    /// The ids of the metadata records that describe these events.
    ids: BTreeSet<u32>,
    has_arrived: bool,
}

impl UntilEvents {
    /// The maximum number of ids. Runtimes send one description of each event.
    const MAX_IDS: usize = 1 << 16;

    /// Takes the next record of the trace.
    pub(crate) fn record(&mut self, record: &Record<'_>, version: Version) {
        match record {
            Record::Event(event) => self.has_arrived |= self.ids.contains(&event.metadata_id),
            Record::Metadata(record) if !self.events.is_empty() => {
                if let Ok(metadata) = Metadata::decode(version, record.payload) {
                    let is_until = self.events.iter().any(|until| until.includes(&metadata));
                    // An id can be assigned again, to another event.
                    if !is_until {
                        self.ids.remove(&metadata.id);
                    } else if self.ids.len() < Self::MAX_IDS {
                        self.ids.insert(metadata.id);
                    }
                }
            }
            _ => {}
        }
    }
}

impl EventCounter {
    pub(crate) fn new() -> Self {
        Self {
            records: ParserBuf::new(Limits::default()),
            events: 0,
            loss: LossCounter::default(),
            clock: None,
            end: None,
            until: UntilEvents::default(),
        }
    }

    /// Waits for one of these events.
    pub(crate) fn wait_until(&mut self, until: &[OnlyArg]) {
        self.until.events = until.to_vec();
    }

    /// Returns the events of [`wait_until`](Self::wait_until), for a caller that counts the bytes of its records later.
    pub(crate) const fn until_mut(&mut self) -> &mut UntilEvents {
        &mut self.until
    }

    /// Returns whether one of the events of [`wait_until`](Self::wait_until) has arrived.
    pub(crate) const fn has_until(&self) -> bool {
        self.until.has_arrived
    }

    /// Counts the events in the next bytes of the trace.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.end.is_some() {
            return;
        }
        self.records.push(bytes);
        loop {
            let version = self.records.version();
            let record = self.records.next_record();
            self.loss.record(&record);
            self.until.record(&record, version);
            match record {
                Record::Event(_) => self.events = self.events.saturating_add(1),
                Record::Trace(trace) => self.clock = Some(TraceClock::new(&trace)),
                Record::More { .. } => return,
                Record::End(end) => {
                    self.end = Some(end);
                    // An empty parser replaces the old one, whose window takes memory.
                    self.records = ParserBuf::new(Limits::default());
                    return;
                }
                _ => {}
            }
        }
    }

    pub(crate) const fn events(&self) -> u64 {
        self.events
    }

    pub(crate) const fn losses(&self) -> Losses {
        self.loss.losses()
    }

    /// Returns the clock of the trace, once it has begun.
    pub(crate) const fn clock(&self) -> Option<TraceClock> {
        self.clock
    }

    /// Returns whether the trace has its end mark, which bytes can follow.
    pub(crate) const fn is_complete(&self) -> bool {
        matches!(self.end, Some(End::Complete))
    }

    /// Returns where and why the counter could not parse the trace. The counts are then those of the valid part.
    pub(crate) const fn corrupt(&self) -> Option<End> {
        match self.end {
            Some(end @ End::Corrupt { .. }) => Some(end),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nettrace::Event;

    #[test]
    fn the_ids_have_a_limit() {
        let mut until = UntilEvents { events: vec![OnlyArg::parse("A/7").unwrap()], ..Default::default() };
        for id in 1..10 + u32::try_from(UntilEvents::MAX_IDS).unwrap() {
            // The id, the provider, the id of the event, its name, keywords, version, level and no fields.
            let payload = [&id.to_le_bytes()[..], &[b'A', 0, 0, 0, 7, 0, 0, 0], &[0; 22]].concat();
            let record = Event { payload: &payload, ..Event::default() };
            until.record(&Record::Metadata(record), Version::V4);
        }
        assert_eq!(until.ids.len(), UntilEvents::MAX_IDS);
        // The id of an event can become that of another one.
        let other = [&2u32.to_le_bytes()[..], &[b'B', 0, 0, 0, 7, 0, 0, 0], &[0; 22]].concat();
        until.record(&Record::Metadata(Event { payload: &other, ..Event::default() }), Version::V4);
        until.record(&Record::Event(Event { metadata_id: 2, ..Event::default() }), Version::V4);
        assert!(!until.has_arrived);
        until.record(&Record::Event(Event { metadata_id: 1, ..Event::default() }), Version::V4);
        assert!(until.has_arrived);
    }
}
