//! A runtime that calls a monitor, both in this program; the ports in an environment; and a session.
use super::*;

const COOKIE: Guid = Guid { bytes: *b"a runtime's name" };

/// Passes the frame of a connect port to a function in pieces, between which the port moves. Returns the frame.
unsafe fn send_frame(mut piece: impl FnMut(*const u8, usize)) -> Vec<u8> {
    unsafe {
        let (mut port, step, mut frame) = (Memory::<ConnectPort>::zeros(), Memory::<Step>::one(), Vec::new());
        ok(dipc_connect_port_init(port.at, COOKIE, 4242));
        ok(dipc_connect_port_advance(port.at, DIPC_CONNECT_CONNECTED, 0));
        loop {
            port.relocate(1);
            ok(dipc_connect_port_step(port.at, step.at));
            let Step { kind, data, len } = step.get();
            if kind != DIPC_STEP_SEND {
                assert_eq!((kind, frame.len()), (DIPC_STEP_SERVE, 34));
                return frame;
            }
            let n = len.min(11);
            frame.extend((0..n).map(|i| data.add(i).read()));
            piece(data, n);
            ok(dipc_connect_port_advance(port.at, DIPC_CONNECT_SENT, n));
        }
    }
}

unsafe extern "C" fn has_ended(context: *mut c_void, runtime: *const Runtime) -> bool {
    unsafe { *context.cast::<u64>() = (*runtime).process_id };
    true
}

#[test]
fn a_runtime_at_a_monitor() {
    unsafe {
        let (port, slots) = (Memory::<MonitorPort>::zeros(), Memory::<MonitorSlot>::array(3));
        let (step, change, runtime) =
            (Memory::<Step>::one(), Memory::<MonitorChange>::one(), Memory::<Runtime>::one());
        let (token, connection, detail) =
            (Memory::<u64>::one(), Memory::<u64>::one(), Memory::<usize>::one());
        ok(dipc_monitor_port_init(port.at, slots.at, slots.count));
        // The first connection sends another byte than that of a frame.
        ok(dipc_monitor_port_accept(port.at, 1, 0, 0, token.at, change.at, detail.at));
        ok(dipc_monitor_port_receive(port.at, token.get(), connection.at, step.at));
        step.get().data.write(b'G');
        ok(dipc_monitor_port_advance(port.at, token.get(), 1, 0, change.at));
        assert_eq!((change.get().kind, change.get().connection), (DIPC_CHANGE_REJECTED, 1));
        assert!(change.get().status == Status::BadAdvertise);
        // The second one is a runtime's.
        ok(dipc_monitor_port_accept(port.at, 2, 5, 1, token.at, change.at, detail.at));
        send_frame(|data, n| {
            assert!(dipc_monitor_port_due(port.at) <= 251);
            ok(dipc_monitor_port_receive(port.at, token.get(), connection.at, step.at));
            assert!(connection.get() == 2 && step.get().kind == DIPC_STEP_RECEIVE && step.get().len >= n);
            step.get().data.copy_from_nonoverlapping(data, n);
            ok(dipc_monitor_port_advance(port.at, token.get(), n, 2, change.at));
        });
        assert_eq!((change.get().kind, change.get().runtime.process_id), (DIPC_CHANGE_ARRIVED, 4242));
        ok(dipc_monitor_port_runtime(port.at, 0, runtime.at));
        assert_eq!((runtime.get().cookie.bytes, runtime.get().peer), (COOKIE.bytes, 5));
        ok(dipc_monitor_port_take(port.at, COOKIE, 3, connection.at));
        ok(dipc_monitor_port_find(port.at, COOKIE, runtime.at));
        assert_eq!((connection.get(), runtime.get().state), (2, DIPC_RUNTIME_IN_USE));
        ok(dipc_monitor_port_released(port.at, 7, 3));
        ok(dipc_monitor_port_find(port.at, COOKIE, runtime.at));
        assert_eq!(runtime.get().state, DIPC_RUNTIME_IN_USE, "another token has no effect");
        ok(dipc_monitor_port_released(port.at, token.get(), 3));
        ok(dipc_monitor_port_find(port.at, COOKIE, runtime.at));
        assert_eq!(runtime.get().state, DIPC_RUNTIME_DISCONNECTED);
        // Two more fill the slots; a third does not fit.
        ok(dipc_monitor_port_accept(port.at, 3, 0, 4, token.at, change.at, detail.at));
        ok(dipc_monitor_port_accept(port.at, 4, 0, 4, token.at, change.at, detail.at));
        let full = dipc_monitor_port_accept(port.at, 5, 0, 4, token.at, change.at, detail.at);
        assert_eq!((full, detail.get()), (Status::BufferTooSmall, 4));
        ok(dipc_monitor_port_evict_oldest(port.at, change.at));
        assert_eq!((change.get().kind, change.get().connection), (DIPC_CHANGE_REJECTED, 3));
        // The process of the runtime ends, within the time in which the runtime can connect again.
        let ended = Memory::<u64>::of(0);
        let mut changes = Vec::new();
        while changes.last() != Some(&DIPC_CHANGE_NOTHING) {
            ok(dipc_monitor_port_on_due(port.at, 100, Some(has_ended), ended.at.cast(), change.at));
            changes.push(change.get().kind);
        }
        assert!(changes.contains(&DIPC_CHANGE_LEFT), "{changes:?}");
        assert_eq!(ended.get(), 4242);
        ok(dipc_monitor_port_remove(port.at, COOKIE, change.at));
        assert_eq!(change.get().kind, DIPC_CHANGE_NOTHING);
    }
}

