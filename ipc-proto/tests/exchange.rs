//! Exchanges at their edges: what each side does about input that is short, late, wrong or too long.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test says what it expects by unwrapping it"
)]
use core::iter;

use ipc_fuzz::wire::{feed, take};
use ipc_proto::types::{
    DumpFlags, DumpType, ProcessEnvironment, ProcessInfo, ProcessInfo2, SessionId, Status,
};
use ipc_proto::{
    Answer, ApplyStartupHook, Array, Call, Code, Command, DecodeError, DecodeErrorKind, EncodeError,
    Exchange, GenerateCoreDump2, GenerateCoreDump3, GetProcessInfo, GetProcessInfo2, Guid, HResult, Message,
    ProtocolError, ReceiveEnvironment, Reply, Request, RequestError, ResumeRuntime, SendEnvironment, Serve,
    ServerError, Step, StopTracing, Text, encode_to_vec,
};

/// A message with any size in its header.
fn message(code: u16, size: u16, payload: &[u8]) -> Vec<u8> {
    let [size, code] = [size.to_le_bytes(), code.to_be_bytes()];
    [&Message::MAGIC[..], &size, &code, &[0, 0], payload].concat()
}

fn decode_error(kind: DecodeErrorKind, offset: usize) -> DecodeError {
    DecodeError { kind, offset }
}

mod call {
    use super::*;

