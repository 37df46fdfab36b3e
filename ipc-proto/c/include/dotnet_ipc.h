/*
 * The .NET Diagnostic IPC protocol for C99 and C++17. This file is generated from the Rust source; README.md is the
 * introduction.
 *
 * Rules for all functions:
 *
 * Memory. The library allocates nothing and has no global state. Every object and buffer is the caller's; a function
 * uses it only until it returns, unless its comment says otherwise. Texts and byte pointers that a function stores point
 * into the bytes that it was given.
 *
 * Pointers. A pointer must point to an object of its type, or to as many elements as its length says; it can be null if
 * the length is 0, or if it is called `detail` or `len`. Null, misaligned pointers and impossible lengths are errors
 * wherever a function can see them. What a pointer points to must be initialised, except where the function stores a
 * result.
 *
 * Threads. Functions can run at the same time on different objects. Two threads must not use one exchange, or one buffer
 * that is written, at the same time.
 *
 * Errors. A function that can fail returns a dipc_status. `dipc_status_text` returns the sentence for it.
 */

#ifndef DOTNET_IPC_H
#define DOTNET_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 The version of the interface: the major version in the upper 16 bits, the minor version in the lower ones. A program
 that was compiled with this header works with a library of the same major version and of this or a later minor
 version.
 */
#define DIPC_VERSION 1

/*
 All events, regardless of their level.
 */
#define DIPC_LEVEL_LOG_ALWAYS 0

/*
 Critical errors.
 */
#define DIPC_LEVEL_CRITICAL 1

/*
 Errors.
 */
#define DIPC_LEVEL_ERROR 2

/*
 Warnings.
 */
#define DIPC_LEVEL_WARNING 3

/*
 Information; the default of most tools.
 */
#define DIPC_LEVEL_INFORMATIONAL 4

/*
 All events, including details.
 */
#define DIPC_LEVEL_VERBOSE 5

/*
 NetPerf, the old format.
 */
#define DIPC_FORMAT_NET_PERF 0

/*
 NetTrace.
 */
#define DIPC_FORMAT_NET_TRACE 1

/*
 Threads and modules.
 */
#define DIPC_DUMP_NORMAL 1

/*
 Threads, modules and the managed heap.
 */
#define DIPC_DUMP_WITH_HEAP 2

/*
 As normal, without personal data.
 */
#define DIPC_DUMP_TRIAGE 3

/*
 All memory.
 */
#define DIPC_DUMP_FULL 4

/*
 The dump writer logs to the target's console.
 */
#define DIPC_DUMP_FLAG_LOGGING 1

/*
 The dump writer logs more.
 */
#define DIPC_DUMP_FLAG_VERBOSE_LOGGING 2

/*
 The dump writer also writes a crash report.
 */
#define DIPC_DUMP_FLAG_CRASH_REPORT 4

/*
 The dump writer writes only a crash report.
 */
#define DIPC_DUMP_FLAG_CRASH_REPORT_ONLY 8

/*
 Both files.
 */
#define DIPC_PERF_MAP_ALL 1

/*
 `jit-PID.dump`.
 */
#define DIPC_PERF_MAP_JIT_DUMP 2

/*
 `perf-PID.map`.
 */
#define DIPC_PERF_MAP_PERF_MAP 3

/*
 The runtime drops events.
 */
#define DIPC_BUFFER_MODE_DROP 0

/*
 The runtime blocks the threads that raise events.
 */
#define DIPC_BUFFER_MODE_BLOCK 1

/*
 A session that streams.
 */
#define DIPC_SESSION_STREAMING 0

/*
 A session that writes to `user_events`, on Linux.
 */
#define DIPC_SESSION_USER_EVENTS 1

/*
 Nothing: the exchange is over, or waits for the caller.
 */
#define DIPC_STEP_DONE 0

/*
 Write some of the bytes. Write all of them in one piece if possible: .NET Core 3.1 refuses a message in two pieces.
 */
#define DIPC_STEP_SEND 1

/*
 Read some bytes into the space.
 */
#define DIPC_STEP_RECEIVE 2

/*
 The length of the header of a message.
 */
#define DIPC_HEADER_LEN 20

/*
 The length of the longest message.
 */
#define DIPC_MESSAGE_MAX_LEN 65535

/*
 The code of the answer to a command that succeeded.
 */
#define DIPC_CODE_OK 65280

/*
 The code of the answer to a command that was refused.
 */
#define DIPC_CODE_ERROR 65535

/*
 An integer: `number`, sign-extended. `name` is the name of the value if it has one.
 */
#define DIPC_PART_NUMBER 0

/*
 A bool: `number` is 0 or 1.
 */
#define DIPC_PART_BOOL 1

/*
 A text: `text`, which can be null.
 */
#define DIPC_PART_TEXT 2

/*
 A GUID: 16 `bytes` in .NET's order.
 */
#define DIPC_PART_GUID 3

/*
 A result code: `number`. `name` is its name if it has one.
 */
#define DIPC_PART_HRESULT 4

