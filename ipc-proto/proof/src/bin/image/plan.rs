//! Plans a trace, a dump or process information, and encodes every command of the plan.
use ipc_proto::encode;
use ipc_proto::plan::{InfoConfig, PlanStep};

use crate::register::{number, storage, write_bytes, write_number};
use crate::wishes::{dump, runtime, trace};

pub fn run() {
    let runtime = runtime();
    match number() {
        0 => steps(trace().first_step(&runtime)),
        1 => steps(dump().first_step(&runtime)),
        _ => steps(InfoConfig.first_step(&runtime)),
    }
}

fn steps<S: PlanStep + Clone>(first: S) {
    for step in first.steps() {
        write_number(step.check().is_ok().into());
        step.lost_features().iter().for_each(|_| write_number(1));
        if let Ok(bytes) = encode(step.code(), &step, storage()) {
            write_bytes(bytes);
        }
    }
}
