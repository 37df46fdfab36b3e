//! The functions of all commands, for clients and servers, and the functions of [`Request`].
use ipc_proto::*;

use crate::wire::value;
use crate::{Address, addresses, proves};

/// Returns the functions of a command, except the codecs of its request and its response.
pub(crate) const fn command<'a, C: Command + Decode<'a>>() -> [Address; 8] {
    addresses! {
        ipc_proto::encode_command::<C>, <C as Command>::continuation, <C as Command>::check,
        <&C as Command>::continuation, <&C as Command>::check, Call::<C>::new, Call::<C>::finish,
        Reply::answer::<C>,
    }
}

/// The functions of all commands.
struct Commands<'a, 'r>(core::marker::PhantomData<(&'a (), &'r ())>);

macro_rules! commands {
    ($([
        $code:literal $name:ident / $specification_name:ident since $since:literal:
        $request:ty { $($field:ident: $ty:ty,)* }
        -> $response_name:ident: $response:ty, then $then:ident
    ])*) => {
        impl<'a, 'r> Commands<'a, 'r> {
            const FUNCTIONS: &'static [&'static [Address]] = &[$(&command::<$request>()),*];
            const CODEC: &'static [&'static [Address]] = &[$(&value::<$request>(), &value::<$response>()),*];
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
