//! A device that answers over a serial line: `no_std`, fixed buffers, any `embedded_io::{Read, Write}`.
//!
//! `cargo run -p ipc-proto --example embedded`
//!
//! A serial line has no connections: commands follow one another on the line, and silence separates them. If no byte
//! arrives for some time, reading fails with an error of kind `TimedOut`, as in drivers with a timeout. A receiver then
//! discards the bytes that it has read, half a message or noise, and waits for the next message.
#![no_std]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "an example is short"
)]

/// The code of both ends: the loop that drives every exchange, and the wait for silence.
mod link {
    use embedded_io::{Error, ErrorKind, Read, Write};
    use ipc_proto::{EncodeError, Exchange, ProtocolError, Step};

    #[derive(Debug)]
    #[allow(dead_code, reason = "shown by Debug")]
    pub(crate) enum Failure {
        Line(ErrorKind),
        Protocol(ProtocolError),
        Encode(EncodeError),
    }

    pub(crate) fn drive(exchange: &mut impl Exchange, line: &mut (impl Read + Write)) -> Result<(), Failure> {
        loop {
            let n = match exchange.step() {
                Step::Send(bytes) => line.write(bytes).map_err(|e| Failure::Line(e.kind()))?,
                Step::Receive(space) => read(line, space)?,
                Step::Done => return line.flush().map_err(|e| Failure::Line(e.kind())),
            };
            exchange.advance(n).map_err(Failure::Protocol)?;
        }
    }

    /// Reads some bytes. A line has no end of its data, so 0 bytes mean that the line is disconnected.
    fn read(line: &mut impl Read, space: &mut [u8]) -> Result<usize, Failure> {
        match line.read(space) {
            Ok(0) => Err(Failure::Line(ErrorKind::NotConnected)),
            Ok(n) => Ok(n),
            Err(e) => Err(Failure::Line(e.kind())),
        }
    }

    /// Discards bytes until none arrive.
    pub(crate) fn await_silence(line: &mut impl Read) -> Result<(), Failure> {
        loop {
            match read(line, &mut [0; 16]) {
                Ok(_) => {}
                Err(Failure::Line(ErrorKind::TimedOut)) => return Ok(()),
                Err(failure) => return Err(failure),
            }
        }
    }
}

/// The device: a runtime that knows two commands.
mod device {
    use embedded_io::{ErrorKind, Read, Write};
    use ipc_proto::types::{ProcessInfo, Status};
    use ipc_proto::{HResult, Request, RequestError, Serve};

    use crate::link::{Failure, await_silence, drive};

    pub(crate) struct Device<'a> {
        pub(crate) info: ProcessInfo<'a>,
        pub(crate) suspended: bool,
    }

    impl Device<'_> {
        /// Serves one command after the other, until the line fails.
        pub(crate) fn run(&mut self, line: &mut (impl Read + Write)) -> Failure {
            loop {
                match self.serve(line) {
                    // The request is answered; or no request, or only half of one, arrived before the timeout.
                    Ok(()) | Err(Failure::Line(ErrorKind::TimedOut)) => {}
                    Err(failure) => return failure,
                }
            }
        }

        fn serve(&mut self, line: &mut (impl Read + Write)) -> Result<(), Failure> {
            // The two commands have no payload. A request or an answer that does not fit is refused, not cut off.
            let (mut receive, mut send) = ([0; 32], [0; 256]);
            let mut serve = Serve::new(&mut receive, &mut send).map_err(Failure::Encode)?;
            drive(&mut serve, line)?;
            let (request, mut reply) = serve.finish();
            match request {
                Ok(Request::GetProcessInfo(get)) => reply.answer(&get, &self.info),
                Ok(Request::ResumeRuntime(resume)) => {
                    self.suspended = false;
                    reply.answer(&resume, &Status::OK)
                }
                Ok(_) => reply.refuse(HResult::UNKNOWN_COMMAND),
                Err(error) => {
                    if let RequestError::Decode(_) = error {
                        await_silence(line)?; // the end of the malformed request is unknown
                    }
                    Ok(()) // the reply is a refusal already
                }
            }
            .map_err(Failure::Encode)?;
            drive(&mut reply, line)
        }
    }
}

/// The other end: a tool, which can also be a device with little memory.
mod tool {
    use embedded_io::{Read, Write};
    use ipc_proto::{Answer, Call, Command};

    use crate::link::{Failure, drive};

    pub(crate) fn call<'b, C: Command>(
        command: &C,
        line: &mut (impl Read + Write),
        buf: &'b mut [u8],
    ) -> Result<Answer<'b, C::Response<'b>>, Failure> {
        let mut call = Call::new(command, buf).map_err(Failure::Encode)?;
        drive(&mut call, line)?;
        call.finish().map_err(Failure::Protocol)
    }
}

/// A serial line for this example. It moves 16 bytes at a time, and its clock advances only when both ends wait.
mod line {
    extern crate std;
    use core::time::Duration;
    use embedded_io::{ErrorKind, ErrorType, Read, Write};
    use std::collections::VecDeque;
    use std::sync::{Arc, Condvar, Mutex};

