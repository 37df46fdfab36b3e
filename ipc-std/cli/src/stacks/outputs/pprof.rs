//! A profile for pprof.
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use nettrace_analysis::formats::Profile;

use crate::stacks::output::{AddedUp, Clocks, StacksOutput, Writer};

pub(super) static OUTPUT: StacksOutput = StacksOutput {
    name: "pprof",
    suffix: ".pb.gz",
    help: ".pb.gz: for pprof, with the thread of each stack as labels",
    clocks: Clocks::Chosen,
    has_diff: false,
    writer: Writer::AddedUp(write),
};

fn write(AddedUp { new, clock, unix_start, .. }: AddedUp<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    let profile = Profile::new(new.samples, clock, |_, weight| weight.total());
    let mut compressed = GzEncoder::new(out, Compression::default());
    profile.write_pprof(unix_start, |piece| compressed.write_all(piece))?;
    compressed.finish().map(drop)
}
