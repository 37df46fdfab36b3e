//! The property of the names of frames and of call trees.
#![allow(clippy::cast_possible_truncation, reason = "the numbers are small")]
use nettrace::TraceEvent;
use nettrace_analysis::call_tree::{CallTree, NodeId, Order};
use nettrace_analysis::names::Names;
use nettrace_analysis::samples::{Clock, Samples};
use nettrace_analysis::{StackId, Stacks};

use super::made_up_events::{MadeUp, MethodCode, Naming};
use super::traces::{clocks, each_event, samples_of, trace_of};

/// Checks that frames have the names that a simple list of all code gives them, and that the parts of a call tree agree
/// with each other: totals, top functions, callers, callees and folded stacks.
pub fn names(bytes: &[u8]) {
    let (trace, events) = trace_of(bytes);
    if let Some(events) = events {
        assert_eq!(named_stacks(&trace), Model::of(&events));
    }
    let (mut samples, mut again) = (samples_of(&trace), samples_of(&trace));
    for clock in clocks() {
        let tree = check_tree(&mut samples, &clock);
        let second = CallTree::new(&mut again, &clock, |_, weight| weight.total());
        assert_eq!(
            tree.difference(samples.names(), &second, again.names(), Order::Exclusive),
            [],
            "{clock:?}"
        );
    }
    assert!(samples.dropped() == 0 && samples.names().dropped() == 0 && samples.stacks().cut() == 0);
}

/// The names of the stack of each event, innermost first.
fn named_stacks(trace: &[u8]) -> Vec<Vec<String>> {
    let (mut names, mut stacks, mut found) = (Names::default(), Stacks::default(), Vec::new());
    each_event(trace, false, |event: &TraceEvent<'_>| {
        names.event(event);
        found.push(stacks.of(event, &mut names));
    });
    let text = |stack: StackId| -> Vec<String> {
        let frames: Vec<_> = stacks.addresses(stack).map(|address| names.frame(address)).collect();
        frames.iter().map(|frame| names.text(*frame).to_owned()).collect()
    };
    found.into_iter().map(text).collect()
}

/// The model: all code in a list.
#[derive(Default)]
struct Model {
    code: Vec<MethodCode>,
    /// Each address that was seen, with its event, and with its code once the code is gone.
    seen: Vec<(usize, u64, Option<MethodCode>)>,
    /// The names that the id of each module has had, in order. A method has the last name at the time when it was
    /// loaded, or else the first name after that.
    modules: Vec<(u64, Vec<String>)>,
}

impl Model {
    fn of(events: &[(MadeUp, Naming)]) -> Vec<Vec<String>> {
        let mut model = Self::default();
        for (i, (event, naming)) in events.iter().enumerate() {
            match naming {
                Naming::Load(code) => model.load(code),
                Naming::Unload(code) => {
                    if !model.code.iter().any(|known| overlap(known, code)) {
                        model.load(code);
                    }
                    model.retire(code);
                }
                Naming::Module { id, name } => model.module(*id, name),
                Naming::None => {}
            }
            for ip in &event.stack {
                // If the code at an address is gone, the address counts as another one from then on.
                model.seen.push((i, *ip, None));
            }
        }
        let mut stacks = vec![Vec::new(); events.len()];
        for (event, ip, code) in &model.seen {
            let at = |ip: u64| model.code.iter().find(|code| code.start <= ip && ip < end(code));
            let code = code.as_ref().or_else(|| at(*ip)).or_else(|| at(ip.wrapping_sub(1)));
            stacks[*event].push(code.map_or_else(|| "?!?".to_owned(), |code| model.text(code)));
        }
        stacks
    }

    fn load(&mut self, code: &MethodCode) {
        if code.size == 0 || end(code) <= code.start {
            return;
        }
        // A module id can be used again under another name. The high 32 bits count the names of an id, so that such
        // code differs.
        let code = MethodCode { module: code.module | (self.place(code) as u64) << 32, ..code.clone() };
        let is_same = |known: &MethodCode| {
            (known.start, end(known), known.module, &known.name)
                == (code.start, end(&code), code.module, &code.name)
        };
        if self.code.iter().any(is_same) {
            return;
        }
        self.retire(&code);
        self.code.push(code);
    }

