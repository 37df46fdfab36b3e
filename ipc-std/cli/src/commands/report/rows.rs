//! The report as rows: its JSON, and what its text shows of them.
use nettrace_analysis::call_tree::{Change, Entry, Order};
use nettrace_analysis::report::{CallLine, CallReport, ReportQuery, ThreadRow, TypeRow};
use nettrace_analysis::samples::{Clock, UNKNOWN_TYPE};
use serde::{Serialize, Serializer};

use crate::output::printable::integer;
use crate::process::cpu_usage::CpuUsage;

/// The report. Shares are in percent.
#[derive(Serialize)]
pub(super) struct Rows<'s> {
    /// The option that chooses the clock.
    pub(super) clock: &'static str,
    unit: &'static str,
    pub(super) total: Integer,
    pub(super) samples: u64,
    pub(super) lost: u64,
    pub(super) unnamed_frames: f64,
    pub(super) not_own: f64,
    #[serde(flatten)]
    pub(super) before: Option<Before>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<&'s str>,
    #[serde(flatten)]
    waits: Option<Waits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uncounted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tells_running: Option<bool>,
    #[serde(flatten)]
    cpu: Option<Cpu>,
    pub(super) frames: Vec<Frame<'s>>,
    #[serde(flatten)]
    pub(super) types: Option<Types<'s>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) threads: Option<Vec<Thread<'s>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tree: Option<Vec<Call<'s>>>,
    /// The functions of the program that come first.
    #[serde(skip)]
    pub(super) own_first: Vec<Frame<'s>>,
    #[serde(skip)]
    pub(super) system: Option<&'s CpuUsage>,
    #[serde(skip)]
    pub(super) report: &'s CallReport<'s>,
    #[serde(skip)]
    pub(super) query: &'s ReportQuery,
}

/// A whole number; as text if JavaScript would round it.
#[derive(Clone, Copy)]
pub(super) struct Integer(pub(super) u64);

impl Serialize for Integer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        integer(self.0).serialize(serializer)
    }
}

/// The older recording.
#[derive(Serialize)]
pub(super) struct Before {
    total_before: Integer,
    pub(super) samples_before: u64,
}

#[derive(Serialize)]
struct Waits {
    waits: WaitCounts,
    waiting_before: usize,
}

#[derive(Serialize)]
struct WaitCounts {
    open: u64,
    without_end: u64,
    without_start: u64,
}

#[derive(Serialize)]
struct Cpu {
    system_cores: Option<f64>,
    sampled_cores: Option<f64>,
    sampler_cores: Option<f64>,
    compilation_cores: Option<f64>,
    collection_cores: Option<f64>,
    pool_spin: f64,
    session: f64,
}

/// A function.
#[derive(Serialize)]
pub(super) struct Frame<'s> {
    pub(super) name: &'s str,
    exclusive: f64,
    inclusive: f64,
    own_share: f64,
    pub(super) own: bool,
    #[serde(flatten)]
    before: Option<FrameBefore>,
    /// The two shares that the text shows.
    #[serde(skip)]
    pub(super) columns: [f64; 2],
}

#[derive(Serialize)]
struct FrameBefore {
    exclusive_before: f64,
    inclusive_before: f64,
    own_share_before: f64,
}

#[derive(Serialize)]
pub(super) struct Types<'s> {
    pub(super) types: Vec<Type<'s>>,
    pub(super) type_functions: Vec<Type<'s>>,
}

/// A type of objects, or a function that allocates objects of a type.
#[derive(Serialize)]
pub(super) struct Type<'s> {
    #[serde(rename = "type")]
    pub(super) type_name: Option<&'s str>,
    pub(super) bytes: Integer,
    pub(super) count: u64,
    pub(super) share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function: Option<&'s str>,
}

#[derive(Serialize)]
pub(super) struct Thread<'s> {
    pub(super) process_id: Option<Integer>,
    pub(super) thread_id: Integer,
    pub(super) name: Option<&'s str>,
    pub(super) share: f64,
    pub(super) top: &'s str,
    #[serde(skip)]
    pub(super) total: u64,
}

/// A line of the tree.
#[derive(Serialize)]
pub(super) struct Call<'s> {
    #[serde(flatten)]
    pub(super) frame: Frame<'s>,
    depth: usize,
    #[serde(skip)]
    pub(super) line: &'s CallLine,
}