/*
 A reserved number: `number`, which senders set to 0 and receivers ignore.
 */
#define DIPC_PART_RESERVED 5

/*
 Bytes of no other kind.
 */
#define DIPC_PART_BYTES 6

/*
 No text. The protocol distinguishes it from an empty text: a variable that is set to null is removed.
 */
#define DIPC_TEXT_NULL 0

/*
 UTF-8; `len` is the number of bytes, without a NUL. Must be valid.
 */
#define DIPC_TEXT_UTF8 1

/*
 UTF-16 in the byte order of the machine, aligned; `len` is the number of code units. Can have lone surrogates.
 */
#define DIPC_TEXT_UTF16 2

/*
 UTF-16 in little-endian byte order, not aligned; `len` is the number of code units. The form of texts in messages.
 */
#define DIPC_TEXT_WIRE 3

/*
 The result of a function. Values from 64 on are errors in received bytes.

 Some results have a number: functions with a parameter `detail` store it there, unless `detail` is null.
 */
enum dipc_status
#ifdef __cplusplus
  : int32_t
#endif // __cplusplus
 {
    /*
     The function succeeded.
     */
    DIPC_STATUS_OK = 0,
    /*
     More bytes are needed; `detail` is the number of bytes needed in total, as far as it is known. Not an error.
     */
    DIPC_STATUS_MORE = 1,
    /*
     There is no such part, command, name or entry.
     */
    DIPC_STATUS_NOT_FOUND = 2,
    /*
     A buffer is too small; `detail` is the required size in its elements.
     */
    DIPC_STATUS_BUFFER_TOO_SMALL = 4,
    /*
     The message would be longer than 65,535 bytes; `detail` is the length that it would have.
     */
    DIPC_STATUS_MESSAGE_TOO_LONG = 5,
    /*
     A value of the request has a valid layout, but runtimes refuse it; `detail` is the number of the rule.
     */
    DIPC_STATUS_VIOLATION = 6,
    /*
     The peer closed the connection before its message was complete; `detail` is the number of its bytes that arrived.
     */
    DIPC_STATUS_CLOSED = 7,
    /*
     A message arrived that is not an answer; `detail` is its code.
     */
    DIPC_STATUS_UNEXPECTED = 8,
    /*
     The peer announces more bytes than the caller allows; `detail` is their number.
     */
    DIPC_STATUS_LIMIT_EXCEEDED = 9,
    /*
     Misuse: a pointer is null that must not be.
     */
    DIPC_STATUS_NULL_POINTER = 32,
    /*
     Misuse: a pointer is not aligned for its type.
     */
    DIPC_STATUS_MISALIGNED = 33,
    /*
     Misuse: a length is larger than any object of C.
     */
    DIPC_STATUS_INVALID_LENGTH = 34,
    /*
     Misuse: the object is not initialised, or is of another kind than the function expects.
     */
    DIPC_STATUS_WRONG_KIND = 35,
    /*
     Misuse: an argument has no meaning: a form of text that does not exist, or invalid UTF-8.
     */
    DIPC_STATUS_INVALID_ARGUMENT = 36,
    /*
     The bytes are malformed in a way that has no status of its own.
     */
    DIPC_STATUS_MALFORMED_BYTES = 127,
    /*
     A field extends past the end of the region that contains it. For errors in bytes, `detail` is the offset.
     */
    DIPC_STATUS_UNEXPECTED_END = 64,
    /*
     The first bytes are not those of a message.
     */
    DIPC_STATUS_BAD_MAGIC = 65,
    /*
     The first bytes are not those of an advertise frame.
     */
    DIPC_STATUS_BAD_ADVERTISE = 66,
    /*
     A size field is smaller than its structure.
     */
    DIPC_STATUS_BAD_SIZE = 67,
    /*
     The last unit of a string is not NUL.
     */
    DIPC_STATUS_UNTERMINATED = 68,
    /*
     A count is too large for the remaining bytes.
     */
    DIPC_STATUS_COUNT_TOO_LARGE = 69,
    /*
     Bytes follow where none are allowed.
     */
    DIPC_STATUS_TRAILING_BYTES = 70,
    /*
     The message is longer than the buffer for it.
     */
    DIPC_STATUS_TOO_LONG = 71,
    /*
     A variable-length integer has more bytes or more bits than its type.
     */
    DIPC_STATUS_BAD_VARINT = 72,
    /*
     A type code or a kind is not documented, or not allowed in this place.
     */
    DIPC_STATUS_UNKNOWN_TYPE = 73,
    /*
     Objects and arrays are nested deeper than any writer does.
     */
    DIPC_STATUS_TOO_DEEP = 74,
    /*
     A payload has more values than its bytes can contain.
     */
    DIPC_STATUS_TOO_MANY_ITEMS = 75,
    /*
     The version of a layout is not documented.
     */
    DIPC_STATUS_UNKNOWN_VERSION = 76,
    /*
     The bytes have several meanings, and the input does not state which one applies.
     */
    DIPC_STATUS_AMBIGUOUS = 77,
    /*
     A description belongs to another event than the one it was sent with.
     */
    DIPC_STATUS_OTHER_EVENT = 78,
    /*
     Fields are described in a second way although the first one must be empty then.
     */
    DIPC_STATUS_DESCRIBED_TWICE = 79,
};
#ifndef __cplusplus
typedef int32_t dipc_status;
#endif // __cplusplus

