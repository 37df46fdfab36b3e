//! Trace events for Perfetto and Chromium.
use std::io::{self, Write};

use crate::stacks::output::{Clocks, InTime, StacksOutput, Writer};
use crate::stacks::text_writer::TextWriter;

pub(super) static OUTPUT: StacksOutput = StacksOutput {
    name: "chromium",
    suffix: ".chromium.json",
    help: ".chromium.json: trace events for ui.perfetto.dev and Chromium, of --thread-time (the default) or --contention",
    clocks: Clocks::Times,
    has_diff: false,
    writer: Writer::InTime(write),
};

fn write(InTime { profile, name, process_id, .. }: InTime<'_>, out: &mut dyn Write) -> io::Result<()> {
    TextWriter::write(out, |text| profile.write_chromium(name, process_id, text))
}
