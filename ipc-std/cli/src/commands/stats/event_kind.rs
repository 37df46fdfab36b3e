//! The events of one provider, id and version.
use serde::Serialize;
use serde_json::{Map, Value};

use crate::text::printable::printable_name;

/// Provider, ID and version.
pub(super) type Identity = (String, u32, u32);

/// Events of one identity.
pub(super) struct EventKind {
    /// `None` for events without a description.
    pub(super) of: Option<Identity>,
    pub(super) name: String,
    pub(super) events: u64,
    /// Whether the events are part of the rundown, or describe the session.
    pub(super) is_rundown: bool,
    pub(super) message_template: Option<String>,
    pub(super) description: Option<String>,
    pub(super) attributes: Map<String, Value>,
}

/// The events of one identity as JSON.
#[derive(Serialize)]
pub(super) struct KindRow<'s> {
    provider: Option<&'s String>,
    id: Option<&'s u32>,
    version: Option<&'s u32>,
    name: Option<&'s str>,
    count: u64,
    message_template: Option<&'s str>,
    description: Option<&'s str>,
    attributes: &'s Map<String, Value>,
}

impl EventKind {
    /// Returns what the description says about the events, for people: `PROVIDER/ID: DESCRIPTION (TEMPLATE) KEY=VALUE`.
    pub(super) fn meaning(&self) -> Option<String> {
        let (provider, id, _) = self.of.as_ref()?;
        let template = self.message_template.as_ref().map(|text| format!("\"{}\"", printable_name(text)));
        let attributes = (!self.attributes.is_empty()).then(|| pairs_text(&self.attributes));
        let description = self.description.as_ref().map(|text| printable_name(text));
        let parts: Vec<String> = [description, template, attributes].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("{}/{id}: {}", printable_name(provider), parts.join("; ")))
    }

    pub(super) fn to_json(&self) -> KindRow<'_> {
        let of = self.of.as_ref();
        KindRow {
            provider: of.map(|(provider, ..)| provider),
            id: of.map(|(_, id, _)| id),
            version: of.map(|(.., version)| version),
            name: Some(self.name.as_str()).filter(|name| !name.is_empty()),
            count: self.events,
            message_template: self.message_template.as_deref(),
            description: self.description.as_deref(),
            attributes: &self.attributes,
        }
    }
}

pub(super) fn pairs_text(pairs: &Map<String, Value>) -> String {
    let text = |(key, value): (&String, &Value)| {
        format!("{}={}", printable_name(key), printable_name(value.as_str().unwrap_or_default()))
    };
    pairs.iter().map(text).collect::<Vec<_>>().join(", ")
}
