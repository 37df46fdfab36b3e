use arbitrary::{Arbitrary, Unstructured};
use ipc_proto::types::{Environment, ProcessEnvironment};
use ipc_proto::wire::Writer;
use ipc_proto::{
    Answer, Array, Call, Code, Command, Continuation, Encode, EncodeError, HResult, Message, ProtocolError,
    Request, SendEnvironment, Serve, ServerError, Text, encode_to_vec,
};

use crate::split::{Bytes, environment};
use crate::wire::{feed, sizes, take};

/// A tool and a runtime understand each other: whatever is asked and answered, whatever the buffers, however the bytes
/// are cut, and when a side closes too early, the tool ends with just what the runtime said.
pub fn conversation(bytes: &[u8]) {
    let _ = converse(&mut Unstructured::new(bytes));
}

fn converse(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let scene: Scene<'_> = u.arbitrary()?;
    /// Answers each command with a value of its own response type.
    macro_rules! ask {
        ($($command:ident)*) => {
            match u.arbitrary()? {
                $(Request::$command(command) => scene.play(&command, Request::$command(command), &u.arbitrary()?),)*
                Request::GetProcessEnvironment(command) => {
                    let entries: Vec<Text<'_>> = u.arbitrary()?;
                    let mut piece = vec![0xa5; usize::from(scene.tool_room) + 1];
                    let mut send = SendEnvironment::new(Array::from(&entries[..]), &mut piece).expect("room");
                    let announced = send.announcement();
                    scene.play(&command, Request::GetProcessEnvironment(command), &announced);
                    scene.environment(&announced, &mut send, &entries);
                }
                Request::Unknown(message) => scene.play(
                    &Private(message.payload),
                    Request::Unknown(Message { code: Private::CODE, ..message }),
                    &Bytes(u.arbitrary()?),
                ),
                other => panic!("{other:?} is not in the list below"),
            }
        };
    }
    ask! {
        GenerateCoreDump GenerateCoreDump2 GenerateCoreDump3
        StopTracing CollectTracing CollectTracing2 CollectTracing3 CollectTracing4 CollectTracing5 CollectTracing6
        AttachProfiler StartupProfiler
        GetProcessInfo GetProcessInfo2 GetProcessInfo3 ResumeRuntime SetEnvironmentVariable
        EnablePerfMap DisablePerfMap ApplyStartupHook
    }
    Ok(())
}

/// A command that is in no table.
struct Private<'a>(&'a [u8]);

impl Encode for Private<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.bytes(self.0);
    }
}
impl Command for Private<'_> {
    const CODE: Code = Code(0x7f01);
    const NAME: &'static str = "Private";
    const SPECIFICATION_NAME: &'static str = "";
    const SINCE: u8 = 0;
    type Response<'r> = Bytes<'r>;

    fn continuation(&self) -> Continuation {
        Continuation::Nothing
    }
}

/// All of it but the request and the response.
#[derive(Debug, Arbitrary)]
struct Scene<'a> {
    does: Does<'a>,
    /// Room beyond the least: of the tool, and of the runtime for request and answer, which mostly have enough.
    tool_room: u8,
    receive_room: Option<u8>,
    send_room: Option<u8>,
    /// After how many bytes a side closes.
    tool_closes: Option<u8>,
    runtime_closes: Option<u8>,
    pieces: &'a [u8],
}

/// What the runtime does about a good request.
#[derive(Debug, Arbitrary)]
enum Does<'a> {
    Answer,
    Refuse(HResult),
    RefuseWith(ServerError<'a>),
    Nothing,
}

