//! The server's role: the values of a request, in structs, and its lists, one item after the other.
use ipc_proto::plan::{DumpConfig, TraceConfig};
use ipc_proto::types::{self, TracepointConfig, UserEventsSession};
use ipc_proto::wire::Reader;
use ipc_proto::{Array, CollectTracing5, CollectTracing6, Decode, Request};

use crate::command::{
    ClientData, DIPC_SESSION_TYPE_STREAMING, DIPC_SESSION_TYPE_USER_EVENTS, DumpFlags, DumpType, EventLevel,
    Format, Guid, PerfMapType, SessionBufferMode,
};
use crate::memory;
use crate::message::complete;
use crate::status::{Failure, Outcome, Status, report};
use crate::text::Text;

/// A list in a message, and a place in it. The functions `dipc_next_*` store the item at the place, and move the place
/// after the item. So the time to read a whole list is proportional to its length. A copy has its own place. All zeros
/// are an empty list.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct List {
    /// The bytes of the items that are left.
    pub bytes: *const u8,
    /// The number of bytes.
    pub len: usize,
    /// The number of items that are left.
    pub count: u32,
    /// The type of the items, which `dipc_next_*` check.
    pub items: u32,
}

/// The types of items of a [`List`].
const PROVIDERS: u32 = 1;
const STREAMING_PROVIDERS: u32 = 2;
const USER_EVENTS_PROVIDERS: u32 = 3;
const EVENT_IDS: u32 = 4;
const TRACEPOINT_SETS: u32 = 5;

impl List {
    /// An empty list.
    const fn empty(items: u32) -> Self {
        Self { bytes: core::ptr::null(), len: 0, count: 0, items }
    }

    fn new<T>(array: Array<'_, T>, items: u32) -> Self {
        let (count, bytes) = array.as_wire().unwrap_or_default();
        Self { bytes: bytes.as_ptr(), len: bytes.len(), count, items }
    }

    /// Returns the next item.
    ///
    /// # Safety
    /// The list came from a message whose bytes are still there.
    unsafe fn next<T: Decode<'static>>(&mut self) -> Result<T, Failure> {
        self.count = self.count.checked_sub(1).ok_or(Status::NotFound)?;
        // SAFETY: the caller vouches for the bytes.
        let mut r = Reader::new(unsafe { memory::slice(self.bytes, self.len) }?);
        let item = r.read()?;
        (self.bytes, self.len) = (r.rest().as_ptr(), r.rest().len());
        Ok(item)
    }
}

/// Stores a value of the request at the front of `bytes`.
///
/// # Safety
/// The pointers point to what the documentation of the functions below says.
unsafe fn read<T>(
    bytes: *const u8,
    len: usize,
    value: *mut T,
    detail: *mut usize,
    convert: impl FnOnce(&Request<'static>) -> Option<T>,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let outcome = unsafe { memory::slice(bytes, len) }.and_then(|bytes| -> Outcome {
        let request = complete(bytes)?.0.request()?;
        let converted = convert(&request).ok_or(Status::InvalidArgument)?;
        // SAFETY: the caller vouches for the pointer.
        unsafe { memory::store(value, converted) }.map(|()| 0)
    });
    // SAFETY: the caller vouches for the pointers.
    unsafe { report(outcome, detail) }
}

/// The session that a request starts.
#[repr(C)]
pub struct RequestedSession {
    /// One of `DIPC_SESSION_TYPE_*`. A session that writes to `user_events` has `rundown_keyword` and `providers` only.
    pub session_type: u32,
    /// Size of the runtime's buffer in MB.
    pub buffer_mb: u32,
    /// Format of the stream.
    pub format: Format,
    /// Whether events have stacks.
    pub stackwalk: bool,
    /// The behaviour when the buffer is full.
    pub session_buffer_mode: SessionBufferMode,
    /// Keywords of the rundown provider; 0 for no rundown. A command that only says whether there is a rundown means the
    /// default one, `DIPC_DEFAULT_RUNDOWN`.
    pub rundown_keyword: u64,
    /// The providers, for `dipc_next_provider`.
    pub providers: List,
}

/// The keywords of the rundown that runtimes send if the command does not select keywords.
pub const DIPC_DEFAULT_RUNDOWN: u64 = 0x8002_0139;

const _: () = assert!(DIPC_DEFAULT_RUNDOWN == ipc_proto::plan::DEFAULT_RUNDOWN);