    /// A call whose command is sent.
    fn sent<'b>(command: &impl Command, buf: &'b mut [u8]) -> Call<'b> {
        let mut call = Call::new(command, buf).unwrap();
        let len = Message::HEADER_LEN + command.encoded_len();
        assert_eq!(take(&mut call, &mut iter::empty(), usize::MAX).len(), len);
        call
    }

    /// How a call ends that is answered `bytes` one by one and then closed on, and how many of them it took.
    fn end(command: &impl Command, bytes: &[u8]) -> (Result<(), ProtocolError>, usize) {
        let mut buf = [0; Message::MAX_LEN];
        let mut call = sent(command, &mut buf);
        let mut wire = bytes;
        let outcome = feed(&mut call, &mut wire, &mut iter::repeat(1));
        (outcome, bytes.len() - wire.len())
    }

    #[test]
    fn closed_early() {
        let answer = message(0xff00, 24, &[0; 4]);
        for received in [0, 1, 19, 20, 23] {
            let closed = Err(ProtocolError::Closed { received });
            assert_eq!(end(&ResumeRuntime {}, &answer[..received]), (closed, received));
        }
        assert_eq!(end(&ResumeRuntime {}, &answer), (Ok(()), 24));
    }

    #[test]
    fn given_up_on() {
        let mut buf = [0; 64];
        let call = Call::new(&ResumeRuntime {}, &mut buf).unwrap();
        assert_eq!(call.command(), ResumeRuntime::CODE);
        assert_eq!(call.finish::<Status>(), Err(ProtocolError::Closed { received: 0 }));
    }

    #[test]
    fn given_up_on_before_the_answer_is_whole() {
        let answer = message(0xff00, 24, &[0; 4]);
        let mut buf = [0; 24]; // which it would have filled
        let mut call = sent(&ResumeRuntime {}, &mut buf);
        for len in [20, 2] {
            let Step::Receive(space) = call.step() else { panic!("waits for the answer") };
            space[..len].copy_from_slice(&answer[..len]);
            call.advance(len).unwrap();
        }
        assert_eq!(call.finish::<Status>(), Err(ProtocolError::Closed { received: 22 }));
    }

    #[test]
    fn lent_it_goes_on_all_the_same() {
        let answer = message(0xff00, 24, &[0; 4]);
        let mut buf = [0; 64];
        let mut call = Call::new(&ResumeRuntime {}, &mut buf).unwrap();
        assert_eq!(take(&mut &mut call, &mut iter::repeat(3), usize::MAX).len(), 20);
        assert_eq!(feed(&mut &mut call, &mut &answer[..], &mut iter::repeat(3)), Ok(()));
        assert_eq!(call.finish(), Ok(Answer::Ok(Status::OK)));
    }

    #[test]
    fn a_wrong_magic_is_seen_at_its_first_wrong_byte() {
        for offset in 0..14 {
            let mut answer = message(0xff00, 24, &[0; 4]);
            answer[offset] ^= 0x20;
            let error = decode_error(DecodeErrorKind::BadMagic, offset).into();
            assert_eq!(end(&ResumeRuntime {}, &answer), (Err(error), offset + 1));
        }
    }

    #[test]
    fn sizes() {
        for size in [0, 19] {
            let error = decode_error(DecodeErrorKind::BadSize, 14).into();
            assert_eq!(end(&ResumeRuntime {}, &message(0xff00, size, &[0; 4])), (Err(error), 20));
        }
        let claims_most = message(0xff00, 0xffff, &[0; 100]);
        assert_eq!(end(&ResumeRuntime {}, &claims_most), (Err(ProtocolError::Closed { received: 120 }), 120));
        let most = message(0xff00, 0xffff, &[0; 70_000]);
        assert_eq!(end(&ResumeRuntime {}, &most), (Ok(()), 65_535));
    }

    #[test]
    fn what_is_no_answer_is_seen_in_its_header() {
        for code in [0x0400, 0x0000, 0xff01, 0xfffe, 0xfeff] {
            let error = ProtocolError::Unexpected(Code(code));
            assert_eq!(end(&ResumeRuntime {}, &message(code, 24, &[0; 4])), (Err(error), 20));
        }
    }

    /// What a call for `command` makes of `answer`.
    fn answered<'b, C: Command>(
        command: &C,
        answer: &[u8],
        buf: &'b mut [u8],
    ) -> Result<Answer<'b, C::Response<'b>>, ProtocolError> {
        let mut call = sent(command, buf);
        feed(&mut call, &mut &answer[..], &mut iter::empty()).unwrap();
        call.finish()
    }

    #[test]
    fn an_ok_without_payload_is_success_for_a_status_only() {
        let (ok, mut buf) = (message(0xff00, 20, &[]), [0; 64]);
        assert_eq!(answered(&ResumeRuntime {}, &ok, &mut buf), Ok(Answer::Ok(Status::OK)));
        let error = decode_error(DecodeErrorKind::UnexpectedEnd, 20).into();
        assert_eq!(answered(&StopTracing { session_id: 1 }, &ok, &mut buf), Err(error));
        let half = message(0xff00, 22, &[0; 2]);
        assert_eq!(answered(&ResumeRuntime {}, &half, &mut buf), Err(error));
    }

    #[test]
    fn a_refusal_needs_its_code() {
        let error = decode_error(DecodeErrorKind::UnexpectedEnd, 20).into();
        for payload in [&[][..], &[1, 2, 3]] {
            let size = u16::try_from(20 + payload.len()).unwrap();
            let refusal = message(0xffff, size, payload);
            assert_eq!(answered(&ResumeRuntime {}, &refusal, &mut [0; 64]), Err(error));
        }
    }

    #[test]
    fn bytes_too_few_for_words_are_none() {
        let (three, mut buf) = (
            GenerateCoreDump3 { dump_name: Text::NULL, dump_type: DumpType::FULL, flags: DumpFlags::NONE },
            [0; 64],
        );
        let refusal = message(0xffff, 27, &[0x05, 0x40, 0x00, 0x80, 1, 0, 0]);
        let refused = Answer::Refused(HResult::FAIL.into());
        assert_eq!(answered(&three, &refusal, &mut buf), Ok(refused));
        // Four are a count: null.
        let refusal = message(0xffff, 28, &[0x05, 0x40, 0x00, 0x80, 0, 0, 0, 0]);
        let refused = Answer::Refused(ServerError { hresult: HResult::FAIL, message: Some(Text::NULL) });
        assert_eq!(answered(&three, &refusal, &mut buf), Ok(refused));
    }

    #[test]
    fn only_one_command_has_refusals_with_words() {
        let message = Some(Text::from("no such directory"));
        let error = ServerError { hresult: HResult::FAIL, message };
        let refusal = encode_to_vec(Code::ERROR, &error).unwrap();
        let (dump_name, dump_type, flags) = (Text::from("/x"), DumpType::FULL, DumpFlags::NONE);
        let mut buf = [0; 256];
        let three = GenerateCoreDump3 { dump_name, dump_type, flags };
        assert_eq!(answered(&three, &refusal, &mut buf), Ok(Answer::Refused(error)));
        let two = GenerateCoreDump2 { dump_name, dump_type, flags };
        assert_eq!(answered(&two, &refusal, &mut buf), Ok(Answer::Refused(HResult::FAIL.into())));
    }

    #[test]
    fn a_larger_buffer_takes_over() {
        let info = ProcessInfo {
            process_id: 7,
            runtime_cookie: Guid([3; 16]),
            command_line: Text::from("a rather long command line"),
            os: Text::from("Linux"),
            arch: Text::from("x64"),
        };
        let answer = encode_to_vec(Code::OK, &info).unwrap();
        let too_small = Err(ProtocolError::BufferTooSmall { needed: answer.len() });
        for len in [20, 21, answer.len() - 1] {
            let (mut small, mut large) = (vec![0; len], vec![0; answer.len()]);
            let mut call = sent(&GetProcessInfo {}, &mut small);
            let mut wire = &answer[..];
            assert_eq!(feed(&mut call, &mut wire, &mut iter::empty()), too_small);
            let mut call = call.into_buffer(&mut large);
            assert_eq!(feed(&mut call, &mut wire, &mut iter::repeat(3)), Ok(()));
            assert_eq!(call.finish(), Ok(Answer::Ok(info)));
        }
        let mut small = [0; 32];
        let mut call = sent(&GetProcessInfo {}, &mut small);
        feed(&mut call, &mut &answer[..], &mut iter::empty()).unwrap_err();
        assert_eq!(call.finish::<ProcessInfo<'_>>().map(|_| ()), too_small);
    }

    #[test]
    fn a_buffer_is_too_small_for_the_command() {
        let too_small = |needed| Err(EncodeError::BufferTooSmall { needed });
        let stop = StopTracing { session_id: 1 };
        assert_eq!(Call::new(&stop, &mut [0; 27]).map(|_| ()), too_small(28));
        assert_eq!(Call::new(&stop, &mut []).map(|_| ()), too_small(28));
        let long = "x".repeat(33_000);
        let hook = ApplyStartupHook { startup_hook_path: Text::from(&long[..]) };
        let len = 20 + 4 + 2 * 33_001;
        assert_eq!(Call::new(&hook, &mut [0; 1 << 17]).map(|_| ()), Err(EncodeError::MessageTooLong { len }));
    }

    #[test]
    fn a_peer_that_refuses_before_it_has_read_all() {
        let mut buf = [0; 64];
        let mut call = Call::new(&StopTracing { session_id: 1 }, &mut buf).unwrap();
        assert_eq!(take(&mut call, &mut iter::empty(), 10).len(), 10); // then it closes
        let refusal = encode_to_vec(Code::ERROR, &HResult::BAD_ENCODING).unwrap();
        feed(&mut call, &mut &refusal[..], &mut iter::empty()).unwrap();
        let refused = Answer::Refused(HResult::BAD_ENCODING.into());
        assert_eq!(call.finish::<SessionId>(), Ok(refused));
    }
}