    /// Returns the index of the name of the code's module, among all names that the id of the module has had.
    fn place(&self, code: &MethodCode) -> usize {
        let modules = self.modules.iter().find(|(id, _)| *id == code.module);
        modules.map_or(0, |(_, names)| names.len().saturating_sub(1))
    }

    fn retire(&mut self, gone: &MethodCode) {
        let all = core::mem::take(&mut self.code);
        let (out, left): (Vec<_>, Vec<_>) = all.into_iter().partition(|code| overlap(code, gone));
        for code in out {
            let is_open = |ip: u64| code.start <= ip && ip < end(&code);
            for (_, ip, owner) in &mut self.seen {
                if owner.is_none() && is_open(*ip) {
                    *owner = Some(code.clone());
                }
            }
        }
        self.code = left;
    }

    fn module(&mut self, id: u64, path: &str) {
        let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
        let name = name.strip_suffix(".dll").unwrap_or(name);
        if name.is_empty() {
            return;
        }
        match self.modules.iter_mut().find(|(known, _)| *known == id) {
            Some((_, names)) if names.last().is_some_and(|last| last == name) => {}
            Some((_, names)) => names.push(name.to_owned()),
            None => self.modules.push((id, vec![name.to_owned()])),
        }
    }

    fn text(&self, code: &MethodCode) -> String {
        let (id, place) = (code.module & 0xffff_ffff, (code.module >> 32) as usize);
        let names = self.modules.iter().find(|(known, _)| *known == id);
        let module = names.and_then(|(_, names)| names.get(place)).map_or("ManagedModule", |name| name);
        format!("{module}!{}", code.name)
    }
}

fn end(code: &MethodCode) -> u64 {
    code.start.saturating_add(code.size.into())
}

fn overlap(a: &MethodCode, b: &MethodCode) -> bool {
    a.start < end(b) && b.start < end(a)
}

fn check_tree(samples: &mut Samples, clock: &Clock) -> CallTree {
    let weights = |samples: &Samples| {
        samples.weights(clock).fold(0_u64, |sum, (_, _, weight)| sum.saturating_add(weight.total()))
    };
    let tree = CallTree::new(samples, clock, |_, weight| weight.total());
    let total = tree.total();
    assert_eq!(total, weights(samples), "{clock:?}");
    let names = samples.names();
    let children: u64 =
        tree.children(NodeId::ROOT).iter().fold(0, |sum, (_, entry)| sum.saturating_add(entry.inclusive));
    assert!(children <= total);
    let mut exclusive = 0_u64;
    for order in [Order::Exclusive, Order::Inclusive, Order::Own] {
        let top = tree.top(order);
        let key = |entry: &nettrace_analysis::call_tree::Entry| match order {
            Order::Exclusive => entry.exclusive,
            Order::Inclusive => entry.inclusive,
            Order::Own => entry.own,
        };
        assert!(top.windows(2).all(|pair| key(&pair[0]) >= key(&pair[1])), "{clock:?} {order:?}");
        assert!(
            top.iter()
                .all(|entry| entry.exclusive.max(entry.own) <= entry.inclusive && entry.inclusive <= total)
        );
        exclusive = top.iter().fold(0, |sum, entry| sum.saturating_add(entry.exclusive));
        for entry in top.iter().take(4) {
            for callees in [tree.callees(entry.frame), tree.callers(entry.frame)] {
                let sum = callees.iter().fold(0_u64, |sum, callee| sum.saturating_add(callee.inclusive));
                assert!(sum <= entry.inclusive || sum == u64::MAX, "{clock:?} {}", names.text(entry.frame));
            }
        }
    }
    // Empty stacks have no frame.
    assert_eq!(exclusive, children, "{clock:?}");
    let mut folded = String::new();
    tree.write_folded(names, &mut folded).expect("a string takes all");
    let sum = folded.lines().fold(0_u64, |sum, line| {
        let (stack, weight) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line:?} of {folded:?}"));
        assert!(stack.split(';').all(|frame| !frame.is_empty()), "{line:?}");
        sum.saturating_add(weight.parse().unwrap_or_else(|_| panic!("{line:?} of {folded:?}")))
    });
    assert_eq!(sum, exclusive, "{clock:?}: {folded}");
    assert!((0.0..=100.0).contains(&tree.unnamed_share(names)));
    tree
}
