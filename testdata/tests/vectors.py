#!/usr/bin/env python3
"""Checks the vectors of an archive, which VECTORS.md describes, with the reader in stranger.py: `vectors.py FOLDER`. The
exit status is 1 if anything differs. With `--mutate` after FOLDER, it then changes one vector of each kind at a time,
and fails unless each change is noticed.
"""
import json
import re
import struct
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import stranger 

# ---- A server, as far as an answer depends on the bytes of a request only

BAD_ENCODING, UNKNOWN_COMMAND, UNKNOWN_MAGIC = 0x80131384, 0x80131385, 0x80131386
E_FAIL, INVALIDARG = 0x80004005, 0x80070057


def answer(raw):
    """What a careful server answers to these bytes: OK or an HRESULT. It knows no files and variables."""
    hresult = refusal(raw)
    return "OK" if hresult is None else f"0x{hresult:08x}"


def refusal(raw):
    size = int.from_bytes(raw[14:16], "little")
    if len(raw) < 20 or not 20 <= size <= len(raw):
        return BAD_ENCODING
    if raw[:14] != stranger.MAGIC:
        return UNKNOWN_MAGIC
    if 256 * raw[16] + raw[17] not in stranger.COMMANDS:
        return UNKNOWN_COMMAND
    _, command, fields, _, fault = stranger.parse(raw)
    if fault:
        return BAD_ENCODING
    values = {field["name"]: field["value"] for field in fields}
    texts = {name: value or "" for name, value in values.items() if value is None or isinstance(value, str)}
    text = {name: value.split("\0")[0] for name, value in texts.items()}
    get = values.get
    if command.startswith("CollectTracing"):
        limits = {"buffer_mb": (1, 1 << 32), "format": (0, 1), "session_type": (0, 1), "session_buffer_mode": (0, 1)}
        if any(name in values and not least <= get(name) <= most for name, (least, most) in limits.items()):
            return BAD_ENCODING
        if not 1 <= get("providers.count") <= 1000 or any(n.endswith("].level") and v > 5 for n, v in values.items()):
            return BAD_ENCODING
        if any(not value for name, value in text.items() if name.endswith(("].name", ".tracepoint_name"))):
            return BAD_ENCODING
        names = [name for name in text if name.endswith("default_tracepoint_name")]
        if any(get(n) is None and get(n.replace("default_tracepoint_name", "sets.count")) == 0 for n in names):
            return BAD_ENCODING
        seen = set()  # an id is at most once in the filter of a provider, and in all of its sets
        for name, value in values.items():
            if found := re.fullmatch(r"providers\[(\d+)\]\.(filter|tracepoints).*event_ids\[\d+\]", name):
                if (key := (*found.groups(), value)) in seen:
                    return E_FAIL
                seen.add(key)
        fixed = len(" u8 version; u16 event_id; __rel_loc u8[] extension; __rel_loc u8[] payload") + 1
        return E_FAIL if any(len(v) + fixed > 512 for n, v in text.items() if n.endswith("tracepoint_name")) else None
    if not 1 <= get("dump_type", 1) <= 4 or (command == "AttachProfiler" and not text["profiler_path"]):
        return E_FAIL
    required = {"SetEnvironmentVariable": "name", "ApplyStartupHook": "startup_hook_path"}.get(command)
    return INVALIDARG if required and not text[required] or not 1 <= get("perf_map_type", 1) <= 3 else None


# ---- The vectors

problems = []


def check(what, found, expected):
    if not same(found, expected):
        problems.append(f"{what}: {str(found)[-200:]}, expected {str(expected)[-200:]}")


def same(found, expected):
    """Equality. Integers from 2^53 on are texts, and a number of 32 bits has only as many digits as it needs."""
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(found, float) and isinstance(expected, float):
        return found == expected or struct.pack("<f", found) == struct.pack("<f", expected)
    return found == expected or isinstance(found, int) and abs(found) >= 1 << 53 and str(found) == expected


