//! The vectors of `testdata/legacy/`: each decodes, and encodes to the same bytes. Vectors that are not messages of
//! today's protocol are recognised.
#![cfg(feature = "legacy")]
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod cases;

use cases::cases;
use ipc_proto::legacy::{
    DraftCollectTracing, DraftErrorCode, DraftPipeName, DraftProvider, DraftSocketName, Legacy,
    OldMessageType, OldRequest, recognise,
};
use ipc_proto::types::{EventLevel, SessionId};
use ipc_proto::wire::{Part, Path, Reader, Writer, decode};
use ipc_proto::{
    Array, Code, Command, Continuation, Decode, Encode, HResult, Message, Parsed, StopTracing, Text, encode,
};
use ipc_testdata::{LEGACY, MALFORMED, MESSAGES, REFUSED, TOLERATED, Vector};
use proptest::{collection::vec, prelude::*};

fn vector(name: &str) -> &'static Vector {
    let file = format!("{name}.hex");
    LEGACY.iter().find(|vector| vector.path.ends_with(&file)).unwrap()
}

fn whole(bytes: &[u8]) -> Message<'_> {
    match Message::parse(bytes) {
        Ok(Parsed::Complete { value, used }) if used == bytes.len() => value,
        other => panic!("{other:?}"),
    }
}

/// Encodes over non-zero bytes, so that a skipped byte does not look like a 0.
fn raw(value: &impl Encode) -> Vec<u8> {
    let mut buf = [0xa5; 1024];
    let mut w = Writer::new(&mut buf);
    value.encode(&mut w);
    w.finish().unwrap().to_vec()
}

fn message(code: Code, value: &impl Encode) -> Vec<u8> {
    encode(code, value, &mut [0xa5; 1024]).unwrap().to_vec()
}

/// Checks that the file contains exactly this CollectTracing of the draft.
fn collect_tracing(name: &str, start: &DraftCollectTracing<'_>) {
    let vector = vector(name);
    assert_eq!(recognise(vector.bytes), Some(Legacy::CollectTracing(*start)), "{name}");
    assert_eq!(whole(vector.bytes).decode::<DraftCollectTracing<'_>>().unwrap(), *start, "{name}");
    assert_eq!(message(Code(0x0202), start), vector.bytes, "{name}");
    assert_eq!(start.continuation(), Continuation::Stream, "{name}");
}

const EXAMPLE: DraftProvider<'_> = DraftProvider {
    keywords: 100,
    level: EventLevel::ERROR,
    name: Text::from_utf16(&[77, 121, 69, 118, 101, 110, 116, 83, 111, 117, 114, 99, 101]),
    filter_data: None,
};

#[test]
fn the_drafts_collect_tracing() {
    let start = DraftCollectTracing {
        circular_buffer_mb: 250,
        output_path: "/tmp/foo.netperf".into(),
        providers: Array::from(&[EXAMPLE]),
    };
    assert_eq!(EXAMPLE.name, "MyEventSource");
    collect_tracing("draft.CollectTracing.specification.request", &start);
    let empty = Text::from("");
    let other = DraftProvider { keywords: 1, level: EventLevel::LOG_ALWAYS, name: "Other".into(), ..EXAMPLE };
    let providers = [DraftProvider { filter_data: Some(empty), ..EXAMPLE }, other];
    let start = DraftCollectTracing {
        circular_buffer_mb: 256,
        output_path: empty,
        providers: Array::from(&providers),
    };
    collect_tracing("draft.CollectTracing.last-without-filter-data.request", &start);
}

/// Without a path, a CollectTracing has the same bytes in the draft and today, so it counts as today's.
#[test]
fn the_drafts_collect_tracing_that_is_todays_too() {
    let vector = vector("draft.CollectTracing.filter-data.request");
    assert_eq!(recognise(vector.bytes), None);
    let start: DraftCollectTracing<'_> = whole(vector.bytes).decode().unwrap();
    assert!(start.output_path.is_null());
    let filters: Vec<_> = start.providers.iter().map(|provider| provider.filter_data).collect();
    assert_eq!(filters, [Some(Text::NULL), Some("a=b".into())]);
    assert_eq!(message(Code(0x0202), &start), vector.bytes);
}