#[test]
fn a_frame_without_a_port() {
    unsafe {
        let (mut exchange, step) = (Memory::<Exchange>::zeros(), Memory::<Step>::one());
        ok(dipc_advertise_init(exchange.at));
        let frame = send_frame(|_, _| {});
        for piece in frame.chunks(10) {
            exchange.relocate(1);
            ok(dipc_exchange_step(exchange.at, step.at, null_mut()));
            // The bytes are received into the exchange itself.
            step.get().data.copy_from_nonoverlapping(piece.as_ptr(), piece.len());
            ok(dipc_exchange_advance(exchange.at, piece.len(), null_mut()));
        }
        let (received, parsed, detail) =
            (Memory::<Advertise>::one(), Memory::<Advertise>::one(), Memory::<usize>::one());
        ok(dipc_advertise_finish(exchange.at, received.at, null_mut()));
        ok(dipc_advertise_parse(frame.as_ptr(), 34, parsed.at, null_mut()));
        assert_eq!((received.get().process_id, parsed.get().runtime_cookie.bytes), (4242, COOKIE.bytes));
        assert_eq!(dipc_advertise_parse(frame.as_ptr(), 33, parsed.at, detail.at), Status::More);
        assert_eq!(detail.get(), 34);
        let flags = Memory::from(&[false, true]);
        assert!(dipc_suspension_resume(flags.at, 2, 1));
        assert!(!dipc_suspension_is_suspended(flags.at, 2));
    }
}

unsafe extern "C" fn lookup(context: *mut c_void, name: *const c_char) -> Text<'static> {
    let wanted = unsafe { CStr::from_ptr(name) } == c"DOTNET_DiagnosticPorts";
    unsafe { dipc_utf8(if wanted { context.cast() } else { null() }) }
}

