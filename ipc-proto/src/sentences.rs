//! Types that display as a fixed sentence.

/// Declares an enum whose variants each display as a fixed sentence, or a struct that displays as a fixed sentence.
macro_rules! sentences {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $sentence:literal,)*
    }) => {
        $(#[$meta])*
        pub enum $name { $($(#[$variant_meta])* $variant,)* }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(match self { $(Self::$variant => $sentence,)* })
            }
        }
    };
    ($(#[$meta:meta])* pub struct $name:ident = $sentence:literal;) => {
        $(#[$meta])*
        pub struct $name;

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str($sentence)
            }
        }
    };
}
pub(crate) use sentences;
