//! Folded stacks: a line for each stack.
use std::io::{self, Write};

use nettrace_analysis::call_tree::CallTree;
use nettrace_analysis::samples::{Clock, Samples};

use crate::stacks::differential::differential;
use crate::stacks::output::{AddedUp, Clocks, StacksOutput, Writer};
use crate::stacks::text_writer::TextWriter;

pub(super) static OUTPUT: StacksOutput = StacksOutput {
    name: "folded",
    suffix: Some(".folded"),
    help: ".folded: a stack a line, for flamegraph.pl and inferno",
    clocks: Clocks::Chosen,
    has_diff: true,
    writer: Writer::AddedUp(write),
};

fn write(AddedUp { new, old, clock, .. }: AddedUp<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    if let Some(old) = old {
        let lines = differential(&folded(old.samples, clock), &folded(new.samples, clock))?;
        return out.write_all(lines.as_bytes());
    }
    let tree = CallTree::new(new.samples, clock, |_, weight| weight.total());
    TextWriter::write(out, |text| tree.write_folded(new.samples.names(), text))
}

/// Returns the stacks, each on a line with its weight.
fn folded(samples: &mut Samples, clock: &Clock) -> String {
    let tree = CallTree::new(samples, clock, |_, weight| weight.total());
    let mut folded = String::new();
    // Writing to a string cannot fail.
    let _ = tree.write_folded(samples.names(), &mut folded);
    folded
}
