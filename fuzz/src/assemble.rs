//! The property of an assembler: it returns the events of the parser, however a trace is cut into pieces.
use nettrace::{
    AssemblerStep, EventAssembler, EventOrder, Item, ReadOptions, Record, Str, TraceEvent, Value, Values,
};

use crate::assembled::{SeenEvent, read};
use crate::reading::of_event;
use crate::whole::whole;
use crate::wire::sizes;
use crate::work::parse;

/// Checks that an assembler returns the events of the parser, for any sizes of the pieces that it receives.
///
/// An assembler that sorts by time returns the same events and counts each late one. It finds a field by its path
/// exactly if a simple search finds it. The sizes of the pieces are the bytes in reverse. A reader of the whole trace
/// returns the events of the assembler that sorts.
pub fn assemble(bytes: &[u8]) {
    whole(bytes);
    let plain = parsed(bytes);
    let little = bytes.last().is_some_and(|byte| byte % 2 == 0);
    for order in
        [EventOrder::Stream, if little { EventOrder::Time { limit: 2000 } } else { EventOrder::BY_TIME }]
    {
        let new = || EventAssembler::new(order, ReadOptions::default());
        let whole = read(new(), bytes, [bytes.len().max(1)].into_iter().cycle());
        let pieces = read(new(), bytes, sizes(bytes.iter().rev()));
        assert!(whole.events == pieces.events, "{order:?}: the events depend on the pieces");
        assert_eq!(whole.numbers, pieces.numbers, "{order:?}");
        let mut headers: Vec<_> = whole.events.iter().map(|event| event.header.clone()).collect();
        if order == EventOrder::Stream {
            skipping(&new, bytes, &whole.events);
            fields(new(), bytes);
            assert!(headers == plain, "the events differ from those of the parser");
            continue;
        }
        let late = late(whole.events.iter().map(|event| event.timestamp));
        assert_eq!(whole.late, late, "{order:?}");
        let mut plain = plain.clone();
        headers.sort_unstable();
        plain.sort_unstable();
        assert!(headers == plain, "{order:?}: sorting changed the events");
    }
}

/// Checks an assembler that skips the blocks without events of the middle third of all times. It returns the events of
/// the other blocks unchanged.
fn skipping(new: &dyn Fn() -> EventAssembler, bytes: &[u8], all: &[SeenEvent]) {
    let mut times: Vec<u64> = all.iter().map(|event| event.timestamp).collect();
    times.sort_unstable();
    let [from, to] = [1, 2].map(|third| times.get(times.len() / 3 * third).copied().unwrap_or_default());
    let some = || {
        let mut assembler = new();
        assembler.skip_outside(from, to);
        assembler
    };
    let whole = read(some(), bytes, [bytes.len().max(1)].into_iter().cycle());
    let pieces = read(some(), bytes, sizes(bytes.iter().rev()));
    assert!(whole == pieces, "the skipped blocks depend on the pieces");
    let mut rest = all.iter();
    let are_left = whole.events.iter().all(|event| rest.any(|other| event == other));
    assert!(are_left, "skipped blocks changed the other events");
    assert!(
        whole.skipped > 0 || whole.events.len() == all.len(),
        "events are missing although no block was skipped"
    );
}

/// Returns the events that a parser finds in the whole stream.
fn parsed(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    parse(bytes, |record, _| {
        if let Record::Event(event) = record {
            events.push(of_event(event));
        }
    });
    events
}

/// Counts the timestamps that follow a larger one.
fn late(timestamps: impl Iterator<Item = u64>) -> u64 {
    let mut newest = 0;
    timestamps.fold(0, |late, timestamp| {
        let is_late = timestamp < newest;
        newest = newest.max(timestamp);
        late + u64::from(is_late)
    })
}

/// The fields of an object, as a tree.
#[derive(Debug, Default)]
struct Object<'a>(Vec<(Str<'a>, Node<'a>)>);

#[derive(Debug)]
enum Node<'a> {
    Value(Value<'a>),
    Object(Object<'a>),
    Array,
}

impl<'a> Object<'a> {
    /// Reads fields up to the end of the object.
    fn read(values: &mut Values<'a>) -> Self {
        let mut fields = Self::default();
        while let Some(item) = values.next() {
            fields.0.push(match item {
                Item::Value { name, value } => (name, Node::Value(value)),
                Item::BeginObject { name } => (name, Node::Object(Self::read(values))),
                Item::BeginArray { name } => {
                    let mut open = 1;
                    while open > 0 {
                        match values.next().expect("each array ends") {
                            Item::BeginObject { .. } | Item::BeginArray { .. } => open += 1,
                            Item::EndObject | Item::EndArray => open -= 1,
                            Item::Value { .. } => {}
                        }
                    }
                    (name, Node::Array)
                }
                Item::EndObject | Item::EndArray => break,
            });
        }
        fields
    }

    fn find(&self, path: &str) -> Option<Value<'a>> {
        for (name, node) in &self.0 {
            match node {
                Node::Value(value) if *name == path => return Some(*value),
                Node::Object(object) if name.is_empty() => return object.find(path),
                Node::Object(object) => {
                    if let Some(rest) = path.strip_prefix(&format!("{name}.")) {
                        return object.find(rest);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Collects the paths of the first fields of each object.
    fn paths(&self, prefix: &str, paths: &mut Vec<String>) {
        for (name, node) in self.0.iter().take(4) {
            paths.push(format!("{prefix}{name}"));
            if let Node::Object(object) = node {
                let prefix = if name.is_empty() { prefix.to_owned() } else { format!("{prefix}{name}.") };
                object.paths(&prefix, paths);
            }
        }
    }
}

/// Checks for some events that `field` and a search in the tree find the same fields.
fn fields(mut assembler: EventAssembler, bytes: &[u8]) {
    assembler.push(bytes);
    for number in 0.. {
        let AssemblerStep::Event(event) = assembler.step() else { return };
        if number < 20 || number % 32 == 0 {
            fields_of(&event);
        }
    }
}

fn fields_of(event: &TraceEvent<'_>) {
    let object = Object::read(&mut event.values());
    let mut paths = vec!["Payload.Mean".to_owned()];
    object.paths("", &mut paths);
    for path in paths.iter().take(16) {
        let (found, expected) = (event.field(path), object.find(path));
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{path}");
    }
}
