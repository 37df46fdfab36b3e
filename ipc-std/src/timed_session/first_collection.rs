//! `FirstCollection`: delays a Stop that would arrive shortly before the first collection of meters.
use ipc_proto::Session;
use ipc_proto::plan::{Runtime, StopHazard, TraceConfig, stop_hazard};
use nettrace::{AssemblerStep, EventAssembler, EventOrder, ReadOptions};

/// Sees the stream of a session that collects meters until its first collection has ended.
#[derive(Debug)]
pub(super) struct FirstCollection(Option<Expected>);

#[derive(Debug)]
struct Expected {
    hazard: StopHazard,
    /// When the provider started, in milliseconds after the session: late in a program that was suspended.
    started: u64,
    events: EventAssembler,
}

impl FirstCollection {
    /// A provider whose first event arrives later than this was not there when the session started.
    const LATE_MS: u64 = 1_000;

    pub(super) fn new(config: &TraceConfig<'_>) -> Self {
        Self(stop_hazard(config, &Runtime::default()).map(|hazard| {
            let events = EventAssembler::new(
                EventOrder::Stream,
                ReadOptions { stacks: false, ..ReadOptions::default() },
            );
            Expected { hazard, started: 0, events }
        }))
    }

    /// Receives bytes of the stream at `now`, in milliseconds after the start of the session. After the first
    /// collection the session sends its Stop.
    pub(super) fn see(&mut self, bytes: &[u8], now: u64, session: &mut Session) {
        let Some(expected) = &mut self.0 else { return };
        if expected.sees_collection(bytes, now) || now >= expected.until() {
            self.0 = None;
            session.send_stop();
        }
    }

    /// Delays a Stop that was requested at `now`, if it would arrive at a dangerous time.
    pub(super) fn delay_stop(&self, now: u64, session: &mut Session) {
        if let Some(expected) = &self.0 {
            if (expected.started.saturating_add(expected.hazard.from_ms)..expected.until()).contains(&now) {
                session.delay_stop(expected.until());
            }
        }
    }
}

impl Expected {
    fn until(&self) -> u64 {
        self.started.saturating_add(self.hazard.until_ms)
    }

    fn sees_collection(&mut self, bytes: &[u8], now: u64) -> bool {
        self.events.push(bytes);
        while let AssemblerStep::Event(event) = self.events.step() {
            let Some(metadata) = event.metadata().filter(|of| of.provider == StopHazard::PROVIDER) else {
                continue;
            };
            if metadata.name == StopHazard::COLLECTION_STOP {
                return true;
            }
            if self.started == 0 && now > FirstCollection::LATE_MS {
                self.started = now;
            }
        }
        false
    }
}
