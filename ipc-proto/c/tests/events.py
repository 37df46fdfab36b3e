#!/usr/bin/env python3
"""Compares the events that the C program finds in the traces of testdata with those of `dotnet-ipc events`.

usage: events.py PROGRAM DOTNET_IPC TESTDATA TRACES PIECE..., where TRACES is a pattern of file names
"""
import json
import subprocess
import sys
import uuid
from pathlib import Path

program, tool, testdata = sys.argv[1], sys.argv[2], Path(sys.argv[3])
pattern, pieces = sys.argv[4], sys.argv[5:]
BOOL, INT, UINT, REAL, TEXT, GUID, TIME, BYTES, DECIMAL, CODE_UNIT, BEGIN, END, BEGIN_ARRAY, END_ARRAY = range(14)
ENDS = {"0": "complete", "1": "truncated", "2": "corrupt"}


def text(field):
    return bytes.fromhex(field).decode()


def guid(field):
    read = uuid.UUID(bytes_le=bytes.fromhex(field))
    return str(read) if read.int else None


def value(kind, field):
    match kind:
        case 0:
            return field == "1"
        case 1 | 2:
            return int(field)
        case 4:
            return text(field)
        case 5:
            return str(uuid.UUID(bytes_le=bytes.fromhex(field)))
    return None  # the tool writes these in forms of its own


def according_to_c(trace, piece):
    """The events, each with its flat fields; fields inside of objects and arrays are left out."""
    run = subprocess.run([program, str(trace), piece], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{trace}: exit code {run.returncode}: {run.stderr}")
    events, depth, end, stacks, lost = [], 0, None, {}, None
    for line in run.stdout.splitlines():
        key, *fields = line.split("\t")
        if key == "event" and len(fields) > 1:
            provider, name, activity, related, thread_name, *numbers = fields
            ids = (guid(activity), guid(related))
            events.append((text(provider), text(name), ids, text(thread_name), *map(int, numbers), [], {}))
            depth = 0
        elif key == "event":
            events.append(None)
        elif key == "label":
            kind, name, number, string, data = fields
            events[-1][-2].append((int(kind), text(name), int(number), text(string), data))
        elif key == "value":
            kind = int(fields[0])
            depth -= kind in (END, END_ARRAY)
            known = value(kind, fields[2])
            if depth == 0 and known is not None:
                events[-1][-1][text(fields[1])] = known
            depth += kind in (BEGIN, BEGIN_ARRAY)
        elif key == "stack":  # only of programs that print stacks, which also print what was lost
            stacks[len(events) - 1] = fields
        elif key == "lost":
            lost = int(fields[0])
        elif key == "end":
            end = ENDS[fields[0]]
        else:
            sys.exit(f"{trace}: {line}")
    return events, end, stacks, lost


def according_to_tool(trace):
    run = subprocess.run([tool, "events", "--json", trace], capture_output=True, text=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


differences = compared = values = 0
# An unknown id of a thread.
UNKNOWN = 2**64 - 1
# The names of threads and the labels, whose kinds the tool does not print.
WITH_LABELS = "synth-v6-all.nettrace"
TRACE_ID = (3, "", 0, "", bytes(range(0x20, 0x30)).hex())
SPAN_ID = (4, "", 0x1122334455667788, "", bytes(16).hex())
TEXT_LABEL, NUMBER_LABEL = (5, "s", 0, "val", bytes(16).hex()), (6, "n", -5, "", bytes(16).hex())
LABELS = [TRACE_ID, SPAN_ID, TEXT_LABEL, NUMBER_LABEL, TRACE_ID, SPAN_ID]
for trace in sorted(testdata.glob(f"nettrace/{pattern}")):
    if trace.suffix not in (".nettrace", ".netperf"):
        continue
    stats = subprocess.run([tool, "stats", "--json", trace], capture_output=True, text=True).stdout
    stats = json.loads(stats.splitlines()[0])
    end_of_tool = stats["end"]
    expected = [event for event in according_to_tool(trace) if "provider" in event]
    for piece in pieces:
        names, others = set(), []
        events, end, stacks, lost = according_to_c(trace, piece)
        if len(events) != len(expected):
            differences += 1
            print(f"{trace}: {len(events)} events according to C, {len(expected)} according to the tool")
            continue
        if end != end_of_tool:
            differences += 1
            print(f"{trace}: {end} according to C, {end_of_tool} according to the tool")
        if lost not in (None, stats["lost"]):
            differences += 1
            print(f"{trace}: {lost} lost events according to C, {stats['lost']} according to the tool")
        for row, (c, by_tool) in enumerate(zip(events, expected)):
            compared += 1
            if c is None:
                continue
            provider, name, ids, thread_name, thread_id, event_id, version, level, opcode, keywords, labels, fields = c
            same = (provider, name, event_id) == (by_tool["provider"], by_tool["name"] or "", by_tool["id"])
            said = (by_tool["version"], by_tool["level"], int(by_tool["keywords"] or "0", 16))
            same = same and (version, level, keywords) == said and max(opcode, 0) == (by_tool["opcode"] or 0)
            same = same and ids == (by_tool["activity_id"], by_tool["related_activity_id"])
            same = same and (None if thread_id == UNKNOWN else thread_id) == by_tool["thread_id"]
            same = same and (thread_name or None) == by_tool.get("thread_name")
            same = same and stacks.get(row, by_tool["stack"]) == by_tool["stack"]
            names.add(thread_name)
            others += labels
            theirs = by_tool.get("fields") or {}
            values += len(fields)
            same = same and all(theirs.get(key) == fields[key] for key in fields)
            if not same:
                differences += 1
                print(f"{trace}: {c}\n  according to the tool {by_tool}")
        if trace.name == WITH_LABELS and (names, others) != ({"main", ""}, LABELS):
            differences += 1
            print(f"{trace}: the names of threads are {names}, and the labels {others}")
print(f"{compared} events with {values} values compared, {differences} differences")
sys.exit(differences != 0 or values == 0)
