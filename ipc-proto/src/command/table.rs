//! The table of all commands, one row each.
//!
//! ARCHITECTURE.md has the recipe for a new command. The rows are in the order of the codes. If runtimes refuse some
//! values of a command, its row ends with `, checked rule(fields)`; the rule is a function in `check.rs`. A layout that
//! is not a list of fields, or a new response, is a type in `types.rs`.
//!
//! All other code that handles every command uses `for_each_command!`, which `define.rs` generates from the rows: the
//! fuzz targets, the proof, the images for bare metal.
use super::types::{
    ClientData, DumpFlags, DumpType, Format, PerfMapType, ProcessEnvironment, ProcessInfo, ProcessInfo2,
    ProcessInfo3, Provider, SessionConfig, SessionConfig6, SessionId, Status,
};
use crate::{Array, Guid, Text};

commands! {
    $
    /// Writes a dump of the process. The target process resolves the path, in its own working directory and container.
    ///
    /// Erratum: only the specification calls this command CreateCoreDump.
    0x0101 GenerateCoreDump<'a> / CreateCoreDump since 3 {
        /// The path of the dump. The runtime expands `%p` and similar placeholders, and chooses the path if it is null.
        dump_name: Text<'a>,
        /// How much of the process the dump contains.
        dump_type: DumpType,
        /// If not 0, the dump writer logs to the target's console.
        diagnostics: u32,
    } -> Status, then Nothing, checked dump_type(dump_type);

    /// Writes a dump, with flags. The specification does not contain this command.
    0x0102 GenerateCoreDump2<'a> / CreateCoreDump2 since 6 {
        /// The path of the dump, as in [`GenerateCoreDump`].
        dump_name: Text<'a>,
        /// How much of the process the dump contains.
        dump_type: DumpType,
        /// Options of the dump writer.
        flags: DumpFlags,
    } -> Status, then Nothing, checked dump_type(dump_type);

    /// Writes a dump; a refusal contains an error message: see [`ServerError::message`](crate::ServerError::message).
    /// The specification does not contain this command.
    0x0103 GenerateCoreDump3<'a> / CreateCoreDump3 since 7 {
        /// The path of the dump, as in [`GenerateCoreDump`].
        dump_name: Text<'a>,
        /// How much of the process the dump contains.
        dump_type: DumpType,
        /// Options of the dump writer.
        flags: DumpFlags,
    } -> Status, then Nothing, checked dump_type(dump_type);

    /// Stops a session. Send StopTracing on a connection of its own and continue to read the session's stream: the
    /// runtime answers only after it has written the whole stream.
    ///
    /// A runtime answers OK to the id of an unknown session or of one that has ended.
    0x0201 StopTracing / StopTracing since 3 {
        /// The id from the answer that started the session.
        session_id: u64,
    } -> SessionId, then Nothing;

    /// Starts a session with the default rundown and with stacks.
    0x0202 CollectTracing<'a> / CollectTracing since 3 {
        /// Size of the runtime's buffer in MB; not 0.
        buffer_mb: u32,
        /// Format of the stream.
        format: Format,
        /// The providers to enable: 1 to 1,000.
        providers: Array<'a, Provider<'a>>,
    } -> SessionId, then Stream, checked session(buffer_mb, format, providers);

    /// Starts a session with stacks, and with or without a rundown.
    0x0203 CollectTracing2<'a> / CollectTracing2 since 3 {
        /// Size of the runtime's buffer in MB; not 0.
        buffer_mb: u32,
        /// Format of the stream.
        format: Format,
        /// Whether the end of the stream describes methods and modules: the names for the addresses in stacks.
        rundown: bool,
        /// The providers to enable: 1 to 1,000.
        providers: Array<'a, Provider<'a>>,
    } -> SessionId, then Stream, checked session(buffer_mb, format, providers);

    /// Starts a session with or without a rundown, and with or without stacks. Erratum: the specification prints the
    /// code of this command as 0x0203.
    0x0204 CollectTracing3<'a> / CollectTracing3 since 9 {
        /// Size of the runtime's buffer in MB; not 0.
        buffer_mb: u32,
        /// Format of the stream.
        format: Format,
        /// Whether the end of the stream describes methods and modules.
        rundown: bool,
        /// Whether events contain stacks.
        stackwalk: bool,
        /// The providers to enable: 1 to 1,000.
        providers: Array<'a, Provider<'a>>,
    } -> SessionId, then Stream, checked session(buffer_mb, format, providers);

    /// Starts a session whose rundown is selected by keywords. Erratum: the specification's details omit `stackwalk`.
    0x0205 CollectTracing4<'a> / CollectTracing4 since 9 {
        /// Size of the runtime's buffer in MB; not 0.
        buffer_mb: u32,
        /// Format of the stream.
        format: Format,
        /// Keywords of the rundown provider; 0 for no rundown.
        rundown_keyword: u64,
        /// Whether events contain stacks.
        stackwalk: bool,
        /// The providers to enable: 1 to 1,000.
        providers: Array<'a, Provider<'a>>,
    } -> SessionId, then Stream, checked session(buffer_mb, format, providers);

    /// Starts a session that writes a stream or `user_events`, and whose providers filter events by id.
    0x0206 CollectTracing5<'a> / CollectTracing5 since 10 {
        /// A stream, or `user_events`.
        session: SessionConfig<'a>,
    } -> SessionId, then Decided by session, checked session_config(session);

    /// Starts a session that can block the program when the buffer is full; sessions of older commands lose events
    /// then. Older texts of the specification do not contain this command.
    0x0207 CollectTracing6<'a> / CollectTracing6 since 11 {
        /// A stream, or `user_events`.
        session: SessionConfig6<'a>,
    } -> SessionId, then Decided by session, checked session_config6(session);

    /// Loads a profiler into the running process. Errata: the specification gives the client data two lengths (it has
    /// one) and the CLSID 14 bytes (it has 16).
    0x0301 AttachProfiler<'a> / AttachProfiler since 3 {
        /// How long the runtime waits for the profiler, in milliseconds. Microsoft's client sends seconds.
        attach_timeout: u32,
        /// The profiler's CLSID.
        profiler_guid: Guid,
        /// The path of the profiler's library, in the target's file system.
        profiler_path: Text<'a>,
        /// Data for the profiler, up to the end of the payload.
        client_data: ClientData<'a>,
    } -> Status, then Nothing, checked profiler_path(profiler_path);

    /// Sets the profiler that a suspended runtime loads when it starts. The specification only lists this command.
    0x0302 StartupProfiler<'a> / StartupProfiler since 6 {
        /// The profiler's CLSID.
        profiler_guid: Guid,
        /// The path of the profiler's library, in the target's file system.
        profiler_path: Text<'a>,
    } -> Status, then Nothing;

    /// Describes the process.
    0x0400 GetProcessInfo / ProcessInfo since 5 {} -> ProcessInfo<'r>, then Nothing;

    /// Resumes a runtime that is suspended at startup, once each port that suspends it has received this command. Has
    /// no effect on a running runtime. Erratum: the specification gives the answer no payload; it has 4 bytes.
    0x0401 ResumeRuntime / ResumeRuntime since 5 {} -> Status, then Nothing;

    /// Reads the current environment, including the changes made by SetEnvironmentVariable.
    0x0402 GetProcessEnvironment / ProcessEnvironment since 5 {} -> ProcessEnvironment, then Counted;

    /// Sets or removes an environment variable. A runtime refuses to remove a variable that is not set, with
    /// [`ENVVAR_NOT_FOUND`](crate::HResult::ENVVAR_NOT_FOUND).
    0x0403 SetEnvironmentVariable<'a> / SetEnvironmentVariable since 6 {
        /// The name of the variable.
        name: Text<'a>,
        /// Its new value; null removes the variable.
        value: Text<'a>,
    } -> Status, then Nothing, checked variable_name(name);

    /// Describes the process, its entry point and the runtime's version. Erratum: the specification says .NET 7.
    0x0404 GetProcessInfo2 / ProcessInfo2 since 6 {} -> ProcessInfo2<'r>, then Nothing;

    /// Starts to write files for `perf`, on Linux.
    0x0405 EnablePerfMap / EnablePerfMap since 8 {
        /// The files to write.
        perf_map_type: PerfMapType,
    } -> Status, then Nothing, checked perf_map_type(perf_map_type);

    /// Stops writing files for `perf`. Erratum: the specification prints the code of this command as 0x0405.
    0x0406 DisablePerfMap / DisablePerfMap since 8 {} -> Status, then Nothing;

    /// Runs a startup hook: immediately, or when a suspended runtime starts.
    0x0407 ApplyStartupHook<'a> / ApplyStartupHook since 8 {
        /// The path of the hook's library in the target's file system, or the name of an assembly.
        startup_hook_path: Text<'a>,
    } -> Status, then Nothing, checked startup_hook_path(startup_hook_path);

    /// Describes the process, its entry point, the runtime's version and its platform.
    0x0408 GetProcessInfo3 / ProcessInfo3 since 8 {} -> ProcessInfo3<'r>, then Nothing;
}
