/**
 * @file
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

/**
 * The version of the interface: the major version in the upper 16 bits, the minor version in the lower ones. A program
 * that was compiled with this header works with a library of the same major version and of this or a later minor
 * version.
 */
#define DIPC_VERSION 1

/**
 * The length of an advertise frame in bytes.
 */
#define DIPC_ADVERTISE_LEN 34

/**
 * The time in milliseconds after which a monitor drops a connection without a frame.
 */
#define DIPC_ADVERTISE_RECEIVE_MS 250

/**
 * The time in milliseconds after which a runtime stops sending its frame.
 */
#define DIPC_ADVERTISE_SEND_MS 100

/**
 * All events, regardless of their level.
 */
#define DIPC_LEVEL_LOG_ALWAYS 0

/**
 * Critical errors.
 */
#define DIPC_LEVEL_CRITICAL 1

/**
 * Errors.
 */
#define DIPC_LEVEL_ERROR 2

/**
 * Warnings.
 */
#define DIPC_LEVEL_WARNING 3

/**
 * Information; the default of most tools.
 */
#define DIPC_LEVEL_INFORMATIONAL 4

/**
 * All events, including details.
 */
#define DIPC_LEVEL_VERBOSE 5

/**
 * NetPerf, the old format.
 */
#define DIPC_FORMAT_NET_PERF 0

/**
 * NetTrace.
 */
#define DIPC_FORMAT_NET_TRACE 1

/**
 * Threads and modules.
 */
#define DIPC_DUMP_NORMAL 1

/**
 * Threads, modules and the managed heap.
 */
#define DIPC_DUMP_WITH_HEAP 2

/**
 * As normal, without personal data.
 */
#define DIPC_DUMP_TRIAGE 3

/**
 * All memory.
 */
#define DIPC_DUMP_FULL 4

/**
 * The dump writer logs to the target's console.
 */
#define DIPC_DUMP_FLAG_LOGGING 1

/**
 * The dump writer logs more.
 */
#define DIPC_DUMP_FLAG_VERBOSE_LOGGING 2

/**
 * The dump writer also writes a crash report.
 */
#define DIPC_DUMP_FLAG_CRASH_REPORT 4

/**
 * The dump writer writes only a crash report.
 */
#define DIPC_DUMP_FLAG_CRASH_REPORT_ONLY 8

/**
 * Both files.
 */
#define DIPC_PERF_MAP_ALL 1

/**
 * `jit-PID.dump`.
 */
#define DIPC_PERF_MAP_JIT_DUMP 2

/**
 * `perf-PID.map`.
 */
#define DIPC_PERF_MAP_PERF_MAP 3

/**
 * The runtime drops events.
 */
#define DIPC_BUFFER_MODE_DROP 0

/**
 * The runtime blocks the threads that raise events.
 */
#define DIPC_BUFFER_MODE_BLOCK 1

/**
 * A session that streams.
 */
#define DIPC_SESSION_TYPE_STREAMING 0

/**
 * A session that writes to `user_events`, on Linux.
 */
#define DIPC_SESSION_TYPE_USER_EVENTS 1

/**
 * The runtime connects to a monitor at the address.
 */
#define DIPC_PORT_CONNECT 0

/**
 * The runtime listens at the address.
 */
#define DIPC_PORT_LISTEN 1

/**
 * A mistake that this version of the header does not have.
 */
#define DIPC_FINDING_OTHER 0

/**
 * The variable `name` is set under both names to different values, and `part`, the old name, is ignored.
 */
#define DIPC_FINDING_SHADOWED 1

/**
 * This runtime does not read the variable `name`: `meant` is the name that it reads.
 */
#define DIPC_FINDING_UNREAD 2

/**
 * The value `text` of `name` is neither 0 nor 1, or is read as another number, or counts as unset.
 */
#define DIPC_FINDING_NUMBER 3

/**
 * Ports are requested, but disabled by the value `text` of `name`.
 */
#define DIPC_FINDING_DISABLED 4

/**
 * The list `text` in `name` contains no port.
 */
#define DIPC_FINDING_NO_PORTS 5

/**
 * The port `text` contains only commas, and counts as failed.
 */
#define DIPC_FINDING_ONLY_COMMAS 6

/**
 * `part` of the port `text` is not a tag and is ignored; `meant` is the tag that it resembles, or null.
 */
#define DIPC_FINDING_UNKNOWN_TAG 7

/**
 * The tag `part` of the port `text` is ignored, because the first of two that exclude each other counts.
 */
#define DIPC_FINDING_CONFLICT 8

/**
 * The tag `part` of the port `text` is in the place of the address, and is read as one.
 */
#define DIPC_FINDING_TAG_FOR_ADDRESS 9

/**
 * The address `text` begins or ends with blanks, which count.
 */
#define DIPC_FINDING_BLANKS 10

/**
 * The address `text` has a form that only tools accept; `meant` is the one for a runtime.
 */
#define DIPC_FINDING_SCHEME 11

/**
 * The address `text` is a path relative to the working directory.
 */
#define DIPC_FINDING_RELATIVE 12

/**
 * The address `text` is too long for a Unix socket, on macOS and perhaps on Linux.
 */
#define DIPC_FINDING_TOO_LONG 13

/**
 * The port with the address `text` listens, which only some runtimes do, and only on systems without a default port.
 */
#define DIPC_FINDING_LISTEN 14

/**
 * The address `text` is that of another port before it.
 */
#define DIPC_FINDING_SAME_ADDRESS 15

/**
 * The port with the address `text` suspends the runtime by default.
 */
#define DIPC_FINDING_SUSPENDS 16

/**
 * Wait as many milliseconds as the `len` of the step.
 */
#define DIPC_STEP_WAIT 4

/**
 * Wait for a command on the connection, and serve it.
 */
#define DIPC_STEP_SERVE 5

/**
 * The connection is established.
 */
#define DIPC_CONNECT_CONNECTED 0

/**
 * Connecting failed, or sending the frame did.
 */
#define DIPC_CONNECT_FAILED 1

/**
 * The wait is over.
 */
#define DIPC_CONNECT_WAITED 2

/**
 * `value` bytes were written; 0 counts as `DIPC_CONNECT_FAILED`.
 */
#define DIPC_CONNECT_SENT 3

/**
 * The monitor closed the connection before a command.
 */
#define DIPC_CONNECT_HUNG_UP 4

/**
 * The command is answered, or its stream has started.
 */
#define DIPC_CONNECT_ANSWERED 5

/**
 * Nothing: the exchange is over, or waits for the caller.
 */
#define DIPC_STEP_DONE 0

/**
 * Write some of the bytes. Write all of them in one piece if possible: .NET Core 3.1 refuses a message in two pieces.
 */
#define DIPC_STEP_SEND 1

/**
 * Read some bytes into the space.
 */
#define DIPC_STEP_RECEIVE 2

/**
 * Not known.
 */
#define DIPC_UNKNOWN 0

/**
 * Known to be so.
 */
#define DIPC_YES 1

/**
 * Known not to be so.
 */
#define DIPC_NO 2

/**
 * An unknown kind.
 */
#define DIPC_FLAVOUR_UNKNOWN 0

/**
 * The runtime of .NET and of .NET Core.
 */
#define DIPC_FLAVOUR_CORE_CLR 1

/**
 * Mono, the runtime of phones and browsers.
 */
#define DIPC_FLAVOUR_MONO 2

/**
 * The runtime in a program that was compiled ahead of time.
 */
#define DIPC_FLAVOUR_NATIVE_AOT 3

/**
 * The connection is established.
 */
#define DIPC_FALLBACK_CONNECTED 0

/**
 * The runtime accepts no connection at the time `value`. The step is attempted again later.
 */
#define DIPC_FALLBACK_BUSY 1

/**
 * `value` bytes were written; 0 means that the peer closed the connection.
 */
#define DIPC_FALLBACK_SENT 2

/**
 * `value` bytes were read; 0 means that the peer closed the connection.
 */
#define DIPC_FALLBACK_RECEIVED 3

/**
 * An object: the following fields up to `end`.
 */
#define DIPC_TYPE_OBJECT 1

/**
 * A code unit of UTF-16.
 */
#define DIPC_TYPE_UTF16_UNIT 4

/**
 * The 16 bytes of a .NET `Decimal`.
 */
#define DIPC_TYPE_DECIMAL 15

/**
 * An array after the number of its elements. The next field is its element, as it is for the other arrays.
 */
#define DIPC_TYPE_ARRAY 19

/**
 * A signed integer of up to 10 bytes.
 */
#define DIPC_TYPE_VARINT 20

/**
 * An unsigned integer of up to 10 bytes.
 */
#define DIPC_TYPE_VARUINT 21

/**
 * An array of `count` elements.
 */
#define DIPC_TYPE_FIXED_ARRAY 22

/**
 * A code unit of UTF-8.
 */
#define DIPC_TYPE_UTF8_UNIT 23

/**
 * An array elsewhere in the payload, at a distance from this field.
 */
#define DIPC_TYPE_RELATIVE_ARRAY 24

/**
 * An array elsewhere in the payload, at an offset.
 */
#define DIPC_TYPE_OFFSET_ARRAY 25

/**
 * A bool of 1 byte.
 */
#define DIPC_TYPE_BOOL8 26

/**
 * An array with as many elements as the last number whose `count` is 1 states.
 */
#define DIPC_TYPE_COUNTED_ARRAY 65

/**
 * UTF-8 after its length in bytes.
 */
#define DIPC_TYPE_UTF8 123

/**
 * The `parent` of a field that belongs to no object or array, but to the payload.
 */
#define DIPC_NO_PARENT UINT32_MAX

/**
 * The runtime could not read the request, or does not accept one of its values.
 */
#define DIPC_HRESULT_BAD_ENCODING 2148733828

/**
 * The runtime does not know the command.
 */
#define DIPC_HRESULT_UNKNOWN_COMMAND 2148733829

/**
 * The runtime does not support this version of the protocol.
 */
#define DIPC_HRESULT_UNKNOWN_MAGIC 2148733830

/**
 * The runtime failed and gives no reason. Only older texts of the specification contain this code.
 */
#define DIPC_HRESULT_UNKNOWN_ERROR 2148733831

/**
 * This kind of runtime, or its platform, does not have the command.
 */
#define DIPC_HRESULT_NOT_SUPPORTED 2148734229

/**
 * The runtime failed and gives no reason.
 */
#define DIPC_HRESULT_FAIL 2147500037

/**
 * The runtime is suspended at startup.
 */
#define DIPC_HRESULT_NOT_YET_AVAILABLE 2148733787

/**
 * The runtime has not finished its startup.
 */
#define DIPC_HRESULT_RUNTIME_UNINITIALIZED 2148733809

/**
 * The runtime does not accept this argument, or not in its current state.
 */
#define DIPC_HRESULT_INVALID_ARG 2147942487

/**
 * A buffer of the runtime is too small.
 */
#define DIPC_HRESULT_INSUFFICIENT_BUFFER 2147942522

/**
 * The runtime has no such environment variable.
 */
#define DIPC_HRESULT_ENVVAR_NOT_FOUND 2147942603

/**
 * As the code before; the specification lists this one, but runtimes send the other.
 */
#define DIPC_HRESULT_SPECIFIED_ENVVAR_NOT_FOUND 2147483851

/**
 * The runtime does not find the file, or a library that it needs.
 */
#define DIPC_HRESULT_MOD_NOT_FOUND 2147942526

/**
 * A profiler is already loaded.
 */
#define DIPC_HRESULT_PROFILER_ALREADY_ACTIVE 2148733802

/**
 * The activity of the event: `guid`.
 */
#define DIPC_LABEL_ACTIVITY_ID 1

/**
 * The activity that started the one of the event: `guid`.
 */
#define DIPC_LABEL_RELATED_ACTIVITY_ID 2

/**
 * The trace id of W3C, in the order in which it is written: `guid`.
 */
#define DIPC_LABEL_TRACE_ID 3

/**
 * The span id of W3C: `number`.
 */
#define DIPC_LABEL_SPAN_ID 4

/**
 * A `name` and a `text`.
 */
#define DIPC_LABEL_TEXT 5

/**
 * A `name` and a signed `number`, to be converted to `int64_t`.
 */
#define DIPC_LABEL_NUMBER 6

/**
 * The opcode: `number`. This and the following kinds replace what the description of the event states.
 */
#define DIPC_LABEL_OPCODE 7

/**
 * The keywords: `number`.
 */
#define DIPC_LABEL_KEYWORDS 8

/**
 * The level: `number`.
 */
#define DIPC_LABEL_LEVEL 9

/**
 * The version of the payload: `number`.
 */
#define DIPC_LABEL_VERSION 10

/**
 * The length of the header of a message.
 */
#define DIPC_HEADER_LEN 20

/**
 * The length of the longest message.
 */
#define DIPC_MESSAGE_MAX_LEN 65535

/**
 * The code of the answer to a command that succeeded.
 */
#define DIPC_CODE_OK 65280

/**
 * The code of the answer to a command that was refused.
 */
#define DIPC_CODE_ERROR 65535

/**
 * An integer: `number`, sign-extended. `name` is the name of the value if it has one.
 */
#define DIPC_PART_NUMBER 0

/**
 * A bool: `number` is 0 or 1.
 */
#define DIPC_PART_BOOL 1

/**
 * A text: `text`, which can be null.
 */
#define DIPC_PART_TEXT 2

/**
 * A GUID: 16 `bytes` in .NET's order.
 */
#define DIPC_PART_GUID 3

/**
 * A result code: `number`. `name` is its name if it has one.
 */
#define DIPC_PART_HRESULT 4

/**
 * A reserved number: `number`, which senders set to 0 and receivers ignore.
 */
#define DIPC_PART_RESERVED 5

/**
 * Bytes of no other kind.
 */
#define DIPC_PART_BYTES 6

/**
 * The runtime waits for a command.
 */
#define DIPC_RUNTIME_IDLE 0

/**
 * The caller has taken the connection, and the runtime has not connected again.
 */
#define DIPC_RUNTIME_IN_USE 1

/**
 * The connection of the runtime ended, and the runtime has not connected again.
 */
#define DIPC_RUNTIME_DISCONNECTED 2

/**
 * The port does not know the runtime any more.
 */
#define DIPC_RUNTIME_LEFT 3

/**
 * Nothing has changed.
 */
#define DIPC_CHANGE_NOTHING 0

/**
 * `runtime` has connected and waits for a command. The connection, if there is one, is its older one.
 */
#define DIPC_CHANGE_ARRIVED 1

/**
 * The connection did not become a runtime's, for the reason in `rejection`.
 */
#define DIPC_CHANGE_REJECTED 2

/**
 * The connection of the idle `runtime` ended. The runtime is expected to connect again.
 */
#define DIPC_CHANGE_DISCONNECTED 3

/**
 * `runtime` is gone: its process has ended, or it did not connect again in time.
 */
#define DIPC_CHANGE_LEFT 4

/**
 * The pause of `dipc_monitor_port_pause_accept` is over.
 */
#define DIPC_CHANGE_ACCEPT_AGAIN 5

/**
 * The connection was not rejected.
 */
#define DIPC_REJECTION_NONE 0

/**
 * The frame did not arrive in time; `detail` is the number of its bytes that arrived.
 */
#define DIPC_REJECTION_TOO_LATE 1

/**
 * The bytes are not a frame, or the peer closed the connection before its end: `status`, with its `detail`. If that is
 * `DIPC_STATUS_CLOSED` with 0, the peer is harmless: so does a monitor that checks whether another one listens here.
 */
#define DIPC_REJECTION_PROTOCOL 2

/**
 * The peer sent data after the frame, before a command.
 */
#define DIPC_REJECTION_UNSOLICITED 3

/**
 * Too many connections had not sent their frame, and this was the oldest.
 */
#define DIPC_REJECTION_CROWDED 4

/**
 * A bool: `number` is 0 or 1.
 */
#define DIPC_VALUE_BOOL 0

/**
 * A signed integer: `number`, to be converted to `int64_t`.
 */
#define DIPC_VALUE_INT 1

/**
 * An unsigned integer: `number`.
 */
#define DIPC_VALUE_UINT 2

/**
 * A float of 32 or 64 bits: `real`.
 */
#define DIPC_VALUE_REAL 3

/**
 * A text, or an array of characters: `text`.
 */
#define DIPC_VALUE_TEXT 4

/**
 * A GUID: `guid`.
 */
#define DIPC_VALUE_GUID 5

/**
 * A point in time: `number` is the count of 100 ns since 1601-01-01 UTC.
 */
#define DIPC_VALUE_TIME 6

/**
 * An array of bytes: `bytes`.
 */
#define DIPC_VALUE_BYTES 7

