//! The answers that describe a process: [`ProcessInfo`], [`ProcessInfo2`] and [`ProcessInfo3`].
use crate::wire::wire_struct;
use crate::{Guid, Text};

wire_struct! {
    /// The description of a process.
    ///
    /// Erratum: the struct in the specification has the cookie last. Its list of fields, and runtimes, have it second.
    pub struct ProcessInfo<'a> {
        /// The process id, in the PID namespace of the process.
        process_id: u64,
        /// The identity of the runtime: a random value for each start.
        runtime_cookie: Guid,
        /// The command line of the process. Windows: the text of `GetCommandLineW`, with arguments quoted. Other systems:
        /// the path of the executable and all arguments, joined by spaces without quotes, so that an argument with a
        /// space looks like two.
        command_line: Text<'a>,
        /// The name of an [`OperatingSystem`](super::types::OperatingSystem).
        os: Text<'a>,
        /// The name of an [`Architecture`](super::types::Architecture).
        arch: Text<'a>,
    }
}

wire_struct! {
    /// The description of a process, with its entry point and the runtime's version.
    pub struct ProcessInfo2<'a> {
        /// The process id, in the PID namespace of the process.
        process_id: u64,
        /// The identity of the runtime: a random value for each start.
        runtime_cookie: Guid,
        /// The command line of the process.
        command_line: Text<'a>,
        /// As in [`ProcessInfo`].
        os: Text<'a>,
        /// As in [`ProcessInfo`].
        arch: Text<'a>,
        /// The assembly of the entry point. It can be empty while the runtime is suspended at startup.
        managed_entrypoint_assembly_name: Text<'a>,
        /// The runtime's version, as SemVer 2.
        clr_product_version: Text<'a>,
    }
}

wire_struct! {
    /// The description of a process, with its entry point, the runtime's version and its platform.
    ///
    /// A later version of this answer can append fields; it does not change the known ones.
    /// [`decode_prefix`](crate::wire::decode_prefix) returns the bytes after the known fields,
    /// [`Message::inspect`](crate::Message::inspect) visits them, and [`Call::finish`](crate::Call::finish) ignores
    /// them. [`InfoStep`](crate::plan::InfoStep) converts the older answers to this type.
    pub struct ProcessInfo3<'a> {
        /// The version of this answer, 1 or later.
        version: u32,
        /// The process id, in the PID namespace of the process.
        process_id: u64,
        /// The identity of the runtime: a random value for each start.
        runtime_cookie: Guid,
        /// The command line of the process.
        command_line: Text<'a>,
        /// As in [`ProcessInfo`].
        os: Text<'a>,
        /// As in [`ProcessInfo`].
        arch: Text<'a>,
        /// The assembly of the entry point. It can be empty while the runtime is suspended at startup.
        managed_entrypoint_assembly_name: Text<'a>,
        /// The runtime's version, as SemVer 2.
        clr_product_version: Text<'a>,
        /// The platform: `linux-x64`, `linux-musl-arm64`, `win-x64`, … (erratum: the specification's examples are
        /// spelled differently).
        portable_rid: Text<'a>,
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
