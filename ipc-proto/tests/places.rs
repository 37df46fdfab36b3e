//! The paths of the fields with errors: of values that runtimes refuse, and of bytes that do not decode.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use ipc_proto::types::{
    ClientData, DumpFlags, DumpType, EventFilter, EventLevel, Format, PerfMapType, SessionBufferMode,
    SessionConfig, SessionConfig6, StreamingProvider, StreamingSession, StreamingSession6, TracepointConfig,
    TracepointSet, UserEventsProvider, UserEventsSession,
};
use ipc_proto::{
    ApplyStartupHook, Array, AttachProfiler, Code, CollectTracing5, CollectTracing6, Command,
    DecodeErrorKind, EnablePerfMap, FieldPath, GenerateCoreDump3, Guid, HResult, Message, Parsed, Request,
    SetEnvironmentVariable, Text, Violation,
};
use ipc_testdata::{MESSAGES, REFUSED, TOLERATED, Vector};

/// Returns the path of the value for which a command is refused, and the rule that the value breaks.
fn refused(command: &impl Command) -> (String, Violation) {
    let invalid = command.check().unwrap_err();
    assert_eq!(invalid.to_string(), format!("{}: {}", invalid.place, invalid.violation));
    assert_eq!(HResult::from(invalid), invalid.violation.hresult());
    (invalid.place.to_string(), invalid.violation)
}

#[track_caller]
fn assert_refused(command: &impl Command, place: &str, violation: Violation) {
    assert_eq!(refused(command), (place.to_owned(), violation));
}

const PROVIDER: StreamingProvider<'_> = StreamingProvider {
    keywords: 1,
    level: EventLevel::VERBOSE,
    name: Text::new("App"),
    arguments: Text::NULL,
    filter: EventFilter::ALL,
};

const SESSION: StreamingSession<'_> = StreamingSession {
    buffer_mb: 1,
    format: Format::NET_TRACE,
    rundown_keyword: 0,
    stackwalk: true,
    providers: Array::EMPTY,
};

fn streaming(session: StreamingSession<'_>) -> CollectTracing5<'_> {
    CollectTracing5 { session: SessionConfig::Streaming(session) }
}

#[test]
fn values_that_are_no_lists() {
    let dump = GenerateCoreDump3 { dump_name: Text::NULL, dump_type: DumpType(5), flags: DumpFlags::NONE };
    assert_refused(&dump, "dump_type", Violation::DumpType);
    let attach = AttachProfiler {
        attach_timeout: 1,
        profiler_guid: Guid::NIL,
        profiler_path: Text::NULL,
        client_data: ClientData(&[]),
    };
    assert_refused(&attach, "profiler_path", Violation::ProfilerPath);
    let variable = SetEnvironmentVariable { name: Text::new(""), value: Text::NULL };
    assert_refused(&variable, "name", Violation::VariableName);
    let perf_map = EnablePerfMap { perf_map_type: PerfMapType(9) };
    assert_refused(&perf_map, "perf_map_type", Violation::PerfMapType);
    let hook = ApplyStartupHook { startup_hook_path: Text::new("") };
    assert_refused(&hook, "startup_hook_path", Violation::StartupHookPath);
}

/// The specification has no name for the union in these commands, so the fields of the union are fields of the command.
#[test]
fn values_of_a_session() {
    let unknown = SessionConfig::Unknown { session_type: 2, rest: &[] };
    assert_refused(&CollectTracing5 { session: unknown }, "session_type", Violation::SessionType);
    let unknown = SessionConfig6::Unknown { session_type: 2, rest: &[] };
    assert_refused(&CollectTracing6 { session: unknown }, "session_type", Violation::SessionType);
    assert_refused(&streaming(SESSION), "providers", Violation::ProviderCount);
    let no_buffer = StreamingSession { buffer_mb: 0, ..SESSION };
    assert_refused(&streaming(no_buffer), "buffer_mb", Violation::BufferSize);
    let format = StreamingSession { format: Format(2), ..SESSION };
    assert_refused(&streaming(format), "format", Violation::Format);
    let providers = [PROVIDER];
    let mode = CollectTracing6 {
        session: SessionConfig6::Streaming(StreamingSession6 {
            buffer_mb: 1,
            format: Format::NET_TRACE,
            rundown_keyword: 0,
            stackwalk: true,
            providers: Array::from(&providers),
            session_buffer_mode: SessionBufferMode(2),
        }),
    };
    assert_refused(&mode, "session_buffer_mode", Violation::SessionBufferMode);
}

#[test]
fn values_of_one_provider_of_many() {
    for at in [0, 3, 999] {
        let check = |bad: StreamingProvider<'_>, field: &str, violation| {
            let mut providers = vec![PROVIDER; 1000];
            providers[at] = bad;
            let session = StreamingSession { providers: Array::from(&providers[..]), ..SESSION };
            assert_refused(&streaming(session), &format!("providers[{at}].{field}"), violation);
        };
        check(StreamingProvider { level: EventLevel(6), ..PROVIDER }, "level", Violation::ProviderLevel);
        check(StreamingProvider { name: Text::NULL, ..PROVIDER }, "name", Violation::ProviderName);
        // One of 200 ids equals an earlier id.
        for (first, second) in [(0, 1), (63, 64), (5, 130), (198, 199)] {
            let mut ids: Vec<u32> = (1000..1200).collect();
            ids[second] = ids[first];
            let filter = EventFilter { enable: true, event_ids: Array::from(&ids[..]) };
            let field = format!("filter.event_ids[{second}]");
            check(StreamingProvider { filter, ..PROVIDER }, &field, Violation::DuplicateEventId);
        }
    }
}