/**
 * The 16 bytes of a .NET `Decimal`: `guid`.
 */
#define DIPC_VALUE_DECIMAL 8

/**
 * A code unit of UTF-16 or UTF-8: `number`.
 */
#define DIPC_VALUE_CODE_UNIT 9

/**
 * An object begins; its fields follow.
 */
#define DIPC_VALUE_BEGIN_OBJECT 10

/**
 * The innermost object ends.
 */
#define DIPC_VALUE_END_OBJECT 11

/**
 * An array begins; its elements follow.
 */
#define DIPC_VALUE_BEGIN_ARRAY 12

/**
 * The innermost array ends.
 */
#define DIPC_VALUE_END_ARRAY 13

/**
 * The keywords of the rundown that runtimes send if the command does not select keywords.
 */
#define DIPC_DEFAULT_RUNDOWN 2147615033

/**
 * Nothing follows the reply.
 */
#define DIPC_THEN_NOTHING 0

/**
 * The environment follows, as many bytes as the reply announces: see `dipc_write_environment`.
 */
#define DIPC_THEN_COUNTED 1

/**
 * A NetTrace stream follows, up to the end of the connection.
 */
#define DIPC_THEN_STREAM 2

/**
 * No bytes follow, but the connection stays open during the session, and the client passes a descriptor of
 * `user_events_data` before the reply.
 */
#define DIPC_THEN_USER_EVENTS 3

/**
 * The most sessions that a runtime has at a time. It refuses the next one with `DIPC_HRESULT_FAIL`.
 */
#define DIPC_SESSIONS_MAX 64

/**
 * Connect to the runtime without blocking for long; then report `DIPC_STOP_CONNECTED`, `DIPC_STOP_BUSY` or
 * `DIPC_STOP_FAILED`. The other steps are `DIPC_STEP_DONE`: nothing now, `DIPC_STEP_SEND` and `DIPC_STEP_RECEIVE`.
 */
#define DIPC_STEP_CONNECT 3

/**
 * The connection is established.
 */
#define DIPC_STOP_CONNECTED 0

/**
 * The runtime accepts no connection, or no bytes, at the time `value`. The step is attempted again later.
 */
#define DIPC_STOP_BUSY 1

/**
 * The runtime is not reachable, or the connection is broken: connecting or writing failed. A connection that breaks while
 * the answer is read counts as closed: `DIPC_STOP_RECEIVED` with 0.
 */
#define DIPC_STOP_FAILED 2

/**
 * `value` bytes were written; 0 means that the peer closed the connection.
 */
#define DIPC_STOP_SENT 3

/**
 * `value` bytes were read; 0 means that the peer closed the connection.
 */
#define DIPC_STOP_RECEIVED 4

/**
 * The session is not over.
 */
#define DIPC_SESSION_RUNNING 0

/**
 * The stream was read to its end and has the end mark of its format.
 */
#define DIPC_SESSION_COMPLETE 1

/**
 * The stream ended without that mark, in most cases because the process exited; also if the deadline of the Stop passed
 * after the end of the stream.
 */
#define DIPC_SESSION_CUT_OFF 2

/**
 * The deadline of the Stop passed before the end of the stream.
 */
#define DIPC_SESSION_TIMED_OUT 3

/**
 * The session was abandoned.
 */
#define DIPC_SESSION_ABANDONED 4

/**
 * No text. The protocol distinguishes it from an empty text: a variable that is set to null is removed.
 */
#define DIPC_TEXT_NULL 0

/**
 * UTF-8; `len` is the number of bytes, without a NUL. Must be valid.
 */
#define DIPC_TEXT_UTF8 1

/**
 * UTF-16 in the byte order of the machine, aligned; `len` is the number of code units. Can have lone surrogates.
 */
#define DIPC_TEXT_UTF16 2

/**
 * UTF-16 in little-endian byte order, not aligned; `len` is the number of code units. The form of texts in messages.
 */
#define DIPC_TEXT_WIRE 3

/**
 * UTF-8 of a trace, or other UTF-8 that can be invalid, such as a variable of the environment; `len` is the number of
 * bytes. Invalid bytes become U+FFFD.
 */
#define DIPC_TEXT_TRACE_UTF8 4

/**
 * The window has no further whole record: release it, add at least one byte, up to `u.needed` in total, and continue.
 */
#define DIPC_RECORD_MORE 0

/**
 * A block begins: `u.block`.
 */
#define DIPC_RECORD_BLOCK 1

/**
 * The facts that the stream states about itself: `u.trace`.
 */
#define DIPC_RECORD_TRACE 2

/**
 * The description of a kind of event: the payload of `u.event`, for `dipc_metadata_decode`.
 */
#define DIPC_RECORD_METADATA 3

/**
 * An event: `u.event`.
 */
#define DIPC_RECORD_EVENT 4

/**
 * A call stack, to which later events refer: `u.stack`.
 */
#define DIPC_RECORD_STACK 5

/**
 * A point in time at which the sequence numbers of all threads are known: `u.sequence_point`. Stacks and lists of labels
 * from before are no longer referred to.
 */
#define DIPC_RECORD_SEQUENCE_POINT 6

/**
 * The last sequence number of a thread: `u.thread`.
 */
#define DIPC_RECORD_THREAD_SEQUENCE 7

/**
 * A thread starts: `u.thread_start`. Only in version 6.
 */
#define DIPC_RECORD_THREAD 8

/**
 * A thread ends: `u.thread`. Only in version 6.
 */
#define DIPC_RECORD_REMOVE_THREAD 9

/**
 * A block whose rest cannot be read; the parser continues after it: `u.end`.
 */
#define DIPC_RECORD_BAD_BLOCK 10

/**
 * The end of the stream: `u.end`. It is returned again by each further call.
 */
#define DIPC_RECORD_END 11

/**
 * A record of another kind, which the C interface does not describe.
 */
#define DIPC_RECORD_OTHER 12

/**
 * A list of labels, to which later events refer: `u.label_list`. Only in version 6.
 */
#define DIPC_RECORD_LABEL_LIST 13

/**
 * The stream has its end mark.
 */
#define DIPC_END_COMPLETE 0

/**
 * The stream ends without its end mark: at `offset`.
 */
#define DIPC_END_TRUNCATED 1

/**
 * The stream has bytes that are not NetTrace: at `offset`.
 */
#define DIPC_END_CORRUPT 2

/**
 * A bool of 4 bytes.
 */
#define DIPC_TYPE_BOOL 3

/**
 * A signed integer of 1 byte.
 */
#define DIPC_TYPE_INT8 5

/**
 * An unsigned integer of 1 byte.
 */
#define DIPC_TYPE_UINT8 6

/**
 * A signed integer of 2 bytes.
 */
#define DIPC_TYPE_INT16 7

/**
 * An unsigned integer of 2 bytes.
 */
#define DIPC_TYPE_UINT16 8

/**
 * A signed integer of 4 bytes.
 */
#define DIPC_TYPE_INT32 9

/**
 * An unsigned integer of 4 bytes.
 */
#define DIPC_TYPE_UINT32 10

/**
 * A signed integer of 8 bytes.
 */
#define DIPC_TYPE_INT64 11

/**
 * An unsigned integer of 8 bytes.
 */
#define DIPC_TYPE_UINT64 12

/**
 * A float of 4 bytes.
 */
#define DIPC_TYPE_FLOAT 13

/**
 * A float of 8 bytes.
 */
#define DIPC_TYPE_DOUBLE 14

/**
 * A point in time: 8 bytes, units of 100 ns since 1601-01-01 UTC.
 */
#define DIPC_TYPE_TIME 16

/**
 * A GUID.
 */
#define DIPC_TYPE_GUID 17

/**
 * UTF-16 in little-endian byte order, with a NUL at the end.
 */
#define DIPC_TYPE_UTF16 18

/**
 * The most fields of an event that `dipc_writer_describe` can describe.
 */
#define DIPC_MAX_FIELDS 32

/**
 * The result of a function. Values from 64 on are errors in received bytes.
 *
 * Some results have a number: functions with a parameter `detail` store it there, unless `detail` is null.
 */
enum dipc_status
#ifdef __cplusplus
  : int32_t
#endif // __cplusplus
 {
    /**
     * The function succeeded.
     */
    DIPC_STATUS_OK = 0,
    /**
     * More bytes are needed; `detail` is the number of bytes needed in total, as far as it is known. Not an error.
     */
    DIPC_STATUS_MORE = 1,
    /**
     * There is no such part, command, name or entry.
     */
    DIPC_STATUS_NOT_FOUND = 2,
    /**
     * A buffer is too small; `detail` is the required size in its elements.
     */
    DIPC_STATUS_BUFFER_TOO_SMALL = 4,
    /**
     * The message would be longer than 65,535 bytes; `detail` is the length that it would have.
     */
    DIPC_STATUS_MESSAGE_TOO_LONG = 5,
    /**
     * A value of the request has a valid layout, but runtimes refuse it; `detail` is the number of the rule.
     * `dipc_status_field` names the value.
     */
    DIPC_STATUS_VIOLATION = 6,
    /**
     * The peer closed the connection before its message was complete; `detail` is the number of its bytes that arrived.
     */
    DIPC_STATUS_CLOSED = 7,
    /**
     * A message arrived that is not an answer; `detail` is its code.
     */
    DIPC_STATUS_UNEXPECTED = 8,
    /**
     * The peer announces more bytes than the caller allows; `detail` is their number.
     */
    DIPC_STATUS_LIMIT_EXCEEDED = 9,
    /**
     * A part of the reply was sent already, so that it cannot be replaced.
     */
    DIPC_STATUS_ALREADY_SENDING = 10,
    /**
     * The server does not have the command; `detail` is the HRESULT with which it is refused.
     */
    DIPC_STATUS_REFUSED = 11,
    /**
     * The deadline of a plan passed; `detail` is 1 if a connection was open, 0 if the runtime accepted none.
     */
    DIPC_STATUS_TIMED_OUT = 12,
    /**
     * Misuse: a pointer is null that must not be.
     */
    DIPC_STATUS_NULL_POINTER = 32,
    /**
     * Misuse: a pointer is not aligned for its type.
     */
    DIPC_STATUS_MISALIGNED = 33,
    /**
     * Misuse: a length is larger than any object of C.
     */
    DIPC_STATUS_INVALID_LENGTH = 34,
    /**
     * Misuse: the object is not initialised, or is of another kind than the function expects.
     */
    DIPC_STATUS_WRONG_KIND = 35,
    /**
     * Misuse: an argument has no meaning: a form of text that does not exist, or invalid UTF-8.
     */
    DIPC_STATUS_INVALID_ARGUMENT = 36,
    /**
     * Misuse: more bytes were reported than the step had lent, for example the -1 of a system call as an unsigned number;
     * `detail` is the number of lent bytes. The exchange has failed; one that was over before keeps its result.
     */
    DIPC_STATUS_OVERRUN = 37,
    /**
     * A fault of the library itself, which only the functions of `dotnet_ipc_analysis.h` can find: please report it.
     */
    DIPC_STATUS_FAULT = 38,
    /**
     * The bytes are malformed in a way that has no status of its own.
     */
    DIPC_STATUS_MALFORMED_BYTES = 127,
    /**
     * A field extends past the end of the region that contains it. For errors in bytes, `detail` is the offset, and
     * `dipc_status_field` names the field.
     */
    DIPC_STATUS_UNEXPECTED_END = 64,
    /**
     * A size field is smaller than its structure.
     */
    DIPC_STATUS_BAD_SIZE = 67,
    /**
     * The last unit of a string is not NUL.
     */
    DIPC_STATUS_UNTERMINATED = 68,
    /**
     * A count is too large for the remaining bytes.
     */
    DIPC_STATUS_COUNT_TOO_LARGE = 69,
    /**
     * The message is longer than the buffer for it.
     */
    DIPC_STATUS_TOO_LONG = 71,
    /**
     * The first bytes are not those of a message.
     */
    DIPC_STATUS_BAD_MAGIC = 65,
    /**
     * The first bytes are not those of an advertise frame.
     */
    DIPC_STATUS_BAD_ADVERTISE = 66,
    /**
     * Bytes follow where none are allowed.
     */
    DIPC_STATUS_TRAILING_BYTES = 70,
    /**
     * A field has a value that its type does not allow.
     */
    DIPC_STATUS_BAD_VALUE = 80,
    /**
     * A variable-length integer has more bytes or more bits than its type.
     */
    DIPC_STATUS_BAD_VARINT = 72,
    /**
     * A type code or a kind is not documented, or not allowed in this place.
     */
    DIPC_STATUS_UNKNOWN_TYPE = 73,
    /**
     * Objects and arrays are nested deeper than any writer does.
     */
    DIPC_STATUS_TOO_DEEP = 74,
    /**
     * A payload has more values than its bytes can contain.
     */
    DIPC_STATUS_TOO_MANY_ITEMS = 75,
    /**
     * The version of a layout is not documented.
     */
    DIPC_STATUS_UNKNOWN_VERSION = 76,
    /**
     * The bytes have several meanings, and the input does not state which one applies.
     */
    DIPC_STATUS_AMBIGUOUS = 77,
    /**
     * A description belongs to another event than the one it was sent with.
     */
    DIPC_STATUS_OTHER_EVENT = 78,
    /**
     * Fields are described in a second way although the first one must be empty then.
     */
    DIPC_STATUS_DESCRIBED_TWICE = 79,
};
#ifndef __cplusplus
typedef int32_t dipc_status;
#endif // __cplusplus

/**
 * The code of each command.
 */
enum dipc_command
#ifdef __cplusplus
  : uint16_t
#endif // __cplusplus
 {
    /**
     * `CreateCoreDump` in the specification; since .NET 3.
     */
    DIPC_COMMAND_GENERATE_CORE_DUMP = 257,
    /**
     * `CreateCoreDump2` in the specification; since .NET 6.
     */
    DIPC_COMMAND_GENERATE_CORE_DUMP2 = 258,
    /**
     * `CreateCoreDump3` in the specification; since .NET 7.
     */
    DIPC_COMMAND_GENERATE_CORE_DUMP3 = 259,
    /**
     * `StopTracing` in the specification; since .NET 3.
     */
    DIPC_COMMAND_STOP_TRACING = 513,
    /**
     * `CollectTracing` in the specification; since .NET 3.
     */
    DIPC_COMMAND_COLLECT_TRACING = 514,
    /**
     * `CollectTracing2` in the specification; since .NET 3.
     */
    DIPC_COMMAND_COLLECT_TRACING2 = 515,
    /**
     * `CollectTracing3` in the specification; since .NET 9.
     */
    DIPC_COMMAND_COLLECT_TRACING3 = 516,
    /**
     * `CollectTracing4` in the specification; since .NET 9.
     */
    DIPC_COMMAND_COLLECT_TRACING4 = 517,
    /**
     * `CollectTracing5` in the specification; since .NET 10.
     */
    DIPC_COMMAND_COLLECT_TRACING5 = 518,
    /**
     * `CollectTracing6` in the specification; since .NET 11.
     */
    DIPC_COMMAND_COLLECT_TRACING6 = 519,
    /**
     * `AttachProfiler` in the specification; since .NET 3.
     */
    DIPC_COMMAND_ATTACH_PROFILER = 769,
    /**
     * `StartupProfiler` in the specification; since .NET 6.
     */
    DIPC_COMMAND_STARTUP_PROFILER = 770,
    /**
     * `ProcessInfo` in the specification; since .NET 5.
     */
    DIPC_COMMAND_GET_PROCESS_INFO = 1024,
    /**
     * `ResumeRuntime` in the specification; since .NET 5.
     */
    DIPC_COMMAND_RESUME_RUNTIME = 1025,
    /**
     * `ProcessEnvironment` in the specification; since .NET 5.
     */
    DIPC_COMMAND_GET_PROCESS_ENVIRONMENT = 1026,
    /**
     * `SetEnvironmentVariable` in the specification; since .NET 6.
     */
    DIPC_COMMAND_SET_ENVIRONMENT_VARIABLE = 1027,
    /**
     * `ProcessInfo2` in the specification; since .NET 6.
     */
    DIPC_COMMAND_GET_PROCESS_INFO2 = 1028,
    /**
     * `EnablePerfMap` in the specification; since .NET 8.
     */
    DIPC_COMMAND_ENABLE_PERF_MAP = 1029,
    /**
     * `DisablePerfMap` in the specification; since .NET 8.
     */
    DIPC_COMMAND_DISABLE_PERF_MAP = 1030,
    /**
     * `ApplyStartupHook` in the specification; since .NET 8.
     */
    DIPC_COMMAND_APPLY_STARTUP_HOOK = 1031,
    /**
     * `ProcessInfo3` in the specification; since .NET 8.
     */
    DIPC_COMMAND_GET_PROCESS_INFO3 = 1032,
};
#ifndef __cplusplus
typedef uint16_t dipc_command;
#endif // __cplusplus