mod serve {
    use super::*;

    /// What a runtime makes of `bytes` when the peer then closes, and what it answers by itself.
    fn served(bytes: &[u8]) -> (Result<(), RequestError>, HResult, usize) {
        let (mut receive, mut send) = ([0; 256], [0; 24]);
        let mut serve = Serve::new(&mut receive, &mut send).unwrap();
        let mut wire = bytes;
        feed(&mut serve, &mut wire, &mut iter::repeat(1)).unwrap();
        let (request, reply) = serve.finish();
        (request.map(|_| ()), refusal(reply), bytes.len() - wire.len())
    }

    /// The refusal that the reply sends.
    fn refusal(mut reply: Reply<'_>) -> HResult {
        let bytes = take(&mut reply, &mut iter::repeat(1), usize::MAX);
        let payload: [u8; 4] = bytes[20..].try_into().unwrap();
        assert_eq!(bytes[..20], message(0xffff, 24, &[]));
        HResult(u32::from_le_bytes(payload))
    }

    #[test]
    fn the_order_is_header_size_payload_magic() {
        let bad =
            |kind, offset, taken| (Err(decode_error(kind, offset).into()), HResult::BAD_ENCODING, taken);
        let wrong_magic = |size, payload| {
            let mut bytes = message(0x0201, size, payload);
            bytes[0] = b'd';
            bytes
        };
        use DecodeErrorKind::{BadMagic, BadSize, TooLong, UnexpectedEnd};
        assert_eq!(served(&[]), bad(UnexpectedEnd, 0, 0));
        assert_eq!(served(&message(0x0201, 28, &[])[..19]), bad(UnexpectedEnd, 19, 19));
        assert_eq!(served(&wrong_magic(28, &[])[..19]), bad(UnexpectedEnd, 19, 19));
        assert_eq!(served(&wrong_magic(19, &[0; 8])), bad(BadSize, 14, 20));
        assert_eq!(served(&message(0x0201, 0, &[0; 8])), bad(BadSize, 14, 20));
        assert_eq!(served(&wrong_magic(28, &[0; 7])), bad(UnexpectedEnd, 27, 27));
        let magic = (Err(decode_error(BadMagic, 0).into()), HResult::UNKNOWN_MAGIC, 28);
        assert_eq!(served(&wrong_magic(28, &[0; 8])), magic);
        assert_eq!(served(&message(0x0201, 20, &[])), bad(UnexpectedEnd, 20, 20));
        assert_eq!(served(&message(0x0201, 257, &[0; 237])), bad(TooLong, 20, 20));

        assert_eq!(served(&message(0x0201, 28, &[0; 99])), (Ok(()), HResult::FAIL, 28));
        assert_eq!(served(&message(0x0400, 256, &[0; 236])), (Ok(()), HResult::FAIL, 256));
        for unknown in [0x0000, 0x02ff, 0x0303, 0xff00] {
            assert_eq!(served(&message(unknown, 20, &[])), (Ok(()), HResult::UNKNOWN_COMMAND, 20));
        }
        let mut reserved = message(0x0401, 20, &[]);
        reserved[18..20].fill(0xff);
        assert_eq!(served(&reserved), (Ok(()), HResult::FAIL, 20));
    }

