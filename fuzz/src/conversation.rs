//! The property of a client and a server: they understand each other.
use arbitrary::{Arbitrary, Unstructured};
use ipc_proto::types::{EnvironmentEntries, ProcessEnvironment};
use ipc_proto::wire::{Writer, to_usize};
use ipc_proto::{
    Answer, Array, Call, Code, Command, Continuation, Encode, EncodeError, HResult, InvalidValue, Message,
    ProtocolError, Request, RequestError, SendEnvironment, Serve, ServerError, Text, encode_to_vec,
};

use crate::split::{Bytes, environment};
use crate::wire::{feed, sizes, take};

/// A client and a server understand each other: whatever the request, the answer, the buffers and the pieces are, and
/// when a side closes too early, the client receives exactly what the server sent.
pub fn conversation(bytes: &[u8]) {
    let _ = converse(&mut Unstructured::new(bytes));
}

fn converse(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let scene: Scene<'_> = u.arbitrary()?;
    let request: Request<'_> = u.arbitrary()?;
    if let Request::GetProcessEnvironment(command) = request {
        let entries: Vec<Text<'_>> = u.arbitrary()?;
        let mut piece = vec![0xa5; usize::from(scene.client_room) + 1];
        let mut send = SendEnvironment::new(Array::from(&entries[..]), &mut piece).expect("room");
        let announced = send.announcement();
        scene.play(&command, request, &announced);
        scene.environment(&announced, &mut send, &entries);
        return Ok(());
    }
    /// Answers each command with a value of its own response type.
    macro_rules! play {
        ($([$code:literal $command:ident $($rest:tt)*])*) => {
            match request {
                $(Request::$command(command) => scene.play(&command, request, &u.arbitrary()?),)*
                Request::Unknown(message) => scene.play(
                    &Private(message.payload),
                    Request::Unknown(Message { code: Private::CODE, ..message }),
                    &Bytes(u.arbitrary()?),
                ),
                other => panic!("{other:?} is not in the table"),
            }
        };
    }
    ipc_proto::for_each_command!(play);
    Ok(())
}

/// A command that is not in the table.
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

/// A conversation, without the request and the response.
#[derive(Debug, Arbitrary)]
struct Scene<'a> {
    reaction: Reaction<'a>,
    /// Room in the buffers beyond the minimum: of the client, and of the server for request and answer. `None` is
    /// enough for every message.
    client_room: u8,
    receive_room: Option<u8>,
    send_room: Option<u8>,
    /// The number of bytes after which a side closes.
    client_closes: Option<u8>,
    server_closes: Option<u8>,
    pieces: &'a [u8],
}

/// The server's reaction to a valid request.
#[derive(Debug, Arbitrary)]
enum Reaction<'a> {
    Answer,
    Refuse(HResult),
    RefuseWith(ServerError<'a>),
    Nothing,
}