/*
 The code of each command.
 */
enum dipc_command
#ifdef __cplusplus
  : uint16_t
#endif // __cplusplus
 {
    /*
    `CreateCoreDump` in the specification; since .NET 3.
     */
    DIPC_COMMAND_GENERATE_CORE_DUMP = 257,
    /*
    `CreateCoreDump2` in the specification; since .NET 6.
     */
    DIPC_COMMAND_GENERATE_CORE_DUMP2 = 258,
    /*
    `CreateCoreDump3` in the specification; since .NET 7.
     */
    DIPC_COMMAND_GENERATE_CORE_DUMP3 = 259,
    /*
    `StopTracing` in the specification; since .NET 3.
     */
    DIPC_COMMAND_STOP_TRACING = 513,
    /*
    `CollectTracing` in the specification; since .NET 3.
     */
    DIPC_COMMAND_COLLECT_TRACING = 514,
    /*
    `CollectTracing2` in the specification; since .NET 3.
     */
    DIPC_COMMAND_COLLECT_TRACING2 = 515,
    /*
    `CollectTracing3` in the specification; since .NET 9.
     */
    DIPC_COMMAND_COLLECT_TRACING3 = 516,
    /*
    `CollectTracing4` in the specification; since .NET 9.
     */
    DIPC_COMMAND_COLLECT_TRACING4 = 517,
    /*
    `CollectTracing5` in the specification; since .NET 10.
     */
    DIPC_COMMAND_COLLECT_TRACING5 = 518,
    /*
    `CollectTracing6` in the specification; since .NET 11.
     */
    DIPC_COMMAND_COLLECT_TRACING6 = 519,
    /*
    `AttachProfiler` in the specification; since .NET 3.
     */
    DIPC_COMMAND_ATTACH_PROFILER = 769,
    /*
    `StartupProfiler` in the specification; since .NET 6.
     */
    DIPC_COMMAND_STARTUP_PROFILER = 770,
    /*
    `ProcessInfo` in the specification; since .NET 5.
     */
    DIPC_COMMAND_GET_PROCESS_INFO = 1024,
    /*
    `ResumeRuntime` in the specification; since .NET 5.
     */
    DIPC_COMMAND_RESUME_RUNTIME = 1025,
    /*
    `ProcessEnvironment` in the specification; since .NET 5.
     */
    DIPC_COMMAND_GET_PROCESS_ENVIRONMENT = 1026,
    /*
    `SetEnvironmentVariable` in the specification; since .NET 6.
     */
    DIPC_COMMAND_SET_ENVIRONMENT_VARIABLE = 1027,
    /*
    `ProcessInfo2` in the specification; since .NET 6.
     */
    DIPC_COMMAND_GET_PROCESS_INFO2 = 1028,
    /*
    `EnablePerfMap` in the specification; since .NET 8.
     */
    DIPC_COMMAND_ENABLE_PERF_MAP = 1029,
    /*
    `DisablePerfMap` in the specification; since .NET 8.
     */
    DIPC_COMMAND_DISABLE_PERF_MAP = 1030,
    /*
    `ApplyStartupHook` in the specification; since .NET 8.
     */
    DIPC_COMMAND_APPLY_STARTUP_HOOK = 1031,
    /*
    `ProcessInfo3` in the specification; since .NET 8.
     */
    DIPC_COMMAND_GET_PROCESS_INFO3 = 1032,
};
#ifndef __cplusplus
typedef uint16_t dipc_command;
#endif // __cplusplus

/*
 The name of a part, with the names of the parts that contain it: `providers[0].filter.enable`. It is valid only during
 the call of the function that receives the part.
 */
typedef struct dipc_path dipc_path;

/*
 An exchange of any kind, in memory of the caller. It can be moved and copied with `memcpy`, as long as only one copy
 is used further.

 Set it to zeros or initialise it before another function receives it: functions then return
 `DIPC_STATUS_WRONG_KIND` for one that is not initialised, or of another kind.
 */
typedef struct dipc_exchange {
    /*
     The state.
     */
    uint64_t opaque[14];
} dipc_exchange;

/*
 A runtime's answer to a command.
 */
typedef struct dipc_answer {
    /*
     Whether the runtime refused the command. `hresult` is the reason; the answer to GenerateCoreDump3 also has a text:
     the part `message`.
     */
    bool refused;
    /*
     The reason of a refusal, otherwise 0.
     */
    uint32_t hresult;
    /*
     The bytes of the answer, a whole message in the buffer of the call. A
     `dipc_read_*` function decodes it, and `dipc_find` finds its parts.
     */
    const uint8_t *bytes;
    /*
     Their number.
     */
    size_t len;
} dipc_answer;