/**
 * The name of a part, with the names of the parts that contain it: `providers[0].filter.enable`. It is valid only during
 * the call of the function that receives the part.
 */
typedef struct dipc_path dipc_path;

/**
 * An exchange of any kind, in memory of the caller. It can be moved and copied with `memcpy`, as long as only one copy
 * is used further.
 *
 * Set it to zeros or initialise it before another function receives it: functions then return
 * `DIPC_STATUS_WRONG_KIND` for one that is not initialised, or of another kind.
 */
typedef struct dipc_exchange {
    /**
     * The state.
     */
    uint64_t opaque[14];
} dipc_exchange;

/**
 * A GUID in .NET's order: the first three groups of its text are little-endian numbers.
 */
typedef struct dipc_guid {
    /**
     * The bytes.
     */
    uint8_t bytes[16];
} dipc_guid;

/**
 * The frame that a runtime sends first on each connection to a monitor.
 */
typedef struct dipc_advertise {
    /**
     * The runtime's identity, the same as in `dipc_process_info`.
     */
    struct dipc_guid runtime_cookie;
    /**
     * The process id, in the PID namespace of the process.
     */
    uint64_t process_id;
    /**
     * 0, which monitors ignore.
     */
    uint16_t future;
} dipc_advertise;

/**
 * A runtime's answer to a command.
 */
typedef struct dipc_answer {
    /**
     * Whether the runtime refused the command. `hresult` is the reason; the answer to GenerateCoreDump3 also has a text:
     * the part `message`.
     */
    bool refused;
    /**
     * The reason of a refusal, otherwise 0.
     */
    uint32_t hresult;
    /**
     * The bytes of the answer, a whole message in the buffer of the call. A `dipc_read_*` function decodes it; an OK answer
     * to a command without such a function has no data. `dipc_find` finds the parts of any.
     */
    const uint8_t *bytes;
    /**
     * The number of bytes.
     */
    size_t len;
} dipc_answer;

/**
 * A parser of a NetTrace stream of version 3 (NetPerf), 4 or 6, in memory of the caller. Set it to zeros or initialise it
 * before another function receives it.
 */
typedef struct dipc_parser {
    /**
     * The state.
     */
    uint64_t opaque[64];
} dipc_parser;

/**
 * The columns of a batch of events. Each is an array with room for all events of the batch, or null if the
 * program does not need it. A structure of zeros has no columns.
 */
typedef struct dipc_event_columns {
    /**
     * The number of the description of the event.
     */
    uint32_t *metadata_id;
    /**
     * The time, in ticks: see `dipc_trace`.
     */
    uint64_t *timestamp;
    /**
     * The thread that the event is about; in version 6 the index of a thread record.
     */
    uint64_t *thread;
    /**
     * The number of the stack, which can be an empty one; 0 for none.
     */
    uint32_t *stack_id;
    /**
     * The offset of the payload in the window; 0 if it is empty.
     */
    size_t *payload_offset;
    /**
     * The length of the payload.
     */
    size_t *payload_len;
    /**
     * The thread that wrote the event.
     */
    uint64_t *capture_thread;
    /**
     * The number of the event among those of its capture thread.
     */
    uint32_t *sequence;
    /**
     * The processor, or `UINT32_MAX` if it is unknown.
     */
    uint32_t *processor;
    /**
     * The number of a list of labels, in version 6 only.
     */
    uint32_t *label_list;
    /**
     * Whether no later event of the stream has an earlier time.
     */
    bool *sorted;
    /**
     * The activity, or zeros.
     */
    struct dipc_guid *activity_id;
    /**
     * The related activity, or zeros.
     */
    struct dipc_guid *related_activity_id;
    /**
     * The offset in the window of the addresses of the stack, in version 3 only; 0 if there are none.
     */
    size_t *stack_offset;
    /**
     * The number of bytes of these addresses.
     */
    size_t *stack_len;
} dipc_event_columns;

/**
 * A text in memory of another owner: the caller's string, or a part of a message or trace. It is valid as long as
 * that memory is. All zeros are a null text.
 */
typedef struct dipc_text {
    /**
     * The first code unit.
     */
    const void *data;
    /**
     * The number of code units.
     */
    size_t len;
    /**
     * One of `DIPC_TEXT_*`.
     */
    uint32_t form;
} dipc_text;

/**
 * The content of a dump: one of `DIPC_DUMP_*`.
 */
typedef uint32_t dipc_dump_type;

/**
 * Options of the dump writer: any of `DIPC_DUMP_FLAG_*`, or 0.
 */
typedef uint32_t dipc_dump_flags;

/**
 * The format of a stream: one of `DIPC_FORMAT_*`.
 */
typedef uint32_t dipc_format;

/**
 * The verbosity of a provider: one of `DIPC_LEVEL_*`.
 */
typedef uint32_t dipc_event_level;

/**
 * A provider to enable. A session has 1 to 1,000 of them: runtimes refuse others.
 */
typedef struct dipc_provider {
    /**
     * Groups of events, one bit each; the provider defines them.
     */
    uint64_t keywords;
    /**
     * The verbosity: one of `DIPC_LEVEL_*`.
     */
    dipc_event_level level;
    /**
     * The name of the provider; not empty.
     */
    struct dipc_text name;
    /**
     * Settings for the provider: `key=value` joined by `;`. Can be null.
     */
    struct dipc_text arguments;
} dipc_provider;

/**
 * A list: `count` items, in memory of the caller. `items` can be null if there are none.
 */
typedef struct dipc_providers {
    /**
     * The first item.
     */
    const struct dipc_provider *items;
    /**
     * The number of items.
     */
    size_t count;
} dipc_providers;

/**
 * A list: `count` items, in memory of the caller. `items` can be null if there are none.
 */
typedef struct dipc_event_ids {
    /**
     * The first item.
     */
    const uint32_t *items;
    /**
     * The number of items.
     */
    size_t count;
} dipc_event_ids;

/**
 * A filter of the events of a provider by their ids. All zeros: no filter.
 */
typedef struct dipc_event_filter {
    /**
     * Whether the ids select the events to send, or those not to send.
     */
    bool enable;
    /**
     * The ids.
     */
    struct dipc_event_ids event_ids;
} dipc_event_filter;

/**
 * A provider of a stream with a filter.
 */
typedef struct dipc_streaming_provider {
    /**
     * As in `dipc_provider`.
     */
    uint64_t keywords;
    /**
     * As in `dipc_provider`.
     */
    dipc_event_level level;
    /**
     * As in `dipc_provider`.
     */
    struct dipc_text name;
    /**
     * As in `dipc_provider`.
     */
    struct dipc_text arguments;
    /**
     * The filter of its events.
     */
    struct dipc_event_filter filter;
} dipc_streaming_provider;

/**
 * A list: `count` items, in memory of the caller. `items` can be null if there are none.
 */
typedef struct dipc_streaming_providers {
    /**
     * The first item.
     */
    const struct dipc_streaming_provider *items;
    /**
     * The number of items.
     */
    size_t count;
} dipc_streaming_providers;

/**
 * The events for one tracepoint.
 */
typedef struct dipc_tracepoint_set {
    /**
     * The name of the tracepoint; not empty.
     */
    struct dipc_text tracepoint_name;
    /**
     * The ids of the events.
     */
    struct dipc_event_ids event_ids;
} dipc_tracepoint_set;

/**
 * A list: `count` items, in memory of the caller. `items` can be null if there are none.
 */
typedef struct dipc_tracepoint_sets {
    /**
     * The first item.
     */
    const struct dipc_tracepoint_set *items;
    /**
     * The number of items.
     */
    size_t count;
} dipc_tracepoint_sets;

/**
 * The tracepoints for the events of a provider. At least one field must not be null or empty.
 */
typedef struct dipc_tracepoint_config {
    /**
     * The tracepoint for events that are in no set; if it is null, those events are not written.
     */
    struct dipc_text default_tracepoint_name;
    /**
     * The tracepoints for sets of events.
     */
    struct dipc_tracepoint_sets sets;
} dipc_tracepoint_config;

/**
 * A provider whose events are written to `user_events`.
 */
typedef struct dipc_user_events_provider {
    /**
     * As in `dipc_provider`.
     */
    uint64_t keywords;
    /**
     * As in `dipc_provider`.
     */
    dipc_event_level level;
    /**
     * As in `dipc_provider`.
     */
    struct dipc_text name;
    /**
     * As in `dipc_provider`.
     */
    struct dipc_text arguments;
    /**
     * The filter of its events.
     */
    struct dipc_event_filter filter;
    /**
     * The tracepoints for its events.
     */
    struct dipc_tracepoint_config tracepoints;
} dipc_user_events_provider;

/**
 * A list: `count` items, in memory of the caller. `items` can be null if there are none.
 */
typedef struct dipc_user_events_providers {
    /**
     * The first item.
     */
    const struct dipc_user_events_provider *items;
    /**
     * The number of items.
     */
    size_t count;
} dipc_user_events_providers;

/**
 * The kind of session. A session that writes to `user_events` has `rundown_keyword` and `user_events_providers` only.
 */
typedef struct dipc_session_config {
    /**
     * One of `DIPC_SESSION_TYPE_*`.
     */
    uint32_t session_type;
    /**
     * Size of the runtime's buffer in MB; not 0.
     */
    uint32_t buffer_mb;
    /**
     * Format of the stream.
     */
    dipc_format format;
    /**
     * Whether events have stacks.
     */
    bool stackwalk;
    /**
     * Keywords of the rundown provider; 0 for no rundown.
     */
    uint64_t rundown_keyword;
    /**
     * The providers of a session that streams.
     */
    struct dipc_streaming_providers providers;
    /**
     * The providers of a session that writes to `user_events`.
     */
    struct dipc_user_events_providers user_events_providers;
} dipc_session_config;

/**
 * The runtime's behaviour when the buffer of a session is full: one of `DIPC_BUFFER_MODE_*`.
 */
typedef uint32_t dipc_session_buffer_mode;

/**
 * As `dipc_session_config`, but a stream has a buffer mode.
 */
typedef struct dipc_session_config6 {
    /**
     * The session.
     */
    struct dipc_session_config session;
    /**
     * The behaviour when the buffer of a stream is full.
     */
    dipc_session_buffer_mode session_buffer_mode;
} dipc_session_config6;

/**
 * Bytes for a profiler. `data` can be null if there are none.
 */
typedef struct dipc_client_data {
    /**
     * The first byte.
     */
    const uint8_t *data;
    /**
     * The number of bytes.
     */
    size_t len;
} dipc_client_data;

/**
 * The files to write for `perf`: one of `DIPC_PERF_MAP_*`.
 */
typedef uint32_t dipc_perf_map_type;

/**
 * A row of the table of commands.
 */
typedef struct dipc_command_row {
    /**
     * The code.
     */
    uint16_t code;
    /**
     * The first major version of .NET with this command.
     */
    uint8_t since;
    /**
     * The name, as in Microsoft's client.
     */
    struct dipc_text name;
    /**
     * The name in the specification.
     */
    struct dipc_text specification_name;
} dipc_command_row;

/**
 * A runtime's diagnostic ports, as its environment configures them. In memory of the caller; set it to zeros or
 * initialise it before another function receives it. It does not change after `dipc_config_init`, so threads can use it
 * at the same time. It can be moved and copied with `memcpy`.
 */
typedef struct dipc_config {
    /**
     * The state.
     */
    uint64_t opaque[18];
} dipc_config;

/**
 * A function that returns the value of an environment variable in UTF-8, or a null text if the variable is not set. The
 * name ends with a NUL, and is valid only during the call. The function must return: no `longjmp`, no C++ exception.
 */
typedef struct dipc_text (*dipc_lookup)(void *context, const char *name);

/**
 * A diagnostic port of a runtime, other than the default one.
 */
typedef struct dipc_port {
    /**
     * The path of the socket, or the name of the pipe.
     */
    struct dipc_text address;
    /**
     * One of `DIPC_PORT_*`.
     */
    uint32_t port_type;
    /**
     * Whether the runtime does not start until it is resumed through this port.
     */
    bool suspends;
} dipc_port;

/**
 * A probable mistake in a runtime's environment. Texts that a kind does not have are null.
 */
typedef struct dipc_finding {
    /**
     * One of `DIPC_FINDING_*`.
     */
    uint32_t kind;
    /**
     * The name of a variable.
     */
    struct dipc_text name;
    /**
     * The value, the port or the address with the mistake.
     */
    struct dipc_text text;
    /**
     * The wrong part of that text.
     */
    struct dipc_text part;
    /**
     * What was probably meant.
     */
    struct dipc_text meant;
} dipc_finding;

/**
 * A function that receives the probable mistakes. A finding is valid only during the call, its texts as long as those of
 * the config. It must return: no `longjmp`, no C++ exception.
 */
typedef void (*dipc_visit_finding)(void *context, const struct dipc_finding *finding);

/**
 * A runtime's connections to a monitor, one after the other: it connects, sends its advertise frame, waits for a command,
 * and connects again. In memory of the caller; set it to zeros or initialise it before another function receives it. It
 * can be moved and copied with `memcpy`.
 *
 * It has no clock and no socket. Do what `dipc_connect_port_step` says, and report it with `dipc_connect_port_advance`:
 *
 * * `DIPC_STEP_CONNECT`: connect without blocking for long. Then `DIPC_CONNECT_CONNECTED` or `DIPC_CONNECT_FAILED`.
 * * `DIPC_STEP_WAIT`: wait so many milliseconds as `len` says. Then `DIPC_CONNECT_WAITED`.
 * * `DIPC_STEP_SEND`: write the bytes, within `DIPC_ADVERTISE_SEND_MS`. Then `DIPC_CONNECT_SENT`, or
 *   `DIPC_CONNECT_FAILED`.
 * * `DIPC_STEP_SERVE`: wait for a command, without a limit, and reply to it, as with `dipc_serve_init`. Then
 *   `DIPC_CONNECT_ANSWERED`. If a stream follows the reply, the connection belongs to the stream, and the port makes
 *   another one. A request with a `len` of 0 is not a command: the monitor has closed the connection. Then
 *   `DIPC_CONNECT_HUNG_UP`, without a reply. Who can poll the connection checks for that first, as runtimes do.
 *
 * The caller closes a connection that failed, was hung up, or is answered.
 */
typedef struct dipc_connect_port {
    /**
     * The state.
     */
    uint64_t opaque[9];
} dipc_connect_port;

/**
 * The next action of an exchange.
 */
typedef struct dipc_step {
    /**
     * One of `DIPC_STEP_*`.
     */
    uint32_t kind;
    /**
     * The bytes to write, or the space to fill, in the buffer of the exchange; in that of `dipc_advertise_init`, in the
     * exchange.
     */
    uint8_t *data;
    /**
     * The number of bytes.
     */
    size_t len;
} dipc_step;

/**
 * A command, and the older commands that a client sends to a runtime that does not know it, each on a connection of its
 * own. In memory of the caller; set it to zeros or initialise it before another function receives it.
 *
 * It has no clock and no socket. Do what `dipc_fallback_step` says, and report it with `dipc_fallback_advance`:
 *
 * * `DIPC_STEP_CONNECT`: close the last connection and open a new one. Then `DIPC_FALLBACK_CONNECTED`, or
 *   `DIPC_FALLBACK_BUSY` if the runtime accepts no connection at this time: `EAGAIN` of a Unix socket on Linux,
 *   `ECONNREFUSED` on other systems. If it is not reachable, abandon the plan: it needs no further call.
 * * `DIPC_STEP_WAIT`: wait until `dipc_fallback_until`, then call `dipc_fallback_tick`.
 * * `DIPC_STEP_SEND`: write some of the bytes. Then `DIPC_FALLBACK_SENT`.
 * * `DIPC_STEP_RECEIVE`: read some bytes into the space. Then `DIPC_FALLBACK_RECEIVED`. A connection that was reset counts
 *   as closed: 0 bytes.
 * * `DIPC_STEP_DONE`: call `dipc_fallback_finish`. What follows the answer, such as a stream, is on the last connection.
 *
 * Call `dipc_fallback_tick` at the time of `dipc_fallback_until` at the latest, in any step: the machine counts in
 * milliseconds of your clock.
 */
typedef struct dipc_fallback {
    /**
     * The state.
     */
    uint64_t opaque[40];
} dipc_fallback;

/**
 * The known facts about a runtime. All zeros: nothing is known.
 */
