"""A reader of messages and traces that somebody else could have written, in less than 400 lines of code. It has nothing
of this repository, and only the standard library of Python. vectors.py beside it runs the vectors with it.
"""
import base64
import hashlib
import struct
import uuid
from datetime import datetime, timedelta

# ---- Messages

MAGIC, ADVERTISE = b"DOTNET_IPC_V1\0", b"ADVR_V1\0"

# Layouts: NAME:TYPE, where [TYPE] is a list. A session depends on its type, which stands before it.
PROVIDER = "keywords:u64 level:u32 name:text arguments:text"
LAYOUTS = {
    "provider": PROVIDER,
    "streaming": PROVIDER + " filter.enable:bool filter.event_ids:[u32]",
    "user": PROVIDER + " filter.enable:bool filter.event_ids:[u32] tracepoints.default_tracepoint_name:text"
    " tracepoints.sets:[set]",
    "set": "tracepoint_name:text event_ids:[u32]",
    "session5/0": "buffer_mb:u32 format:u32 rundown_keyword:u64 stackwalk:bool providers:[streaming]",
    "session5/1": "rundown_keyword:u64 providers:[user]",
}
LAYOUTS["session6/0"], LAYOUTS["session6/1"] = LAYOUTS["session5/0"] + " session_buffer_mode:u32", LAYOUTS["session5/1"]
DUMP, SESSION = "dump_name:text dump_type:u32 ", "buffer_mb:u32 format:u32 "
INFO = "process_id:u64 runtime_cookie:guid command_line:text os:text arch:text"
INFO2 = INFO + " managed_entrypoint_assembly_name:text clr_product_version:text"
STATUS, ID = "status:hresult", "session_id:u64"
# The commands: code, name, layout of the request, layout of the OK answer.
COMMANDS = {
    0x0101: ("GenerateCoreDump", DUMP + "diagnostics:u32", STATUS),
    0x0102: ("GenerateCoreDump2", DUMP + "flags:u32", STATUS),
    0x0103: ("GenerateCoreDump3", DUMP + "flags:u32", STATUS),
    0x0201: ("StopTracing", "session_id:u64", ID),
    0x0202: ("CollectTracing", SESSION + "providers:[provider]", ID),
    0x0203: ("CollectTracing2", SESSION + "rundown:bool providers:[provider]", ID),
    0x0204: ("CollectTracing3", SESSION + "rundown:bool stackwalk:bool providers:[provider]", ID),
    0x0205: ("CollectTracing4", SESSION + "rundown_keyword:u64 stackwalk:bool providers:[provider]", ID),
    0x0206: ("CollectTracing5", "session_type:u32 :session5", ID),
    0x0207: ("CollectTracing6", "session_type:u32 :session6", ID),
    0x0301: ("AttachProfiler", "attach_timeout:u32 profiler_guid:guid profiler_path:text client_data:bytes", STATUS),
    0x0302: ("StartupProfiler", "profiler_guid:guid profiler_path:text", STATUS),
    0x0400: ("GetProcessInfo", "", INFO),
    0x0401: ("ResumeRuntime", "", STATUS),
    0x0402: ("GetProcessEnvironment", "", "incoming_bytes:u32 future:u16"),
    0x0403: ("SetEnvironmentVariable", "name:text value:text", STATUS),
    0x0404: ("GetProcessInfo2", "", INFO2),
    0x0405: ("EnablePerfMap", "perf_map_type:u32", STATUS),
    0x0406: ("DisablePerfMap", "", STATUS),
    0x0407: ("ApplyStartupHook", "startup_hook_path:text", STATUS),
    0x0408: ("GetProcessInfo3", "", "version:u32 " + INFO2 + " portable_rid:text"),
}
# The least number of bytes of an item: no list has more items than bytes follow.
LEAST = {"[u32]": 4, "[set]": 8, "[provider]": 20, "[streaming]": 25, "[user]": 33}
ANSWERS = {name: answer for name, _, answer in COMMANDS.values()}


class Fault(Exception):
    """Bytes that are not what they should be."""


