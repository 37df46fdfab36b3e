//! Threads with the same stack, as one entry.
use core::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use nettrace_analysis::names::{FrameId, Names};
use nettrace_analysis::{WaitKind, outline};
use serde::Serialize;

use super::shown_frames::ShownFrames;
use super::thread_stack::Stack;
use crate::output::integer::Integer;
use crate::text::columns::cut_end;
use crate::text::printable::{json_line, printable_name};

/// How many threads of a group are named.
const NAMED: usize = 3;

/// The library of the runtime: threads that have only its methods are the runtime's own.
const LIBRARY: &str = "System.Private.CoreLib!";

/// Threads with the same stack.
struct StackGroup<'s> {
    threads: Vec<&'s Stack<FrameId>>,
    code: GroupCode,
    /// The place of the innermost method of the program.
    own: Option<usize>,
    /// The number of innermost frames that only wait.
    waiting: usize,
}

/// Whose methods a group has, in the order in which groups are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum GroupCode {
    Program,
    Libraries,
    Runtime,
}

impl<'s> StackGroup<'s> {
    fn new(frames: &[FrameId], names: &Names) -> Self {
        let own = frames.iter().position(|frame| names.is_own(*frame));
        let is_runtime = |frame: &FrameId| names.text(*frame).starts_with(LIBRARY);
        let code = match own {
            Some(_) => GroupCode::Program,
            None if frames.iter().all(is_runtime) => GroupCode::Runtime,
            None => GroupCode::Libraries,
        };
        let waiting = WaitKind::leading_frames(frames.iter().map(|frame| names.text(*frame)));
        Self { threads: Vec::new(), code, own, waiting }
    }

    /// Returns whether all threads run managed code.
    fn runs(&self, names: &Names) -> bool {
        self.threads.iter().all(|stack| stack.runs(names))
    }

    fn frames(&self) -> &'s [FrameId] {
        self.threads.first().map_or(&[], |stack| &stack.frames)
    }

    /// Returns the number of the threads, their innermost method, and the innermost one of the program; without one, the
    /// innermost that does not only wait.
    fn heading(&self, names: &Names) -> String {
        let count = self.threads.len();
        let threads = if count == 1 { "1 thread" } else { &format!("{count} threads") };
        let frames = self.frames();
        let method = |place: usize| {
            let name = frames.get(place).map_or("", |frame| names.short(*frame));
            printable_name(type_and_method(name))
        };
        let place = self.own.unwrap_or(self.waiting);
        match place {
            _ if frames.is_empty() => threads.to_owned(),
            0 => format!("{threads}: {}", method(0)),
            1 => format!("{threads}: {} < {}", method(0), method(1)),
            _ => format!("{threads}: {} < … < {}", method(0), method(place)),
        }
    }
}

/// A group as JSON.
#[derive(Serialize)]
struct GroupRow {
    threads: Vec<Integer>,
    count: usize,
    state: &'static str,
    frames: Vec<String>,
    own: Vec<bool>,
}

/// Writes the groups of threads.
pub(super) fn write(
    stacks: &[Stack<FrameId>],
    shown: &ShownFrames<'_>,
    is_json: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let names = shown.names;
    for (number, group) in groups(stacks, names).iter().enumerate() {
        if is_json {
            let (frames, own) = shown.to_json(group.frames());
            let line = GroupRow {
                threads: group.threads.iter().map(|stack| Integer(stack.thread_id)).collect(),
                count: group.threads.len(),
                state: if group.runs(names) { "managed" } else { "external" },
                frames,
                own,
            };
            writeln!(out, "{}", json_line(&line))?;
            continue;
        }
        if number > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", cut_end(&group.heading(names), shown.width))?;
        let threads: Vec<_> = group.threads.iter().take(NAMED).map(|stack| stack.thread(names)).collect();
        let more = match group.threads.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        writeln!(out, "    {}{more}", threads.join(", "))?;
        shown.write(group.runs(names), group.frames(), out)?;
    }
    Ok(())
}

/// Returns the groups of stacks: those with code of the program first and those of the runtime last, many threads before
/// few.
///
/// Threads whose stacks have the same [`outline`] are a group. Of the innermost frames that only wait, only the outermost
/// one counts: what it does until it has waited says nothing about the program.
fn groups<'s>(stacks: &'s [Stack<FrameId>], names: &Names) -> Vec<StackGroup<'s>> {
    let mut groups: BTreeMap<(bool, Vec<FrameId>), StackGroup<'s>> = BTreeMap::new();
    for stack in stacks {
        let waiting = WaitKind::leading_frames(stack.frames.iter().map(|frame| names.text(*frame)));
        let frames = stack.frames.get(waiting.saturating_sub(1)..).unwrap_or_default();
        let is_own = |frame: &FrameId| names.is_own(*frame);
        let group = groups
            .entry((stack.is_managed && waiting == 0, outline(frames, is_own)))
            .or_insert_with(|| StackGroup::new(&stack.frames, names));
        group.threads.push(stack);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| (group.code, Reverse(group.threads.len())));
    groups
}

/// Returns a short name without its namespace.
fn type_and_method(name: &str) -> &str {
    // The type arguments of a generic type have dots too.
    let head = name.find(['[', '<']).map_or(name, |place| name.get(..place).unwrap_or(name));
    let method = name.rfind('.').filter(|place| *place < head.len());
    let before = match method {
        Some(place) => name.get(..place).unwrap_or(name).trim_end_matches('.'),
        None => head,
    };
    match before.rfind('.') {
        Some(place) => name.get(place.saturating_add(1)..).unwrap_or(name),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::type_and_method;

    #[test]
    fn namespaces_are_left_out() {
        for (name, expected) in [
            ("Contoso.Orders.AuditTrail.Append", "AuditTrail.Append"),
            ("AuditTrail.Append", "AuditTrail.Append"),
            ("Program.<Main>$", "Program.<Main>$"),
            ("Contoso.Orders.Cart..ctor", "Cart..ctor"),
            ("Contoso.Endpoints+<TransferAsync>d__9.MoveNext", "Endpoints+<TransferAsync>d__9.MoveNext"),
            (
                "System.X.Box`1[System.__Canon,A.B+<C>d__1].MoveNext",
                "Box`1[System.__Canon,A.B+<C>d__1].MoveNext",
            ),
            ("app!?", "app!?"),
            ("", ""),
        ] {
            assert_eq!(type_and_method(name), expected);
        }
    }
}