def load(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def check_message(what, row, command):
    raw = bytes.fromhex(row["bytes"])
    if row["kind"] == "environment":
        reader = stranger.Reader(raw)
        for index in range(reader.number(4)):
            reader.value(str(index), "text")
        check(what, [field["value"] for field in reader.fields if "." not in field["name"]], row["entries"])
        return check(what, reader.at, len(raw))
    kind, name, fields, rest, fault = stranger.parse(raw, command)
    check(what, [fields, fault is None], [row["fields"], row["error"] is None])
    if fault is None:
        check(what, [kind, name, rest.hex() or None], [row["kind"], row["command"], row["rest"]])
    if "server" in row:
        check(what + ", answer", answer(raw), row["server"])
    return None


def check_case(row):
    """Whether a case depends only on its bytes; if so, its answer is checked."""
    expected, request = row["expect"], bytes.fromhex(row["request"])
    found = answer(request)
    on_files = stranger.parse(request)[1] in ("AttachProfiler", "SetEnvironmentVariable") or request[16:17] == b"\1"
    if expected is None or row["state"] != "running" or found == "OK" and on_files:
        return False
    raw = bytes.fromhex(expected.get("bytes", ""))
    wanted = expected.get("hresult", "OK") if not raw or raw[17] == 0 else f"0x{int.from_bytes(raw[20:], 'little'):08x}"
    check(f"case {row['name']}", found, wanted)
    return True


def check_trace(path):
    trace = stranger.Trace(path.read_bytes())
    expected = load(Path(f"{path}.json"))[0]
    found = {name: getattr(trace, name) for name in ("version", "end", "offset", "lost_at_start")}
    found.update(events=len(trace.events), lost=trace.lost + trace.lost_at_start, digest=trace.digest.hexdigest())
    check(path.name, found, {name: expected[name] for name in found})
    rows = load(Path(f"{path}.events.jsonl"))
    check(path.name, len(trace.events), len(rows))
    for index, (row, wanted) in enumerate(zip(trace.events, rows)):
        if row["provider"].startswith(stranger.MANIFEST):
            for known in ("name", "opcode", "fields", "payload", "rest"):
                row.pop(known, None), wanted.pop(known, None)
        check(f"{path.name}, event {index}", row, wanted)
    return len(rows)


def check_group(path):
    rows = load(path)
    for row in rows:
        command = row["name"].split(".")[0] if path.stem == "messages" else None
        check_message(f"{path.stem}/{row['name']}", row, command)
    return len(rows)


def check_conversation(path):
    messages = 0
    for number, row in enumerate(load(path)):
        command = None
        for step in row["steps"]:
            check_message(f"{path.name}, connection {number}, {row['call']}", step, command)
            command = step.get("command") or command
            messages += 1
    return messages


def check_cases(path):
    return sum(map(check_case, load(path)))


def everything(folder):
    """Checks all vectors, and prints how many there are."""
    groups = sum(check_group(folder / f"{group}.jsonl") for group in ("messages", "malformed", "refused", "tolerated"))
    steps = sum(map(check_conversation, sorted((folder / "conversations").iterdir())))
    cases = check_cases(folder / "conformance.jsonl")
    events = sum(check_trace(path) for path in sorted((folder / "traces").iterdir()) if path.suffix[:4] == ".net")
    print(*problems[:20], sep="\n")
    print(f"{groups} messages, {steps} of conversations, {cases} cases, {events} events: {len(problems)} differences")
    return not problems and min(groups, steps, cases, events) > 0


def mutate(folder, name, check_file, change, what):
    """Fails unless a change of a file is noticed."""
    path = folder / name
    before = path.read_bytes()
    after = change(before)
    assert after != before, what
    problems.clear()
    path.write_bytes(after)
    try:
        check_file(folder / re.sub(r"(\.net\w+)\..*", r"\1", name))
    finally:
        path.write_bytes(before)
    assert problems, f"not noticed: {what}"
    problems.clear()


def mutations(folder):
    """Changes one vector of each kind at a time: what notices nothing checks nothing."""

    def replace(old, new):
        return lambda raw: raw.replace(old.encode(), new.encode(), 1)

    trace = "traces/gen-net10-lab-small.nettrace"
    for name, check_file, change, what in (
        ("messages.jsonl", check_group, replace("4d0069006300", "4d0069006301"), "a byte of a text"),
        ("messages.jsonl", check_group, replace('"value": "x64"', '"value": "x86"'), "a value"),
        ("malformed.jsonl", check_group, replace('"server": "0x80131384"', '"server": "OK"'), "a refusal"),
        ("malformed.jsonl", check_group, replace('"error": {', '"error": null, "e": {'), "a fault"),
        ("refused.jsonl", check_group, replace("0x80004005", "0x80131384"), "a reason"),
        ("tolerated.jsonl", check_group, replace('"rest": "', '"rest": "00'), "the bytes after the fields"),
        ("conversations/reverse-connect-net10.jsonl", check_conversation, replace("DOTNET_", "DOTNET-"), "a variable"),
        ("conversations/reference-client.jsonl", check_conversation, replace("131380", "131381"), "an answer"),
        ("conformance.jsonl", check_cases, replace('"bytes": "444f', '"hresult": "OK", "b": "444f'), "a case"),
        (trace, check_trace, lambda raw: raw[:-1000] + bytes([raw[-1000] ^ 1]) + raw[-999:], "a byte of a trace"),
        (trace + ".events.jsonl", check_trace, replace('"stack": ["0x7', '"stack": ["0x6'), "an address"),
        (trace + ".events.jsonl", check_trace, replace("w\u00f6rld", "world"), "a field"),
        ("traces/synth-v5-corners.nettrace.json", check_trace, replace('"lost": 11', '"lost": 1'), "losses of V4"),
        ("traces/synth-v6-all.nettrace.json", check_trace, replace('"lost": 12', '"lost": 1'), "losses of V6"),
        ("traces/synth-v6-all.nettrace.events.jsonl", check_trace, replace('"n": -5', '"n": 5'), "a label"),
    ):
        mutate(folder, name, check_file, change, what)


if not everything(Path(sys.argv[1])):
    sys.exit(1)
if sys.argv[2:] == ["--mutate"]:
    mutations(Path(sys.argv[1]))
    print("each change of a vector is noticed: ok")
