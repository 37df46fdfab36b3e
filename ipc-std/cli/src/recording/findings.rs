//! Analyses that find things of one kind in a trace, one by one: what `gc` and `jit` have in common.
use core::ops::ControlFlow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use nettrace_analysis::{Analysis, Part};
use serde::Serialize;

use super::analysis_input::{AnalysisArgs, Needs};
use crate::args::zone_args::ZoneArgs;
use crate::output::dates::Dates;
use crate::output::rows::rows_to_stdout;
use crate::output::stdout::{json_to_stdout, show_next, to_stdout};
use crate::output::tables::{Cells, table_of_rows, write_table};
use crate::process::trace_target::TraceTargetArgs;
use crate::run::{Failure, Globals};

/// The options of `gc` and `jit`. Each command adds the help texts of `--top` and `--csv`.
#[derive(Debug, clap::Args)]
pub(crate) struct FindingsArgs {
    #[command(flatten)]
    target: TraceTargetArgs,
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with = "csv")]
    top: usize,
    /// Show only the statistics
    #[arg(long, conflicts_with = "csv")]
    summary: bool,
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    pub(crate) analysis: AnalysisArgs,
}

/// What a command shows of an analysis.
pub(crate) trait FindingsView: Sized {
    type Analysis: Analysis<Report: Default>;
    type Finding: Default;
    /// A finding with `--json` and `--csv`.
    type Row: Serialize;
    /// What the summary sorts findings by.
    type Key: Ord;
    /// For a process without findings: what the process did not do, and a hint. It completes a sentence.
    const NONE_IN_PROCESS: [&str; 2];
    /// For a trace without findings: what the trace does not have, and a hint. It completes a sentence.
    const NONE_IN_TRACE: [&str; 2];

    /// The obvious next command after the tables. `TARGET` stands for the process or the trace.
    const NEXT: &'static str;

    /// Returns an analysis that finds what is in a part of the trace.
    fn of_part(part: Part) -> Self::Analysis;
    /// Returns the next finding.
    fn pop(analysis: &mut Self::Analysis) -> Option<Self::Finding>;
    /// Returns the findings that `pop` has not returned.
    fn rest(report: &mut ViewReport<Self>) -> Vec<Self::Finding>;
    fn row(finding: &Self::Finding, dates: &Dates) -> Self::Row;
    fn process_id(finding: &Self::Finding) -> Option<u64>;
    /// Returns the key of a finding with its number; `None` if it is incomplete.
    fn key(finding: &Self::Finding, number: u64) -> Option<Self::Key>;
    fn to_json(report: &ViewReport<Self>, incomplete: u64) -> impl Serialize;
    fn write(report: &ViewReport<Self>, shown: &ShownFindings<Self>, out: &mut dyn Write) -> io::Result<()>;
    /// Returns remarks on what the trace does not have completely.
    fn remarks(_report: &ViewReport<Self>) -> Vec<String> {
        Vec::new()
    }
}

/// The report of the analysis of a view.
type ViewReport<V> = <<V as FindingsView>::Analysis as Analysis>::Report;

