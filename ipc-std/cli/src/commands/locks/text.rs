//! The report on locks as text.
use core::fmt::Display;
use std::io::{self, Write};

use indicatif::HumanCount;
use nettrace_analysis::locks::{
    ContendedLock, Cycle, LockOwner, LockReport, LockThread, OwnerWait, WaitGroup, WaitTimes,
};
use nettrace_analysis::names::short_name;
use nettrace_analysis::{OwnCode, WaitKind};

use super::shown_threads::ShownThreads;
use crate::output::dates::Dates;
use crate::output::rows::milliseconds;
use crate::text::columns::terminal_width;
use crate::text::function_name::function_name;
use crate::text::printable::{hexadecimal, printable_name};

/// The report on locks as text.
pub(super) struct LockText<'a> {
    pub(super) report: &'a LockReport,
    pub(super) threads: &'a ShownThreads,
    pub(super) dates: &'a Dates,
    pub(super) own: &'a OwnCode,
    /// The number of locks and of groups to show.
    pub(super) top: usize,
    pub(super) is_short: bool,
}

/// How many threads of a group are named.
const THREADS: usize = 5;
/// How many methods of a lock are shown.
const METHODS: usize = 3;
/// How many frames of an owner are shown at most: up to the last one of the program.
const FRAMES: usize = 12;
/// How many threads of a cycle are shown.
const CYCLE: usize = 6;

