//! Events of a port, as `monitor` prints them.
use std::path::Path;

use ipc_std::AdvertisedRuntime;
use serde_json::{Value, json};

use crate::recording::summary::RecordingSummary;
use crate::run::failure::Failure;
use crate::text::printable::printable;

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

    pub(super) fn to_json(&self, process_id: Option<u64>, runtime: Option<&AdvertisedRuntime>) -> Value {
        let cookie = runtime.map(|runtime| runtime.runtime_cookie.to_string());
        let mut json = json!({ "event": self.name(), "process_id": process_id, "runtime_cookie": cookie });
        let more = match self {
            Self::Arrived | Self::Resumed | Self::Left => json!({}),
            Self::Set { name, value } => json!({ "name": name, "value": value }),
            Self::Tracing { file } => json!({ "file": file.to_string_lossy() }),
            Self::Recorded { summary, is_complete } => {
                let mut object = summary.to_json();
                object.insert("complete".to_owned(), json!(is_complete));
                Value::Object(object)
            }
            Self::Error(failure) => failure.to_json(),
        };
        if let (Value::Object(json), Value::Object(more)) = (&mut json, more) {
            json.extend(more);
        }
        json
    }
}
