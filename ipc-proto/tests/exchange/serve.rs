//! The server's role: [`Serve`] with bytes that are not a request, and [`Reply`].
use super::*;

use ipc_proto::plan::{Flavour, Runtime};

/// Serves `bytes` from a peer that then closes. Returns the error, the server's refusal, and the number of bytes taken.
fn served(bytes: &[u8]) -> (Result<(), DecodeError>, HResult, usize) {
    let (mut receive, mut send) = ([0; 256], [0; 24]);
    let mut serve = Serve::new(&mut receive, &mut send).unwrap();
    let mut wire = bytes;
    feed(&mut serve, &mut wire, &mut iter::repeat(1)).unwrap();
    let (request, reply) = serve.finish();
    let error = request.err().map(|error| match error {
        RequestError::Decode(error) => error,
        other => panic!("{other}"),
    });
    (error.map_or(Ok(()), Err), refusal(reply), bytes.len() - wire.len())
}

/// Returns the refusal that the reply sends.
fn refusal(mut reply: Reply<'_>) -> HResult {
    let bytes = take(&mut reply, &mut iter::repeat(1), usize::MAX);
    let payload: [u8; 4] = bytes[20..].try_into().unwrap();
    assert_eq!(bytes[..20], message(0xffff, 24, &[]));
    HResult(u32::from_le_bytes(payload))
}

#[test]
fn the_order_is_header_size_payload_magic() {
    let bad = |kind, offset, taken| (Err(decode_error(kind, offset)), HResult::BAD_ENCODING, taken);
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
    let magic = (Err(decode_error(BadMagic, 0)), HResult::UNKNOWN_MAGIC, 28);
    assert_eq!(served(&wrong_magic(28, &[0; 8])), magic);
    assert_eq!(served(&message(0x0201, 20, &[])), bad(UnexpectedEnd, 20, 20));
    assert_eq!(served(&message(0x0201, 257, &[0; 237])), bad(TooLong, 20, 20));

    assert_eq!(served(&message(0x0201, 28, &[0; 99])), (Ok(()), HResult::FAIL, 28));
    assert_eq!(served(&message(0x0400, 256, &[0; 236])), (Ok(()), HResult::FAIL, 256));
    for unknown in [0x0000, 0x02ff, 0x03fe, 0xff00] {
        assert_eq!(served(&message(unknown, 20, &[])), (Ok(()), HResult::UNKNOWN_COMMAND, 20));
    }
    let mut reserved = message(0x0401, 20, &[]);
    reserved[18..20].fill(0xff);
    assert_eq!(served(&reserved), (Ok(()), HResult::FAIL, 20));
}

/// Returns the refusal of a server of the version and kind in `kind`, and whether `kind` is the reason.
fn refused_by(kind: &Runtime, bytes: &[u8]) -> (HResult, bool) {
    let (mut receive, mut send) = ([0; 64], [0; 24]);
    let mut serve = Serve::new(&mut receive, &mut send).unwrap();
    feed(&mut serve, &mut &*bytes, &mut iter::repeat(1)).unwrap();
    let (request, reply) = serve.finish_for(kind);
    let by_kind = matches!(request, Err(RequestError::Refused(_)));
    let sent = refusal(reply);
    assert!(!by_kind || request == Err(RequestError::Refused(sent)));
    (sent, by_kind)
}

#[test]
fn a_server_refuses_by_what_it_is() {
    let of = |version, flavour| Runtime {
        version: Some(version),
        flavour: Some(flavour),
        linux: Some(true),
        suspended: Some(true),
    };
    let (net_9, mono, native) = (of(9, Flavour::CoreClr), of(9, Flavour::Mono), of(9, Flavour::NativeAot));
    let empty = |code| message(code, 20, &[]);
    let text = |code| message(code, 26, &[1, 0, 0, 0, 0, 0]); // an empty text
    let (unknown, not_supported) = ((HResult::UNKNOWN_COMMAND, true), (HResult::NOT_SUPPORTED, true));
    let malformed = (HResult::BAD_ENCODING, false);
    let mut no_magic = empty(0x0207);
    no_magic[0] = b'd';
    for (kind, bytes, expected) in [
        // Commands that are newer than the server, with any payload, or that no version has.
        (net_9, empty(0x0206), unknown),
        (of(7, Flavour::CoreClr), empty(0x0408), unknown),
        (of(7, Flavour::Mono), text(0x0407), unknown),
        (mono, empty(0x0206), unknown),
        (net_9, empty(0x04f0), unknown),
        (Runtime::default(), empty(0x04f0), unknown),
        // Commands that the server's version has, but its kind or system does not have.
        (mono, empty(0x0101), not_supported),
        (mono, empty(0x0302), not_supported),
        (mono, empty(0x03f0), not_supported),
        (native, empty(0x0405), not_supported),
        (Runtime { linux: Some(false), ..net_9 }, empty(0x0406), not_supported),
        // A runtime first decodes the path of a startup hook, then refuses the command, and checks the path last.
        (mono, empty(0x0407), malformed),
        (mono, text(0x0407), not_supported),
        (net_9, text(0x0407), (HResult::INVALID_ARG, false)),
        // A command that the server refuses only while it is suspended.
        (net_9, empty(0x0301), (HResult::NOT_YET_AVAILABLE, true)),
        (Runtime { suspended: None, ..net_9 }, empty(0x0301), malformed),
        // Commands that the server has, and bytes that are not a command.
        (net_9, empty(0x0408), (HResult::FAIL, false)),
        (mono, empty(0x0205), malformed),
        (net_9, message(0x0207, 65, &[0; 45]), malformed), // too large for the server's buffer
        (net_9, no_magic, (HResult::UNKNOWN_MAGIC, false)),
        (net_9, vec![], malformed),
    ] {
        assert_eq!(refused_by(&kind, &bytes), expected, "{kind:?}: {bytes:02x?}");
    }
}

#[test]
fn finished_too_early() {
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
    assert_eq!(code(&message(0x04f0, 21, &[9])), Some(Code(0x04f0)));
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

/// Serves a GetProcessInfo2, whose reply `answer` sets. Returns the sent bytes.
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
fn an_answer_that_is_being_sent_stays() {
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
