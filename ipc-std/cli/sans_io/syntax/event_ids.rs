//! `--event-ids`: the events of a provider to record, by ID.
use core::str::FromStr;

use ipc_proto::types::EventFilter;

use super::provider::ProviderSpec;
use super::unsigned::unsigned;

/// IDs of events of a provider: `NAME=+1,2` or `NAME=-1,2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventIds {
    provider: String,
    /// Whether the runtime sends only these events, or all others.
    enable: bool,
    ids: Vec<u32>,
}

impl FromStr for EventIds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad =
            || format!("{text:?} is not NAME=+ID,ID for only these events, or NAME=-ID,ID for all others");
        let (name, ids) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(bad)?;
        let (enable, ids) = match (ids.strip_prefix('+'), ids.strip_prefix('-')) {
            (Some(ids), _) => (true, ids),
            (_, Some(ids)) => (false, ids),
            _ => return Err(bad()),
        };
        let id = |id: &str| unsigned(id)?.parse().ok();
        let mut ids: Vec<u32> = ids.split(',').map(id).collect::<Option<_>>().ok_or_else(bad)?;
        // Runtimes refuse an ID that occurs twice, or crash.
        ids.sort_unstable();
        ids.dedup();
        Ok(Self { provider: name.to_owned(), enable, ids })
    }
}

/// Returns the filter of each provider.
pub fn filters<'a>(
    providers: &[ProviderSpec],
    event_ids: &'a [EventIds],
) -> Result<Vec<EventFilter<'a>>, String> {
    let mut filters = vec![EventFilter::ALL; providers.len()];
    for EventIds { provider: name, enable, ids } in event_ids {
        let mut named = providers.iter().zip(&mut filters).filter(|(provider, _)| provider.is_named(name));
        let filter = match named.next() {
            Some((_, filter)) if *filter == EventFilter::ALL => filter,
            found => {
                let fault = if found.is_some() { "has event IDs twice" } else { "is not recorded" };
                return Err(format!("the provider {name} {fault}"));
            }
        };
        *filter = EventFilter { enable: *enable, event_ids: ids.as_slice().into() };
    }
    Ok(filters)
}

#[cfg(test)]
mod tests {
    use ipc_proto::types::EventLevel;

    use super::*;

    #[test]
    fn parts_of_event_ids() {
        let ids = |enable, ids: &[u32]| EventIds { provider: "A=B".to_owned(), enable, ids: ids.to_vec() };
        assert_eq!("A=B=+2,1,2".parse(), Ok(ids(true, &[1, 2])));
        assert_eq!("A=B=-7".parse(), Ok(ids(false, &[7])));
        for text in ["", "A", "A=", "A=1", "A=+", "A=+1,", "A=+x", "=+1", "A=++1", "A=+4294967296"] {
            assert!(text.parse::<EventIds>().is_err(), "{text}");
        }
    }

    #[test]
    fn each_filter_belongs_to_a_provider() {
        let providers = ["A", "B"].map(|name| ProviderSpec::new(name, 1, EventLevel::VERBOSE, ""));
        let event_ids = ["b=-3".parse().unwrap()];
        let found = filters(&providers, &event_ids).unwrap();
        assert_eq!(found, [EventFilter::ALL, EventFilter { enable: false, event_ids: (&[3]).into() }]);
        assert_eq!(filters(&providers, &[]).unwrap(), [EventFilter::ALL; 2]);
        for event_ids in [&["C=+1"][..], &["A=+1", "a=+2"]] {
            let event_ids: Vec<EventIds> = event_ids.iter().map(|text| text.parse().unwrap()).collect();
            assert!(filters(&providers, &event_ids).is_err());
        }
    }
}
