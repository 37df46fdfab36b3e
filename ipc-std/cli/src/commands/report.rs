//! `report`: where a program spends its time, by the samples and events of a process or of a trace.
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use indicatif::HumanCount;
use nettrace_analysis::Analysis as _;
use nettrace_analysis::call_tree::{self, CallTree, Change, Entry, NodeId, Order};
use nettrace_analysis::names::Names;
use nettrace_analysis::samples::{Clock, Samples, ThreadNumber, UNKNOWN_TYPE, Unit, Waits, Weight};
use serde_json::{Map, Value, json};
use unicode_width::UnicodeWidthStr;

use crate::args::frame_args::FrameArgs;
use crate::output::columns::{cut_end, terminal_width};
use crate::output::failure::Failure;
use crate::output::function_name::{FunctionName, function_name, mark};
use crate::output::globals::Globals;
use crate::output::next_command::show_next;
use crate::output::printable::{integer, printable_name};
use crate::output::stdout::{json_to_stdout, to_stdout};
use crate::output::tables::write_more;
use crate::process::cpu_usage::CpuUsage;
use crate::process::target::word;
use crate::process::trace_target::{TraceTarget, TraceTargetArgs};
use crate::recording::analysis_input::{AnalysisArgs, InputRead, Needs};
use crate::recording::thread_samples;
use crate::stacks::clock_args::{self, ClockArgs};
use crate::stacks::cpu_lines::{CpuSummary, HIDES_RUNNING, unnamed_line};

/// Show the functions of a process or of a trace that take the most time, or allocate, throw or wait
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("report.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    target: TraceTargetArgs,
    /// Show N functions
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Sort the functions by this share
    #[arg(long, value_name = "SHARE", default_value = "exclusive")]
    by: ReportOrder,
    #[command(flatten)]
    clock: ClockArgs,
    /// Show the threads, the heaviest first
    #[arg(long)]
    threads: bool,
    /// Show the calls from the root, down to 1 % of the total, in up to 5 N lines; `+` is one of several callees
    #[arg(long)]
    tree: bool,
    /// Leave out modules and arguments of functions
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    frames: FrameArgs,
    /// Show the functions whose shares differ most from those in OLD
    #[arg(long, value_name = "OLD", conflicts_with_all = ["threads", "tree"])]
    diff: Option<PathBuf>,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ReportOrder {
    Exclusive,
    Inclusive,
    Own,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<(), Failure> {
    let (clock, clock_name) = args.clock.clock()?;
    // A mistake on the command line is reported before the older trace is read, which can take long.
    let input = args.analysis.input(&args.target, globals)?;
    let old = args.diff.as_deref().map(|trace| ReadOld::read(trace, &clock, args, globals)).transpose()?;
    let samples = args.samples(&clock).of_part(input.part.part());
    let (mut samples, InputRead { lost, cpu, client, result: read, .. }) =
        input.analyse(Needs::of(core::slice::from_ref(&clock)), samples, globals)?;
    if let (Clock::Contention, Some(client), Ok(()), true) =
        (&clock, &client, &read, samples.part().is_whole())
    {
        samples.begin_trace();
        // A failure is ignored: without samples, only a note is missing.
        let _ = thread_samples::read(client, |event| samples.event(event));
    }
    let thread_names = cpu.as_ref().map(|cpu| cpu.thread_names.clone()).unwrap_or_default();
    let hides_running = clock_args::shown(&mut samples, clock.clone()) != clock
        || old.as_ref().is_some_and(|old| old.hides_running);
    // The figure of the system is that of the whole process and of the whole recording.
    let cpu = cpu.filter(|_| samples.part().is_whole());
    let cpu = (clock == Clock::Cpu).then(|| CpuSummary::new(&mut samples, cpu));
    let (clock, clock_name) = if hides_running { (Clock::Wall, "wall") } else { (clock, clock_name) };
    let old = old.map(|old| old.by(&clock, args)).transpose()?;
    let tree = args.tree(&mut samples, &clock, |_, weight| weight.total());
    // That no thread runs is a result.
    let has_result = tree.total() > 0 || (clock == Clock::Cpu && samples.samples() > 0);
    if !has_result && read.is_err() {
        // That the trace cannot be read explains why nothing was found.
        return read;
    }
    let nothing = (!has_result).then(|| clock_args::nothing(&mut samples, &clock, input.target));
    let by_type = args.clock.by_type;
    let counts = by_type.then(|| args.tree(&mut samples, &clock, |_, weight| weight.count));
    let report =
        CallReport { args, clock, clock_name, tree, counts, lost, old, cpu, hides_running, thread_names };
    if globals.json {
        json_to_stdout(&report.to_json(&mut samples))?;
    }
    if let Some(failure) = nothing {
        return Err(failure);
    }
    clock_args::remarks(&mut samples, &report.clock).iter().for_each(|remark| globals.note(remark));
    if !globals.json {
        to_stdout(|out| report.write(&mut samples, out))?;
        show_next(&report.next_command(input.target), globals)?;
    }
    read
}

impl Args {
    /// Returns samples without any event.
    fn samples(&self, clock: &Clock) -> Samples {
        clock_args::samples(clock_args::recorded(clock), self.short, &self.frames)
    }

    /// Returns the tree of the frames that are shown.
    fn tree(
        &self,
        samples: &mut Samples,
        clock: &Clock,
        weigh: impl FnMut(ThreadNumber, Weight) -> u64,
    ) -> CallTree {
        let tree = if self.is_exact(clock) { CallTree::new } else { CallTree::of_origins };
        tree(samples, clock, weigh)
    }

    /// Returns whether all frames are shown, with their exact names. Thread time has the rule of another tool.
    fn is_exact(&self, clock: &Clock) -> bool {
        self.frames.raw || *clock == Clock::ThreadTime
    }
}

struct CallReport<'a> {
    args: &'a Args,
    clock: Clock,
    clock_name: &'static str,
    tree: CallTree,
    /// The tree of the numbers of events, by types of objects.
    counts: Option<CallTree>,
    lost: u64,
    old: Option<Old<'a>>,
    /// The CPU time, for its clock.
    cpu: Option<CpuSummary>,
    /// Whether the report has all samples because they do not tell which threads ran.
    hides_running: bool,
    /// The names of threads that the operating system has.
    thread_names: BTreeMap<u64, String>,
}

/// A type of objects, or a function that allocates objects of a type.
struct TypeRow<'n> {
    type_name: &'n str,
    function: &'n str,
    bytes: u64,
    count: u64,
}

