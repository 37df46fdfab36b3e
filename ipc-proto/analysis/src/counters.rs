//! Counters and metrics: what a program counts and measures, as one stream of samples.
//!
//! .NET has two systems, which [`CounterReader`] reads into the same type, [`Sample`]:
//!
//! | system | enabled by | events |
//! |---|---|---|
//! | event counters, since .NET Core 3.0 | the provider itself with `EventCounterIntervalSec=1` | `EventCounters`, with the provider's own event id |
//! | meters of System.Diagnostics.Metrics | the provider `System.Diagnostics.Metrics` with `Metrics=METER` | 1 to 19 of that provider |
//!
//! [`CounterPlan`] decides which providers a session enables, with which arguments, and why. [`LatestSamples`] stores
//! the last sample of each series.
//!
//! Fields are read by their names, so that payloads of every version of the events can be read.
mod counted_processes;
mod counter_event;
mod counter_plan;
mod counter_reader;
mod exponential_histogram;
mod field_values;
mod latest_samples;
mod number;
mod sample;
mod selection;
mod tags;

pub use counter_event::{CounterEvent, Instrument, InstrumentKind, Problem};
pub use counter_plan::{CounterConfig, CounterPlan, ExponentialConfig, PlanError, PlannedProvider};
pub use counter_reader::CounterReader;
pub use exponential_histogram::ExponentialHistogram;
pub use latest_samples::LatestSamples;
pub use number::Number;
pub use sample::{InstrumentDetails, Measurement, OwnedSample, Quantile, Sample, SampleOf};
pub use selection::{ParseSelectionError, Selection, System};
pub use tags::{Tags, escaped_tags, tags};
