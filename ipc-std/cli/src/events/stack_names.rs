//! Names of stacks of events that are shown one by one.
use std::path::Path;

use nettrace::TraceEvent;
use nettrace_analysis::names::{AddressId, FrameId, Names};

use crate::args::symbol_args::SymbolArgs;
use crate::input::trace_file;
use crate::run::{Failure, Globals};

/// Names the stack of each event of a trace.
#[derive(Debug, Default)]
pub(crate) struct StackNames {
    /// The names from the events until the current one.
    current: Names,
    /// The names from all events, if the trace was read before: each address has the same id as in `current`.
    complete: Option<Names>,
    /// The stack of the current event.
    addresses: Vec<AddressId>,
    frames: Vec<FrameId>,
}

/// A stack with names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedStack<'n> {
    names: &'n Names,
    /// The frames, the innermost first.
    frames: &'n [FrameId],
}

/// The number of frames of a stack that are shown. Runtimes record at most 100, `perf` 127 by default.
pub(crate) const STACK_LIMIT: usize = 256;

impl StackNames {
    /// Returns the names of a process before its session, from its rundown.
    pub(crate) fn of_process(rundown: Names) -> Self {
        Self { current: rundown, ..Self::default() }
    }

    /// Reads a whole trace, because a name can follow the stacks that contain it. The next reader reports where the
    /// trace is truncated or corrupt. Native code has the names of its symbols.
    pub(crate) fn of_file(file: &Path, symbols: &SymbolArgs, globals: &Globals) -> Result<Self, Failure> {
        let mut trace = trace_file::open(file, true, globals)?;
        let mut names = Self::default();
        loop {
            match trace.next_event() {
                Ok(Some(event)) => names.event(&event),
                Ok(None) => break,
                Err(e) => return Err(trace.get_ref().failed(&e)),
            }
        }
        symbols.name_native(&mut names.current)?;
        Ok(Self { complete: Some(names.current), ..Self::default() })
    }

    /// Takes the next event.
    pub(crate) fn event(&mut self, event: &TraceEvent<'_>) {
        self.current.event(event);
        let process = event.thread().and_then(|thread| thread.process_id()).unwrap_or_default();
        self.addresses.clear();
        let addresses = event.stack().take(STACK_LIMIT).map(|ip| self.current.address(process, ip));
        self.addresses.extend(addresses);
    }

    /// Returns the stack of the current event.
    pub(crate) fn stack(&mut self) -> NamedStack<'_> {
        let Self { current, complete, addresses, frames } = self;
        let names = complete.as_mut().unwrap_or(current);
        frames.clear();
        frames.extend(addresses.iter().map(|address| names.frame(*address)));
        NamedStack { names, frames }
    }
}

impl<'n> NamedStack<'n> {
    /// Returns the name of each frame, the innermost first; `None` where it is not known.
    pub(crate) fn names(self) -> impl Iterator<Item = Option<&'n str>> {
        let Self { names, frames } = self;
        frames.iter().map(|frame| names.is_named(*frame).then(|| names.text(*frame)))
    }
}
