//! Names of frames, against those that TraceLog has: testdata/README.md.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test states what it expects by unwrapping it"
)]
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ipc_proto::nettrace::{EventAssembler, Limits, Progress, TraceEvent};
use nettrace_analysis::names::Names;
use nettrace_analysis::{KnownProvider, StackId, Stacks};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/analysis").join(name)
}

fn for_each_event(bytes: &[u8], in_order: bool, mut f: impl FnMut(&TraceEvent<'_>)) {
    let mut assembler = EventAssembler::new(Limits::default());
    if in_order {
        assembler = assembler.in_order(EventAssembler::ORDER_LIMIT);
    }
    assembler.push(bytes);
    while let Progress::Event = assembler.advance() {
        f(&assembler.event().unwrap());
    }
}

/// MethodILToNativeMap of the runtime, which TraceLog leaves out.
fn is_il_map(event: &TraceEvent<'_>) -> bool {
    event.metadata().is_some_and(|metadata| {
        KnownProvider::of(metadata.provider) == Some(KnownProvider::Runtime) && metadata.event_id == 190
    })
}

/// The stacks of all events by name, root first, and how many events have each.
fn named_stacks(bytes: &[u8], in_order: bool) -> BTreeMap<String, u64> {
    let (mut names, mut stacks) = (Names::default(), Stacks::default());
    let mut events: BTreeMap<StackId, u64> = BTreeMap::new();
    for_each_event(bytes, in_order, |event| {
        names.event(event);
        let stack = stacks.of(event, &mut names);
        if stack != StackId::EMPTY && !is_il_map(event) {
            *events.entry(stack).or_default() += 1;
        }
    });
    let mut named: BTreeMap<String, u64> = BTreeMap::new();
    for (stack, count) in events {
        let mut frames: Vec<_> = stacks.addresses(stack).map(|address| names.frame(address)).collect();
        frames.reverse();
        let frames: Vec<_> = frames.iter().map(|frame| names.text(*frame)).collect();
        *named.entry(frames.join(";")).or_default() += count;
    }
    assert_eq!((names.dropped(), stacks.cut()), (0, 0));
    named
}

fn check(trace: &Path, stacks: &Path) {
    let bytes = std::fs::read(trace).unwrap();
    let expected: serde_json::Value = serde_json::from_slice(&std::fs::read(stacks).unwrap()).unwrap();
    let expected = expected["stacks"].as_object().unwrap().iter();
    let expected: BTreeMap<_, _> = expected.map(|(stack, n)| (stack.clone(), n.as_u64().unwrap())).collect();
    for in_order in [true, false] {
        let named = named_stacks(&bytes, in_order);
        let missing: Vec<_> = expected.iter().filter(|(stack, n)| named.get(*stack) != Some(n)).collect();
        let other: Vec<_> = named.iter().filter(|(stack, n)| expected.get(*stack) != Some(n)).collect();
        assert!(missing.is_empty() && other.is_empty(), "{trace:?}: {missing:#?}\n\n{other:#?}");
    }
}

#[test]
fn every_stack_has_the_names_of_tracelog() {
    for name in ["net10-startup", "net31-sampled"] {
        check(&testdata(&format!("{name}.nettrace")), &testdata(&format!("{name}.stacks.json")));
    }
}