    #[test]
    fn given_up_on() {
        let (mut receive, mut send) = ([0; 64], [0; 24]);
        let mut serve = Serve::new(&mut receive, &mut send).unwrap();
        let Step::Receive(space) = serve.step() else { panic!("waits for a request") };
        space[..3].copy_from_slice(b"DOT");
        serve.advance(3).unwrap();
        let (request, reply) = serve.finish();
        assert_eq!(request, Err(decode_error(DecodeErrorKind::UnexpectedEnd, 3).into()));
        assert_eq!(refusal(reply), HResult::BAD_ENCODING);
    }

    #[test]
    fn the_code_is_known_whatever_the_payload() {
        let code = |bytes: &[u8]| {
            let (mut receive, mut send) = ([0; 64], [0; 24]);
            let mut serve = Serve::new(&mut receive, &mut send).unwrap();
            assert_eq!(serve.code(), None);
            feed(&mut serve, &mut &bytes[..], &mut iter::empty()).unwrap();
            serve.code()
        };
        assert_eq!(code(&message(0x0499, 21, &[9])), Some(Code(0x0499)));
        assert_eq!(code(&message(0x0203, 21, &[9])), Some(Code(0x0203)));
        assert_eq!(code(&message(0x0203, 21, &[])), None, "cut off");
        let mut wrong_magic = message(0x0203, 20, &[]);
        wrong_magic[3] = b'?';
        assert_eq!(code(&wrong_magic), None);
    }

