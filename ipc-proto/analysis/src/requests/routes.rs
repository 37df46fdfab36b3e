//! Durations by route, as the meter of ASP.NET Core states them.
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;

use nettrace::{Metadata, TraceEvent};

use super::{Requests, RouteDurations};
use crate::counters::{CounterEvent, CounterReader, Measurement, Sample};
use crate::known_provider::is_name;
use crate::names::cut;

/// The samples of `http.server.request.duration`, by process, method and route.
#[derive(Debug, Default)]
pub(super) struct Routes {
    reader: CounterReader,
    routes: BTreeMap<(Option<u64>, String, String), RouteDurations>,
    dropped: u64,
}

impl Routes {
    pub(super) fn event(&mut self, event: &TraceEvent<'_>, metadata: &Metadata<'_>) {
        if !is_name(metadata.provider, "System.Diagnostics.Metrics") {
            return;
        }
        if let Some(CounterEvent::Sample(sample)) = self.reader.event(event) {
            if sample.provider == "Microsoft.AspNetCore.Hosting"
                && sample.name == "http.server.request.duration"
            {
                self.add(&sample);
            }
        }
    }

    fn add(&mut self, sample: &Sample<'_>) {
        const MAX_TAG: usize = 256;
        let Measurement::Histogram { quantiles, count: Some(count), .. } = &sample.measurement else {
            return;
        };
        let tag = |name: &str| {
            let found = sample.tags().find(|(key, _)| *key == *name);
            found.map_or_else(String::new, |(_, value)| cut(&value, MAX_TAG).to_owned())
        };
        let key = (sample.process_id, tag("http.request.method"), tag("http.route"));
        if self.routes.len() >= Requests::GROUPS && !self.routes.contains_key(&key) {
            self.dropped = self.dropped.saturating_add(*count);
            return;
        }
        let (process_id, method, route) = key.clone();
        let route = self.routes.entry(key).or_insert_with(|| RouteDurations {
            process_id,
            method,
            route: Some(route).filter(|route| !route.is_empty()),
            durations: Default::default(),
        });
        // The shares of the measurements that are counted, so far.
        let mut counted = 0_u64;
        for (place, quantile) in quantiles.iter().enumerate() {
            let is_last = place.saturating_add(1) == quantiles.len();
            let upto = if is_last {
                *count
            } else {
                (quantile.quantile.clamp(0.0, 1.0) * *count as f64 + 0.5) as u64
            };
            let nanoseconds = (quantile.value.max(0.0) * 1e9) as u64;
            route.durations.add_many(nanoseconds, upto.saturating_sub(counted));
            counted = counted.max(upto);
        }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &RouteDurations> {
        self.routes.values()
    }

    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }
}
