//! Plans, against servers of several versions in the same program.
use super::*;

/// A server that has the commands of some .NET.
struct Server {
    exchange: Memory<Exchange>,
    facts: Memory<Facts>,
    receive: Memory<u8>,
    send: Memory<u8>,
    asked: Vec<u16>,
}

impl Server {
    fn new(version: u8) -> Self {
        let facts =
            Facts { version, is_linux: DIPC_YES, is_suspended: DIPC_NO, flavour: DIPC_FLAVOUR_CORE_CLR };
        let (receive, send) = (Memory::array(1024), Memory::array(512));
        Self { exchange: Memory::zeros(), facts: Memory::of(facts), receive, send, asked: Vec::new() }
    }

    unsafe fn connect(&mut self) {
        let Self { exchange, receive, send, .. } = self;
        let (size, send_size) = (receive.count, send.count);
        unsafe { ok(dipc_serve_init(exchange.at, receive.at, size, send.at, send_size, null_mut())) };
    }

    /// Receives bytes, and replies once the request is complete.
    unsafe fn receive(&mut self, bytes: *const u8, len: usize) {
        let step = Memory::<Step>::one();
        unsafe {
            ok(dipc_exchange_step(self.exchange.at, step.at, null_mut()));
            let Step { data, len: space, .. } = step.get();
            let n = len.min(space);
            data.copy_from_nonoverlapping(bytes, n);
            ok(dipc_exchange_advance(self.exchange.at, n, null_mut()));
            if n < len {
                return self.receive(bytes.add(n), len - n);
            }
            ok(dipc_exchange_step(self.exchange.at, step.at, null_mut()));
            if step.get().kind != DIPC_STEP_DONE {
                return;
            }
            let request = Memory::<Request>::one();
            let exchange = self.exchange.at;
            let status = dipc_serve_finish(exchange, self.facts.at, request.at, exchange, null_mut());
            self.asked.push(request.get().code);
            match request.get().code {
                _ if status == Status::Refused => {}
                0x400 | 0x404 | 0x408 => {
                    let info = Memory::<ProcessInfo<'_>>::zeros();
                    (*info.at).process_id = 42;
                    ok(dipc_reply_process_info(exchange, info.at, null_mut()));
                }
                0x202..=0x207 => ok(reply::SessionId(exchange, 77, null_mut())),
                _ => ok(dipc_reply_ok(exchange, null_mut())),
            }
        }
    }

    /// Sends at most one byte less than the space has.
    unsafe fn send(&mut self, space: *mut u8, len: usize) -> usize {
        let step = Memory::<Step>::one();
        unsafe {
            ok(dipc_exchange_step(self.exchange.at, step.at, null_mut()));
            let n = step.get().len.min(len - len / 2);
            space.copy_from_nonoverlapping(step.get().data, n);
            ok(dipc_exchange_advance(self.exchange.at, n, null_mut()));
            n
        }
    }
}

/// Carries out a plan, with a buffer that grows, in memory that moves before each step.
unsafe fn carry_out(plan: &mut Memory<Fallback>, buf: &mut Memory<u8>, server: &mut Server) {
    let (step, detail) = (Memory::<Step>::one(), Memory::<usize>::one());
    let mut now = 0;
    loop {
        plan.relocate(1);
        unsafe {
            if dipc_fallback_step(plan.at, step.at, detail.at) == Status::BufferTooSmall {
                buf.relocate(detail.get());
                ok(dipc_fallback_set_buffer(plan.at, buf.at, buf.count, null_mut()));
                continue;
            }
            let Step { kind, data, len } = step.get();
            let (event, value) = match kind {
                DIPC_STEP_CONNECT if now % 2 == 0 => {
                    now += 1;
                    (DIPC_FALLBACK_BUSY, now)
                }
                DIPC_STEP_CONNECT => {
                    now += 1;
                    server.connect();
                    (DIPC_FALLBACK_CONNECTED, 0)
                }
                DIPC_STEP_WAIT => {
                    now = dipc_fallback_until(plan.at) | 1;
                    ok(dipc_fallback_tick(plan.at, now));
                    continue;
                }
                DIPC_STEP_SEND => {
                    let n = len - len / 2;
                    server.receive(data, n);
                    (DIPC_FALLBACK_SENT, n as u64)
                }
                DIPC_STEP_RECEIVE => (DIPC_FALLBACK_RECEIVED, server.send(data, len) as u64),
                _ => return,
            };
            ok(dipc_fallback_advance(plan.at, event, value));
        }
    }
}