impl Scene<'_> {
    fn play<C: Command>(&self, command: &C, request: Request<'_>, response: &C::Response<'_>) {
        let mut sizes = sizes(self.pieces.iter());
        let len = Message::HEADER_LEN + command.encoded_len();
        let mut buf = vec![0xa5; len + usize::from(self.tool_room)];
        if len > Message::MAX_LEN {
            let refused = Call::new(command, &mut buf).map(|_| ());
            return assert_eq!(refused, Err(EncodeError::MessageTooLong { len }));
        }
        let too_small = Call::new(command, &mut buf[..len - 1]).map(|_| ());
        assert_eq!(too_small, Err(EncodeError::BufferTooSmall { needed: len }));
        let mut call = Call::new(command, &mut buf).expect("it fits");
        let asked = take(&mut call, &mut sizes, self.tool_closes.map_or(usize::MAX, Into::into));

        let receive_len =
            self.receive_room.map_or(Message::MAX_LEN, |room| Message::HEADER_LEN + usize::from(room));
        let send_len = self.send_room.map_or(Message::MAX_LEN, |room| 24 + usize::from(room));
        let (mut receive, mut send) = (vec![0xa5; receive_len], vec![0xa5; send_len]);
        let mut serve = Serve::new(&mut receive, &mut send).expect("room for a header and a refusal");
        assert_eq!(feed(&mut serve, &mut &asked[..], &mut sizes), Ok(()));
        let (received, mut reply) = serve.finish();
        let whole = asked.len() == len && len <= receive_len;
        let violation = request.check().err();
        assert_eq!(received.ok(), (whole && violation.is_none()).then_some(request));

        let refusal = |hresult| encode_to_vec(Code::ERROR, &hresult).expect("24 bytes");
        let fitting = |message: Result<Vec<u8>, EncodeError>| message.ok().filter(|m| m.len() <= send_len);
        let (outcome, said) = match &self.does {
            _ if !whole => (Ok(()), Some(refusal(HResult::BAD_ENCODING))),
            Does::Answer => (reply.answer(command, response), fitting(encode_to_vec(Code::OK, response))),
            Does::Refuse(hresult) => (reply.refuse(*hresult), Some(refusal(*hresult))),
            Does::RefuseWith(error) => (reply.refuse_with(error), fitting(encode_to_vec(Code::ERROR, error))),
            Does::Nothing => {
                let unknown = matches!(request, Request::Unknown(_));
                let by_itself = if unknown { HResult::UNKNOWN_COMMAND } else { HResult::FAIL };
                (Ok(()), Some(refusal(violation.map_or(by_itself, |violation| violation.hresult()))))
            }
        };
        assert_eq!(outcome.is_ok(), said.is_some());
        let said = said.unwrap_or_else(|| refusal(HResult::FAIL));
        let answered = take(&mut reply, &mut sizes, self.runtime_closes.map_or(usize::MAX, Into::into));
        assert_eq!(answered, said[..answered.len()]);

        let (mut wire, mut larger) = (&answered[..], vec![0xa5; said.len()]);
        if let Err(ProtocolError::BufferTooSmall { needed }) = feed(&mut call, &mut wire, &mut sizes) {
            assert_eq!(needed, said.len());
            call = call.into_buffer(&mut larger);
            let _ = feed(&mut call, &mut wire, &mut sizes); // `finish` says it too
        }
        assert_eq!(wire, []);
        let heard = match call.finish::<C::Response<'_>>() {
            Ok(Answer::Ok(response)) => encode_to_vec(Code::OK, &response),
            Ok(Answer::Refused(error)) => encode_to_vec(Code::ERROR, &error),
            Err(error) => {
                assert_eq!(error, ProtocolError::Closed { received: answered.len() });
                return assert!(answered.len() < said.len());
            }
        };
        // The words of a refusal are read for one command only.
        let words = C::NAME == "GenerateCoreDump3" || said[16..18] == [0xff, 0];
        let expected = if words { said } else { [&said[..14], &[24, 0], &said[16..24]].concat() };
        assert_eq!(heard, Ok(expected));
    }

    fn environment(
        &self,
        announced: &ProcessEnvironment,
        send: &mut SendEnvironment<'_, '_>,
        entries: &[Text<'_>],
    ) {
        let mut sizes = sizes(self.pieces.iter());
        let sent = take(send, &mut sizes, usize::MAX);
        assert_eq!(sent.len(), usize::try_from(announced.incoming_bytes).expect("32 bits"));
        let (heard, outcome) = environment(&sent, sizes, 4 + usize::from(self.tool_room));
        assert_eq!(outcome, Ok(()));
        assert!(heard.iter().map(|entry| entry.as_text()).eq(Environment::from(entries)));
    }
}