/// The older trace that the trace is compared with.
struct Old<'a> {
    trace: TraceTarget<'a>,
    samples: Samples,
    tree: CallTree,
}

/// An older trace before the clock is known for which both traces have samples.
struct ReadOld<'a> {
    trace: TraceTarget<'a>,
    samples: Samples,
    hides_running: bool,
}

impl<'a> ReadOld<'a> {
    fn read(path: &'a Path, clock: &Clock, args: &Args, globals: &Globals) -> Result<Self, Failure> {
        let mut samples = clock_args::read_samples(args.samples(clock), path, globals)?;
        let hides_running = clock_args::shown(&mut samples, clock.clone()) != *clock;
        let read = Self { trace: TraceTarget::File(path), samples, hides_running };
        if hides_running { Ok(read) } else { read.check(clock) }
    }

    fn check(mut self, clock: &Clock) -> Result<Self, Failure> {
        let has_weight = self.samples.weights(clock).any(|(_, _, weight)| weight.total() > 0);
        if has_weight { Ok(self) } else { Err(clock_args::nothing(&mut self.samples, clock, self.trace)) }
    }

    fn by(self, clock: &Clock, args: &Args) -> Result<Old<'a>, Failure> {
        let Self { trace, mut samples, .. } = self.check(clock)?;
        let tree = args.tree(&mut samples, clock, |_, weight| weight.total());
        Ok(Old { trace, samples, tree })
    }
}

/// The text of an address that the trace does not name.
const UNNAMED: &str = "?!?";

/// A line of the tree.
struct CallLine {
    depth: usize,
    /// The columns by which the line is indented: a chain of calls without a fork stays in its column.
    indent: usize,
    /// Whether the function is one of several callees, or a root.
    is_branch: bool,
    entry: Entry,
}

/// A row of the list of threads.
struct ThreadRow {
    process: u64,
    id: u64,
    name: String,
    total: u64,
    /// The function in which the thread was sampled most often.
    top: String,
}