impl RequestedSession {
    fn of(request: &Request<'_>) -> Option<Self> {
        if let Ok(session) = UserEventsSession::try_from(request) {
            return Some(Self {
                session_type: DIPC_SESSION_TYPE_USER_EVENTS,
                buffer_mb: 0,
                format: 0,
                stackwalk: false,
                session_buffer_mode: 0,
                rundown_keyword: session.rundown_keyword,
                providers: List::new(session.providers, USER_EVENTS_PROVIDERS),
            });
        }
        let config = TraceConfig::try_from(request).ok()?;
        let providers = match request {
            Request::CollectTracing(c) => List::new(c.providers, PROVIDERS),
            Request::CollectTracing2(c) => List::new(c.providers, PROVIDERS),
            Request::CollectTracing3(c) => List::new(c.providers, PROVIDERS),
            Request::CollectTracing4(c) => List::new(c.providers, PROVIDERS),
            Request::CollectTracing5(CollectTracing5 { session: types::SessionConfig::Streaming(s) }) => {
                List::new(s.providers, STREAMING_PROVIDERS)
            }
            Request::CollectTracing6(CollectTracing6 { session: types::SessionConfig6::Streaming(s) }) => {
                List::new(s.providers, STREAMING_PROVIDERS)
            }
            _ => return None,
        };
        Some(Self {
            session_type: DIPC_SESSION_TYPE_STREAMING,
            buffer_mb: config.buffer_mb,
            format: config.format.0,
            stackwalk: config.stackwalk,
            session_buffer_mode: config.buffer_mode.0,
            rundown_keyword: config.rundown_keyword,
            providers,
        })
    }
}

/// Stores the session that a request, CollectTracing to CollectTracing6, starts: its values, those that runtimes use where
/// an older command has none, and the list of its providers, which points into `bytes`.
///
/// ```c
/// dipc_requested_session session;
/// dipc_requested_provider provider;
/// if (dipc_request_session(request.bytes, request.len, &session, NULL) == DIPC_STATUS_OK)
///     while (dipc_next_provider(&session.providers, &provider) == DIPC_STATUS_OK)
///         enable(provider.name, provider.keywords, provider.level);
/// ```
///
/// This and the other `dipc_request_*` functions return `DIPC_STATUS_INVALID_ARGUMENT` for the request of another command,
/// and an error for a malformed one. They do not check the rules for values: see `dipc_check`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_request_session(
    bytes: *const u8,
    len: usize,
    session: *mut RequestedSession,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { read(bytes, len, session, detail, RequestedSession::of) }
}

/// A provider of a requested session.
#[repr(C)]
pub struct RequestedProvider<'a> {
    /// Groups of events, one bit each; the provider defines them.
    pub keywords: u64,
    /// The verbosity: one of `DIPC_LEVEL_*`.
    pub level: EventLevel,
    /// The name of the provider.
    pub name: Text<'a>,
    /// Settings for the provider: `key=value` joined by `;`. Can be null.
    pub arguments: Text<'a>,
    /// Whether `event_ids` select the events to send, or those not to send. A provider without a filter sends all events:
    /// false, and an empty list.
    pub filter_enable: bool,
    /// The ids of the filter, for `dipc_next_event_id`.
    pub event_ids: List,
    /// For `user_events`: the tracepoint of events that are in no set; if it is null, those events are not written.
    pub default_tracepoint_name: Text<'a>,
    /// For `user_events`: the tracepoints for sets of events, for `dipc_next_tracepoint_set`.
    pub tracepoint_sets: List,
}

impl<'a> RequestedProvider<'a> {
    fn new(provider: &types::StreamingProvider<'a>, tracepoints: Option<&TracepointConfig<'a>>) -> Self {
        let &types::StreamingProvider { keywords, level, name, arguments, filter } = provider;
        Self {
            keywords,
            level: level.0,
            name: Text::from(name),
            arguments: Text::from(arguments),
            filter_enable: filter.enable,
            event_ids: List::new(filter.event_ids, EVENT_IDS),
            default_tracepoint_name: tracepoints
                .map_or(Text::NULL, |tracepoints| Text::from(tracepoints.default_tracepoint_name)),
            tracepoint_sets: tracepoints.map_or(List::empty(TRACEPOINT_SETS), |tracepoints| {
                List::new(tracepoints.sets, TRACEPOINT_SETS)
            }),
        }
    }
}