    #[test]
    fn buffers() {
        let new = |receive, send| Serve::new(&mut vec![0; receive], &mut vec![0; send]).map(|_| ());
        assert_eq!(new(20, 24), Ok(()));
        assert_eq!(new(19, 24), Err(EncodeError::BufferTooSmall { needed: 20 }));
        assert_eq!(new(20, 23), Err(EncodeError::BufferTooSmall { needed: 24 }));
    }

    /// Receives GetProcessInfo2, and has `answer` fill in the reply.
    fn reply(send_len: usize, answer: impl FnOnce(&mut Reply<'_>)) -> Vec<u8> {
        let (mut receive, mut send) = ([0; 64], vec![0; send_len]);
        let mut serve = Serve::new(&mut receive, &mut send).unwrap();
        let asked = message(0x0404, 20, &[]);
        feed(&mut serve, &mut &asked[..], &mut iter::empty()).unwrap();
        let (request, mut reply) = serve.finish();
        assert_eq!(request, Ok(Request::GetProcessInfo2(GetProcessInfo2 {})));
        answer(&mut reply);
        take(&mut reply, &mut iter::empty(), usize::MAX)
    }

    fn info(command_line: &str) -> ProcessInfo2<'_> {
        ProcessInfo2 {
            process_id: 7,
            runtime_cookie: Guid::NIL,
            command_line: Text::from(command_line),
            os: Text::NULL,
            arch: Text::NULL,
            managed_entrypoint_assembly_name: Text::NULL,
            clr_product_version: Text::NULL,
        }
    }

    fn failed() -> Vec<u8> {
        encode_to_vec(Code::ERROR, &HResult::FAIL).unwrap()
    }

    #[test]
    fn the_last_answer_before_the_first_byte_counts() {
        let info = info("x");
        let sent = reply(256, |reply| {
            reply.refuse(HResult::NOT_SUPPORTED).unwrap();
            reply.answer(&GetProcessInfo2 {}, &info).unwrap();
        });
        assert_eq!(sent, encode_to_vec(Code::OK, &info).unwrap());
        assert_eq!(reply(256, |_| {}), failed());
    }

    #[test]
    fn an_answer_of_any_type() {
        let sent = reply(256, |reply| reply.answer_untyped(&15u32).unwrap());
        assert_eq!(sent, message(0xff00, 24, &[15, 0, 0, 0]));
        let info = info("x");
        let sent = reply(256, |reply| reply.answer_untyped(&info).unwrap());
        assert_eq!(sent, encode_to_vec(Code::OK, &info).unwrap());
    }

    #[test]
    fn an_answer_to_another_command() {
        let sent = reply(256, |reply| {
            let outcome = reply.answer(&ResumeRuntime {}, &Status::OK);
            let [request, answer] = [GetProcessInfo2::CODE, ResumeRuntime::CODE];
            assert_eq!(outcome, Err(EncodeError::WrongCommand { request, answer }));
        });
        assert_eq!(sent, failed());
        let sent = reply(256, |reply| {
            reply.refuse(HResult::NOT_SUPPORTED).unwrap();
            reply.answer(&ResumeRuntime {}, &Status::OK).unwrap_err();
        });
        assert_eq!(sent, encode_to_vec(Code::ERROR, &HResult::NOT_SUPPORTED).unwrap());
    }