/// A request in today's layout counts as today's, even if every runtime refuses its values.
#[test]
fn refused_requests_of_today_are_not_the_drafts() {
    use ipc_proto::types::Provider as Today;
    let provider =
        Today { keywords: 1, level: EventLevel(6), name: "MyEventSource".into(), arguments: Text::NULL };
    for providers in [Array::from(&[provider]), Array::from(&[])] {
        let start =
            ipc_proto::CollectTracing { buffer_mb: 256, format: ipc_proto::types::Format(0), providers };
        assert_eq!(recognise(&message(Code(0x0202), &start)), None, "{start:?}");
    }
}

/// Without filter data, the bytes of the next provider would decode as the filter data.
#[test]
fn filter_data_is_written_unless_the_payload_ends() {
    let providers = [EXAMPLE, EXAMPLE];
    let start = DraftCollectTracing {
        circular_buffer_mb: 1,
        output_path: Text::NULL,
        providers: Array::from(&providers),
    };
    let bytes = raw(&start);
    let read: DraftCollectTracing<'_> = decode(&bytes).unwrap();
    let filters: Vec<_> = read.providers.iter().map(|provider| provider.filter_data).collect();
    assert_eq!(filters, [Some(Text::NULL), None]);
    assert_eq!(raw(&read), bytes);
}

#[test]
fn parts_that_the_draft_shares_with_today() {
    let id = SessionId { session_id: 0x1122_3344_5566_7788 };
    let stop = vector("draft.StopTracing.request").bytes;
    let request: StopTracing = whole(stop).decode().unwrap();
    assert_eq!((request.session_id, message(Code(0x0201), &request)), (id.session_id, stop.to_vec()));
    let answer = vector("draft.SessionId.response").bytes;
    assert_eq!(whole(answer).decode(), Ok(id));
    let ok = vector("draft.ok.specification.response").bytes;
    assert_eq!(whole(ok), Message { code: Code::OK, payload: &[] });
    assert_eq!([stop, answer, ok].map(|bytes| recognise(bytes).is_none()), [true; 3]);
}

#[test]
fn the_drafts_errors() {
    let refused = vector("draft.error.specification.refusal").bytes;
    assert_eq!(recognise(refused), Some(Legacy::Error(DraftErrorCode::BAD_ENCODING)));
    assert_eq!(message(Code::ERROR, &DraftErrorCode::BAD_ENCODING), refused);
    assert_eq!(recognise(&[refused, &[0]].concat()), None, "bytes follow");
    // NativeAOT sends this code today.
    let unknown = vector("draft.error.unknown.refusal").bytes;
    assert_eq!(recognise(unknown), None);
    assert_eq!(whole(unknown).decode(), Ok(DraftErrorCode::UNKNOWN_ERROR));
    for (code, hresult) in [
        (DraftErrorCode::OK, HResult::OK),
        (DraftErrorCode::BAD_ENCODING, HResult::BAD_ENCODING),
        (DraftErrorCode::UNKNOWN_COMMAND, HResult::UNKNOWN_COMMAND),
        (DraftErrorCode::UNKNOWN_MAGIC, HResult::UNKNOWN_MAGIC),
        (DraftErrorCode::BAD_INPUT, HResult::INVALID_ARG),
        (DraftErrorCode::UNKNOWN_ERROR, HResult::UNKNOWN_ERROR),
        (DraftErrorCode(5), HResult::FAIL),
    ] {
        assert_eq!(HResult::from(code), hresult);
    }
}

#[test]
fn before_the_draft() {
    for (name, message_type, rest) in [
        ("before-draft.start.request", OldMessageType::START_EVENT_PIPE_TRACING, &[][..]),
        ("before-draft.stop.request", OldMessageType::STOP_EVENT_PIPE_TRACING, &[7, 0, 0, 0, 0, 0, 0, 0]),
        ("before-draft.collect.request", OldMessageType::COLLECT_EVENT_PIPE_TRACING, &[]),
    ] {
        let vector = vector(name);
        let request = OldRequest { message_type, process_id: 4242, rest };
        assert_eq!(recognise(vector.bytes), Some(Legacy::Old(request)), "{name}");
        assert_eq!(raw(&request), vector.bytes, "{name}");
    }
    let mut of_nobody = vector("before-draft.start.request").bytes.to_vec();
    of_nobody[4..8].fill(0);
    assert_eq!(recognise(&of_nobody), None, "no process has the id 0");
    for (name, session_id) in [("session", 0x1122_3344_5566_7788), ("error", 0)] {
        let vector = vector(&format!("before-draft.{name}.answer"));
        assert_eq!((decode(vector.bytes), vector.bytes.len()), (Ok(SessionId { session_id }), 8));
    }
}

