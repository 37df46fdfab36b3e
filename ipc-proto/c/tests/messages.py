#!/usr/bin/env python3
"""Compares what the C program says about the messages of testdata with what `dotnet-ipc decode` says.

usage: messages.py PROGRAM DOTNET_IPC TESTDATA
"""
import json
import re
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

program, tool, testdata = sys.argv[1], sys.argv[2], Path(sys.argv[3])


def text(field):
    return None if field == "-" else bytes.fromhex(field[1:]).decode()


def value(kind, number, data, string):
    """The value of a part as the tool writes it. The kinds are the DIPC_PART_* of the header, in order."""
    kinds = ["number", "bool", "text", "guid", "hresult", "reserved", "bytes"]
    match kinds[int(kind)]:
        case "number" | "reserved":
            return int(number)
        case "bool":
            return number == "1"
        case "text":
            return text(string)
        case "guid":
            return str(uuid.UUID(bytes_le=bytes.fromhex(data)))
        case "hresult":
            return f"0x{int(number):08x}"
        case "bytes":
            return data


def decoded(file, command):
    """The parts, the error, and the field of an error or of a refused value, according to the tool."""
    options = ["--answer-to", command] if command else []
    output = subprocess.run([tool, "decode", "--json", *options, file], capture_output=True, text=True).stdout
    message = json.loads(output.splitlines()[0])
    parts = [(part["name"], part["offset"], part["length"], part["value"], part["value_name"]) for part in message["fields"]]
    if message["rest"]:
        offset = parts[-1][1] + parts[-1][2]
        parts.append(("rest", offset, len(message["rest"]) // 2, message["rest"], None))
    error = message["error"] and f"{message['error']['error']} (at byte {message['error']['offset']})"
    faulty = message["error"] or message["violation"]
    return parts, error, faulty and faulty["field"]


def according_to_c(files):
    """What the C program says about each file: parts, and the sentences or numbers of the functions."""
    arguments = [argument for file, command in files for argument in (str(file), command or "-")]
    run = subprocess.run([program, *arguments], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{program}: exit code {run.returncode}: {run.stderr}")
    results = []
    for line in run.stdout.splitlines():
        key, *fields = line.split("\t")
        if key == "file":
            results.append(({"parts": []}, fields[0]))
        elif key == "fail":
            sys.exit(f"{results[-1][1]}: {fields[0]}")
        elif key == "part":
            path, offset, length, kind, number, data, string, name = fields
            part = (path, int(offset), int(length), value(kind, number, data, string), text(name))
            results[-1][0]["parts"].append(part)
        elif key == "field":
            results[-1][0]["field"] = fields[0]
        elif key == "hresult":
            results[-1][0]["hresult"] = int(fields[0])
        else:
            status, detail, sentence = fields
            results[-1][0][key] = (int(status), sentence)
    return results


def server(file):
    """The answer of a careful server, which a comment of the file names; None if that is success."""
    answer = re.search("^# server: (.*)", file.read_text(), re.MULTILINE).group(1)
    return None if answer == "OK" else int(answer, 16)


files = []
for folder in ("messages", "malformed", "refused", "tolerated"):
    for file in sorted((testdata / folder).glob("*.hex")):
        command, kind = file.name.split(".")[0], file.name.split(".")[-2]
        if folder != "messages" or kind in ("request", "response", "refusal"):
            files.append((file, command if kind in ("response", "refusal") else None))

with ThreadPoolExecutor(4) as pool:
    expected = list(pool.map(lambda file: decoded(*file), files))
results = according_to_c(files)
if len(results) != len(files):
    sys.exit(f"{len(results)} results for {len(files)} files")
differences = 0
# The wrappers for Python and Go have no names of fields.
has_fields = any("field" in result for result, _ in results)
for (file, _), (parts, error, field), (result, _) in zip(files, expected, results):
    said = [(parts, result["parts"], "parts"), (error, result["inspect"][1] if result["inspect"][0] else None, "error")]
    if has_fields:
        said.append((field, result.get("field"), "field"))
    # Whether a server reads a broken header at all, and whether it knows the command, is not a question of the request.
    if file.parent.name in ("malformed", "refused", "tolerated") and not file.name.startswith(("header.", "unknown.")):
        said.append((server(file), result["hresult"] or None, "HRESULT"))
    for tool_says, c_says, what in said:
        if tool_says != c_says:
            differences += 1
            print(f"{file}: {what}: {tool_says} according to the tool, {c_says} according to C")
print(f"{len(files)} messages compared, {differences} differences")
sys.exit(differences != 0 or len(files) < 240)
