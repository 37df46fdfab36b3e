//! Analyses that find things of one kind in a trace, one by one: what `gc` and `jit` have in common.
use core::ops::ControlFlow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use nettrace_analysis::{Analysis, Part};
use serde_json::Value;

use super::analysis_input::{AnalysisArgs, Needs};
use crate::output::failure::Failure;
use crate::output::globals::Globals;
use crate::output::next_command::show_next;
use crate::output::rows::{Row, rows_to_stdout};
use crate::output::stdout::{json_to_stdout, to_stdout};
use crate::output::tables::{table_of_numbers, write_table};
use crate::process::trace_target::TraceTargetArgs;

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
    pub(crate) analysis: AnalysisArgs,
}

/// What a command shows of an analysis whose findings have `N` columns with `--json` and `--csv`.
pub(crate) trait FindingsView<const N: usize>: Default {
    type Analysis: Analysis<Report: Default>;
    type Finding: Default;
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
    fn rest(report: &mut ViewReport<N, Self>) -> Vec<Self::Finding>;
    fn row(finding: &Self::Finding) -> Row<N>;
    /// Adds a finding and its number to the summary, which shows `top` findings.
    fn add(&mut self, finding: Self::Finding, number: u64, top: usize);
    fn to_json(&self, report: &ViewReport<N, Self>) -> Value;
    fn write(&self, report: &ViewReport<N, Self>, is_summary: bool, out: &mut dyn Write) -> io::Result<()>;
    /// Returns remarks on what the trace does not have completely.
    fn remarks(_report: &ViewReport<N, Self>) -> Vec<String> {
        Vec::new()
    }
}

/// The report of the analysis of a view.
type ViewReport<const N: usize, V> = <<V as FindingsView<N>>::Analysis as Analysis>::Report;

impl FindingsArgs {
    /// Shows the findings of the process or of the trace.
    pub(crate) fn run<const N: usize, V: FindingsView<N>>(
        &self,
        needs: Needs,
        globals: &Globals,
    ) -> Result<(), Failure> {
        let input = self.analysis.input(&self.target, globals)?;
        let (mut view, mut report, mut count) = (V::default(), ViewReport::<N, V>::default(), 0_u64);
        let read = |is_output, show: &mut dyn FnMut(&V::Finding) -> ControlFlow<()>| {
            let mut take = |finding: V::Finding| {
                count = count.saturating_add(1);
                show(&finding)?;
                view.add(finding, count, self.top);
                ControlFlow::Continue(())
            };
            let mut analysis = V::of_part(input.part.part());
            let read = input.read(needs, is_output, globals, |event| {
                analysis.event(event);
                core::iter::from_fn(|| V::pop(&mut analysis)).try_for_each(&mut take)
            });
            report = analysis.finish();
            // The break is ignored: the output reports its error itself.
            let _ = V::rest(&mut report).into_iter().try_for_each(take);
            read?.result
        };
        if self.csv || (globals.json && !self.summary) {
            let columns = V::row(&V::Finding::default()).map(|(name, _)| name);
            rows_to_stdout(self.csv, input.is_live(), columns, |add| {
                read(true, &mut |finding| add(V::row(finding)))
            })?;
        } else {
            let read = read(false, &mut |_| ControlFlow::Continue(()));
            if globals.json {
                json_to_stdout(&view.to_json(&report))?;
            } else if count > 0 {
                to_stdout(|out| view.write(&report, self.summary, out))?;
                show_next(&V::NEXT.replace("TARGET", &input.target.argument()), globals)?;
            }
            read?;
        }
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

/// Whether findings belong to several processes.
#[derive(Debug, Default)]
pub(crate) struct SeenProcesses {
    first: Option<Option<u64>>,
    are_several: bool,
}

impl SeenProcesses {
    pub(crate) fn add(&mut self, process_id: Option<u64>) {
        self.are_several |= *self.first.get_or_insert(process_id) != process_id;
    }

    /// Writes a table of findings: numbers, except for the columns in `texts`. If there are several processes, it has a
    /// column for them before the others.
    pub(crate) fn write_table<const N: usize>(
        &self,
        header: &[&str; N],
        texts: &[usize],
        rows: impl Iterator<Item = (Option<u64>, [String; N])>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let added = usize::from(self.are_several);
        let header: Vec<_> = ["PROCESS"].iter().take(added).chain(header).copied().collect();
        let texts: Vec<_> = texts.iter().map(|place| place.saturating_add(added)).collect();
        let mut table = table_of_numbers(&header, &texts);
        for (process_id, cells) in rows {
            let process = self.are_several.then(|| process_id.map_or_else(String::new, |id| id.to_string()));
            table.add_row(process.into_iter().chain(cells));
        }
        write_table(&table, out)
    }
}

/// Adds a finding, and removes the one with the smallest key if there are more than `limit`.
pub(crate) fn add_largest<K: Ord, T>(largest: &mut BTreeMap<K, T>, key: K, finding: T, limit: usize) {
    largest.insert(key, finding);
    if largest.len() > limit {
        largest.pop_first();
    }
}
