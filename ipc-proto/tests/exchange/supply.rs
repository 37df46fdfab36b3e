//! Bytes that the caller owns, in pieces of any size.
use super::*;

#[test]
fn pieces_are_taken_up_to_the_end_of_the_exchange() {
    let request = message(0x0401, 20, b"");
    for size in 1..=30 {
        let (mut receive, mut send) = ([0; 64], [0; 64]);
        let mut serve = Serve::new(&mut receive, &mut send).unwrap();
        let bytes = [&request[..], b"and more"].concat();
        let taken: usize = bytes.chunks(size).map(|piece| serve.supply(piece)).sum();
        assert_eq!(taken, 20, "pieces of {size}");
        assert_eq!(serve.finish().0, Ok(Request::ResumeRuntime(ResumeRuntime {})));
    }
}

#[test]
fn nothing_is_taken_before_the_command_was_sent() {
    let mut buf = [0; 24];
    let mut call = Call::new(&ResumeRuntime {}, &mut buf).unwrap();
    let answer = encode_to_vec(Code::OK, &Status::OK).unwrap();
    assert_eq!(call.supply(&answer), 0);
    call.advance(20).unwrap();
    assert_eq!((call.supply(b""), call.supply(&answer)), (0, 24));
    assert_eq!(call.finish(), Ok(Answer::Ok(Status::OK)));
}

#[test]
fn an_answer_that_is_too_long_continues_in_a_larger_buffer() {
    let answer = message(0xff00, 30, b"0123456789");
    let (mut small, mut large) = ([0; 24], [0; 64]);
    let mut call = Call::new(&ResumeRuntime {}, &mut small).unwrap();
    call.advance(20).unwrap();
    let taken = call.supply(&answer);
    assert_eq!((taken, call.supply(&answer[taken..])), (20, 4), "the rest of the buffer");
    let suspended = call.suspend();
    large[..24].copy_from_slice(&small);
    let mut call = suspended.resume(&mut large).unwrap();
    assert_eq!(call.supply(&answer[24..]), 6);
    assert_eq!(call.received(), 30);
}

#[test]
fn an_error_ends_the_exchange() {
    let mut receive = ReceiveAdvertise::new();
    assert_eq!(receive.supply(b"GET / HTTP/1.1 and more than a frame has"), 34);
    assert_eq!(receive.supply(b"ADVR"), 0);
    assert!(matches!(receive.finish(), Err(ProtocolError::Decode(_))));
}
