//! A file for speedscope with stacks that are added up.
use std::io::{self, Write};

use nettrace_analysis::formats::Profile;

use crate::stacks::output::{AddedUp, Clocks, StacksOutput, Writer};
use crate::stacks::text_writer::TextWriter;

pub(super) static OUTPUT: StacksOutput = StacksOutput {
    name: "speedscope-sampled",
    suffix: None,
    help: "The same, always with stacks that are added up",
    clocks: Clocks::Chosen,
    has_diff: false,
    writer: Writer::AddedUp(write),
};

pub(super) fn write(AddedUp { new, clock, .. }: AddedUp<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    let profile = Profile::new(new.samples, clock, |_, weight| weight.total());
    TextWriter::write(out, |text| profile.write_speedscope(&new.name, text))
}
