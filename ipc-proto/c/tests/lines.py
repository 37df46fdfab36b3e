#!/usr/bin/env python3
"""Prints what the module dotnet_ipc says about messages and traces, as tests/messages.c and tests/events.c do.

usage: lines.py messages FILE ANSWER_TO ...
       lines.py events FILE PIECE
"""
import sys
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "python"))
import dotnet_ipc


def text(string):
    return "-" if string is None else f"+{string.encode().hex()}"


def status(key, error):
    values = (error.status, error.detail, error) if error else (0, 0, "")
    print(key, *values, sep="\t")


def messages(file, answer_to):
    lines = Path(file).read_text().splitlines()
    message = bytes.fromhex("".join(line.split("#")[0] for line in lines))
    print(f"file\t{file}")
    parts, error = dotnet_ipc.inspect(message, dotnet_ipc.command_code(answer_to))
    for part in parts:
        numbers = (part.offset, len(part.bytes), part.kind.value, part.number, part.bytes.hex())
        print("part", part.name, *numbers, text(part.text), text(part.value_name), sep="\t")
    status("inspect", error)
    try:
        parsed = dotnet_ipc.parse(message)
        if parsed and parsed.payload != message[20 : parsed.length]:
            sys.exit(f"{file}: the payload differs")
        status("parse", None)
    except dotnet_ipc.StatusError as failed:
        status("parse", failed)
    try:
        hresult = dotnet_ipc.check(message)
        status("check", None)
    except dotnet_ipc.StatusError as failed:  # the message is cut off
        hresult = 0
        status("check", failed)
    print("hresult", hresult, text(dotnet_ipc.hresult_name(hresult)), sep="\t")


# The numbers of tests/events.py; those of the C interface are the same.
BOOL, INT, REAL, TEXT, GUID, BEGIN, END = 0, 1, 3, 4, 5, 10, 11


def value(name, content):
    match content:
        case bool():
            kind, written = BOOL, int(content)
        case dotnet_ipc.FileTime():
            kind, written = REAL, ""
        case int():
            kind, written = INT, content
        case str():
            kind, written = TEXT, content.encode().hex()
        case uuid.UUID():
            kind, written = GUID, content.bytes_le.hex()
        case dict() | list():
            print("value", BEGIN, name.encode().hex(), 0, sep="\t")
            kind, written = END, 0
        case _:
            kind, written = REAL, ""
    print("value", kind, name.encode().hex(), written, sep="\t")


def labels(labels):
    nothing = bytes(16).hex()
    if labels.trace_id is not None:
        print("label", 3, "", 0, "", labels.trace_id.hex(), sep="\t")
    if labels.span_id is not None:
        print("label", 4, "", labels.span_id, "", nothing, sep="\t")
    for name, content in labels.values.items():
        kind, *written = (5, 0, content.encode().hex()) if isinstance(content, str) else (6, content, "")
        print("label", kind, name.encode().hex(), *written, nothing, sep="\t")


class Pieces:
    """A stream that returns so many bytes at once."""

    def __init__(self, file, size):
        self.file, self.size = file, size

    def readinto(self, buffer):
        return self.file.readinto(buffer[: self.size])


def events(file, piece):
    with open(file, "rb", buffering=0) as file:
        trace = dotnet_ipc.Trace(Pieces(file, int(piece)))
        for event in trace:
            kind = event.kind
            if not kind:
                print("event")
                continue
            texts = (kind.provider.encode().hex(), kind.name.encode().hex())
            ids = (event.activity_id.bytes_le.hex(), event.related_activity_id.bytes_le.hex())
            thread_id = 2**64 - 1 if event.thread_id is None else event.thread_id
            thread = (event.thread.name.encode().hex() if event.thread else "", thread_id)
            opcode = -1 if event.opcode is None else event.opcode
            numbers = (kind.event_id, event.version, event.level, opcode, event.keywords)
            print("event", *texts, *ids, *thread, *numbers, sep="\t")
            labels(event.labels)
            for name, content in event.fields.items():
                value(name, content)
    print("end", trace.end.value, sep="\t")


what, *arguments = sys.argv[1:]
step = {"messages": messages, "events": events}[what]
for i in range(0, len(arguments), 2):
    step(*arguments[i : i + 2])
