//! Numbers of the runtime whose values have names, and lists of names.

/// Defines a number with a constant and a name for each known value.
macro_rules! named_number {
    (
        $(#[$doc:meta])*
        $type:ident($number:ty) { $($(#[$value_doc:meta])* $value:ident = $id:literal $name:literal,)* }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $type(pub $number);

        impl $type {
            $(
                $(#[$value_doc])*
                pub const $value: Self = Self($id);
            )*

            /// Returns the name that TraceEvent uses, if the number is known.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                Some(match self.0 {
                    $($id => $name,)*
                    _ => return None,
                })
            }
        }

        /// Writes the name, or the number if it is not known.
        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => self.0.fmt(f),
                }
            }
        }
    };
}

/// Makes a list of texts of these names.
macro_rules! name_list {
    ($($name:ident)*) => { [$(stringify!($name)),*] };
}

pub(crate) use {name_list, named_number};
