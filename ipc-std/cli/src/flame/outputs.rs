//! The kinds of files that `flame` writes.
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use nettrace_analysis::formats::Profile;

use super::output::{AddedUp, Clocks, FlameOutput, InTime, Writer};
use super::text_writer::TextWriter;
use super::{flame_page, folded};

/// All kinds, in the order of the help.
pub(super) static OUTPUTS: &[FlameOutput] = &[
    FlameOutput {
        name: "html",
        suffix: ".html",
        help: ".html: one page for a browser, with zoom, search, and a choice of clocks and threads",
        clocks: Clocks::Several(flame_page::clocks),
        has_diff: true,
        writer: Writer::AddedUp(html),
    },
    FlameOutput {
        name: "folded",
        suffix: ".folded",
        help: ".folded: a stack a line, for flamegraph.pl and inferno",
        clocks: Clocks::Chosen,
        has_diff: true,
        writer: Writer::AddedUp(folded::write),
    },
    FlameOutput {
        name: "speedscope",
        suffix: ".speedscope.json",
        help: ".speedscope.json: for www.speedscope.app, by thread; in the order of time with --thread-time and --contention",
        clocks: Clocks::Chosen,
        has_diff: false,
        writer: Writer::Either(speedscope, speedscope_in_time),
    },
    FlameOutput {
        name: "chromium",
        suffix: ".chromium.json",
        help: ".chromium.json: trace events for ui.perfetto.dev and Chromium, of --thread-time (the default) or --contention",
        clocks: Clocks::Times,
        has_diff: false,
        writer: Writer::InTime(chromium),
    },
    FlameOutput {
        name: "firefox",
        suffix: ".firefox.json",
        help: ".firefox.json: for profiler.firefox.com, in the order of time",
        clocks: Clocks::Chosen,
        has_diff: false,
        writer: Writer::InTime(firefox),
    },
    FlameOutput {
        name: "pprof",
        suffix: ".pb.gz",
        help: ".pb.gz: for pprof, with the thread of each stack as labels",
        clocks: Clocks::Chosen,
        has_diff: false,
        writer: Writer::AddedUp(pprof),
    },
];

fn html(stacks: AddedUp<'_, '_>, mut out: &mut dyn Write) -> io::Result<()> {
    let AddedUp { new, mut old, clock, is_exact, .. } = stacks;
    flame_page::write(new, old.as_mut(), clock, is_exact, &mut out)
}

fn speedscope(AddedUp { new, clock, .. }: AddedUp<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    let profile = Profile::new(new.samples, clock, |_, weight| weight.total());
    TextWriter::write(out, |text| profile.write_speedscope(&new.name, text))
}

fn speedscope_in_time(InTime { profile, name, .. }: InTime<'_>, out: &mut dyn Write) -> io::Result<()> {
    TextWriter::write(out, |text| profile.write_speedscope(name, text))
}

fn chromium(InTime { profile, name, process_id, .. }: InTime<'_>, out: &mut dyn Write) -> io::Result<()> {
    TextWriter::write(out, |text| profile.write_chromium(name, process_id, text))
}

fn firefox(stacks: InTime<'_>, out: &mut dyn Write) -> io::Result<()> {
    let InTime { profile, name, process_id, unix_start } = stacks;
    Ok(serde_json::to_writer(out, &profile.to_firefox(name, process_id, unix_start))?)
}

fn pprof(AddedUp { new, clock, unix_start, .. }: AddedUp<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    let profile = Profile::new(new.samples, clock, |_, weight| weight.total());
    let mut compressed = GzEncoder::new(out, Compression::default());
    profile.write_pprof(unix_start, |piece| compressed.write_all(piece))?;
    compressed.finish().map(drop)
}