/// Stores the next item of a list, with `take`.
///
/// # Safety
/// As the functions below.
unsafe fn next<T>(
    list: *mut List,
    item: *mut T,
    take: impl FnOnce(&mut List) -> Result<T, Failure>,
) -> Status {
    // SAFETY: the caller vouches for the list.
    let taken = memory::check(list, 1).map(|()| unsafe { &mut *list }).and_then(|list| match list.count {
        0 if list.items == 0 => Err(Status::NotFound.into()),
        _ => take(list),
    });
    let outcome = taken.and_then(|taken| {
        // SAFETY: the caller vouches for the pointer.
        unsafe { memory::store(item, taken) }.map(|()| 0)
    });
    // SAFETY: `detail` is null.
    unsafe { report(outcome, core::ptr::null_mut()) }
}

/// Stores the next provider of a list of `dipc_request_session` in `provider`, whose texts and lists point into the
/// message.
///
/// This and the other `dipc_next_*` functions return `DIPC_STATUS_NOT_FOUND` at the end of the list, and
/// `DIPC_STATUS_WRONG_KIND` for a list of other items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_next_provider(list: *mut List, provider: *mut RequestedProvider<'_>) -> Status {
    // SAFETY: the caller vouches for the message of the list.
    let take = |list: &mut List| match list.items {
        // SAFETY: as above.
        PROVIDERS => unsafe { list.next::<types::Provider<'_>>() }
            .map(|provider| RequestedProvider::new(&provider.into(), None)),
        // SAFETY: as above.
        STREAMING_PROVIDERS => unsafe { list.next() }.map(|provider| RequestedProvider::new(&provider, None)),
        // SAFETY: as above.
        USER_EVENTS_PROVIDERS => unsafe { list.next() }.map(|provider| {
            let types::UserEventsProvider { keywords, level, name, arguments, filter, tracepoints } =
                provider;
            let provider = types::StreamingProvider { keywords, level, name, arguments, filter };
            RequestedProvider::new(&provider, Some(&tracepoints))
        }),
        _ => Err(Status::WrongKind.into()),
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe { next(list, provider.cast::<RequestedProvider<'static>>(), take) }
}

/// Returns whether a provider of a requested session sends an event: by its keywords, then its level, then the filter.
///
/// The event must have no keyword, or one in common with the provider. The level of the event must be at most the
/// provider's, unless the level of the provider is `DIPC_LEVEL_LOG_ALWAYS`. Names of providers are compared exactly, by the
/// caller: `dipc_text_equals`. The name `*`, with all keywords and `DIPC_LEVEL_VERBOSE`, means all events of all providers.
///
/// It searches all ids of the filter: call it once for each kind of event, not for each event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_provider_includes(
    provider: *const RequestedProvider<'_>,
    keywords: u64,
    level: EventLevel,
    event_id: u32,
) -> bool {
    // SAFETY: the caller vouches for the pointer.
    let Ok(provider) = (unsafe { memory::reference(provider) }) else { return false };
    let unfiltered = types::StreamingProvider {
        keywords: provider.keywords,
        level: types::EventLevel(provider.level),
        name: ipc_proto::Text::NULL,
        arguments: ipc_proto::Text::NULL,
        filter: types::EventFilter::ALL,
    };
    let mut ids = provider.event_ids;
    // SAFETY: the caller vouches for the message of the list.
    let mut next = || unsafe { ids.next::<u32>() }.ok();
    let is_listed = core::iter::from_fn(&mut next).any(|id| id == event_id);
    unfiltered.includes(keywords, types::EventLevel(level), event_id) && is_listed == provider.filter_enable
}

/// Stores the next id of a list in `event_id`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_next_event_id(list: *mut List, event_id: *mut u32) -> Status {
    let take = |list: &mut List| match list.items {
        // SAFETY: the caller vouches for the message of the list.
        EVENT_IDS => unsafe { list.next() },
        _ => Err(Status::WrongKind.into()),
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe { next(list, event_id, take) }
}

/// The events for one tracepoint of a requested session.
#[repr(C)]
pub struct RequestedTracepointSet<'a> {
    /// The name of the tracepoint.
    pub tracepoint_name: Text<'a>,
    /// The ids of its events, for `dipc_next_event_id`.
    pub event_ids: List,
}

/// Stores the next set of a list in `set`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_next_tracepoint_set(
    list: *mut List,
    set: *mut RequestedTracepointSet<'_>,
) -> Status {
    let take = |list: &mut List| match list.items {
        TRACEPOINT_SETS => {
            // SAFETY: the caller vouches for the message of the list.
            unsafe { list.next() }.map(|set: types::TracepointSet<'_>| RequestedTracepointSet {
                tracepoint_name: Text::from(set.tracepoint_name),
                event_ids: List::new(set.event_ids, EVENT_IDS),
            })
        }
        _ => Err(Status::WrongKind.into()),
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe { next(list, set.cast::<RequestedTracepointSet<'static>>(), take) }
}

/// The variable that a SetEnvironmentVariable sets or removes.
#[repr(C)]
pub struct RequestedVariable<'a> {
    /// The name of the variable.
    pub name: Text<'a>,
    /// Its new value; null removes the variable.
    pub value: Text<'a>,
}

/// Stores the variable that a SetEnvironmentVariable sets or removes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_request_variable(
    bytes: *const u8,
    len: usize,
    variable: *mut RequestedVariable<'_>,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        read(bytes, len, variable.cast::<RequestedVariable<'static>>(), detail, |request| match request {
            Request::SetEnvironmentVariable(set) => {
                Some(RequestedVariable { name: Text::from(set.name), value: Text::from(set.value) })
            }
            _ => None,
        })
    }
}

