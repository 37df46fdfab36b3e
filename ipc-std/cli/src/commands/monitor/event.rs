//! Events of a port, as `monitor` prints them.
use std::borrow::Cow;
use std::path::Path;

use ipc_std::AdvertisedRuntime;
use serde::Serialize;

use crate::recording::summary::{RecordingSummary, SummaryRow};
use crate::run::failure::{Failure, FailureRow};
use crate::text::printable::printable;

/// An event as JSON.
#[derive(Serialize)]
pub(super) struct EventRow<'e> {
    event: &'static str,
    process_id: Option<u64>,
    runtime_cookie: Option<String>,
    #[serde(flatten)]
    more: Option<EventFields<'e>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum EventFields<'e> {
    Set { name: &'e str, value: &'e str },
    Tracing { file: Cow<'e, str> },
    Recorded(SummaryRow<'e>),
    Error(FailureRow<'e>),
}

/// An event of a runtime.
pub(super) enum Event<'e> {
    Arrived,
    Set { name: &'e str, value: &'e str },
    Tracing { file: &'e Path },
    Recorded { summary: &'e RecordingSummary<'e>, is_complete: bool },
    Resumed,
    Left,
    Error(&'e Failure),
}

impl Event<'_> {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Arrived => "arrived",
            Self::Set { .. } => "set",
            Self::Tracing { .. } => "tracing",
            Self::Recorded { .. } => "recorded",
            Self::Resumed => "resumed",
            Self::Left => "left",
            Self::Error(_) => "error",
        }
    }

    pub(super) fn detail(&self, runtime: Option<&AdvertisedRuntime>) -> String {
        match self {
            Self::Arrived => runtime.map_or_else(String::new, |runtime| runtime.runtime_cookie.to_string()),
            Self::Set { name, value } => printable(&format!("{name}={value}")).into_owned(),
            Self::Tracing { file } => printable(&file.to_string_lossy()).into_owned(),
            Self::Recorded { summary, .. } => printable(&summary.to_string()).into_owned(),
            Self::Resumed | Self::Left => String::new(),
            Self::Error(failure) => failure.to_string(),
        }
    }

    pub(super) fn to_json(
        &self,
        process_id: Option<u64>,
        runtime: Option<&AdvertisedRuntime>,
    ) -> EventRow<'_> {
        let more = match self {
            Self::Arrived | Self::Resumed | Self::Left => None,
            Self::Set { name, value } => Some(EventFields::Set { name, value }),
            Self::Tracing { file } => Some(EventFields::Tracing { file: file.to_string_lossy() }),
            Self::Recorded { summary, is_complete } => {
                Some(EventFields::Recorded(summary.to_json(*is_complete)))
            }
            Self::Error(failure) => Some(EventFields::Error(failure.to_json())),
        };
        let runtime_cookie = runtime.map(|runtime| runtime.runtime_cookie.to_string());
        EventRow { event: self.name(), process_id, runtime_cookie, more }
    }
}
