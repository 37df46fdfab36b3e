//! The table of the responses that have fields.
//!
//! [`Status`](super::types::Status), the response of commands that return no data, is in `types.rs`. All other code that
//! handles every response uses `for_each_response!`, which is generated from the rows.
use crate::{Guid, Text};

/// Turns each row of the table of responses into a struct with its codec, and all rows together into
/// `for_each_response!`. The table begins with the token `$`, as that of `commands!`.
macro_rules! responses {
    ($dollar:tt $(
        $(#[$meta:meta])*
        $name:ident $(<$lt:lifetime>)? { $($(#[$field_meta:meta])* $field:ident : $ty:ty),* $(,)? }
    )*) => {
        $($crate::wire::wire_struct! {
            $(#[$meta])*
            pub struct $name $(<$lt>)? { $($(#[$field_meta])* $field: $ty,)* }
        })*

        /// Passes the table of the responses that have fields to a macro, as one list of rows: all responses except
        /// [`Status`](crate::types::Status).
        ///
        /// Each row is in brackets, as those of [`for_each_command!`](crate::for_each_command):
        ///
        /// ```text
        /// [NAME: PATH { FIELD: TYPE, … }]
        /// ```
        ///
        /// ```
        /// macro_rules! names {
        ///     ($([$name:ident: $response:ty { $($field:ident: $ty:ty,)* }])*) => {
        ///         [$((stringify!($name), [$(stringify!($field)),*].as_slice())),*]
        ///     };
        /// }
        /// let names: &[(&str, &[&str])] = &ipc_proto::for_each_response!(names);
        /// assert!(names.contains(&("SessionId", &["session_id"])));
        /// ```
        #[macro_export]
        macro_rules! for_each_response {
            ($dollar callback:ident) => {
                $dollar callback! { $([$name: $crate::types::$name $(<$lt>)? { $($field: $ty,)* }])* }
            };
        }
    };
}

responses! {
    $
    /// The id of a session, 8 bytes, for [`StopTracing`](crate::StopTracing).
    ///
    /// The id has no other use. A later session can have the same id.
    ///
    /// ```
    /// use ipc_proto::{StopTracing, types::SessionId};
    ///
    /// let SessionId { session_id } = SessionId { session_id: 7 }; // the answer to CollectTracing2
    /// assert_eq!(StopTracing { session_id }, StopTracing { session_id: 7 });
    /// ```
    SessionId {
        /// The id; not 0.
        session_id: u64,
    }

    /// The announcement of the environment, which follows as a [counted continuation](crate::ReceiveEnvironment).
    ///
    /// ```
    /// use ipc_proto::{ReceiveEnvironment, types::ProcessEnvironment};
    ///
    /// let announced = ProcessEnvironment { incoming_bytes: 1_000_000, future: 0 };
    /// let mut buf = [0; 256]; // for one entry at a time
    /// assert!(ReceiveEnvironment::new(&announced, 1 << 20, &mut buf).is_ok());
    /// assert!(ReceiveEnvironment::new(&announced, 1000, &mut buf).is_err()); // more than the caller allows
    /// # Ok::<(), ipc_proto::ProtocolError>(())
    /// ```
    ProcessEnvironment {
        /// The number of bytes after the message: the `u32` count of entries, then the entries. Can exceed 65,535.
        incoming_bytes: u32,
        /// Reserved; 0.
        future: u16,
    }

    /// The description of a process.
    ///
    /// Erratum: the struct in the specification has the cookie last. Its list of fields, and runtimes, have it second.
    ProcessInfo<'r> {
        /// The process id, in the PID namespace of the process.
        process_id: u64,
        /// The identity of the runtime: a random value for each start.
        runtime_cookie: Guid,
        /// The command line of the process. Windows: the text of `GetCommandLineW`, with arguments quoted. Other systems:
        /// the path of the executable and all arguments, joined by spaces without quotes, so that an argument with a
        /// space looks like two.
        command_line: Text<'r>,
        /// The name of an [`OperatingSystem`](super::types::OperatingSystem).
        os: Text<'r>,
        /// The name of an [`Architecture`](super::types::Architecture).
        arch: Text<'r>,
    }

    /// The description of a process, with its entry point and the runtime's version.
    ProcessInfo2<'r> {
        /// The process id, in the PID namespace of the process.
        process_id: u64,
        /// The identity of the runtime: a random value for each start.
        runtime_cookie: Guid,
        /// The command line of the process.
        command_line: Text<'r>,
        /// As in [`ProcessInfo`].
        os: Text<'r>,
        /// As in [`ProcessInfo`].
        arch: Text<'r>,
        /// The assembly of the entry point. It can be empty while the runtime is suspended at startup.
        managed_entrypoint_assembly_name: Text<'r>,
        /// The runtime's version, as SemVer 2.
        clr_product_version: Text<'r>,
    }

    /// The description of a process, with its entry point, the runtime's version and its platform.
    ///
    /// A later version of this answer can append fields; it does not change the known ones.
    /// [`decode_prefix`](crate::wire::decode_prefix) returns the bytes after the known fields,
    /// [`Message::inspect`](crate::Message::inspect) visits them, and [`Call::finish`](crate::Call::finish) ignores
    /// them. [`InfoStep`](crate::plan::InfoStep) converts the older answers to this type.
    ProcessInfo3<'r> {
        /// The version of this answer, 1 or later.
        version: u32,
        /// The process id, in the PID namespace of the process.
        process_id: u64,
        /// The identity of the runtime: a random value for each start.
        runtime_cookie: Guid,
        /// The command line of the process.
        command_line: Text<'r>,
        /// As in [`ProcessInfo`].
        os: Text<'r>,
        /// As in [`ProcessInfo`].
        arch: Text<'r>,
        /// The assembly of the entry point. It can be empty while the runtime is suspended at startup.
        managed_entrypoint_assembly_name: Text<'r>,
        /// The runtime's version, as SemVer 2.
        clr_product_version: Text<'r>,
        /// The platform: `linux-x64`, `linux-musl-arm64`, `win-x64`, … (erratum: the specification's examples are
        /// spelled differently).
        portable_rid: Text<'r>,
    }
}

/// The texts that the answer to GetProcessInfo lacks are null, and the version of the answer is 0.
impl<'a> From<ProcessInfo<'a>> for ProcessInfo3<'a> {
    fn from(info: ProcessInfo<'a>) -> Self {
        let ProcessInfo { process_id, runtime_cookie, command_line, os, arch } = info;
        Self {
            version: 0,
            process_id,
            runtime_cookie,
            command_line,
            os,
            arch,
            managed_entrypoint_assembly_name: Text::NULL,
            clr_product_version: Text::NULL,
            portable_rid: Text::NULL,
        }
    }
}
/// The platform, which the answer to GetProcessInfo2 lacks, is null, and the version of the answer is 0.
impl<'a> From<ProcessInfo2<'a>> for ProcessInfo3<'a> {
    fn from(info: ProcessInfo2<'a>) -> Self {
        let ProcessInfo2 { process_id, runtime_cookie, command_line, os, arch, .. } = info;
        Self {
            managed_entrypoint_assembly_name: info.managed_entrypoint_assembly_name,
            clr_product_version: info.clr_product_version,
            ..ProcessInfo { process_id, runtime_cookie, command_line, os, arch }.into()
        }
    }
}
