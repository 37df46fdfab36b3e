//! Pointers that a function refuses: null, misaligned, to another object, and with an impossible length.
use super::*;

#[test]
fn null_pointers_and_lengths() {
    unsafe {
        let (exchange, step) = (Memory::<Exchange>::zeros(), Memory::<Step>::one());
        let (buf, len, detail) = (Memory::array(40), Memory::one(), Memory::<usize>::one());
        assert_eq!(dipc_exchange_step(null_mut(), step.at, detail.at), Status::NullPointer);
        assert_eq!(detail.get(), 0);
        ok(GetProcessInfo(buf.at, 20, len.at));
        assert_eq!(dipc_call_init(exchange.at, null_mut(), 20, 20, null_mut()), Status::NullPointer);
        assert_eq!(dipc_call_init(exchange.at, buf.at, usize::MAX, 20, null_mut()), Status::InvalidLength);
        ok(dipc_call_init(exchange.at, buf.at, 20, 20, null_mut()));
        assert_eq!(dipc_exchange_step(exchange.at, null_mut(), null_mut()), Status::NullPointer);
        assert_eq!(dipc_exchange_set_buffer(exchange.at, null_mut(), 20, null_mut()), Status::NullPointer);
        let too_small = dipc_exchange_set_buffer(exchange.at, buf.at.add(20), 10, null_mut());
        assert_eq!(too_small, Status::BufferTooSmall);
        // The exchange still has its buffer.
        ok(dipc_exchange_step(exchange.at, step.at, null_mut()));
        assert_eq!(step.get().data, buf.at);
        let (receive, send) = (buf.at, buf.at.add(10));
        assert_eq!(dipc_serve_init(exchange.at, receive, 20, send, 30, null_mut()), Status::InvalidArgument);
        let (parser, port) = (Memory::<Parser>::zeros(), Memory::<MonitorPort>::zeros());
        ok(dipc_parser_init(parser.at));
        assert_eq!(dipc_parser_next(parser.at, null(), 1, Memory::one().at), Status::NullPointer);
        assert_eq!(dipc_parser_next(parser.at, null(), 0, null_mut()), Status::NullPointer);
        assert_eq!(dipc_monitor_port_init(port.at, null_mut(), 1), Status::NullPointer);
    }
}

#[test]
fn misaligned_pointers() {
    unsafe {
        let (pair, step) = (Memory::<[Exchange; 2]>::zeros(), Memory::<Step>::one());
        let exchange = pair.at.cast::<Exchange>();
        assert_eq!(dipc_advertise_init(exchange.byte_add(1)), Status::Misaligned);
        assert_eq!(dipc_exchange_step(exchange.byte_add(1), step.at, null_mut()), Status::Misaligned);
        ok(dipc_advertise_init(exchange));
        assert_eq!(dipc_exchange_step(exchange, step.at.byte_add(1), null_mut()), Status::Misaligned);
        // Nothing is stored in a detail that is not aligned.
        let detail = Memory::of([1_usize, 1]);
        ok(dipc_exchange_step(exchange, step.at, detail.at.cast::<usize>().byte_add(1)));
        assert_eq!(detail.get(), [1, 1]);
    }
}

#[test]
fn another_object() {
    unsafe {
        // The memory has room for any of the objects.
        let (memory, step) = (Memory::<Writer>::zeros(), Memory::<Step>::one());
        let exchange = memory.at.cast::<Exchange>();
        assert_eq!(dipc_exchange_step(exchange, step.at, null_mut()), Status::WrongKind);
        ok(dipc_advertise_init(exchange));
        assert_eq!(dipc_call_finish(exchange, Memory::one().at, null_mut()), Status::WrongKind);
        assert_eq!(dipc_reply_ok(exchange, null_mut()), Status::WrongKind);
        assert_eq!(
            dipc_serve_finish(exchange, null(), Memory::one().at, exchange, null_mut()),
            Status::WrongKind
        );
        ok(dipc_connect_port_init(memory.at.cast(), Guid { bytes: [0; 16] }, 1));
        assert_eq!(dipc_session_stop_step(memory.at.cast(), step.at), Status::WrongKind);
        assert_eq!(dipc_exchange_step(exchange, step.at, null_mut()), Status::WrongKind);
        ok(dipc_session_init(memory.at.cast(), 1));
        assert_eq!(dipc_writer_finish(memory.at, Memory::one().at), Status::WrongKind);
        // A finished writer is none.
        let (trace, buf, out) = (Memory::<Trace>::zeros(), Memory::array(1024), Memory::<Output>::one());
        ((*trace.at).pointer_size, (*trace.at).frequency) = (8, 1000);
        ok(dipc_writer_init(memory.at, trace.at, buf.at, buf.count, null_mut()));
        ok(dipc_writer_finish(memory.at, out.at));
        assert_eq!(dipc_writer_finish(memory.at, out.at), Status::WrongKind);
    }
}
