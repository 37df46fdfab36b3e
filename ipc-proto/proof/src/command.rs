//! The functions of all commands, in both roles, and of the plans.
use core::fmt::Display;

use ipc_proto::plan::{
    self, DumpStep, Hazard, LostFeature, LostFeatures, Obstacle, Runtime, TraceStep, TraceWishes,
};
use ipc_proto::types::DumpFlags;
use ipc_proto::*;

use crate::wire::value;
use crate::{Address, each, proves};

/// Returns the functions of a command, except its codec.
pub(crate) const fn command<'a, C: Command + Decode<'a>>() -> [Address; 5] {
    [
        Address(<C as Command>::continuation as *const ()),
        Address(<C as Command>::check as *const ()),
        Address(Call::<C>::new as *const ()),
        Address(Call::<C>::finish as *const ()),
        Address(Reply::answer::<C> as *const ()),
    ]
}

/// The functions of all commands.
struct Commands<'a>(core::marker::PhantomData<&'a ()>);

macro_rules! commands {
    ($([
        $code:literal $name:ident $(<$a:lifetime>)? / $specification_name:ident since $since:literal
        { $($field:ident: $ty:ty,)* }
        -> $response:ident $(<$r:lifetime>)?, then $then:ident
    ])*) => {
        impl<'a> Commands<'a> {
            const FUNCTIONS: &'static [&'static [Address]] = &[$(&command::<$name $(<$a>)?>()),*];
            const CODEC: &'static [&'static [Address]] = &[$(&value::<$name $(<$a>)?>()),*];
        }
    };
}
ipc_proto::for_each_command!(commands);

#[unsafe(no_mangle)]
pub static COMMANDS: &[&[Address]] = Commands::FUNCTIONS;
#[unsafe(no_mangle)]
pub static COMMANDS_CODEC: &[&[Address]] = Commands::CODEC;

proves! { REQUEST:
    Request::code, Request::continuation, Request::check, Request::into_checked, <Request<'_> as Encode>::encode, <Request<'_> as Encode>::encoded_len,
    CommandInfo::find,
}

proves! { PLAN:
    trace, dump, process_info, plan::obstacle, plan::refusal, plan::hazard, losses, LostFeatures::is_empty,
    LostFeatures::contains, <TraceWishes as Default>::default,
    <Hazard as Display>::fmt, <LostFeature as Display>::fmt, <Obstacle as Display>::fmt,
}

fn trace(wishes: TraceWishes, runtime: &Runtime, visit: &mut dyn FnMut(TraceStep)) {
    each(plan::trace(wishes, runtime), visit);
}

fn dump(flags: DumpFlags, runtime: &Runtime, visit: &mut dyn FnMut(DumpStep)) {
    each(plan::dump(flags, runtime), visit);
}

fn process_info(runtime: &Runtime, visit: &mut dyn FnMut(Code)) {
    each(plan::process_info(runtime), visit);
}

fn losses(lost: LostFeatures, visit: &mut dyn FnMut(LostFeature)) {
    each(lost.iter(), visit);
}
