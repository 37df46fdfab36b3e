//! Durations by route, as the meter of ASP.NET Core states them.
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::time::Duration;

use nettrace::{MetadataBuf, TraceEvent};

use super::summary::RouteDurations;
use crate::counters::{CounterEvent, CounterReader, Measurement, Sample};
use crate::event::is_name;
use crate::names::cut;

/// The samples of `http.server.request.duration`, by process, method and route.
#[derive(Debug, Default)]
pub(super) struct Routes {
    reader: CounterReader,
    routes: BTreeMap<(Option<u64>, String, String), RouteDurations>,
    dropped: u64,
}

impl Routes {
    pub(super) const LIMIT: usize = 1 << 10;

    pub(super) fn event(&mut self, event: &TraceEvent<'_>, description: &MetadataBuf, is_inside: bool) {
        if !is_name(description.provider(), "System.Diagnostics.Metrics") {
            return;
        }
        if let Some(CounterEvent::Sample(sample)) = self.reader.event(event) {
            if is_inside
                && sample.provider == "Microsoft.AspNetCore.Hosting"
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
        if self.routes.len() >= Self::LIMIT && !self.routes.contains_key(&key) {
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
        let mut counted = 0_u64;
        for (place, quantile) in quantiles.iter().enumerate() {
            let is_last = place.saturating_add(1) == quantiles.len();
            let up_to = if is_last { *count } else { share_of(*count, quantile.quantile) };
            route.durations.add_many(billionths(quantile.value), up_to.saturating_sub(counted));
            counted = counted.max(up_to);
        }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &RouteDurations> {
        self.routes.values()
    }

    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Returns a share between 0 and 1 of a count, rounded up.
fn share_of(count: u64, share: f64) -> u64 {
    const ONE: u128 = 1_000_000_000;
    let billionths = u128::from(billionths(share)).min(ONE).saturating_mul(count.into());
    u64::try_from(billionths.div_ceil(ONE)).unwrap_or(count)
}

/// Returns a number in billionths, as seconds in nanoseconds; 0 for negative numbers and NaN.
fn billionths(number: f64) -> u64 {
    let duration = Duration::try_from_secs_f64(number).unwrap_or_default();
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
