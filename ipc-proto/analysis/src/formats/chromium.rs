//! Writes a profile in the order of time as trace events of Chromium: see Chromium's "Trace Event Format".
use alloc::collections::BTreeSet;
use core::fmt::{self, Write};

use super::TimeProfile;
use super::json::{write_string, write_text};
use super::small_ids::SmallIds;
use super::timeline::CallChange;

impl TimeProfile<'_> {
    /// Writes trace events of Chromium: a pair of "B" and "E" for each call, and names of processes and threads.
    /// Perfetto, `chrome://tracing` and speedscope open the file.
    ///
    /// `name` is the name of the trace, and of a process whose name the trace does not state. `process_id` is the
    /// process of a trace of a runtime. A trace whose threads state their processes (V6) has several processes in the
    /// file. Viewers read ids of 32 bits, so a larger one is replaced by a small one that is not used, and stands in
    /// the name. Times are microseconds since the start of the trace, with three decimals. A call begins a nanosecond
    /// after the end of the call that it follows, because some programs sort events of the same time in another order.
    ///
    /// Each event repeats a name, of which the file has the first 1,024 characters.
    ///
    /// Only clocks in nanoseconds have intervals to write. For another clock the file has no thread, because its points
    /// in time have no duration.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write_chromium(&self, name: &str, process_id: u32, out: &mut dyn Write) -> fmt::Result {
        out.write_str("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"name\":")?;
        write_string(name, out)?;
        out.write_str(",\"exporter\":\"nettrace-analysis\"},\n\"traceEvents\":[")?;
        let names = self.stacks.names();
        let (mut separator, mut processes) = ("\n", BTreeSet::new());
        let threads = self.stacks.samples.threads();
        let mut process_ids = SmallIds::new(threads.iter().map(|thread| thread.process));
        let mut thread_ids = SmallIds::new(threads.iter().map(|thread| thread.id));
        for (thread, entries) in self.intervals() {
            let tid = thread_ids.of_thread(thread);
            let pid = if thread.process == 0 { process_id } else { process_ids.of(thread.process) };
            if processes.insert(pid) {
                let event = "\"ph\":\"M\",\"name\":\"process_name\"";
                write!(out, "{separator}{{{event},\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":")?;
                out.write_char('"')?;
                write_text(self.stacks.process_name(thread.process, name), out)?;
                if thread.process > u32::MAX.into() {
                    write!(out, " ({})", thread.process)?;
                }
                out.write_str("\"}}")?;
                separator = ",\n";
            }
            let event = "\"ph\":\"M\",\"name\":\"thread_name\"";
            write!(out, "{separator}{{{event},\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":\"")?;
            if thread.name.is_empty() {
                write!(out, "Thread ({})", thread.id)?;
            } else {
                write_text(&thread.name, out)?;
                if thread.id > u32::MAX.into() {
                    write!(out, " ({})", thread.id)?;
                }
            }
            out.write_str("\"}}")?;
            let mut last_end = None;
            self.changes(entries, |time, change| {
                let (phase, frame, time) = match change {
                    // An interval has at least one nanosecond, so the call does not begin after its end.
                    CallChange::Open(frame) if last_end == Some(time) => ('B', frame, time.saturating_add(1)),
                    CallChange::Open(frame) => ('B', frame, time),
                    CallChange::Close(frame) => {
                        last_end = Some(time);
                        ('E', frame, time)
                    }
                };
                write!(out, ",\n{{\"ph\":\"{phase}\",\"cat\":\"stack\",\"pid\":{pid},\"tid\":{tid},")?;
                write!(out, "\"ts\":{}.{:03},\"name\":", time / 1_000, time % 1_000)?;
                write_name(names.text(frame), out)?;
                out.write_char('}')
            })?;
        }
        out.write_str("]}\n")
    }
}

/// Writes the beginning of a name as a string. `…` replaces the rest.
fn write_name(name: &str, out: &mut dyn Write) -> fmt::Result {
    const MAX: usize = 1_024;
    // A name of at most `MAX` bytes has at most `MAX` characters.
    let rest = if name.len() <= MAX { None } else { name.char_indices().nth(MAX) };
    let start = rest.and_then(|(place, _)| name.get(..place));
    out.write_char('"')?;
    write_text(start.unwrap_or(name), out)?;
    out.write_str(if start.is_some() { "…\"" } else { "\"" })
}
