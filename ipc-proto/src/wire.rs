//! Values and their wire form: integers, strings, arrays, GUIDs.
//!
//! All values are little-endian, packed and unaligned: a string after a `bool` can begin at an odd offset.
//!
//! | type | wire form | bytes |
//! |---|---|---|
//! | `u8` `u16` `u32` `u64` `i32` | little-endian | 1 2 4 8 4 |
//! | `bool` | one byte: 0 is false, any other value is true; 1 is written | 1 |
//! | [`Text`] | `u32` count of UTF-16 units including the NUL, then the units; count 0 is null | 4 + 2 × count |
//! | [`Array`] | `u32` count, then the elements | 4 + … |
//! | [`Guid`] | `u32`, `u16`, `u16` little-endian, then 8 bytes in text order | 16 |
//!
//! Section "Encoding" of the specification. Its phrase "GUID little-endian" could mean one 128-bit little-endian
//! number, but runtimes send .NET's mixed layout.
mod array;
mod convert;
mod decode;
mod digits;
mod encode;
mod error;
mod guid;
mod inspect;
mod int;
mod reader;
pub mod steps;
mod text;
mod utf16;
mod writer;

pub use array::{Array, Iter};
pub use convert::{low_u8, low_u16, low_u32, to_u32, to_u64, to_usize};
pub(crate) use decode::Inspect;
pub use decode::{Decode, decode, decode_prefix};
pub(crate) use digits::hex_digit;
pub use digits::number;
pub use encode::Encode;
pub use error::{BufferTooSmall, WireError, WireErrorKind};
pub use guid::{Guid, ParseGuidError};
pub use inspect::{Part, PartValue, Path, Visitor};
pub use reader::Reader;
#[cfg(feature = "alloc")]
pub use text::TextBuf;
pub use text::{Text, Units};
pub use utf16::Utf16;
pub use writer::{Writer, copy};

/// Declares a struct whose wire form is the wire forms of its fields, in order.
macro_rules! wire_struct {
    ($(#[$meta:meta])* pub struct $name:ident $(<$lt:lifetime>)? {
        $($(#[$field_meta:meta])* $field:ident : $ty:ty),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
        pub struct $name $(<$lt>)? { $($(#[$field_meta])* pub $field: $ty,)* }

        impl $(<$lt>)? $crate::Encode for $name $(<$lt>)? {
            fn encode(&self, _w: &mut $crate::wire::Writer<'_>) { $(self.$field.encode(_w);)* }
        }
        $crate::wire::wire_struct!(@decode [$($lt)?] $name { $($field: $ty,)* });
    };
    (@decode [] $name:ident { $($field:ident: $ty:ty,)* }) => {
        impl<'de> $crate::Decode<'de> for $name {
            $crate::wire::wire_struct!(@body 'de { $($field: $ty,)* });
        }
    };
    (@decode [$lt:lifetime] $name:ident { $($field:ident: $ty:ty,)* }) => {
        impl<$lt> $crate::Decode<$lt> for $name<$lt> {
            $crate::wire::wire_struct!(@body $lt { $($field: $ty,)* });
        }
    };
    (@body $lt:lifetime { $($field:ident: $ty:ty,)* }) => {
        const MIN_LEN: usize = 0usize $(.saturating_add(<$ty as $crate::Decode<$lt>>::MIN_LEN))*;

        #[inline]
        fn decode(_r: &mut $crate::wire::Reader<$lt>) -> Result<Self, $crate::wire::WireError> {
            Ok(Self { $($field: _r.read()?,)* })
        }

        fn inspect(
            _r: &mut $crate::wire::Reader<$lt>,
            _path: &$crate::wire::Path<'_>,
            _visitor: &mut dyn $crate::wire::Visitor,
        ) -> Result<(), $crate::wire::WireError> {
            $(<$ty as $crate::Decode<$lt>>::inspect(
                _r,
                &$crate::wire::Path::Field(_path, stringify!($field)),
                _visitor,
            )?;)*
            Ok(())
        }
    };
}
pub(crate) use wire_struct;

/// Declares an integer newtype with named values. Values without a name can be decoded and encoded, too.
macro_rules! wire_enum {
    ($(#[$meta:meta])* pub struct $name:ident($int:ty) {
        $($(#[$value_meta:meta])* $variant:ident = $value:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
        pub struct $name(pub $int);
        impl $name {
            $($(#[$value_meta])* pub const $variant: Self = Self($value);)*

            /// Returns the name of the value, if the value is one of the constants.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($variant)),)*
                    _ => None,
                }
            }
        }
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!(stringify!($name), "({})"), self.0),
                }
            }
        }
        impl $crate::Encode for $name {
            fn encode(&self, w: &mut $crate::wire::Writer<'_>) { self.0.encode(w); }
        }
        impl<'a> $crate::Decode<'a> for $name {
            const MIN_LEN: usize = <$int as $crate::Decode<'a>>::MIN_LEN;

            #[inline]
            fn decode(r: &mut $crate::wire::Reader<'a>) -> Result<Self, $crate::wire::WireError> { Ok(Self(r.read()?)) }

            fn shown(&self, _: &'a [u8]) -> $crate::wire::PartValue<'a> {
                $crate::wire::PartValue::Number { number: self.0.into(), name: self.name() }
            }
        }
    };
}
pub(crate) use wire_enum;
