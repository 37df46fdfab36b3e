//! Every command, whichever way it goes, and the plans.
use core::fmt::Display;

use ipc_proto::plan::{self, DumpStep, Hazard, Loss, Lost, Obstacle, Runtime, TraceStep, TraceWishes};
use ipc_proto::types::DumpFlags;
use ipc_proto::*;

use crate::wire::value;
use crate::{Address, each, proves, proves_each};

/// What every command has beside its wire form.
pub(crate) const fn command<C: Command + Decode<'static>>() -> [Address; 4] {
    [
        Address(<C as Command>::continuation as *const ()),
        Address(Call::new::<C> as *const ()),
        Address(Call::finish::<C::Response<'static>> as *const ()),
        Address(Reply::answer::<C> as *const ()),
    ]
}

macro_rules! commands {
    ($($command:ty),* $(,)?) => {
        proves_each! { COMMANDS: command, $($command),* }
        proves_each! { COMMANDS_WIRE: value, $($command),* }
    };
}
commands! {
    GenerateCoreDump<'_>, GenerateCoreDump2<'_>, GenerateCoreDump3<'_>, StopTracing, CollectTracing<'_>,
    CollectTracing2<'_>, CollectTracing3<'_>, CollectTracing4<'_>, CollectTracing5<'_>, CollectTracing6<'_>,
    AttachProfiler<'_>, StartupProfiler<'_>, GetProcessInfo, ResumeRuntime, GetProcessEnvironment,
    SetEnvironmentVariable<'_>, GetProcessInfo2, EnablePerfMap, DisablePerfMap, ApplyStartupHook<'_>,
    GetProcessInfo3,
}

proves! { REQUEST:
    Request::code, Request::continuation, Request::check, <Request<'_> as Encode>::encode, <Request<'_> as Encode>::encoded_len,
    CommandInfo::find,
}

proves! { PLAN:
    trace, dump, process_info, plan::obstacle, plan::refusal, plan::hazard, losses, Lost::is_empty,
    Lost::contains, <TraceWishes as Default>::default,
    <Hazard as Display>::fmt, <Loss as Display>::fmt, <Obstacle as Display>::fmt,
}

fn trace(wishes: TraceWishes, runtime: &Runtime, see: &mut dyn FnMut(TraceStep)) {
    each(plan::trace(wishes, runtime), see);
}

fn dump(flags: DumpFlags, runtime: &Runtime, see: &mut dyn FnMut(DumpStep)) {
    each(plan::dump(flags, runtime), see);
}

fn process_info(runtime: &Runtime, see: &mut dyn FnMut(Code)) {
    each(plan::process_info(runtime), see);
}

fn losses(lost: Lost, see: &mut dyn FnMut(Loss)) {
    each(lost.iter(), see);
}
