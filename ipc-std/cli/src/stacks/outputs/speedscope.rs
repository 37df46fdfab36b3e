//! A file for speedscope, in the order of time if the clock has times.
use std::io::{self, Write};

use super::speedscope_sampled;
use crate::stacks::output::{Clocks, InTime, StacksOutput, Writer};
use crate::stacks::text_writer::TextWriter;

pub(super) static OUTPUT: StacksOutput = StacksOutput {
    name: "speedscope",
    suffix: Some(".speedscope.json"),
    help: ".speedscope.json: for www.speedscope.app, by thread; in the order of time with --thread-time and --contention",
    clocks: Clocks::Chosen,
    has_diff: false,
    writer: Writer::Either(speedscope_sampled::write, write_in_time),
};

fn write_in_time(InTime { profile, name, .. }: InTime<'_>, out: &mut dyn Write) -> io::Result<()> {
    TextWriter::write(out, |text| profile.write_speedscope(name, text))
}