/// A runtime reads the tracepoints of all providers before it registers the tracepoints of the first provider.
#[test]
fn values_of_tracepoints() {
    const SET: TracepointSet<'_> =
        TracepointSet { tracepoint_name: Text::new("set"), event_ids: Array::EMPTY };
    fn tracepoints<'a>(name: Text<'a>, sets: &'a [TracepointSet<'a>]) -> TracepointConfig<'a> {
        TracepointConfig { default_tracepoint_name: name, sets: Array::from(sets) }
    }
    let good_sets = [SET, SET];
    let good = UserEventsProvider {
        keywords: 1,
        level: EventLevel::VERBOSE,
        name: Text::new("App"),
        arguments: Text::NULL,
        filter: EventFilter::ALL,
        tracepoints: tracepoints(Text::new("tp"), &good_sets[..]),
    };
    let check_provider = |bad: UserEventsProvider<'_>, field: &str, violation| {
        let providers = [good, good, bad];
        let session = UserEventsSession { rundown_keyword: 0, providers: Array::from(&providers) };
        let start = CollectTracing6 { session: SessionConfig6::UserEvents(session) };
        assert_refused(&start, &format!("providers[2].{field}"), violation);
    };
    let check = |default: Text<'_>, sets: &[TracepointSet<'_>], field: &str, violation| {
        let bad = UserEventsProvider { tracepoints: tracepoints(default, sets), ..good };
        check_provider(bad, &format!("tracepoints{field}"), violation);
    };
    let ids = [1, 2, 1];
    let filter = EventFilter { enable: false, event_ids: Array::from(&ids) };
    let bad = UserEventsProvider { filter, ..good };
    check_provider(bad, "filter.event_ids[2]", Violation::DuplicateEventId);
    let bad = UserEventsProvider { level: EventLevel(6), ..good };
    check_provider(bad, "level", Violation::ProviderLevel);
    let long = "x".repeat(500);
    let long = Text::from(&long[..]);
    check(Text::NULL, &[], "", Violation::NoTracepoint);
    check(long, &[], ".default_tracepoint_name", Violation::TracepointNameLength);
    let unnamed = TracepointSet { tracepoint_name: Text::new("\0"), ..SET };
    check(Text::NULL, &[SET, SET, unnamed], ".sets[2].tracepoint_name", Violation::TracepointSetName);
    let too_long = TracepointSet { tracepoint_name: long, ..SET };
    check(Text::NULL, &[SET, too_long], ".sets[1].tracepoint_name", Violation::TracepointNameLength);
    // First, an id in two sets, with an empty set between them; then, an id twice in the last set.
    let (one, other, twice) = ([1, 2, 3], [4, 2, 5], [6, 7, 8, 6]);
    let sets =
        [&one[..], &[], &other, &twice].map(|ids| TracepointSet { event_ids: Array::from(ids), ..SET });
    check(Text::NULL, &sets, ".sets[2].event_ids[1]", Violation::DuplicateEventId);
    let sets = [sets[0], sets[1], sets[3]];
    check(Text::NULL, &sets, ".sets[2].event_ids[3]", Violation::DuplicateEventId);
}

#[test]
fn paths() {
    let path = |names, indexes: &[usize]| FieldPath::new(names, indexes);
    assert_eq!(path(&["providers"], &[]).to_string(), "providers");
    assert_eq!(path(&["providers"], &[7]).to_string(), "providers[7]");
    assert_eq!(path(&["a", "b.c", "d"], &[1, 2]).to_string(), "a[1].b.c[2].d");
    assert_eq!(path(&["a", "b", "c", "d"], &[1, 2, 3, 4]).to_string(), "a[1].b[2].c[3].d");
    assert_eq!(path(&["a"], &[1, 2]).to_string(), "a[1]", "without a name there is no index");
    assert_eq!(path(&["a"], &[usize::MAX]).to_string(), "a[65535]");
    assert_eq!(path(&[], &[]).to_string(), "");
    assert_eq!(format!("{:?}", path(&["a"], &[1])), "a[1]");
    assert_ne!(path(&["a"], &[0]), path(&["a"], &[]));
}

/// Returns the command in the name of a file.
fn command(vector: &Vector) -> Option<Code> {
    let name = vector.name().split('.').next().unwrap();
    Request::ALL.iter().find(|row| row.name == name).map(|row| row.code)
}

