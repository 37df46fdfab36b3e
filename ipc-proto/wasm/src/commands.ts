// Written by scripts/commands.mjs from the table of commands: .ci/run bless.
import type { Provider, SessionConfig, SessionConfig6 } from "./types.js";

/** The fields of each request. */
export interface Commands {
    /** `CreateCoreDump` in the specification, 0x0101; since .NET 3. */
    GenerateCoreDump: { dump_name: string | null; dump_type: number; diagnostics: number };
    /** `CreateCoreDump2` in the specification, 0x0102; since .NET 6. */
    GenerateCoreDump2: { dump_name: string | null; dump_type: number; flags: number };
    /** `CreateCoreDump3` in the specification, 0x0103; since .NET 7. */
    GenerateCoreDump3: { dump_name: string | null; dump_type: number; flags: number };
    /** `StopTracing` in the specification, 0x0201; since .NET 3. */
    StopTracing: { session_id: number | bigint };
    /** `CollectTracing` in the specification, 0x0202; since .NET 3. */
    CollectTracing: { buffer_mb: number; format: number; providers: Provider[] };
    /** `CollectTracing2` in the specification, 0x0203; since .NET 3. */
    CollectTracing2: { buffer_mb: number; format: number; rundown: boolean; providers: Provider[] };
    /** `CollectTracing3` in the specification, 0x0204; since .NET 9. */
    CollectTracing3: { buffer_mb: number; format: number; rundown: boolean; stackwalk: boolean; providers: Provider[] };
    /** `CollectTracing4` in the specification, 0x0205; since .NET 9. */
    CollectTracing4: { buffer_mb: number; format: number; rundown_keyword: number | bigint; stackwalk: boolean; providers: Provider[] };
    /** `CollectTracing5` in the specification, 0x0206; since .NET 10. */
    CollectTracing5: SessionConfig;
    /** `CollectTracing6` in the specification, 0x0207; since .NET 11. */
    CollectTracing6: SessionConfig6;
    /** `AttachProfiler` in the specification, 0x0301; since .NET 3. */
    AttachProfiler: { attach_timeout: number; profiler_guid: string; profiler_path: string | null; client_data: Uint8Array };
    /** `StartupProfiler` in the specification, 0x0302; since .NET 6. */
    StartupProfiler: { profiler_guid: string; profiler_path: string | null };
    /** `ProcessInfo` in the specification, 0x0400; since .NET 5. */
    GetProcessInfo: Record<string, never>;
    /** `ResumeRuntime` in the specification, 0x0401; since .NET 5. */
    ResumeRuntime: Record<string, never>;
    /** `ProcessEnvironment` in the specification, 0x0402; since .NET 5. */
    GetProcessEnvironment: Record<string, never>;
    /** `SetEnvironmentVariable` in the specification, 0x0403; since .NET 6. */
    SetEnvironmentVariable: { name: string | null; value: string | null };
    /** `ProcessInfo2` in the specification, 0x0404; since .NET 6. */
    GetProcessInfo2: Record<string, never>;
    /** `EnablePerfMap` in the specification, 0x0405; since .NET 8. */
    EnablePerfMap: { perf_map_type: number };
    /** `DisablePerfMap` in the specification, 0x0406; since .NET 8. */
    DisablePerfMap: Record<string, never>;
    /** `ApplyStartupHook` in the specification, 0x0407; since .NET 8. */
    ApplyStartupHook: { startup_hook_path: string | null };
    /** `ProcessInfo3` in the specification, 0x0408; since .NET 8. */
    GetProcessInfo3: Record<string, never>;
}

/** The name of a command, as in Microsoft's client. */
export type CommandName = keyof Commands;
