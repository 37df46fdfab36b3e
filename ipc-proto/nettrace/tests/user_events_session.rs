//! The duties of a runtime in a session of `user_events`, and what a reader remembers of such a session.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]
use ipc_proto::plan::{NotTracing, TraceConfig};
use ipc_proto::types::{
    Format, SessionConfig, SessionConfig6, StreamingSession, TracepointConfig, TracepointSet,
    UserEventsSession,
};
use ipc_proto::{Array, CollectTracing5, CollectTracing6, Request, ResumeRuntime, Text};
use nettrace::user_events::{UserReg, UserUnreg, WrittenKinds};

/// The argument has the layout of the kernel: packed, in the byte order of the system.
#[test]
fn registrations() {
    let registration = UserReg::new(0x1122_3344_5566_7788, 0x0102_0304_0506_0708);
    let mut argument = registration.to_bytes();
    let parts = [
        &28_u32.to_ne_bytes()[..],
        &[31, 4],
        &[0, 0],
        &0x1122_3344_5566_7788_u64.to_ne_bytes(),
        &0x0102_0304_0506_0708_u64.to_ne_bytes(),
        &[0; 4],
    ];
    assert_eq!(argument[..], parts.concat());
    argument[24..].copy_from_slice(&0xa1b2_c3d4_u32.to_ne_bytes());
    assert_eq!(UserReg::write_index(&argument), 0xa1b2_c3d4);
    let other = UserReg { enable_bit: 5, enable_size: 8, flags: 0x0102, ..registration };
    assert_eq!(other.to_bytes()[4..8], [&[5, 8][..], &0x0102_u16.to_ne_bytes()].concat());
    let parts = [&16_u32.to_ne_bytes()[..], &[5, 0, 0, 0], &0x1122_3344_5566_7788_u64.to_ne_bytes()];
    assert_eq!(other.unreg().to_bytes()[..], parts.concat());
    // The number of the ioctl contains the size of a pointer.
    #[cfg(all(target_pointer_width = "64", any(target_arch = "x86_64", target_arch = "aarch64")))]
    assert_eq!((UserReg::IOCTL, UserUnreg::IOCTL), (0xc008_2a00, 0x4008_2a02));
    #[cfg(all(target_pointer_width = "32", any(target_arch = "x86", target_arch = "arm")))]
    assert_eq!((UserReg::IOCTL, UserUnreg::IOCTL), (0xc004_2a00, 0x4004_2a02));
}

#[test]
fn tracepoints_of_events() {
    let (low, none) = ([1, 2, 3], []);
    let sets = [
        TracepointSet { tracepoint_name: "Nothing".into(), event_ids: Array::from(&none[..]) },
        TracepointSet { tracepoint_name: "Low".into(), event_ids: Array::from(&low[..]) },
    ];
    let config = TracepointConfig { default_tracepoint_name: "Other".into(), sets: Array::from(&sets) };
    let names = [0, 1, 3, 4, 0x1_0001].map(|id| config.tracepoint_name(id).map(|name| name.to_string()));
    assert_eq!(names, ["Other", "Low", "Low", "Other", "Other"].map(|name| Some(name.to_owned())));
    assert!(config.tracepoint_names().eq(["Other", "Nothing", "Low"]));
    let config = TracepointConfig { default_tracepoint_name: Text::NULL, ..config };
    assert_eq!((config.tracepoint_name(2), config.tracepoint_name(4)), (Some("Low".into()), None));
    assert!(config.tracepoint_names().eq(["Nothing", "Low"]));
}

#[test]
fn both_commands_have_one_form() {
    let session = UserEventsSession { rundown_keyword: 0x10, providers: Array::EMPTY };
    let starts = [
        Request::CollectTracing5(CollectTracing5 { session: SessionConfig::UserEvents(session) }),
        Request::CollectTracing6(CollectTracing6 { session: SessionConfig6::UserEvents(session) }),
    ];
    for request in &starts {
        assert_eq!(UserEventsSession::try_from(request), Ok(session));
        assert_eq!(TraceConfig::try_from(request), Err(NotTracing));
    }
    let stream = StreamingSession {
        buffer_mb: 1,
        format: Format::NET_TRACE,
        rundown_keyword: 0,
        stackwalk: false,
        providers: Array::EMPTY,
    };
    let stream = Request::CollectTracing5(CollectTracing5 { session: SessionConfig::Streaming(stream) });
    for request in [stream, Request::ResumeRuntime(ResumeRuntime {})] {
        assert_eq!(UserEventsSession::try_from(&request), Err(NotTracing));
    }
}

#[test]
fn kinds_are_written_once() {
    let mut bits = [0; 2];
    let mut written = WrittenKinds::new(&mut bits);
    for kind in [0, 9, 15] {
        assert!(!written.contains(kind));
        written.insert(kind);
        assert!(written.contains(kind));
    }
    assert_eq!((0..16).filter(|kind| written.contains(*kind)).count(), 3);
    // A kind beyond the bits never counts as written.
    written.insert(16);
    written.insert(usize::MAX);
    assert!(!written.contains(16) && !written.contains(usize::MAX));
    assert_eq!(bits, [1, 0x82]);
}