/*
 A text, which belongs to someone else: the caller's string, or a part of a message or trace. It is valid as long as
 those bytes are. All zeros are a null text.
 */
typedef struct dipc_text {
    /*
     The first code unit.
     */
    const void *data;
    /*
     The number of code units.
     */
    size_t len;
    /*
     One of `DIPC_TEXT_*`.
     */
    uint32_t form;
} dipc_text;

/*
 The content of a dump: one of `DIPC_DUMP_*`.
 */
typedef uint32_t dipc_dump_type;

/*
 Options of the dump writer: any of `DIPC_DUMP_FLAG_*`, or 0.
 */
typedef uint32_t dipc_dump_flags;

/*
 The format of a stream: one of `DIPC_FORMAT_*`.
 */
typedef uint32_t dipc_format;

/*
 The verbosity of a provider: one of `DIPC_LEVEL_*`.
 */
typedef uint32_t dipc_event_level;

/*
 A provider to enable.
 */
typedef struct dipc_provider {
    /*
     Groups of events, one bit each; the provider defines them.
     */
    uint64_t keywords;
    /*
     The verbosity: one of `DIPC_LEVEL_*`.
     */
    dipc_event_level level;
    /*
     The name of the provider; not empty.
     */
    struct dipc_text name;
    /*
     Settings for the provider: `key=value` joined by `;`. Can be null.
     */
    struct dipc_text arguments;
} dipc_provider;

/*
 A list: `count` items, in memory of the caller. `items` can be null if there are none.
 */
typedef struct dipc_providers {
    /*
     The first item.
     */
    const struct dipc_provider *items;
    /*
     The number of items.
     */
    size_t count;
} dipc_providers;

/*
 A list: `count` items, in memory of the caller. `items` can be null if there are none.
 */
typedef struct dipc_event_ids {
    /*
     The first item.
     */
    const uint32_t *items;
    /*
     The number of items.
     */
    size_t count;
} dipc_event_ids;

/*
 A filter of the events of a provider by their ids. All zeros: no filter.
 */
typedef struct dipc_event_filter {
    /*
     Whether the ids select the events to send, or those not to send.
     */
    bool enable;
    /*
     The ids.
     */
    struct dipc_event_ids event_ids;
} dipc_event_filter;

/*
 A provider of a stream with a filter.
 */
typedef struct dipc_streaming_provider {
    /*
     As in `dipc_provider`.
     */
    uint64_t keywords;
    /*
     As in `dipc_provider`.
     */
    dipc_event_level level;
    /*
     As in `dipc_provider`.
     */
    struct dipc_text name;
    /*
     As in `dipc_provider`.
     */
    struct dipc_text arguments;
    /*
     The filter of its events.
     */
    struct dipc_event_filter filter;
} dipc_streaming_provider;

/*
 A list: `count` items, in memory of the caller. `items` can be null if there are none.
 */
typedef struct dipc_streaming_providers {
    /*
     The first item.
     */
    const struct dipc_streaming_provider *items;
    /*
     The number of items.
     */
    size_t count;
} dipc_streaming_providers;

/*
 The events for one tracepoint.
 */
typedef struct dipc_tracepoint_set {
    /*
     The name of the tracepoint; not empty.
     */
    struct dipc_text tracepoint_name;
    /*
     The ids of the events.
     */
    struct dipc_event_ids event_ids;
} dipc_tracepoint_set;

/*
 A list: `count` items, in memory of the caller. `items` can be null if there are none.
 */
typedef struct dipc_tracepoint_sets {
    /*
     The first item.
     */
    const struct dipc_tracepoint_set *items;
    /*
     The number of items.
     */
    size_t count;
} dipc_tracepoint_sets;

/*
 The tracepoints for the events of a provider. At least one field must not be null or empty.
 */
typedef struct dipc_tracepoint_config {
    /*
     The tracepoint for events that are in no set; if it is null, those events are not written.
     */
    struct dipc_text default_tracepoint_name;
    /*
     The tracepoints for sets of events.
     */
    struct dipc_tracepoint_sets sets;
} dipc_tracepoint_config;

/*
 A provider whose events are written to `user_events`.
 */
typedef struct dipc_user_events_provider {
    /*
     As in `dipc_provider`.
     */
    uint64_t keywords;
    /*
     As in `dipc_provider`.
     */
    dipc_event_level level;
    /*
     As in `dipc_provider`.
     */
    struct dipc_text name;
    /*
     As in `dipc_provider`.
     */
    struct dipc_text arguments;
    /*
     The filter of its events.
     */
    struct dipc_event_filter filter;
    /*
     The tracepoints for its events.
     */
    struct dipc_tracepoint_config tracepoints;
} dipc_user_events_provider;

/*
 A list: `count` items, in memory of the caller. `items` can be null if there are none.
 */
