//! Every command, one row each. A new command is a new row here and its golden files in `testdata/`; the tests ask for
//! those, for its line in `README.md`, and for its name in the list of the fuzz target `conversation`.
use super::types::{
    ClientData, DumpFlags, DumpType, Format, PerfMapType, ProcessEnvironment, ProcessInfo, ProcessInfo2,
    ProcessInfo3, Provider, SessionConfig, SessionConfig6, SessionId, Status,
};
use crate::{Array, Guid, Text};

commands! {
    /// Writes a dump of the process. The path is the target's: its directory, its container.
    ///
    /// The specification calls it CreateCoreDump (erratum: everybody else does not).
    0x0101 GenerateCoreDump<'a> / CreateCoreDump since 3 {
        /// Where to; null for the runtime's choice. `%p` and its kin are expanded by the runtime.
        dump_name: Text<'a>,
        /// How much of the process.
        dump_type: DumpType,
        /// Anything but 0: the dump writer logs to the target's console.
        diagnostics: u32,
    } -> Status, then Nothing;

    /// Writes a dump, with flags. In no specification.
    0x0102 GenerateCoreDump2<'a> / CreateCoreDump2 since 6 {
        /// As in [`GenerateCoreDump`].
        dump_name: Text<'a>,
        /// How much of the process.
        dump_type: DumpType,
        /// How to go about it.
        flags: DumpFlags,
    } -> Status, then Nothing;

    /// Writes a dump, and says in words why not: see [`ServerError::message`](crate::ServerError::message). In no
    /// specification.
    0x0103 GenerateCoreDump3<'a> / CreateCoreDump3 since 7 {
        /// As in [`GenerateCoreDump`].
        dump_name: Text<'a>,
        /// How much of the process.
        dump_type: DumpType,
        /// How to go about it.
        flags: DumpFlags,
    } -> Status, then Nothing;

    /// Stops a session. To be sent on a connection of its own, while the session's stream is read on to its end:
    /// the runtime answers only when it has written everything there.
    ///
    /// An id that is not, or no longer, known is answered OK all the same.
    0x0201 StopTracing / StopTracing since 3 {
        /// As the start of the session answered it.
        session_id: u64,
    } -> SessionId, then Nothing;

    /// Starts a session with the default rundown and stacks.
    0x0202 CollectTracing<'a> / CollectTracing since 3 {
        /// Size of the runtime's buffer in MB; not 0.
        buffer_mb: u32,
        /// Format of the stream.
        format: Format,
        /// What to switch on: 1 to 1,000.
        providers: Array<'a, Provider<'a>>,
    } -> SessionId, then Stream;

    /// Starts a session, with rundown or without, and stacks.
    0x0203 CollectTracing2<'a> / CollectTracing2 since 3 {
        /// Size of the runtime's buffer in MB; not 0.
        buffer_mb: u32,
        /// Format of the stream.
        format: Format,
        /// Whether the end of the stream describes methods and modules: the names behind the addresses of stacks.
        rundown: bool,
        /// What to switch on: 1 to 1,000.
        providers: Array<'a, Provider<'a>>,
    } -> SessionId, then Stream;

    /// Starts a session, with rundown and stacks or without. Erratum: the specification prints its code as 0x0203.
    0x0204 CollectTracing3<'a> / CollectTracing3 since 9 {
        /// Size of the runtime's buffer in MB; not 0.
        buffer_mb: u32,
        /// Format of the stream.
        format: Format,
        /// Whether the end of the stream describes methods and modules.
        rundown: bool,
        /// Whether events carry stacks.
        stackwalk: bool,
        /// What to switch on: 1 to 1,000.
        providers: Array<'a, Provider<'a>>,
    } -> SessionId, then Stream;

    /// Starts a session with a rundown of one's choice. Erratum: the specification's details forget `stackwalk`.
    0x0205 CollectTracing4<'a> / CollectTracing4 since 9 {
        /// Size of the runtime's buffer in MB; not 0.
        buffer_mb: u32,
        /// Format of the stream.
        format: Format,
        /// Keywords of the rundown provider; 0 for no rundown.
        rundown_keyword: u64,
        /// Whether events carry stacks.
        stackwalk: bool,
        /// What to switch on: 1 to 1,000.
        providers: Array<'a, Provider<'a>>,
    } -> SessionId, then Stream;

    /// Starts a session whose providers filter events by id, and which may write to `user_events` in place of a stream.
    0x0206 CollectTracing5<'a> / CollectTracing5 since 10 {
        /// A stream, or `user_events`.
        session: SessionConfig<'a>,
    } -> SessionId, then session;

    /// Starts a session that may hold up the program where others lose events. Not yet in the specification's older
    /// texts.
    0x0207 CollectTracing6<'a> / CollectTracing6 since 11 {
        /// A stream, or `user_events`.
        session: SessionConfig6<'a>,
    } -> SessionId, then session;

    /// Loads a profiler into the running process. Errata: the specification gives the client data two lengths (it has
    /// one) and the CLSID 14 bytes (it has 16).
    0x0301 AttachProfiler<'a> / AttachProfiler since 3 {
        /// How long the runtime waits for the profiler, in milliseconds. Microsoft's client sends seconds.
        attach_timeout: u32,
        /// The profiler's CLSID.
        profiler_guid: Guid,
        /// Its library, in the target's file system.
        profiler_path: Text<'a>,
        /// What it is handed; ends the payload.
        client_data: ClientData<'a>,
    } -> Status, then Nothing;

    /// Has a suspended runtime load a profiler when it starts. In the specification's list only.
    0x0302 StartupProfiler<'a> / StartupProfiler since 6 {
        /// The profiler's CLSID.
        profiler_guid: Guid,
        /// Its library, in the target's file system.
        profiler_path: Text<'a>,
    } -> Status, then Nothing;

    /// Describes the process.
    0x0400 GetProcessInfo / ProcessInfo since 5 {} -> ProcessInfo<'r>, then Nothing;

    /// Lets a runtime that waits at its start go on; for any other it does nothing. It counts for the port that the
    /// connection belongs to. Erratum: the specification says that the answer has no payload; it has 4 bytes.
    0x0401 ResumeRuntime / ResumeRuntime since 5 {} -> Status, then Nothing;

    /// Reads the environment as it is now, with what SetEnvironmentVariable has changed.
    0x0402 GetProcessEnvironment / ProcessEnvironment since 5 {} -> ProcessEnvironment, then Counted;

    /// Sets an environment variable, or removes it.
    0x0403 SetEnvironmentVariable<'a> / SetEnvironmentVariable since 6 {
        /// Which.
        name: Text<'a>,
        /// To what; null removes it.
        value: Text<'a>,
    } -> Status, then Nothing;

    /// Describes the process, its entry point and the runtime's version. Erratum: the specification dates it .NET 7.
    0x0404 GetProcessInfo2 / ProcessInfo2 since 6 {} -> ProcessInfo2<'r>, then Nothing;

    /// Starts to write files for `perf`; on Linux.
    0x0405 EnablePerfMap / EnablePerfMap since 8 {
        /// Which files.
        perf_map_type: PerfMapType,
    } -> Status, then Nothing;

    /// Stops to write files for `perf`. Erratum: the specification prints its code as 0x0405.
    0x0406 DisablePerfMap / DisablePerfMap since 8 {} -> Status, then Nothing;

    /// Runs a startup hook: at once, or at the start of a suspended runtime.
    0x0407 ApplyStartupHook<'a> / ApplyStartupHook since 8 {
        /// The hook's library, in the target's file system, or the name of an assembly.
        startup_hook_path: Text<'a>,
    } -> Status, then Nothing;

    /// Describes the process, its entry point, the runtime's version and platform.
    0x0408 GetProcessInfo3 / ProcessInfo3 since 8 {} -> ProcessInfo3<'r>, then Nothing;
}
