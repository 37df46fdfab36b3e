//! The functions of all commands, for clients and servers, and the functions of [`Request`].
use ipc_proto::*;

use crate::wire::value;
use crate::{Address, proves};

/// Returns the functions of a command, except its codec.
pub(crate) const fn command<'a, C: Command + Decode<'a>>() -> [Address; 8] {
    [
        Address(ipc_proto::encode_command::<C> as *const ()),
        Address(<C as Command>::continuation as *const ()),
        Address(<C as Command>::check as *const ()),
        Address(<&C as Command>::continuation as *const ()),
        Address(<&C as Command>::check as *const ()),
        Address(Call::<C>::new as *const ()),
        Address(Call::<C>::finish as *const ()),
        Address(Reply::answer::<C> as *const ()),
    ]
}

/// The functions of all commands.
struct Commands<'a>(core::marker::PhantomData<&'a ()>);

macro_rules! commands {
    ($([
        $code:literal $name:ident / $specification_name:ident since $since:literal:
        $request:ty { $($field:ident: $ty:ty,)* }
        -> $response_name:ident: $response:ty, then $then:ident
    ])*) => {
        impl<'a> Commands<'a> {
            const FUNCTIONS: &'static [&'static [Address]] = &[$(&command::<$request>()),*];
            const CODEC: &'static [&'static [Address]] = &[$(&value::<$request>()),*];
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
    CommandInfo::find, Message::response, <Response<'_> as Encode>::encode, <Response<'_> as Encode>::encoded_len,
}