/// Returns all well-formed messages of the test data, each with the command that it answers.
fn messages() -> impl Iterator<Item = (Vector, Option<Code>)> {
    let vectors = [MESSAGES, REFUSED, TOLERATED].into_iter().flatten();
    vectors.filter_map(|vector| match Message::parse(vector.bytes) {
        Ok(Parsed::Complete { used, .. }) => {
            Some((Vector { bytes: &vector.bytes[..used], ..*vector }, command(vector)))
        }
        Ok(Parsed::Partial { .. }) | Err(_) => None,
    })
}

fn field_at(bytes: &[u8], answer_to: Option<Code>, offset: usize) -> Option<String> {
    let field = Message::field_at(bytes, answer_to, offset)?;
    assert_eq!(format!("{field:?}"), field.to_string());
    Some(field.to_string())
}

#[test]
fn every_byte_of_a_message_is_in_a_field() {
    for (vector, answer_to) in messages() {
        let (bytes, mut fields) = (vector.bytes, Vec::new());
        Message::inspect(bytes, answer_to, &mut |part| {
            fields.extend(part.bytes.iter().map(|_| part.path.to_string()));
        })
        .unwrap();
        for (offset, field) in fields.iter().enumerate() {
            let file = vector.path;
            assert_eq!(field_at(bytes, answer_to, offset).as_ref(), Some(field), "{file} {offset}");
        }
        // The byte after the message is in no field, whether the byte exists or not.
        assert_eq!(field_at(bytes, answer_to, bytes.len()), None);
        assert_eq!(field_at(&[bytes, b"more"].concat(), answer_to, bytes.len() + 1), None);
    }
}

/// The error of a truncated message is in the field that the whole message has at the same offset; or in the list that
/// contains this field, because the count of the list is too large for the remaining bytes.
#[test]
fn cut_off_messages() {
    for (vector, answer_to) in messages() {
        for len in 0..vector.bytes.len() {
            let cut = &vector.bytes[..len];
            let error = Message::inspect(cut, answer_to, &mut |_| {}).unwrap_err();
            assert_eq!((error.kind, error.offset), (DecodeErrorKind::UnexpectedEnd, len));
            let field = field_at(cut, answer_to, len).unwrap();
            let whole = field_at(vector.bytes, answer_to, len).unwrap();
            // Some answers omit the status or the error message. Their bytes then count as `rest`.
            let optional = field == "rest" && ["status", "message.count"].contains(&&*whole);
            let contains =
                whole.strip_prefix(&*field).is_some_and(|rest| rest.is_empty() || rest.starts_with('['));
            assert!(contains || optional, "{} {len}: {field} is not {whole}", vector.path);
        }
    }
}

/// The field of another error does not depend on the magic, because a server checks the magic last.
#[test]
fn other_magics() {
    for (vector, answer_to) in messages() {
        let fields = |bytes: &[u8]| {
            (0..=bytes.len()).map(|offset| field_at(bytes, answer_to, offset)).collect::<Vec<_>>()
        };
        let expected = fields(vector.bytes);
        let mut bytes = vector.bytes.to_vec();
        bytes[12] ^= 1;
        assert_eq!(fields(&bytes), expected, "{}", vector.path);
    }
    let bad_size = b"DOTNET_IPC_V1\0\x13\0\x04\x01\0\0 and more";
    assert_eq!(field_at(bad_size, None, 14).as_deref(), Some("size"));
    assert_eq!(field_at(bad_size, None, 20), None, "there is no payload");
}

#[test]
fn errors_of_answers() {
    // A ProcessInfo3 whose field `os` has no final NUL.
    let mut answer = b"DOTNET_IPC_V1\0\0\0\xff\0\0\0".to_vec();
    answer.extend([0; 4 + 8 + 16 + 4]);
    answer.extend([1, 0, 0, 0, b'L', 0]);
    answer[14] = u8::try_from(answer.len()).unwrap();
    let command = Code(0x0408);
    let error = Message::inspect(&answer, Some(command), &mut |_| {}).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::Unterminated);
    assert_eq!(field_at(&answer, Some(command), error.offset).as_deref(), Some("os"));
    assert_eq!(field_at(&answer, None, error.offset).as_deref(), Some("payload"));
    assert_eq!(field_at(&answer, Some(Code(0x04f0)), error.offset).as_deref(), Some("payload"));
    let refusal = b"DOTNET_IPC_V1\0\x16\0\xff\xff\0\0\x05\x40";
    assert_eq!(field_at(refusal, None, 20).as_deref(), Some("hresult"));
    let refusal = b"DOTNET_IPC_V1\0\x1e\0\xff\xff\0\0\x05\x40\0\x80\x05\0\0\0\0\0";
    assert_eq!(field_at(refusal, Some(Code(0x0103)), 28).as_deref(), Some("message"));
    assert_eq!(field_at(refusal, Some(Code(0x0102)), 28).as_deref(), Some("rest"));
}
