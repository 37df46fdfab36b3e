//! The inputs with which a fuzzer begins.
use std::io;
use std::path::Path;

use ipc_testdata::{FRAGMENTS, LEGACY, MALFORMED, MESSAGES, REFUSED, TOLERATED, TRACES, corpus, regressions};

/// The longest input in bytes that is useful: it is enough for every part of a message or a trace, and longer ones are
/// slow. It is libFuzzer's option `-max_len`.
pub const MAX_LEN: usize = 4096;

/// Returns the inputs with which the target of a property begins: the stored inputs of its name, those that once failed,
/// the messages, good and bad, and the beginnings of the traces. A target of another name gets the messages and traces.
pub fn seeds(target: &str) -> impl Iterator<Item = &'static [u8]> {
    let folders = [MESSAGES, MALFORMED, REFUSED, TOLERATED, FRAGMENTS, LEGACY, regressions(target)];
    let vectors = folders.into_iter().flatten().map(|vector| vector.bytes);
    let traces = TRACES.iter().map(|trace| &trace.bytes[..trace.bytes.len().min(MAX_LEN)]);
    corpus(target).iter().copied().chain(vectors).chain(traces)
}

/// Writes the [`seeds`] of a target into a folder, a file each, and creates the folder. libFuzzer and AFL++ read it. Beside
/// it, `FOLDER.dict` receives the [`DICTIONARY`](crate::DICTIONARY).
///
/// # Errors
/// If the folder or a file cannot be written.
///
/// ```
/// let folder = std::env::temp_dir().join(format!("seeds-{}", std::process::id()));
/// ipc_fuzz::write_seeds("message", &folder)?;
/// assert!(std::fs::read_dir(&folder)?.count() > 500);
/// # std::fs::remove_file(folder.with_extension("dict"))?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_seeds(target: &str, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.with_extension("dict"), crate::DICTIONARY)?;
    for (number, seed) in seeds(target).enumerate() {
        std::fs::write(folder.join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}
