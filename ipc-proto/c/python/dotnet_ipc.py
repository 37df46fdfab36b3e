"""Talks to running .NET processes, and reads their event traces.

The protocol and the trace format are those of the shared library ``libdotnet_ipc``; this module adds the sockets of Unix.
It is one file without dependencies, for Python 3.11 and newer: copy it. ``DOTNET_IPC_LIBRARY`` can name the path of the
library; otherwise the dynamic linker finds it.

    for runtime in dotnet_ipc.runtimes():
        print(runtime.process_id, runtime.info().command_line)

    with dotnet_ipc.for_process(PID).start_tracing([Provider("System.Runtime")]) as session:
        for event in dotnet_ipc.Trace(session):
            print(event.provider, event.name, event.fields)

Errors are those of the operating system (``OSError``; ``TimeoutError`` at a deadline), ``StatusError`` for malformed bytes,
and ``Refused`` if the runtime refuses a command. Different objects can be used by different threads at the same time, one
object only by one thread, except for ``TraceSession.stop``.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import enum
import functools
import io
import os
import re
import select
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int32, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64
from ctypes import c_void_p
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

# The version of the interface that this file was written for: `DIPC_VERSION` of the header.
_VERSION = 1


class Status(enum.IntEnum):
    """The result of a function of the library. Values from 64 on are errors in received bytes."""

    OK = 0
    MORE = 1
    NOT_FOUND = 2
    BUFFER_TOO_SMALL = 4
    MESSAGE_TOO_LONG = 5
    VIOLATION = 6
    CLOSED = 7
    UNEXPECTED = 8
    LIMIT_EXCEEDED = 9
    ALREADY_SENDING = 10
    REFUSED = 11
    TIMED_OUT = 12
    NULL_POINTER = 32
    MISALIGNED = 33
    INVALID_LENGTH = 34
    WRONG_KIND = 35
    INVALID_ARGUMENT = 36
    OVERRUN = 37
    FAULT = 38
    UNEXPECTED_END = 64
    BAD_MAGIC = 65
    BAD_ADVERTISE = 66
    BAD_SIZE = 67
    UNTERMINATED = 68
    COUNT_TOO_LARGE = 69
    TRAILING_BYTES = 70
    TOO_LONG = 71
    BAD_VARINT = 72
    UNKNOWN_TYPE = 73
    TOO_DEEP = 74
    TOO_MANY_ITEMS = 75
    UNKNOWN_VERSION = 76
    AMBIGUOUS = 77
    OTHER_EVENT = 78
    DESCRIBED_TWICE = 79
    BAD_VALUE = 80
    MALFORMED_BYTES = 127


class PartKind(enum.IntEnum):
    """The kind of a part of a message."""

    NUMBER = 0
    BOOL = 1
    TEXT = 2
    GUID = 3
    HRESULT = 4
    RESERVED = 5
    BYTES = 6


class Level(enum.IntEnum):
    """The verbosity of a provider."""

    LOG_ALWAYS = 0
    CRITICAL = 1
    ERROR = 2
    WARNING = 3
    INFORMATIONAL = 4
    VERBOSE = 5


class SessionEnd(enum.IntEnum):
    """How a session has ended."""

    RUNNING = 0
    COMPLETE = 1
    CUT_OFF = 2
    TIMED_OUT = 3
    ABANDONED = 4


class TraceEnd(enum.IntEnum):
    """How a trace ends."""

    COMPLETE = 0
    TRUNCATED = 1
    CORRUPT = 2


class _Command(enum.IntEnum):
    GET_PROCESS_INFO = 0x0400
    GET_PROCESS_INFO2 = 0x0404
    GET_PROCESS_INFO3 = 0x0408


class _Text(enum.IntEnum):
    NULL = 0
    UTF8 = 1


class _Step(enum.IntEnum):
    DONE = 0
    SEND = 1
    RECEIVE = 2
    CONNECT = 3


class _Stop(enum.IntEnum):
    CONNECTED = 0
    BUSY = 1
    SENT = 3
    RECEIVED = 4


class _Record(enum.IntEnum):
    MORE = 0
    TRACE = 2
    METADATA = 3
    EVENT = 4
    SEQUENCE_POINT = 6
    THREAD = 8
    REMOVE_THREAD = 9
    END = 11
    LABEL_LIST = 13


class _Label(enum.IntEnum):
    ACTIVITY_ID = 1
    RELATED_ACTIVITY_ID = 2
    TRACE_ID = 3
    SPAN_ID = 4
    TEXT = 5
    NUMBER = 6
    OPCODE = 7
    KEYWORDS = 8
    LEVEL = 9
    VERSION = 10


class _Value(enum.IntEnum):
    BOOL = 0
    INT = 1
    UINT = 2
    REAL = 3
    TEXT = 4
    GUID = 5
    TIME = 6
    BYTES = 7
    DECIMAL = 8
    CODE_UNIT = 9
    BEGIN_OBJECT = 10
    END_OBJECT = 11
    BEGIN_ARRAY = 12
    END_ARRAY = 13


# The structs of the header, under their names.


class _dipc_guid(ctypes.Structure):
    _fields_ = [("bytes", c_uint8 * 16)]


class _dipc_text(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("len", c_size_t), ("form", c_uint32)]


class _dipc_step(ctypes.Structure):
    _fields_ = [("kind", c_uint32), ("data", c_void_p), ("len", c_size_t)]


class _dipc_answer(ctypes.Structure):
    _fields_ = [("refused", c_bool), ("hresult", c_uint32), ("bytes", c_void_p), ("len", c_size_t)]


class _dipc_message(ctypes.Structure):
    _fields_ = [("code", c_uint16), ("payload", c_void_p), ("payload_len", c_size_t), ("len", c_size_t)]


class _dipc_command_row(ctypes.Structure):
    _fields_ = [("code", c_uint16), ("since", c_uint8), ("name", _dipc_text), ("specification_name", _dipc_text)]


class _dipc_part(ctypes.Structure):
    _fields_ = [
        ("path", c_void_p),
        ("kind", c_uint32),
        ("offset", c_size_t),
        ("bytes", c_void_p),
        ("len", c_size_t),
        ("number", c_uint64),
        ("text", _dipc_text),
        ("name", _dipc_text),
    ]


class _dipc_process_info(ctypes.Structure):
    _fields_ = [
        ("version", c_uint32),
        ("process_id", c_uint64),
        ("runtime_cookie", _dipc_guid),
        ("command_line", _dipc_text),
        ("os", _dipc_text),
        ("arch", _dipc_text),
        ("managed_entrypoint_assembly_name", _dipc_text),
        ("clr_product_version", _dipc_text),
        ("portable_rid", _dipc_text),
    ]


class _dipc_provider(ctypes.Structure):
    _fields_ = [("keywords", c_uint64), ("level", c_uint32), ("name", _dipc_text), ("arguments", _dipc_text)]


class _dipc_providers(ctypes.Structure):
    _fields_ = [("items", POINTER(_dipc_provider)), ("count", c_size_t)]


class _dipc_event(ctypes.Structure):
    _fields_ = [
        ("metadata_id", c_uint32),
        ("sequence", c_uint32),
        ("capture_thread", c_uint64),
        ("thread", c_uint64),
        ("processor", c_uint32),
        ("stack_id", c_uint32),
        ("timestamp", c_uint64),
        ("activity_id", _dipc_guid),
        ("related_activity_id", _dipc_guid),
        ("label_list", c_uint32),
        ("sorted", c_bool),
        ("payload", c_void_p),
        ("payload_len", c_size_t),
        ("stack", c_void_p),
        ("stack_len", c_size_t),
    ]


class _dipc_trace(ctypes.Structure):
    _fields_ = [
        ("version", c_uint32),
        ("pointer_size", c_uint32),
        ("frequency", c_uint64),
        ("sync_ticks", c_uint64),
        ("start_unix_nanoseconds", c_uint64),
        ("process_id", c_uint32),
        ("processors", c_uint32),
    ]


class _dipc_sequence_point(ctypes.Structure):
    _fields_ = [("timestamp", c_uint64), ("flags", c_uint32), ("threads", c_uint32)]


class _dipc_thread(ctypes.Structure):
    _fields_ = [("thread", c_uint64), ("sequence", c_uint32)]


class _dipc_thread_start(ctypes.Structure):
    _fields_ = [("thread", c_uint64), ("thread_id", c_uint64), ("process_id", c_uint64), ("name", _dipc_text)]


class _dipc_label_list(ctypes.Structure):
    _fields_ = [("id", c_uint32), ("bytes", c_void_p), ("len", c_size_t)]


class _dipc_label(ctypes.Structure):
    _fields_ = [
        ("kind", c_uint32),
        ("name", _dipc_text),
        ("number", c_uint64),
        ("text", _dipc_text),
        ("guid", _dipc_guid),
    ]


class _dipc_end(ctypes.Structure):
    _fields_ = [("kind", c_uint32), ("offset", c_uint64)]


class _dipc_record_content(ctypes.Union):
    _fields_ = [
        ("needed", c_size_t),
        ("event", _dipc_event),
        ("trace", _dipc_trace),
        ("sequence_point", _dipc_sequence_point),
        ("thread", _dipc_thread),
        ("thread_start", _dipc_thread_start),
        ("label_list", _dipc_label_list),
        ("end", _dipc_end),
    ]


class _dipc_record(ctypes.Structure):
    _fields_ = [("kind", c_uint32), ("u", _dipc_record_content)]


class _dipc_field_list(ctypes.Structure):
    _fields_ = [("opaque", c_uint64 * 8)]


class _dipc_metadata(ctypes.Structure):
    _fields_ = [
        ("id", c_uint32),
        ("event_id", c_uint32),
        ("provider", _dipc_text),
        ("name", _dipc_text),
        ("keywords", c_uint64),
        ("version", c_uint32),
        ("level", c_uint32),
        ("opcode", c_int32),
        ("problem", c_int32),
        ("fields", _dipc_field_list),
    ]


class _dipc_field_value(ctypes.Structure):
    _fields_ = [
        ("kind", c_uint32),
        ("name", _dipc_text),
        ("number", c_uint64),
        ("real", c_double),
        ("text", _dipc_text),
        ("guid", _dipc_guid),
        ("bytes", c_void_p),
        ("len", c_size_t),
    ]


_VISIT = ctypes.CFUNCTYPE(None, c_void_p, POINTER(_dipc_part))
_VISIT_VALUE = ctypes.CFUNCTYPE(c_bool, c_void_p, POINTER(_dipc_field_value))
_VISIT_LABEL = ctypes.CFUNCTYPE(None, c_void_p, POINTER(_dipc_label))
_SIZE = POINTER(c_size_t)

# The parameters of each function that this file calls, and its result. A pointer to bytes or to an opaque object is a
# `c_void_p`.
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "dipc_version": (c_uint32, []),
    "dipc_status_text": (c_int32, [c_int32, c_size_t, c_char_p, c_size_t, _SIZE]),
    "dipc_text_to_utf8": (c_int32, [_dipc_text, c_char_p, c_size_t, _SIZE]),
    "dipc_path_text": (c_int32, [c_void_p, c_char_p, c_size_t, _SIZE]),
    "dipc_hresult_name": (_dipc_text, [c_uint32]),
    "dipc_hresult_hint": (_dipc_text, [c_uint32]),
    "dipc_command_at": (c_int32, [c_size_t, POINTER(_dipc_command_row)]),
    "dipc_parse": (c_int32, [c_char_p, c_size_t, POINTER(_dipc_message), _SIZE]),
    "dipc_inspect": (c_int32, [c_char_p, c_size_t, c_uint16, _VISIT, c_void_p, _SIZE]),
    "dipc_find": (c_int32, [c_void_p, c_size_t, c_uint16, c_char_p, POINTER(_dipc_part), _SIZE]),
    "dipc_check": (c_int32, [c_char_p, c_size_t, POINTER(c_uint32), _SIZE]),
    "dipc_build_GetProcessInfo": (c_int32, [c_void_p, c_size_t, _SIZE]),
    "dipc_build_GetProcessInfo2": (c_int32, [c_void_p, c_size_t, _SIZE]),
    "dipc_build_GetProcessInfo3": (c_int32, [c_void_p, c_size_t, _SIZE]),
    "dipc_build_GetProcessEnvironment": (c_int32, [c_void_p, c_size_t, _SIZE]),
    "dipc_build_CollectTracing2": (
        c_int32,
        [c_void_p, c_size_t, _SIZE, c_uint32, c_uint32, c_bool, _dipc_providers],
    ),
    "dipc_exchange_size": (c_size_t, []),
    "dipc_exchange_step": (c_int32, [c_void_p, POINTER(_dipc_step), _SIZE]),
    "dipc_exchange_advance": (c_int32, [c_void_p, c_size_t, _SIZE]),
    "dipc_exchange_set_buffer": (c_int32, [c_void_p, c_void_p, c_size_t, _SIZE]),
    "dipc_call_init": (c_int32, [c_void_p, c_void_p, c_size_t, c_size_t, _SIZE]),
    "dipc_call_finish": (c_int32, [c_void_p, POINTER(_dipc_answer), _SIZE]),
    "dipc_read_process_info": (c_int32, [c_void_p, c_size_t, c_uint16, POINTER(_dipc_process_info), _SIZE]),
    "dipc_read_SessionId": (c_int32, [c_void_p, c_size_t, POINTER(c_uint64), _SIZE]),
    "dipc_environment_init": (c_int32, [c_void_p, c_void_p, c_size_t, c_uint32, c_void_p, c_size_t, _SIZE]),
    "dipc_environment_next": (c_int32, [c_void_p, POINTER(_dipc_text), _SIZE]),
    "dipc_environment_is_finished": (c_bool, [c_void_p]),
    "dipc_session_size": (c_size_t, []),
    "dipc_session_init": (c_int32, [c_void_p, c_uint64]),
    "dipc_session_wants_stream": (c_bool, [c_void_p]),
    "dipc_session_stream_advance": (c_int32, [c_void_p, c_void_p, c_size_t]),
    "dipc_session_stop": (c_int32, [c_void_p, c_uint64]),
    "dipc_session_stop_step": (c_int32, [c_void_p, POINTER(_dipc_step)]),
    "dipc_session_stop_advance": (c_int32, [c_void_p, c_uint32, c_uint64]),
    "dipc_session_stop_failed": (c_bool, [c_void_p]),
    "dipc_session_tick": (c_int32, [c_void_p, c_uint64]),
    "dipc_session_until": (c_uint64, [c_void_p]),
    "dipc_session_end": (c_uint32, [c_void_p]),
    "dipc_parser_size": (c_size_t, []),
    "dipc_parser_init": (c_int32, [c_void_p]),
    "dipc_parser_next": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(_dipc_record)]),
    "dipc_parser_release": (c_size_t, [c_void_p]),
    "dipc_parser_finish": (c_int32, [c_void_p, c_void_p, c_size_t, POINTER(_dipc_end)]),
    "dipc_parser_end_text": (c_int32, [c_void_p, c_void_p, c_size_t, c_char_p, c_size_t, _SIZE]),
    "dipc_metadata_decode_runtime": (
        c_int32,
        [c_uint32, c_uint32, c_char_p, c_size_t, POINTER(_dipc_metadata), _SIZE],
    ),
    "dipc_labels": (c_int32, [c_void_p, c_size_t, _VISIT_LABEL, c_void_p, _SIZE]),
    "dipc_metadata_values": (c_int32, [POINTER(_dipc_metadata), c_char_p, c_size_t, _VISIT_VALUE, c_void_p, _SIZE]),
}


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(os.environ.get("DOTNET_IPC_LIBRARY") or "libdotnet_ipc.so.0.1")
    for name, (result, parameters) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    version = library.dipc_version()
    if version >> 16 != _VERSION >> 16 or version < _VERSION:
        raise ImportError(f"{library._name} has version {version:#x} of the interface, not {_VERSION:#x}")
    return library


_library = _load()


class Error(Exception):
    """An error of the protocol or of its bytes."""


class StatusError(Error):
    """A function of the library failed with ``status``. ``detail`` is its number: for errors in bytes, their offset."""

    def __init__(self, status: int, detail: int) -> None:
        super().__init__(_written(lambda text, size, length: _library.dipc_status_text(status, detail, text, size, length)))
        self.status = status
        self.detail = detail


class Refused(Error):
    """The runtime refused a command. ``name`` and ``hint`` explain the ``hresult`` if it is known."""

    def __init__(self, hresult: int, message: str | None) -> None:
        self.hresult = hresult
        self.name = hresult_name(hresult)
        self.hint = _string(_library.dipc_hresult_hint(hresult))
        self.message = message
        reasons = [reason for reason in (self.name, self.hint, message) if reason]
        super().__init__(f"refused with 0x{hresult:08x}: {'; '.join(reasons) or 'no known reason'}")


def _check(status: int, detail: c_size_t) -> None:
    if status != Status.OK:
        raise StatusError(status, detail.value)


def _written(write: Callable[[Any, int, Any], int]) -> str:
    """Returns the text that a function of the library writes into a buffer."""
    size, length = 256, c_size_t()
    while True:
        buffer = ctypes.create_string_buffer(size)
        status = write(buffer, size, byref(length))
        if status != Status.BUFFER_TOO_SMALL:
            break
        size = length.value
    if status != Status.OK:
        raise ValueError(f"the library cannot write a text: {status}")
    return buffer.raw[: length.value].decode()


def _string(text: _dipc_text) -> str | None:
    if text.form == _Text.NULL:
        return None
    return _written(lambda utf8, size, length: _library.dipc_text_to_utf8(text, utf8, size, length))


def _text(string: str | None) -> tuple[_dipc_text, bytes]:
    """Returns a text, and the bytes that must live as long as the text is used."""
    utf8 = (string or "").encode()
    form = _Text.NULL if string is None else _Text.UTF8
    return _dipc_text(ctypes.cast(utf8, c_void_p), len(utf8), form), utf8


def _guid(guid: _dipc_guid) -> uuid.UUID:
    return uuid.UUID(bytes_le=bytes(guid.bytes))


def _memory(size: int) -> Any:
    """Returns the memory of an opaque object: zeros, aligned as the header requires."""
    return (c_uint64 * ((size + 7) // 8))()


# Messages.


class Part(NamedTuple):
    """A part of a message: a field of the header or of the payload."""

    name: str
    kind: PartKind
    offset: int
    bytes: bytes
    number: int
    text: str | None
    value_name: str | None

    @property
    def value(self) -> int | bool | str | uuid.UUID | bytes | None:
        """The value, in the type of its kind."""
        match self.kind:
            case PartKind.BOOL:
                return self.number != 0
            case PartKind.TEXT:
                return self.text
            case PartKind.GUID:
                return uuid.UUID(bytes_le=self.bytes)
            case PartKind.BYTES:
                return self.bytes
            case _:
                return self.number


class Message(NamedTuple):
    """A message: its code, its payload, and the number of its bytes."""

    code: int
    payload: bytes
    length: int


def parse(message: bytes) -> Message | None:
    """Parses the message at the front of some bytes. Returns None if it is longer than they are."""
    parsed, detail = _dipc_message(), c_size_t()
    status = _library.dipc_parse(message, len(message), byref(parsed), byref(detail))
    if status == Status.MORE:
        return None
    _check(status, detail)
    return Message(parsed.code, ctypes.string_at(parsed.payload, parsed.payload_len), parsed.len)


def inspect(message: bytes, answer_to: int = 0) -> tuple[list[Part], StatusError | None]:
    """Returns the parts of a message, in order, up to the error if it is malformed.

    ``answer_to`` is the code of the command that an answer belongs to.
    """
    parts: list[Part] = []
    errors: list[BaseException] = []

    @_VISIT
    def visit(_context: Any, pointer: Any) -> None:
        # An exception must not pass through the library.
        try:
            part = pointer.contents
            name = _written(lambda text, size, length: _library.dipc_path_text(part.path, text, size, length))
            data = ctypes.string_at(part.bytes, part.len) if part.len else b""
            kind = PartKind(part.kind)
            parts.append(Part(name, kind, part.offset, data, part.number, _string(part.text), _string(part.name)))
        except BaseException as error:
            errors.append(error)

    detail = c_size_t()
    status = _library.dipc_inspect(message, len(message), answer_to, visit, None, byref(detail))
    if errors:
        raise errors[0]
    return parts, None if status == Status.OK else StatusError(status, detail.value)


def check(request: bytes) -> int:
    """Returns the HRESULT with which runtimes refuse a request, or 0."""
    hresult, detail = c_uint32(), c_size_t()
    status = _library.dipc_check(request, len(request), byref(hresult), byref(detail))
    if status != Status.OK and hresult.value == 0:
        raise StatusError(status, detail.value)
    return hresult.value


def hresult_name(hresult: int) -> str | None:
    """Returns the name of an HRESULT as in the specification."""
    return _string(_library.dipc_hresult_name(hresult))


def command_code(name: str) -> int:
    """Returns the code of a command, for example of ``GetProcessInfo2``; 0 if there is none with this name."""
    row, index = _dipc_command_row(), 0
    while _library.dipc_command_at(index, byref(row)) == Status.OK:
        if _string(row.name) == name:
            return row.code
        index += 1
    return 0


# Processes.


@dataclass(frozen=True)
class ProcessInfo:
    """The description of a process. Old runtimes do not have the last three fields."""

    process_id: int
    runtime_cookie: uuid.UUID
    command_line: str | None
    os: str | None
    arch: str | None
    managed_entrypoint_assembly_name: str | None
    clr_product_version: str | None
    portable_rid: str | None


@dataclass(frozen=True)
class Provider:
    """A source of events, and which of its events to record."""

    name: str
    keywords: int = 0xFFFF_FFFF_FFFF_FFFF
    level: int = Level.INFORMATIONAL
    arguments: str | None = None


class _Call:
    """An exchange on a connection of its own, with the buffer for its messages, until a deadline."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._deadline = time.monotonic() + timeout
        self._exchange = _memory(_library.dipc_exchange_size())
        # 64 KiB are enough for any message.
        self._buffer = (c_uint8 * 65536)()
        self.socket = _connect(path, timeout)

    def __enter__(self) -> _Call:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def answer(self, build: Callable[..., int], *arguments: Any) -> _dipc_answer:
        """Sends the request that a function of the library builds, and returns the answer, which lives in the buffer."""
        answer, length, detail = _dipc_answer(), c_size_t(), c_size_t()
        size = len(self._buffer)
        status = build(self._buffer, size, byref(length), *arguments)
        _check(status, length)
        _check(_library.dipc_call_init(self._exchange, self._buffer, size, length.value, byref(detail)), detail)
        self._drive()
        _check(_library.dipc_call_finish(self._exchange, byref(answer), byref(detail)), detail)
        if answer.refused:
            part = _dipc_part()
            found = _library.dipc_find(answer.bytes, answer.len, 0, b"message", byref(part), None) == Status.OK
            raise Refused(answer.hresult, _string(part.text) if found else None)
        return answer

    def environment(self, answer: _dipc_answer, limit: int) -> Iterator[str]:
        """Yields the entries that follow the answer."""
        detail, entry = c_size_t(), _dipc_text()
        exchange = _memory(_library.dipc_exchange_size())
        status = _library.dipc_environment_init(
            exchange, answer.bytes, answer.len, limit, self._buffer, len(self._buffer), byref(detail)
        )
        _check(status, detail)
        self._exchange = exchange
        while not _library.dipc_environment_is_finished(exchange):
            self._drive()
            while (status := _library.dipc_environment_next(exchange, byref(entry), byref(detail))) == Status.OK:
                yield _string(entry) or ""
            if status == Status.BUFFER_TOO_SMALL:
                # The buffer is full, so it has at most twice the length of what has arrived.
                larger = (c_uint8 * (2 * len(self._buffer)))()
                ctypes.memmove(larger, self._buffer, len(self._buffer))
                status = _library.dipc_exchange_set_buffer(exchange, larger, len(larger), byref(detail))
                _check(status, detail)
                self._buffer = larger
            elif status != Status.NOT_FOUND:  # nothing more has arrived
                _check(status, detail)

    def _drive(self) -> None:
        step, detail = _dipc_step(), c_size_t()
        while True:
            _check(_library.dipc_exchange_step(self._exchange, byref(step), byref(detail)), detail)
            if step.kind == _Step.DONE:
                return
            self.socket.settimeout(max(self._deadline - time.monotonic(), 0.001))
            n = _transfer(self.socket, step)
            _check(_library.dipc_exchange_advance(self._exchange, n, byref(detail)), detail)


