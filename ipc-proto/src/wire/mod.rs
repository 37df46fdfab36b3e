//! Values and their wire form: integers, strings, arrays, GUIDs.
//!
//! Everything is little-endian, packed and unaligned: a string may begin at an odd offset behind a `bool`.
//!
//! | type | wire form | bytes |
//! |---|---|---|
//! | `u8` `u16` `u32` `u64` `i32` | little-endian | 1 2 4 8 4 |
//! | `bool` | one byte, 0 is false, anything else true, 1 is written | 1 |
//! | [`Text`] | `u32` count of UTF-16 units with the NUL, then the units; count 0 is null | 4 + 2 × count |
//! | [`Array`] | `u32` count, then the elements | 4 + … |
//! | [`Guid`] | `u32`, `u16`, `u16` little-endian, then 8 bytes in text order | 16 |
//!
//! The specification describes these under "Encoding". Its words "GUID little-endian" could be read as one 128-bit
//! little-endian number; what travels is .NET's own mixed layout.
//!
//! ```
//! use ipc_proto::wire::{Reader, Text, decode_prefix};
//!
//! let bytes = [2, 0, 0, 0, b'h', 0, 0, 0, 0xff];
//! let (text, rest) = decode_prefix::<Text<'_>>(&bytes)?;
//! assert_eq!(text, "h");
//! assert_eq!(rest, [0xff]);
//! # Ok::<(), ipc_proto::DecodeError>(())
//! ```
mod array;
mod digits;
mod guid;
mod inspect;
mod int;
mod reader;
mod text;
mod writer;

pub use array::{Array, Iter};
pub(crate) use digits::{hex_digit, number};
pub use guid::{Guid, ParseGuidError};
pub use inspect::{Part, Path, See, Value};
pub use reader::Reader;
#[cfg(feature = "alloc")]
pub use text::TextBuf;
pub use text::{Text, Units};
pub use writer::Writer;
pub(crate) use writer::copy;

use crate::DecodeError;

/// A value with a wire form.
///
/// ```
/// use ipc_proto::{Encode, Text};
/// assert_eq!(Text::from("abc").encoded_len(), 4 + 2 * 4);
/// assert_eq!(Text::NULL.encoded_len(), 4);
/// ```
pub trait Encode {
    /// Appends the wire form to `w`. Never fails: `w` counts what does not fit.
    fn encode(&self, w: &mut Writer<'_>);

    /// How many bytes the wire form takes.
    fn encoded_len(&self) -> usize {
        let mut w = Writer::new(&mut []);
        self.encode(&mut w);
        w.len()
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    fn encode(&self, w: &mut Writer<'_>) {
        (**self).encode(w);
    }
}

/// A value that can be read back from its wire form, borrowing from it.
///
/// Decoding is about layout only: a value that no runtime would accept, 0 providers say, decodes.
pub trait Decode<'a>: Sized {
    /// The fewest bytes that any value takes; an [`Array`] checks its count against it.
    const MIN_LEN: usize;

    /// Reads one value.
    ///
    /// # Errors
    /// If the bytes are no such value. The reader's position is then of no use.
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// What the value is when it is shown as a whole, whose bytes these are.
    fn shown(&self, bytes: &'a [u8]) -> Value<'a> {
        Value::Bytes(bytes)
    }

    /// Reads one value and shows its parts: just itself, unless it knows better.
    ///
    /// # Errors
    /// As [`decode`](Self::decode), but what is good before the error has been shown.
    fn inspect(r: &mut Reader<'a>, path: &Path<'_>, see: &mut See<'_>) -> Result<(), DecodeError> {
        r.show(*path, see, Self::decode, Self::shown).map(|_| ())
    }
}

/// Decodes one value from the front of `bytes`; what follows it is ignored, as runtimes do.
///
/// # Errors
/// If the bytes are no such value; offsets count from the start of `bytes`.
///
/// ```
/// assert_eq!(ipc_proto::wire::decode::<u32>(&[1, 0, 0, 0, 99])?, 1);
/// # Ok::<(), ipc_proto::DecodeError>(())
/// ```
pub fn decode<'a, T: Decode<'a>>(bytes: &'a [u8]) -> Result<T, DecodeError> {
    T::decode(&mut Reader::new(bytes))
}

/// Decodes one value from the front of `bytes` and hands back what follows it.
///
/// # Errors
/// As [`decode`].
///
/// ```
/// assert_eq!(ipc_proto::wire::decode_prefix::<u16>(&[1, 0, 99])?, (1, &[99][..]));
/// # Ok::<(), ipc_proto::DecodeError>(())
/// ```
pub fn decode_prefix<'a, T: Decode<'a>>(bytes: &'a [u8]) -> Result<(T, &'a [u8]), DecodeError> {
    let mut r = Reader::new(bytes);
    Ok((r.read()?, r.rest()))
}

/// Declares a struct whose wire form is its fields in order.
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
        fn decode(_r: &mut $crate::wire::Reader<$lt>) -> Result<Self, $crate::DecodeError> {
            Ok(Self { $($field: _r.read()?,)* })
        }

        fn inspect(
            _r: &mut $crate::wire::Reader<$lt>,
            _path: &$crate::wire::Path<'_>,
            _see: &mut $crate::wire::See<'_>,
        ) -> Result<(), $crate::DecodeError> {
            $(<$ty as $crate::Decode<$lt>>::inspect(
                _r,
                &$crate::wire::Path::Field(_path, stringify!($field)),
                _see,
            )?;)*
            Ok(())
        }
    };
}
pub(crate) use wire_struct;

/// Declares an integer newtype with named values, so that a value without a name survives a round trip.
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

            /// The name of the value, if it has one here.
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
            fn decode(r: &mut $crate::wire::Reader<'a>) -> Result<Self, $crate::DecodeError> { Ok(Self(r.read()?)) }

            fn shown(&self, _: &'a [u8]) -> $crate::wire::Value<'a> {
                $crate::wire::Value::Number { number: self.0.into(), name: self.name() }
            }
        }
    };
}
pub(crate) use wire_enum;
