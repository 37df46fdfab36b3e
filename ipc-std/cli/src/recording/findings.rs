//! Analyses that find things of one kind in a trace, one by one: what `gc` and `jit` have in common.
use core::ops::ControlFlow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use nettrace::TraceEvent;
use nettrace_analysis::Part;
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

/// An analysis whose findings have `N` columns with `--json` and `--csv`.
pub(crate) trait Analysis<const N: usize>: Sized {
    type Finding: Default;
    /// For a process without findings: what the process did not do, and a hint. It completes a sentence.
    const NONE_IN_PROCESS: [&str; 2];
    /// For a trace without findings: what the trace does not have, and a hint. It completes a sentence.
    const NONE_IN_TRACE: [&str; 2];

    /// The obvious next command after the tables. `TARGET` stands for the process or the trace.
    const NEXT: &'static str;

    /// Returns an analysis that finds what is in a part of the trace.
    fn of_part(part: Part) -> Self;
    /// Takes the next event, or the end of the trace.
    fn event(&mut self, event: Option<&TraceEvent<'_>>);
    /// Returns the next finding.
    fn pop(&mut self) -> Option<Self::Finding>;
    fn row(finding: &Self::Finding) -> Row<N>;
    /// Adds a finding and its number to the summary, which shows `top` findings.
    fn add(&mut self, finding: Self::Finding, number: u64, top: usize);
    fn to_json(&self) -> Value;
    fn write(&self, is_summary: bool, out: &mut dyn Write) -> io::Result<()>;
    /// Returns remarks on what the trace does not have completely.
    fn remarks(&self) -> Vec<String>;
}

impl FindingsArgs {
    /// Shows the findings of the process or of the trace.
    pub(crate) fn run<const N: usize, A: Analysis<N>>(
        &self,
        needs: Needs,
        globals: &Globals,
    ) -> Result<(), Failure> {
        let input = self.analysis.input(&self.target, globals)?;
        let (mut analysis, mut count) = (A::of_part(input.part.part()), 0_u64);
        let read = |is_output, show: &mut dyn FnMut(&A::Finding) -> ControlFlow<()>| {
            let mut take = |event: Option<&TraceEvent<'_>>| {
                analysis.event(event);
                while let Some(finding) = analysis.pop() {
                    count = count.saturating_add(1);
                    show(&finding)?;
                    analysis.add(finding, count, self.top);
                }
                ControlFlow::Continue(())
            };
            let read = input.read(needs, is_output, globals, |event| take(Some(event)));
            // The break is ignored: the output reports its error itself.
            let _ = take(None);
            read?.result
        };
        if self.csv || (globals.json && !self.summary) {
            let columns = A::row(&A::Finding::default()).map(|(name, _)| name);
            rows_to_stdout(self.csv, input.is_live(), columns, |add| {
                read(true, &mut |finding| add(A::row(finding)))
            })?;
        } else {
            let read = read(false, &mut |_| ControlFlow::Continue(()));
            if globals.json {
                json_to_stdout(&analysis.to_json())?;
            } else if count > 0 {
                to_stdout(|out| analysis.write(self.summary, out))?;
                show_next(&A::NEXT.replace("TARGET", &input.target.argument()), globals)?;
            }
            read?;
        }
        analysis.remarks().iter().for_each(|remark| globals.note(remark));
        if count == 0 {
            let target = input.target;
            let [what, hint] = if input.is_live() { A::NONE_IN_PROCESS } else { A::NONE_IN_TRACE };
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