#[cfg(feature = "alloc")]
mod cache {
    use ipc_proto::Guid;
    use nettrace::DecodeErrorKind;
    use nettrace::Metadata;
    use nettrace::user_events::{Extension, ExtensionItem, InlineMetadata, MetadataCache, TracepointRecord};

    const RELATED: Guid = Guid([0xb1; 16]);

    /// Returns the extension of an event, with metadata of this name.
    fn extension(name: &str, event_id: u32) -> Vec<u8> {
        let metadata = Metadata::new(0, "My-App", event_id, name);
        let (mut space, mut buf) = ([0; 256], [0; 512]);
        let inline = InlineMetadata::build(&metadata, &mut space).unwrap();
        let items = [ExtensionItem::Metadata(inline), ExtensionItem::RelatedActivityId(RELATED)];
        Extension::build(&items, &mut buf).unwrap().as_bytes().to_vec()
    }

    #[test]
    fn metadata_is_joined_with_later_records() {
        let (tick, tock, other) = (extension("Tick", 7), extension("Tock", 7), extension("Other", 8));
        let mut cache = MetadataCache::new(MetadataCache::LIMIT);
        let mut read = |source, event_id, extension: &[u8]| {
            let record = TracepointRecord { event_id, extension: Extension::new(extension), payload: b"pay" };
            let event = cache.read(source, &record);
            assert_eq!((event.event_id, event.payload, event.problem), (event_id, &b"pay"[..], None));
            assert_eq!(event.activity_id, Guid::NIL);
            assert_eq!(event.related_activity_id, if extension.is_empty() { Guid::NIL } else { RELATED });
            event.metadata.map(|metadata| metadata.name.to_string())
        };
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(read(1, 7, &[]), None, "the first record was lost");
        assert_eq!(read(1, 7, &tick), some("Tick"));
        assert_eq!(read(1, 8, &other), some("Other"));
        assert_eq!((read(1, 7, &[]), read(1, 8, &[])), (some("Tick"), some("Other")));
        assert_eq!((read(2, 7, &[]), read(1, 9, &[])), (None, None));
        // A runtime can send metadata again; the id can then belong to another event.
        assert_eq!((read(1, 7, &tick), read(1, 7, &[])), (some("Tick"), some("Tick")));
        assert_eq!((read(1, 7, &tock), read(1, 7, &[])), (some("Tock"), some("Tock")));
        assert_eq!(read(2, 7, &tick), some("Tick"));
        cache.remove(1);
        let record = TracepointRecord { event_id: 7, extension: Extension::EMPTY, payload: b"" };
        assert!(cache.read(1, &record).metadata.is_none());
        assert_eq!(cache.read(2, &record).metadata.unwrap().name, "Tick");
        assert_eq!(cache.forgotten(), 0);
    }

    #[test]
    fn malformed_metadata_is_a_problem() {
        let tick = extension("Tick", 7);
        let mut cache = MetadataCache::new(MetadataCache::LIMIT);
        let record = TracepointRecord { event_id: 7, extension: Extension::new(&tick), payload: b"pay" };
        cache.read(1, &record);
        // Metadata of another event, metadata that is cut off, and an unknown label.
        for (bytes, kind) in [
            (&extension("Other", 8)[..], DecodeErrorKind::OtherEvent),
            (&tick[..20], DecodeErrorKind::UnexpectedEnd),
            (&[9], DecodeErrorKind::UnknownType),
        ] {
            let event = cache.read(1, &TracepointRecord { extension: Extension::new(bytes), ..record });
            assert_eq!((event.problem.unwrap().kind, event.payload), (kind, &b"pay"[..]));
            assert_eq!(event.metadata.unwrap().name, "Tick");
        }
    }

    /// Metadata beyond the limit is used for its own record only. Removing a source makes room.
    #[test]
    fn the_limit_holds() {
        let bytes: Vec<Vec<u8>> = (0..100).map(|id| extension("Tick", id)).collect();
        let mut cache = MetadataCache::new(10_000);
        let record = |id: u16, bytes| TracepointRecord {
            event_id: id,
            extension: Extension::new(bytes),
            payload: b"",
        };
        let mut fill = |source| {
            for (id, bytes) in (0..).zip(&bytes) {
                assert!(cache.read(source, &record(id, bytes)).metadata.is_some());
            }
            let kept = (0..100).filter(|id| cache.read(source, &record(*id, &[])).metadata.is_some()).count();
            let forgotten = cache.forgotten();
            cache.remove(source);
            (kept, forgotten)
        };
        let (kept, forgotten) = fill(1);
        assert!((10..90).contains(&kept), "{kept}");
        assert_eq!(forgotten, 100 - kept as u64);
        assert_eq!(fill(2), (kept, 2 * forgotten));
    }
}