typedef struct dipc_facts {
    /**
     * The major version of .NET, or of the .NET whose commands a server has; 0 if it is not known. It is the first number
     * of `clr_product_version`.
     */
    uint8_t version;
    /**
     * One of `DIPC_YES`, `DIPC_NO` and `DIPC_UNKNOWN`: whether the process runs on Linux.
     */
    uint8_t is_linux;
    /**
     * One of `DIPC_YES`, `DIPC_NO` and `DIPC_UNKNOWN`: whether the runtime is suspended at startup.
     */
    uint8_t is_suspended;
    /**
     * The kind of runtime: one of `DIPC_FLAVOUR_*`.
     */
    uint32_t flavour;
} dipc_facts;

/**
 * The description of the fields of a payload.
 */
typedef struct dipc_field_list {
    /**
     * The state.
     */
    uint64_t opaque[8];
} dipc_field_list;

/**
 * The description of a kind of event. Its texts point into the record that it was decoded from; so does the description
 * of the fields.
 */
typedef struct dipc_metadata {
    /**
     * The number by which events refer to the description.
     */
    uint32_t id;
    /**
     * The event's number at its provider.
     */
    uint32_t event_id;
    /**
     * The provider of the event.
     */
    struct dipc_text provider;
    /**
     * The event's name; empty for events of the runtime: see `dipc_metadata_decode_runtime`.
     */
    struct dipc_text name;
    /**
     * The provider's keywords that enable this event.
     */
    uint64_t keywords;
    /**
     * The payload's version.
     */
    uint32_t version;
    /**
     * The level, from 1, critical, to 5, verbose; 0 is always on.
     */
    uint32_t level;
    /**
     * The opcode: 1 is start, 2 is stop; -1 if the record states none.
     */
    int32_t opcode;
    /**
     * The first error in the description of the fields, or `DIPC_STATUS_OK`. The fields before it are valid.
     */
    dipc_status problem;
    /**
     * The fields of a payload, for `dipc_metadata_values`.
     */
    struct dipc_field_list fields;
} dipc_metadata;

/**
 * A field of a description, for `dipc_fields_values`. Only `dipc_metadata_fields` makes it.
 */
typedef struct dipc_described_field {
    /**
     * The name of the field; empty for the element of an array.
     */
    struct dipc_text name;
    /**
     * One of `DIPC_TYPE_*`.
     */
    uint32_t kind;
    /**
     * The index of the object or array that contains the field, or `DIPC_NO_PARENT`.
     */
    uint32_t parent;
    /**
     * The index after the last field within this field.
     */
    uint32_t end;
    /**
     * The number of elements of a `DIPC_TYPE_FIXED_ARRAY`; 1 for a number that counts the elements of following arrays.
     */
    uint32_t count;
} dipc_described_field;

/**
 * Bytes of a payload.
 */
typedef struct dipc_bytes {
    /**
     * The first byte.
     */
    const uint8_t *data;
    /**
     * The number of bytes.
     */
    size_t len;
} dipc_bytes;

/**
 * The content of a value; its kind states which field is valid.
 */
typedef union dipc_value_content {
    /**
     * The value as a number.
     */
    uint64_t number;
    /**
     * The value as a number with a fraction.
     */
    double real;
    /**
     * The value as a text.
     */
    struct dipc_text text;
    /**
     * 16 bytes.
     */
    struct dipc_guid guid;
    /**
     * The bytes of an array.
     */
    struct dipc_bytes bytes;
} dipc_value_content;

/**
 * A value of a payload, with the index of its field. Its pointers point into the payload.
 */
typedef struct dipc_indexed_value {
    /**
     * The index of the field in the array of `dipc_metadata_fields`; for the begin and end of an object or array its own.
     */
    uint32_t field;
    /**
     * One of `DIPC_VALUE_*`.
     */
    uint32_t kind;
    /**
     * The content; nothing for the begin and end of an object or array.
     */
    union dipc_value_content u;
} dipc_indexed_value;

/**
 * A property of an event.
 */
typedef struct dipc_label {
    /**
     * One of `DIPC_LABEL_*`.
     */
    uint32_t kind;
    /**
     * The name, for the kinds that have one.
     */
    struct dipc_text name;
    /**
     * The value as a number.
     */
    uint64_t number;
    /**
     * The value as a text.
     */
    struct dipc_text text;
    /**
     * 16 bytes.
     */
    struct dipc_guid guid;
} dipc_label;

/**
 * A function that receives the labels of a list, in order. It must return: no `longjmp`, no C++ exception.
 */
typedef void (*dipc_visit_label)(void *context, const struct dipc_label *label);

/**
 * A message, in the bytes that it was parsed from.
 */
typedef struct dipc_message {
    /**
     * The code of a command, or of an answer.
     */
    uint16_t code;
    /**
     * The bytes after the header.
     */
    const uint8_t *payload;
    /**
     * The number of bytes.
     */
    size_t payload_len;
    /**
     * The number of bytes of the whole message.
     */
    size_t len;
} dipc_message;

/**
 * A part of a message: a field of the header or of the payload.
 */
typedef struct dipc_part {
    /**
     * The name of the part; null in a part that `dipc_find` returns.
     */
    const struct dipc_path *path;
    /**
     * One of `DIPC_PART_*`.
     */
    uint32_t kind;
    /**
     * The offset of its bytes from the start of the message.
     */
    size_t offset;
    /**
     * The bytes of the part, inside the message. A text includes its NUL, but not its count, which is another part.
     */
    const uint8_t *bytes;
    /**
     * The number of bytes.
     */
    size_t len;
    /**
     * The value as a number, for the kinds that have one.
     */
    uint64_t number;
    /**
     * The value as a text, for `DIPC_PART_TEXT`.
     */
    struct dipc_text text;
    /**
     * The name of the value, or null.
     */
    struct dipc_text name;
} dipc_part;

/**
 * A function that receives the parts of a message, in order. It must return: no `longjmp`, no C++ exception.
 */
typedef void (*dipc_visit)(void *context, const struct dipc_part *part);

/**
 * The runtimes at a monitor's port, and the newest connection of each. In memory of the caller; set it to zeros or
 * initialise it before another function receives it.
 *
 * A runtime connects, sends its advertise frame, and waits for one command; then it connects again. The port decides what
 * each connection means. It has no sockets and no clock: a connection is a number of the caller, for example its
 * descriptor, and a time is a number of milliseconds since a moment of the caller's choice.
 *
 * * `dipc_monitor_port_accept` for each connection that was accepted; it returns the token of the connection.
 * * Whenever the connection is readable, and immediately after accepting it: read without waiting into the space of
 *   `dipc_monitor_port_receive`, and report it with `dipc_monitor_port_advance`, until reading would block.
 * * `dipc_monitor_port_take` takes the connection of a runtime, for one call; `dipc_monitor_port_released` after its end.
 * * `dipc_monitor_port_on_due` at the time of `dipc_monitor_port_due` at the latest, until nothing has changed.
 *
 * These functions report what has happened as a `dipc_monitor_change`. Its connection, if it has one, is the caller's to
 * close.
 */
typedef struct dipc_monitor_port {
    /**
     * The state.
     */
    uint64_t opaque[24];
} dipc_monitor_port;

/**
 * Memory of the caller for one connection or one runtime. It needs no initialisation.
 */
typedef struct dipc_monitor_slot {
    /**
     * The content.
     */
    uint64_t opaque[16];
} dipc_monitor_slot;

/**
 * A runtime that a port knows, or knew until now.
 */
typedef struct dipc_runtime {
    /**
     * The runtime's identity. Process ids are not one: systems use them again, and containers have the same ones.
     */
    struct dipc_guid cookie;
    /**
     * The process id from the last frame, in the PID namespace of the process.
     */
    uint64_t process_id;
    /**
     * What the caller knows of the peer of the last connection.
     */
    uint64_t peer;
    /**
     * One of `DIPC_RUNTIME_*`.
     */
    uint32_t state;
} dipc_runtime;

/**
 * What has happened at a port.
 */
typedef struct dipc_monitor_change {
    /**
     * One of `DIPC_CHANGE_*`.
     */
    uint32_t kind;
    /**
     * One of `DIPC_REJECTION_*`.
     */
    uint32_t rejection;
    /**
     * The reason for `DIPC_REJECTION_PROTOCOL`; otherwise `DIPC_STATUS_OK`.
     */
    dipc_status status;
    /**
     * The number of the reason.
     */
    size_t detail;
    /**
     * Whether the runtime was unknown before it arrived.
     */
    bool first;
    /**
     * Whether there is a connection for the caller to close.
     */
    bool has_connection;
    /**
     * The connection.
     */
    uint64_t connection;
    /**
     * The runtime, for a change that has one; for others only `peer`, if they have a connection.
     */
    struct dipc_runtime runtime;
} dipc_monitor_change;

/**
 * A function that returns whether the process of a runtime has ended; false if that is unknown. It must return: no
 * `longjmp`, no C++ exception; and it must not use the port. The `state` of the runtime has no meaning there.
 */
typedef bool (*dipc_has_ended)(void *context, const struct dipc_runtime *runtime);

/**
 * A value of a payload.
 */
typedef struct dipc_field_value {
    /**
     * One of `DIPC_VALUE_*`.
     */
    uint32_t kind;
    /**
     * The name of the field; empty for an element of an array.
     */
    struct dipc_text name;
    /**
     * The value as a number.
     */
    uint64_t number;
    /**
     * The value as a number with a fraction.
     */
    double real;
    /**
     * The value as a text.
     */
    struct dipc_text text;
    /**
     * 16 bytes.
     */
    struct dipc_guid guid;
    /**
     * The bytes of an array.
     */
    const uint8_t *bytes;
    /**
     * The number of bytes.
     */
    size_t len;
} dipc_field_value;

/**
 * A function that receives the values of a payload, in order, and returns whether it wants the next one. It must return:
 * no `longjmp`, no C++ exception.
 */
typedef bool (*dipc_visit_value)(void *context, const struct dipc_field_value *value);

/**
 * A list in a message, and a place in it. The functions `dipc_next_*` store the item at the place, and move the place
 * after the item. So the time to read a whole list is proportional to its length. A copy has its own place. All zeros
 * are an empty list.
 */
typedef struct dipc_list {
    /**
     * The bytes of the items that are left.
     */
    const uint8_t *bytes;
    /**
     * The number of bytes.
     */
    size_t len;
    /**
     * The number of items that are left.
     */
    uint32_t count;
    /**
     * The type of the items, which `dipc_next_*` check.
     */
    uint32_t items;
} dipc_list;

/**
 * The session that a request starts.
 */
typedef struct dipc_requested_session {
    /**
     * One of `DIPC_SESSION_TYPE_*`. A session that writes to `user_events` has `rundown_keyword` and `providers` only.
     */
    uint32_t session_type;
    /**
     * Size of the runtime's buffer in MB.
     */
    uint32_t buffer_mb;
    /**
     * Format of the stream.
     */
    dipc_format format;
    /**
     * Whether events have stacks.
     */
    bool stackwalk;
    /**
     * The behaviour when the buffer is full.
     */
    dipc_session_buffer_mode session_buffer_mode;
    /**
     * Keywords of the rundown provider; 0 for no rundown. A command that only says whether there is a rundown means the
     * default one, `DIPC_DEFAULT_RUNDOWN`.
     */
    uint64_t rundown_keyword;
    /**
     * The providers, for `dipc_next_provider`.
     */
    struct dipc_list providers;
} dipc_requested_session;

/**
 * A provider of a requested session.
 */
typedef struct dipc_requested_provider {
    /**
     * Groups of events, one bit each; the provider defines them.
     */
    uint64_t keywords;
    /**
     * The verbosity: one of `DIPC_LEVEL_*`.
     */
    dipc_event_level level;
    /**
     * The name of the provider.
     */
    struct dipc_text name;
    /**
     * Settings for the provider: `key=value` joined by `;`. Can be null.
     */
    struct dipc_text arguments;
    /**
     * Whether `event_ids` select the events to send, or those not to send. A provider without a filter sends all events:
     * false, and an empty list.
     */
    bool filter_enable;
    /**
     * The ids of the filter, for `dipc_next_event_id`.
     */
    struct dipc_list event_ids;
    /**
     * For `user_events`: the tracepoint of events that are in no set; if it is null, those events are not written.
     */
    struct dipc_text default_tracepoint_name;
    /**
     * For `user_events`: the tracepoints for sets of events, for `dipc_next_tracepoint_set`.
     */
    struct dipc_list tracepoint_sets;
} dipc_requested_provider;

/**
 * The events for one tracepoint of a requested session.
 */
typedef struct dipc_requested_tracepoint_set {
    /**
     * The name of the tracepoint.
     */
    struct dipc_text tracepoint_name;
    /**
     * The ids of its events, for `dipc_next_event_id`.
     */
    struct dipc_list event_ids;
} dipc_requested_tracepoint_set;

/**
 * The variable that a SetEnvironmentVariable sets or removes.
 */
typedef struct dipc_requested_variable {
    /**
     * The name of the variable.
     */
    struct dipc_text name;
    /**
     * Its new value; null removes the variable.
     */
    struct dipc_text value;
} dipc_requested_variable;

/**
 * The dump that a request writes.
 */
typedef struct dipc_requested_dump {
    /**
     * The path of the dump. The runtime expands `%p` and similar placeholders, and chooses the path if it is null.
     */
    struct dipc_text path;
    /**
     * How much of the process the dump contains: one of `DIPC_DUMP_*`.
     */
    dipc_dump_type dump_type;
    /**
     * Options of the dump writer: any of `DIPC_DUMP_FLAG_*`. The `diagnostics` of GenerateCoreDump other than 0 means
     * `DIPC_DUMP_FLAG_LOGGING`.
     */
    dipc_dump_flags flags;
} dipc_requested_dump;

/**
 * The profiler that a request loads.
 */
typedef struct dipc_requested_profiler {
    /**
     * The profiler's CLSID.
     */
    struct dipc_guid profiler_guid;
    /**
     * The path of the profiler's library.
     */
    struct dipc_text profiler_path;
    /**
     * Data for the profiler, from AttachProfiler only.
     */
    struct dipc_client_data client_data;
    /**
     * How long the runtime waits for the profiler, in milliseconds; from AttachProfiler only. Microsoft's client sends
     * seconds.
     */
    uint32_t attach_timeout;
} dipc_requested_profiler;

/**
 * The description of a process. Fields that the answer does not have are null or 0.
 */
typedef struct dipc_process_info {
    /**
     * The version of the answer, from GetProcessInfo3 only. Servers send 1.
     */
    uint32_t version;
    /**
     * The process id, in the PID namespace of the process.
     */
    uint64_t process_id;
    /**
     * The identity of the runtime: a random value for each start.
     */
    struct dipc_guid runtime_cookie;
    /**
     * The command line of the process.
     */
    struct dipc_text command_line;
    /**
     * `Windows`, `Linux`, `macOS` and others.
     */
    struct dipc_text os;
    /**
     * `x86`, `x64`, `arm32`, `arm64` and others.
     */
    struct dipc_text arch;
    /**
     * The assembly of the entry point, not from GetProcessInfo. It can be empty while the runtime is suspended.
     */
    struct dipc_text managed_entrypoint_assembly_name;
    /**
     * The runtime's version, not from GetProcessInfo.
     */
    struct dipc_text clr_product_version;
    /**
     * The platform, for example `linux-x64`, from GetProcessInfo3 only.
     */
    struct dipc_text portable_rid;
} dipc_process_info;

/**
 * A request that was received, in the buffer of the exchange. The functions `dipc_request_*` read its values.
 */
typedef struct dipc_request {
    /**
     * The code of the command, also if its payload is malformed; 0 if the header is malformed, or the message cut off or
     * longer than the buffer.
     */
    uint16_t code;
    /**
     * What follows an OK reply: one of `DIPC_THEN_*`.
     */
    uint32_t then;
    /**
     * The bytes of the message.
     */
    const uint8_t *bytes;
    /**
     * The number of bytes; 0 if the connection ended before the first one. A port at which the server listens replies to
     * that, too, as runtimes do; one that connects to a monitor does not: see `dipc_connect_port`.
     */
    size_t len;
} dipc_request;

