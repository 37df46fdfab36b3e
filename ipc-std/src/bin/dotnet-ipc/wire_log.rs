//! `--wire-log`: every message that is sent or received, a line each.
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use ipc_std::{Direction, Observed, Observer};
use serde_json::json;

use crate::failure::Failure;
use crate::hex::hex;

#[derive(Debug, clap::Args)]
pub(crate) struct LogFile {
    /// Write every message sent and received to FILE, as JSON, one a line
    #[arg(long, value_name = "FILE")]
    wire_log: Option<PathBuf>,
}

/// The log, if one is wanted.
#[derive(Debug)]
pub(crate) struct WireLog(Option<Arc<Log>>);

#[derive(Debug)]
struct Log {
    path: PathBuf,
    /// Or why it cannot be written any longer.
    file: Mutex<io::Result<File>>,
}

impl LogFile {
    /// Whether one is wanted.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.wire_log.is_some()
    }

    /// Makes the log's file.
    pub(crate) fn open(&self) -> Result<WireLog, Failure> {
        let Some(path) = self.wire_log.clone() else { return Ok(WireLog(None)) };
        let file = File::create(&path)
            .map_err(|e| Failure::io(format_args!("cannot write {}", path.display()), &e))?;
        Ok(WireLog(Some(Arc::new(Log { path, file: Mutex::new(Ok(file)) }))))
    }
}

impl WireLog {
    /// What writes it.
    pub(crate) fn observer(&self) -> Option<Observer> {
        self.0.clone().map(|log| Observer::new(move |seen| log.write(&seen)))
    }

    /// Whether all of it could be written.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Some(log) = &self.0 else { return Ok(()) };
        match &*log.file.lock().unwrap_or_else(PoisonError::into_inner) {
            Ok(_) => Ok(()),
            Err(e) => Err(Failure::io(format_args!("cannot write {}", log.path.display()), e)),
        }
    }
}

impl Log {
    fn write(&self, seen: &Observed<'_>) {
        let direction = match seen.direction {
            Direction::Sent => "sent",
            Direction::Received => "received",
        };
        let time = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
        let hex = hex(seen.bytes);
        let line = json!({ "time": time, "direction": direction, "connection": seen.connection, "hex": hex });
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(open) = &mut *file {
            if let Err(e) = open.write_all(format!("{line}\n").as_bytes()) {
                *file = Err(e);
            }
        }
    }
}