impl FindingsArgs {
    /// Shows the findings of the process or of the trace.
    pub(crate) fn run<V: FindingsView>(&self, needs: Needs, globals: &Globals) -> Result<(), Failure> {
        let zone = self.zone.zone()?;
        let input = self.analysis.input(&self.target, globals)?;
        let (mut shown, mut report, mut count) = (ShownFindings::new(), ViewReport::<V>::default(), 0_u64);
        let mut dates = Dates::new(zone, None);
        let top = if self.summary { 0 } else { self.top };
        let empty = V::row(&V::Finding::default(), &dates);
        let read = |is_output, show: &mut dyn FnMut(&V::Finding, &Dates) -> ControlFlow<()>| {
            let mut take = |finding: V::Finding, dates: &Dates| {
                count = count.saturating_add(1);
                show(&finding, dates)?;
                shown.add(finding, count, top);
                ControlFlow::Continue(())
            };
            let mut analysis = V::of_part(input.part.part());
            let read = input.read(needs, is_output, globals, |event| {
                dates.begin(event.clock().unix_start());
                analysis.event(event);
                core::iter::from_fn(|| V::pop(&mut analysis)).try_for_each(|finding| take(finding, &dates))
            });
            report = analysis.finish();
            // The break is ignored: the output reports its error itself.
            let _ = V::rest(&mut report).into_iter().try_for_each(|finding| take(finding, &dates));
            let read = read?;
            // A trace without events has a start too.
            dates.begin(read.start);
            read.result
        };
        if self.csv || (globals.json && !self.summary) {
            rows_to_stdout(self.csv, input.is_live(), &empty, |add| {
                read(true, &mut |finding, dates| add(&V::row(finding, dates)))
            })?;
        } else {
            let read = read(false, &mut |_, _| ControlFlow::Continue(()));
            shown.dates = dates.clone();
            if globals.json {
                json_to_stdout(&V::to_json(&report, shown.incomplete))?;
            } else if count > 0 {
                to_stdout(|out| V::write(&report, &shown, out))?;
                show_next(&V::NEXT.replace("TARGET", &input.target.argument()), globals)?;
            }
            read?;
        }
        dates.report(globals);
        V::remarks(&report).iter().for_each(|remark| globals.note(remark));
        if count == 0 {
            let target = input.target;
            let [what, hint] = if input.is_live() { V::NONE_IN_PROCESS } else { V::NONE_IN_TRACE };
            globals.note(&match input.part.is_whole() {
                true => format!("{target} {what}; {hint}"),
                false => format!("{target} {what} in this part"),
            });
        }
        Ok(())
    }
}

/// The findings that the tables show: none with `--summary`.
pub(crate) struct ShownFindings<V: FindingsView> {
    first_process: Option<Option<u64>>,
    are_several: bool,
    pub(crate) incomplete: u64,
    /// The first incomplete findings.
    pub(crate) first_incomplete: Vec<V::Finding>,
    /// The complete findings with the largest keys.
    pub(crate) largest: BTreeMap<V::Key, V::Finding>,
    dates: Dates,
}

impl<V: FindingsView> ShownFindings<V> {
    fn new() -> Self {
        let (first_incomplete, largest) = (Vec::new(), BTreeMap::new());
        let dates = Dates::default();
        Self { first_process: None, are_several: false, incomplete: 0, first_incomplete, largest, dates }
    }

    fn add(&mut self, finding: V::Finding, number: u64, top: usize) {
        let process_id = V::process_id(&finding);
        self.are_several |= *self.first_process.get_or_insert(process_id) != process_id;
        if let Some(key) = V::key(&finding, number) {
            self.largest.insert(key, finding);
            if self.largest.len() > top {
                self.largest.pop_first();
            }
            return;
        }
        self.incomplete = self.incomplete.saturating_add(1);
        if self.first_incomplete.len() < top {
            self.first_incomplete.push(finding);
        }
    }

    /// Writes a table of findings: numbers, except for the columns in `texts`. If there are several processes, it has a
    /// column for them before the others.
    pub(crate) fn write_table<'f, const M: usize>(
        &self,
        texts: &[usize],
        findings: impl Iterator<Item = &'f V::Finding>,
        cells: fn(&V::Finding, &Dates) -> Cells<M>,
        out: &mut dyn Write,
    ) -> io::Result<()>
    where
        V::Finding: 'f,
    {
        let added = usize::from(self.are_several);
        let texts: Vec<_> = texts.iter().map(|place| place.saturating_add(added)).collect();
        let rows = findings.map(|finding| {
            let process_id = V::process_id(finding).map_or_else(String::new, |id| id.to_string());
            [("PROCESS", process_id)].into_iter().take(added).chain(cells(finding, &self.dates))
        });
        write_table(&table_of_rows(rows, &texts), out)
    }
}