impl CallReport<'_> {
    /// Returns the command that shows more of the same.
    fn next_command(&self, target: TraceTarget<'_>) -> String {
        let target = target.argument();
        let clock = match &self.clock {
            Clock::Allocations | Clock::AllocatedTypes => return format!("dotnet-ipc gc {target}"),
            Clock::Contention => return format!("dotnet-ipc locks {target}"),
            Clock::Cpu => String::new(),
            Clock::Events { provider, event_id: Some(id) } => {
                format!(" --event {}", word(&format!("{provider}/{id}")))
            }
            Clock::Events { provider, event_id: None } => format!(" --event {}", word(provider)),
            Clock::AllEvents => " --event all".to_owned(),
            _ => format!(" --{}", self.clock_name),
        };
        format!("dotnet-ipc flame {target}{clock} -o report.html")
    }

    fn order(&self) -> Order {
        match self.args.by {
            ReportOrder::Exclusive => Order::Exclusive,
            ReportOrder::Inclusive => Order::Inclusive,
            ReportOrder::Own => Order::Own,
        }
    }

    /// Returns the functions in the order of the report. By own share, only those of the program have a place.
    fn top(&self) -> Vec<Entry> {
        let mut top = self.tree.top(self.order());
        if let ReportOrder::Own = self.args.by {
            top.retain(|entry| entry.own > 0);
        }
        top
    }

    /// Returns a name for a column of this width.
    fn name(&self, name: &str, width: usize) -> String {
        FunctionName::new(name, self.args.is_exact(&self.clock)).fit(width)
    }

    fn to_json(&self, samples: &mut Samples) -> Value {
        let share = |weight| self.tree.share(weight);
        let threads = self.args.threads.then(|| {
            let row = |row: ThreadRow| {
                json!({
                    "process_id": (row.process != 0).then(|| integer(row.process)),
                    "thread_id": integer(row.id),
                    "name": (!row.name.is_empty()).then_some(row.name),
                    "share": share(row.total),
                    "top": row.top,
                })
            };
            self.threads(samples).into_iter().map(row).collect::<Value>()
        });
        let waiting_before = call_tree::old_waits(samples).len();
        let names = samples.names();
        let frame = |entry: Entry| {
            json!({
                "name": names.text(entry.frame),
                "exclusive": share(entry.exclusive),
                "inclusive": share(entry.inclusive),
                "own_share": share(entry.own),
                "own": entry.is_own,
            })
        };
        let frames = self.top().into_iter().take(self.args.top).map(frame);
        let frames = match &self.old {
            Some(old) => {
                let change = |change: Change<'_>| {
                    let [exclusive_before, exclusive] = change.exclusive;
                    let [inclusive_before, inclusive] = change.inclusive;
                    let [own_share_before, own_share] = change.own;
                    json!({
                        "name": change.name,
                        "exclusive": exclusive,
                        "inclusive": inclusive,
                        "own_share": own_share,
                        "own": change.is_own,
                        "exclusive_before": exclusive_before,
                        "inclusive_before": inclusive_before,
                        "own_share_before": own_share_before,
                    })
                };
                self.changes(samples, old).into_iter().take(self.args.top).map(change).collect()
            }
            None => frames.collect(),
        };
        let mut object = Map::new();
        let mut add = |name: &str, value: Value| _ = object.insert(name.to_owned(), value);
        add("clock", self.clock_name.into());
        add("unit", self.clock.unit().name().into());
        add("total", integer(self.tree.total()));
        add("samples", samples.count(&self.clock).into());
        add("lost", self.lost.into());
        add("unnamed_frames", self.tree.unnamed_share(names).into());
        add("not_own", share(self.tree.not_own()).into());
        if let Some(old) = &self.old {
            add("total_before", integer(old.tree.total()));
            add("samples_before", old.samples.count(&self.clock).into());
        }
        if self.tree.left_out().len() > 0 {
            add("left_out", self.tree.left_out().map(|frame| names.text(frame)).collect());
        }
        if self.clock == Clock::Contention {
            let Waits { open, without_end, without_start, .. } = samples.waits();
            let waits = json!({
                "open": open,
                "without_end": without_end,
                "without_start": without_start,
            });
            add("waits", waits);
            add("waiting_before", waiting_before.into());
        }
        if let uncounted @ 1.. = samples.unknown(&self.clock) {
            add("uncounted", uncounted.into());
        }
        if self.hides_running {
            add("tells_running", false.into());
        }
        if let Some(CpuSummary { sampled_cores, causes, system, .. }) = &self.cpu {
            let system = |part: fn(&CpuUsage) -> f64| Value::from(system.as_ref().map(part));
            add("system_cores", system(|system| system.cores));
            add("sampled_cores", (*sampled_cores).into());
            add("sampler_cores", system(|system| system.sampler));
            add("compilation_cores", system(|system| system.compilation));
            add("collection_cores", system(|system| system.collection));
            add("pool_spin", share(causes.pool_spin).into());
            add("session", share(causes.session).into());
        }
        add("frames", frames);
        if self.counts.is_some() {
            let row = |row: &TypeRow<'_>| {
                json!({
                    "type": (row.type_name != UNKNOWN_TYPE).then_some(row.type_name),
                    "bytes": integer(row.bytes),
                    "count": row.count,
                    "share": share(row.bytes),
                })
            };
            let of_function = |of: &TypeRow<'_>| {
                let mut row = row(of);
                if let Some(row) = row.as_object_mut() {
                    row.insert("function".to_owned(), of.function.into());
                }
                row
            };
            let (types, functions) = self.types(names);
            add("types", types.iter().map(row).collect());
            add("type_functions", functions.iter().map(of_function).collect());
        }
        if let Some(threads) = threads {
            add("threads", threads);
        }
        if self.args.tree {
            let lines = self.lines();
            let node = |line: &CallLine| {
                let mut node = frame(line.entry);
                if let Some(node) = node.as_object_mut() {
                    node.insert("depth".to_owned(), line.depth.into());
                }
                node
            };
            add("tree", lines.0.iter().map(node).collect());
        }
        Value::Object(object)
    }

    fn write(&self, samples: &mut Samples, out: &mut dyn Write) -> io::Result<()> {
        let width = terminal_width().unwrap_or(usize::MAX);
        let what = match &self.clock {
            Clock::Cpu => "CPU: samples of threads in managed code".to_owned(),
            Clock::Wall => "Wall clock: samples of all threads".to_owned(),
            Clock::ThreadTime => "Thread time: from sample to sample, waiting included".to_owned(),
            Clock::Allocations | Clock::AllocatedTypes if samples.has_sampled_allocations() => {
                "Allocated bytes, estimated by sampled allocations".to_owned()
            }
            Clock::Allocations | Clock::AllocatedTypes => {
                "Allocated bytes, by an event every 100 KB or so".to_owned()
            }
            Clock::Exceptions => "Thrown exceptions".to_owned(),
            Clock::Contention => "Time of waiting for locks".to_owned(),
            Clock::Events { provider, event_id: Some(id) } => {
                format!("Events {}/{id}", printable_name(provider))
            }
            Clock::Events { provider, .. } => format!("Events of {}", printable_name(provider)),
            _ => "All events with a stack".to_owned(),
        };
        let counted = match self.clock.unit() {
            Unit::Samples if self.clock == Clock::Cpu => format!(
                "{} of {} samples",
                HumanCount(samples.count(&self.clock)),
                HumanCount(samples.samples())
            ),
            Unit::Samples => format!("{} samples", HumanCount(samples.count(&self.clock))),
            Unit::Events => format!("{} events", HumanCount(samples.count(&self.clock))),
            Unit::Nanoseconds | Unit::Bytes => {
                let (total, count) = (self.amount(self.tree.total()), samples.count(&self.clock));
                format!("{total} in {} events", HumanCount(count))
            }
        };
        let unnamed = self.tree.unnamed_share(samples.names());
        writeln!(out, "{what}")?;
        writeln!(out, "{counted}, {} events lost, {unnamed:.2} % of frames unnamed", HumanCount(self.lost))?;
        if let dropped @ 1.. = samples.dropped().saturating_add(samples.stacks().cut()) {
            writeln!(
                out,
                "{} events have more different stacks than this report counts",
                HumanCount(dropped)
            )?;
        }
        if self.hides_running {
            writeln!(out, "{}", cut_end(HIDES_RUNNING, width))?;
        }
        self.write_left_out(samples, width, out)?;
        // Functions of the program come first: they are what the reader can change.
        let has_top = self.tree.total() > 0 && !self.is_nearly_idle();
        let is_all = has_top && self.old.is_none() && self.counts.is_none();
        let is_own_first =
            is_all && self.order() != Order::Own && self.write_own_first(samples, width, out)?;
        let mut lines = self.cpu.as_ref().map(CpuSummary::lines).unwrap_or_default();
        lines.extend(self.unnamed_line(samples.names()).filter(|_| is_all));
        if is_own_first && !lines.is_empty() {
            writeln!(out)?;
        }
        lines.iter().try_for_each(|line| writeln!(out, "{}", cut_end(line, width)))?;
        if let Some(old) = &self.old {
            return self.write_changes(samples, old, width, out);
        }
        if self.counts.is_some() {
            self.write_types(samples, width, out)?;
        } else if has_top {
            self.write_top(samples, width, out)?;
        }
        if self.clock == Clock::Cpu {
            write_waiting(samples, out)?;
        }
        if self.args.threads && self.tree.total() > 0 {
            self.write_threads(samples, width, out)?;
        }
        if self.args.tree && self.tree.total() > 0 {
            self.write_tree(samples, width, out)?;
        }
        Ok(())
    }

    /// Returns whether the shares of the few samples are not an answer, unless they are asked for.
    fn is_nearly_idle(&self) -> bool {
        self.args.clock.is_default() && self.cpu.as_ref().is_some_and(CpuSummary::is_nearly_idle)
    }

    /// Writes which functions at the end of stacks are left out.
    fn write_left_out(&self, samples: &Samples, width: usize, out: &mut dyn Write) -> io::Result<()> {
        const SHOWN: usize = 3;
        let left_out = self.tree.left_out();
        // That threads stop for a sample somewhere is not part of an answer.
        if left_out.len() == 0 || self.clock.unit() == Unit::Samples {
            return Ok(());
        }
        let more = match left_out.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let names = left_out.take(SHOWN).map(|frame| printable_name(samples.names().short(frame)));
        let names = names.collect::<Vec<_>>().join(", ");
        writeln!(
            out,
            "{}",
            cut_end(&format!("without the runtime's functions that do it: {names}{more}"), width)
        )
    }

    /// Returns the types of objects, and the functions that allocate objects of each type; the heaviest first.
    fn types<'n>(&self, names: &'n Names) -> (Vec<TypeRow<'n>>, Vec<TypeRow<'n>>) {
        let counts = self.counts.as_ref();
        let of_tree = |tree: Option<&CallTree>| {
            let top = tree.map(|tree| tree.top(Order::Exclusive)).unwrap_or_default();
            top.into_iter().map(|entry| (entry.frame, entry.exclusive)).collect::<BTreeMap<_, _>>()
        };
        let count_of_type = of_tree(counts);
        let (mut types, mut functions) = (Vec::new(), Vec::new());
        let entries = self.tree.top(Order::Exclusive).into_iter().take(self.args.top);
        for entry in entries.filter(|entry| entry.exclusive > 0) {
            let type_name = names.text(entry.frame);
            let count = count_of_type.get(&entry.frame).copied().unwrap_or_default();
            types.push(TypeRow { type_name, function: "", bytes: entry.exclusive, count });
            let callers = counts.map(|counts| counts.callers(entry.frame)).unwrap_or_default();
            let count: BTreeMap<_, _> =
                callers.into_iter().map(|caller| (caller.frame, caller.inclusive)).collect();
            functions.extend(self.tree.callers(entry.frame).into_iter().map(|caller| TypeRow {
                type_name,
                function: names.text(caller.frame),
                bytes: caller.inclusive,
                count: count.get(&caller.frame).copied().unwrap_or_default(),
            }));
        }
        functions.sort_by_key(|row| core::cmp::Reverse(row.bytes));
        functions.truncate(self.args.top);
        (types, functions)
    }

    fn write_types(&self, samples: &Samples, width: usize, out: &mut dyn Write) -> io::Result<()> {
        let (types, functions) = self.types(samples.names());
        let start = |row: &TypeRow<'_>| {
            let (share, bytes, count) = (self.tree.share(row.bytes), self.amount(row.bytes), row.count);
            format!("{share:>7.2} % {bytes:>14}  {count:>9}  ")
        };
        let line = |row: &TypeRow<'_>, name: &str| cut_end(&format!("{}{name}", start(row)), width);
        writeln!(out, "\n{:>9} {:>14}  {:>9}  TYPE", "SHARE", "BYTES", "COUNT")?;
        for row in &types {
            writeln!(out, "{}", line(row, &printable_name(row.type_name)))?;
        }
        let all = self.tree.top(Order::Exclusive).iter().filter(|entry| entry.exclusive > 0).count();
        write_more(all, types.len(), " types", out)?;
        if functions.is_empty() {
            let why = clock_args::why_no_stack(samples, &self.clock);
            return writeln!(out, "\n{}: {why}", clock_args::NO_STACK);
        }
        writeln!(out, "\n{:>9} {:>14}  {:>9}  TYPE, FUNCTION", "SHARE", "BYTES", "COUNT")?;
        for row in &functions {
            let room = width.saturating_sub(start(row).width()).saturating_sub(2);
            let type_name = function_name(row.type_name, room / 2);
            let function = self.name(row.function, room.saturating_sub(type_name.width()));
            writeln!(out, "{}", line(row, &format!("{type_name}, {function}")))?;
        }
        Ok(())
    }

    /// Returns what the frame without a name is, if a notable share of stacks has it.
    fn unnamed_line(&self, names: &Names) -> Option<String> {
        let unnamed =
            self.tree.top(Order::Inclusive).into_iter().find(|entry| names.text(entry.frame) == UNNAMED)?;
        let [exclusive, inclusive] =
            [unnamed.exclusive, unnamed.inclusive].map(|weight| self.tree.share(weight));
        unnamed_line(exclusive, inclusive)
    }

    fn write_top(&self, samples: &Samples, width: usize, out: &mut dyn Write) -> io::Result<()> {
        let top = self.top();
        if self.tree.top(self.order()).is_empty() {
            let why = clock_args::why_no_stack(samples, &self.clock);
            return writeln!(out, "\n{}: {why}", clock_args::NO_STACK);
        }
        let not_own = (self.tree.not_own() > 0).then(|| self.tree.not_own());
        if let ReportOrder::Own = self.args.by {
            writeln!(out, "\n{:>9} {:>9}  FUNCTION", "OWN", "INCLUSIVE")?;
            self.write_own(samples, &top, not_own, self.args.top, width, out)?;
        } else {
            writeln!(out, "\n{:>9} {:>9}  FUNCTION", "EXCLUSIVE", "INCLUSIVE")?;
            for entry in top.iter().take(self.args.top) {
                self.write_entry(samples, entry, [entry.exclusive, entry.inclusive], width, out)?;
            }
        }
        write_more(top.len(), self.args.top, " functions", out)
    }

    /// Writes the first functions of the program, if the table of all functions does not begin with them. Returns whether
    /// it does not.
    fn write_own_first(&self, samples: &Samples, width: usize, out: &mut dyn Write) -> io::Result<bool> {
        /// The number of functions, without the one that most stacks have in common.
        const OWN: usize = 3;
        let mut own = self.tree.top(Order::Own);
        own.retain(|entry| entry.own > 0);
        own.truncate(OWN);
        if let Some(common) = self.tree.common_own().filter(|common| !own.contains(common)) {
            own.insert(0, common);
        }
        if self.top().starts_with(&own) {
            return Ok(false);
        }
        writeln!(out, "\n{:>9} {:>9}  FUNCTION OF THE PROGRAM", "OWN", "INCLUSIVE")?;
        self.write_own(samples, &own, None, own.len(), width, out)?;
        Ok(true)
    }

    /// Writes up to `len` functions of the program, and where the weight of the other stacks belongs among them.
    fn write_own(
        &self,
        samples: &Samples,
        own: &[Entry],
        mut not_own: Option<u64>,
        len: usize,
        width: usize,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let write_rest = |weight: u64, out: &mut dyn Write| {
            writeln!(out, "{:>7.2} % {:>9}  [no own code]", self.tree.share(weight), "")
        };
        for entry in own.iter().take(len) {
            if let Some(weight) = not_own.take_if(|weight| *weight > entry.own) {
                write_rest(weight, out)?;
            }
            self.write_entry(samples, entry, [entry.own, entry.inclusive], width, out)?;
        }
        not_own.map_or(Ok(()), |weight| write_rest(weight, out))
    }

    /// Writes a function with two of its weights.
    fn write_entry(
        &self,
        samples: &Samples,
        entry: &Entry,
        weights: [u64; 2],
        width: usize,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let [first, second] = weights.map(|weight| self.tree.share(weight));
        let start = format!("{first:>7.2} % {second:>7.2} % {}", mark(entry.is_own));
        let name = self.name(samples.names().text(entry.frame), width.saturating_sub(start.len()));
        writeln!(out, "{}", cut_end(&format!("{start}{name}"), width))
    }

    /// Returns the functions whose shares differ, the largest change first.
    fn changes<'n>(&self, samples: &'n Samples, old: &'n Old<'_>) -> Vec<Change<'n>> {
        let mut changes = self.tree.difference(samples.names(), &old.tree, old.samples.names());
        let size = |change: &Change<'_>| {
            let [before, after] = self.shares(change);
            (after - before).abs()
        };
        changes.sort_by(|a, b| size(b).total_cmp(&size(a)));
        changes
    }

    /// Returns the shares of a function in the order of the report, before and after.
    const fn shares(&self, change: &Change<'_>) -> [f64; 2] {
        match self.args.by {
            ReportOrder::Exclusive => change.exclusive,
            ReportOrder::Inclusive => change.inclusive,
            ReportOrder::Own => change.own,
        }
    }

    fn write_changes(
        &self,
        samples: &Samples,
        old: &Old<'_>,
        width: usize,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let count = HumanCount(old.samples.count(&self.clock));
        let what = if self.clock.unit() == Unit::Samples { "samples" } else { "events" };
        writeln!(out, "Before: {}, {count} {what}", old.trace)?;
        let changes = self.changes(samples, old);
        if changes.is_empty() {
            return writeln!(out, "\nAll shares are equal");
        }
        let kind = match self.args.by {
            ReportOrder::Exclusive => "EXCLUSIVE",
            ReportOrder::Inclusive => "INCLUSIVE",
            ReportOrder::Own => "OWN",
        };
        writeln!(out, "\n{:>9} {:>9} {:>9}  FUNCTION, BY {kind} SHARE", "BEFORE", "AFTER", "CHANGE")?;
        for change in changes.iter().take(self.args.top) {
            let [before, after] = self.shares(change);
            let (difference, mark) = (after - before, mark(change.is_own));
            let start = format!("{before:>7.2} % {after:>7.2} % {difference:>+7.2} % {mark}");
            let name = self.name(change.name, width.saturating_sub(start.len()));
            writeln!(out, "{}", cut_end(&format!("{start}{name}"), width))?;
        }
        write_more(changes.len(), self.args.top, " functions", out)
    }

    fn write_threads(&self, samples: &mut Samples, width: usize, out: &mut dyn Write) -> io::Result<()> {
        let rows = self.threads(samples);
        writeln!(out, "\n{:>9} {:>12}  {:>10}  NAME, TOP FUNCTION", "SHARE", "AMOUNT", "THREAD")?;
        for row in rows.iter().take(self.args.top) {
            let share = self.tree.share(row.total);
            let process = if row.process == 0 { String::new() } else { format!("{}/", row.process) };
            let id = format!("{process}{}", row.id);
            let name =
                if row.name.is_empty() { String::new() } else { format!("{}, ", printable_name(&row.name)) };
            let start = format!("{share:>7.2} % {:>12}  {id:>10}  {name}", self.amount(row.total));
            let top = self.name(&row.top, width.saturating_sub(start.width()));
            writeln!(out, "{}", cut_end(&format!("{start}{top}"), width))?;
        }
        write_more(rows.len(), self.args.top, " threads", out)
    }

    fn write_tree(&self, samples: &Samples, width: usize, out: &mut dyn Write) -> io::Result<()> {
        let (lines, is_cut) = self.lines();
        writeln!(out, "\n{:>9} {:>9}  CALLS", "INCLUSIVE", "EXCLUSIVE")?;
        for line in &lines {
            let CallLine { entry, indent, is_branch, .. } = line;
            let [exclusive, inclusive] =
                [entry.exclusive, entry.inclusive].map(|weight| self.tree.share(weight));
            let (branch, own) = (if *is_branch { '+' } else { ' ' }, mark(entry.is_own));
            let start = format!("{inclusive:>7.2} % {exclusive:>7.2} %  {:indent$}{branch}{own}", "");
            let name = self.name(samples.names().text(entry.frame), width.saturating_sub(start.len()));
            writeln!(out, "{}", cut_end(&format!("{start}{name}"), width))?;
        }
        if is_cut {
            writeln!(out, "more calls; --top shows more")?;
        }
        Ok(())
    }

    /// Returns the lines of the tree, and whether there are more.
    fn lines(&self) -> (Vec<CallLine>, bool) {
        // The maximum indentation in columns: the names of a deep tree would otherwise be beyond the edge of the
        // terminal.
        const MAX_INDENT: usize = 60;
        let limit = self.args.top.saturating_mul(5);
        let visible = |node| {
            let mut children = self.tree.children(node);
            children.retain(|(_, entry)| self.tree.share(entry.inclusive) >= 1.0);
            children.reverse();
            children
        };
        let mut lines = Vec::new();
        let branches = visible(NodeId::ROOT).into_iter();
        let mut left: Vec<_> = branches.map(|child| (child, 0, 0, true)).collect();
        while let Some(((node, entry), depth, indent, is_branch)) = left.pop() {
            if lines.len() == limit {
                return (lines, true);
            }
            lines.push(CallLine { depth, indent, is_branch, entry });
            let children = visible(node);
            let forks = children.len() > 1;
            let indent = if forks { indent.saturating_add(2).min(MAX_INDENT) } else { indent };
            let depth = depth.saturating_add(1_usize);
            left.extend(children.into_iter().map(|child| (child, depth, indent, forks)));
        }
        (lines, false)
    }

    /// Returns the threads, the heaviest first. Only the threads that are shown get a top function.
    fn threads(&self, samples: &mut Samples) -> Vec<ThreadRow> {
        let mut totals = vec![0_u64; samples.threads().len()];
        for (thread, _, weight) in samples.weights(&self.clock) {
            if let Some(total) = totals.get_mut(thread.number()) {
                *total = total.saturating_add(weight.total());
            }
        }
        let mut numbers: Vec<_> = totals.into_iter().enumerate().filter(|(_, total)| *total > 0).collect();
        numbers.sort_by_key(|(number, total)| (core::cmp::Reverse(*total), *number));
        let shown = self.args.top;
        let roles = samples.thread_roles();
        let mut rows = Vec::new();
        for (place, (number, total)) in numbers.into_iter().enumerate() {
            let tree = (place < shown).then(|| {
                self.args.tree(samples, &self.clock, |thread, weight| {
                    if thread.number() == number { weight.total() } else { 0 }
                })
            });
            let top = tree.and_then(|tree| tree.top(Order::Exclusive).first().copied());
            let top = top.map_or("", |entry| samples.names().text(entry.frame)).to_owned();
            let Some(thread) = samples.threads().get(number) else { continue };
            let roles = roles.get(number).copied().unwrap_or_default();
            let of_system = self.thread_names.get(&thread.id).filter(|name| roles.has_name(name));
            let of_trace = Some(&thread.name).filter(|name| !name.is_empty());
            let name = of_system.or(of_trace).map(String::as_str).or_else(|| roles.name());
            rows.push(ThreadRow {
                process: thread.process,
                id: thread.id,
                name: name.unwrap_or_default().to_owned(),
                total,
                top,
            });
        }
        rows
    }

    /// Returns a weight with its unit.
    fn amount(&self, weight: u64) -> String {
        match self.clock.unit() {
            Unit::Nanoseconds => format!("{:.3} ms", weight as f64 / 1e6),
            Unit::Bytes => format!("{:.3} MB", weight as f64 / 1e6),
            Unit::Samples | Unit::Events => HumanCount(weight).to_string(),
        }
    }
}

/// Writes how many threads were never seen in managed code.
fn write_waiting(samples: &Samples, out: &mut dyn Write) -> io::Result<()> {
    let mut threads = vec![Weight::default(); samples.threads().len()];
    for (thread, _, weight) in samples.weights(&Clock::Wall) {
        if let Some(sum) = threads.get_mut(thread.number()) {
            sum.running = sum.running.saturating_add(weight.running);
            sum.waiting = sum.waiting.saturating_add(weight.waiting);
        }
    }
    let waiting: Vec<_> = threads
        .iter()
        .filter(|weight| weight.running == 0 && weight.waiting > 0)
        .map(|w| w.waiting)
        .collect();
    if waiting.is_empty() {
        return Ok(());
    }
    let sum = waiting.iter().fold(0_u64, |sum, waiting| sum.saturating_add(*waiting));
    let (verb, s) = if waiting.len() == 1 { ("s", "") } else { ("", "s") };
    writeln!(
        out,
        "\n{} thread{s} only wait{verb} or run{verb} native code ({} samples); --wall shows where",
        waiting.len(),
        HumanCount(sum)
    )
}
