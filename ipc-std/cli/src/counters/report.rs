//! `Report`: a report about the counters of a process.
use std::io::Read;

use ipc_std::TraceReader;
use nettrace_analysis::counters::{CounterEvent, Instrument, OwnedSample, Problem};

use crate::input::trace_file;
use crate::run::Failure;

/// The process that a sample comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    /// `None` if it is unknown, as for a socket before its session, and in a trace that states none.
    pub(crate) id: Option<u64>,
    /// The name of the process; empty if it is unknown.
    pub(crate) name: String,
}

/// A report about a process.
#[derive(Debug)]
pub(crate) enum Report {
    /// The first report of a trace that can have several processes.
    SeveralProcesses,
    Sample(Box<OwnedSample>),
    /// A sample of a counter that is not selected, of a trace that has none of the selected ones so far.
    Unselected(Box<OwnedSample>),
    Begin(Box<OwnedInstrument>),
    /// An instrument has ended. The keys of its series begin with this text.
    End(String),
    Published(Box<OwnedInstrument>),
    /// All instruments that exist were published.
    EnumerationComplete,
    /// Samples are missing, for this reason.
    Problem(String),
    /// The meters have no samples, because another session reads them.
    OtherSession(String),
    /// The last report of the process.
    Ended(Result<(), Failure>),
}

/// An instrument that owns its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedInstrument {
    pub(crate) meter: String,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) unit: String,
    pub(crate) description: String,
    /// Whether its samples have no tags of the instrument and its meter, because those are too long.
    pub(crate) has_long_details: bool,
}

impl From<&Instrument<'_>> for OwnedInstrument {
    fn from(instrument: &Instrument<'_>) -> Self {
        Self {
            meter: instrument.meter.to_string(),
            name: instrument.name.to_string(),
            kind: instrument.kind.to_string(),
            unit: instrument.unit.to_string(),
            description: instrument.description.to_string(),
            has_long_details: instrument.has_long_details(),
        }
    }
}

impl Report {
    pub(super) fn of(event: &CounterEvent<'_>) -> Option<Self> {
        Some(match event {
            CounterEvent::Sample(sample) => Self::Sample(Box::new(sample.into())),
            CounterEvent::Begin(instrument) => Self::Begin(Box::new(instrument.into())),
            CounterEvent::End(instrument) => {
                let mut prefix = String::new();
                instrument.push_series_prefix(&mut prefix);
                Self::End(prefix)
            }
            CounterEvent::Published(instrument) => Self::Published(Box::new(instrument.into())),
            CounterEvent::EnumerationComplete => Self::EnumerationComplete,
            CounterEvent::Problem(problem @ Problem::OtherSession(_)) => {
                Self::OtherSession(problem.to_string())
            }
            CounterEvent::Problem(problem) => Self::Problem(problem.to_string()),
            _ => return None,
        })
    }

    /// Returns how many events are missing at the end of a trace.
    pub(super) fn of_losses<R: Read>(trace: &TraceReader<R>) -> Option<Self> {
        let report = trace_file::loss_report(trace);
        let lost = report.losses.lost;
        (lost > 0).then(|| {
            Self::Problem(format!("{lost} events were lost: samples are missing; they were lost {report}"))
        })
    }
}
