//! The macro `commands!`, which makes all types and functions of the commands from their table.
/// Turns each row of the table into a struct with its codec and its `Command` implementation, and all rows together
/// into [`Request`](crate::Request) and `for_each_command!`.
///
/// `for_each_command!` needs a macro variable of its own. If this macro wrote `$callback`, the compiler would look for
/// a variable of `commands!`. So the table begins with the token `$`, which this macro names `$dollar`:
///
/// ```text
/// ($dollar callback:ident) => { $dollar callback! { $([$code …])* } };     here
/// ($callback:ident) => { $callback! { [0x0101 …] [0x0102 …] … } };         what the compiler reads after the expansion
/// ```
macro_rules! commands {
    // The data that follows the OK answer: the same for every request of a command, or decided by a field of the
    // request.
    (@then $self:ident $then:ident) => { $crate::Continuation::$then };
    (@then $self:ident Decided by $field:ident) => { $self.$field.continuation() };
    // The rules for the values of a command: none, or a function of `check.rs` with some of the fields.
    (@rules $self:ident $place:ident) => {{ let _ = ($self, $place); Ok(()) }};
    (@rules $self:ident $place:ident $rule:ident($($checked:ident),*)) => {
        $crate::command::check::$rule($($self.$checked,)* $place)
    };
    ($dollar:tt $(
        $(#[$meta:meta])*
        $code:literal $name:ident $(<$lt:lifetime>)? / $specification_name:ident since $since:literal
        { $($(#[$field_meta:meta])* $field:ident : $ty:ty),* $(,)? }
        -> $response:ident $(<$response_lt:lifetime>)?, then $then:ident $(by $deciding:ident)?
        $(, checked $rule:ident($($checked:ident),*))?;
    )*) => {
        $(
            $crate::wire::wire_struct! {
                $(#[$meta])*
                #[doc = concat!(
                    "\n\nCode `", stringify!($code), "`, since .NET ", stringify!($since), "; section \"",
                    stringify!($specification_name), "\" of the specification. An OK answer holds a [`",
                    stringify!($response), "`](crate::types::", stringify!($response), ")."
                )]
                pub struct $name $(<$lt>)? { $($(#[$field_meta])* $field: $ty,)* }
            }
            impl $(<$lt>)? $crate::Command for $name $(<$lt>)? {
                const CODE: $crate::Code = $crate::Code($code);
                const NAME: &'static str = stringify!($name);
                const SPECIFICATION_NAME: &'static str = stringify!($specification_name);
                const SINCE: u8 = $since;
                type Response<'r> = $response $(<$response_lt>)?;

                fn continuation(&self) -> $crate::Continuation { commands!(@then self $then $(by $deciding)?) }
                fn check(&self) -> Result<(), $crate::InvalidValue> {
                    $crate::command::check::check(|place| commands!(@rules self place $($rule($($checked),*))?))
                }
            }
        )*

        /// A request of any command, as a server receives it.
        ///
        /// ```
        /// use ipc_proto::{Code, Message, Request};
        /// let request = Message { code: Code(0x04f0), payload: b"?" }.request()?;
        /// assert!(matches!(request, Request::Unknown(message) if message.payload == b"?"));
        /// # Ok::<(), ipc_proto::DecodeError>(())
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Request<'a> {
            $(
                #[doc = concat!("A [`", stringify!($name), "`](crate::", stringify!($name), ").")]
                $name($name $(<$lt>)?),
            )*
            /// A command that is not in the table.
            Unknown($crate::Message<'a>),
        }
        impl<'a> Request<'a> {
            /// Every command, in the order of the codes.
            pub const ALL: &'static [$crate::CommandInfo] = &[$($crate::CommandInfo {
                code: $crate::Code($code),
                name: stringify!($name),
                specification_name: stringify!($specification_name),
                since: $since,
            },)*];

            /// Returns the functions that inspect the payloads of a request and of the OK answer to it.
            pub(crate) fn inspectors<'r>(command: $crate::Code) -> Option<[$crate::wire::Inspect<'r>; 2]>
            where
                'r: 'a,
                'a: 'r,
            {
                match command.0 {
                    $($code => Some([
                        <$name $(<$lt>)? as $crate::Decode<'r>>::inspect,
                        <$response $(<$response_lt>)? as $crate::Decode<'r>>::inspect,
                    ]),)*
                    _ => None,
                }
            }

            /// Returns the code of the command.
            #[must_use]
            pub const fn code(&self) -> $crate::Code {
                match self {
                    $(Self::$name(_) => $crate::Code($code),)*
                    Self::Unknown(message) => message.code,
                }
            }

            /// Returns what follows the OK answer on the same connection; `Nothing` for an unknown command. For
            /// [`UserEvents`](crate::Continuation::UserEvents) a descriptor also precedes the answer.
            #[must_use]
            pub fn continuation(&self) -> $crate::Continuation {
                match self {
                    $(Self::$name(command) => $crate::Command::continuation(command),)*
                    Self::Unknown(_) => $crate::Continuation::Nothing,
                }
            }

            /// Checks the values: see [`Command::check`](crate::Command::check). An unknown command breaks no rule.
            ///
            /// # Errors
            /// The first value that breaks a rule, with its path.
            pub fn check(&self) -> Result<(), $crate::InvalidValue> {
                $crate::command::check::check(|place| match self {
                    $(Self::$name(command) => commands!(@rules command place $($rule($($checked),*))?),)*
                    Self::Unknown(_) => Ok(()),
                })
            }
        }
        /// The response to any command, as a client receives it in an OK answer:
        /// [`Message::response`](crate::Message::response) and
        /// [`UntypedCall::finish_response`](crate::UntypedCall::finish_response) return a `Response`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
        #[non_exhaustive]
        pub enum Response<'r> {
            $(
                #[doc = concat!("The response to [`", stringify!($name), "`](crate::", stringify!($name), ").")]
                $name($response $(<$response_lt>)?),
            )*
            /// The answer to a command that is not in the table.
            Unknown($crate::Message<'r>),
        }
        impl<'r> Response<'r> {
            /// Decodes the payload of an OK answer to the command with this code.
            pub(crate) fn decode(to: $crate::Code, answer: &$crate::Message<'r>) -> Result<Self, $crate::DecodeError> {
                Ok(match to.0 {
                    $($code => Self::$name(answer.decode()?),)*
                    _ => Self::Unknown(*answer),
                })
            }
        }
        /// Writes the payload of the OK answer, without a header.
        impl $crate::Encode for Response<'_> {
            fn encode(&self, w: &mut $crate::wire::Writer<'_>) {
                match self {
                    $(Self::$name(response) => response.encode(w),)*
                    Self::Unknown(answer) => w.bytes(answer.payload),
                }
            }
        }

        /// Makes only requests that decoding can return: an unknown command does not have the code of a known one.
        #[cfg(feature = "arbitrary")]
        impl<'a> arbitrary::Arbitrary<'a> for Request<'a> {
            fn arbitrary(u: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
                let index = u.int_in_range(0..=Self::ALL.len())?;
                let known = Self::ALL.get(index).map(|row| row.code.0);
                $(if known == Some($code) {
                    return Ok(Self::$name(u.arbitrary()?));
                })*
                let message: $crate::Message<'a> = u.arbitrary()?;
                match $crate::CommandInfo::find(message.code) {
                    None => Ok(Self::Unknown(message)),
                    Some(_) => Err(arbitrary::Error::IncorrectFormat),
                }
            }
        }
        /// Writes the payload of the command, without a header.
        impl $crate::Encode for Request<'_> {
            fn encode(&self, w: &mut $crate::wire::Writer<'_>) {
                match self {
                    $(Self::$name(command) => command.encode(w),)*
                    Self::Unknown(message) => w.bytes(message.payload),
                }
            }
        }

        impl $crate::CommandInfo {
            /// Returns the row of the table with this code, if there is one.
            #[must_use]
            pub fn find(code: $crate::Code) -> Option<&'static Self> {
                Request::ALL.iter().find(|row| row.code == code)
            }
        }

        impl<'a> $crate::Message<'a> {
            /// Decodes the payload as the request that the code names. Bytes after the known fields are ignored.
            ///
            /// # Errors
            /// If the payload is malformed. Offsets count from the start of the message.
            ///
            /// ```
            /// use ipc_proto::{Code, Message, Request, StopTracing};
            ///
            /// let message = Message { code: Code(0x0201), payload: &7u64.to_le_bytes() };
            /// assert_eq!(message.request()?, Request::StopTracing(StopTracing { session_id: 7 }));
            /// # Ok::<(), ipc_proto::DecodeError>(())
            /// ```
            pub fn request(&self) -> Result<Request<'a>, $crate::DecodeError> {
                Ok(match self.code.0 {
                    $($code => Request::$name(self.decode()?),)*
                    _ => Request::Unknown(*self),
                })
            }
        }

        /// Passes the table of all commands to a macro, as one list of rows: for code that must handle every command.
        ///
        /// Each row is in brackets:
        ///
        /// ```text
        /// [CODE NAME / SPECIFICATION_NAME since MAJOR_VERSION:
        ///  PATH_OF_THE_REQUEST { FIELD: TYPE, … } -> NAME_OF_THE_RESPONSE: PATH_OF_THE_RESPONSE, then CONTINUATION]
        /// ```
        ///
        /// The paths need no imports. They have the lifetime `'a` in a request and `'r` in a response, which an expansion
        /// that uses them must declare. `SPECIFICATION_NAME` is the specification's name of the command, and
        /// `CONTINUATION` is a variant of [`Continuation`](crate::Continuation), or `Decided` if a field of the request
        /// decides. The types of fields have no paths, because programs for other languages give the same names to types
        /// of their own; in Rust, `use ipc_proto::{Array, Guid, Text, types::*}` resolves them. A macro that needs the
        /// start of a row only matches the rest by `$($rest:tt)*`.
        ///
        /// ```
        /// macro_rules! responses {
        ///     ($([
        ///         $code:literal $name:ident / $specification_name:ident since $since:literal:
        ///         $request:ty { $($field:ident: $ty:ty,)* } -> $response_name:ident: $response:ty, then $then:ident
        ///     ])*) => {
        ///         /// Returns whether the payload is a response to the command.
        ///         fn is_response<'r>(command: u16, payload: &'r [u8]) -> bool {
        ///             match command {
        ///                 $($code => ipc_proto::wire::decode::<$response>(payload).is_ok(),)*
        ///                 _ => false,
        ///             }
        ///         }
        ///     };
        /// }
        /// ipc_proto::for_each_command!(responses);
        ///
        /// assert!(is_response(0x0201, &7u64.to_le_bytes()));
        /// ```
        #[macro_export]
        macro_rules! for_each_command {
            ($dollar callback:ident) => {
                $dollar callback! {
                    $([
                        $code $name / $specification_name since $since:
                        $crate::$name $(<$lt>)? { $($field: $ty,)* }
                        -> $response: $crate::types::$response $(<$response_lt>)?, then $then
                    ])*
                }
            };
        }
    };
}
