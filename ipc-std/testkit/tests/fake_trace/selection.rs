//! The events that a session includes.
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use ipc_proto::plan::DEFAULT_RUNDOWN;
use ipc_proto::types::{EventFilter, EventLevel, Format, Provider, SessionBufferMode, StreamingProvider};
use ipc_proto::{Array, Code, CollectTracing};
use ipc_std::{Connection, TraceConfig};
use ipc_testkit::{FakeRuntime, Profile};
use nettrace::{Item, Limits, Metadata, Parser, Record, Value, Version};

use crate::peer::connect;
use crate::recordings::*;
use crate::stream::*;

fn ids(enable: bool, event_ids: &[u32]) -> EventFilter<'_> {
    EventFilter { enable, event_ids: Array::from(event_ids) }
}

/// Returns a recording of the events 1 to 4 of `App`, and one event of another provider. Event 4 passes every keyword
/// and level.
fn filterable() -> Vec<u8> {
    let kinds =
        [("App", 1, 0x1, 4), ("App", 2, 0x2, 4), ("App", 3, 0x3, 5), ("App", 4, 0, 0), ("Other", 1, 0, 0)];
    let events: Vec<RecordedEvent> = (0..5).map(|kind| (kind, 7, kind as u32 + 1, 0)).collect();
    recording(Version::V4, &kinds, &events, &[])
}

#[test]
fn only_included_events_are_sent() {
    let runtime = replaying(Profile::net10(), &filterable());
    let informational = EventLevel::INFORMATIONAL;
    let none = EventFilter::ALL;
    for (keywords, level, filter, expected) in [
        (u64::MAX, EventLevel::VERBOSE, none, &[1, 2, 3, 4][..]),
        (u64::MAX, informational, none, &[1, 2, 4]),
        (u64::MAX, EventLevel::CRITICAL, none, &[4]),
        (u64::MAX, EventLevel::LOG_ALWAYS, none, &[1, 2, 3, 4]),
        (0x2, EventLevel::VERBOSE, none, &[2, 3, 4]),
        (0x4, EventLevel::VERBOSE, none, &[4]),
        (u64::MAX, EventLevel::VERBOSE, ids(true, &[2, 4]), &[2, 4]),
        (u64::MAX, EventLevel::VERBOSE, ids(false, &[2, 4]), &[1, 3]),
        (u64::MAX, EventLevel::VERBOSE, ids(true, &[]), &[]),
        (0x1, informational, ids(false, &[4]), &[1]),
    ] {
        let providers = [StreamingProvider { filter, ..Provider { keywords, level, ..APP[0] }.into() }];
        let config = TraceConfig::new(&providers);
        let (whole, _) = trace(&runtime, &config, rounds(1));
        assert_eq!(whole.ids("App"), expected.iter().copied().collect(), "{providers:?}");
        assert_eq!(
            (whole.ids("Other"), whole.lost),
            (BTreeSet::new(), 0),
            "events that are not sent are not lost"
        );
        assert_eq!(whole.kinds, expected.len() + 1, "kinds that are not sent have no metadata");
    }
    // Each command has its providers at another offset.
    for (rundown_keyword, stackwalk, filter, command) in [
        (DEFAULT_RUNDOWN, true, none, 0x0203),
        (0, false, none, 0x0204),
        (1, true, none, 0x0205),
        (0, true, ids(true, &[4]), 0x0206),
    ] {
        let providers = APP.map(|provider| StreamingProvider { filter, ..provider.into() });
        let config = TraceConfig { rundown_keyword, stackwalk, ..TraceConfig::new(&providers) };
        let (whole, _) = trace(&runtime, &config, rounds(1));
        assert_eq!(runtime.requests().iter().rev().nth(1).unwrap().code(), Some(Code(command)));
        assert!(!whole.events_of("App").is_empty());
        let stacks = whole.events_of("App").iter().all(|event| event.stack.is_empty() != stackwalk);
        assert!(stacks, "stacks only if the session has them: {command:x}");
    }
    let newer = replaying(Profile::net11(), &filterable());
    let providers = APP.map(|provider| StreamingProvider { filter: ids(true, &[1, 3]), ..provider.into() });
    let config = TraceConfig { buffer_mode: SessionBufferMode::BLOCK, ..TraceConfig::new(&providers) };
    assert_eq!(trace(&newer, &config, rounds(1)).0.ids("App"), [1, 3].into());
    assert_eq!(newer.requests()[0].code(), Some(Code(0x0207)));
    // The oldest command selects the same events.
    let start = CollectTracing { buffer_mb: 1, format: Format::NET_TRACE, providers: APP[..].into() };
    let mut connection = connect(runtime.path());
    Connection::new(&mut connection).call(&start).unwrap();
    let mut stream = Vec::new();
    while parse(&stream).events_of("App").len() < 4 {
        let mut piece = [0; 4096];
        let n = connection.read(&mut piece).unwrap();
        stream.extend_from_slice(&piece[..n]);
    }
    assert!(parse(&stream).events_of("App").iter().all(|event| !event.stack.is_empty()));
    // A session that names a provider twice, and one that names all providers.
    let twice =
        [Provider { keywords: 1, level: informational, ..APP[0] }, Provider { keywords: 2, ..APP[0] }];
    assert_eq!(trace(&runtime, &TraceConfig::new(&twice), rounds(1)).0.ids("App"), [1, 2, 3, 4].into());
    let whole = trace(&runtime, &TraceConfig::new(&[all("*")]), rounds(1)).0;
    assert_eq!((whole.ids("App").len(), whole.ids("Other").len()), (4, 1));
    let star = [Provider { keywords: 1, ..all("*") }];
    assert_eq!(trace(&runtime, &TraceConfig::new(&star), rounds(1)).0.events.len(), 1);
}

