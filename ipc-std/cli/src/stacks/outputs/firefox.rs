//! A profile for the Firefox profiler.
use std::io::{self, Write};

use crate::stacks::output::{Clocks, InTime, StacksOutput, Writer};

pub(super) static OUTPUT: StacksOutput = StacksOutput {
    name: "firefox",
    suffix: ".firefox.json",
    help: ".firefox.json: for profiler.firefox.com, in the order of time",
    clocks: Clocks::Chosen,
    has_diff: false,
    writer: Writer::InTime(write),
};

fn write(stacks: InTime<'_>, out: &mut dyn Write) -> io::Result<()> {
    let InTime { profile, name, process_id, unix_start } = stacks;
    Ok(serde_json::to_writer(out, &profile.to_firefox(name, process_id, unix_start))?)
}
