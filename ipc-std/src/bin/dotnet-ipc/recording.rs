//! What `trace`, `events` and `monitor` have in common: what is recorded, and the file that it goes to.
use core::time::Duration;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use ipc_proto::types::{EventFilter, Provider};
use ipc_std::{Client, Error, Phase, TraceConfig, TraceSession};

use crate::durations;
use crate::failure::{Failure, Kind};
use crate::output::unbuffered_stdout;
use crate::providers::{self, Buffering, EventIds, Profile, Selected};

/// What to record.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How long [default: until Ctrl-C]
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    pub(crate) duration: Option<Duration>,
    /// Size of the runtime's buffer in MB
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    buffer: u32,
    /// What to record, by a name; may be repeated [default: dotnet-common and dotnet-sampled-thread-time, unless there
    /// is a --provider]
    #[arg(long = "profile", value_name = "P", value_enum)]
    profiles: Vec<Profile>,
    /// What to record, by provider; may be repeated, and overrides a profile's provider of that name. KEYWORDS are
    /// hexadecimal, all of them by default; LEVEL is 0 to 5 or logalways, critical, error, warning, informational (the
    /// default), verbose
    #[arg(long = "provider", value_name = "NAME[:KEYWORDS[:LEVEL[:ARGS]]]")]
    providers: Vec<Selected>,
    /// Leave out the descriptions of methods that end a trace: smaller, but stacks stay without names
    #[arg(long)]
    no_rundown: bool,
    /// What ends a trace, as keywords of the rundown provider, hexadecimal [default: as the profiles have it] (.NET 9)
    #[arg(long, value_name = "KEYWORDS", value_parser = providers::parse_keywords, conflicts_with = "no_rundown")]
    rundown_keyword: Option<u64>,
    /// Leave out the stacks of events (.NET 9)
    #[arg(long)]
    no_stacks: bool,
    /// Only these events of a provider that is recorded, or with - all others; may be repeated (.NET 10)
    #[arg(long, value_name = "NAME=+ID,ID|NAME=-ID,ID")]
    event_ids: Vec<EventIds>,
    /// What happens when the runtime's buffer is full
    #[arg(long, value_enum, value_name = "MODE", default_value = "drop")]
    buffering: Buffering,
    /// Let a runtime that is suspended at its start wait on
    #[arg(long)]
    pub(crate) no_resume: bool,
}

/// What the options come to.
#[derive(Debug)]
pub(crate) struct Wishes<'o> {
    pub(crate) options: &'o Options,
    selected: Vec<Selected>,
    rundown_keyword: u64,
}

/// How often a silent trace is looked after.
pub(crate) const TICK: Duration = Duration::from_millis(250);

impl Options {
    /// Whether there is anything that makes no sense without a trace.
    pub(crate) fn are_about_traces(&self) -> bool {
        let Self { duration, profiles, providers, event_ids, rundown_keyword, no_rundown, no_stacks, .. } =
            self;
        duration.is_some()
            || !profiles.is_empty()
            || !providers.is_empty()
            || !event_ids.is_empty()
            || rundown_keyword.is_some()
            || *no_rundown
            || *no_stacks
    }

    /// Reads what was wanted.
    pub(crate) fn wishes(&self) -> Result<Wishes<'_>, Failure> {
        let (selected, rundown) = providers::select(&self.profiles, &self.providers)?;
        // Before anything is asked of anybody.
        providers::filters(&selected, &self.event_ids)?;
        let rundown_keyword = if self.no_rundown { 0 } else { self.rundown_keyword.unwrap_or(rundown) };
        Ok(Wishes { options: self, selected, rundown_keyword })
    }
}

impl Wishes<'_> {
    /// Starts to record.
    pub(crate) fn start(&self, client: &Client) -> Result<TraceSession, Failure> {
        let providers: Vec<Provider<'_>> = self.selected.iter().map(Selected::to_provider).collect();
        let filters: Vec<EventFilter<'_>> = providers::filters(&self.selected, &self.options.event_ids)?;
        let config = TraceConfig {
            buffer_mb: self.options.buffer,
            rundown_keyword: self.rundown_keyword,
            stackwalk: !self.options.no_stacks,
            buffer_mode: self.options.buffering.into(),
            providers: &providers,
            filters: &filters,
        };
        Ok(client.start_tracing(&config)?)
    }
}