typedef struct dipc_user_events_providers {
    /*
     The first item.
     */
    const struct dipc_user_events_provider *items;
    /*
     The number of items.
     */
    size_t count;
} dipc_user_events_providers;

/*
 The kind of session. A session that writes to `user_events` has `rundown_keyword` and `user_events_providers` only.
 */
typedef struct dipc_session_config {
    /*
     One of `DIPC_SESSION_*`.
     */
    uint32_t session_type;
    /*
     Size of the runtime's buffer in MB; not 0.
     */
    uint32_t buffer_mb;
    /*
     Format of the stream.
     */
    dipc_format format;
    /*
     Whether events have stacks.
     */
    bool stackwalk;
    /*
     Keywords of the rundown provider; 0 for no rundown.
     */
    uint64_t rundown_keyword;
    /*
     The providers of a session that streams.
     */
    struct dipc_streaming_providers providers;
    /*
     The providers of a session that writes to `user_events`.
     */
    struct dipc_user_events_providers user_events_providers;
} dipc_session_config;

/*
 The runtime's behaviour when the buffer of a session is full: one of `DIPC_BUFFER_MODE_*`.
 */
typedef uint32_t dipc_session_buffer_mode;

/*
 As `dipc_session_config`, but a stream has a buffer mode.
 */
typedef struct dipc_session_config6 {
    /*
     The session.
     */
    struct dipc_session_config session;
    /*
     The behaviour when the buffer of a stream is full.
     */
    dipc_session_buffer_mode session_buffer_mode;
} dipc_session_config6;

/*
 A GUID in .NET's order: the first three groups of its text are little-endian numbers.
 */
typedef struct dipc_guid {
    /*
     The bytes.
     */
    uint8_t bytes[16];
} dipc_guid;

/*
 Bytes for a profiler. `data` can be null if there are none.
 */
typedef struct dipc_client_data {
    /*
     The first byte.
     */
    const uint8_t *data;
    /*
     The number of bytes.
     */
    size_t len;
} dipc_client_data;

/*
 The files to write for `perf`: one of `DIPC_PERF_MAP_*`.
 */
typedef uint32_t dipc_perf_map_type;

/*
 A row of the table of commands.
 */
typedef struct dipc_command_row {
    /*
     The code.
     */
    uint16_t code;
    /*
     The first major version of .NET with this command.
     */
    uint8_t since;
    /*
     The name, as in Microsoft's client.
     */
    struct dipc_text name;
    /*
     The name in the specification.
     */
    struct dipc_text specification_name;
} dipc_command_row;

/*
 The next action of an exchange.
 */
typedef struct dipc_step {
    /*
     One of `DIPC_STEP_*`.
     */
    uint32_t kind;
    /*
     The bytes to write, or the space to fill, in the buffer of the exchange.
     */
    uint8_t *data;
    /*
     Their number.
     */
    size_t len;
} dipc_step;

/*
 A message, in the bytes that it was parsed from.
 */
typedef struct dipc_message {
    /*
     The code of a command, or of an answer.
     */
    uint16_t code;
    /*
     The bytes after the header.
     */
    const uint8_t *payload;
    /*
     Their number.
     */
    size_t payload_len;
    /*
     The number of bytes of the whole message.
     */
    size_t len;
} dipc_message;

/*
 A part of a message: a field of the header or of the payload.
 */
typedef struct dipc_part {
    /*
     The name of the part; null in a part that `dipc_find` returns.
     */
    const struct dipc_path *path;
    /*
     One of `DIPC_PART_*`.
     */
    uint32_t kind;
    /*
     The offset of its bytes from the start of the message.
     */
    size_t offset;
    /*
     Its bytes, inside the message. Those of a text include its NUL, but not its count, which is a part of its own.
     */
    const uint8_t *bytes;
    /*
     Their number.
     */
    size_t len;
    /*
     The value as a number, for the kinds that have one.
     */
    uint64_t number;
    /*
     The value as a text, for `DIPC_PART_TEXT`.
     */
    struct dipc_text text;
    /*
     The name of the value, or null.
     */
    struct dipc_text name;
} dipc_part;

/*
 A function that receives the parts of a message, in order. It must return: no `longjmp`, no C++ exception.
 */
typedef void (*dipc_visit)(void *context, const struct dipc_part *part);

/*
 The description of a process. Fields that the answer does not have are null or 0.
 */
typedef struct dipc_process_info {
    /*
     The version of the answer, from GetProcessInfo3 only.
     */
    uint32_t version;
    /*
     The process id, in the PID namespace of the process.
     */
    uint64_t process_id;
    /*
     The identity of the runtime: a random value for each start.
     */
    struct dipc_guid runtime_cookie;
    /*
     The command line of the process.
     */
    struct dipc_text command_line;
    /*
     `Windows`, `Linux`, `macOS` and others.
     */
    struct dipc_text os;
    /*
     `x86`, `x64`, `arm32`, `arm64` and others.
     */
    struct dipc_text arch;
    /*
     The assembly of the entry point, not from GetProcessInfo. It can be empty while the runtime is suspended.
     */
    struct dipc_text managed_entrypoint_assembly_name;
    /*
     The runtime's version, not from GetProcessInfo.
     */
    struct dipc_text clr_product_version;
    /*
     The platform, for example `linux-x64`, from GetProcessInfo3 only.
     */
    struct dipc_text portable_rid;
} dipc_process_info;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Returns the `DIPC_VERSION` of the library.
 */