class Reader:
    """Bytes that are read from the front. `fields` are those that layouts name."""

    def __init__(self, raw, at=0, end=None):
        self.raw, self.at, self.end, self.fields = raw, at, len(raw) if end is None else end, []

    def take(self, size):
        if size > self.end - self.at:
            raise Fault(f"{size} bytes at {self.at} of {self.end}")
        self.at += size
        return self.raw[self.at - size : self.at]

    def number(self, size):
        return int.from_bytes(self.take(size), "little")

    def note(self, name, size, value):
        self.fields.append({"name": name, "offset": self.at - size, "length": size, "value": value})
        return value

    def layout(self, layout, prefix=""):
        for part in layout.split():
            name, kind = part.split(":")
            self.value(prefix + name, kind)

    def value(self, name, kind):
        if kind.startswith("session"):
            kind += f"/{self.fields[-1]['value']}"
            # Of an unknown type, nothing is known. Its server refuses the value.
            return self.layout(LAYOUTS.get(kind, ""))
        if kind[0] == "u":
            return self.note(name, int(kind[1:]) // 8, self.number(int(kind[1:]) // 8))
        if kind == "bool":
            return self.note(name, 1, self.number(1) != 0)
        if kind == "guid":
            return self.note(name, 16, str(uuid.UUID(bytes_le=self.take(16))))
        if kind == "hresult":
            return self.note(name, 4, f"0x{self.number(4):08x}")
        count = self.number(4)
        if count * LEAST.get(kind, 0) > self.end - self.at:
            raise Fault("a count that is too large")
        self.note(name + ".count", 4, count)
        if kind == "text":  # the count is that of UTF-16 units with the NUL; a null text has none
            units = self.take(2 * count)
            if units[-2:] not in (b"", b"\0\0"):
                raise Fault("no NUL")
            return self.note(name, len(units), units[:-2].decode("utf-16-le", "replace") if count else None)
        if kind == "bytes":
            return self.note(name, count, self.take(count).hex())
        for index in range(count):
            if kind[1:-1] in LAYOUTS:
                self.layout(LAYOUTS[kind[1:-1]], f"{name}[{index}].")
            else:
                self.value(f"{name}[{index}]", kind[1:-1])
        return None

    def varint(self, bits=64):
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 127) << shift
            shift += 7
            if value >> bits:
                raise Fault("an integer that is too large")
            if byte < 128:
                return value

    def zigzag(self):
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def utf8(self):
        return self.take(self.varint(32)).decode("utf-8", "replace")

    def utf16(self):
        units = bytearray()
        while (unit := self.take(2)) != b"\0\0":
            units += unit
        return units.decode("utf-16-le", "replace")


def parse(raw, answer_to=None):
    """The kind and the command of a message, its fields, the bytes after them, and the fault or None."""
    reader, kind, command = Reader(raw), None, None
    try:
        if raw.startswith(ADVERTISE):
            reader.note("magic", 8, reader.take(8).hex())
            reader.layout("runtime_cookie:guid process_id:u64 future:u16")
            return "advertise", None, reader.fields, b"", None
        if reader.take(14) != MAGIC:
            raise Fault("magic")
        reader.note("magic", 14, MAGIC.hex())
        size = int.from_bytes(raw[14:16], "little")
        if size < 20:
            raise Fault("size")
        reader.layout("size:u16 command_set:u8 command_id:u8 reserved:u16")
        code = 256 * raw[16] + raw[17]
        kind = {0xFF00: "ok", 0xFFFF: "error"}.get(code, "request")
        command, layout, _ = COMMANDS.get(code, (f"0x{code:04x}", "", ""))
        if kind != "request":
            command, layout = answer_to, ANSWERS.get(answer_to, "") if kind == "ok" else "hresult:hresult"
        if size > len(raw):
            raise Fault("the bytes end before the message")
        reader.end = size
        if kind == "error" and answer_to == "GenerateCoreDump3" and size > 24:  # only its refusals have a text
            layout += " message:text"
        reader.layout("" if layout == STATUS and size == 20 else layout)  # an older OK has no payload
        if command == "AttachProfiler" and kind == "request" and reader.at < size:
            raise Fault("bytes after client_data")
    except Fault as fault:
        return kind, command, reader.fields, b"", fault
    return kind, command, reader.fields, raw[reader.at : size], None


# ---- Traces

BLOCKS = {"Trace": "trace", "EventBlock": "event", "MetadataBlock": "metadata"}
BLOCKS.update({"StackBlock": "stack", "SPBlock": "point"})
BLOCKS.update({1: "trace", 2: "event", 3: "metadata", 4: "point", 5: "stack", 6: "thread", 7: "gone", 8: "label"})
NUMBERS = dict(zip(range(5, 15), "bBhHiIqQfd"))
# Providers whose events have names and fields in a manifest, which no trace contains.
MANIFEST = ("Microsoft-Windows-DotNETRuntime", "Microsoft-DotNETCore-SampleProfiler")