    #[test]
    fn an_answer_that_does_not_fit() {
        let (long, longest) = ("x".repeat(200), "x".repeat(33_000));
        let sent = reply(256, |reply| {
            let outcome = reply.answer(&GetProcessInfo2 {}, &info(&long));
            let needed = 20 + 8 + 16 + 4 + 2 * 201 + 4 * 4;
            assert_eq!(outcome, Err(EncodeError::BufferTooSmall { needed }));
        });
        assert_eq!(sent, failed());
        let sent = reply(1 << 17, |reply| {
            let outcome = reply.answer(&GetProcessInfo2 {}, &info(&longest));
            let len = 20 + 8 + 16 + 4 + 2 * 33_001 + 4 * 4;
            assert_eq!(outcome, Err(EncodeError::MessageTooLong { len }));
        });
        assert_eq!(sent, failed());
    }

    #[test]
    fn an_answer_that_is_on_its_way_stays() {
        let sent = reply(256, |reply| {
            reply.advance(1).unwrap();
            assert_eq!(reply.refuse(HResult::INVALID_ARG), Err(EncodeError::AlreadySending));
            let error = ServerError { hresult: HResult::INVALID_ARG, message: None };
            assert_eq!(reply.refuse_with(&error), Err(EncodeError::AlreadySending));
            let outcome = reply.answer(&GetProcessInfo2 {}, &info("x"));
            assert_eq!(outcome, Err(EncodeError::AlreadySending));
        });
        assert_eq!(sent, failed()[1..]);
    }

    #[test]
    fn a_peer_that_does_not_read_the_answer() {
        reply(256, |reply| {
            assert_eq!(reply.advance(5), Ok(()));
            assert_eq!(reply.advance(0), Err(ProtocolError::Closed { received: 0 }));
            assert!(matches!(reply.step(), Step::Done));
            assert_eq!(reply.bytes(), []);
        });
    }

    #[test]
    fn a_peer_that_closes_after_the_answer() {
        let (mut receive, mut send) = ([0; 64], [0; 24]);
        let serve = Serve::new(&mut receive, &mut send).unwrap();
        let (_, mut reply) = serve.finish();
        assert_eq!(take(&mut reply, &mut iter::empty(), usize::MAX).len(), 24);
        assert_eq!(reply.advance(0), Ok(()));
    }
}

mod environment {
    use super::*;

    fn announced(incoming_bytes: usize) -> ProcessEnvironment {
        ProcessEnvironment { incoming_bytes: u32::try_from(incoming_bytes).unwrap(), future: 0 }
    }

    /// The entries of `bytes`, which were announced as `len`, through a buffer of `room`.
    fn receive(bytes: &[u8], len: usize, room: usize) -> Result<Vec<String>, ProtocolError> {
        let mut buf = vec![0; room];
        let mut receive = ReceiveEnvironment::new(&announced(len), u32::MAX, &mut buf)?;
        let (mut wire, mut entries) = (bytes, Vec::new());
        while !receive.is_finished() {
            feed(&mut receive, &mut wire, &mut iter::empty())?;
            while let Some(entry) = receive.next_entry()? {
                entries.push(entry.to_string());
            }
            assert!(receive.is_finished() || matches!(receive.step(), Step::Receive(_)), "stands still");
        }
        Ok(entries)
    }

    /// A list that claims `count` entries and has these.
    fn list(count: u32, entries: &[&str]) -> Vec<u8> {
        let texts: Vec<Text<'_>> = entries.iter().map(|entry| Text::from(*entry)).collect();
        let mut bytes = encode_to_vec(Code::OK, &Array::from(&texts[..])).unwrap().split_off(20);
        bytes[..4].copy_from_slice(&count.to_le_bytes());
        bytes
    }

    #[test]
    fn longer_than_any_message() {
        let entries: Vec<String> = (0..3_000).map(|i| format!("NAME_{i}=value of {i}")).collect();
        let texts: Vec<Text<'_>> = entries.iter().map(|entry| Text::from(&entry[..])).collect();
        let mut piece = [0; 1000];
        let mut send = SendEnvironment::new(Array::from(&texts[..]), &mut piece).unwrap();
        let len = usize::try_from(send.announcement().incoming_bytes).unwrap();
        let bytes = take(&mut send, &mut iter::repeat(999), usize::MAX);
        assert_eq!(bytes.len(), len);
        assert!(len > 2 * Message::MAX_LEN);
        assert_eq!(receive(&bytes, len, 64), Ok(entries));
    }

