//! Input and output of values: the parts of requests and responses.
use ipc_proto::types::*;
use ipc_proto::{Array, Guid, HResult, Text};

use crate::register::{number, storage, text, write_number};

/// A value that is read from the register.
pub(crate) trait Input {
    fn input() -> Self;
}

/// Implements [`Input`] for newtypes of a `u32`.
macro_rules! numbers {
    ($($name:ident)*) => {$(
        impl Input for $name {
            fn input() -> Self {
                Self(number())
            }
        }
    )*};
}
numbers! { DumpType DumpFlags Format PerfMapType SessionBufferMode HResult }

/// Implements [`Input`] by an expression.
macro_rules! inputs {
    ($($($name:ty),+ = $value:expr;)*) => {$($(
        impl Input for $name {
            fn input() -> Self {
                $value
            }
        }
    )+)*};
}
inputs! {
    Status = Self(Input::input());
    u16 = number() as Self;
    u32 = number();
    u64 = number().into();
    bool = number() > 0;
    ClientData<'_> = Self(storage());
    SessionConfig<'_>, SessionConfig6<'_> =
        if number() == 0 { Self::Streaming(Input::input()) } else { Self::UserEvents(Input::input()) };
}

impl Input for Guid {
    #[inline(never)]
    fn input() -> Self {
        let mut guid = Self::NIL;
        guid.0.iter_mut().for_each(|byte| *byte = number() as u8);
        guid
    }
}
impl Input for Text<'_> {
    #[inline(never)]
    fn input() -> Self {
        text().into()
    }
}
impl<T: 'static> Input for Array<'_, T> {
    fn input() -> Self {
        (&*storage()).into()
    }
}

/// Implements [`Input`] for structs, field by field.
macro_rules! structs {
    ($($name:ident { $($field:ident)* })*) => {$(
        impl Input for $name<'_> {
            fn input() -> Self {
                Self { $($field: Input::input()),* }
            }
        }
    )*};
}
structs! {
    StreamingSession { buffer_mb format rundown_keyword stackwalk providers }
    StreamingSession6 { buffer_mb format rundown_keyword stackwalk providers session_buffer_mode }
    UserEventsSession { rundown_keyword providers }
}

/// A response that is written to the register.
pub(crate) trait Output {
    fn output(&self);
}

impl Output for Status {
    fn output(&self) {
        write_number(self.0.0);
    }
}

/// A field of a response, as a number that depends on it.
trait Field {
    fn number(&self) -> u32;
}

/// Implements [`Field`] for integers.
macro_rules! integers {
    ($($name:ident)*) => {$(
        impl Field for $name {
            fn number(&self) -> u32 {
                *self as u32
            }
        }
    )*};
}
integers! { u16 u32 u64 }

impl Field for Guid {
    fn number(&self) -> u32 {
        self.0[0].into()
    }
}
impl Field for Text<'_> {
    fn number(&self) -> u32 {
        self.as_wire().map_or(0, |bytes| bytes.len() as u32)
    }
}

/// Implements [`Input`] and [`Output`] for responses, field by field.
macro_rules! responses {
    ($([$name:ident: $response:ty { $($field:ident: $ty:ty,)* }])*) => {$(
        impl<'r> Input for $response {
            fn input() -> Self {
                Self { $($field: Input::input()),* }
            }
        }
        impl<'r> Output for $response {
            fn output(&self) {
                write_number(0 $(^ self.$field.number())*);
            }
        }
    )*};
}
ipc_proto::for_each_response!(responses);

#[inline(never)]
pub(crate) fn write_texts(texts: &[Text<'_>]) {
    texts.iter().for_each(|text| text.units().for_each(|unit| write_number(unit.into())));
}