unsafe extern "C" fn take_finding(context: *mut c_void, finding: *const Finding<'_>) {
    unsafe { context.cast::<Finding<'_>>().copy_from_nonoverlapping(finding.cast(), 1) };
}

#[test]
fn the_ports_of_an_environment() {
    unsafe {
        let value = Memory::<u8>::from(b"/a,suspend;/b,nosupend,suspend\0");
        let (mut config, port, finding) =
            (Memory::<Config>::zeros(), Memory::<Port<'_>>::one(), Memory::<Finding<'_>>::zeros());
        ok(dipc_config_init(config.at, DIPC_FLAVOUR_MONO, Some(lookup), value.at.cast()));
        config.relocate(1);
        ok(dipc_config_port(config.at, 1, port.at));
        assert!(port.get().suspends && dipc_text_equals(port.get().address, dipc_utf8(c"/a".as_ptr())));
        assert_eq!(dipc_config_port(config.at, 2, port.at), Status::NotFound);
        ok(dipc_config_findings(config.at, Some(take_finding), finding.at.cast()));
        let Finding { kind, part, meant, .. } = finding.get();
        assert_eq!(kind, DIPC_FINDING_UNKNOWN_TAG);
        assert!(dipc_text_equals(part, dipc_utf8(c"nosupend".as_ptr())));
        assert!(dipc_text_equals(meant, dipc_utf8(c"nosuspend".as_ptr())));
        let (address, others) = (dipc_utf8(c"/c".as_ptr()), dipc_utf8(value.at.cast()));
        let list = text_of(|space, size, len| dipc_port_text(address, true, others, space, size, len));
        assert_eq!(list, "/c,suspend;/a,suspend;/b,nosupend,suspend");
    }
}

#[test]
fn a_session_is_stopped() {
    unsafe {
        let stream = include_bytes!("../../../../testdata/nettrace/synth-v4-padded-uncompressed.nettrace");
        let answer = b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\x07\0\0\0\0\0\0\0";
        let (session, step) = (Memory::<Session>::zeros(), Memory::<Step>::one());
        let (mut sent, mut received) = (Vec::new(), 0);
        ok(dipc_session_init(session.at, 7));
        ok(dipc_session_stop(session.at, 1000));
        loop {
            ok(dipc_session_tick(session.at, 1));
            ok(dipc_session_stop_step(session.at, step.at));
            let Step { kind, data, len } = step.get();
            let (event, n) = match kind {
                DIPC_STEP_CONNECT => (DIPC_STOP_CONNECTED, 0),
                DIPC_STEP_SEND => {
                    let n = len.min(5);
                    sent.extend((0..n).map(|i| data.add(i).read()));
                    (DIPC_STOP_SENT, n)
                }
                DIPC_STEP_RECEIVE => {
                    let n = len.min(5);
                    data.copy_from_nonoverlapping(answer[received..].as_ptr(), n);
                    received += n;
                    (DIPC_STOP_RECEIVED, n)
                }
                _ => break,
            };
            ok(dipc_session_stop_advance(session.at, event, n as u64));
        }
        assert_eq!((sent.len(), received, &sent[20..]), (28, 28, &[7, 0, 0, 0, 0, 0, 0, 0][..]));
        assert!(dipc_session_wants_stream(session.at));
        for piece in stream.chunks(100) {
            ok(dipc_session_stream_advance(session.at, piece.as_ptr(), piece.len()));
        }
        ok(dipc_session_stream_advance(session.at, null(), 0));
        assert_eq!(dipc_session_end(session.at), DIPC_SESSION_COMPLETE);
    }
}

#[test]
fn why_a_stop_has_no_effect() {
    unsafe {
        let (session, step, hresult) =
            (Memory::<Session>::zeros(), Memory::<Step>::one(), Memory::<u32>::one());
        let answer = || dipc_session_stop_answer(session.at, hresult.at, null_mut());
        assert_eq!(answer(), Status::WrongKind);
        for (received, status, code) in [
            (&b""[..], Status::Closed, 0),
            (b"xxxxxxxxxxxxxxxxxxxx", Status::BadMagic, 0),
            (b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x05\x40\0\x80", Status::Refused, 0x8000_4005),
            (b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\x07\0\0\0\0\0\0\0", Status::Ok, 0),
        ] {
            ok(dipc_session_init(session.at, 7));
            ok(dipc_session_limit_silence(session.at, 10_000));
            ok(dipc_session_stop(session.at, 1_000));
            ok(dipc_session_delay_stop(session.at, 500));
            ok(dipc_session_stop_step(session.at, step.at));
            assert_eq!((step.get().kind, dipc_session_until(session.at)), (DIPC_STEP_DONE, 500));
            ok(dipc_session_send_stop(session.at));
            ok(dipc_session_stop_advance(session.at, DIPC_STOP_CONNECTED, 0));
            ok(dipc_session_stop_advance(session.at, DIPC_STOP_SENT, 28));
            assert_eq!(answer(), Status::More);
            let mut rest = received;
            loop {
                ok(dipc_session_stop_step(session.at, step.at));
                let Step { kind, data, len } = step.get();
                if kind != DIPC_STEP_RECEIVE {
                    break;
                }
                let n = len.min(rest.len());
                data.copy_from_nonoverlapping(rest.as_ptr(), n);
                rest = &rest[n..];
                ok(dipc_session_stop_advance(session.at, DIPC_STOP_RECEIVED, n as u64));
            }
            assert_eq!((answer(), hresult.get()), (status, code));
            assert_eq!(dipc_session_stop_failed(session.at), status == Status::Refused);
            ok(dipc_session_stream_advance(session.at, null(), 0));
            assert_eq!(dipc_session_end(session.at), DIPC_SESSION_CUT_OFF);
            assert_eq!(dipc_session_until(session.at), 0);
        }
    }
}

#[test]
fn when_a_stop_is_dangerous() {
    unsafe {
        let provider = Memory::of(Provider {
            keywords: 2,
            level: 4,
            name: dipc_utf8(c"System.Diagnostics.Metrics".as_ptr()),
            arguments: dipc_utf8(c"RefreshInterval=3".as_ptr()),
        });
        let (buf, len) = (Memory::<u8>::array(512), Memory::one());
        ok(CollectTracing2(buf.at, 512, len.at, 1, 1, false, Array::new(provider.at, 1)));
        let (from, until) = (Memory::<u64>::one(), Memory::<u64>::one());
        let hazard = |facts| dipc_stop_hazard(buf.at, len.get(), facts, from.at, until.at, null_mut());
        ok(hazard(null()));
        assert_eq!((from.get(), until.get()), (2_750, 5_000));
        let net_8 = Memory::<Facts>::zeros();
        (*net_8.at).version = 8;
        assert_eq!(hazard(net_8.at), Status::NotFound);
    }
}
