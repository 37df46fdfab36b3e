//! The property of a plan that runs over connections: commands, their order, and the deadline.
use arbitrary::Unstructured;
use ipc_proto::plan::{
    DumpConfig, Fallback, FallbackError, FallbackStep, InfoConfig, PlanStep, Runtime, Single, TraceConfig,
};
use ipc_proto::types::{DumpFlags, DumpType, Provider, SessionBufferMode};
use ipc_proto::{Answer, Code, CommandInfo, HResult, Message, Parsed, ProtocolError, ResumeRuntime};

/// For any runtime, which accepts connections when it wants and answers in pieces of any size: a plan sends each
/// command whole, on a connection of its own, and an older one only after UNKNOWN_COMMAND. It takes no byte after an
/// answer, and ends with the answer, an error, or the deadline.
pub fn fallback(bytes: &[u8]) {
    let u = &mut Unstructured::new(bytes);
    let _ = wish(u);
}

fn wish(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let unknown = Runtime::default();
    match u.int_in_range(0..=3)? {
        0 => run(u, InfoConfig.first_step(&unknown)),
        1 => {
            let config =
                DumpConfig { path: "/core".into(), dump_type: DumpType::FULL, flags: DumpFlags::NONE };
            run(u, config.first_step(&unknown))
        }
        2 => run(u, Single(ResumeRuntime {})),
        _ => {
            let config = TraceConfig {
                buffer_mode: SessionBufferMode::BLOCK,
                rundown_keyword: 1,
                stackwalk: false,
                ..TraceConfig::new(&[] as &[Provider<'_>])
            };
            run(u, config.first_step(&unknown))
        }
    }
}

/// The bytes that the runtime sends on the current connection, and the received part of the command.
#[derive(Default)]
struct Connection {
    request: Vec<u8>,
    answer: Vec<u8>,
    /// How many bytes follow the answer.
    after: usize,
    closed: bool,
}

fn run<S: PlanStep + Clone>(u: &mut Unstructured<'_>, first: S) -> arbitrary::Result<()> {
    let (version, until): (u8, u64) = (u.int_in_range(0..=12)?, u.int_in_range(0..=2_000)?);
    let plan: Vec<Code> = first.clone().steps().map(|step| step.code()).collect();
    let mut fallback = Fallback::new(first, until);
    let mut buf = vec![0; u.int_in_range(0..=100)?];
    let (mut now, mut sent, mut connection) = (0, Vec::new(), Connection::default());
    loop {
        match fallback.step(&mut buf) {
            FallbackStep::Connect if u.ratio(1, 4)? => fallback.busy(now),
            FallbackStep::Connect => {
                sent.push(fallback.command().code());
                connection = Connection::default();
                fallback.connected();
            }
            FallbackStep::Wait => {
                let next = fallback.until().expect("it waits for a time");
                assert!(now <= next && next <= until.max(now));
                now += u.int_in_range(1..=next - now + 1)?;
                fallback.tick(now);
            }
            FallbackStep::Send(bytes) => {
                let n = u.int_in_range(0..=bytes.len())?;
                connection.request.extend(&bytes[..n]);
                let is_whole = n == bytes.len();
                fallback.advance(n, &buf);
                if is_whole {
                    let command = ipc_proto::encode_to_vec(fallback.command().code(), fallback.command());
                    assert_eq!(command.as_ref(), Ok(&connection.request));
                    connection.answer = answer(u, version, &connection.request)?;
                    if let Ok(Parsed::Complete { used, .. }) = Message::parse(&connection.answer) {
                        connection.after = connection.answer.len() - used;
                    }
                }
            }
            FallbackStep::Receive(space) => {
                let n = u.int_in_range(0..=space.len())?.min(connection.answer.len());
                space[..n].copy_from_slice(&connection.answer[..n]);
                connection.answer.drain(..n);
                connection.closed |= n == 0;
                fallback.advance(n, &buf);
            }
            FallbackStep::Grow { needed } => {
                assert!(needed > buf.len() && needed <= Message::MAX_LEN);
                buf.resize(needed, 0);
            }
            FallbackStep::Done => break,
        }
    }
    assert!(plan.starts_with(&sent), "one command after the other, none twice");
    let knows = |code: Code| CommandInfo::find(code).is_some_and(|row| row.since <= version);
    let end = fallback.finish(&buf);
    if end.is_ok() {
        assert_eq!(connection.answer.len(), connection.after, "it takes no byte after the answer");
    }
    match end {
        Ok(Answer::Ok(_)) => assert!(knows(fallback.command().code())),
        Ok(Answer::Refused(e)) if e.hresult == HResult::UNKNOWN_COMMAND => {
            assert!(fallback.command().older().is_none() && !knows(fallback.command().code()));
        }
        Ok(Answer::Refused(e)) => assert_eq!(e.hresult, HResult::FAIL),
        Err(FallbackError::TimedOut { .. }) => assert!(now >= until),
        Err(FallbackError::Protocol(ProtocolError::Closed { .. })) => assert!(connection.closed),
        Err(FallbackError::Protocol(_)) => {} // the runtime sent something else
        Err(e) => panic!("{e}"),
    }
    Ok(())
}

/// Returns the answer of a runtime of this version, followed by bytes of a stream; or arbitrary bytes.
fn answer(u: &mut Unstructured<'_>, version: u8, request: &[u8]) -> arbitrary::Result<Vec<u8>> {
    let code = request.get(16..18).map_or(Code(0), |code| Code(u16::from_be_bytes([code[0], code[1]])));
    let payload = |hresult: HResult| (Code::ERROR, hresult.0.to_le_bytes().to_vec());
    let (code, payload) = match CommandInfo::find(code).filter(|row| row.since <= version) {
        None => payload(HResult::UNKNOWN_COMMAND),
        Some(_) if u.ratio(1, 8)? => payload(HResult::FAIL),
        Some(_) if u.ratio(1, 8)? => return u.arbitrary(),
        Some(_) => (Code::OK, vec![0; 52]), // process information without any text; a session reads the first bytes
    };
    let mut bytes = ipc_proto::encode_to_vec(code, &Raw(&payload)).expect("it is short");
    bytes.extend(b"Nettrace");
    Ok(bytes)
}

/// Bytes as the payload of a message.
struct Raw<'a>(&'a [u8]);
impl ipc_proto::Encode for Raw<'_> {
    fn encode(&self, w: &mut ipc_proto::wire::Writer<'_>) {
        w.bytes(self.0);
    }
}