def _connect(path: Path, timeout: float) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        stream.settimeout(timeout)
        stream.connect(os.fspath(path))
    except BaseException:
        stream.close()
        raise
    return stream


def _transfer(stream: socket.socket, step: _dipc_step) -> int:
    """Does a step of an exchange. Returns 0 if the peer has closed the connection."""
    memory = (c_uint8 * step.len).from_address(step.data)
    try:
        return stream.send(memory) if step.kind == _Step.SEND else stream.recv_into(memory)
    except ConnectionError:
        return 0


@dataclass(frozen=True)
class Runtime:
    """The .NET runtime that listens on a socket. Each command has a connection of its own, and ``timeout`` seconds."""

    path: Path
    process_id: int | None = None
    timeout: float = 10.0

    def info(self) -> ProcessInfo:
        """Returns the description of the process, by the newest command that the runtime knows."""
        unknown_command = 0x80131385
        for command, build in (
            (_Command.GET_PROCESS_INFO3, _library.dipc_build_GetProcessInfo3),
            (_Command.GET_PROCESS_INFO2, _library.dipc_build_GetProcessInfo2),
            (_Command.GET_PROCESS_INFO, _library.dipc_build_GetProcessInfo),
        ):
            try:
                return self._info(command, build)
            except Refused as refused:
                if refused.hresult != unknown_command or command == _Command.GET_PROCESS_INFO:
                    raise
        raise AssertionError("the last command returns or raises")

    def _info(self, command: _Command, build: Callable[..., int]) -> ProcessInfo:
        with _Call(self.path, self.timeout) as call:
            answer, info, detail = call.answer(build), _dipc_process_info(), c_size_t()
            status = _library.dipc_read_process_info(answer.bytes, answer.len, command, byref(info), byref(detail))
            _check(status, detail)
            return ProcessInfo(
                info.process_id,
                _guid(info.runtime_cookie),
                _string(info.command_line),
                _string(info.os),
                _string(info.arch),
                _string(info.managed_entrypoint_assembly_name),
                _string(info.clr_product_version),
                _string(info.portable_rid),
            )

    def environment(self, limit: int = 16 << 20) -> list[str]:
        """Returns the environment of the process: usually ``NAME=value``, at most ``limit`` bytes."""
        with _Call(self.path, self.timeout) as call:
            return list(call.environment(call.answer(_library.dipc_build_GetProcessEnvironment), limit))

    def start_tracing(self, providers: Iterable[Provider], buffer_mb: int = 256, rundown: bool = False) -> TraceSession:
        """Starts to record events. With ``rundown``, the trace ends with the names of all methods."""
        alive, items = [], []
        for provider in providers:
            name, name_bytes = _text(provider.name)
            arguments, arguments_bytes = _text(provider.arguments)
            alive += [name_bytes, arguments_bytes]
            items.append(_dipc_provider(provider.keywords, provider.level, name, arguments))
        array = (_dipc_provider * len(items))(*items)
        list_ = _dipc_providers(array, len(items))
        session_id, detail, net_trace = c_uint64(), c_size_t(), 1
        call = _Call(self.path, self.timeout)
        try:
            answer = call.answer(_library.dipc_build_CollectTracing2, buffer_mb, net_trace, rundown, list_)
            _check(_library.dipc_read_SessionId(answer.bytes, answer.len, byref(session_id), byref(detail)), detail)
            return TraceSession(self, call.socket, session_id.value)
        except BaseException:
            call.socket.close()
            raise


