// The types of the fields of requests that are not numbers or texts.

/** A provider to enable. */
export interface Provider {
    /** Groups of events, one bit each; the provider defines them. */
    keywords: number | bigint;
    /** The verbosity: from 0, all events, and 1, critical, to 5, verbose. */
    level: number;
    name: string;
    /** Settings for the provider: `key=value` joined by `;`. */
    arguments: string | null;
}

/** A filter of the events of a provider by their ids. */
export interface EventFilter {
    /** Whether the ids select the events to send, or those not to send. */
    enable: boolean;
    event_ids: number[];
}

/** A provider of a stream with a filter. */
export interface StreamingProvider extends Provider {
    filter: EventFilter;
}

/** The events for one tracepoint. */
export interface TracepointSet {
    tracepoint_name: string;
    event_ids: number[];
}

/** The tracepoints for the events of a provider. */
export interface TracepointConfig {
    /** The tracepoint for events that are in no set; those events are not written if it is null. */
    default_tracepoint_name: string | null;
    sets: TracepointSet[];
}

/** A provider whose events are written to `user_events`. */
export interface UserEventsProvider extends StreamingProvider {
    tracepoints: TracepointConfig;
}

/** A session that writes to `user_events`, on Linux. */
export interface UserEventsSession {
    session_type: 1;
    /** Keywords of the rundown provider; 0 for no rundown. */
    rundown_keyword: number | bigint;
    providers: UserEventsProvider[];
}

/** A session that streams. */
export interface StreamingSession {
    session_type: 0;
    /** Size of the runtime's buffer in MB; not 0. */
    buffer_mb: number;
    /** 1 is NetTrace, 0 is NetPerf. */
    format: number;
    /** Keywords of the rundown provider; 0 for no rundown. */
    rundown_keyword: number | bigint;
    /** Whether events have stacks. */
    stackwalk: boolean;
    providers: StreamingProvider[];
}

/** The kind of a session. */
export type SessionConfig = StreamingSession | UserEventsSession;

/** As {@link SessionConfig}, but a stream has a buffer mode: 0 drops events, 1 blocks the threads that raise them. */
export type SessionConfig6 = (StreamingSession & { session_buffer_mode: number }) | UserEventsSession;

/** The types of the fields of an object, in the order of the message. */
type Shape = { readonly [name: string]: string };

const provider: Shape = { keywords: "u64", level: "u32", name: "Text", arguments: "Text" };
const streamingProvider: Shape = { ...provider, filter: "EventFilter" };
const streaming: Shape = {
    session_type: "u32", buffer_mb: "u32", format: "u32", rundown_keyword: "u64", stackwalk: "bool",
    providers: "Array<StreamingProvider>",
};
const userEvents: Shape = { session_type: "u32", rundown_keyword: "u64", providers: "Array<UserEventsProvider>" };

/** The shapes of the types above. A session depends on its type. */
export const shapes: { readonly [type: string]: Shape | ((value: { [name: string]: unknown }) => Shape) } = {
    Provider: provider,
    EventFilter: { enable: "bool", event_ids: "Array<u32>" },
    StreamingProvider: streamingProvider,
    TracepointSet: { tracepoint_name: "Text", event_ids: "Array<u32>" },
    TracepointConfig: { default_tracepoint_name: "Text", sets: "Array<TracepointSet>" },
    UserEventsProvider: { ...streamingProvider, tracepoints: "TracepointConfig" },
    SessionConfig: (value) => (value.session_type === 1 ? userEvents : streaming),
    SessionConfig6: (value) => (value.session_type === 1 ? userEvents : { ...streaming, session_buffer_mode: "u32" }),
};
