//! Where samples go: lines, the text format of Prometheus, or OTLP.
use core::net::SocketAddr;
use core::time::Duration;
#[cfg(unix)]
use std::fs::Permissions;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use nettrace_analysis::counters::OwnedSample;
use tiny_http::{Header, Method, Request, Response, Server};

use super::feed::{OwnedInstrument, Process};
use super::lines::SampleLines;
use super::otlp::Batch;
use super::prometheus::Exposition;
use super::table::Table;
use crate::output::failure::Failure;
use crate::output::full_screen::FullScreen;
use crate::output::printable::json_line;
use crate::output::screen_table;
use crate::output::threads::{lock, spawn};

/// Where samples go.
pub(crate) enum Output {
    SampleLines(SampleLines<BufWriter<File>>),
    Table(Box<Table>, FullScreen),
    Otlp(Box<Batch>, BufWriter<File>),
    Prometheus(Arc<Mutex<Exposition>>, Prometheus),
}

/// How the text format of Prometheus is written.
pub(crate) enum Prometheus {
    /// Once, at the end.
    Stdout(BufWriter<File>),
    /// After each interval.
    File(PathBuf),
    /// When a client asks for it.
    Served,
}

impl Output {
    pub(crate) fn instrument(&mut self, instrument: OwnedInstrument) {
        match self {
            Self::SampleLines(_) | Self::Table(..) => {}
            Self::Otlp(batch, _) => batch.describe(instrument),
            Self::Prometheus(exposition, _) => lock(exposition).describe(instrument),
        }
    }

    pub(crate) fn sample(&mut self, process: &Process, sample: &OwnedSample) -> io::Result<()> {
        match self {
            Self::SampleLines(lines) => lines.add(process, sample),
            Self::Table(table, _) => {
                table.add(process, sample);
                Ok(())
            }
            Self::Otlp(batch, out) => {
                if batch.add(process, sample) {
                    write_batch(batch, out)
                } else {
                    Ok(())
                }
            }
            Self::Prometheus(exposition, _) => {
                lock(exposition).add(process, sample);
                Ok(())
            }
        }
    }

    /// Handles the end of an instrument, or with `None` the end of the whole process.
    pub(crate) fn ended(&mut self, process: &Process, instrument: Option<&OwnedInstrument>) {
        match (self, instrument) {
            (Self::Prometheus(exposition, _), Some(instrument)) => {
                lock(exposition).remove_instrument(process, instrument)
            }
            // Text on standard output is written once, at the end, and also contains processes that have ended.
            (Self::Prometheus(exposition, Prometheus::File(_) | Prometheus::Served), None) => {
                lock(exposition).remove(process)
            }
            (Self::Table(table, _), instrument) => table.remove(process, instrument),
            _ => {}
        }
    }

    /// Returns how often to call [`tick`](Self::tick): not more than each 100 ms, so that there is time for the
    /// reports.
    pub(crate) fn pace(&self, interval: Duration) -> Duration {
        const KEYS: Duration = Duration::from_millis(100);
        if matches!(self, Self::Table(..)) { KEYS } else { interval.max(KEYS) }
    }

    /// Shows a remark in the table. Returns `false` if the output is no table.
    pub(crate) fn note(&mut self, note: &str) -> bool {
        if let Self::Table(table, _) = self {
            table.note(note);
            return true;
        }
        false
    }

    /// Handles keys. Returns whether one of them ends the output.
    pub(crate) fn keys(&mut self) -> io::Result<bool> {
        match self {
            Self::Table(table, screen) => {
                while let Some(key) = screen.next_key()? {
                    if table.key(key) == screen_table::Request::Quit {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Writes the samples of an interval after its end.
    pub(crate) fn tick(&mut self) -> io::Result<()> {
        match self {
            Self::SampleLines(_) | Self::Prometheus(_, Prometheus::Stdout(_) | Prometheus::Served) => Ok(()),
            Self::Table(table, screen) => {
                let (width, height) = screen.size();
                screen.draw(&table.lines(width, height))
            }
            Self::Otlp(batch, out) => write_batch(batch, out),
            Self::Prometheus(exposition, Prometheus::File(path)) => {
                let text = lock(exposition).text();
                replace(path, text.as_bytes())
            }
        }
    }

    /// Writes the samples that are still in the buffer, if the output is lines. Other outputs write them in
    /// [`tick`](Self::tick).
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::SampleLines(lines) => lines.flush(),
            _ => Ok(()),
        }
    }

    /// Writes the samples that are not written yet, and ends the output.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if !matches!(self, Self::Table(..)) {
            self.tick()?;
        }
        match self {
            Self::SampleLines(lines) => lines.flush(),
            Self::Prometheus(exposition, Prometheus::Stdout(out)) => {
                let text = lock(exposition).text();
                out.write_all(text.as_bytes())?;
                out.flush()
            }
            _ => Ok(()),
        }
    }
}

fn write_batch(batch: &mut Batch, out: &mut BufWriter<File>) -> io::Result<()> {
    let Some(request) = batch.take() else { return Ok(()) };
    writeln!(out, "{}", json_line(&request))?;
    out.flush()
}

/// Replaces a file in one step, so that no reader sees a part of it. If the path is no file, for example a device,
/// writes to it.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return File::options().write(true).open(path)?.write_all(bytes);
    }
    // The target of a symbolic link is replaced, and the link stays.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or_else(|| Path::new("."));
    let mut builder = tempfile::Builder::new();
    // The usual permissions of a new file: the umask applies to them.
    #[cfg(unix)]
    builder.permissions(Permissions::from_mode(0o666));
    let mut file = builder.prefix(".counters.").tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map(|_| ()).map_err(|e| e.error)
}

/// Serves the text format at `http://ADDRESS/metrics`, on a thread of its own. Returns the address.
pub(crate) fn serve(address: SocketAddr, exposition: Arc<Mutex<Exposition>>) -> Result<SocketAddr, Failure> {
    let failed = |e: &io::Error| Failure::io(format_args!("cannot serve at {address}"), e);
    let server = Server::http(address).map_err(|e| failed(&io::Error::other(e)))?;
    let served = server.server_addr().to_ip().unwrap_or(address);
    spawn("http", move || {
        for request in server.incoming_requests() {
            // An error means that the client is gone: no response is needed.
            let _ = answer(request, &exposition);
        }
    })?;
    Ok(served)
}

fn answer(request: Request, exposition: &Mutex<Exposition>) -> io::Result<()> {
    const VERSION: &str = "Content-Type: text/plain; version=0.0.4; charset=utf-8";
    let path = request.url().split('?').next().unwrap_or_default();
    let (status, text) = match (request.method(), path) {
        (Method::Get | Method::Head, "/metrics") => (200, lock(exposition).text()),
        (Method::Get | Method::Head, "/") => (200, "dotnet-ipc counters: see /metrics\n".to_owned()),
        (Method::Get | Method::Head, _) => (404, "not found: see /metrics\n".to_owned()),
        _ => (405, "only GET is supported\n".to_owned()),
    };
    let mut response = Response::from_string(text).with_status_code(status);
    if let Ok(header) = VERSION.parse::<Header>() {
        response.add_header(header);
    }
    request.respond(response)
}