impl Scene<'_> {
    fn play<C: Command>(&self, command: &C, request: Request<'_>, response: &C::Response<'_>) {
        let mut sizes = sizes(self.pieces.iter());
        let len = Message::HEADER_LEN + command.encoded_len();
        let mut buf = vec![0xa5; len + usize::from(self.client_room)];
        if len > Message::MAX_LEN {
            let refused = Call::new(command, &mut buf).map(|_| ());
            return assert_eq!(refused, Err(EncodeError::MessageTooLong { len }));
        }
        let too_small = Call::new(command, &mut buf[..len - 1]).map(|_| ());
        assert_eq!(too_small, Err(EncodeError::BufferTooSmall { needed: len }));
        let mut call = Call::new(command, &mut buf).expect("it fits");
        let request_bytes = take(&mut call, &mut sizes, self.client_closes.map_or(usize::MAX, Into::into));

        let receive_len =
            self.receive_room.map_or(Message::MAX_LEN, |room| Message::HEADER_LEN + usize::from(room));
        let send_len = self.send_room.map_or(Message::MAX_LEN, |room| 24 + usize::from(room));
        let (mut receive, mut send) = (vec![0xa5; receive_len], vec![0xa5; send_len]);
        let mut serve = Serve::new(&mut receive, &mut send).expect("room for a header and a refusal");
        assert_eq!(feed(&mut serve, &mut &request_bytes[..], &mut sizes), Ok(()));
        let (received, mut reply) = serve.finish();
        let whole = request_bytes.len() == len && len <= receive_len;
        let invalid = request.check().err();
        let expected = whole.then_some(match invalid {
            None => Ok(request),
            Some(InvalidValue { violation, place }) => {
                Err(RequestError::Violation { request, violation, place })
            }
        });
        match expected {
            Some(expected) => assert_eq!(received, expected),
            None => assert!(matches!(received, Err(RequestError::Decode(_)))),
        }

        let refusal = |hresult| encode_to_vec(Code::ERROR, &hresult).expect("24 bytes");
        let fitting = |message: Result<Vec<u8>, EncodeError>| message.ok().filter(|m| m.len() <= send_len);
        let (outcome, sent) = match &self.reaction {
            _ if !whole => (Ok(()), Some(refusal(HResult::BAD_ENCODING))),
            Reaction::Answer => (reply.answer(command, response), fitting(encode_to_vec(Code::OK, response))),
            Reaction::Refuse(hresult) => (reply.refuse(*hresult), Some(refusal(*hresult))),
            Reaction::RefuseWith(error) => {
                (reply.refuse_with(error), fitting(encode_to_vec(Code::ERROR, error)))
            }
            Reaction::Nothing => {
                let unknown = matches!(request, Request::Unknown(_));
                let by_default = if unknown { HResult::UNKNOWN_COMMAND } else { HResult::FAIL };
                (Ok(()), Some(refusal(invalid.map_or(by_default, HResult::from))))
            }
        };
        assert_eq!(outcome.is_ok(), sent.is_some());
        let sent = sent.unwrap_or_else(|| refusal(HResult::FAIL));
        let answered = take(&mut reply, &mut sizes, self.server_closes.map_or(usize::MAX, Into::into));
        assert_eq!(answered, sent[..answered.len()]);

        let mut wire = &answered[..];
        if let Err(ProtocolError::BufferTooSmall { needed }) = feed(&mut call, &mut wire, &mut sizes) {
            assert_eq!(needed, sent.len());
            let suspended = call.suspend();
            assert!(suspended.resume(&mut buf).is_err());
            buf.resize(needed, 0xa5);
            call = suspended.resume(&mut buf).expect("it is large enough");
            let _ = feed(&mut call, &mut wire, &mut sizes); // `finish` returns the same error
        }
        assert_eq!(wire, []);
        let decoded = match call.finish() {
            Ok(Answer::Ok(response)) => encode_to_vec(Code::OK, &response),
            Ok(Answer::Refused(error)) => encode_to_vec(Code::ERROR, &error),
            Err(error) => {
                assert_eq!(error, ProtocolError::Closed { received: answered.len() });
                return assert!(answered.len() < sent.len());
            }
        };
        // The message of a refusal is decoded for `GenerateCoreDump3` only.
        let has_message = C::NAME == "GenerateCoreDump3" || sent[16..18] == [0xff, 0];
        let expected = if has_message { sent } else { [&sent[..14], &[24, 0], &sent[16..24]].concat() };
        assert_eq!(decoded, Ok(expected));
    }

    fn environment(
        &self,
        announced: &ProcessEnvironment,
        send: &mut SendEnvironment<'_, '_>,
        entries: &[Text<'_>],
    ) {
        let mut sizes = sizes(self.pieces.iter());
        let sent = take(send, &mut sizes, usize::MAX);
        assert_eq!(sent.len(), to_usize(announced.incoming_bytes));
        let (received, outcome) = environment(&sent, sizes, 4 + usize::from(self.client_room));
        assert_eq!(outcome, Ok(()));
        assert!(received.iter().map(|entry| entry.as_text()).eq(EnvironmentEntries::from(entries)));
    }
}