/// Returns the parts of a value, in order.
fn parts<'a, T: Decode<'a>>(bytes: &'a [u8]) -> Vec<u8> {
    let mut seen: Vec<u8> = Vec::new();
    T::inspect(&mut Reader::new(bytes), &Path::Root, &mut |part: &Part<'_>| seen.extend(part.bytes)).unwrap();
    seen
}

#[test]
fn inspecting_shows_every_byte() {
    for vector in LEGACY {
        let (bytes, payload) = (vector.bytes, vector.bytes.get(20..).unwrap_or_default());
        let seen = match recognise(bytes) {
            Some(Legacy::CollectTracing(_)) => (parts::<DraftCollectTracing<'_>>(payload), payload),
            Some(Legacy::Old(_)) => (parts::<OldRequest<'_>>(bytes), bytes),
            _ => continue,
        };
        assert_eq!(seen.0, seen.1, "{}", vector.path);
    }
}

#[test]
fn nothing_of_today_is_recognised() {
    for vector in [MESSAGES, MALFORMED, REFUSED, TOLERATED].into_iter().flatten() {
        assert_eq!(recognise(vector.bytes), None, "{}", vector.path);
    }
}

#[test]
fn no_name_of_today_is_a_name_of_the_draft() {
    for name in [
        "dotnet-diagnostic-1-2-socket",
        "dotnetcore-diagnostic-01-2-socket",
        "dotnetcore-diagnostic-1-2",
        "dotnetcore-diagnostic-1-2-socket ",
        "dotnetcore-dotnetcore-diagnostic-1-2-socket",
        "",
        "dotnetcore-diagnostic-1-222222222222222222222222222222222222222222222222222222222222-socket",
    ] {
        assert!(name.parse::<DraftSocketName>().is_err(), "{name}");
    }
    for name in [
        "dotnet-diagnostic-1",
        "dotnetcore-diagnostic-01",
        "dotnetcore-diagnostic-4294967296",
        "dotnetcore-diagnostic-",
        "dotnetcore-diagnostic-1-2-socket",
        "dotnetcore-dotnetcore-diagnostic-1",
        r"\\.\pipe\dotnetcore-diagnostic-1",
        "",
    ] {
        assert!(name.parse::<DraftPipeName>().is_err(), "{name}");
    }
    let longest = DraftPipeName(ipc_proto::PipeName { process_id: u32::MAX });
    assert_eq!(longest.to_string(), "dotnetcore-diagnostic-4294967295");
    assert_eq!(longest.to_string().parse(), Ok(longest));
    let longest =
        DraftSocketName(ipc_proto::SocketName { process_id: u32::MAX, disambiguation_key: u64::MAX });
    assert_eq!(longest.to_string().parse(), Ok(longest));
}

proptest! {
    #![proptest_config(cases(4))]

    /// Recognised bytes of a request from before the draft are encoded unchanged.
    #[test]
    fn any_bytes(mut bytes in vec(any::<u8>(), 0..60), kind in 0u8..4) {
        if let (Some(first), true) = (bytes.first_chunk_mut(), kind < 3) {
            *first = [kind, 4, 0, 0];
        }
        if let Some(Legacy::Old(request)) = recognise(&bytes) {
            assert_eq!(raw(&request), bytes);
        }
    }

    #[test]
    fn any_collect_tracing(path in ".{0,4}", fields in vec((any::<u64>(), any::<u32>(), ".{0,3}", 0u8..3), 0..4)) {
        let provider = |(keywords, level, text, filter): &(u64, u32, String, u8)| -> Vec<u8> {
            let text = Text::from(text.as_str());
            let filter_data = [None, Some(Text::NULL), Some(text)][usize::from(*filter)];
            raw(&DraftProvider { keywords: *keywords, level: EventLevel(*level), name: text, filter_data })
        };
        let count = u32::try_from(fields.len()).unwrap();
        let providers: Vec<u8> = fields.iter().flat_map(provider).collect();
        let bytes = [raw(&7u32), raw(&Text::from(path.as_str())), raw(&count), providers].concat();
        // A provider without filter data before another provider decodes as something else, or not at all. But
        // each value that was decoded decodes again from its encoding.
        if let Ok(start) = decode::<DraftCollectTracing<'_>>(&bytes) {
            let again = raw(&start);
            assert_eq!(decode::<DraftCollectTracing<'_>>(&again), Ok(start));
        }
    }
}
