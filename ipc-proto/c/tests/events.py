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
    events, depth, end = [], 0, None
    for line in run.stdout.splitlines():
        key, *fields = line.split("\t")
        if key == "event" and len(fields) > 1:
            label_list, provider, name, *numbers = fields
            events.append((label_list, text(provider), text(name), *map(int, numbers), {}))
            depth = 0
        elif key == "event":
            events.append(None)
        elif key == "value":
            kind = int(fields[0])
            depth -= kind in (END, END_ARRAY)
            known = value(kind, fields[2])
            if depth == 0 and known is not None:
                events[-1][-1][text(fields[1])] = known
            depth += kind in (BEGIN, BEGIN_ARRAY)
        else:
            end = ENDS[fields[0]]
    return events, end


def according_to_tool(trace):
    run = subprocess.run([tool, "events", "--json", trace], capture_output=True, text=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


differences = compared = values = 0
for trace in sorted(testdata.glob(f"nettrace/{pattern}")):
    if trace.suffix not in (".nettrace", ".netperf"):
        continue
    stats = subprocess.run([tool, "stats", "--json", trace], capture_output=True, text=True).stdout
    end_of_tool = json.loads(stats.splitlines()[0])["end"]
    expected = [event for event in according_to_tool(trace) if "provider" in event]
    for piece in pieces:
        events, end = according_to_c(trace, piece)
        if len(events) != len(expected):
            differences += 1
            print(f"{trace}: {len(events)} events according to C, {len(expected)} according to the tool")
            continue
        if end != end_of_tool:
            differences += 1
            print(f"{trace}: {end} according to C, {end_of_tool} according to the tool")
        for c, by_tool in zip(events, expected):
            compared += 1
            if c is None:
                continue
            label_list, provider, name, event_id, version, level, _, keywords, fields = c
            same = (provider, name, event_id) == (by_tool["provider"], by_tool["name"] or "", by_tool["id"])
            # The tool replaces these by the labels of the event.
            said = (by_tool["version"], by_tool["level"], int(by_tool["keywords"] or "0", 16))
            same = same and (label_list != "0" or (version, level, keywords) == said)
            theirs = by_tool.get("fields") or {}
            values += len(fields)
            same = same and all(theirs.get(key) == fields[key] for key in fields)
            if not same:
                differences += 1
                print(f"{trace}: {c}\n  according to the tool {by_tool}")
print(f"{compared} events with {values} values compared, {differences} differences")
sys.exit(differences != 0 or values == 0)
