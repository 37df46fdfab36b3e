//! `--wire-log`: a file with every message sent or received, one per line.
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use dotnet_ipc_sans_io::syntax::decode_input::log_line;
use ipc_proto::Direction;
use ipc_std::{Observed, Observer};

use crate::output::output_file::{OutputFile, OverwriteArgs, cannot_write};
use crate::run::Failure;
use crate::run::threads::lock;

/// Where to log messages.
#[derive(Debug, clap::Args)]
pub(crate) struct WireLogArgs {
    /// Write every message sent or received to FILE, as JSON, one per line; `decode` reads it
    #[arg(long, value_name = "FILE")]
    wire_log: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
}

/// The log, if there is `--wire-log`.
#[derive(Debug)]
pub(crate) struct WireLog(Option<Arc<Log>>);

#[derive(Debug)]
struct Log {
    path: PathBuf,
    /// The file, or the first error of writing to it.
    file: Mutex<io::Result<File>>,
}

impl WireLogArgs {
    /// Whether there is `--wire-log`.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.wire_log.is_some()
    }

    /// Creates the file.
    pub(crate) fn open(&self) -> Result<WireLog, Failure> {
        let Some(path) = self.wire_log.clone() else { return Ok(WireLog(None)) };
        let file = OutputFile::open(&path, &self.overwrite)?;
        file.truncate()?;
        Ok(WireLog(Some(Arc::new(Log { path, file: Mutex::new(Ok(file.into_file())) }))))
    }
}

impl WireLog {
    /// Returns the observer that writes the log.
    pub(crate) fn observer(&self) -> Option<Observer> {
        self.0.clone().map(|log| Observer::new(move |seen| log.write(&seen)))
    }

    /// Fails if a message could not be written.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Some(log) = &self.0 else { return Ok(()) };
        match &*lock(&log.file) {
            Ok(_) => Ok(()),
            Err(e) => Err(cannot_write(&log.path, e)),
        }
    }
}

impl Log {
    fn write(&self, seen: &Observed<'_>) {
        let direction = match seen.direction {
            Direction::ToRuntime => "sent",
            Direction::ToClient => "received",
        };
        let time = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
        let line = log_line(&time, direction, seen.connection, seen.bytes);
        let mut file = lock(&self.file);
        if let Ok(open) = &mut *file {
            if let Err(e) = open.write_all(format!("{line}\n").as_bytes()) {
                *file = Err(e);
            }
        }
    }
}
