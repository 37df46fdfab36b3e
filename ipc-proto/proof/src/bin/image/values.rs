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
    ($($name:ident $(<$lt:lifetime>)? { $($field:ident)* })*) => {$(
        impl $(<$lt>)? Input for $name $(<$lt>)? {
            fn input() -> Self {
                Self { $($field: Input::input()),* }
            }
        }
    )*};
}
structs! {
    SessionId { session_id }
    ProcessEnvironment { incoming_bytes future }
    StreamingSession<'a> { buffer_mb format rundown_keyword stackwalk providers }
    StreamingSession6<'a> { buffer_mb format rundown_keyword stackwalk providers session_buffer_mode }
    UserEventsSession<'a> { rundown_keyword providers }
    ProcessInfo3<'a> {
        version process_id runtime_cookie command_line os arch managed_entrypoint_assembly_name
        clr_product_version portable_rid
    }
}

/// Reads the fields of every kind of process information, so that the code is in the image only once.
#[inline(never)]
fn process_info() -> ProcessInfo3<'static> {
    Input::input()
}

impl Input for ProcessInfo<'_> {
    fn input() -> Self {
        let ProcessInfo3 { process_id, runtime_cookie, command_line, os, arch, .. } = process_info();
        Self { process_id, runtime_cookie, command_line, os, arch }
    }
}
impl Input for ProcessInfo2<'_> {
    fn input() -> Self {
        let ProcessInfo3 {
            process_id,
            runtime_cookie,
            command_line,
            os,
            arch,
            managed_entrypoint_assembly_name,
            clr_product_version,
            ..
        } = process_info();
        Self {
            process_id,
            runtime_cookie,
            command_line,
            os,
            arch,
            managed_entrypoint_assembly_name,
            clr_product_version,
        }
    }
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
impl Output for SessionId {
    fn output(&self) {
        write_number(self.session_id as u32);
    }
}
impl Output for ProcessEnvironment {
    fn output(&self) {
        write_number(self.incoming_bytes);
    }
}
impl Output for ProcessInfo<'_> {
    fn output(&self) {
        write_texts(&[self.command_line, self.os, self.arch]);
    }
}
impl Output for ProcessInfo2<'_> {
    fn output(&self) {
        write_texts(&[self.command_line, self.os, self.arch, self.clr_product_version]);
    }
}
impl Output for ProcessInfo3<'_> {
    fn output(&self) {
        write_texts(&[self.command_line, self.os, self.arch, self.clr_product_version, self.portable_rid]);
    }
}

#[inline(never)]
pub(crate) fn write_texts(texts: &[Text<'_>]) {
    texts.iter().for_each(|text| text.units().for_each(|unit| write_number(unit.into())));
}