def runtimes() -> Iterator[Runtime]:
    """Yields the runtimes that listen in the folder where processes with this environment have their sockets.

    Sockets of processes that have ended are left out.
    """
    folder = Path(os.environ.get("TMPDIR") or "/tmp")
    for path in sorted(folder.glob("dotnet-diagnostic-*-*-socket")):
        name = re.fullmatch(r"dotnet-diagnostic-(\d+)-(\d+)-socket", path.name)
        if name is None:
            continue
        process_id, key = int(name[1]), int(name[2])
        # The key is the start time of the process. An earlier process with this id may have left a socket.
        if key not in (0, _start_time(process_id)):
            continue
        try:
            _connect(path, 1.0).close()
        except OSError:
            continue
        yield Runtime(path, process_id)


def for_process(process_id: int) -> Runtime:
    """Returns the runtime of a process; raises ``ProcessLookupError`` if none listens."""
    for runtime in runtimes():
        if runtime.process_id == process_id:
            return runtime
    raise ProcessLookupError(f"no .NET runtime of process {process_id} listens")


def _start_time(process_id: int) -> int:
    """Returns the start time of a process as Linux counts it, or 0 if it is unknown."""
    try:
        # The name of the program is in brackets, and can contain brackets and blanks.
        return int(Path(f"/proc/{process_id}/stat").read_text(errors="replace").rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


class TraceSession(io.RawIOBase):
    """The stream of a trace that is being recorded; a file in format NetTrace contains the same bytes.

    A runtime that ends a session first writes all buffered events, and blocks until they are read. So ``stop`` only makes
    a request: the reader sends it, and reads up to the end. ``close`` stops the session too, and discards the rest.
    """

    def __init__(self, runtime: Runtime, stream: socket.socket, session_id: int) -> None:
        super().__init__()
        self.session_id = session_id
        self._runtime = runtime
        self._stream = stream
        self._stop_socket: socket.socket | None = None
        self._stop_requested = self._stop_started = False
        # Wakes a reader that waits for events.
        self._awake, self._wake = socket.socketpair()
        self._wake.setblocking(False)
        self._session = _memory(_library.dipc_session_size())
        stream.setblocking(False)
        self._expect(_library.dipc_session_init(self._session, session_id))

    @property
    def end(self) -> SessionEnd:
        """How the session has ended."""
        return SessionEnd(_library.dipc_session_end(self._session))

    def stop(self) -> None:
        """Requests the end of the session. Any thread can call this, and a signal handler too."""
        self._stop_requested = True
        with contextlib.suppress(OSError):  # the session is closed, or the reader is already awake
            self._wake.send(b"\0")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads some bytes into a buffer. Returns 0 at the end of the session: ``end`` is its reason.

        Raises ``TimeoutError`` if the runtime does not end the session in time after ``stop``.
        """
        if self.closed:
            raise ValueError("the session is closed")
        view = memoryview(buffer).cast("B")
        step = _dipc_step()
        while self.end == SessionEnd.RUNNING:
            now = int(time.monotonic() * 1000)
            self._expect(_library.dipc_session_tick(self._session, now))
            if self.end == SessionEnd.TIMED_OUT:
                raise TimeoutError("the runtime did not end the session")
            if self._stop_requested and not self._stop_started:
                self._stop_started = True
                self._expect(_library.dipc_session_stop(self._session, now + int(self._runtime.timeout * 1000)))
            if _library.dipc_session_stop_failed(self._session):
                self._stop_requested = self._stop_started = False
                raise Error("the runtime did not stop the session: call stop again, or end the process")
            self._expect(_library.dipc_session_stop_step(self._session, byref(step)))
            if step.kind == _Step.CONNECT:
                self._connect_stop(now)
                continue
            readable = self._wait(step, now)
            if self._stop_socket and self._stop_socket.fileno() in readable:
                self._transfer_stop(step)
            if self._stream.fileno() in readable:
                try:
                    n = self._stream.recv_into(view)
                except BlockingIOError:
                    continue
                except ConnectionError:
                    n = 0
                piece = (c_uint8 * n).from_buffer(view) if n else None
                self._expect(_library.dipc_session_stream_advance(self._session, piece, n))
                if n:
                    return n
        return 0

    def close(self) -> None:
        if self.closed:
            return
        try:
            self.stop()
            rest = bytearray(65536)
            while self.readinto(rest):
                pass
        finally:
            super().close()
            self._stream.close()
            if self._stop_socket:
                self._stop_socket.close()
            self._awake.close()
            self._wake.close()

    def _expect(self, status: int) -> None:
        if status != Status.OK:
            raise StatusError(status, 0)

    def _wait(self, step: _dipc_step, now: int) -> set[int]:
        """Waits until a descriptor is ready or something is due. Returns the descriptors that are ready."""
        poll = select.poll()
        if not self._stop_started:
            poll.register(self._awake, select.POLLIN)
        if _library.dipc_session_wants_stream(self._session):
            poll.register(self._stream, select.POLLIN)
        if self._stop_socket and step.kind != _Step.DONE:
            poll.register(self._stop_socket, select.POLLOUT if step.kind == _Step.SEND else select.POLLIN)
        until = _library.dipc_session_until(self._session)
        # A limit of poll(2).
        wait = min(max(until - now, 0), 1 << 30)
        return {descriptor for descriptor, _ in poll.poll(wait)}

    def _connect_stop(self, now: int) -> None:
        try:
            # Without waiting, because the stream must be read.
            self._stop_socket = _connect(self._runtime.path, 0)
            event = _Stop.CONNECTED
        except OSError:
            # Either the runtime has no room for a connection now, or its process has ended, and so will the stream.
            event = _Stop.BUSY
        self._expect(_library.dipc_session_stop_advance(self._session, event, now))

    def _transfer_stop(self, step: _dipc_step) -> None:
        assert self._stop_socket
        try:
            n = _transfer(self._stop_socket, step)
        except BlockingIOError:
            return
        event = _Stop.SENT if step.kind == _Step.SEND else _Stop.RECEIVED
        self._expect(_library.dipc_session_stop_advance(self._session, event, n))


# Traces.


class Readable(Protocol):
    """A stream of bytes: a file that is open in binary mode, or a ``TraceSession``."""

    def readinto(self, buffer: Any, /) -> int | None: ...


class FileTime(int):
    """A point in time, in units of 100 ns since 1601-01-01 UTC."""

    def datetime(self) -> datetime.datetime:
        """Returns the time, rounded to microseconds; raises ``OverflowError`` after the year 9999."""
        start = datetime.datetime(1601, 1, 1, tzinfo=datetime.timezone.utc)
        return start + datetime.timedelta(microseconds=self // 10)


class EventKind:
    """The description of a kind of event."""

    def __init__(self, version: int, pointer_size: int, record: bytes) -> None:
        self._metadata, detail = _dipc_metadata(), c_size_t()
        # The description of the fields points into the record.
        self._record = record
        status = _library.dipc_metadata_decode_runtime(
            version, pointer_size, record, len(record), byref(self._metadata), byref(detail)
        )
        _check(status, detail)
        self.metadata_id: int = self._metadata.id
        self.event_id: int = self._metadata.event_id
        self.provider: str = _string(self._metadata.provider) or ""
        self.name: str = _string(self._metadata.name) or ""
        self.keywords: int = self._metadata.keywords
        self.version: int = self._metadata.version
        self.level: int = self._metadata.level
        self.opcode: int | None = self._metadata.opcode if self._metadata.opcode >= 0 else None

    def fields(self, payload: bytes) -> dict[str, Any]:
        """Returns the values of a payload by their names, up to the first one that does not fit the description."""
        fields: dict[str, Any] = {}
        open_: list[dict[str, Any] | list[Any]] = [fields]
        errors: list[BaseException] = []

        def add(name: str, value: Any) -> None:
            container = open_[-1]
            if isinstance(container, list):
                container.append(value)
            else:
                container[name] = value

        @_VISIT_VALUE
        def visit(_context: Any, pointer: Any) -> bool:
            # An exception must not pass through the library.
            try:
                value = pointer.contents
                if value.kind in (_Value.END_OBJECT, _Value.END_ARRAY):
                    open_.pop()
                    return True
                python = _python_value(value)
                add(_string(value.name) or "", python)
                if value.kind in (_Value.BEGIN_OBJECT, _Value.BEGIN_ARRAY):
                    open_.append(python)
                return True
            except BaseException as error:
                errors.append(error)
                return False

        _library.dipc_metadata_values(byref(self._metadata), payload, len(payload), visit, None, None)
        if errors:
            raise errors[0]
        return fields


def _python_value(value: _dipc_field_value) -> Any:
    match value.kind:
        case _Value.BOOL:
            return value.number != 0
        case _Value.INT:
            return ctypes.c_int64(value.number).value
        case _Value.UINT:
            return value.number
        case _Value.REAL:
            return value.real
        case _Value.TEXT:
            return _string(value.text)
        case _Value.GUID:
            return _guid(value.guid)
        case _Value.TIME:
            return FileTime(value.number)
        case _Value.BYTES:
            return ctypes.string_at(value.bytes, value.len) if value.len else b""
        case _Value.DECIMAL:
            return bytes(value.guid.bytes)
        case _Value.CODE_UNIT:
            return chr(value.number)
        case _Value.BEGIN_OBJECT:
            return {}
        case _Value.BEGIN_ARRAY:
            return []
    raise ValueError(f"the library has a kind of value that this file does not know: {value.kind}")


@dataclass
class Labels:
    """Properties of an event, in version 6 of the format. None means that there is no such label."""

    activity_id: uuid.UUID | None = None
    related_activity_id: uuid.UUID | None = None
    # Those of W3C.
    trace_id: bytes | None = None
    span_id: int | None = None
    # These replace what the description of the event states.
    opcode: int | None = None
    keywords: int | None = None
    level: int | None = None
    version: int | None = None
    # All others.
    values: dict[str, str | int] = field(default_factory=dict)


_NO_LABELS = Labels()


def _labels(list_: _dipc_label_list) -> Labels:
    labels = Labels()
    errors: list[BaseException] = []

    @_VISIT_LABEL
    def visit(_context: Any, pointer: Any) -> None:
        # An exception must not pass through the library.
        try:
            label = pointer.contents
            match label.kind:
                # The first activity counts; of the others the last.
                case _Label.ACTIVITY_ID:
                    labels.activity_id = labels.activity_id or _guid(label.guid)
                case _Label.RELATED_ACTIVITY_ID:
                    labels.related_activity_id = labels.related_activity_id or _guid(label.guid)
                case _Label.TRACE_ID:
                    labels.trace_id = bytes(label.guid.bytes)
                case _Label.SPAN_ID:
                    labels.span_id = label.number
                case _Label.TEXT:
                    labels.values[_string(label.name) or ""] = _string(label.text) or ""
                case _Label.NUMBER:
                    labels.values[_string(label.name) or ""] = ctypes.c_int64(label.number).value
                case _Label.OPCODE:
                    labels.opcode = label.number
                case _Label.KEYWORDS:
                    labels.keywords = label.number
                case _Label.LEVEL:
                    labels.level = label.number
                case _Label.VERSION:
                    labels.version = label.number
        except BaseException as error:
            errors.append(error)

    detail = c_size_t()
    _check(_library.dipc_labels(list_.bytes, list_.len, visit, None, byref(detail)), detail)
    if errors:
        raise errors[0]
    return labels


@dataclass(frozen=True)
class Thread:
    """A thread, in version 6 of the format. None means that the trace does not state it."""

    name: str
    thread_id: int | None
    # That of the trace if it is None.
    process_id: int | None


@dataclass(frozen=True)
class Event:
    """An event. ``kind`` is None if the trace does not describe it."""

    kind: EventKind | None
    payload: bytes
    # In nanoseconds since 1970-01-01 UTC.
    unix_nanoseconds: int
    # None if the trace does not state it.
    thread_id: int | None
    # In version 6 of the format.
    thread: Thread | None
    # None if it is unknown.
    processor: int | None
    activity_id: uuid.UUID
    related_activity_id: uuid.UUID
    labels: Labels
    # None if the trace does not state it.
    opcode: int | None
    keywords: int
    level: int
    version: int

    @property
    def provider(self) -> str:
        """The name of the provider; empty if it is unknown."""
        return self.kind.provider if self.kind else ""

    @property
    def name(self) -> str:
        """The name of the event; empty if it has none or is unknown."""
        return self.kind.name if self.kind else ""

    @functools.cached_property
    def fields(self) -> dict[str, Any]:
        """The values of the payload by their names. Objects are dictionaries, and arrays lists."""
        return self.kind.fields(self.payload) if self.kind else {}


class Trace(Iterator[Event]):
    """The events of a trace, from a file or a ``TraceSession``, in the order of the stream.

    A damaged trace yields all events before the damage. ``end`` and ``end_text`` report the end after the last event.
    """

    def __init__(self, stream: Readable) -> None:
        self.end: TraceEnd | None = None
        self.end_text = ""
        self._events = self._read(stream)

    def __next__(self) -> Event:
        return next(self._events)

    def _read(self, stream: Readable) -> Iterator[Event]:
        # A buffered stream would otherwise wait until it has as many bytes as there is space.
        read = getattr(stream, "readinto1", None) or stream.readinto
        parser, record = _memory(_library.dipc_parser_size()), _dipc_record()
        window, length = bytearray(1 << 17), 0
        address = (c_uint8 * len(window)).from_buffer(window)
        kinds: dict[int, EventKind] = {}
        threads: dict[int, Thread] = {}
        labels: dict[int, Labels] = {}
        trace = _dipc_trace()
        detail = c_size_t()
        _check(_library.dipc_parser_init(parser), detail)
        while True:
            _check(_library.dipc_parser_next(parser, address, length, byref(record)), detail)
            match record.kind:
                case _Record.EVENT:
                    event = record.u.event
                    thread = threads.get(event.thread)
                    yield _event(event, trace, kinds.get(event.metadata_id), thread, labels.get(event.label_list))
                case _Record.TRACE:
                    # A copy: the memory of the record is used again.
                    trace = _dipc_trace.from_buffer_copy(record.u.trace)
                case _Record.METADATA:
                    event = record.u.event
                    data = ctypes.string_at(event.payload, event.payload_len) if event.payload_len else b""
                    try:
                        kind = EventKind(trace.version, trace.pointer_size, data)
                        kinds[kind.metadata_id] = kind
                    except StatusError:
                        pass  # its events have no description
                case _Record.THREAD:
                    start = record.u.thread_start
                    numbers = (None if number == _UNKNOWN else number for number in (start.thread_id, start.process_id))
                    threads[start.thread] = Thread(_string(start.name) or "", *numbers)
                case _Record.REMOVE_THREAD:
                    threads.pop(record.u.thread.thread, None)
                case _Record.LABEL_LIST:
                    labels[record.u.label_list.id] = _labels(record.u.label_list)
                case _Record.SEQUENCE_POINT:
                    labels.clear()
                    if record.u.sequence_point.flags & 1:
                        threads.clear()
                    if record.u.sequence_point.flags & 2:
                        kinds.clear()
                case _Record.END:
                    break
                case _Record.MORE:
                    needed = record.u.needed
                    used = _library.dipc_parser_release(parser)
                    rest = window[used:length]
                    length = len(rest)
                    if needed > len(window):
                        window = bytearray(max(needed, 2 * len(window)))
                        address = (c_uint8 * len(window)).from_buffer(window)
                    window[:length] = rest
                    with memoryview(window) as view:
                        n, room = read(view[length:]), len(view) - length
                    if n is None:
                        raise BlockingIOError("a trace needs a blocking stream")
                    if not 0 <= n <= room:
                        raise OSError(f"the stream has read {n} bytes into a buffer of {room}")
                    length += n
                    if n == 0:
                        break
        end = _dipc_end()
        _check(_library.dipc_parser_finish(parser, address, length, byref(end)), detail)
        self.end = TraceEnd(end.kind)
        self.end_text = _written(
            lambda text, size, written: _library.dipc_parser_end_text(parser, address, length, text, size, written)
        )


_UNKNOWN = 0xFFFF_FFFF_FFFF_FFFF


def _event(
    event: _dipc_event, trace: _dipc_trace, kind: EventKind | None, thread: Thread | None, labels: Labels | None
) -> Event:
    ticks = event.timestamp - trace.sync_ticks
    labels = labels or _NO_LABELS
    # Before version 6, an event has the id itself.
    thread_id = thread and thread.thread_id
    if trace.version < 6 and event.thread != _UNKNOWN:
        thread_id = event.thread

    def property_(name: str, unknown: int | None) -> Any:
        replaced = getattr(labels, name)
        return replaced if replaced is not None else getattr(kind, name, unknown)

    return Event(
        kind,
        ctypes.string_at(event.payload, event.payload_len) if event.payload_len else b"",
        trace.start_unix_nanoseconds + ticks * 1_000_000_000 // (trace.frequency or 1_000_000_000),
        thread_id,
        thread,
        None if event.processor == 0xFFFF_FFFF else event.processor,
        labels.activity_id or _guid(event.activity_id),
        labels.related_activity_id or _guid(event.related_activity_id),
        labels,
        property_("opcode", None),
        property_("keywords", 0),
        property_("level", 0),
        property_("version", 0),
    )
