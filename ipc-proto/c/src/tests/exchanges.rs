//! A call against a server in the same program: two exchanges, which move in memory after every step.
use super::*;

/// The most bytes that a connection takes at a time.
const PIECE: usize = 9;

/// Performs steps until one cannot proceed, and moves the exchange before each. Returns the last status and its detail.
unsafe fn drive(
    exchange: &mut Memory<Exchange>,
    incoming: &mut VecDeque<u8>,
    outgoing: &mut VecDeque<u8>,
) -> (Status, usize) {
    let (step, detail) = (Memory::<Step>::one(), Memory::<usize>::one());
    loop {
        exchange.relocate(1);
        let mut status = unsafe { dipc_exchange_step(exchange.at, step.at, detail.at) };
        if status == Status::Ok {
            let Step { kind, data, len } = step.get();
            let n = len.min(PIECE).min(if kind == DIPC_STEP_SEND { PIECE } else { incoming.len() });
            match kind {
                DIPC_STEP_SEND => (0..n).for_each(|i| outgoing.push_back(unsafe { data.add(i).read() })),
                _ => (0..n).for_each(|i| unsafe { data.add(i).write(incoming.pop_front().unwrap()) }),
            }
            if n == 0 {
                return (status, 0);
            }
            status = unsafe { dipc_exchange_advance(exchange.at, n, detail.at) };
        }
        if status != Status::Ok {
            return (status, detail.get());
        }
    }
}

/// The client after a call, with its buffer and the bytes that follow the answer.
struct Called {
    answer: Answer,
    buf: Memory<u8>,
    rest: VecDeque<u8>,
}

/// Sends the request at the front of `buf` to a server, which sets its reply by `reply`. If the answer is larger than the
/// buffer, the client makes the buffer larger.
unsafe fn call(
    mut buf: Memory<u8>,
    len: usize,
    then: &[u8],
    reply: impl FnOnce(*mut Exchange, Request),
) -> Called {
    unsafe {
        let (receive, send) = (Memory::<u8>::array(1024), Memory::<u8>::array(512));
        let (mut to_server, mut to_client) = (VecDeque::new(), VecDeque::new());
        let (mut client, mut server) = (Memory::zeros(), Memory::zeros());
        let (request, answer) = (Memory::one(), Memory::one());
        ok(dipc_call_init(client.at, buf.at, buf.count, len, null_mut()));
        ok(dipc_serve_init(server.at, receive.at, receive.count, send.at, send.count, null_mut()));
        ok(drive(&mut client, &mut to_client, &mut to_server).0);
        ok(drive(&mut server, &mut to_server, &mut to_client).0);
        // The reply is in the memory of the server.
        ok(dipc_serve_finish(server.at, null(), request.at, server.at, null_mut()));
        reply(server.at, request.get());
        ok(drive(&mut server, &mut to_server, &mut to_client).0);
        to_client.extend(then);
        let (mut status, needed) = drive(&mut client, &mut to_client, &mut to_server);
        if status == Status::BufferTooSmall {
            assert!(needed > buf.count);
            buf.relocate(needed);
            ok(dipc_exchange_set_buffer(client.at, buf.at, buf.count, null_mut()));
            (status, _) = drive(&mut client, &mut to_client, &mut to_server);
        }
        ok(status);
        ok(dipc_call_finish(client.at, answer.at, null_mut()));
        Called { answer: answer.get(), buf, rest: to_client }
    }
}

/// Finds a text in a message, and converts it.
unsafe fn find_text(bytes: *const u8, len: usize, answer_to: u16, path: &CStr) -> String {
    let part = Memory::<Part<'_>>::one();
    unsafe { ok(dipc_find(bytes, len, answer_to, path.as_ptr(), part.at, null_mut())) };
    let text = unsafe { (*part.at).text };
    text_of(|space, size, len| unsafe { dipc_text_to_utf8(text, space, size, len) })
}

