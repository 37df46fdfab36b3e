//! Writes the events of `user_events` sessions to their tracepoints.
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ipc_proto::Request;
use ipc_proto::types::TracepointFormat;
use ipc_proto::types::{EventLevel, UserEventsSession};
use nettrace::Metadata;
use nettrace::user_events::{Extension, ExtensionItem, InlineMetadata, TracepointRecord, WrittenKinds};

use crate::replay::Rounds;
use crate::replay::{Recorded, Recording};
use crate::sys::Tracepoint;

/// The tracepoints of a session.
pub(super) struct Tracepoints {
    /// In the order of registration: of each provider the default tracepoint, then the tracepoints of its sets.
    registered: Vec<Tracepoint>,
}

/// The events of a recording that are written to the tracepoints, again and again.
pub(super) struct TracepointReplay<'r, 'b> {
    recording: &'r Recording<'r>,
    /// The tracepoint of each kind of event; `None` if its events are not written.
    tracepoints: Vec<Option<&'r Tracepoint>>,
    written: WrittenKinds<'b>,
    rounds: Rounds,
}

impl Tracepoints {
    /// Registers the tracepoints that a request names.
    pub(super) fn register(request: &Request<'_>, data: &Arc<OwnedFd>) -> io::Result<Self> {
        let mut registered = Vec::new();
        for provider in UserEventsSession::try_from(request).into_iter().flat_map(|session| session.providers)
        {
            for name in provider.tracepoints.tracepoint_names() {
                let name = name.to_string();
                // The kernel reads a name up to a tab or a line break.
                let name = name.split(['\t', '\n']).next().unwrap_or_default();
                let format =
                    TracepointFormat::new(name).map_err(|e| io::Error::new(ErrorKind::InvalidInput, e))?;
                let index = u32::try_from(registered.len()).unwrap_or(u32::MAX);
                registered.push(Tracepoint::register(Arc::clone(data), &format, index)?);
            }
        }
        Ok(Self { registered })
    }

    /// Returns the tracepoint for the events of a kind.
    fn find(&self, request: &Request<'_>, kind: &Metadata<'_>) -> Option<&Tracepoint> {
        let mut before = 0_usize;
        for provider in UserEventsSession::try_from(request).ok()?.providers {
            if kind.provider == provider.name.to_string().as_str() {
                if !provider.includes(kind.keywords, EventLevel(kind.level), kind.event_id) {
                    return None;
                }
                let wanted = provider.tracepoints.tracepoint_name(kind.event_id)?;
                let place = provider.tracepoints.tracepoint_names().position(|name| name == wanted)?;
                return self.registered.get(before.saturating_add(place));
            }
            before = before.saturating_add(provider.tracepoints.tracepoint_names().count());
        }
        None
    }
}

impl<'r, 'b> TracepointReplay<'r, 'b> {
    /// Returns the space for [`WrittenKinds`]: one bit for each kind of event in the recording.
    pub(super) fn bits(recording: &Recording<'_>) -> Vec<u8> {
        vec![0; recording.kinds.len().div_ceil(8)]
    }

    pub(super) fn new(
        recording: &'r Recording<'r>,
        request: &Request<'_>,
        tracepoints: &'r Tracepoints,
        now: u64,
        bits: &'b mut [u8],
    ) -> Self {
        Self {
            recording,
            tracepoints: recording.kinds.iter().map(|kind| tracepoints.find(request, kind)).collect(),
            written: WrittenKinds::new(bits),
            rounds: Rounds::new(now),
        }
    }

    /// Writes all events up to now. An event that the file does not accept is dropped, as in a runtime.
    pub(super) fn advance(&mut self, now: u64) {
        loop {
            let due = self.rounds.due(self.recording, now, <[_]>::len);
            for recorded in due.events {
                let kind = recorded.kind;
                if self.write(recorded) == Some(()) {
                    self.written.insert(kind);
                }
            }
            if due.end.is_none() {
                return;
            }
        }
    }

    /// Writes an event. Returns `None` if it was not written.
    fn write(&self, recorded: &Recorded<'_>) -> Option<()> {
        let Recorded { kind, event, .. } = recorded;
        let tracepoint = (*self.tracepoints.get(*kind)?).filter(|tracepoint| tracepoint.is_enabled())?;
        let metadata = self.recording.kinds.get(*kind)?;
        let event_id = u16::try_from(metadata.event_id).ok()?;
        let (mut space, mut buf) = (Vec::new(), Vec::new());
        let mut items = vec![
            ExtensionItem::ActivityId(event.activity_id),
            ExtensionItem::RelatedActivityId(event.related_activity_id),
        ];
        if !self.written.contains(*kind) {
            // Metadata that does not fit into this space is too long for a record.
            space.resize(usize::from(u16::MAX), 0);
            items.insert(0, ExtensionItem::Metadata(InlineMetadata::build(metadata, &mut space).ok()?));
        }
        buf.resize(usize::from(u16::MAX), 0);
        let extension = Extension::build(&items, &mut buf).ok()?.as_bytes();
        let header = TracepointRecord::header(
            tracepoint.write_index(),
            event_id,
            extension.len(),
            event.payload.len(),
        );
        tracepoint.write(&[&header.ok()?, extension, event.payload].map(IoSlice::new)).ok()
    }
}