uint32_t dipc_version(void);

extern void dotnet_ipc_can_panic(void);

/*
 Initialises `exchange` as a call: it sends the message of `len` bytes at the front of `buf`, which a `dipc_build_*`
 function has written, and receives the answer into `buf`. A connection carries one call.

 The call uses `buf` until its answer is not needed any more. 64 KiB are always enough, 4 KiB nearly always.

 Returns an error if the `len` bytes are not exactly one message.
 */
dipc_status dipc_call_init(struct dipc_exchange *exchange, uint8_t *buf, size_t size, size_t len, size_t *detail);

/*
 Stores the answer that a call has received in `answer`, which then points into the buffer of the call. A refusal is an
 answer too. The payload of an OK answer is not checked yet.

 Returns the error that ended the exchange, `DIPC_STATUS_CLOSED` if it is not over, or that a refusal is malformed.
 */
dipc_status dipc_call_finish(struct dipc_exchange *exchange, struct dipc_answer *answer, size_t *detail);

/*
Writes the request `GenerateCoreDump` (`0x0101`, since .NET 3) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_GenerateCoreDump(uint8_t *buf,
                                        size_t size,
                                        size_t *len,
                                        struct dipc_text dump_name,
                                        dipc_dump_type dump_type,
                                        uint32_t diagnostics);

/*
Writes the request `GenerateCoreDump2` (`0x0102`, since .NET 6) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_GenerateCoreDump2(uint8_t *buf,
                                         size_t size,
                                         size_t *len,
                                         struct dipc_text dump_name,
                                         dipc_dump_type dump_type,
                                         dipc_dump_flags flags);

/*
Writes the request `GenerateCoreDump3` (`0x0103`, since .NET 7) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_GenerateCoreDump3(uint8_t *buf,
                                         size_t size,
                                         size_t *len,
                                         struct dipc_text dump_name,
                                         dipc_dump_type dump_type,
                                         dipc_dump_flags flags);

/*
Writes the request `StopTracing` (`0x0201`, since .NET 3) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_StopTracing(uint8_t *buf,
                                   size_t size,
                                   size_t *len,
                                   uint64_t session_id);

/*
Writes the request `CollectTracing` (`0x0202`, since .NET 3) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_CollectTracing(uint8_t *buf,
                                      size_t size,
                                      size_t *len,
                                      uint32_t buffer_mb,
                                      dipc_format format,
                                      struct dipc_providers providers);

/*
Writes the request `CollectTracing2` (`0x0203`, since .NET 3) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_CollectTracing2(uint8_t *buf,
                                       size_t size,
                                       size_t *len,
                                       uint32_t buffer_mb,
                                       dipc_format format,
                                       bool rundown,
                                       struct dipc_providers providers);

/*
Writes the request `CollectTracing3` (`0x0204`, since .NET 9) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_CollectTracing3(uint8_t *buf,
                                       size_t size,
                                       size_t *len,
                                       uint32_t buffer_mb,
                                       dipc_format format,
                                       bool rundown,
                                       bool stackwalk,
                                       struct dipc_providers providers);

/*
Writes the request `CollectTracing4` (`0x0205`, since .NET 9) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_CollectTracing4(uint8_t *buf,
                                       size_t size,
                                       size_t *len,
                                       uint32_t buffer_mb,
                                       dipc_format format,
                                       uint64_t rundown_keyword,
                                       bool stackwalk,
                                       struct dipc_providers providers);

/*
Writes the request `CollectTracing5` (`0x0206`, since .NET 10) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_CollectTracing5(uint8_t *buf,
                                       size_t size,
                                       size_t *len,
                                       struct dipc_session_config session);

/*
Writes the request `CollectTracing6` (`0x0207`, since .NET 11) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_CollectTracing6(uint8_t *buf,
                                       size_t size,
                                       size_t *len,
                                       struct dipc_session_config6 session);

/*
Writes the request `AttachProfiler` (`0x0301`, since .NET 3) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_AttachProfiler(uint8_t *buf,
                                      size_t size,
                                      size_t *len,
                                      uint32_t attach_timeout,
                                      struct dipc_guid profiler_guid,
                                      struct dipc_text profiler_path,
                                      struct dipc_client_data client_data);

/*
Writes the request `StartupProfiler` (`0x0302`, since .NET 6) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_StartupProfiler(uint8_t *buf,
                                       size_t size,
                                       size_t *len,
                                       struct dipc_guid profiler_guid,
                                       struct dipc_text profiler_path);

/*
Writes the request `GetProcessInfo` (`0x0400`, since .NET 5) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_GetProcessInfo(uint8_t *buf,
                                      size_t size,
                                      size_t *len);

/*
Writes the request `ResumeRuntime` (`0x0401`, since .NET 5) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_ResumeRuntime(uint8_t *buf,
                                     size_t size,
                                     size_t *len);

/*
Writes the request `GetProcessEnvironment` (`0x0402`, since .NET 5) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_GetProcessEnvironment(uint8_t *buf,
                                             size_t size,
                                             size_t *len);

/*
Writes the request `SetEnvironmentVariable` (`0x0403`, since .NET 6) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_SetEnvironmentVariable(uint8_t *buf,
                                              size_t size,
                                              size_t *len,
                                              struct dipc_text name,
                                              struct dipc_text value);

/*
Writes the request `GetProcessInfo2` (`0x0404`, since .NET 6) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_GetProcessInfo2(uint8_t *buf,
                                       size_t size,
                                       size_t *len);

/*
Writes the request `EnablePerfMap` (`0x0405`, since .NET 8) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_EnablePerfMap(uint8_t *buf,
                                     size_t size,
                                     size_t *len,
                                     dipc_perf_map_type perf_map_type);

/*
Writes the request `DisablePerfMap` (`0x0406`, since .NET 8) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_DisablePerfMap(uint8_t *buf,
                                      size_t size,
                                      size_t *len);

/*
Writes the request `ApplyStartupHook` (`0x0407`, since .NET 8) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_ApplyStartupHook(uint8_t *buf,
                                        size_t size,
                                        size_t *len,
                                        struct dipc_text startup_hook_path);

/*
Writes the request `GetProcessInfo3` (`0x0408`, since .NET 8) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_build_GetProcessInfo3(uint8_t *buf,
                                       size_t size,
                                       size_t *len);

/*
 Stores the command with this index in `row`, in the order of their codes from index 0 on.

 Returns `DIPC_STATUS_NOT_FOUND` if there are not so many.
 */