/// Reads the session to its end, into the file. `look` looks after it all the while, every [`TICK`] at the least if that
/// is the client's [`silence`](ipc_std::Timeouts::silence).
pub(crate) fn record(
    session: &mut TraceSession,
    file: &mut Destination,
    mut look: impl FnMut(&TraceSession),
) -> Result<(), Failure> {
    let mut buf = vec![0; 64 << 10];
    let mut written = Ok(());
    loop {
        match session.read(&mut buf) {
            Ok(0) => return written,
            Ok(n) if written.is_ok() => {
                written = file.write(buf.get(..n).unwrap_or_default());
                if written.is_err() {
                    session.stop();
                }
            }
            // The runtime must not be held up because our disk is full.
            Ok(_) => {}
            Err(e) => {
                if let Err(failure) = broken(session, e) {
                    let kept = if session.received() > 0 {
                        format!("{file} keeps what came; ")
                    } else {
                        String::new()
                    };
                    return written.and_then(|()| Err(failure.with_more(&kept)));
                }
            }
        }
        look(session);
    }
}

/// What it means that a trace cannot be read on; silence is no failure.
pub(crate) fn broken(session: &TraceSession, e: io::Error) -> Result<(), Failure> {
    match (e.downcast(), session.stop_error()) {
        (Ok(Error::Timeout { phase: Phase::ReadingTrace, .. }), _) => Ok(()),
        // It has waited in vain for what was not going to come.
        (Ok(e @ Error::Timeout { phase: Phase::StoppingTrace { .. }, .. }), Some(stop)) => {
            Err(Failure::new(stop.kind().into(), format!("{e}; {stop}")))
        }
        (Ok(e), _) => Err(e.into()),
        (Err(e), _) => Err(Failure::io("cannot read the trace", &e)),
    }
}

/// Whether nothing came because the runtime was stopped at its start all the while.
pub(crate) fn never_ran(session: &TraceSession, no_resume: bool) -> Result<(), Failure> {
    if !no_resume || session.received() > 0 || !session.is_stopping() || session.stop_error().is_some() {
        return Ok(());
    }
    let failure = Failure::new(Kind::Other, "the trace is empty: the runtime was not resumed before its end");
    Err(failure.with_hint("`dotnet-ipc resume` does that, and so does tracing without --no-resume"))
}

/// Whether all of the trace has come.
pub(crate) fn check_end(session: &TraceSession, no_resume: bool, file: &Destination) -> Result<(), Failure> {
    if session.is_complete() {
        return Ok(());
    }
    never_ran(session, no_resume)?;
    let message =
        format!("the trace is cut off: the runtime went away in the middle of it ({file} keeps what came)");
    Err(Failure::new(Kind::Gone, message))
}

/// Where the trace goes.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) path: PathBuf,
    file: File,
    /// The path, if nothing was there before.
    pub(crate) created: Option<PathBuf>,
}

impl Destination {
    /// Opens the file, and leaves what is in it as long as there is no trace to take its place.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            return Self::stdout();
        }
        let failed = |e| Failure::io(format_args!("cannot write {}", path.display()), &e);
        let mut options = OpenOptions::new();
        options.write(true);
        let (file, created) = match options.clone().create_new(true).open(path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => (options.create(true).open(path), None),
            file => (file, Some(path.to_owned())),
        };
        Ok(Self { path: path.to_owned(), file: file.map_err(failed)?, created })
    }

    fn stdout() -> Result<Self, Failure> {
        if io::stdout().is_terminal() {
            return Err(Failure::new(Kind::Usage, "a trace is not for a terminal")
                .with_hint("give a file, or a pipe"));
        }
        let file = unbuffered_stdout().map_err(|e| Failure::io("cannot write to standard output", &e))?;
        Ok(Self { path: "-".into(), file, created: None })
    }

    pub(crate) fn is_stdout(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// Drops what was in the file before. Devices and pipes, and whatever standard output is, cannot and need not.
    pub(crate) fn truncate(&self) -> Result<(), Failure> {
        let of_file = || match self.file.metadata()?.is_file() {
            true => self.file.set_len(0),
            false => Ok(()),
        };
        if self.is_stdout() { Ok(()) } else { of_file().map_err(|e| self.failed(&e)) }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|e| self.failed(&e))
    }

    fn failed(&self, e: &io::Error) -> Failure {
        let failure = Failure::io(format_args!("cannot write {self}"), e);
        // Whoever read it has had enough.
        if e.kind() == ErrorKind::BrokenPipe { failure.without_hint() } else { failure }
    }

    /// Removes the file, if it was made for a trace that will not come.
    pub(crate) fn abandon(&self) {
        remove(self.created.as_deref());
    }
}

impl core::fmt::Display for Destination {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.is_stdout() { f.write_str("standard output") } else { self.path.display().fmt(f) }
    }
}

pub(crate) fn remove(created: Option<&Path>) {
    // One that somebody else has removed already is what was wanted.
    let _ = created.map(fs::remove_file);
}
