//! The report as text.
use std::io::{self, Write};
use std::path::Path;

use indicatif::HumanCount;
use nettrace_analysis::call_tree::Order;
use nettrace_analysis::names::short_name;
use nettrace_analysis::report::CallReport;
use nettrace_analysis::samples::{Clock, UNKNOWN_TYPE, Unit};
use unicode_width::UnicodeWidthStr;

use super::frame::{CallRow, FunctionRow};
use super::options::Args;
use super::rows::ReportRows;
use super::threads::ThreadRow;
use super::types::{TypeRow, TypeRows};
use crate::input::source;
use crate::output::tables::write_more;
use crate::process::cpu_lines::{HIDES_RUNNING, cpu_lines, unnamed_line};
use crate::process::target::word;
use crate::process::trace_target::TraceTarget;
use crate::recording::sample_gaps::{NO_STACK, why_no_stack};
use crate::text::columns::{cut_end, terminal_width};
use crate::text::function_name::{FunctionName, function_name, mark};
use crate::text::printable::printable_name;

/// Writes the report.
pub(super) fn write(rows: &ReportRows<'_>, args: &Args, out: &mut dyn Write) -> io::Result<()> {
    let width = terminal_width().unwrap_or(usize::MAX);
    let text = ReportText { rows, report: rows.report, args, width };
    text.write_head(out)?;
    text.write_left_out(out)?;
    text.write_lines(out)?;
    if let Some(older) = &args.diff {
        return text.write_changes(older, out);
    }
    if let Some(types) = &rows.types {
        text.write_types(types, out)?;
    } else if rows.report.shows_top {
        text.write_top(out)?;
    }
    text.write_idle_threads(out)?;
    let has_weight = rows.total.0 > 0;
    if let Some(threads) = rows.threads.as_ref().filter(|_| has_weight) {
        text.write_threads(threads, out)?;
    }
    if let Some(calls) = rows.tree.as_ref().filter(|_| has_weight) {
        text.write_calls(calls, out)?;
    }
    Ok(())
}

/// Returns the command that shows more of the same.
pub(super) fn next_command(rows: &ReportRows<'_>, target: TraceTarget<'_>) -> String {
    let target = target.argument();
    let clock = match &rows.report.clock {
        Clock::Allocations | Clock::AllocatedTypes => return format!("dotnet-ipc gc {target}"),
        Clock::Contention => return format!("dotnet-ipc locks {target}"),
        Clock::Cpu => String::new(),
        Clock::Events { provider, event_id: Some(id) } => {
            format!(" --event {}", word(&format!("{provider}/{id}")))
        }
        Clock::Events { provider, event_id: None } => format!(" --event {}", word(provider)),
        Clock::AllEvents => " --event all".to_owned(),
        _ => format!(" --{}", rows.clock),
    };
    format!("dotnet-ipc flame {target}{clock} -o report.html")
}

struct ReportText<'r> {
    rows: &'r ReportRows<'r>,
    report: &'r CallReport<'r>,
    args: &'r Args,
    /// The columns of the terminal.
    width: usize,
}