#[test]
fn a_request_with_texts_and_arrays() {
    unsafe {
        let (ids, units) =
            (Memory::<u32>::from(&[1, 0xffff_ffff]), Memory::<u16>::from(&[0x61, 0xd83d, 0xde00, 0xd800]));
        let arguments = Text { data: units.at.cast(), len: 4, form: DIPC_TEXT_UTF16, owner: PhantomData };
        let none = EventFilter { enable: false, event_ids: Array::new(null_mut(), 0) };
        let filter = EventFilter { enable: true, event_ids: Array::new(ids.at, 2) };
        let name = dipc_utf8(c"Größe".as_ptr());
        let first = StreamingProvider { keywords: 1, level: 4, name, arguments, filter };
        let second = StreamingProvider { arguments: dipc_utf8(null_mut()), filter: none, ..first };
        let providers = Memory::from(&[first, second]);
        let session = Memory::<SessionConfig<'_>>::zeros();
        ((*session.at).buffer_mb, (*session.at).format) = (1, DIPC_FORMAT_NET_TRACE);
        (*session.at).providers = Array::new(providers.at, 2);
        let session = session.get();
        let (len, session_id) = (Memory::one(), Memory::<u64>::one());
        assert_eq!(CollectTracing5(null_mut(), 0, len.at, session), Status::BufferTooSmall);
        let buf = Memory::array(len.get());
        ok(CollectTracing5(buf.at, buf.count, len.at, session));
        let called = call(buf, len.get(), &[], |reply, request| {
            assert_eq!((request.code, request.then), (0x206, DIPC_THEN_STREAM));
            let (bytes, len) = (request.bytes, request.len);
            assert_eq!(find_text(bytes, len, 0, c"providers[1].name"), "Größe");
            assert_eq!(find_text(bytes, len, 0, c"providers[0].arguments"), "a😀\u{fffd}");
            let (part, space, units) = (Memory::<Part<'_>>::one(), Memory::array(4), Memory::one());
            let path = c"providers[0].arguments";
            ok(dipc_find(bytes, len, 0, path.as_ptr(), part.at, null_mut()));
            assert!(dipc_text_equals((*part.at).text, arguments));
            ok(dipc_text_to_utf16((*part.at).text, space.at, 4, units.at));
            assert_eq!((units.get(), space.at.add(3).read()), (4, 0xd800));
            let last = c"providers[0].filter.event_ids[1]";
            ok(dipc_find(bytes, len, 0, last.as_ptr(), part.at, null_mut()));
            assert_eq!((*part.at).number, 0xffff_ffff);
            ok(reply::SessionId(reply, 77, null_mut()));
        });
        ok(read::SessionId(called.answer.bytes, called.answer.len, session_id.at, null_mut()));
        assert_eq!((called.answer.refused, session_id.get()), (false, 77));
    }
}

#[test]
fn a_refusal_with_a_text() {
    unsafe extern "C" fn collect(context: *mut c_void, part: *const Part<'_>) {
        let path = text_of(|space, size, len| unsafe { dipc_path_text((*part).path, space, size, len) });
        unsafe { (*context.cast::<Vec<String>>()).push(path) };
    }
    unsafe {
        let (buf, len) = (Memory::array(256), Memory::one());
        ok(GenerateCoreDump3(buf.at, 256, len.at, dipc_utf8(c"/d".as_ptr()), 1, 0));
        let called = call(buf, len.get(), &[], |reply, _| {
            ok(dipc_reply_refuse(reply, 0x8000_4005, dipc_utf8(c"no space".as_ptr()), null_mut()));
        });
        let Answer { refused, hresult, bytes, len } = called.answer;
        assert_eq!((refused, hresult), (true, 0x8000_4005));
        assert_eq!(find_text(bytes, len, 0x103, c"message"), "no space");
        let mut paths = Vec::<String>::new();
        ok(dipc_inspect(bytes, len, 0x103, Some(collect), (&raw mut paths).cast(), null_mut()));
        assert_eq!(paths.last().unwrap(), "message");
    }
}

#[test]
fn an_answer_that_is_larger_than_the_buffer() {
    unsafe {
        let (buf, len) = (Memory::array(20), Memory::one());
        ok(GetProcessInfo3(buf.at, 20, len.at));
        let called = call(buf, 20, &[], |reply, _| {
            let info = Memory::<ProcessInfo<'_>>::zeros();
            (*info.at).process_id = 42;
            (*info.at).command_line = dipc_utf8(c"a command line".as_ptr());
            (*info.at).portable_rid = dipc_utf8(c"linux-x64".as_ptr());
            ok(dipc_reply_process_info(reply, info.at, null_mut()));
        });
        let info = Memory::<ProcessInfo<'_>>::one();
        ok(dipc_read_process_info(called.answer.bytes, called.answer.len, 0x408, info.at, null_mut()));
        let info = info.get();
        assert_eq!(info.process_id, 42);
        assert!(dipc_text_equals(info.portable_rid, dipc_utf8(c"linux-x64".as_ptr())));
        assert_eq!(called.buf.count, called.answer.len);
    }
}

#[test]
fn an_environment_in_the_buffer_of_its_call() {
    unsafe {
        let entries = [c"A=1", c"LONGER=some value", c""].map(|entry| dipc_utf8(entry.as_ptr()));
        let (len, list) = (Memory::one(), Memory::<Text<'_>>::from(&entries));
        assert_eq!(dipc_write_environment(list.at, 3, null_mut(), 0, len.at), Status::BufferTooSmall);
        let bytes = Memory::array(len.get());
        ok(dipc_write_environment(list.at, 3, bytes.at, bytes.count, len.at));
        let then: Vec<u8> = (0..bytes.count).map(|i| bytes.at.add(i).read()).collect();
        let buf = Memory::array(48);
        ok(GetProcessEnvironment(buf.at, 48, len.at));
        let called = call(buf, len.get(), &then, |reply, _| {
            ok(reply::ProcessEnvironment(reply, u32::try_from(then.len()).unwrap(), 0, null_mut()));
        });
        let Called { answer, buf, mut rest } = called;
        let (mut exchange, entry) = (Memory::zeros(), Memory::<Text<'_>>::one());
        ok(dipc_environment_init(exchange.at, answer.bytes, answer.len, 999, buf.at, buf.count, null_mut()));
        let mut received = Vec::new();
        for _ in 0..3 {
            ok(drive(&mut exchange, &mut rest, &mut VecDeque::new()).0);
            while dipc_environment_next(exchange.at, entry.at, null_mut()) == Status::Ok {
                let entry = entry.get();
                received.push(text_of(|space, size, len| dipc_text_to_utf8(entry, space, size, len)));
            }
        }
        assert!(dipc_environment_is_finished(exchange.at));
        assert_eq!(received, ["A=1", "LONGER=some value", ""]);
    }
}