    const FIFO: usize = 16;

    pub(crate) struct End {
        shared: Arc<(Mutex<Line>, Condvar)>,
        me: usize,
        /// The longest wait of a read, in milliseconds.
        timeout: u64,
    }

    #[derive(Default)]
    struct Line {
        now: u64,
        /// For each end: the bytes that it can read, the deadline of its wait, and whether the end was dropped.
        bytes: [VecDeque<u8>; 2],
        waits: [Option<u64>; 2],
        gone: [bool; 2],
    }

    /// Returns both ends of a line. `timeouts` are the longest waits of their reads, in milliseconds.
    pub(crate) fn connect(timeouts: [u64; 2]) -> [End; 2] {
        let shared = Arc::new((Mutex::default(), Condvar::new()));
        [0, 1].map(|me| End { shared: Arc::clone(&shared), me, timeout: timeouts[me] })
    }

    impl ErrorType for End {
        type Error = ErrorKind;
    }

    impl Read for End {
        fn read(&mut self, buf: &mut [u8]) -> Result<usize, ErrorKind> {
            let (Self { me, timeout, .. }, (line, changed)) = (&*self, &*self.shared);
            let (me, other) = (*me, 1 - *me);
            let mut line = line.lock().expect("no thread panics");
            let until = line.now + timeout;
            loop {
                let n = buf.len().min(FIFO).min(line.bytes[me].len());
                let others = line.waits[other].filter(|_| line.bytes[other].is_empty());
                if n > 0 {
                    line.waits[me] = None;
                    buf.iter_mut().zip(line.bytes[me].drain(..n)).for_each(|(to, byte)| *to = byte);
                    return Ok(n);
                } else if line.gone[other] {
                    return Err(ErrorKind::NotConnected);
                } else if others.is_some_and(|others| until <= others) {
                    line.now = until;
                    line.waits[me] = None;
                    return Err(ErrorKind::TimedOut);
                }
                line.waits[me] = Some(until);
                changed.notify_all();
                let (woken, late) =
                    changed.wait_timeout(line, Duration::from_secs(10)).expect("no thread panics");
                assert!(!late.timed_out(), "the other end hangs");
                line = woken;
            }
        }
    }

    impl Write for End {
        fn write(&mut self, buf: &[u8]) -> Result<usize, ErrorKind> {
            let (line, changed) = &*self.shared;
            let n = buf.len().min(FIFO);
            line.lock().expect("no thread panics").bytes[1 - self.me].extend(buf.iter().take(n));
            changed.notify_all();
            Ok(n)
        }

        fn flush(&mut self) -> Result<(), ErrorKind> {
            Ok(())
        }
    }

    impl Drop for End {
        fn drop(&mut self) {
            let (line, changed) = &*self.shared;
            if let Ok(mut line) = line.lock() {
                line.gone[self.me] = true;
            }
            changed.notify_all();
        }
    }
}

fn main() {
    extern crate std;
    use embedded_io::{ErrorKind, Write};
    use ipc_proto::types::ProcessInfo;
    use ipc_proto::{Answer, GetProcessEnvironment, GetProcessInfo, Guid, HResult, ResumeRuntime};

    use crate::link::Failure;

    let info = ProcessInfo {
        process_id: 1,
        runtime_cookie: Guid(*b"of the one board"),
        command_line: "firmware".into(),
        os: "Unknown".into(),
        arch: "arm32".into(),
    };
    let mut device = device::Device { info, suspended: true };
    let [mut far, mut line] = line::connect([20, 1000]);

    std::thread::scope(|scope| {
        let device = &mut device;
        let ran = scope.spawn(move || device.run(&mut far));
        let mut buf = [0; 256];

        let answer = tool::call(&GetProcessInfo {}, &mut line, &mut buf).expect("it answers");
        assert_eq!(answer, Answer::Ok(info));
        let answer = tool::call(&GetProcessEnvironment {}, &mut line, &mut buf).expect("it answers");
        assert_eq!(answer, Answer::Refused(HResult::UNKNOWN_COMMAND.into()));

        // The device reads noise as half a header. It discards the noise after a silence; the tool waits as long.
        line.write_all(b"noise").expect("it takes it");
        link::await_silence(&mut line).expect("noise has no answer");
        // Without a silence, the noise corrupts the next command. The device refuses it, and answers the following one.
        line.write_all(b"noise").expect("it takes it");
        let answer = tool::call(&ResumeRuntime {}, &mut line, &mut buf).expect("it answers");
        assert_eq!(answer, Answer::Refused(HResult::BAD_ENCODING.into()));
        let answer = tool::call(&ResumeRuntime {}, &mut line, &mut buf).expect("it answers");
        assert!(matches!(answer, Answer::Ok(_)));

        drop(line);
        assert!(matches!(ran.join(), Ok(Failure::Line(ErrorKind::NotConnected))));
    });
    assert!(!device.suspended);
    std::println!("{} on {} was asked, and resumed", info.command_line, info.arch);
}
