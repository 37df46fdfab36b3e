//! The client's role: [`Call`] with answers that are incomplete, malformed, unexpected or too long.
use super::*;
use ipc_proto::UntypedCall;

/// Creates a call and sends its command.
fn sent<'b, C: Command>(command: &C, buf: &'b mut [u8]) -> Call<'b, C> {
    let mut call = Call::new(command, buf).unwrap();
    let len = Message::HEADER_LEN + command.encoded_len();
    assert_eq!(take(&mut call, &mut iter::empty(), usize::MAX).len(), len);
    call
}

/// Feeds `bytes` one by one to a call and closes the connection; returns the result and the number of bytes taken.
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

/// A call sends the bytes that are in the buffer already, if these bytes are exactly one message.
#[test]
fn encoded_before() {
    let request = message(0x0401, 24, b"rest");
    let error = |kind, offset| Err(DecodeError { kind, offset });
    let mut buf = [0; 30];
    buf[..24].copy_from_slice(&request);
    let mut outcome = |len| UntypedCall::encoded(len, &mut buf).map(|call| call.command());
    assert_eq!(outcome(0), error(DecodeErrorKind::UnexpectedEnd, 0));
    assert_eq!(outcome(23), error(DecodeErrorKind::UnexpectedEnd, 23));
    assert_eq!(outcome(24), Ok(ResumeRuntime::CODE));
    assert_eq!(outcome(25), error(DecodeErrorKind::TrailingBytes, 24));
    assert_eq!(outcome(31), error(DecodeErrorKind::UnexpectedEnd, 30));
    let mut call = UntypedCall::encoded(24, &mut buf).unwrap();
    assert_eq!(take(&mut call, &mut iter::repeat(7), usize::MAX), request);
    let answer = message(0xff00, 24, &[0; 4]);
    assert_eq!(feed(&mut call, &mut &answer[..], &mut iter::repeat(3)), Ok(()));
    assert_eq!(call.finish_as::<Status>(), Ok(Answer::Ok(Status::OK)));
    buf[0] = b'd';
    let error = UntypedCall::encoded(24, &mut buf).map(|_| ()).unwrap_err();
    assert_eq!(error, DecodeError { kind: DecodeErrorKind::BadMagic, offset: 0 });
}

#[test]
fn finished_too_early() {
    let mut buf = [0; 64];
    let call = Call::new(&ResumeRuntime {}, &mut buf).unwrap();
    assert_eq!(call.command(), ResumeRuntime::CODE);
    assert_eq!(call.finish(), Err(ProtocolError::Closed { received: 0 }));
}

#[test]
fn finished_before_the_answer_is_complete() {
    let answer = message(0xff00, 24, &[0; 4]);
    let mut buf = [0; 24]; // the size of the whole answer
    let mut call = sent(&ResumeRuntime {}, &mut buf);
    for len in [20, 2] {
        let Step::Receive(space) = call.step() else { panic!("waits for the answer") };
        space[..len].copy_from_slice(&answer[..len]);
        call.advance(len).unwrap();
    }
    assert_eq!(call.finish(), Err(ProtocolError::Closed { received: 22 }));
}

#[test]
fn borrowed_exchange_is_driven_alike() {
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
fn another_message_is_detected_in_its_header() {
    for code in [0x0400, 0x0000, 0xff01, 0xfffe, 0xfeff] {
        let error = ProtocolError::Unexpected(Code(code));
        assert_eq!(end(&ResumeRuntime {}, &message(code, 24, &[0; 4])), (Err(error), 20));
    }
}

/// Returns the result of a call of `command` that receives `answer`.
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
    // Four bytes after the code are a count. A count of 0 is a null text.
    let refusal = message(0xffff, 28, &[0x05, 0x40, 0x00, 0x80, 0, 0, 0, 0]);
    let refused = Answer::Refused(ServerError { hresult: HResult::FAIL, message: Some(Text::NULL) });
    assert_eq!(answered(&three, &refusal, &mut buf), Ok(refused));
}

#[test]
fn only_one_command_has_refusals_with_a_message() {
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
        let mut buf = vec![0; len];
        let mut call = sent(&GetProcessInfo {}, &mut buf);
        let mut wire = &answer[..];
        assert_eq!(feed(&mut call, &mut wire, &mut iter::empty()), too_small);
        let suspended = call.suspend();
        assert_eq!(suspended.resume(&mut buf).map(|_| ()), too_small, "not larger");
        buf.resize(answer.len(), 0xa5);
        let mut call = suspended.resume(&mut buf).unwrap();
        assert_eq!(feed(&mut call, &mut wire, &mut iter::repeat(3)), Ok(()));
        assert_eq!(call.finish(), Ok(Answer::Ok(info)));
    }
    let mut small = [0; 32];
    let mut call = sent(&GetProcessInfo {}, &mut small);
    feed(&mut call, &mut &answer[..], &mut iter::empty()).unwrap_err();
    assert_eq!(call.finish().map(|_| ()), too_small);
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
    assert_eq!(take(&mut call, &mut iter::empty(), 10).len(), 10); // then the peer closes
    let refusal = encode_to_vec(Code::ERROR, &HResult::BAD_ENCODING).unwrap();
    feed(&mut call, &mut &refusal[..], &mut iter::empty()).unwrap();
    let refused = Answer::Refused(HResult::BAD_ENCODING.into());
    assert_eq!(call.finish(), Ok(refused));
}