/**
 * A tracing session over two connections: one has the stream, the other the StopTracing that ends it. In memory of the
 * caller; set it to zeros or initialise it before another function receives it.
 *
 * A runtime that receives StopTracing first writes its buffered events to the stream, and only then answers. A client
 * that waits for the answer without reading the stream waits indefinitely. So do whichever of the two can proceed:
 *
 * * As long as `dipc_session_wants_stream`, read the stream, and report its bytes with `dipc_session_stream_advance`.
 * * `dipc_session_stop` only requests the Stop. After it, do what `dipc_session_stop_step` says on a second connection,
 *   and report it with `dipc_session_stop_advance`.
 * * Call `dipc_session_tick` at the time of `dipc_session_until` at the latest. The session has no clock: all times are
 *   milliseconds of yours.
 * * It is over when `dipc_session_end` is not `DIPC_SESSION_RUNNING`. Then close both connections.
 *
 * ```c
 * while (dipc_session_end(&session) == DIPC_SESSION_RUNNING) {
 *     dipc_step step;
 *     dipc_session_tick(&session, now_ms());
 *     dipc_session_stop_step(&session, &step);
 *     if (step.kind == DIPC_STEP_CONNECT) {
 *         // connect, and report it: dipc_session_stop_advance(&session, DIPC_STOP_CONNECTED, 0)
 *         continue;
 *     }
 *     // Wait until `dipc_session_until`, for the stream if dipc_session_wants_stream(&session), and for the second
 *     // connection as the step says: to write with DIPC_STEP_SEND, to read with DIPC_STEP_RECEIVE. Then do what is ready.
 * }
 * ```
 */
typedef struct dipc_session {
    /**
     * The state.
     */
    uint64_t opaque[44];
} dipc_session;

/**
 * The header and the payload of an event, or of a record that describes events.
 */
typedef struct dipc_event {
    /**
     * The number of the description of the event.
     */
    uint32_t metadata_id;
    /**
     * The number of the event among those of its capture thread.
     */
    uint32_t sequence;
    /**
     * The thread that wrote the event.
     */
    uint64_t capture_thread;
    /**
     * The thread that the event is about; in version 6 the index of a thread record.
     */
    uint64_t thread;
    /**
     * The processor, or `UINT32_MAX` if it is unknown.
     */
    uint32_t processor;
    /**
     * The number of the stack, which can be an empty one; 0 for none. Version 3 has the stack in the event instead: `stack`.
     */
    uint32_t stack_id;
    /**
     * The time, in ticks: see `dipc_trace`.
     */
    uint64_t timestamp;
    /**
     * The activity, or zeros.
     */
    struct dipc_guid activity_id;
    /**
     * The related activity, or zeros.
     */
    struct dipc_guid related_activity_id;
    /**
     * The number of a list of labels, in version 6 only.
     */
    uint32_t label_list;
    /**
     * Whether no later event of the stream has an earlier time.
     */
    bool sorted;
    /**
     * The payload.
     */
    const uint8_t *payload;
    /**
     * The length of the payload.
     */
    size_t payload_len;
    /**
     * The addresses of the stack, innermost first, each as wide as a pointer of the process. Only in version 3.
     */
    const uint8_t *stack;
    /**
     * The number of bytes of the stack.
     */
    size_t stack_len;
} dipc_event;

/**
 * What a stream states about itself.
 */
typedef struct dipc_trace {
    /**
     * The version of the stream: 3, 4 or 6.
     */
    uint32_t version;
    /**
     * Bytes of an address in a stack: 4 or 8.
     */
    uint32_t pointer_size;
    /**
     * Ticks of timestamps per second.
     */
    uint64_t frequency;
    /**
     * The timestamp when the session started.
     */
    uint64_t sync_ticks;
    /**
     * When the session started, in nanoseconds since 1970-01-01 UTC; 0 if that time does not exist.
     */
    uint64_t start_unix_nanoseconds;
    /**
     * The id of the process, or 0.
     */
    uint32_t process_id;
    /**
     * The number of its processors, or 0.
     */
    uint32_t processors;
} dipc_trace;

/**
 * A block of a stream.
 */
typedef struct dipc_block {
    /**
     * The name of its kind in the format.
     */
    struct dipc_text name;
    /**
     * The offset of its header in the stream.
     */
    uint64_t offset;
    /**
     * The length of its body.
     */
    uint32_t len;
} dipc_block;

/**
 * A call stack.
 */
typedef struct dipc_stack {
    /**
     * The number by which events refer to the stack.
     */
    uint32_t id;
    /**
     * The addresses, innermost first, each as wide as a pointer of the process, little-endian, not aligned.
     */
    const uint8_t *bytes;
    /**
     * The number of bytes.
     */
    size_t len;
} dipc_stack;

/**
 * A point in time at which the sequence numbers of all threads are known.
 */
typedef struct dipc_sequence_point {
    /**
     * The time, in ticks.
     */
    uint64_t timestamp;
    /**
     * Whether the numbers of threads and descriptions begin anew, in version 6 only: 1 for threads, 2 for descriptions.
     */
    uint32_t flags;
    /**
     * The number of the `DIPC_RECORD_THREAD_SEQUENCE` that follow.
     */
    uint32_t threads;
} dipc_sequence_point;

/**
 * A thread.
 */
typedef struct dipc_thread {
    /**
     * The id of the thread, in version 6 its index.
     */
    uint64_t thread;
    /**
     * The sequence number of its last event.
     */
    uint32_t sequence;
} dipc_thread;

/**
 * A thread that starts. Its number can be used again after its end.
 */
typedef struct dipc_thread_start {
    /**
     * The number by which events refer to the thread.
     */
    uint64_t thread;
    /**
     * The operating system's id of the thread, or `UINT64_MAX` if it is unknown.
     */
    uint64_t thread_id;
    /**
     * The id of its process, or `UINT64_MAX` for that of the trace.
     */
    uint64_t process_id;
    /**
     * The name of the thread; empty if it has none.
     */
    struct dipc_text name;
} dipc_thread_start;

/**
 * A list of labels, for `dipc_labels`.
 */
typedef struct dipc_label_list {
    /**
     * The number by which events refer to the list.
     */
    uint32_t id;
    /**
     * The labels.
     */
    const uint8_t *bytes;
    /**
     * The number of bytes.
     */
    size_t len;
} dipc_label_list;

/**
 * The end of a stream. `dipc_parser_end_text` returns the sentence for it.
 */
typedef struct dipc_end {
    /**
     * One of `DIPC_END_*`.
     */
    uint32_t kind;
    /**
     * The offset in the stream.
     */
    uint64_t offset;
} dipc_end;

/**
 * The content of a record; its kind states which field is valid.
 */
typedef union dipc_record_content {
    /**
     * The number of bytes that the next window needs.
     */
    size_t needed;
    /**
     * An event, or a description.
     */
    struct dipc_event event;
    /**
     * The facts about the stream.
     */
    struct dipc_trace trace;
    /**
     * A block.
     */
    struct dipc_block block;
    /**
     * A stack.
     */
    struct dipc_stack stack;
    /**
     * A sequence point.
     */
    struct dipc_sequence_point sequence_point;
    /**
     * A thread.
     */
    struct dipc_thread thread;
    /**
     * A thread that starts.
     */
    struct dipc_thread_start thread_start;
    /**
     * A list of labels.
     */
    struct dipc_label_list label_list;
    /**
     * The end.
     */
    struct dipc_end end;
} dipc_record_content;

/**
 * A record of a stream. Its pointers point into the window.
 */
typedef struct dipc_record {
    /**
     * One of `DIPC_RECORD_*`.
     */
    uint32_t kind;
    /**
     * The content.
     */
    union dipc_record_content u;
} dipc_record;

/**
 * A writer of a NetTrace stream of version 4, the version of current runtimes, in memory of the caller. Set it to zeros or
 * initialise it before another function receives it.
 *
 * Every function that writes a record takes it and stores in `out` the bytes that the caller must output then: mostly
 * none. An error leaves the record out.
 *
 * ```c
 * status = dipc_writer_event(&writer, &event, &out);
 * if (status == DIPC_STATUS_OK) write_all(fd, out.data, out.len);
 * ```
 *
 * A record that another one refers to is written before it.
 */
typedef struct dipc_writer {
    /**
     * The state.
     */
    uint64_t opaque[72];
} dipc_writer;

/**
 * A field of the payload of an event.
 */
typedef struct dipc_field {
    /**
     * The name, in UTF-8.
     */
    struct dipc_text name;
    /**
     * One of `DIPC_TYPE_*`.
     */
    uint32_t kind;
} dipc_field;

/**
 * The description of a kind of event, for a writer. The values of a payload follow each other without gaps, in
 * little-endian byte order.
 */
typedef struct dipc_description {
    /**
     * The number by which events refer to the description; not 0.
     */
    uint32_t id;
    /**
     * The event's number at its provider.
     */
    uint32_t event_id;
    /**
     * The provider of the event, in UTF-8.
     */
    struct dipc_text provider;
    /**
     * The event's name, in UTF-8.
     */
    struct dipc_text name;
    /**
     * The provider's keywords that enable this event.
     */
    uint64_t keywords;
    /**
     * The payload's version.
     */
    uint32_t version;
    /**
     * The level, from 1, critical, to 5, verbose; 0 is always on.
     */
    uint32_t level;
    /**
     * The fields of a payload.
     */
    const struct dipc_field *fields;
    /**
     * The number of fields, at most `DIPC_MAX_FIELDS`.
     */
    size_t field_count;
} dipc_description;

/**
 * Bytes to output, in the buffer of the writer. They are valid until the next function receives the writer. Those of
 * `dipc_writer_finish` are valid as long as the buffer.
 */
typedef struct dipc_output {
    /**
     * The first byte.
     */
    const uint8_t *data;
    /**
     * The number of bytes.
     */
    size_t len;
} dipc_output;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the `DIPC_VERSION` of the library.
 */
uint32_t dipc_version(void);

/**
 * Initialises `exchange` as the receiver of an advertise frame, on a connection that a monitor has accepted. It needs no
 * buffer. After the frame, the connection can carry one call.
 *
 * Drive it for at most `DIPC_ADVERTISE_RECEIVE_MS`: any process can connect and send nothing. A
 * `dipc_monitor_port` receives the frames of all its connections itself.
 */
dipc_status dipc_advertise_init(struct dipc_exchange *exchange);

/**
 * Stores the frame that was received in `advertise`.
 *
 * Returns the error that ended the exchange, or `DIPC_STATUS_CLOSED` if it is not over.
 */
dipc_status dipc_advertise_finish(struct dipc_exchange *exchange, struct dipc_advertise *advertise, size_t *detail);

/**
 * Parses the advertise frame at the front of `bytes`, and stores it in `advertise`.
 *
 * Returns `DIPC_STATUS_MORE` if the frame is longer than `bytes`, and `DIPC_STATUS_BAD_ADVERTISE` at the first wrong byte.
 */
dipc_status dipc_advertise_parse(const uint8_t *bytes,
                                 size_t len,
                                 struct dipc_advertise *advertise,
                                 size_t *detail);

/**
 * Initialises `exchange` as a call: it sends the message of `len` bytes at the front of `buf`, which a `dipc_build_*`
 * function has written, and receives the answer into `buf`. A connection carries one call.
 *
 * The call uses `buf` until its answer is not needed any more. 64 KiB are always enough, 4 KiB nearly always.
 *
 * Returns an error if the `len` bytes are not exactly one message.
 */
dipc_status dipc_call_init(struct dipc_exchange *exchange, uint8_t *buf, size_t size, size_t len, size_t *detail);

/**
 * Stores the answer that a call has received in `answer`, which then points into the buffer of the call. A refusal is an
 * answer too. The payload of an OK answer is not checked yet.
 *
 * Returns the error that ended the exchange, `DIPC_STATUS_CLOSED` if it is not over, or that a refusal is malformed.
 */
dipc_status dipc_call_finish(struct dipc_exchange *exchange,
                             struct dipc_answer *answer,
                             size_t *detail);

/**
 * Stores as many of the next events of the stream as `columns` have `room` for, and their number in `count`.
 *
 * It stops before the first record that is not an event, which `dipc_parser_next` then returns, and does not return an
 * event if there is no room. It needs a fraction of the time of one call for each event. `window` is that of
 * `dipc_parser_next`; offsets are valid until the next `dipc_parser_release`.
 *
 * ```c
 * uint64_t times[1024];
 * dipc_event_columns columns = {0};
 * columns.timestamp = times;
 * do {
 *     while (dipc_parser_next_events(&parser, window, len, &columns, 1024, &count) == DIPC_STATUS_OK && count > 0)
 *         add(times, count);
 *     dipc_parser_next(&parser, window, len, &record);
 * } while (handle(&record));
 * ```
 */
dipc_status dipc_parser_next_events(struct dipc_parser *parser,
                                    const uint8_t *window,
                                    size_t len,
                                    const struct dipc_event_columns *columns,
                                    size_t room,
                                    size_t *count);

/**
 * Writes the request `GenerateCoreDump` (`0x0101`, since .NET 3) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_GenerateCoreDump(uint8_t *buf,
                                        size_t size,
                                        size_t *len,
                                        struct dipc_text dump_name,
                                        dipc_dump_type dump_type,
                                        uint32_t diagnostics);

/**
 * Writes the request `GenerateCoreDump2` (`0x0102`, since .NET 6) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_GenerateCoreDump2(uint8_t *buf,
                                         size_t size,
                                         size_t *len,
                                         struct dipc_text dump_name,
                                         dipc_dump_type dump_type,
                                         dipc_dump_flags flags);

/**
 * Writes the request `GenerateCoreDump3` (`0x0103`, since .NET 7) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_GenerateCoreDump3(uint8_t *buf,
                                         size_t size,
                                         size_t *len,
                                         struct dipc_text dump_name,
                                         dipc_dump_type dump_type,
                                         dipc_dump_flags flags);

/**
 * Writes the request `StopTracing` (`0x0201`, since .NET 3) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_StopTracing(uint8_t *buf,
                                   size_t size,
                                   size_t *len,
                                   uint64_t session_id);

/**
 * Writes the request `CollectTracing` (`0x0202`, since .NET 3) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_CollectTracing(uint8_t *buf,
                                      size_t size,
                                      size_t *len,
                                      uint32_t buffer_mb,
                                      dipc_format format,
                                      struct dipc_providers providers);

/**
 * Writes the request `CollectTracing2` (`0x0203`, since .NET 3) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_CollectTracing2(uint8_t *buf,
                                       size_t size,
                                       size_t *len,
                                       uint32_t buffer_mb,
                                       dipc_format format,
                                       bool rundown,
                                       struct dipc_providers providers);

/**
 * Writes the request `CollectTracing3` (`0x0204`, since .NET 9) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_CollectTracing3(uint8_t *buf,
                                       size_t size,
                                       size_t *len,
                                       uint32_t buffer_mb,
                                       dipc_format format,
                                       bool rundown,
                                       bool stackwalk,
                                       struct dipc_providers providers);

/**
 * Writes the request `CollectTracing4` (`0x0205`, since .NET 9) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_CollectTracing4(uint8_t *buf,
                                       size_t size,
                                       size_t *len,
                                       uint32_t buffer_mb,
                                       dipc_format format,
                                       uint64_t rundown_keyword,
                                       bool stackwalk,
                                       struct dipc_providers providers);

/**
 * Writes the request `CollectTracing5` (`0x0206`, since .NET 10) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_CollectTracing5(uint8_t *buf,
                                       size_t size,
                                       size_t *len,
                                       struct dipc_session_config session);

/**
 * Writes the request `CollectTracing6` (`0x0207`, since .NET 11) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_CollectTracing6(uint8_t *buf,
                                       size_t size,
                                       size_t *len,
                                       struct dipc_session_config6 session);

/**
 * Writes the request `AttachProfiler` (`0x0301`, since .NET 3) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_AttachProfiler(uint8_t *buf,
                                      size_t size,
                                      size_t *len,
                                      uint32_t attach_timeout,
                                      struct dipc_guid profiler_guid,
                                      struct dipc_text profiler_path,
                                      struct dipc_client_data client_data);

/**
 * Writes the request `StartupProfiler` (`0x0302`, since .NET 6) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_StartupProfiler(uint8_t *buf,
                                       size_t size,
                                       size_t *len,
                                       struct dipc_guid profiler_guid,
                                       struct dipc_text profiler_path);

/**
 * Writes the request `GetProcessInfo` (`0x0400`, since .NET 5) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_GetProcessInfo(uint8_t *buf,
                                      size_t size,
                                      size_t *len);

/**
 * Writes the request `ResumeRuntime` (`0x0401`, since .NET 5) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_ResumeRuntime(uint8_t *buf,
                                     size_t size,
                                     size_t *len);

/**
 * Writes the request `GetProcessEnvironment` (`0x0402`, since .NET 5) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_GetProcessEnvironment(uint8_t *buf,
                                             size_t size,
                                             size_t *len);

/**
 * Writes the request `SetEnvironmentVariable` (`0x0403`, since .NET 6) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_SetEnvironmentVariable(uint8_t *buf,
                                              size_t size,
                                              size_t *len,
                                              struct dipc_text name,
                                              struct dipc_text value);

/**
 * Writes the request `GetProcessInfo2` (`0x0404`, since .NET 6) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_GetProcessInfo2(uint8_t *buf,
                                       size_t size,
                                       size_t *len);

/**
 * Writes the request `EnablePerfMap` (`0x0405`, since .NET 8) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_EnablePerfMap(uint8_t *buf,
                                     size_t size,
                                     size_t *len,
                                     dipc_perf_map_type perf_map_type);

/**
 * Writes the request `DisablePerfMap` (`0x0406`, since .NET 8) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_DisablePerfMap(uint8_t *buf,
                                      size_t size,
                                      size_t *len);

/**
 * Writes the request `ApplyStartupHook` (`0x0407`, since .NET 8) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_ApplyStartupHook(uint8_t *buf,
                                        size_t size,
                                        size_t *len,
                                        struct dipc_text startup_hook_path);

/**
 * Writes the request `GetProcessInfo3` (`0x0408`, since .NET 8) into `buf`. `len` receives its length, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`, or the length that no message can have with `DIPC_STATUS_MESSAGE_TOO_LONG`. The values are not checked: see `dipc_check`.
 */