const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";

#[test]
fn the_default_recording_is_complete() {
    let names = [
        "Lab-Workload",
        "Lab-Rich",
        "System.Runtime",
        "Microsoft-Windows-DotNETRuntime",
        "Microsoft-DotNETCore-SampleProfiler",
    ];
    let providers = names.map(all);
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let (whole, stream) = trace(&runtime, &TraceConfig::new(&providers), rounds(1));
    assert_eq!(whole.lost, 0);
    for name in names {
        assert!(!whole.ids(name).is_empty(), "{name}");
    }
    // The rundown precedes the end, and all of its events have one timestamp.
    let rundown = whole.events_of(RUNDOWN);
    assert_eq!(
        rundown.len(),
        whole.events.iter().rev().take_while(|event| event.provider == RUNDOWN).count()
    );
    assert!(rundown.len() > 10);
    let samples = whole.events_of("Microsoft-DotNETCore-SampleProfiler");
    assert!(samples.iter().any(|event| !event.stack.is_empty()));

    // Every payload fits its metadata.
    let mut parser = Parser::new(Limits::default());
    let (mut kinds, mut texts) = (BTreeMap::new(), BTreeSet::new());
    loop {
        match parser.next(&stream) {
            Record::Metadata(record) => {
                let kind = Metadata::decode(parser.version(), record.payload).unwrap();
                kinds.insert(kind.id, kind);
            }
            Record::Event(event) if !kinds[&event.metadata_id].fields.is_empty() => {
                let kind = kinds[&event.metadata_id];
                let mut values = kind.fields.values(event.payload);
                for item in values.by_ref() {
                    if let Item::Value { value: Value::Text(text), .. } = item {
                        texts.insert(text.to_string());
                    }
                }
                assert_eq!(values.finish(), Ok(&[][..]), "{kind:?}");
            }
            Record::End(_) => break,
            _ => {}
        }
    }
    assert!(texts.contains("cpu-usage") && texts.contains("/app/Fake --of-a runtime"), "{texts:?}");

    for (rundown_keyword, some) in [(0, false), (0x8, true), (0x1, false)] {
        let config = TraceConfig { rundown_keyword, ..TraceConfig::new(&providers) };
        let (whole, _) = trace(&runtime, &config, |whole| !whole.events.is_empty());
        let modules = whole.ids(RUNDOWN).contains(&154);
        assert_eq!(modules, some, "rundown {rundown_keyword:#x}: {:?}", whole.ids(RUNDOWN));
    }
}
