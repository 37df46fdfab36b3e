//! The values and lists of requests, which are read from the bytes that the functions of commands have written.
use super::*;

/// Writes a request into memory of exactly its size.
unsafe fn built(build: impl Fn(*mut u8, usize, *mut usize) -> Status) -> Memory<u8> {
    let len = Memory::<usize>::one();
    assert_eq!(build(null_mut(), 0, len.at), Status::BufferTooSmall);
    let bytes = Memory::array(unsafe { len.at.read() });
    ok(build(bytes.at, bytes.count, len.at));
    bytes
}

fn utf8(text: Text<'_>) -> String {
    text_of(|space, size, len| unsafe { dipc_text_to_utf8(text, space, size, len) })
}

fn name(text: &'static CStr) -> Text<'static> {
    unsafe { dipc_utf8(text.as_ptr()) }
}

unsafe fn ids(mut list: List) -> Vec<u32> {
    let (mut ids, id) = (Vec::new(), Memory::<u32>::one());
    while unsafe { dipc_next_event_id(&raw mut list, id.at) } == Status::Ok {
        ids.push(id.get());
    }
    assert_eq!((list.count, list.len), (0, 0));
    ids
}

#[test]
fn a_session_that_streams() {
    unsafe {
        let numbers = Memory::<u32>::from(&[7, 0xffff_ffff]);
        let filter = EventFilter { enable: true, event_ids: Array::new(numbers.at, 2) };
        let none = EventFilter { enable: false, event_ids: Array::new(null(), 0) };
        let first = StreamingProvider {
            keywords: 1,
            level: 4,
            name: name(c"First"),
            arguments: name(c"k=v"),
            filter,
        };
        let second =
            StreamingProvider { name: name(c"Zweiter"), arguments: Text::NULL, filter: none, ..first };
        let providers = Memory::from(&[first, second]);
        let wanted = Memory::<SessionConfig6<'_>>::zeros();
        (*wanted.at).session.buffer_mb = 9;
        (*wanted.at).session.format = DIPC_FORMAT_NET_TRACE;
        (*wanted.at).session.rundown_keyword = 16;
        (*wanted.at).session.stackwalk = true;
        (*wanted.at).session.providers = Array::new(providers.at, 2);
        (*wanted.at).session_buffer_mode = DIPC_BUFFER_MODE_BLOCK;
        let bytes = built(|buf, size, len| CollectTracing6(buf, size, len, wanted.get()));
        let (session, provider) = (Memory::<RequestedSession>::one(), Memory::<RequestedProvider<'_>>::one());
        ok(dipc_request_session(bytes.at, bytes.count, session.at, null_mut()));
        let mut session = session.get();
        assert_eq!((session.session_type, session.buffer_mb, session.format), (0, 9, 1));
        assert_eq!((session.stackwalk, session.rundown_keyword), (true, 16));
        assert_eq!((session.session_buffer_mode, session.providers.count), (DIPC_BUFFER_MODE_BLOCK, 2));

        let mut again = session.providers;
        let list = &raw mut session.providers;
        ok(dipc_next_provider(list, provider.at));
        let read = provider.get();
        assert_eq!(
            (read.keywords, read.level, utf8(read.name), utf8(read.arguments)),
            (1, 4, "First".into(), "k=v".into())
        );
        assert_eq!((read.filter_enable, ids(read.event_ids)), (true, vec![7, 0xffff_ffff]));
        ok(dipc_next_provider(list, provider.at));
        let read = provider.get();
        assert_eq!((utf8(read.name), read.arguments.form), ("Zweiter".into(), DIPC_TEXT_NULL));
        assert_eq!((read.filter_enable, ids(read.event_ids), read.tracepoint_sets.count), (false, vec![], 0));
        assert_eq!(dipc_next_provider(list, provider.at), Status::NotFound);
        assert_eq!(dipc_next_event_id(list, numbers.at), Status::WrongKind);
        ok(dipc_next_provider(&raw mut again, provider.at));
        assert_eq!(utf8(provider.get().name), "First");
        let includes = |keywords, level, id| dipc_provider_includes(provider.at, keywords, level, id);
        assert!(includes(1, 4, 7) && includes(0, 1, u32::MAX));
        assert!(!includes(2, 4, 7) && !includes(1, 5, 7) && !includes(1, 4, 8));
        assert!(!dipc_provider_includes(null(), 1, 4, 7));
        let mut zeros = Memory::<List>::zeros().get();
        assert_eq!(dipc_next_provider(&raw mut zeros, provider.at), Status::NotFound);
        assert_eq!(dipc_next_provider(null_mut(), provider.at), Status::NullPointer);
        assert_eq!(dipc_next_provider(&raw mut again, null_mut()), Status::NullPointer);
        let (too_short, detail) = (bytes.count - 1, Memory::<usize>::one());
        let session = Memory::one();
        assert_eq!(dipc_request_session(bytes.at, too_short, session.at, detail.at), Status::More);
        assert_eq!(detail.get(), bytes.count);
    }
}

#[test]
fn the_values_that_an_older_command_does_not_have() {
    unsafe {
        let provider =
            Memory::of(Provider { keywords: 1, level: 5, name: name(c"P"), arguments: Text::NULL });
        let providers = || Array::new(provider.at.cast_const(), 1);
        let session = Memory::<RequestedSession>::one();
        let expect = |bytes: Memory<u8>, stackwalk: bool, rundown: u64| {
            ok(dipc_request_session(bytes.at, bytes.count, session.at, null_mut()));
            let RequestedSession { rundown_keyword, mut providers, .. } = session.get();
            assert_eq!((session.get().stackwalk, rundown_keyword, providers.count), (stackwalk, rundown, 1));
            let read = Memory::<RequestedProvider<'_>>::one();
            ok(dipc_next_provider(&raw mut providers, read.at));
            assert_eq!((utf8(read.get().name), read.get().filter_enable), ("P".into(), false));
        };
        expect(
            built(|buf, size, len| CollectTracing(buf, size, len, 1, 1, providers())),
            true,
            DIPC_DEFAULT_RUNDOWN,
        );
        expect(built(|buf, size, len| CollectTracing2(buf, size, len, 1, 1, false, providers())), true, 0);
        expect(
            built(|buf, size, len| CollectTracing3(buf, size, len, 1, 1, true, false, providers())),
            false,
            DIPC_DEFAULT_RUNDOWN,
        );
        expect(
            built(|buf, size, len| CollectTracing4(buf, size, len, 1, 1, 3, false, providers())),
            false,
            3,
        );
    }
}

#[test]
fn a_session_of_user_events() {
    unsafe {
        let numbers = Memory::<u32>::from(&[3, 4, 5]);
        let event_ids = Array::new(numbers.at.cast_const(), 3);
        let sets = Memory::from(&[
            TracepointSet { tracepoint_name: name(c"one"), event_ids },
            TracepointSet { tracepoint_name: name(c"none"), event_ids: Array::new(null(), 0) },
        ]);
        let tracepoints =
            TracepointConfig { default_tracepoint_name: name(c"rest"), sets: Array::new(sets.at, 2) };
        let filter = EventFilter { enable: true, event_ids };
        let provider = Memory::of(UserEventsProvider {
            keywords: 1,
            level: 2,
            name: name(c"P"),
            arguments: Text::NULL,
            filter,
            tracepoints,
        });
        let wanted = Memory::<SessionConfig<'_>>::zeros();
        (*wanted.at).session_type = DIPC_SESSION_TYPE_USER_EVENTS;
        (*wanted.at).rundown_keyword = 8;
        (*wanted.at).user_events_providers = Array::new(provider.at, 1);
        let bytes = built(|buf, size, len| CollectTracing5(buf, size, len, wanted.get()));
        let (session, read) = (Memory::<RequestedSession>::one(), Memory::<RequestedProvider<'_>>::one());
        ok(dipc_request_session(bytes.at, bytes.count, session.at, null_mut()));
        let mut session = session.get();
        assert_eq!((session.session_type, session.rundown_keyword), (DIPC_SESSION_TYPE_USER_EVENTS, 8));
        ok(dipc_next_provider(&raw mut session.providers, read.at));
        let mut read = read.get();
        assert_eq!((utf8(read.default_tracepoint_name), ids(read.event_ids)), ("rest".into(), vec![3, 4, 5]));
        let set = Memory::<RequestedTracepointSet<'_>>::one();
        let mut seen = Vec::new();
        while dipc_next_tracepoint_set(&raw mut read.tracepoint_sets, set.at) == Status::Ok {
            seen.push((utf8(set.get().tracepoint_name), ids(set.get().event_ids)));
        }
        assert_eq!(seen, [("one".to_owned(), vec![3, 4, 5]), ("none".to_owned(), vec![])]);
    }
}

#[test]
fn requests_without_lists() {
    unsafe {
        let bytes = built(|buf, size, len| SetEnvironmentVariable(buf, size, len, name(c"A"), Text::NULL));
        let variable = Memory::<RequestedVariable<'_>>::one();
        ok(dipc_request_variable(bytes.at, bytes.count, variable.at, null_mut()));
        assert_eq!((utf8(variable.get().name), variable.get().value.form), ("A".into(), DIPC_TEXT_NULL));
        let dump = Memory::<RequestedDump<'_>>::one();
        assert_eq!(dipc_request_dump(bytes.at, bytes.count, dump.at, null_mut()), Status::InvalidArgument);
        for (bytes, flags) in [
            (built(|buf, size, len| GenerateCoreDump(buf, size, len, name(c"/d"), 2, 9)), 1),
            (built(|buf, size, len| GenerateCoreDump2(buf, size, len, name(c"/d"), 2, 12)), 12),
            (built(|buf, size, len| GenerateCoreDump3(buf, size, len, name(c"/d"), 2, 8)), 8),
        ] {
            ok(dipc_request_dump(bytes.at, bytes.count, dump.at, null_mut()));
            let RequestedDump { path, dump_type, flags: read } = dump.get();
            assert_eq!((utf8(path), dump_type, read), ("/d".into(), DIPC_DUMP_WITH_HEAP, flags));
        }
        let (guid, data) = (Guid { bytes: [7; 16] }, Memory::<u8>::from(&[1, 2, 3]));
        let data = ClientData { data: data.at, len: 3, owner: PhantomData };
        let bytes = built(|buf, size, len| AttachProfiler(buf, size, len, 10, guid, name(c"/p.so"), data));
        let profiler = Memory::<RequestedProfiler<'_>>::one();
        ok(dipc_request_profiler(bytes.at, bytes.count, profiler.at, null_mut()));
        let read = profiler.get();
        assert_eq!(
            (read.attach_timeout, read.profiler_guid.bytes, utf8(read.profiler_path)),
            (10, [7; 16], "/p.so".into())
        );
        assert_eq!((read.client_data.len, read.client_data.data.add(2).read()), (3, 3));
        let bytes = built(|buf, size, len| StartupProfiler(buf, size, len, guid, name(c"/p.so")));
        ok(dipc_request_profiler(bytes.at, bytes.count, profiler.at, null_mut()));
        assert_eq!((profiler.get().client_data.len, profiler.get().attach_timeout), (0, 0));
        let bytes = built(|buf, size, len| StopTracing(buf, size, len, 77));
        let session_id = Memory::<u64>::one();
        ok(dipc_request_session_id(bytes.at, bytes.count, session_id.at, null_mut()));
        assert_eq!(session_id.get(), 77);
        let bytes = built(|buf, size, len| EnablePerfMap(buf, size, len, DIPC_PERF_MAP_PERF_MAP));
        let perf_map_type = Memory::<u32>::one();
        ok(dipc_request_perf_map_type(bytes.at, bytes.count, perf_map_type.at, null_mut()));
        assert_eq!(perf_map_type.get(), DIPC_PERF_MAP_PERF_MAP);
        let bytes = built(|buf, size, len| ApplyStartupHook(buf, size, len, name(c"/My Hook.dll")));
        let path = Memory::<Text<'_>>::one();
        ok(dipc_request_startup_hook(bytes.at, bytes.count, path.at, null_mut()));
        assert_eq!(utf8(path.get()), "/My Hook.dll");
        assert_eq!(
            dipc_request_session_id(bytes.at, bytes.count, session_id.at, null_mut()),
            Status::InvalidArgument
        );
    }
}

#[test]
fn the_name_of_a_socket() {
    let text = text_of(|space, size, len| unsafe { dipc_socket_name(42, 8311, space, size, len) });
    assert_eq!(text, "dotnet-diagnostic-42-8311-socket");
    let (process_id, start_time) = (Memory::<u32>::one(), Memory::<u64>::one());
    let parse = |text: &CStr| unsafe { dipc_socket_name_parse(text.as_ptr(), process_id.at, start_time.at) };
    ok(parse(c"dotnet-diagnostic-4294967295-18446744073709551615-socket"));
    assert_eq!((process_id.get(), start_time.get()), (u32::MAX, u64::MAX));
    for text in
        [c"dotnet-diagnostic-4294967296-1-socket", c"dotnet-diagnostic-dsrouter-1-2-socket", c"", c"\xff"]
    {
        assert_eq!(parse(text), Status::NotFound);
    }
    assert_eq!(unsafe { dipc_socket_name_parse(null(), process_id.at, start_time.at) }, Status::NullPointer);
}
