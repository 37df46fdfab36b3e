/// Turns the table into a struct and a `Command` impl a row, and into `Request` over all rows.
macro_rules! commands {
    ($(
        $(#[$meta:meta])*
        $code:literal $name:ident $(<$lt:lifetime>)? / $specification_name:ident since $since:literal
        { $($(#[$field_meta:meta])* $field:ident : $ty:ty),* $(,)? }
        -> $response:ident $(<$response_lt:lifetime>)?, then $then:ident;
    )*) => {
        $(
            $crate::wire::wire_struct! {
                $(#[$meta])*
                #[doc = concat!(
                    "\n\n`", stringify!($code), "`, since .NET ", stringify!($since), "; section \"",
                    stringify!($specification_name), "\" of the specification. An OK answer holds [`",
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

                fn continuation(&self) -> $crate::Continuation { commands!(@then self $then) }
            }
        )*

        /// Any command, as a runtime receives it.
        ///
        /// ```
        /// use ipc_proto::{Code, Message, Request};
        /// let request = Message { code: Code(0x0499), payload: b"?" }.request()?;
        /// assert!(matches!(request, Request::Unknown(message) if message.payload == b"?"));
        /// # Ok::<(), ipc_proto::DecodeError>(())
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
        #[non_exhaustive]
        pub enum Request<'a> {
            $(
                #[doc = concat!("[`", stringify!($name), "`](crate::", stringify!($name), ").")]
                $name($name $(<$lt>)?),
            )*
            /// A command that is not in the table.
            Unknown($crate::Message<'a>),
        }
        impl<'a> Request<'a> {
            /// Every command, in the order of their codes.
            pub const ALL: &'static [$crate::CommandInfo] = &[$($crate::CommandInfo {
                code: $crate::Code($code),
                name: stringify!($name),
                specification_name: stringify!($specification_name),
                since: $since,
                response: stringify!($response),
            },)*];

            /// What the message asks; bytes behind the known fields are ignored.
            pub(crate) fn decode(message: $crate::Message<'a>) -> Result<Self, $crate::DecodeError> {
                Ok(match message.code.0 {
                    $($code => Self::$name(message.decode()?),)*
                    _ => Self::Unknown(message),
                })
            }

            /// Shows the parts of a request's payload.
            pub(crate) fn inspect(
                code: $crate::Code,
                r: &mut $crate::wire::Reader<'a>,
                see: &mut $crate::wire::See<'_>,
            ) -> Result<(), $crate::DecodeError> {
                match code.0 {
                    $($code => <$name $(<$lt>)? as $crate::Decode<'_>>::inspect(r, &$crate::wire::Path::Root, see),)*
                    _ => Ok(()),
                }
            }

            /// Shows the parts of the payload of an OK answer to a command.
            pub(crate) fn inspect_response<'r>(
                command: $crate::Code,
                r: &mut $crate::wire::Reader<'r>,
                see: &mut $crate::wire::See<'_>,
            ) -> Result<(), $crate::DecodeError> {
                match command.0 {
                    $($code => <$response $(<$response_lt>)? as $crate::Decode<'_>>::inspect(
                        r,
                        &$crate::wire::Path::Root,
                        see,
                    ),)*
                    _ => Ok(()),
                }
            }

            /// The command's set and id.
            #[must_use]
            pub const fn code(&self) -> $crate::Code {
                match self {
                    $(Self::$name(_) => $crate::Code($code),)*
                    Self::Unknown(message) => message.code,
                }
            }

            /// What follows the OK answer on the same connection, and for
            /// [`UserEvents`]($crate::Continuation::UserEvents) what comes before it; nothing for an unknown command.
            #[must_use]
            pub fn continuation(&self) -> $crate::Continuation {
                match self {
                    $(Self::$name(command) => $crate::Command::continuation(command),)*
                    Self::Unknown(_) => $crate::Continuation::Nothing,
                }
            }
        }
        /// The payload of the command.
        impl $crate::Encode for Request<'_> {
            fn encode(&self, w: &mut $crate::wire::Writer<'_>) {
                match self {
                    $(Self::$name(command) => command.encode(w),)*
                    Self::Unknown(message) => w.bytes(message.payload),
                }
            }
        }
    };
    // What follows the answer: always the same, or what a field says.
    (@then $self:ident Nothing) => { $crate::Continuation::Nothing };
    (@then $self:ident Counted) => { $crate::Continuation::Counted };
    (@then $self:ident Stream) => { $crate::Continuation::Stream };
    (@then $self:ident $field:ident) => { $self.$field.continuation() };
}