dipc_status dipc_command_at(size_t index, struct dipc_command_row *row);

/*
 Stores the command with this code in `row`.

 Returns `DIPC_STATUS_NOT_FOUND` if the code is unknown.
 */
dipc_status dipc_command_find(uint16_t code, struct dipc_command_row *row);

/*
 Initialises `exchange` as the receiver of the environment that follows `answer`, the bytes of the OK answer to
 GetProcessEnvironment, on the same connection.

 The environment arrives in pieces of the size of `buf`, which must be large enough for the longest entry, and can be
 the buffer of the call. Drive the exchange until its step is `DIPC_STEP_DONE`, take the entries that have arrived with
 `dipc_environment_next`, and continue until `dipc_environment_is_finished`.

 Returns `DIPC_STATUS_LIMIT_EXCEEDED` if more than `limit` bytes are announced.
 */
dipc_status dipc_environment_init(struct dipc_exchange *exchange,
                                  const uint8_t *answer,
                                  size_t len,
                                  uint32_t limit,
                                  uint8_t *buf,
                                  size_t size,
                                  size_t *detail);

/*
 Stores the next entry, usually `NAME=value`, in `entry`. It is valid until the next function receives the exchange.

 Returns `DIPC_STATUS_NOT_FOUND` if no further entry has arrived: drive the exchange, unless it is finished. Returns
 `DIPC_STATUS_BUFFER_TOO_SMALL` for an entry that is longer than the buffer, and an error for malformed bytes.
 */
dipc_status dipc_environment_next(struct dipc_exchange *exchange, struct dipc_text *entry, size_t *detail);

/*
 Returns whether every entry has been taken; false if `exchange` is of another kind.
 */
bool dipc_environment_is_finished(struct dipc_exchange *exchange);

/*
 Stores the next action of an exchange in `step`. Without `dipc_exchange_advance` in between, it stays the same.

 Returns `DIPC_STATUS_BUFFER_TOO_SMALL` while the exchange needs a larger buffer: see `dipc_exchange_set_buffer`.
 */
dipc_status dipc_exchange_step(struct dipc_exchange *exchange, struct dipc_step *step, size_t *detail);

/*
 Reports how many of the bytes of the last step were written or filled; 0 means that the peer closed the connection. A
 connection that was reset counts as closed.

 Returns an error if the received bytes are not a message, or the peer closed too early. Errors are final: the next
 step is `DIPC_STEP_DONE`. After `DIPC_STATUS_BUFFER_TOO_SMALL` the exchange can continue in a larger buffer.
 */
dipc_status dipc_exchange_advance(struct dipc_exchange *exchange, size_t n, size_t *detail);

/*
 Replaces the buffer of an exchange. `buf` must begin with the bytes of the old buffer, for example because `realloc`
 returned it. Steps and texts from before are no longer valid.

 Returns `DIPC_STATUS_BUFFER_TOO_SMALL` if `buf` is still too small; the exchange then has its old buffer.
 */
dipc_status dipc_exchange_set_buffer(struct dipc_exchange *exchange, uint8_t *buf, size_t size, size_t *detail);