/// The dump that a request writes.
#[repr(C)]
pub struct RequestedDump<'a> {
    /// The path of the dump. The runtime expands `%p` and similar placeholders, and chooses the path if it is null.
    pub path: Text<'a>,
    /// How much of the process the dump contains: one of `DIPC_DUMP_*`.
    pub dump_type: DumpType,
    /// Options of the dump writer: any of `DIPC_DUMP_FLAG_*`. The `diagnostics` of GenerateCoreDump other than 0 means
    /// `DIPC_DUMP_FLAG_LOGGING`.
    pub flags: DumpFlags,
}

/// Stores the dump that a request, GenerateCoreDump to GenerateCoreDump3, writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_request_dump(
    bytes: *const u8,
    len: usize,
    dump: *mut RequestedDump<'_>,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        read(bytes, len, dump.cast::<RequestedDump<'static>>(), detail, |request| {
            let DumpConfig { path, dump_type, flags } = DumpConfig::try_from(request).ok()?;
            Some(RequestedDump { path: Text::from(path), dump_type: dump_type.0, flags: flags.0 })
        })
    }
}

/// The profiler that a request loads.
#[repr(C)]
pub struct RequestedProfiler<'a> {
    /// The profiler's CLSID.
    pub profiler_guid: Guid,
    /// The path of the profiler's library.
    pub profiler_path: Text<'a>,
    /// Data for the profiler, from AttachProfiler only.
    pub client_data: ClientData<'a>,
    /// How long the runtime waits for the profiler, in milliseconds; from AttachProfiler only. Microsoft's client sends
    /// seconds.
    pub attach_timeout: u32,
}

/// Stores the profiler that a request, AttachProfiler or StartupProfiler, loads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_request_profiler(
    bytes: *const u8,
    len: usize,
    profiler: *mut RequestedProfiler<'_>,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        read(bytes, len, profiler.cast::<RequestedProfiler<'static>>(), detail, |request| {
            let (guid, path, data, attach_timeout) = match *request {
                Request::AttachProfiler(a) => {
                    (a.profiler_guid, a.profiler_path, a.client_data.0, a.attach_timeout)
                }
                Request::StartupProfiler(s) => (s.profiler_guid, s.profiler_path, &[][..], 0),
                _ => return None,
            };
            Some(RequestedProfiler {
                profiler_guid: guid.into(),
                profiler_path: Text::from(path),
                client_data: ClientData::new(data),
                attach_timeout,
            })
        })
    }
}

/// Stores the id of the session that a StopTracing ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_request_session_id(
    bytes: *const u8,
    len: usize,
    session_id: *mut u64,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        read(bytes, len, session_id, detail, |request| match request {
            Request::StopTracing(stop) => Some(stop.session_id),
            _ => None,
        })
    }
}

/// Stores the files that an EnablePerfMap starts to write: one of `DIPC_PERF_MAP_*`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_request_perf_map_type(
    bytes: *const u8,
    len: usize,
    perf_map_type: *mut PerfMapType,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        read(bytes, len, perf_map_type, detail, |request| match request {
            Request::EnablePerfMap(enable) => Some(enable.perf_map_type.0),
            _ => None,
        })
    }
}

/// Stores the path of the assembly with the startup hook that an ApplyStartupHook runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dipc_request_startup_hook(
    bytes: *const u8,
    len: usize,
    path: *mut Text<'_>,
    detail: *mut usize,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        read(bytes, len, path.cast::<Text<'static>>(), detail, |request| match request {
            Request::ApplyStartupHook(apply) => Some(Text::from(apply.startup_hook_path)),
            _ => None,
        })
    }
}