    #[test]
    fn empty() {
        assert_eq!(receive(&[0; 4], 4, 4), Ok(vec![]));
        let mut piece = [0; 1];
        let mut send = SendEnvironment::new(Array::EMPTY, &mut piece).unwrap();
        assert_eq!(send.announcement().incoming_bytes, 4);
        assert_eq!(take(&mut send, &mut iter::empty(), usize::MAX), [0; 4]);
    }

    #[test]
    fn buffers() {
        let bytes = list(2, &["A=b", "LONG=entry"]);
        let too_small = |needed| Err(ProtocolError::BufferTooSmall { needed });
        let no_room = ReceiveEnvironment::new(&announced(4), u32::MAX, &mut [0; 3]).map(|_| ());
        assert_eq!(no_room, Err(ProtocolError::BufferTooSmall { needed: 4 }));
        assert_eq!(receive(&bytes, bytes.len(), 4 + 2 * 11 - 1), too_small(4 + 2 * 11));
        assert_eq!(receive(&bytes, bytes.len(), 4 + 2 * 11).map(|entries| entries.len()), Ok(2));
        let no_room = SendEnvironment::new(Array::EMPTY, &mut []).map(|_| ());
        assert_eq!(no_room, Err(EncodeError::BufferTooSmall { needed: 1 }));
    }

    #[test]
    fn limit() {
        let new = |len, limit| ReceiveEnvironment::new(&announced(len), limit, &mut [0; 8]).map(|_| ());
        assert_eq!(new(1000, 1000), Ok(()));
        assert_eq!(new(1001, 1000), Err(ProtocolError::TooLong { len: 1001, limit: 1000 }));
    }

    #[test]
    fn the_count_lies() {
        let wrong = |kind, offset| Err(decode_error(kind, offset).into());
        for room in [16, 1000] {
            let more = list(3, &["A=b", "C"]);
            assert_eq!(receive(&more, more.len(), room), wrong(DecodeErrorKind::UnexpectedEnd, 24));
            let most = list(u32::MAX, &["A=b", "C"]);
            assert_eq!(receive(&most, most.len(), room), wrong(DecodeErrorKind::UnexpectedEnd, 24));
            let fewer = list(1, &["A=b", "C"]);
            assert_eq!(receive(&fewer, fewer.len(), room), wrong(DecodeErrorKind::TrailingBytes, 16));
            let none = list(0, &["A=b"]);
            assert_eq!(receive(&none, none.len(), room), wrong(DecodeErrorKind::TrailingBytes, 4));
        }
        assert_eq!(receive(&[], 0, 16), wrong(DecodeErrorKind::UnexpectedEnd, 0));
        assert_eq!(receive(&[9; 3], 3, 16), wrong(DecodeErrorKind::UnexpectedEnd, 0));
    }

    #[test]
    fn bytes_behind_the_last_entry_are_not_the_end() {
        let bytes = list(1, &["A=b", "C"]);
        for room in [12, 100] {
            let mut buf = vec![0; room];
            let mut receive = ReceiveEnvironment::new(&announced(bytes.len()), u32::MAX, &mut buf).unwrap();
            let mut wire = &bytes[..];
            feed(&mut receive, &mut wire, &mut iter::empty()).unwrap();
            if room == 12 {
                assert_eq!(receive.next_entry(), Ok(None)); // makes room for the entry and no more
                feed(&mut receive, &mut wire, &mut iter::repeat(4)).unwrap();
            }
            assert_eq!(receive.next_entry().unwrap().unwrap(), "A=b");
            assert!(!receive.is_finished(), "{room}");
        }
    }

