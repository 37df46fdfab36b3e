//! A flame graph as a picture (SVG).
use core::cmp::Reverse;
use core::fmt::Write as _;
use core::iter::successors;
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, Write};
use std::rc::Rc;

use inferno::flamegraph;
use inferno::flamegraph::color::PaletteMap;
use nettrace_analysis::call_tree::{CallTree, Entry, NodeId};
use nettrace_analysis::names::FrameId;
use nettrace_analysis::samples::{Clock, Samples, Unit, Weight};
use unicode_width::UnicodeWidthStr;

use crate::output::function_name::FunctionName;
use crate::output::printable::NAME_LIMIT;
use crate::stacks::differential::differential;
use crate::stacks::flame_page::CALLS;
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

fn write(AddedUp { new, old, clock, is_exact, .. }: AddedUp<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    let draw = |samples: &mut Samples, min_width, colours: &mut String| {
        drawn(samples, clock, is_exact, min_width, colours)
    };
    let mut colours = String::new();
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
            differential(&draw(old.samples, 0.0, &mut colours), &draw(new.samples, 0.0, &mut colours))?
        }
        None => draw(new.samples, options.min_width, &mut colours),
    };
    let mut palette = PaletteMap::from_reader(&mut colours.as_bytes())?;
    options.palette_map = Some(&mut palette);
    let mut graph = Vec::new();
    flamegraph::from_lines(&mut options, lines.lines(), &mut graph)?;
    with_short_labels(&String::from_utf8_lossy(&graph), out)
}

/// The part of the script that takes the label of a call from its title, without the numbers in the last parentheses.
const SCRIPT_LABEL: &str = r"replace(/\([^(]*\)$/,";
/// The same, also without the arguments of a function. The script cuts what remains from the left.
const SCRIPT_SHORT_LABEL: &str = r"replace(/\([^]*$/,";

/// The characters that a text of XML has escaped, in the order in which escapes are replaced.
const ESCAPES: [(&str, &str); 5] =
    [("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;"), ("'", "&apos;"), ("&", "&amp;")];

/// Returns the colour of a function: orange for code of the program, and blue for other code. Functions have different
/// shades of it.
fn colour(name: &str, is_own: bool) -> String {
    let hash = name.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    let shade = |least: u32| least.saturating_add(hash % 31);
    let [red, green, blue] = if is_own { [224, 140, 50] } else { [130, 160, 210] }.map(shade);
    format!("rgb({red},{green},{blue})")
}

/// Writes a graph whose labels keep the names of the methods. The graph cuts a label at its end, with `..`.
fn with_short_labels(graph: &str, out: &mut dyn Write) -> io::Result<()> {
    let graph = graph.replace(SCRIPT_LABEL, SCRIPT_SHORT_LABEL);
    let mut calls = graph.split("<title>");
    write!(out, "{}", calls.next().unwrap_or_default())?;
    for call in calls {
        write!(out, "<title>")?;
        let label = call.split_once("</title>").and_then(|(title, rest)| {
            let (name, _numbers) = title.rsplit_once(" (")?;
            let end = rest.find("..</text>")?;
            let start = rest.get(..end)?.rfind('>')?.saturating_add(1);
            let width = rest.get(start..end)?.width().saturating_add(2);
            let name = ESCAPES.iter().fold(name.to_owned(), |name, (c, escape)| name.replace(escape, c));
            let label = FunctionName::new(&name, true).fit(width);
            let label = ESCAPES.iter().rev().fold(label, |label, (c, escape)| label.replace(c, escape));
            let before = call.len().saturating_sub(rest.len()).saturating_add(start);
            Some((call.get(..before)?, label, rest.get(end.saturating_add(2)..)?))
        });
        match label {
            Some((before, label, after)) => write!(out, "{before}{label}{after}")?,
            None => write!(out, "{call}")?,
        }
    }
    Ok(())
}

/// The maximum number of bytes in the lines of a graph and in the names of its calls.
const TEXT: usize = 32 << 20;

/// A call of a graph.
struct Call {
    /// The index of the caller.
    caller: Option<usize>,
    name: Rc<str>,
    /// The weight without that of the callees in the graph.
    own: u64,
    /// The length of the line of its stack.
    len: usize,
}

