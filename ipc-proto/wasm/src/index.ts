/**
 * .NET event traces (NetTrace) and the messages of the .NET Diagnostic IPC protocol.
 *
 * @packageDocumentation
 */
export { initSync, type Fields, type Value } from "./memory.js";
export {
    Batch, EventKind, readTrace, Trace, TraceError, TraceEvent, TraceReader,
    type BlobSource, type Options, type PlainEvent, type Source, type StreamSource, type TraceEnd, type TraceInfo, type TraceThread,
} from "./trace.js";
export { check, commands, encode, MessageError, parseMessage, type Message, type Part } from "./message.js";
export type { CommandName, Commands } from "./commands.js";
export type {
    EventFilter, Provider, SessionConfig, SessionConfig6, StreamingProvider, StreamingSession,
    TracepointConfig, TracepointSet, UserEventsProvider, UserEventsSession,
} from "./types.js";