dipc_status dipc_build_GetProcessInfo3(uint8_t *buf,
                                       size_t size,
                                       size_t *len);

/**
 * Stores the command with this index in `row`, in the order of their codes from index 0 on.
 *
 * Returns `DIPC_STATUS_NOT_FOUND` if there are not so many.
 */
dipc_status dipc_command_at(size_t index, struct dipc_command_row *row);

/**
 * Stores the command with this code in `row`.
 *
 * Returns `DIPC_STATUS_NOT_FOUND` if the code is unknown.
 */
dipc_status dipc_command_find(uint16_t code, struct dipc_command_row *row);

/**
 * Reads the environment of a runtime of the known kind `flavour`, one of `DIPC_FLAVOUR_*`. `lookup` is called with `context` for
 * both names of each variable, `DOTNET_DiagnosticPorts` and `COMPlus_DiagnosticPorts` for example. What it returns is not
 * copied: it must stay valid and unchanged as long as the config or a text of it is used.
 *
 * Returns `DIPC_STATUS_INVALID_ARGUMENT` for another number, or for a value that is not UTF-8.
 */
dipc_status dipc_config_init(struct dipc_config *config,
                             uint32_t flavour,
                             dipc_lookup lookup,
                             void *context);

/**
 * Returns the size of a `dipc_config` in bytes: that of the header which the library was compiled with.
 */
size_t dipc_config_size(void);

/**
 * Returns whether the runtime has any ports, including the default one; false if `config` is not initialised.
 */
bool dipc_config_is_enabled(const struct dipc_config *config);

/**
 * Returns whether the default port, at which the runtime listens, suspends the runtime; false if `config` is not
 * initialised.
 */
bool dipc_config_default_port_suspends(const struct dipc_config *config);

/**
 * Stores the port with this index in `port`. Ports have the runtime's order: the last of the list comes first. The default
 * port is not one of them. The address is valid as long as the value that the config was read from.
 *
 * Returns `DIPC_STATUS_NOT_FOUND` if there are not so many ports.
 */
dipc_status dipc_config_port(const struct dipc_config *config,
                             size_t index,
                             struct dipc_port *port);

/**
 * Passes every probable mistake in the variables to `visit`, with `context`: first those of the variables, then those of
 * the ports in the order of the text. None is an error for a runtime.
 */
dipc_status dipc_config_findings(const struct dipc_config *config,
                                 dipc_visit_finding visit,
                                 void *context);

/**
 * The monitor's role: writes the value of `DOTNET_DiagnosticPorts` with which a runtime connects to this address into
 * `text`, as UTF-8 with a NUL at the end. `address` is in UTF-8: the path of a socket, or the name of a pipe without
 * `\\.\pipe\`. If `suspends`, the runtime does not start until it is resumed. `others`, in UTF-8, is the value that the
 * environment of the runtime has already, or null: the runtime also connects to its ports, except to one with the same
 * address.
 *
 * `len` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
 * and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`. It returns
 * `DIPC_STATUS_INVALID_ARGUMENT` for an address that a list of ports cannot contain: it is empty, or has a `;`, a `,` or a
 * NUL; and for a text that is not UTF-8.
 */
dipc_status dipc_port_text(struct dipc_text address,
                           bool suspends,
                           struct dipc_text others,
                           char *text,
                           size_t size,
                           size_t *len);

/**
 * Initialises a port that advertises this runtime: with its identity, which is random for each process, and its process
 * id.
 */
dipc_status dipc_connect_port_init(struct dipc_connect_port *port,
                                   struct dipc_guid runtime_cookie,
                                   uint64_t process_id);

/**
 * Returns the size of a `dipc_connect_port` in bytes: that of the header which the library was compiled with.
 */
size_t dipc_connect_port_size(void);

/**
 * Stores the next action in `step`. It stays the same until `dipc_connect_port_advance`. The bytes of `DIPC_STEP_SEND` are
 * in the port, and are only read.
 */
dipc_status dipc_connect_port_step(struct dipc_connect_port *port,
                                   struct dipc_step *step);

/**
 * Reports the result of the step: one of `DIPC_CONNECT_*`, with its `value`. An event that does not fit the step is
 * ignored. Returns `DIPC_STATUS_OVERRUN` for a `DIPC_CONNECT_SENT` with more bytes than the step lent, which counts as
 * `DIPC_CONNECT_FAILED`.
 */
dipc_status dipc_connect_port_advance(struct dipc_connect_port *port, uint32_t event, size_t value);

/**
 * Records a ResumeRuntime on the port with this index. `suspending` is an array of the caller with one flag for each port,
 * in any order: at startup whether the port suspends the runtime, later whether it still does.
 *
 * Returns whether the port suspended the runtime until now. Another ResumeRuntime has no effect, and is answered with OK,
 * too; so is one on a port that does not exist.
 */
bool dipc_suspension_resume(bool *suspending,
                            size_t count,
                            size_t port);

/**
 * Returns whether a port still suspends the runtime, which starts after each has received its ResumeRuntime.
 */
bool dipc_suspension_is_suspended(bool *suspending, size_t count);

/**
 * Initialises `exchange` as the receiver of the environment that follows `answer`, the bytes of the OK answer to
 * GetProcessEnvironment, on the same connection.
 *
 * The environment arrives in pieces of the size of `buf`, which must be large enough for the longest entry, and can be
 * the buffer of the call. Drive the exchange until its step is `DIPC_STEP_DONE`, take the entries that have arrived with
 * `dipc_environment_next`, and continue until `dipc_environment_is_finished`.
 *
 * Returns `DIPC_STATUS_LIMIT_EXCEEDED` if more than `limit` bytes are announced.
 */
dipc_status dipc_environment_init(struct dipc_exchange *exchange,
                                  const uint8_t *answer,
                                  size_t len,
                                  uint32_t limit,
                                  uint8_t *buf,
                                  size_t size,
                                  size_t *detail);

/**
 * Stores the next entry, usually `NAME=value`, in `entry`. It is valid until the next function receives the exchange.
 *
 * Returns `DIPC_STATUS_NOT_FOUND` if no further entry has arrived: drive the exchange, unless it is finished. Returns
 * `DIPC_STATUS_BUFFER_TOO_SMALL` for an entry that is longer than the buffer, and an error for malformed bytes.
 */
dipc_status dipc_environment_next(struct dipc_exchange *exchange, struct dipc_text *entry, size_t *detail);

/**
 * Returns whether every entry has been taken; false if `exchange` is of another kind.
 */
bool dipc_environment_is_finished(struct dipc_exchange *exchange);

/**
 * Stores the next action of an exchange in `step`. Without `dipc_exchange_advance` in between, it stays the same.
 *
 * Returns `DIPC_STATUS_BUFFER_TOO_SMALL` while the exchange needs a larger buffer: see `dipc_exchange_set_buffer`.
 */
dipc_status dipc_exchange_step(struct dipc_exchange *exchange, struct dipc_step *step, size_t *detail);

/**
 * Reports how many of the bytes of the last step were written or filled; 0 means that the peer closed the connection. A
 * connection that was reset counts as closed.
 *
 * Returns an error if the received bytes are not a message, or the peer closed too early; and `DIPC_STATUS_OVERRUN` if `n`
 * is larger than the `len` of the step. Errors are final: the next step is `DIPC_STEP_DONE`. After `DIPC_STATUS_BUFFER_TOO_SMALL` the exchange can continue in a larger buffer.
 */
dipc_status dipc_exchange_advance(struct dipc_exchange *exchange,
                                  size_t n,
                                  size_t *detail);

/**
 * Replaces the buffer of an exchange. `buf` must begin with the bytes of the old buffer, for example because `realloc`
 * returned it. Steps and texts from before are no longer valid.
 *
 * Returns `DIPC_STATUS_BUFFER_TOO_SMALL` if `buf` is still too small; the exchange then has its old buffer.
 */
dipc_status dipc_exchange_set_buffer(struct dipc_exchange *exchange, uint8_t *buf, size_t size, size_t *detail);

/**
 * Returns the size of a `dipc_exchange` in bytes: that of the header which the library was compiled with.
 */
size_t dipc_exchange_size(void);

/**
 * Initialises a plan for what a request asks. `request` is one of `dipc_build_*`, of the newest command that has all that
 * is wanted. The plan begins with another command if that serves more runtimes:
 *
 * | the request | the first command | the older ones |
 * |---|---|---|
 * | CollectTracing to CollectTracing6 | the oldest that has all that is wanted, as in Microsoft's client | each lacks a feature: see `dipc_fallback_lost_feature` |
 * | a dump | GenerateCoreDump3 | GenerateCoreDump2, GenerateCoreDump |
 * | GetProcessInfo to GetProcessInfo3 | the same | the older ones |
 * | any other, and a session for `user_events` | the same | none |
 *
 * `facts` is what is known of the runtime, or null: the plan skips commands that a runtime of this version does not have.
 * `buf` is the buffer for messages, other memory than `request`; 64 KiB are always enough. Both are lent until the plan is
 * over. `until` is the deadline of all commands together.
 *
 * Returns an error for a malformed request, `DIPC_STATUS_MORE` for one that is cut off, and
 * `DIPC_STATUS_INVALID_ARGUMENT` for facts that do not exist.
 */
dipc_status dipc_fallback_init(struct dipc_fallback *fallback,
                               const uint8_t *request,
                               size_t len,
                               const struct dipc_facts *facts,
                               uint8_t *buf,
                               size_t size,
                               uint64_t until,
                               size_t *detail);

/**
 * Returns the size of a `dipc_fallback` in bytes: that of the header which the library was compiled with.
 */
size_t dipc_fallback_size(void);

/**
 * Replaces the buffer by one that begins with the same bytes: after `DIPC_STATUS_BUFFER_TOO_SMALL`, which it returns as
 * well if `buf` is still too small; the plan then has its old buffer.
 */
dipc_status dipc_fallback_set_buffer(struct dipc_fallback *fallback, uint8_t *buf, size_t size, size_t *detail);

/**
 * Stores the next action in `step`. It stays the same until `dipc_fallback_advance` or `dipc_fallback_tick`.
 *
 * Returns `DIPC_STATUS_BUFFER_TOO_SMALL` while the plan needs a larger buffer: see `dipc_fallback_set_buffer`.
 */
dipc_status dipc_fallback_step(struct dipc_fallback *fallback, struct dipc_step *step, size_t *detail);

/**
 * Reports the result of the step: one of `DIPC_FALLBACK_*`, with its `value`. An event that does not fit the step is
 * ignored. Returns `DIPC_STATUS_OVERRUN` for more bytes than the step lent, which ends the plan; errors in received bytes
 * are those of `dipc_fallback_finish`.
 */
dipc_status dipc_fallback_advance(struct dipc_fallback *fallback,
                                  uint32_t event,
                                  uint64_t value);

/**
 * Reports the time. At the deadline, a plan that is not over fails with `DIPC_STATUS_TIMED_OUT`.
 */
dipc_status dipc_fallback_tick(struct dipc_fallback *fallback, uint64_t now);

/**
 * Returns the latest time for the next `dipc_fallback_tick`; 0 if the plan is over, and `UINT64_MAX` if it is not
 * initialised.
 */
uint64_t dipc_fallback_until(struct dipc_fallback *fallback);

/**
 * Returns the code of the command that is being sent, or that was answered, for `dipc_read_process_info` and others; 0 if
 * the plan is not initialised.
 */
uint16_t dipc_fallback_command(struct dipc_fallback *fallback);

/**
 * Writes a sentence about a requested feature that this command lacks into `text`, as UTF-8 with a NUL at the end: the
 * feature with this `index`, from 0 on. Returns `DIPC_STATUS_NOT_FOUND` after the last one. It can be called before the
 * command is sent, too.
 *
 * `len` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
 * and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_fallback_lost_feature(struct dipc_fallback *fallback,
                                       size_t index,
                                       char *text,
                                       size_t size,
                                       size_t *len);

/**
 * Stores the answer to the last command in `answer`, which then points into the buffer of the plan. A refusal is an answer
 * too. The payload of an OK answer is not checked yet.
 *
 * Returns the error that ended the plan: `DIPC_STATUS_TIMED_OUT`, with 1 in `detail` if a connection was open; or
 * `DIPC_STATUS_CLOSED` if the plan is not over, or that an answer is malformed. For `dipc_status_field` such an answer is at
 * the front of the buffer, and belongs to `dipc_fallback_command`.
 */
dipc_status dipc_fallback_finish(struct dipc_fallback *fallback,
                                 struct dipc_answer *answer,
                                 size_t *detail);

/**
 * Stores the fields of a description in `fields`: each before the fields within it, and `count`, their number. A program
 * calls it once for a description, and keeps what it needs for a field, such as its name as a string, at the same index.
 *
 * The names point into the record that the description was decoded from. If there is `room` for fewer fields, `count`
 * receives the number of all, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_metadata_fields(const struct dipc_metadata *metadata,
                                 struct dipc_described_field *fields,
                                 size_t room,
                                 size_t *count);

/**
 * Stores the values of a payload in `values`, and their number in `count`: what `dipc_metadata_values` visits, with the
 * index of each field in place of its name, which is not read. Each begin of an object or array has its end.
 *
 * ```c
 * dipc_described_field fields[64];
 * dipc_indexed_value values[64];
 * size_t field_count, value_count, needed;
 * dipc_metadata_fields(&metadata, fields, 64, &field_count);
 * dipc_fields_values(fields, field_count, payload, len, values, 64, &value_count, &needed);
 * for (size_t i = 0; i < value_count; i++)
 *     if (values[i].kind == DIPC_VALUE_UINT) sums[values[i].field] += values[i].u.number;
 * ```
 *
 * Returns an error if the payload does not fit its description, which occurs in valid traces too; the values before it
 * are stored. If there is `room` for fewer values, the function stores the first ones and returns
 * `DIPC_STATUS_BUFFER_TOO_SMALL`, and `detail` is the number of all.
 */
dipc_status dipc_fields_values(const struct dipc_described_field *fields,
                               size_t field_count,
                               const uint8_t *payload,
                               size_t len,
                               struct dipc_indexed_value *values,
                               size_t room,
                               size_t *count,
                               size_t *detail);

/**
 * Returns the name of an HRESULT as in the specification, for example `DS_IPC_E_UNKNOWN_COMMAND`; null for one without a
 * name.
 */
struct dipc_text dipc_hresult_name(uint32_t hresult);

/**
 * Returns the meaning of an HRESULT for a user, in English; null for one without a name.
 */
struct dipc_text dipc_hresult_hint(uint32_t hresult);

/**
 * Passes the labels of a `dipc_label_list` to `visit`, with `context`. To keep a list longer than the window, copy its
 * bytes first.
 *
 * Returns an error, and visits none, if the bytes are not a whole list.
 */
dipc_status dipc_labels(const uint8_t *bytes, size_t len, dipc_visit_label visit, void *context, size_t *detail);

/**
 * Parses the message at the front of `bytes`, and stores its parts in `message`, which then points into `bytes`.
 *
 * Returns `DIPC_STATUS_MORE` if the message is longer than `bytes`; `detail` is the number of bytes needed in total, as
 * far as it is known. A wrong magic is an error at its first wrong byte.
 */
dipc_status dipc_parse(const uint8_t *bytes, size_t len, struct dipc_message *message, size_t *detail);

/**
 * Passes every part of the message at the front of `bytes` to `visit`, with `context`: the header, the fields, and as
 * `rest` the bytes after the known fields, in order and without a gap.
 *
 * `answer_to` is the code of the command that an answer belongs to, or 0. Without it the payload of an OK answer is one
 * part, `payload`; so is the payload of an unknown command.
 *
 * Returns an error if the message is malformed or cut off; the parts before it have been visited then.
 */