/// Returns the stacks that a graph shows, each on a line with its weight. A call of less than `min_width` percent is
/// not shown: its weight counts for its caller. A graph needs the lines in memory, so names, depth, calls and lines
/// have limits. Also adds the colour of each function to `colours`.
fn drawn(
    samples: &mut Samples,
    clock: &Clock,
    is_exact: bool,
    min_width: f64,
    colours: &mut String,
) -> String {
    let tree = if is_exact { CallTree::new } else { CallTree::folded };
    let tree = tree(samples, clock, |_, weight: Weight| weight.total());
    let mut names: HashMap<FrameId, Rc<str>> = HashMap::new();
    let (mut calls, mut len_of_all) = (Vec::<Call>::new(), 0_usize);
    // The calls that could be drawn next: the weight, the node and the index of the caller. The heaviest one is first,
    // and a callee weighs at most what its caller weighs.
    let mut next: BinaryHeap<_> =
        tree.children(NodeId::ROOT).into_iter().map(|call| Candidate::new(call, 1, None)).collect();
    let mut rest = next.iter().fold(0_u64, |sum, call| sum.saturating_add(call.weight));
    while let Some(Candidate { weight, depth: Reverse(depth), node: Reverse(node), frame, is_own, caller }) =
        next.pop()
    {
        let name = names.entry(frame).or_insert_with(|| {
            let text = samples.names().text(frame);
            let name = FunctionName::new(text, is_exact).fit(NAME_LIMIT).replace(';', ":");
            // Writing to a string cannot fail.
            let _ = writeln!(colours, "{name}->{}", colour(&name, is_own));
            name.into()
        });
        let above = caller.and_then(|caller| calls.get(caller));
        let len = above.map_or(0, |above| above.len).saturating_add(name.len()).saturating_add(1);
        len_of_all = len_of_all.saturating_add(len).saturating_add(name.len());
        if calls.len() >= CALLS || len_of_all > TEXT {
            break;
        }
        match caller.and_then(|caller| calls.get_mut(caller)) {
            Some(above) => {
                above.own = above.own.saturating_sub(weight);
                if above.own == 0 {
                    len_of_all = len_of_all.saturating_sub(above.len);
                }
            }
            None => rest = rest.saturating_sub(weight),
        }
        let place = calls.len();
        calls.push(Call { caller, name: Rc::clone(name), own: weight, len });
        if depth < STACK_LIMIT {
            // The graph adds the weights up again, in floats. The lower limit ensures that it gets a call that is just
            // wide enough.
            let is_wide = |call: &Candidate| tree.share(call.weight) >= min_width * 0.99;
            let callees = tree.children(node).into_iter().map(|call| {
                let depth = depth.saturating_add(1);
                Candidate::new(call, depth, Some(place))
            });
            next.extend(callees.take_while(is_wide));
        }
    }
    let (mut lines, mut path) = (String::new(), Vec::new());
    for call in calls.iter().filter(|call| call.own > 0) {
        path.clear();
        path.extend(successors(Some(call), |call| calls.get(call.caller?)).map(|call| &*call.name));
        for (place, name) in path.iter().rev().enumerate() {
            lines.push_str(if place > 0 { ";" } else { "" });
            lines.push_str(name);
        }
        let _ = writeln!(lines, " {}", call.own);
    }
    if rest > 0 {
        // The calls without a caller that are not shown.
        let _ = writeln!(lines, "… {rest}");
    }
    lines
}

/// A call that could be drawn, in the order of weight. Of equal calls, the outer one is first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    weight: u64,
    depth: Reverse<usize>,
    node: Reverse<NodeId>,
    frame: FrameId,
    is_own: bool,
    /// The index of the caller.
    caller: Option<usize>,
}

impl Candidate {
    fn new((node, entry): (NodeId, Entry), depth: usize, caller: Option<usize>) -> Self {
        Self {
            weight: entry.inclusive,
            depth: Reverse(depth),
            node: Reverse(node),
            frame: entry.frame,
            is_own: entry.is_own,
            caller,
        }
    }
}