/*
 Returns the size of a `dipc_exchange` in bytes: that of the header which the library was compiled with.
 */
size_t dipc_exchange_size(void);

/*
 Returns the name of an HRESULT as in the specification, for example `DS_IPC_E_UNKNOWN_COMMAND`; null for one without a
 name.
 */
struct dipc_text dipc_hresult_name(uint32_t hresult);

/*
 Returns the meaning of an HRESULT for a user, in English; null for one without a name.
 */
struct dipc_text dipc_hresult_hint(uint32_t hresult);

/*
 Parses the message at the front of `bytes`, and stores its parts in `message`, which then points into `bytes`.

 Returns `DIPC_STATUS_MORE` if the message is longer than `bytes`; `detail` is the number of bytes needed in total, as
 far as it is known. A wrong magic is an error at its first wrong byte.
 */
dipc_status dipc_parse(const uint8_t *bytes, size_t len, struct dipc_message *message, size_t *detail);

/*
 Passes every part of the message at the front of `bytes` to `visit`, with `context`: the header, the fields, and as
 `rest` the bytes after the known fields, in order and without a gap.

 `answer_to` is the code of the command that an answer belongs to, or 0. Without it the payload of an OK answer is one
 part, `payload`; so is the payload of an unknown command.

 Returns an error if the message is malformed or cut off; the parts before it have been visited then.
 */
dipc_status dipc_inspect(const uint8_t *bytes,
                         size_t len,
                         uint16_t answer_to,
                         dipc_visit visit,
                         void *context,
                         size_t *detail);

/*
 Finds the part of a message that has the name `path`, for example `clr_product_version` or `providers[0].name`, and
 stores it in `part`. `answer_to` is as in `dipc_inspect`. Of two parts with one name, the last is found: the count of
 a text has a name of its own, `NAME.count`.

 Returns `DIPC_STATUS_NOT_FOUND` if the message has no such part, and an error if the message is malformed or cut off.
 */
dipc_status dipc_find(const uint8_t *bytes,
                      size_t len,
                      uint16_t answer_to,
                      const char *path,
                      struct dipc_part *part,
                      size_t *detail);

/*
 Writes the name of a part into `text`, as UTF-8 with a NUL at the end.

 `len` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
 and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_path_text(const struct dipc_path *path, char *text, size_t size, size_t *len);

/*
 Checks the request at the front of `bytes` as a runtime does before it carries out the command.

 Returns `DIPC_STATUS_VIOLATION` for a value that runtimes refuse, with the number of the rule in `detail`, and another
 error for malformed bytes. `hresult`, which can be null, then receives the code with which a runtime refuses the
 request. An unknown command breaks no rule.
 */
dipc_status dipc_check(const uint8_t *bytes, size_t len, uint32_t *hresult, size_t *detail);

/*
 Stores the description in the OK answer to a `command`, which is GetProcessInfo, GetProcessInfo2 or GetProcessInfo3. Its
 texts point into `answer`.

 Returns `DIPC_STATUS_INVALID_ARGUMENT` for another command, `DIPC_STATUS_UNEXPECTED` for a refusal, and an error if the
 answer is malformed.
 */
dipc_status dipc_read_process_info(const uint8_t *answer,
                                   size_t len,
                                   uint16_t command,
                                   struct dipc_process_info *info,
                                   size_t *detail);

/*
 Stores the id in the OK answer to StopTracing or to a command that starts a session.

 Returns `DIPC_STATUS_UNEXPECTED` for a refusal, and an error if the answer is malformed.
 */
dipc_status dipc_read_session_id(const uint8_t *answer, size_t len, uint64_t *session_id, size_t *detail);

/*
 Writes the English sentence for a status and its `detail` into `text`, as UTF-8 with a NUL at the end. For a
 `DIPC_STATUS_VIOLATION` the sentence names the rule.

 `len` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
 and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_status_text(int32_t status, size_t detail, char *text, size_t size, size_t *len);

/*
 Returns the UTF-8 text at `text`, up to its NUL, as a text; null for a null pointer.
 */
struct dipc_text dipc_utf8(const char *text);

/*
 Writes a text into `utf8`, as UTF-8 with a NUL at the end, and U+FFFD for each lone surrogate. A null text is written
 as an empty one.

 `len` receives the number of bytes without the NUL. If `size` is too small, `utf8` receives the characters that fit
 and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_text_to_utf8(struct dipc_text text, char *utf8, size_t size, size_t *len);

/*
 Writes the code units of a text into `utf16`, without a NUL. A null text is written as an empty one.

 `len` receives the number of code units. If `size`, in code units, is too small, `utf16` receives those that fit, `len`
 the number of all, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_text_to_utf16(struct dipc_text text, uint16_t *utf16, size_t size, size_t *len);

/*
 Returns whether two texts have the same code units, in whatever forms. Null differs from every text but null. An
 invalid text equals none.
 */
bool dipc_text_equals(struct dipc_text a, struct dipc_text b);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DOTNET_IPC_H */