dipc_status dipc_inspect(const uint8_t *bytes,
                         size_t len,
                         uint16_t answer_to,
                         dipc_visit visit,
                         void *context,
                         size_t *detail);

/**
 * Finds the part of a message that has the name `path`, for example `clr_product_version` or `providers[0].name`, and
 * stores it in `part`. `answer_to` is as in `dipc_inspect`. Of two parts with one name, the last is found: the count of
 * a text has a name of its own, `NAME.count`.
 *
 * Returns `DIPC_STATUS_NOT_FOUND` if the message has no such part, and an error if the message is malformed or cut off.
 */
dipc_status dipc_find(const uint8_t *bytes,
                      size_t len,
                      uint16_t answer_to,
                      const char *path,
                      struct dipc_part *part,
                      size_t *detail);

/**
 * Writes the name of a part into `text`, as UTF-8 with a NUL at the end.
 *
 * `len` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
 * and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_path_text(const struct dipc_path *path, char *text, size_t size, size_t *len);

/**
 * Writes the name of the field that an error is about into `text`, as UTF-8 with a NUL at the end: `providers[3].level`.
 *
 * `bytes` begin with the message, `answer_to` is as in `dipc_inspect`, and `status` and `detail` are those of the error: of
 * a value that runtimes refuse, or of malformed bytes.
 *
 * `len` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
 * and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`. It returns
 * `DIPC_STATUS_NOT_FOUND` for an error that is about no field of this message.
 */
dipc_status dipc_status_field(const uint8_t *bytes,
                              size_t len,
                              uint16_t answer_to,
                              int32_t status,
                              size_t detail,
                              char *text,
                              size_t size,
                              size_t *text_len);

/**
 * Checks the request at the front of `bytes` as a runtime does before it carries out the command.
 *
 * Returns `DIPC_STATUS_VIOLATION` for a value that runtimes refuse, with the number of the rule in `detail`, and another
 * error for malformed bytes; `dipc_status_field` names the field. `hresult`, which can be null, then receives the code with which a runtime refuses the
 * request. An unknown command breaks no rule.
 */
dipc_status dipc_check(const uint8_t *bytes,
                       size_t len,
                       uint32_t *hresult,
                       size_t *detail);

/**
 * Initialises a port without connections. It has room for `count` connections that have not sent their frame, and
 * runtimes. `slots` is used as long as the port.
 */
dipc_status dipc_monitor_port_init(struct dipc_monitor_port *port, struct dipc_monitor_slot *slots, size_t count);

/**
 * Returns the size of a `dipc_monitor_port` in bytes: that of the header which the library was compiled with.
 */
size_t dipc_monitor_port_size(void);

/**
 * Adds a new connection, whose frame is expected; `peer` is what the caller knows of its peer, for example the process id
 * from its credentials. `token` receives the name of the connection, at least 2^32, for the other functions: it is never
 * used again for another connection, so that a late event does no harm.
 *
 * `evicted` receives the connection that was dropped for it, if 256 had not sent their frame.
 *
 * Returns `DIPC_STATUS_BUFFER_TOO_SMALL` if there is no free slot; `detail` is the number of slots required. Close the
 * connection then: the runtime connects again.
 */
dipc_status dipc_monitor_port_accept(struct dipc_monitor_port *port,
                                     uint64_t connection,
                                     uint64_t peer,
                                     uint64_t now,
                                     uint64_t *token,
                                     struct dipc_monitor_change *evicted,
                                     size_t *detail);

/**
 * Stores a connection in `connection`, and in `step` the space to read its bytes into, without waiting. It never reaches
 * beyond the frame, and has one byte for a connection that waits for a command: no byte is valid there, but the end of
 * the connection is noticed. Then call `dipc_monitor_port_advance`, and repeat until reading would block.
 *
 * Returns `DIPC_STATUS_NOT_FOUND` if the token's connection is not here any more.
 */
dipc_status dipc_monitor_port_receive(struct dipc_monitor_port *port,
                                      uint64_t token,
                                      uint64_t *connection,
                                      struct dipc_step *step);

/**
 * Reports that `n` bytes were read into the space of `dipc_monitor_port_receive`; 0 if the peer closed the connection, or
 * reading failed.
 */
dipc_status dipc_monitor_port_advance(struct dipc_monitor_port *port,
                                      uint64_t token,
                                      size_t n,
                                      uint64_t now,
                                      struct dipc_monitor_change *change);

/**
 * Drops the oldest connection that has not sent its frame, for example because no descriptor is left to accept another.
 */
dipc_status dipc_monitor_port_evict_oldest(struct dipc_monitor_port *port, struct dipc_monitor_change *change);

/**
 * Schedules a `DIPC_CHANGE_ACCEPT_AGAIN` in 100 ms: for when accepting failed and would fail again immediately.
 */
dipc_status dipc_monitor_port_pause_accept(struct dipc_monitor_port *port, uint64_t now);

/**
 * Takes the connection of an idle runtime for one call, after which the caller closes it. The runtime then connects again.
 *
 * Returns `DIPC_STATUS_NOT_FOUND` if the runtime is not known or not idle.
 */
dipc_status dipc_monitor_port_take(struct dipc_monitor_port *port,
                                   struct dipc_guid cookie,
                                   uint64_t now,
                                   uint64_t *connection);

/**
 * Reports that a connection has ended which was taken: the peer or the caller has closed it. The runtime must now connect
 * again within a second, or counts as left. `token` is that of the connection; it has no effect after the runtime has
 * connected again.
 *
 * Do not report a connection that the caller has closed while its command ran in a process which `has_ended` can check: a
 * runtime connects again only after its command.
 */
dipc_status dipc_monitor_port_released(struct dipc_monitor_port *port,
                                       uint64_t token,
                                       uint64_t now);

/**
 * Forgets a runtime, which is unknown if it connects again. `change` receives a `DIPC_CHANGE_LEFT` with its idle
 * connection, or `DIPC_CHANGE_NOTHING` if it is not known.
 */
dipc_status dipc_monitor_port_remove(struct dipc_monitor_port *port,
                                     struct dipc_guid cookie,
                                     struct dipc_monitor_change *change);

/**
 * Stores the known runtime with this index, from 0, in `runtime`. The order is none, and changes with every change.
 *
 * Returns `DIPC_STATUS_NOT_FOUND` if there are not so many.
 */
dipc_status dipc_monitor_port_runtime(struct dipc_monitor_port *port, size_t index, struct dipc_runtime *runtime);

/**
 * Stores the runtime with this identity in `runtime`.
 *
 * Returns `DIPC_STATUS_NOT_FOUND` if it is not known.
 */
dipc_status dipc_monitor_port_find(struct dipc_monitor_port *port,
                                   struct dipc_guid cookie,
                                   struct dipc_runtime *runtime);

/**
 * Returns the latest time for the next `dipc_monitor_port_on_due`; `UINT64_MAX` if there is none.
 */
uint64_t dipc_monitor_port_due(struct dipc_monitor_port *port);

/**
 * Does one thing that is due at `now`. Call it until `change` is `DIPC_CHANGE_NOTHING`.
 *
 * `has_ended` is called with `context` for runtimes that have no connection here; null if the caller cannot tell. It must
 * return false unless the operating system vouches for the process, for example by the credentials of a local socket: the
 * process id in a frame can be that of another machine.
 */
dipc_status dipc_monitor_port_on_due(struct dipc_monitor_port *port,
                                     uint64_t now,
                                     dipc_has_ended has_ended,
                                     void *context,
                                     struct dipc_monitor_change *change);

/**
 * Decodes a description: the payload of a `DIPC_RECORD_METADATA` of a stream of this `version`, which the `dipc_trace`
 * states. To keep the description longer than the window, copy the record first.
 *
 * Returns an error for a malformed record; a later error is in `problem`.
 */
dipc_status dipc_metadata_decode(uint32_t version,
                                 const uint8_t *record,
                                 size_t len,
                                 struct dipc_metadata *metadata,
                                 size_t *detail);

/**
 * Decodes a description, and adds the name and the fields that it lacks if its event is one of the runtime's. The width of
 * an address in the trace, `pointer_size`, is 4 or 8. This function has a table of 28 KB.
 *
 * Otherwise it does what `dipc_metadata_decode` does.
 */
dipc_status dipc_metadata_decode_runtime(uint32_t version,
                                         uint32_t pointer_size,
                                         const uint8_t *record,
                                         size_t len,
                                         struct dipc_metadata *metadata,
                                         size_t *detail);

/**
 * Passes the values of a payload to `visit`, with `context`, by the description of its event. Each begin of an object or
 * array has its end, unless `visit` returns false.
 *
 * Returns an error if the payload does not fit its description, which occurs in valid traces too: the values before it
 * have been visited then.
 */
dipc_status dipc_metadata_values(const struct dipc_metadata *metadata,
                                 const uint8_t *payload,
                                 size_t len,
                                 dipc_visit_value visit,
                                 void *context,
                                 size_t *detail);

/**
 * Stores the session that a request, CollectTracing to CollectTracing6, starts: its values, those that runtimes use where
 * an older command has none, and the list of its providers, which points into `bytes`.
 *
 * ```c
 * dipc_requested_session session;
 * dipc_requested_provider provider;
 * if (dipc_request_session(request.bytes, request.len, &session, NULL) == DIPC_STATUS_OK)
 *     while (dipc_next_provider(&session.providers, &provider) == DIPC_STATUS_OK)
 *         enable(provider.name, provider.keywords, provider.level);
 * ```
 *
 * This and the other `dipc_request_*` functions return `DIPC_STATUS_INVALID_ARGUMENT` for the request of another command,
 * and an error for a malformed one. They do not check the rules for values: see `dipc_check`.
 */
dipc_status dipc_request_session(const uint8_t *bytes,
                                 size_t len,
                                 struct dipc_requested_session *session,
                                 size_t *detail);

/**
 * Stores the next provider of a list of `dipc_request_session` in `provider`, whose texts and lists point into the
 * message.
 *
 * This and the other `dipc_next_*` functions return `DIPC_STATUS_NOT_FOUND` at the end of the list, and
 * `DIPC_STATUS_WRONG_KIND` for a list of other items.
 */
dipc_status dipc_next_provider(struct dipc_list *list, struct dipc_requested_provider *provider);

/**
 * Returns whether a provider of a requested session sends an event: by its keywords, then its level, then the filter.
 *
 * The event must have no keyword, or one in common with the provider. The level of the event must be at most the
 * provider's, unless the level of the provider is `DIPC_LEVEL_LOG_ALWAYS`. Names of providers are compared exactly, by the
 * caller: `dipc_text_equals`. The name `*`, with all keywords and `DIPC_LEVEL_VERBOSE`, means all events of all providers.
 *
 * It searches all ids of the filter: call it once for each kind of event, not for each event.
 */
bool dipc_provider_includes(const struct dipc_requested_provider *provider,
                            uint64_t keywords,
                            dipc_event_level level,
                            uint32_t event_id);

/**
 * Stores the next id of a list in `event_id`.
 */
dipc_status dipc_next_event_id(struct dipc_list *list, uint32_t *event_id);

/**
 * Stores the next set of a list in `set`.
 */
dipc_status dipc_next_tracepoint_set(struct dipc_list *list, struct dipc_requested_tracepoint_set *set);

/**
 * Stores the variable that a SetEnvironmentVariable sets or removes.
 */
dipc_status dipc_request_variable(const uint8_t *bytes,
                                  size_t len,
                                  struct dipc_requested_variable *variable,
                                  size_t *detail);

/**
 * Stores the dump that a request, GenerateCoreDump to GenerateCoreDump3, writes.
 */
dipc_status dipc_request_dump(const uint8_t *bytes, size_t len, struct dipc_requested_dump *dump, size_t *detail);

/**
 * Stores the profiler that a request, AttachProfiler or StartupProfiler, loads.
 */
dipc_status dipc_request_profiler(const uint8_t *bytes,
                                  size_t len,
                                  struct dipc_requested_profiler *profiler,
                                  size_t *detail);

/**
 * Stores the id of the session that a StopTracing ends.
 */
dipc_status dipc_request_session_id(const uint8_t *bytes, size_t len, uint64_t *session_id, size_t *detail);

/**
 * Stores the files that an EnablePerfMap starts to write: one of `DIPC_PERF_MAP_*`.
 */
dipc_status dipc_request_perf_map_type(const uint8_t *bytes,
                                       size_t len,
                                       dipc_perf_map_type *perf_map_type,
                                       size_t *detail);

/**
 * Stores the path of the assembly with the startup hook that an ApplyStartupHook runs.
 */
dipc_status dipc_request_startup_hook(const uint8_t *bytes, size_t len, struct dipc_text *path, size_t *detail);

/**
 * Stores the description in the OK answer to a `command`, which is GetProcessInfo, GetProcessInfo2 or GetProcessInfo3. Its
 * texts point into `answer`.
 *
 * Returns `DIPC_STATUS_INVALID_ARGUMENT` for another command, `DIPC_STATUS_UNEXPECTED` for a refusal, and an error if the
 * answer is malformed.
 */
dipc_status dipc_read_process_info(const uint8_t *answer,
                                   size_t len,
                                   uint16_t command,
                                   struct dipc_process_info *info,
                                   size_t *detail);

/**
 * Stores the fields of the response `SessionId` in an OK answer. Texts point into `answer`.
 *
 * Returns `DIPC_STATUS_UNEXPECTED` for a refusal, and an error if the answer is malformed.
 */
dipc_status dipc_read_SessionId(const uint8_t *answer, size_t len, uint64_t *session_id, size_t *detail);

/**
 * Stores the fields of the response `ProcessEnvironment` in an OK answer. Texts point into `answer`.
 *
 * Returns `DIPC_STATUS_UNEXPECTED` for a refusal, and an error if the answer is malformed.
 */
dipc_status dipc_read_ProcessEnvironment(const uint8_t *answer,
                                         size_t len,
                                         uint32_t *incoming_bytes,
                                         uint16_t *future,
                                         size_t *detail);

/**
 * Stores the fields of the response `ProcessInfo` in an OK answer. Texts point into `answer`.
 *
 * Returns `DIPC_STATUS_UNEXPECTED` for a refusal, and an error if the answer is malformed.
 */
dipc_status dipc_read_ProcessInfo(const uint8_t *answer,
                                  size_t len,
                                  uint64_t *process_id,
                                  struct dipc_guid *runtime_cookie,
                                  struct dipc_text *command_line,
                                  struct dipc_text *os,
                                  struct dipc_text *arch,
                                  size_t *detail);

/**
 * Stores the fields of the response `ProcessInfo2` in an OK answer. Texts point into `answer`.
 *
 * Returns `DIPC_STATUS_UNEXPECTED` for a refusal, and an error if the answer is malformed.
 */
dipc_status dipc_read_ProcessInfo2(const uint8_t *answer,
                                   size_t len,
                                   uint64_t *process_id,
                                   struct dipc_guid *runtime_cookie,
                                   struct dipc_text *command_line,
                                   struct dipc_text *os,
                                   struct dipc_text *arch,
                                   struct dipc_text *managed_entrypoint_assembly_name,
                                   struct dipc_text *clr_product_version,
                                   size_t *detail);

/**
 * Stores the fields of the response `ProcessInfo3` in an OK answer. Texts point into `answer`.
 *
 * Returns `DIPC_STATUS_UNEXPECTED` for a refusal, and an error if the answer is malformed.
 */
dipc_status dipc_read_ProcessInfo3(const uint8_t *answer,
                                   size_t len,
                                   uint32_t *version,
                                   uint64_t *process_id,
                                   struct dipc_guid *runtime_cookie,
                                   struct dipc_text *command_line,
                                   struct dipc_text *os,
                                   struct dipc_text *arch,
                                   struct dipc_text *managed_entrypoint_assembly_name,
                                   struct dipc_text *clr_product_version,
                                   struct dipc_text *portable_rid,
                                   size_t *detail);

/**
 * Initialises `exchange` as the receiver of a request. The request is received into `receive`, and the reply is built in
 * `send`; both are lent until the reply was sent. A request that is longer than `receive` is refused: 64 KiB are enough
 * for all.
 *
 * No later function fails because of what the peer sends: `dipc_serve_finish` makes a refusal of malformed bytes, as
 * runtimes do.
 *
 * Returns `DIPC_STATUS_BUFFER_TOO_SMALL` if `receive` has no room for a header, or `send` for a refusal, and
 * `DIPC_STATUS_INVALID_ARGUMENT` if the buffers overlap.
 */
dipc_status dipc_serve_init(struct dipc_exchange *exchange,
                            uint8_t *receive,
                            size_t receive_size,
                            uint8_t *send,
                            size_t send_size,
                            size_t *detail);