/// Carries out a plan for a request against a server of this version. Returns the answer, the commands that were sent, and
/// what the last one lacks.
unsafe fn asked(request: &Memory<u8>, facts: *const Facts, version: u8) -> (Answer, Vec<u16>, Vec<String>) {
    let (mut plan, answer) = (Memory::zeros(), Memory::<Answer>::one());
    let (mut buf, mut server) = (Memory::array(20), Server::new(version));
    unsafe {
        ok(dipc_fallback_init(plan.at, request.at, request.count, facts, buf.at, 20, u64::MAX, null_mut()));
        carry_out(&mut plan, &mut buf, &mut server);
        ok(dipc_fallback_finish(plan.at, answer.at, null_mut()));
        assert_eq!(dipc_fallback_command(plan.at), *server.asked.last().unwrap());
        assert_eq!(dipc_fallback_until(plan.at), 0);
        let mut lost = Vec::new();
        while dipc_fallback_lost_feature(plan.at, lost.len(), null_mut(), 0, null_mut()) != Status::NotFound {
            let write = |space, size, len| dipc_fallback_lost_feature(plan.at, lost.len(), space, size, len);
            lost.push(text_of(write));
        }
        if !answer.get().refused && server.asked.last() == Some(&0x203) {
            let session_id = Memory::<u64>::one();
            ok(read::SessionId(answer.get().bytes, answer.get().len, session_id.at, null_mut()));
            assert_eq!(session_id.get(), 77);
        }
        (answer.get(), server.asked.clone(), lost)
    }
}

#[test]
fn an_older_command_is_sent_to_an_older_server() {
    unsafe {
        let len = Memory::<usize>::one();
        let info = Memory::<u8>::array(20);
        ok(GetProcessInfo3(info.at, 20, len.at));
        for (version, codes) in [(8, &[0x408][..]), (6, &[0x408, 0x404]), (5, &[0x408, 0x404, 0x400])] {
            let (answer, asked, lost) = asked(&info, null(), version);
            assert_eq!((answer.refused, asked, lost.len()), (false, codes.to_vec(), 0));
        }
        let (answer, asked_, _) = asked(&info, null(), 3);
        assert_eq!((answer.refused, answer.hresult), (true, DIPC_HRESULT_UNKNOWN_COMMAND));
        assert_eq!(asked_, [0x408, 0x404, 0x400]);
        let facts = Memory::of(Facts {
            version: 6,
            is_linux: DIPC_UNKNOWN,
            is_suspended: DIPC_UNKNOWN,
            flavour: DIPC_FLAVOUR_UNKNOWN,
        });
        assert_eq!(asked(&info, facts.at, 6).1, [0x404]);

        let provider = StreamingProvider {
            keywords: 1,
            level: 4,
            name: dipc_utf8(c"P".as_ptr()),
            arguments: Text::NULL,
            filter: EventFilter { enable: false, event_ids: Array::new(null(), 0) },
        };
        let provider = Memory::of(provider);
        let wanted = Memory::<SessionConfig6<'_>>::zeros();
        ((*wanted.at).session.buffer_mb, (*wanted.at).session.format) = (1, DIPC_FORMAT_NET_TRACE);
        (*wanted.at).session.providers = Array::new(provider.at, 1);
        (*wanted.at).session_buffer_mode = DIPC_BUFFER_MODE_BLOCK;
        assert_eq!(CollectTracing6(null_mut(), 0, len.at, wanted.get()), Status::BufferTooSmall);
        let session = Memory::array(len.get());
        ok(CollectTracing6(session.at, session.count, len.at, wanted.get()));
        assert_eq!(asked(&session, null(), 11).1, [0x207]);
        let (_, asked, lost) = asked(&session, null(), 8);
        assert_eq!(asked, [0x207, 0x204, 0x203]);
        assert!(lost[0].contains("needs .NET 11") && lost[1].contains("need .NET 9"), "{lost:?}");
    }
}

