//! Carries out the plan of a trace, a dump or process information: connects, sends each command, and reads the answer.
use ipc_proto::Answer;
use ipc_proto::plan::{Fallback, FallbackStep, InfoConfig, PlanStep};

use crate::register::{number, receive, storage, write_bytes, write_number};
use crate::values::{Output, write_texts};
use crate::wishes::{dump, runtime, trace};

pub fn run() {
    let runtime = runtime();
    match number() {
        0 => carry_out(trace().first_step(&runtime)),
        1 => carry_out(dump().first_step(&runtime)),
        _ => carry_out(InfoConfig.first_step(&runtime)),
    }
}

fn carry_out<S: PlanStep>(first: S)
where
    for<'r> S::Response<'r>: Output,
{
    let mut buf: &mut [u8] = storage();
    let mut fallback = Fallback::new(first, number().into());
    loop {
        match fallback.step(buf) {
            FallbackStep::Connect if number() == 0 => fallback.busy(number().into()),
            FallbackStep::Connect => fallback.connected(),
            FallbackStep::Wait => fallback.tick(number().into()),
            FallbackStep::Send(bytes) => {
                let n = bytes.len();
                write_bytes(bytes);
                fallback.advance(n, buf);
            }
            FallbackStep::Receive(space) => {
                let n = receive(space);
                fallback.advance(n, buf);
            }
            FallbackStep::Grow { needed } => {
                write_number(needed as u32);
                let larger = storage();
                larger.iter_mut().zip(&*buf).for_each(|(to, from)| *to = *from);
                buf = larger;
            }
            FallbackStep::Done => break,
        }
        write_number(fallback.until().is_some().into());
    }
    match fallback.finish(buf) {
        Ok(Answer::Ok(response)) => response.output(),
        Ok(Answer::Refused(error)) => {
            write_number(error.hresult.0);
            write_texts(error.message.as_slice());
        }
        Err(_) => write_number(0),
    }
}
