//! Facts about each kind of events of a trace.
use alloc::vec::Vec;

use ipc_proto::wire::to_usize;
use nettrace::TraceEvent;

use super::runtime_event::RuntimeEvent;
use super::runtime_event::{KnownProvider, is_name};

/// The kinds of the events of one trace, each searched once.
#[derive(Debug, Default)]
pub(crate) struct EventKinds {
    /// By [`TraceEvent::kind`].
    kinds: Vec<Option<EventKind>>,
}

/// The parts of a description by which analyses select events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventKind {
    pub(crate) provider: Option<KnownProvider>,
    /// Whether the provider is the one that describes the session itself.
    pub(crate) is_info: bool,
    pub(crate) event_id: u32,
    /// The event, if it is one of the runtime.
    pub(crate) of_runtime: Option<RuntimeEvent>,
}

impl EventKinds {
    /// Returns the kind of an event; `None` if it is not described. All events must come from one assembler.
    #[inline]
    pub(crate) fn of(&mut self, event: &TraceEvent<'_>) -> Option<EventKind> {
        match self.kinds.get(to_usize(event.kind())) {
            Some(Some(kind)) => Some(*kind),
            _ => self.find(event),
        }
    }

    #[cold]
    fn find(&mut self, event: &TraceEvent<'_>) -> Option<EventKind> {
        let description = event.description()?;
        let provider = KnownProvider::of(description.provider());
        let is_info = provider.is_none() && is_name(description.provider(), "Microsoft-DotNETCore-EventPipe");
        let event_id = description.event_id();
        let of_runtime = provider.and_then(|provider| RuntimeEvent::new(provider, event_id));
        let kind = EventKind { provider, is_info, event_id, of_runtime };
        let place = to_usize(event.kind());
        if place >= self.kinds.len() {
            self.kinds.resize(place.saturating_add(1), None);
        }
        if let Some(known) = self.kinds.get_mut(place) {
            *known = Some(kind);
        }
        Some(kind)
    }
}

impl EventKind {
    /// Returns whether the event is part of the rundown or describes the session, so that its time means nothing.
    pub(crate) fn is_rundown(&self) -> bool {
        self.is_info || self.provider == Some(KnownProvider::Rundown)
    }
}