    #[test]
    fn an_entry_lies() {
        let mut bytes = list(2, &["A=b", "C"]);
        bytes[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        let too_long = decode_error(DecodeErrorKind::UnexpectedEnd, 4).into();
        assert_eq!(receive(&bytes, bytes.len(), 64), Err(too_long));
        bytes[4..8].copy_from_slice(&3u32.to_le_bytes());
        let unterminated = decode_error(DecodeErrorKind::Unterminated, 12).into();
        assert_eq!(receive(&bytes, bytes.len(), 64), Err(unterminated));
        bytes[12..14].copy_from_slice(&0x4100u16.to_le_bytes()); // whose low byte is 0
        assert_eq!(receive(&bytes, bytes.len(), 64), Err(unterminated));
    }

    #[test]
    fn cut_off() {
        let bytes = list(2, &["A=b", "C"]);
        for received in 0..bytes.len() {
            let closed = Err(ProtocolError::Closed { received });
            assert_eq!(receive(&bytes[..received], bytes.len(), 12), closed);
        }
    }

    #[test]
    fn a_peer_that_stops_reading() {
        let mut piece = [0; 3];
        let mut send = SendEnvironment::new(Array::EMPTY, &mut piece).unwrap();
        assert_eq!(take(&mut send, &mut iter::repeat(2), 2), [0; 2]); // then closes
        send.advance(0).unwrap();
        assert!(matches!(send.step(), Step::Done), "goes on");
    }

    #[test]
    fn a_larger_buffer_takes_over() {
        let bytes = list(3, &["A=b", "LONG=entry", "C"]);
        for cut in 4..12 {
            let (mut small, mut large) = (vec![0; cut + 8], [0; 64]);
            let mut receive = ReceiveEnvironment::new(&announced(bytes.len()), u32::MAX, &mut small).unwrap();
            let (mut wire, mut entries) = (&bytes[..], Vec::new());
            let error = loop {
                feed(&mut receive, &mut wire, &mut iter::repeat(cut)).unwrap();
                match receive.next_entry() {
                    Ok(entry) => entries.extend(entry.map(|entry| entry.to_string())),
                    Err(error) => break error,
                }
            };
            assert_eq!(error, ProtocolError::BufferTooSmall { needed: 4 + 2 * 11 });
            let mut receive = receive.into_buffer(&mut large);
            while !receive.is_finished() {
                feed(&mut receive, &mut wire, &mut iter::repeat(cut)).unwrap();
                entries.extend(receive.next_entry().unwrap().map(|entry| entry.to_string()));
            }
            assert_eq!(entries, ["A=b", "LONG=entry", "C"], "{cut}");
        }
    }

    #[test]
    fn a_peer_that_closes_behind_the_last_entry() {
        let bytes = list(1, &["A=b"]);
        let mut buf = [0; 64];
        let mut receive = ReceiveEnvironment::new(&announced(bytes.len()), u32::MAX, &mut buf).unwrap();
        feed(&mut receive, &mut &bytes[..], &mut iter::empty()).unwrap();
        assert_eq!(receive.advance(0), Ok(()));
        assert_eq!(receive.next_entry().unwrap().unwrap(), "A=b");
    }

    #[test]
    fn a_caller_that_miscounts() {
        let bytes = list(2, &["A=b", "C"]);
        let mut buf = [0; 12];
        let mut receive = ReceiveEnvironment::new(&announced(bytes.len()), u32::MAX, &mut buf).unwrap();
        let Step::Receive(space) = receive.step() else { panic!("waits for entries") };
        space.copy_from_slice(&bytes[..12]);
        receive.advance(1000).unwrap(); // 12 is what was lent
        assert_eq!(receive.next_entry(), Ok(None));
        let mut wire = &bytes[12..];
        feed(&mut receive, &mut wire, &mut iter::empty()).unwrap();
        assert_eq!(receive.next_entry().unwrap().unwrap(), "A=b");
    }
}