impl<'s> Rows<'s> {
    /// Makes the rows. `system` is the CPU time of the process by the system.
    pub(super) fn new(
        report: &'s CallReport<'s>,
        query: &'s ReportQuery,
        lost: u64,
        system: Option<&'s CpuUsage>,
    ) -> Self {
        let CallReport { clock, tree, names, uncounted, .. } = report;
        let share = |weight| tree.share(weight);
        let frame = |entry: &Entry, columns: [u64; 2]| Frame {
            name: names.text(entry.frame),
            exclusive: share(entry.exclusive),
            inclusive: share(entry.inclusive),
            own_share: share(entry.own),
            own: entry.is_own,
            before: None,
            columns: columns.map(share),
        };
        let of_program = |entry: &Entry| frame(entry, [entry.own, entry.inclusive]);
        let function = |entry: &Entry| match query.order {
            Order::Own => of_program(entry),
            _ => frame(entry, [entry.exclusive, entry.inclusive]),
        };
        let call = |line: &'s CallLine| {
            let frame = frame(&line.entry, [line.entry.inclusive, line.entry.exclusive]);
            Call { frame, depth: line.depth, line }
        };
        let type_row = |row: &TypeRow<'s>| Type {
            type_name: (row.type_name != UNKNOWN_TYPE).then_some(row.type_name),
            bytes: Integer(row.bytes),
            count: row.count,
            share: share(row.bytes),
            function: row.function,
        };
        let thread = |row: &ThreadRow<'s>| Thread {
            process_id: (row.process != 0).then_some(Integer(row.process)),
            thread_id: Integer(row.id),
            name: (!row.name.is_empty()).then_some(row.name),
            share: share(row.total),
            top: row.top,
            total: row.total,
        };
        Self {
            clock: match clock {
                Clock::Cpu => "cpu",
                Clock::Wall => "wall",
                Clock::ThreadTime | Clock::SampledTime => "thread-time",
                Clock::Allocations | Clock::AllocatedTypes => "allocations",
                Clock::Exceptions => "exceptions",
                Clock::Contention => "contention",
                _ => "event",
            },
            unit: clock.unit().name(),
            total: Integer(tree.total()),
            samples: report.count,
            lost,
            unnamed_frames: tree.unnamed_share(names),
            not_own: share(tree.not_own()),
            before: report
                .older
                .as_ref()
                .map(|older| Before { total_before: Integer(older.total), samples_before: older.count }),
            left_out: tree.left_out().map(|frame| names.text(frame)).collect(),
            waits: (*clock == Clock::Contention).then_some(Waits {
                waits: WaitCounts {
                    open: uncounted.waits.open,
                    without_end: uncounted.waits.without_end,
                    without_start: uncounted.waits.without_start,
                },
                waiting_before: uncounted.waiting_before,
            }),
            uncounted: Some(uncounted.unknown).filter(|unknown| *unknown > 0),
            tells_running: report.hides_running.then_some(false),
            cpu: report.cpu.as_ref().map(|cpu| Cpu {
                system_cores: system.map(|system| system.cores),
                sampled_cores: cpu.cores,
                sampler_cores: system.map(|system| system.sampler),
                compilation_cores: system.map(|system| system.compilation),
                collection_cores: system.map(|system| system.collection),
                pool_spin: share(cpu.causes.pool_spin),
                session: share(cpu.causes.session),
            }),
            frames: match &report.older {
                Some(older) => {
                    older.changes.iter().take(query.top).map(|of| changed(of, query.order)).collect()
                }
                None => report.top.iter().take(query.top).map(function).collect(),
            },
            types: report.types.as_ref().map(|rows| Types {
                types: rows.types.iter().map(type_row).collect(),
                type_functions: rows.functions.iter().map(type_row).collect(),
            }),
            threads: query.threads.then(|| report.threads.iter().map(thread).collect()),
            tree: query.calls.then(|| report.calls.iter().map(call).collect()),
            own_first: report.own_first.iter().map(of_program).collect(),
            system,
            report,
            query,
        }
    }
}

/// Returns the row of a function whose shares differ, which the text shows before and after.
fn changed<'s>(change: &Change<'s>, order: Order) -> Frame<'s> {
    let [exclusive_before, exclusive] = change.exclusive;
    let [inclusive_before, inclusive] = change.inclusive;
    let [own_share_before, own_share] = change.own;
    Frame {
        name: change.name,
        exclusive,
        inclusive,
        own_share,
        own: change.is_own,
        before: Some(FrameBefore { exclusive_before, inclusive_before, own_share_before }),
        columns: change.shares(order),
    }
}
