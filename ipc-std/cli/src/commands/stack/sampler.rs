//! Sessions that record the stack of each thread, and the rundown on request.
use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{self, Read};

use ipc_std::{Client, TraceReader};
use nettrace::{End, TraceEvent};
use nettrace_analysis::KnownProvider;

use super::rundown::Rundown;
use super::rundown_cache;
use super::thread_stack::Stack;
use crate::input::trace_file;
use crate::process::system_threads;
use crate::recording::rundown::KEYWORDS;
use crate::recording::session_failure::{NO_THREADS, check_stream, read_failure, suspended};
use crate::recording::thread_samples;
use crate::run::{Failure, Globals, Kind};

/// Records the stacks of a process.
pub(super) struct Sampler<'g> {
    pub(super) client: Client,
    /// The process of the command line, if it has one.
    pub(super) process_id: Option<u32>,
    pub(super) globals: &'g Globals,
}

/// What a session recorded.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// The first stack of each thread.
    stacks: BTreeMap<u64, Stack<u64>>,
    /// The number of threads without managed code; `None` if this system does not show the process.
    pub(super) unmanaged: Option<usize>,
    pub(super) rundown: Rundown,
    /// The trace, if it has a rundown and is not too long for the cache.
    pub(super) trace: Option<Vec<u8>>,
}

impl Recorded {
    const MAX_THREADS: usize = 1 << 14;
    /// Runtimes record at most 100 frames of a stack.
    const MAX_FRAMES: usize = 256;

    /// Reads a trace of the cache. `None` if the trace is not complete.
    pub(super) fn read(trace: impl Read) -> Option<Self> {
        let (mut trace, mut recorded) = (TraceReader::new(trace), Self::default());
        while let Some(event) = trace.next_event().ok()? {
            recorded.rundown.event(&event);
            recorded.event(&event);
        }
        (trace.summary().end == Some(End::Complete)).then_some(recorded)
    }

    fn event(&mut self, event: &TraceEvent<'_>) {
        let has_room = self.stacks.len() < Self::MAX_THREADS;
        if let Some(is_managed) = sampled(event).filter(|_| has_room) {
            let thread_id = event.thread_id();
            self.stacks.entry(thread_id).or_insert_with(|| Stack {
                thread_id,
                thread_name: None,
                is_managed,
                frames: event.stack().take(Self::MAX_FRAMES).collect(),
            });
        }
    }

    pub(super) fn take_stacks(&mut self) -> Vec<Stack<u64>> {
        core::mem::take(&mut self.stacks).into_values().collect()
    }
}

impl Sampler<'_> {
    /// How long the runtime samples in each attempt. Its interval depends on its version, its settings and the load of
    /// the machine.
    const DURATIONS: [Duration; 3] =
        [Duration::from_millis(30), Duration::from_millis(300), Duration::from_secs(3)];

    /// Returns the stack of each thread, of which there is at least one, and the rundown if it is wanted.
    pub(super) fn sample(&self, with_rundown: bool) -> Result<Recorded, Failure> {
        for duration in Self::DURATIONS {
            let recorded = self.sample_for(duration, with_rundown)?;
            if !recorded.stacks.is_empty() {
                return Ok(recorded);
            }
            if self.process_id.is_some_and(system_threads::show_suspension) {
                return Err(suspended(NO_THREADS));
            }
        }
        let failure = Failure::new(Kind::Other, "the runtime sent no stacks");
        Err(failure.with_hint(
            "a suspended runtime has none before `dotnet-ipc resume`; a program that was compiled ahead of time \
             sends them since .NET 10",
        ))
    }

    fn sample_for(&self, duration: Duration, with_rundown: bool) -> Result<Recorded, Failure> {
        let rundown_keyword = if with_rundown { KEYWORDS } else { 0 };
        let session = thread_samples::record(&self.client, duration, rundown_keyword)?;
        let copy = with_rundown.then(Vec::new);
        let (mut trace, mut recorded) =
            (TraceReader::new(Copied { reader: session, copy }), Recorded::default());
        loop {
            let event = match trace.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(e) => {
                    read_failure(&trace.get_ref().reader, e)?;
                    continue;
                }
            };
            if with_rundown {
                recorded.rundown.event(&event);
            }
            recorded.event(&event);
        }
        let lost = trace_file::lost(&trace);
        if lost > 0 {
            let report = trace_file::loss_report(&trace);
            let note = format!("{lost} events were lost, so that threads or names may be missing {report}");
            self.globals.note(&note);
        }
        let is_here = trace.summary().trace.is_some_and(|trace| trace.process_id == self.process_id);
        check_stream(trace.summary().end, &trace.get_ref().reader, Err(suspended(NO_THREADS)))?;
        recorded.trace = trace.into_inner().copy.filter(|_| lost == 0);
        if let (true, Some(process_id)) = (is_here, self.process_id) {
            let threads = system_threads::ids(process_id);
            let unmanaged = threads.iter().filter(|id| !recorded.stacks.contains_key(id)).count();
            recorded.unmanaged = Some(unmanaged).filter(|_| !threads.is_empty());
            for stack in recorded.stacks.values_mut() {
                stack.thread_name = system_threads::name(process_id, stack.thread_id);
            }
        }
        Ok(recorded)
    }
}

/// A reader that copies the bytes that it reads, unless they are too many for the cache.
struct Copied<R> {
    reader: R,
    copy: Option<Vec<u8>>,
}

impl<R: Read> Read for Copied<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(buf)?;
        if let Some(copy) = &mut self.copy {
            copy.extend_from_slice(buf.get(..n).unwrap_or_default());
        }
        self.copy = self.copy.take().filter(|copy| copy.len() <= rundown_cache::MAX_LEN);
        Ok(n)
    }
}

/// Returns whether the thread of a sample runs managed code; `None` for other events.
fn sampled(event: &TraceEvent<'_>) -> Option<bool> {
    const EXTERNAL: [u8; 4] = [1, 0, 0, 0];
    const MANAGED: [u8; 4] = [2, 0, 0, 0];
    if KnownProvider::of(event.metadata()?.provider)? != KnownProvider::SampleProfiler {
        return None;
    }
    match *event.payload().first_chunk()? {
        EXTERNAL => Some(false),
        MANAGED => Some(true),
        _ => None,
    }
}
