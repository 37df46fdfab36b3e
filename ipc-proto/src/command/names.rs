//! Enums of names.

/// Declares an enum of names.
macro_rules! names {
    ($(#[$meta:meta])* $type:ident: $($variant:ident = $name:literal,)*) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $type {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl $type {
            /// Every variant.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}
pub(super) use names;
