//! The operands and the result of the commands that set a profiler.
use ipc_proto::Guid;
use serde::Serialize;

use super::target::{OperandArgs, Target};
use crate::output::stdout;
use crate::run::{Failure, Globals};
use crate::text::printable::printable;

/// Returns the runtime, the profiler's CLSID and its path.
pub(crate) fn operands(operands: &OperandArgs) -> Result<(Target<'_>, Guid, &str), Failure> {
    let (target, operands) = operands.read(&["CLSID", "LIBRARY"], 2)?;
    let mut operands = operands.into_iter();
    let (clsid, path) = (operands.next().unwrap_or_default(), operands.next().unwrap_or_default());
    let clsid = clsid.parse().map_err(|e| Failure::usage(format!("{clsid:?} is {e}")))?;
    Ok((target, clsid, path))
}

/// The result as JSON.
#[derive(Serialize)]
struct SetProfiler<'p> {
    profiler_guid: String,
    profiler_path: &'p str,
}

/// Reports that the runtime has accepted the profiler.
pub(crate) fn done(action: &str, clsid: Guid, path: &str, globals: &Globals) -> Result<(), Failure> {
    let sentence = format!("profiler {} {action}", printable(path));
    stdout::done(globals, &sentence, &SetProfiler { profiler_guid: clsid.to_string(), profiler_path: path })
}
