//! The packages whose imports are checked.

/// Files and folders beside the root of a package, the lowest first. A file imports from its own layer and from those
/// before it in the list.
pub(crate) type Layers = &'static [&'static [&'static str]];

/// Every package and program, by the root of its sources, with its layers if it has some.
pub(crate) const PACKAGES: &[(&str, Layers)] = &[
    ("ipc-proto/src/lib.rs", IPC_PROTO),
    ("ipc-proto/nettrace/src/lib.rs", NETTRACE),
    ("ipc-proto/analysis/src/lib.rs", ANALYSIS),
    ("ipc-proto/c/src/lib.rs", &[]),
    ("ipc-proto/wasm/rust/lib.rs", &[]),
    ("ipc-proto/proof/src/lib.rs", &[]),
    ("ipc-proto/proof/src/bin/image/main.rs", &[]),
    ("ipc-std/discover/src/lib.rs", DISCOVER),
    ("ipc-std/src/lib.rs", IPC_STD),
    ("ipc-std/async/src/lib.rs", ASYNC),
    ("ipc-std/testkit/src/lib.rs", TESTKIT),
    ("ipc-std/cli/src/main.rs", TOOL_LAYERS),
    ("ipc-std/cli/sans_io/lib.rs", &[]),
    ("fuzz/src/lib.rs", &[]),
    ("fuzz/std/src/lib.rs", &[]),
    ("fuzz/c/src/lib.rs", &[]),
    ("benches/lib.rs", &[]),
    ("testdata/src/lib.rs", &[]),
];

const IPC_PROTO: Layers = &[
    &["sentences"],
    // `wire` reads and writes an `HResult`; a tracepoint's name is split as a socket's is.
    &["wire", "hresult", "endpoint"],
    &["code"],
    &["error"],
    &["message"],
    &["command"],
    &["advertise", "busy_backoff"],
    &["exchange"],
    &["plan"],
    &["port", "legacy"],
    &["lib"],
];

const NETTRACE: Layers = &[
    &["error"],
    &["encoding"],
    &["parse"],
    &["describe", "join"],
    &["values", "clr"],
    &["catalog", "write"],
    &["segments", "rewrite"],
    &["assemble", "user_events"],
    &["lib"],
];

const ANALYSIS: Layers = &[
    &["event", "trace"],
    &["names"],
    &["stacks"],
    &["samples"],
    &["call_tree", "counters", "gc", "heap", "jit", "locks"],
    &["account", "formats", "live", "report", "requests"],
    &["lib"],
];

const DISCOVER: Layers = &[
    &["sys", "deadline"],
    &["error"],
    &["endpoint_name", "target", "procfs"],
    &["directory", "process", "refusal"],
    &["socket_file"],
    &["candidate"],
    &["search"],
    &["scan"],
    &["system"],
    &["lib"],
];

const IPC_STD: Layers = &[
    &["sys", "drive"],
    &["timeouts", "error", "observer", "environment", "process_info", "dump_outcome"],
    &["timed_session"],
    &["transport"],
    &["connection"],
    &["client"],
    &["hazard", "system_process", "trace", "user_events", "discover", "monitor", "server"],
    &["counter_stream"],
    &["lib"],
];

const ASYNC: Layers = &[
    &["async_transport"],
    &["async_connector"],
    &["async_connection", "async_trace_session"],
    &["async_client"],
    &["async_monitor", "async_server"],
    &["lib"],
];

const TESTKIT: Layers = &[&["heap", "sys"], &["profile"], &["replay"], &["fake", "conformance"], &["lib"]];

const TOOL_LAYERS: Layers = &[
    &["text"],
    &["run"],
    &["output"],
    &["terminal"],
    &["input"],
    &["args"],
    &["process"],
    &["recording"],
    &["flame"],
    &["events", "counters", "diagnosis"],
    &["command_list", "grouped_help"],
    &["commands"],
    &["main"],
];
