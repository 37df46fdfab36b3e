//! A flame graph as a picture (SVG).
use core::fmt::Write as _;
use std::io::{self, Write};

use inferno::flamegraph;
use nettrace_analysis::call_tree::{CallTree, NodeId};
use nettrace_analysis::samples::{Clock, Samples, Unit};

use crate::output::printable::printable_name;
use crate::stacks::differential::differential;
use crate::stacks::output::{AddedUp, Clocks, StacksOutput, Writer};
use crate::stacks::stack_names::STACK_LIMIT;

pub(super) static OUTPUT: StacksOutput = StacksOutput {
    name: "svg",
    suffix: Some(".svg"),
    help: ".svg: a flame graph for a browser, with zoom and search",
    clocks: Clocks::Chosen,
    has_diff: true,
    writer: Writer::AddedUp(write),
};

fn write(AddedUp { new, old, clock, .. }: AddedUp<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    let mut options = flamegraph::Options::default();
    options.title.clone_from(&new.name);
    options.count_name = match clock.unit() {
        Unit::Nanoseconds => "ns".to_owned(),
        unit => unit.name().to_owned(),
    };
    // The root is at the top, so that a graph of deep stacks opens with the calls that most stacks have.
    options.direction = flamegraph::Direction::Inverted;
    // The same trace makes the same file.
    options.deterministic = true;
    let lines = match old {
        Some(old) => {
            options.title = format!("{} compared with {}", options.title, old.name);
            // No narrow call is left out, because the same call can be wide in the other trace.
            differential(&drawn(old.samples, clock, 0.0), &drawn(new.samples, clock, 0.0))?
        }
        None => drawn(new.samples, clock, options.min_width),
    };
    flamegraph::from_lines(&mut options, lines.lines(), out)
}

/// Returns the stacks that a graph shows, each on a line with its weight. A call of less than `min_width` percent is
/// not shown: its weight counts for its caller. A graph needs the lines in memory, so their names and depth have
/// limits.
fn drawn(samples: &mut Samples, clock: &Clock, min_width: f64) -> String {
    let tree = CallTree::new(samples, clock, |_, weight| weight.total());
    let (mut lines, mut path) = (String::new(), String::new());
    // The calls still to be drawn: each with the length that `path` has for its caller, and with its own depth.
    let mut next: Vec<_> = tree.children(NodeId::ROOT).into_iter().map(|call| (call, 0, 1_usize)).collect();
    while let Some(((node, entry), len, depth)) = next.pop() {
        path.truncate(len);
        path.push_str(if len > 0 { ";" } else { "" });
        path.push_str(&printable_name(samples.names().text(entry.frame)).replace(';', ":"));
        let mut own = entry.inclusive;
        if depth < STACK_LIMIT {
            for call in tree.children(node) {
                // The graph adds the weights up again, in floats. The lower limit ensures that it gets a call that is
                // just wide enough.
                if tree.share(call.1.inclusive) >= min_width * 0.99 {
                    own = own.saturating_sub(call.1.inclusive);
                    next.push((call, path.len(), depth.saturating_add(1)));
                }
            }
        }
        if own > 0 {
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "{path} {own}");
        }
    }
    lines
}
