//! `.gcdump` files of heap snapshots.
use std::io::{Read, Write};
use std::path::Path;
use std::time::SystemTime;

use indicatif::{DecimalBytes, HumanCount};
use nettrace_analysis::FileTime;
use nettrace_analysis::heap::{Gcdump, GcdumpError, GcdumpInfo, GcdumpWriteError, HeapSnapshot};
use serde::Serialize;

use crate::input::source::Source;
use crate::output::atomic_output::AtomicOutput;
use crate::output::output_file::OverwriteArgs;
use crate::output::stdout;
use crate::run::{Failure, Globals, Kind};

/// Returns the snapshot in a `.gcdump` file; `None` if the file is another one, or no regular file.
pub(super) fn read(path: &Path, globals: &Globals) -> Result<Option<HeapSnapshot>, Failure> {
    let mut source = Source::open(path)?;
    let mut bytes = Vec::new();
    if source.is_regular() {
        let begin = (&mut source).take(Gcdump::MAGIC.len() as u64).read_to_end(&mut bytes);
        begin.map_err(|e| source.failed(&e))?;
    }
    if bytes != Gcdump::MAGIC {
        return Ok(None);
    }
    let read = match source.map(globals)? {
        Some(bytes) => Gcdump::read(&bytes),
        None => {
            let read = source.read_to_end(&mut bytes);
            read.map_err(|e| source.failed(&e))?;
            Gcdump::read(&bytes)
        }
    };
    let gcdump = read.map_err(|e| {
        let kind =
            if matches!(e, GcdumpError::Version(_)) { Kind::UnsupportedVersion } else { Kind::Protocol };
        Failure::new(kind, format!("{}: {e}", source.name()))
    })?;
    if gcdump.is_sample {
        globals.note("the file has a sample of the objects: all of them take more memory");
    }
    Ok(Some(gcdump.into()))
}

/// What a file has, as JSON.
#[derive(Serialize)]
struct WrittenSnapshot<'f> {
    file: &'f str,
    bytes: u64,
    objects: u32,
    complete: bool,
}

/// Writes a snapshot to a `.gcdump` file.
pub(super) fn write(
    snapshot: &HeapSnapshot,
    time: Option<FileTime>,
    path: &Path,
    overwrite: &OverwriteArgs,
    globals: &Globals,
) -> Result<(), Failure> {
    let mut output = AtomicOutput::open(path, overwrite)?;
    let process_id = snapshot.process_id.and_then(|id| u32::try_from(id).ok()).unwrap_or_default();
    let info = GcdumpInfo { process_id, time };
    let written = snapshot.graph.write_gcdump(&info, |bytes| output.write_all(bytes));
    written.map_err(|e| match e {
        GcdumpWriteError::Write(e) => output.failed(&e),
        other => Failure::new(Kind::Other, other.to_string()),
    })?;
    if output.is_closed() {
        return Ok(());
    }
    let (bytes, objects) = (output.persist()?, snapshot.graph.len());
    let file = stdout::name(path);
    let (size, count) = (DecimalBytes(bytes), HumanCount(objects.into()));
    let sentence = format!("Wrote {size} ({count} objects) to {file}");
    let complete = snapshot.is_complete;
    stdout::wrote(globals, path, &sentence, &WrittenSnapshot { file: &file, bytes, objects, complete })
}

/// Returns the time in the unit of Windows: 100 ns since 1601.
pub(super) fn now() -> Option<FileTime> {
    const UNIX_EPOCH: u128 = 116_444_736_000_000_000;
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(UNIX_EPOCH.saturating_add(since.as_nanos() / 100)).ok().map(FileTime)
}
