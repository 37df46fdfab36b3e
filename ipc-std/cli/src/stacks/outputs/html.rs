//! A flame graph as one page of HTML.
use std::io::{self, Write};

use crate::stacks::flame_page;
use crate::stacks::output::{AddedUp, Clocks, StacksOutput, Writer};

pub(super) static OUTPUT: StacksOutput = StacksOutput {
    name: "html",
    suffix: ".html",
    help: ".html: one page for a browser, with zoom, search, and a choice of clocks and threads",
    clocks: Clocks::Several(flame_page::clocks),
    has_diff: true,
    writer: Writer::AddedUp(write),
};

fn write(
    AddedUp { new, mut old, clock, is_exact, .. }: AddedUp<'_, '_>,
    mut out: &mut dyn Write,
) -> io::Result<()> {
    flame_page::write(new, old.as_mut(), clock, is_exact, &mut out)
}