#[test]
fn a_plan_without_an_answer() {
    unsafe {
        let (plan, len, detail) = (Memory::<Fallback>::zeros(), Memory::one(), Memory::<usize>::one());
        let (request, buf) = (Memory::<u8>::array(20), Memory::<u8>::array(64));
        let (step, answer) = (Memory::<Step>::one(), Memory::<Answer>::one());
        assert_eq!(dipc_fallback_step(plan.at, step.at, null_mut()), Status::WrongKind);
        assert_eq!((dipc_fallback_command(plan.at), dipc_fallback_until(plan.at)), (0, u64::MAX));
        ok(ResumeRuntime(request.at, 20, len.at));
        let init = |len, size, until| {
            dipc_fallback_init(plan.at, request.at, len, null(), buf.at, size, until, detail.at)
        };
        assert_eq!((init(19, 64, 10), detail.get()), (Status::More, 20));
        ok(init(20, 64, 10));
        assert_eq!(dipc_fallback_finish(plan.at, answer.at, null_mut()), Status::Closed);
        ok(dipc_fallback_advance(plan.at, DIPC_FALLBACK_SENT, 20)); // does not fit the step
        ok(dipc_fallback_step(plan.at, step.at, null_mut()));
        assert_eq!((step.get().kind, dipc_fallback_until(plan.at)), (DIPC_STEP_CONNECT, 10));
        ok(dipc_fallback_tick(plan.at, 10));
        assert_eq!(dipc_fallback_finish(plan.at, answer.at, detail.at), Status::TimedOut);
        assert_eq!(detail.get(), 0);
        ok(init(20, 64, 10));
        ok(dipc_fallback_step(plan.at, step.at, null_mut()));
        ok(dipc_fallback_advance(plan.at, DIPC_FALLBACK_CONNECTED, 0));
        assert_eq!(dipc_fallback_advance(plan.at, DIPC_FALLBACK_SENT, 21), Status::Overrun);
        assert_eq!(dipc_fallback_finish(plan.at, answer.at, detail.at), Status::Overrun);
        assert_eq!(dipc_fallback_advance(plan.at, 4, 0), Status::InvalidArgument);
        // A buffer that is too small leaves the plan with the old one.
        ok(init(20, 10, 10));
        assert_eq!(dipc_fallback_step(plan.at, step.at, detail.at), Status::BufferTooSmall);
        assert_eq!(dipc_fallback_set_buffer(plan.at, buf.at, 19, detail.at), Status::BufferTooSmall);
        assert_eq!(detail.get(), 20);
        ok(dipc_fallback_set_buffer(plan.at, buf.at, 64, detail.at));
        ok(init(20, 64, 10));
        ok(dipc_fallback_step(plan.at, step.at, null_mut()));
        ok(dipc_fallback_advance(plan.at, DIPC_FALLBACK_CONNECTED, 0));
        ok(dipc_fallback_step(plan.at, step.at, null_mut()));
        ok(dipc_fallback_advance(plan.at, DIPC_FALLBACK_SENT, 20));
        ok(dipc_fallback_tick(plan.at, 11));
        assert_eq!(dipc_fallback_finish(plan.at, answer.at, detail.at), Status::TimedOut);
        assert_eq!(detail.get(), 1);
    }
}