def guid(raw):
    return str(uuid.UUID(bytes_le=raw)) if any(raw) else None


class Trace:
    """The events of a trace in the order of the stream, and what was lost."""

    def __init__(self, raw):
        self.raw, self.events, self.kinds, self.stacks, self.labels, self.threads = raw, [], {}, {}, {}, {}
        self.last, self.lost, self.lost_at_start, self.digest = {}, 0, 0, hashlib.sha256()
        self.end, self.offset = "complete", None
        is_new = raw[:8] == b"Nettrace"
        self.version = 3 if not is_new else 4 if raw[8] else raw[12]
        self.v6 = self.version == 6
        for name, start, size, offset in self.blocks(20 if self.v6 else 32 if is_new else 24):
            try:
                if name:
                    getattr(self, name)(Reader(raw, start, min(start + size, len(raw))))
            except Fault:
                if start + size <= len(raw) and self.end == "complete":
                    self.end, self.offset = "corrupt", offset

    def blocks(self, at):
        while at + 4 <= len(self.raw) or self.raw[at : at + 1] == b"\1":
            if self.v6:
                name, start, size = self.raw[at + 3], at + 4, int.from_bytes(self.raw[at : at + 3], "little")
            else:
                length = int.from_bytes(self.raw[at + 11 : at + 15], "little")
                name, start, size = self.raw[at + 15 : at + 15 + length].decode(), at + 16 + length, 48
            if name == 0 or not self.v6 and self.raw[at] == 1:
                return
            if not self.v6 and name != "Trace":  # a size, then zeros up to a multiple of 4 in the stream
                size, start = int.from_bytes(self.raw[start : start + 4], "little"), (start + 7) & ~3
            yield BLOCKS.get(name), start, size, at
            at = start + size + (not self.v6)
        self.end, self.offset = "truncated", len(self.raw)

    def trace(self, body):
        body.take(16)
        self.sync, self.frequency, self.pointer, process = (body.number(size) for size in (8, 8, 4, 4))
        pairs = dict((body.utf8(), body.utf8()) for _ in range(process)) if self.v6 else {"ProcessId": process}
        self.process = int(pairs["ProcessId"]) if "ProcessId" in pairs else None

    def blobs(self, body):
        start, size, flag = body.at, body.number(2), body.number(2)
        body.at = start + size
        meta = seq = capture = processor = thread = stack = time = labels = length = 0
        activity = related = bytes(16)
        while body.at < body.end:
            if flag & 1:
                flags = body.number(1)
                meta = body.varint(32) if flags & 1 else meta
                if flags & 2:
                    seq, capture, processor = seq + body.varint(32) + 1, body.varint(), body.varint(32)
                seq += not flags & 2 and meta != 0
                thread = body.varint() if flags & 4 else thread
                stack = body.varint(32) if flags & 8 else stack
                time = (time + body.varint()) % (1 << 64)
                labels = body.varint(32) if flags & 16 and self.v6 else labels
                activity = body.take(16) if flags & 16 and not self.v6 else activity
                related = body.take(16) if flags & 32 and not self.v6 else related
                length, order = body.varint(32) if flags & 128 else length, flags >> 6 & 1
                end = body.at + length
            else:
                end = body.number(4) + body.at
                meta, seq, thread, capture, processor, stack, time = (body.number(n) for n in (4, 4, 8, 8, 4, 4, 8))
                labels = body.number(4) if self.v6 else 0
                activity, related = (related, related) if self.v6 else (body.take(16), body.take(16))
                meta, order, length = meta & 0x7FFFFFFF, 1 - (meta >> 31), body.number(4)
            payload = body.take(length)
            seq %= 1 << 32
            yield meta, seq, capture, processor, thread, stack, time, labels, activity, related, order, payload
            body.take(end - body.at)

    def netperf(self, body):
        while body.at < body.end:
            end = body.number(4) + body.at
            meta, thread, time, activity, related = *map(body.number, (4, 4, 8)), body.take(16), body.take(16)
            payload = body.take(body.number(4))
            self.stacks[0] = body.take(body.number(4))
            if meta:
                yield meta, 0, 0, 0xFFFFFFFF, thread, 0, time, 0, activity, related, 1, payload
            else:
                self.describe(Reader(payload))
            body.take(end - body.at)

    def event(self, body):
        for event in self.blobs(body) if self.version > 3 else self.netperf(body):
            meta, seq, capture, processor, thread, stack, time, labels, activity, related, order, payload = event
            self.count(capture, seq)
            self.digest.update(struct.pack("<IIQQIIQ", meta, seq, thread, capture, processor, stack, time))
            self.digest.update(activity + related + bytes([order]) + struct.pack("<I", len(payload)) + payload)
            kind, marks, owner = self.kinds[meta], self.labels.get(labels, {}), self.threads.get(thread, {})
            row = {"time_ns": (time - self.sync) * 10**9 // self.frequency, "thread_id": thread}
            row.update(process_id=self.process, activity_id=guid(activity), related_activity_id=guid(related), **kind)
            if self.v6:
                row.update(thread_id=None, thread_name=None, thread_attributes={})
                row.update({"trace_id": None, "span_id": None, "labels": {}} | owner | marks)
            row["keywords"] = f"0x{row['keywords']:x}"
            row["processor"] = None if processor == 0xFFFFFFFF else processor
            frames, size = self.stacks.get(stack, b""), self.pointer
            row["stack"] = [hex(int.from_bytes(frames[at : at + size], "little")) for at in range(0, len(frames), size)]
            fields = row.pop("fields")
            if not fields and payload:
                row["payload"] = base64.b64encode(payload).decode()
            elif not row["provider"].startswith(MANIFEST):
                row["fields"], rest = Payload(payload, row["provider"].startswith("Universal.")).decode(fields)
                row.update({"rest": base64.b64encode(rest).decode()} if rest else {})
            self.events.append(row)

    def count(self, thread, seq, point=False):
        """Counts the events between the last number of a thread and this one. The first event has number 1."""
        last = self.last.get(thread)
        if self.version > 3 and last is None:
            self.lost_at_start += seq - (not point)
        elif self.version > 3 and (self.v6 or point or seq != 1):  # from 1 on again: another thread with the same id
            gap = (seq - last - (not point)) % (1 << 32)
            self.lost += gap if gap < 1 << 31 else 0
        self.last[thread] = seq

    def metadata(self, body):
        if not self.v6:
            for blob in self.blobs(body):
                self.describe(Reader(blob[-1]))
            return
        body.take(body.number(2))
        while body.at < body.end:
            row = Reader(body.take(body.number(2)))
            meta, kind = row.varint(32), {"provider": row.utf8(), "id": row.varint(32), "name": row.utf8() or None}
            kind.update(version=0, level=0, opcode=None, keywords=0, fields=self.fields(row, 6))
            more = Reader(row.take(row.number(2)))
            while more.at < more.end:
                tag = more.number(1)
                if key := {1: "opcode", 3: "keywords", 8: "level", 9: "version"}.get(tag):
                    kind[key] = more.number(8 if tag == 3 else 1)
                else:
                    _ = more.take(16) if tag == 7 else [more.utf8() for _ in range(2 if tag == 6 else 1)]
            self.kinds[meta] = kind

    def describe(self, row):
        meta, kind = row.number(4), {"provider": row.utf16(), "id": row.number(4), "name": row.utf16() or None}
        kind.update(keywords=row.number(8), version=row.number(4), level=row.number(4), opcode=None)
        kind["fields"] = self.fields(row, 1) if row.at < row.end else []
        while row.at < row.end:
            size, tag = row.number(4), row.number(1)
            body = Reader(row.take(size))
            if tag in (1, 2):
                kind.update({"opcode": body.number(1)} if tag == 1 else {"fields": self.fields(body, 2)})
        self.kinds[meta] = kind

    def fields(self, row, form):
        """Names and types. In form 1 the type is first; in 2 and 6 each field has a size, which in 2 counts itself."""
        found = []
        for _ in range(row.number(2 if form == 6 else 4)):
            field = row if form == 1 else Reader(row.take(row.number(2) if form == 6 else row.number(4) - 4))
            kind = self.type(row, 1) if form == 1 else None
            name = field.utf8() if form == 6 else field.utf16()
            found.append((name, kind or self.type(field, form)))
        return found

    def type(self, row, form):
        code = row.number(1 if form == 6 else 4)
        inner = self.fields(row, form) if code == 1 else self.type(row, form) if code in (19, 22, 24, 25) else None
        return code, inner, row.number(2) if code == 22 else 0

    def stack(self, body):
        first = body.number(4)
        for number in range(first, first + body.number(4)):
            self.stacks[number] = body.take(body.number(4))

    def point(self, body):
        flags = body.number(12) >> 64 if self.v6 else body.number(8) * 0
        for _ in range(body.number(4)):
            self.count(*((body.varint(), body.varint(32)) if self.v6 else (body.number(8), body.number(4))), True)
        self.stacks, self.labels = {}, {}
        self.threads, self.last = ({}, {}) if flags & 1 else (self.threads, self.last)
        self.kinds = {} if flags & 2 else self.kinds

    def thread(self, body):
        while body.at < body.end:
            row, owner = Reader(body.take(body.number(2))), {"thread_attributes": {}}
            index = row.varint()
            while row.at < row.end:
                tag = row.number(1)
                if tag == 4:
                    owner["thread_attributes"].update([(row.utf8(), row.utf8())])
                else:
                    key = {1: "thread_name", 2: "process_id", 3: "thread_id"}[tag]
                    owner[key] = row.utf8() if tag == 1 else row.varint()
            self.threads[index], self.last[index] = owner, 0

    def gone(self, body):
        while body.at < body.end:
            index = body.varint()
            self.count(index, body.varint(32), True)
            self.threads.pop(index), self.last.pop(index)

    def label(self, body):
        first = body.number(4)
        for number in range(first, first + body.number(4)):
            marks, tag = {"labels": {}}, 0
            while tag < 128:  # the last label of a list has the highest bit
                tag = body.number(1)
                kind = tag & 127
                if kind in (5, 6):
                    marks["labels"].update([(body.utf8(), body.utf8() if kind == 5 else body.zigzag())])
                elif kind < 5:
                    key = ("activity_id", "related_activity_id", "trace_id", "span_id")[kind - 1]
                    raw = body.take(8 if kind == 4 else 16)
                    marks[key] = guid(raw) if kind < 3 else raw.hex() if kind == 3 else raw[::-1].hex()
                else:
                    key = {7: "opcode", 8: "keywords", 9: "level", 10: "version"}[kind]
                    marks[key] = body.number(8 if kind == 8 else 1)
            self.labels[number] = marks


class Payload(Reader):
    """The values of an event. In the `Universal.` providers, type 23 is a text with its length."""

    def __init__(self, raw, universal):
        super().__init__(raw)
        self.universal, self.reached = universal, 0

    def decode(self, fields):
        """The values by name, and the bytes after them."""
        if len(fields) == 1 and fields[0][0] == "" and fields[0][1][0] == 1:
            fields = fields[0][1][1]  # an object that is the whole payload
        values = {name: self.one(kind) for name, kind in fields}
        return values, self.raw[max(self.at, self.reached) :]

    def many(self, kind, until):
        values = []
        while not until(values):
            values.append(self.one(kind))
        return "".join(values) if kind[0] in (4, 23) else values

    def one(self, kind):
        code, inner, count = kind
        if code in NUMBERS:
            return struct.unpack("<" + NUMBERS[code], self.take(struct.calcsize(NUMBERS[code])))[0]
        if code in (19, 22):
            count = self.number(2) if code == 19 else count
            return self.many(inner, lambda values: len(values) == count)
        if code in (24, 25):  # the place of values elsewhere: from the end of this field, or from the start
            place, size = self.number(2) + (self.at + 2 if code == 24 else 0), self.number(2)
            back, self.at, self.reached = self.at, place, max(self.reached, place + size)
            values = self.many(inner, lambda values: self.at >= place + size)
            self.at = back
            return values
        if code == 16:
            ticks = self.number(8)
            date = datetime(1601, 1, 1) + timedelta(microseconds=ticks // 10)
            return f"{date:%Y-%m-%dT%H:%M:%S}.{ticks % 10**7:07}Z"
        if code == 23:
            return self.take(self.number(2) if self.universal else 1).decode("utf-8", "replace")
        return {
            1: lambda: {name: self.one(of) for name, of in inner or []},
            3: lambda: self.number(4) != 0,
            4: lambda: self.take(2).decode("utf-16-le", "replace"),
            17: lambda: str(uuid.UUID(bytes_le=self.take(16))),
            18: self.utf16,
            20: self.zigzag,
            21: self.varint,
            26: lambda: self.number(1) != 0,
        }[code]()