/**
 * Stores the request that was received in `request`, and initialises `reply` as the exchange that sends the reply to it;
 * `reply` can be `serve`. Until a `dipc_reply_*` function sets another one, the reply is a refusal: for a valid request
 * `DIPC_HRESULT_FAIL` or an unknown command, otherwise the one that runtimes send.
 *
 * `server` states which commands the server has: those of its version and its kind, on its system. A command that such a
 * runtime does not have is refused as it refuses it: `DIPC_STATUS_REFUSED`, with the HRESULT in `detail`. So clients send
 * an older command instead of one that is newer than the server. A server that is suspended refuses AttachProfiler. With
 * null, no command is refused for these reasons.
 *
 * Returns an error for a request that runtimes refuse, as `dipc_check` does, except that a message which is cut off is
 * `DIPC_STATUS_UNEXPECTED_END`. Drive `reply` in any case but these: misuse, such as facts that do not exist, stores
 * nothing.
 */
dipc_status dipc_serve_finish(struct dipc_exchange *serve,
                              const struct dipc_facts *server,
                              struct dipc_request *request,
                              struct dipc_exchange *reply,
                              size_t *detail);

/**
 * Sets the OK reply to a command that returns no data.
 *
 * A reply to StopTracing has the id of the request, also if there is no such session. A reply to a command that starts a
 * session has an id other than 0; a StopTracing can arrive as soon as it is sent. The bytes of `dipc_write_environment`,
 * whose number is `incoming_bytes`, follow the reply to GetProcessEnvironment.
 *
 * This and the other `dipc_reply_*` functions return `DIPC_STATUS_INVALID_ARGUMENT` if the command has another response,
 * `DIPC_STATUS_ALREADY_SENDING` if a part of the reply was sent, and `DIPC_STATUS_BUFFER_TOO_SMALL` if the reply does not
 * fit; the reply is then a refusal.
 */
dipc_status dipc_reply_ok(struct dipc_exchange *exchange,
                          size_t *detail);

/**
 * Sets the OK reply to GetProcessInfo, GetProcessInfo2 or GetProcessInfo3, with the fields of `info` that it has.
 */
dipc_status dipc_reply_process_info(struct dipc_exchange *exchange,
                                    const struct dipc_process_info *info,
                                    size_t *detail);

/**
 * Sets a refusal as the reply. `message` is null, or for GenerateCoreDump3 a text. With a text for another command the
 * function returns `DIPC_STATUS_INVALID_ARGUMENT`, and the reply stays what it was.
 */
dipc_status dipc_reply_refuse(struct dipc_exchange *exchange,
                              uint32_t hresult,
                              struct dipc_text message,
                              size_t *detail);

/**
 * Writes the environment, which the caller sends after the reply to GetProcessEnvironment: `count` entries, usually
 * `NAME=value`. An entry that can be invalid UTF-8 has the form `DIPC_TEXT_TRACE_UTF8`; an invalid one of the form
 * `DIPC_TEXT_UTF8` is `DIPC_STATUS_INVALID_ARGUMENT`.
 *
 * `len` receives the number of bytes, or the required size with `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_write_environment(const struct dipc_text *entries,
                                   size_t count,
                                   uint8_t *buf,
                                   size_t size,
                                   size_t *len);

/**
 * Sets the OK reply to a command with the response `SessionId`, as `dipc_reply_ok` does.
 */
dipc_status dipc_reply_SessionId(struct dipc_exchange *exchange, uint64_t session_id, size_t *detail);

/**
 * Sets the OK reply to a command with the response `ProcessEnvironment`, as `dipc_reply_ok` does.
 */
dipc_status dipc_reply_ProcessEnvironment(struct dipc_exchange *exchange,
                                          uint32_t incoming_bytes,
                                          uint16_t future,
                                          size_t *detail);

/**
 * Sets the OK reply to a command with the response `ProcessInfo`, as `dipc_reply_ok` does.
 */
dipc_status dipc_reply_ProcessInfo(struct dipc_exchange *exchange,
                                   uint64_t process_id,
                                   struct dipc_guid runtime_cookie,
                                   struct dipc_text command_line,
                                   struct dipc_text os,
                                   struct dipc_text arch,
                                   size_t *detail);

/**
 * Sets the OK reply to a command with the response `ProcessInfo2`, as `dipc_reply_ok` does.
 */
dipc_status dipc_reply_ProcessInfo2(struct dipc_exchange *exchange,
                                    uint64_t process_id,
                                    struct dipc_guid runtime_cookie,
                                    struct dipc_text command_line,
                                    struct dipc_text os,
                                    struct dipc_text arch,
                                    struct dipc_text managed_entrypoint_assembly_name,
                                    struct dipc_text clr_product_version,
                                    size_t *detail);

/**
 * Sets the OK reply to a command with the response `ProcessInfo3`, as `dipc_reply_ok` does.
 */
dipc_status dipc_reply_ProcessInfo3(struct dipc_exchange *exchange,
                                    uint32_t version,
                                    uint64_t process_id,
                                    struct dipc_guid runtime_cookie,
                                    struct dipc_text command_line,
                                    struct dipc_text os,
                                    struct dipc_text arch,
                                    struct dipc_text managed_entrypoint_assembly_name,
                                    struct dipc_text clr_product_version,
                                    struct dipc_text portable_rid,
                                    size_t *detail);

/**
 * Initialises a session that the runtime has just started, with the id from its answer.
 */
dipc_status dipc_session_init(struct dipc_session *session, uint64_t session_id);

/**
 * Returns the size of a `dipc_session` in bytes: that of the header which the library was compiled with.
 */
size_t dipc_session_size(void);

/**
 * Returns whether the stream must be read; false if `session` is not initialised.
 */
bool dipc_session_wants_stream(struct dipc_session *session);

/**
 * Reports bytes that were read from the stream, in a piece of any size. No bytes mean that the stream has ended or is
 * broken.
 */
dipc_status dipc_session_stream_advance(struct dipc_session *session, const uint8_t *bytes, size_t len);

/**
 * Requests the Stop. `until` is the deadline for everything that follows: connecting, the rest of the stream, the answer.
 */
dipc_status dipc_session_stop(struct dipc_session *session,
                              uint64_t until);

/**
 * Stores the next action on the second connection in `step`. It stays the same until `dipc_session_stop_advance` or
 * `dipc_session_tick`.
 */
dipc_status dipc_session_stop_step(struct dipc_session *session, struct dipc_step *step);

/**
 * Reports the result of the step on the second connection: one of `DIPC_STOP_*`, with its `value`. An event that does not
 * fit the step is ignored. Returns `DIPC_STATUS_OVERRUN` for a `DIPC_STOP_SENT` or `DIPC_STOP_RECEIVED` with more bytes
 * than the step lent, which counts as `DIPC_STOP_FAILED`.
 */
dipc_status dipc_session_stop_advance(struct dipc_session *session,
                                      uint32_t event,
                                      uint64_t value);

/**
 * Returns whether the last Stop failed or was refused. `dipc_session_stop` then requests another one.
 */
bool dipc_session_stop_failed(struct dipc_session *session);

/**
 * Reports the time.
 */
dipc_status dipc_session_tick(struct dipc_session *session, uint64_t now);

/**
 * Returns the latest time for the next `dipc_session_tick`; 0 if the session is over, and `UINT64_MAX` before a Stop.
 */
uint64_t dipc_session_until(struct dipc_session *session);

/**
 * Stores the reason of a refused Stop in `hresult`, otherwise 0.
 *
 * Returns `DIPC_STATUS_OK` if the runtime has answered the Stop, `DIPC_STATUS_MORE` if it has not yet,
 * `DIPC_STATUS_REFUSED` for a refusal, and the error of an answer that is malformed or did not arrive whole. The last
 * is not a failure of the Stop: the end of the stream decides, and until the deadline the session waits for it.
 */
dipc_status dipc_session_stop_answer(struct dipc_session *session, uint32_t *hresult, size_t *detail);

/**
 * Sets for how many milliseconds a stopped session may receive and send no byte: from then on, it has timed out. There is
 * no limit by default; a usual one is 10,000.
 */
dipc_status dipc_session_limit_silence(struct dipc_session *session,
                                       uint64_t milliseconds);

/**
 * Delays a requested Stop: the first step for it is returned from the time `until` on, or after
 * `dipc_session_send_stop`. For the times of `dipc_stop_hazard`.
 */
dipc_status dipc_session_delay_stop(struct dipc_session *session, uint64_t until);

/**
 * Ends the delay of `dipc_session_delay_stop`.
 */
dipc_status dipc_session_send_stop(struct dipc_session *session);

/**
 * Stores when the session that a request starts must not be stopped, in milliseconds after its start. A StopTracing that
 * arrives shortly before the first collection of `System.Diagnostics.Metrics` blocks the diagnostics of a .NET since 9
 * indefinitely; the first event `CollectionStop` of that provider ends the danger. `facts` is what is known of the
 * runtime, or null.
 *
 * Returns `DIPC_STATUS_NOT_FOUND` if there is no such time, and an error for a malformed request.
 */
dipc_status dipc_stop_hazard(const uint8_t *request,
                             size_t len,
                             const struct dipc_facts *facts,
                             uint64_t *from_ms,
                             uint64_t *until_ms,
                             size_t *detail);

/**
 * Ends the session without the runtime.
 */
dipc_status dipc_session_abandon(struct dipc_session *session);

/**
 * Returns how the session has ended: one of `DIPC_SESSION_*`; `DIPC_SESSION_RUNNING` if it is not initialised.
 */
uint32_t dipc_session_end(struct dipc_session *session);

/**
 * Writes the name of a runtime's default socket into `text`, as UTF-8 with a NUL at the end:
 * `dotnet-diagnostic-42-8311-socket`. The socket is in the runtime's `$TMPDIR`, or in `/tmp`. 64 bytes are enough.
 *
 * `start_time` distinguishes a process from an earlier one with its id: on Linux it is field 22 of `/proc/PID/stat`, on
 * macOS, FreeBSD and NetBSD the start time in seconds; 0 if it is not known.
 *
 * `len` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
 * and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_socket_name(uint32_t process_id, uint64_t start_time, char *text, size_t size, size_t *len);

/**
 * Stores the process id and the start time in the name of a runtime's default socket, for a client that searches the
 * folder of sockets. `name` is the name of a file, without its folder.
 *
 * Returns `DIPC_STATUS_NOT_FOUND` for any other name.
 */
dipc_status dipc_socket_name_parse(const char *name, uint32_t *process_id, uint64_t *start_time);

/**
 * Writes the English sentence for a status and its `detail` into `text`, as UTF-8 with a NUL at the end. For a
 * `DIPC_STATUS_VIOLATION` the sentence names the rule.
 *
 * `len` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
 * and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_status_text(int32_t status, size_t detail, char *text, size_t size, size_t *len);

/**
 * Returns the UTF-8 text at `text`, up to its NUL, as a text; null for a null pointer.
 */
struct dipc_text dipc_utf8(const char *text);

/**
 * Writes a text into `utf8`, as UTF-8 with a NUL at the end, and U+FFFD for each lone surrogate. A null text is written
 * as an empty one.
 *
 * `len` receives the number of bytes without the NUL. If `size` is too small, `utf8` receives the characters that fit
 * and a NUL, `len` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_text_to_utf8(struct dipc_text text, char *utf8, size_t size, size_t *len);

/**
 * Writes the code units of a text into `utf16`, without a NUL. A null text is written as an empty one.
 *
 * `len` receives the number of code units. If `size`, in code units, is too small, `utf16` receives those that fit, `len`
 * the number of all, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_text_to_utf16(struct dipc_text text,
                               uint16_t *utf16,
                               size_t size,
                               size_t *len);

/**
 * Returns whether two texts have the same code units, in whatever forms. Null differs from every text but null. An
 * invalid text equals none.
 */
bool dipc_text_equals(struct dipc_text a, struct dipc_text b);

/**
 * Initialises a parser. The largest block and the largest record that it accepts are 16 MiB.
 */
dipc_status dipc_parser_init(struct dipc_parser *parser);

/**
 * Returns the size of a `dipc_parser` in bytes: that of the header which the library was compiled with.
 */
size_t dipc_parser_size(void);

/**
 * Stores the next record of the stream in `record`.
 *
 * `window` is a piece of the stream: it begins where the last `dipc_parser_release` said, and the calls until the next
 * release have the same bytes, perhaps with more after them. For `DIPC_RECORD_MORE`, release the window:
 *
 * ```c
 * size_t used = dipc_parser_release(&parser);
 * memmove(window, window + used, len -= used);
 * ssize_t n = read(fd, window + len, sizeof window - len);
 * if (n <= 0) dipc_parser_finish(&parser, window, len, &end); else len += n;
 * ```
 *
 * A window must be able to hold `needed` bytes. Damaged streams are not errors of this function: the stream has an
 * end.
 */
dipc_status dipc_parser_next(struct dipc_parser *parser, const uint8_t *window, size_t len, struct dipc_record *record);

/**
 * Returns how many bytes at the front of the window the parser does not need any more: the next window begins after
 * them. 0 if `parser` is not initialised.
 */
size_t dipc_parser_release(struct dipc_parser *parser);

/**
 * Makes the parser skip the rest of the block that began last. A reader that does not need its records is faster then.
 */
dipc_status dipc_parser_skip_block(struct dipc_parser *parser);

/**
 * Stores the end of a stream that has no bytes after `window` in `end`.
 */
dipc_status dipc_parser_finish(struct dipc_parser *parser, const uint8_t *window, size_t len, struct dipc_end *end);

/**
 * Writes the English sentence for the end of a stream that has no bytes after `window` into `text`, as UTF-8 with a NUL at
 * the end.
 *
 * `written` receives the number of bytes without the NUL. If `size` is too small, `text` receives the characters that fit
 * and a NUL, `written` the required size with the NUL, and the function returns `DIPC_STATUS_BUFFER_TOO_SMALL`.
 */
dipc_status dipc_parser_end_text(struct dipc_parser *parser,
                                 const uint8_t *window,
                                 size_t len,
                                 char *text,
                                 size_t size,
                                 size_t *written);

/**
 * Starts a stream, which states `trace` first; the version in it is ignored. The writer uses the buffer until it is
 * finished. A record of `n` bytes needs a buffer of `2 * n + 400` bytes at most; 4 KiB are enough for small events.
 *
 * Returns `DIPC_STATUS_INVALID_ARGUMENT` for a frequency of 0 and a pointer size other than 4 and 8, and
 * `DIPC_STATUS_BUFFER_TOO_SMALL` if there is no room for any record.
 */
dipc_status dipc_writer_init(struct dipc_writer *writer,
                             const struct dipc_trace *trace,
                             uint8_t *buf,
                             size_t size,
                             size_t *detail);

/**
 * Returns the size of a `dipc_writer` in bytes: that of the header which the library was compiled with.
 */
size_t dipc_writer_size(void);

/**
 * Writes the description of a kind of event.
 *
 * Returns `DIPC_STATUS_INVALID_ARGUMENT` for a text that is not UTF-8, an unknown type, and too many fields.
 */
dipc_status dipc_writer_describe(struct dipc_writer *writer,
                                 const struct dipc_description *description,
                                 struct dipc_output *out);

/**
 * Writes a stack. Numbers of stacks begin again after a sequence point.
 */
dipc_status dipc_writer_stack(struct dipc_writer *writer, const struct dipc_stack *stack, struct dipc_output *out);

/**
 * Writes an event, without its `stack`: it refers to one by `stack_id`.
 */
dipc_status dipc_writer_event(struct dipc_writer *writer, const struct dipc_event *event, struct dipc_output *out);

/**
 * Writes a sequence point after all records before it. The sequences of its threads follow; the writer counts them.
 */
dipc_status dipc_writer_sequence_point(struct dipc_writer *writer,
                                       const struct dipc_sequence_point *point,
                                       struct dipc_output *out);

/**
 * Writes the number of a thread's last event before the sequence point.
 *
 * Returns `DIPC_STATUS_INVALID_ARGUMENT` if the record before it is of another kind.
 */
dipc_status dipc_writer_thread_sequence(struct dipc_writer *writer,
                                        const struct dipc_thread *thread,
                                        struct dipc_output *out);

/**
 * Ends the unfinished blocks, so that their bytes are output.
 */
dipc_status dipc_writer_flush(struct dipc_writer *writer, struct dipc_output *out);

/**
 * Ends the stream: as `dipc_writer_flush`, with the end mark. No record can follow: the writer is as if set to zeros.
 */
dipc_status dipc_writer_finish(struct dipc_writer *writer, struct dipc_output *out);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DOTNET_IPC_H */