impl LockText<'_> {
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let LockReport { locks, cycles, ended, span, end, .. } = self.report;
        let mut all = WaitTimes::default();
        locks.iter().for_each(|lock| all.merge(lock.waits));
        let of_locks = if locks.len() == 1 { "1 lock".to_owned() } else { format!("{} locks", locks.len()) };
        if all.count == 0 {
            writeln!(out, "No thread began to wait for a lock in {}", time(*span))?;
        } else {
            writeln!(
                out,
                "{} for {of_locks} in {}: {} together, the longest {}",
                waits(all.count),
                time(*span),
                time(all.total),
                time(all.longest)
            )?;
        }
        if ended.count > 0 {
            writeln!(
                out,
                "{} more began before the recording and have ended: the longest took {}",
                HumanCount(ended.count),
                time(ended.longest)
            )?;
        }
        let start = end.saturating_sub_unsigned(*span);
        if let Some((start, end)) = self.dates.of(start).zip(self.dates.of(*end)) {
            writeln!(out, "from {start} to {end}")?;
        }
        let stuck = locks.iter().filter(|lock| lock.owner_is_stuck());
        for (lock, owner) in stuck.filter_map(|lock| Some((lock, lock.owner.as_ref()?))).take(self.top) {
            let count = lock.waiting.len();
            let id = owner.thread.as_ref().map_or(owner.number, |thread| thread.id);
            let waiting = if count == 1 { "1 thread waits" } else { &format!("{count} threads wait") };
            writeln!(out, "perhaps a deadlock: {waiting} for {id}, which itself waits for a lock")?;
        }
        cycles.iter().take(self.top).try_for_each(|cycle| self.write_cycle(cycle, out))?;
        self.write_groups(WaitKind::Lock, out)?;
        locks.iter().take(self.top).try_for_each(|lock| self.write_lock(lock, out))?;
        if let more @ 1.. = locks.len().saturating_sub(self.top) {
            let of_locks = if more == 1 { "lock" } else { "locks" };
            writeln!(out, "\n{more} more {of_locks}; --top {} shows all", locks.len())?;
        }
        let others = [WaitKind::ReaderWriterLock, WaitKind::Semaphore, WaitKind::Task];
        others.into_iter().try_for_each(|kind| self.write_groups(kind, out))?;
        self.write_handles(out)
    }

    /// Writes the methods of the program that wait on handles.
    fn write_handles(&self, out: &mut dyn Write) -> io::Result<()> {
        let LockReport { handles, other_handles, .. } = self.report;
        let mut all = WaitTimes::default();
        handles.iter().for_each(|of| all.merge(of.waits));
        if all.count > 0 {
            let (total, longest) = (time(all.total), time(all.longest));
            writeln!(
                out,
                "\n{} on handles, not for locks: {total}, the longest {longest}",
                waits(all.count)
            )?;
        }
        for of in handles.iter().take(self.top) {
            let head = format!("{:>12}  ", time(of.waits.total).to_string());
            writeln!(out, "{head}{}", self.method(of.method.as_deref().unwrap_or_default(), head.len()))?;
        }
        if other_handles.count > 0 {
            let (count, total) = (waits(other_handles.count), time(other_handles.total));
            writeln!(out, "\nnot of the program: {count} on handles, {total}, of timers and idle threads")?;
        }
        Ok(())
    }

    fn write_cycle(&self, cycle: &Cycle, out: &mut dyn Write) -> io::Result<()> {
        let certainty = if cycle.time < MIN_DEADLOCK { "perhaps a deadlock" } else { "deadlock" };
        write!(out, "\n{certainty}:")?;
        let owners = cycle.threads.iter().cycle().skip(1);
        for (place, (of, owner)) in cycle.threads.iter().zip(owners).enumerate() {
            match place {
                0 => write!(out, " {} waits for {}", of.thread.id, owner.thread.id)?,
                1..CYCLE => write!(out, ", which waits for {}", owner.thread.id)?,
                CYCLE => write!(out, ", and so on")?,
                _ => {}
            }
        }
        writeln!(out, ", for {}{}", time(cycle.time), self.since(cycle.time))?;
        for of in cycle.threads.iter().take(CYCLE) {
            let lock = of.lock.map(hexadecimal).unwrap_or_default();
            writeln!(out, "  {} waits for lock {lock}", self.thread(&of.thread))?;
            if let Some(method) = &of.method {
                writeln!(out, "      {}", self.method(method, 6))?;
            }
        }
        match cycle.threads.len().saturating_sub(CYCLE) {
            0 => Ok(()),
            more => writeln!(out, "  and {more} more threads"),
        }
    }

    /// Writes the threads that have waited since before the recording.
    fn write_groups(&self, kind: WaitKind, out: &mut dyn Write) -> io::Result<()> {
        // The main thread of a server waits for a task until the program ends: in the outermost method of its stack.
        let is_end = |group: &WaitGroup| {
            kind == WaitKind::Task && group.is_own && group.stack.last() == Some(&group.method)
        };
        let is_shown = |group: &&WaitGroup| group.kind == kind && !is_end(group);
        let of_kind = || self.report.waiting_before.iter().filter(is_shown);
        let count: usize = of_kind().map(|group| group.threads.len()).sum();
        if count == 0 {
            return Ok(());
        }
        let threads = if count == 1 { "1 thread waits for" } else { &format!("{count} threads wait for") };
        let kind = kind.plural();
        writeln!(out, "\n{threads} {kind} since before the recording:")?;
        for WaitGroup { threads, method, .. } in of_kind().take(self.top) {
            let head = format!("{:>6}  ", threads.len());
            writeln!(out, "{head}{}", self.method(method, head.len()))?;
            let ids: Vec<_> = threads.iter().take(THREADS).map(|thread| thread.id.to_string()).collect();
            match threads.len().saturating_sub(THREADS) {
                0 => writeln!(out, "        threads {}", ids.join(", "))?,
                more => writeln!(out, "        threads {} and {more} more", ids.join(", "))?,
            }
        }
        match of_kind().count().saturating_sub(self.top) {
            0 => Ok(()),
            more => writeln!(out, "        and {more} more stacks; --top shows more"),
        }
    }

    fn write_lock(&self, lock: &ContendedLock, out: &mut dyn Write) -> io::Result<()> {
        let name = match lock.id {
            Some(id) => format!("lock {}", hexadecimal(id)),
            None => "locks without an id (before .NET 8)".to_owned(),
        };
        let process = match (lock.process_id, self.has_processes()) {
            (Some(id), true) => format!(" of process {id}"),
            _ => String::new(),
        };
        writeln!(
            out,
            "\n{name}{process}: {}, {}, the longest {}",
            waits(lock.waits.count),
            time(lock.waits.total),
            time(lock.waits.longest)
        )?;
        for of in lock.methods.iter().take(METHODS) {
            let Some(method) = &of.method else { continue };
            let head = format!("  waits in {:>8}  ", HumanCount(of.waits.count).to_string());
            writeln!(out, "{head}{}", self.method(method, head.len()))?;
        }
        for of in lock.held_in.iter().take(METHODS) {
            let share = of.samples.saturating_mul(100).checked_div(lock.held_samples).unwrap_or_default();
            if share == 0 {
                break;
            }
            let head = format!("  held in  {share:>6} %  ");
            writeln!(out, "{head}{}", self.method(&of.method, head.len()))?;
        }
        if lock.waiting.is_empty() {
            return Ok(());
        }
        let count = lock.waiting.len();
        let longest = lock.waiting.first().map_or(0, |thread| thread.time);
        let waiting = if count == 1 { "1 thread" } else { &format!("{count} threads") };
        writeln!(out, "  waiting at the end: {waiting}, {} so far{}", time(longest), self.since(longest))?;
        match &lock.owner {
            Some(owner) => self.write_owner(owner, out),
            None => writeln!(out, "  owner: the runtime does not know it"),
        }
    }

    fn write_owner(&self, owner: &LockOwner, out: &mut dyn Write) -> io::Result<()> {
        match &owner.thread {
            Some(thread) => write!(out, "  owner: {}", self.thread(thread))?,
            None => write!(out, "  owner: number {}, a thread without an id in the trace", owner.number)?,
        }
        match owner.waits_for {
            Some(OwnerWait::SinceBefore) => writeln!(out, ", itself waiting for a lock, in")?,
            Some(OwnerWait::Lock(lock)) => writeln!(out, ", waiting for lock {}, in", hexadecimal(lock))?,
            None if owner.stack.is_empty() => writeln!(out)?,
            None => writeln!(out, ", in")?,
        }
        if owner.stack.iter().all(|frame| frame.ends_with("!?")) {
            let count = owner.stack.len();
            return if count == 0 { Ok(()) } else { writeln!(out, "      {count} frames without names") };
        }
        let mut frames = owner.stack.get(..FRAMES).unwrap_or(&owner.stack);
        if let Some(last) = frames.iter().rposition(|frame| self.own.owns(frame)) {
            frames = frames.get(..=last).unwrap_or(frames);
        }
        frames.iter().try_for_each(|frame| writeln!(out, "      {}", self.method(frame, 6)))?;
        match owner.stack.len().saturating_sub(frames.len()) {
            0 => Ok(()),
            more => writeln!(out, "      and {more} more frames"),
        }
    }

    /// Returns the date at which a wait began that lasts at the end, if dates are wanted.
    fn since(&self, time: u64) -> String {
        let date = self.dates.of(self.report.end.saturating_sub_unsigned(time));
        date.map_or_else(String::new, |date| format!(", since {date}"))
    }

    /// Returns a thread: its id and its name.
    fn thread(&self, thread: &LockThread) -> String {
        match self.threads.name(thread) {
            Some(name) => format!("{} ({})", thread.id, printable_name(&name)),
            None => thread.id.to_string(),
        }
    }

    /// Returns the name of a method for a line in which it begins at a column.
    fn method(&self, name: &str, column: usize) -> String {
        let width = terminal_width().unwrap_or(usize::MAX);
        function_name(if self.is_short { short_name(name) } else { name }, width.saturating_sub(column))
    }

    fn has_processes(&self) -> bool {
        let mut processes = self.report.locks.iter().map(|lock| lock.process_id);
        let first = processes.next();
        processes.any(|process| Some(process) != first)
    }
}

/// A cycle that is younger can be a lock that was just released.
const MIN_DEADLOCK: u64 = 1_000_000_000;

/// Returns a number of waits for people.
fn waits(count: u64) -> String {
    if count == 1 { "1 wait".to_owned() } else { format!("{} waits", HumanCount(count)) }
}

/// Returns a time for people.
fn time(nanoseconds: u64) -> impl Display {
    let milliseconds = milliseconds(nanoseconds);
    if milliseconds >= 1000.0 {
        format!("{:.2} s", milliseconds / 1000.0)
    } else {
        format!("{milliseconds:.2} ms")
    }
}
