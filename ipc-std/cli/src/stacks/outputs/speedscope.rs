//! A file for speedscope, in the order of time if the clock has times.
use std::io::{self, Write};

use nettrace_analysis::formats::Profile;

use crate::stacks::output::{AddedUp, Clocks, InTime, StacksOutput, Writer};
use crate::stacks::text_writer::TextWriter;

pub(super) static OUTPUT: StacksOutput = StacksOutput {
    name: "speedscope",
    suffix: ".speedscope.json",
    help: ".speedscope.json: for www.speedscope.app, by thread; in the order of time with --thread-time and --contention",
    clocks: Clocks::Chosen,
    has_diff: false,
    writer: Writer::Either(write, write_in_time),
};

fn write(AddedUp { new, clock, .. }: AddedUp<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    let profile = Profile::new(new.samples, clock, |_, weight| weight.total());
    TextWriter::write(out, |text| profile.write_speedscope(&new.name, text))
}

fn write_in_time(InTime { profile, name, .. }: InTime<'_>, out: &mut dyn Write) -> io::Result<()> {
    TextWriter::write(out, |text| profile.write_speedscope(name, text))
}