impl ReportText<'_> {
    /// Writes what counts, and how much of it there is.
    fn write_head(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { rows, report, .. } = self;
        let what = match &report.clock {
            Clock::Cpu if report.samples.has_processor_samples() => {
                "CPU: samples of the processor, in managed and in other code"
            }
            Clock::Cpu => "CPU: samples of threads in managed code",
            Clock::Wall if report.samples.has_processor_samples() => {
                "Wall clock: samples of the processor, and one for each millisecond off it"
            }
            Clock::ThreadTime if report.samples.has_processor_samples() => {
                "Thread time: a millisecond a sample of the processor, and the time off it"
            }
            Clock::Wall => "Wall clock: samples of all threads",
            Clock::ThreadTime => "Thread time: from sample to sample, waiting included",
            Clock::Allocations | Clock::AllocatedTypes if report.samples.has_sampled_allocations() => {
                "Allocated bytes, estimated by sampled allocations"
            }
            Clock::Allocations | Clock::AllocatedTypes => "Allocated bytes, by an event every 100 KB or so",
            Clock::Exceptions => "Thrown exceptions",
            Clock::Contention => "Time of waiting for locks",
            Clock::Waits => "Time of waiting on WaitHandles",
            Clock::Events { provider, event_id: Some(id) } => {
                &format!("Events {}/{id}", printable_name(provider))
            }
            Clock::Events { provider, .. } => &format!("Events of {}", printable_name(provider)),
            _ => "All events with a stack",
        };
        let count = HumanCount(rows.samples);
        let counted = match report.clock.unit() {
            Unit::Samples if report.clock == Clock::Cpu => {
                format!("{count} of {} samples", HumanCount(report.samples.samples()))
            }
            Unit::Samples => format!("{count} samples"),
            Unit::Events => format!("{count} events"),
            Unit::Nanoseconds | Unit::Bytes => {
                format!("{} in {count} events", self.amount(rows.total.0))
            }
        };
        let (lost, unnamed) = (HumanCount(rows.lost), rows.unnamed_frames);
        writeln!(out, "{what}\n{counted}, {lost} events lost, {unnamed:.2} % of frames unnamed")?;
        writeln!(out, "recorded {}", rows.span)?;
        if let dropped @ 1.. = report.samples.dropped().saturating_add(report.samples.stacks().cut()) {
            let dropped = HumanCount(dropped);
            writeln!(out, "{dropped} events have more different stacks than this report counts")?;
        }
        if report.hides_running() {
            writeln!(out, "{}", cut_end(HIDES_RUNNING, self.width))?;
        }
        Ok(())
    }

    /// Writes which functions at the end of stacks are left out.
    fn write_left_out(&self, out: &mut dyn Write) -> io::Result<()> {
        const SHOWN: usize = 3;
        let left_out = &self.rows.left_out;
        // That threads stop for a sample somewhere is no part of an answer.
        if left_out.is_empty() || self.report.clock.unit() == Unit::Samples {
            return Ok(());
        }
        let more = match left_out.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let names = left_out.iter().take(SHOWN).map(|name| printable_name(short_name(name)));
        let names = names.collect::<Vec<_>>().join(", ");
        let line = format!("without the runtime's functions that do it: {names}{more}");
        writeln!(out, "{}", cut_end(&line, self.width))
    }

    /// Writes what samples do not see, and before it the functions of the program: they are what the reader can change.
    fn write_lines(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { rows, report, .. } = self;
        let own_first = &rows.own_first;
        let mut lines = report.cpu.as_ref().map(|cpu| cpu_lines(cpu, rows.system)).unwrap_or_default();
        let share = |weight| report.tree.share(weight);
        lines.extend(report.unnamed.and_then(|of| unnamed_line(share(of.exclusive), share(of.inclusive))));
        if !own_first.is_empty() {
            writeln!(out, "\n{:>9} {:>9}  FUNCTION OF THE PROGRAM", "OWN", "INCLUSIVE")?;
            self.write_frames(own_first, None, out)?;
            if !lines.is_empty() {
                writeln!(out)?;
            }
        }
        lines.iter().try_for_each(|line| writeln!(out, "{}", cut_end(line, self.width)))
    }

    fn write_top(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { rows, report, args, .. } = self;
        if !report.has_functions() {
            return self.write_no_stack(out);
        }
        let is_by_own = args.by == Order::Own;
        let share = if is_by_own { "OWN" } else { "EXCLUSIVE" };
        writeln!(out, "\n{share:>9} {:>9}  FUNCTION", "INCLUSIVE")?;
        let not_own = Some(rows.not_own).filter(|share| is_by_own && *share > 0.0);
        self.write_frames(&rows.frames, not_own, out)?;
        write_more(report.top.len(), args.top, " functions", out)
    }

    /// Writes functions, and where the share of the stacks without own code belongs among them.
    fn write_frames(
        &self,
        frames: &[FunctionRow<'_>],
        mut not_own: Option<f64>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let write_rest =
            |share: f64, out: &mut dyn Write| writeln!(out, "{share:>7.2} % {:>9}  [no own code]", "");
        for frame in frames {
            let [first, second] = frame.columns;
            if let Some(share) = not_own.take_if(|share| *share > first) {
                write_rest(share, out)?;
            }
            let start = format!("{first:>7.2} % {second:>7.2} % {}", mark(frame.own));
            self.write_line(&start, frame.name, out)?;
        }
        not_own.map_or(Ok(()), |share| write_rest(share, out))
    }

    fn write_changes(&self, older: &Path, out: &mut dyn Write) -> io::Result<()> {
        let Self { rows, report, args, .. } = self;
        let count = HumanCount(rows.before.as_ref().map_or(0, |before| before.samples_before));
        let what = if report.clock.unit() == Unit::Samples { "samples" } else { "events" };
        writeln!(out, "Before: {}, {count} {what}", source::name(older))?;
        let all = report.older.as_ref().map_or(0, |older| older.changes.len());
        if all == 0 {
            return writeln!(out, "\nAll shares are equal");
        }
        let kind = match args.by {
            Order::Exclusive => "EXCLUSIVE",
            Order::Inclusive => "INCLUSIVE",
            Order::Own => "OWN",
        };
        writeln!(out, "\n{:>9} {:>9} {:>9}  FUNCTION, BY {kind} SHARE", "BEFORE", "AFTER", "CHANGE")?;
        for frame in &rows.frames {
            let [before, after] = frame.columns;
            let (change, mark) = (after - before, mark(frame.own));
            let start = format!("{before:>7.2} % {after:>7.2} % {change:>+7.2} % {mark}");
            self.write_line(&start, frame.name, out)?;
        }
        write_more(all, args.top, " functions", out)
    }

    fn write_types(&self, rows: &TypeRows<'_>, out: &mut dyn Write) -> io::Result<()> {
        let TypeRows { types, type_functions, all } = rows;
        let start = |row: &TypeRow<'_>| {
            let TypeRow { share, bytes, count, .. } = row;
            format!("{share:>7.2} % {:>14}  {count:>9}  ", self.amount(bytes.0))
        };
        let line = |row: &TypeRow<'_>, name: &str| cut_end(&format!("{}{name}", start(row)), self.width);
        let type_name = |row: &TypeRow<'_>| row.type_name.unwrap_or(UNKNOWN_TYPE).to_owned();
        writeln!(out, "\n{:>9} {:>14}  {:>9}  TYPE", "SHARE", "BYTES", "COUNT")?;
        for row in types {
            writeln!(out, "{}", line(row, &printable_name(&type_name(row))))?;
        }
        write_more(*all, types.len(), " types", out)?;
        if type_functions.is_empty() {
            return self.write_no_stack(out);
        }
        writeln!(out, "\n{:>9} {:>14}  {:>9}  TYPE, FUNCTION", "SHARE", "BYTES", "COUNT")?;
        for row in type_functions {
            let room = self.width.saturating_sub(start(row).width()).saturating_sub(2);
            let type_name = function_name(&type_name(row), room / 2);
            let function = row.function.unwrap_or_default();
            let function = self.name(function, room.saturating_sub(type_name.width()));
            writeln!(out, "{}", line(row, &format!("{type_name}, {function}")))?;
        }
        Ok(())
    }

    fn write_no_stack(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n{NO_STACK}: {}", why_no_stack(&self.report.clock, self.report.samples.has_stacks()))
    }

    /// Writes how many threads were never seen in managed code.
    fn write_idle_threads(&self, out: &mut dyn Write) -> io::Result<()> {
        let (threads, samples) = self.report.idle_threads;
        if threads == 0 {
            return Ok(());
        }
        let (verb, s) = if threads == 1 { ("s", "") } else { ("", "s") };
        let samples = HumanCount(samples);
        writeln!(
            out,
            "\n{threads} thread{s} only wait{verb} or run{verb} native code ({samples} samples); --wall shows where"
        )
    }

    fn write_threads(&self, threads: &[ThreadRow<'_>], out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n{:>9} {:>12}  {:>10}  NAME, TOP FUNCTION", "SHARE", "AMOUNT", "THREAD")?;
        for row in threads.iter().take(self.args.top) {
            let process = row.process_id.map_or_else(String::new, |id| format!("{}/", id.0));
            let id = format!("{process}{}", row.thread_id.0);
            let name = row.name.map_or_else(String::new, |name| format!("{}, ", printable_name(name)));
            let start = format!("{:>7.2} % {:>12}  {id:>10}  {name}", row.share, self.amount(row.total));
            self.write_line(&start, row.top, out)?;
        }
        write_more(threads.len(), self.args.top, " threads", out)
    }

    fn write_calls(&self, calls: &[CallRow<'_>], out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n{:>9} {:>9}  CALLS", "INCLUSIVE", "EXCLUSIVE")?;
        for CallRow { frame, indent, is_branch, .. } in calls {
            let [inclusive, exclusive] = frame.columns;
            let (branch, own) = (if *is_branch { '+' } else { ' ' }, mark(frame.own));
            let start = format!("{inclusive:>7.2} % {exclusive:>7.2} %  {:indent$}{branch}{own}", "");
            self.write_line(&start, frame.name, out)?;
        }
        if self.rows.has_more_calls {
            writeln!(out, "more calls; --top shows more")?;
        }
        Ok(())
    }

    /// Writes the start of a line and the name of a function, as much as there is room for.
    fn write_line(&self, start: &str, name: &str, out: &mut dyn Write) -> io::Result<()> {
        let name = self.name(name, self.width.saturating_sub(start.width()));
        writeln!(out, "{}", cut_end(&format!("{start}{name}"), self.width))
    }

    /// Returns the name of a function for a column of this width.
    fn name(&self, name: &str, width: usize) -> String {
        FunctionName::new(name, self.args.is_exact(&self.report.clock)).fit(width)
    }

    /// Returns a weight with its unit.
    fn amount(&self, weight: u64) -> String {
        match self.report.clock.unit() {
            Unit::Nanoseconds => format!("{:.3} ms", weight as f64 / 1e6),
            Unit::Bytes => format!("{:.3} MB", weight as f64 / 1e6),
            Unit::Samples | Unit::Events => HumanCount(weight).to_string(),
        }
    }
}
