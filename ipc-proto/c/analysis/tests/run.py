#!/usr/bin/env python3
"""Compiles the C programs in examples/ and tests/ with all warnings, and runs them under AddressSanitizer and
UndefinedBehaviorSanitizer, and under valgrind. Compares the tables of traces with what the tool says about them.

usage: run.py FOLDER_OF_THE_LIBRARY DOTNET_IPC
"""
import json
import math
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

library, tool = (Path(argument).resolve() for argument in sys.argv[1:])
here = Path(__file__).parent.parent.resolve()
testdata = here.parent.parent.parent / "testdata"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{here}/include", f"-I{here.parent}/include"]
SANITIZED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
VALGRIND = ["valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full"]
# A trace, the number of its clock, and the option of the tool for the clock.
FUNCTIONS = [
    ("analysis/net10-startup.nettrace", 0, "--cpu"),
    ("analysis/net10-startup.nettrace", 2, "--thread-time"),
    ("analysis/net31-sampled.nettrace", 1, "--wall"),
    ("analysis/net10-locks.nettrace", 6, "--contention"),
    ("nettrace/gen-net10-small-mixed.nettrace", 8, "--event=all"),
]


def output(*command, codes=(0,)):
    """Runs a command that must end with one of these codes, and returns its output."""
    command = [str(part) for part in command]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode not in codes:
        sys.exit(f"exit code {run.returncode} of {' '.join(command)}\n{run.stdout[-2000:]}{run.stderr}")
    return run.stdout


def equal(what, found, expected):
    if found != expected:
        different = next((pair for pair in zip(found, expected) if pair[0] != pair[1]), (len(found), len(expected)))
        sys.exit(f"{what}: {different[0]} instead of {different[1]}")


def build(folder):
    archive = library / "libdotnet_ipc_analysis.a"
    std = ["-lgcc_s", "-lm", "-ldl", "-lpthread"]
    commands = []
    for source in [*here.glob("examples/*.c"), *here.glob("tests/*.c")]:
        commands += [
            ["clang", "-std=c99", *WARNINGS, "-fsyntax-only", source],
            ["g++", "-x", "c++", "-std=c++17", *WARNINGS, "-fsyntax-only", source],
            ["gcc", "-std=c99", *WARNINGS, *SANITIZED, source, archive, *std, "-o", folder / f"{source.stem}-sanitized"],
            ["gcc", "-std=c99", *WARNINGS, "-O2", source, archive, *std, "-o", folder / source.stem],
        ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda command: output(*command), commands))


def tables(*command):
    """The rows of `tables` by their kind, and the folded stacks."""
    rows, folded = {}, []
    text, _, lines = output(*command).partition("folded\n")
    for line in text.splitlines():
        kind, *row = line.split("\t")
        rows.setdefault(kind, []).append(row)
    return rows, lines.splitlines()


def rows_of_tool(*arguments):
    lines = output(tool, *arguments, "--json").splitlines()
    return [json.loads(line) for line in lines]


def functions(program):
    for name, clock, option in FUNCTIONS:
        trace = testdata / name
        rows, folded = tables(program, trace, 4096, clock)
        total = int(rows["summary"][0][5])
        for number, order in enumerate(("exclusive", "inclusive", "own")):
            (report,) = rows_of_tool("report", trace, option, "--top", "100000", "--by", order)
            expected = [
                (row["name"], row["exclusive"], row["inclusive"], row["own_share"], row["own"]) for row in report["frames"]
            ]
            shares = [
                (row[0], *(int(weight) / total * 100 for weight in row[1:4]), row[4] == "1")
                for row in rows.get(f"function{number}", [])
            ]
            equal(f"{name} {option} by {order}", shares, expected)
        summary = rows["summary"][0]
        equal(name, [int(summary[4]), total, float(summary[6])], [report["samples"], report["total"], report["unnamed_frames"]])
        lines = output(tool, "flame", trace, option, "--format", "folded", "-o", "-").splitlines()
        equal(f"{name}: folded stacks", sorted(folded), sorted(lines))


def names(program):
    """All frames of the tool's stacks are among the names of addresses."""
    trace = testdata / "analysis/net10-startup.nettrace"
    rows, _ = tables(program, trace, 1 << 20, 0)
    found = {row[0] for row in rows["name"]}
    stacks = (event.get("stack") or [] for event in rows_of_tool("events", trace, "--stacks"))
    expected = {frame for stack in stacks for frame in stack if "!" in frame and not frame.endswith("!?")}
    if len(expected) < 100 or not expected <= found:
        sys.exit(f"of {len(expected)} names, these are missing: {sorted(expected - found)[:5]}")


def collections(program):
    trace = testdata / "analysis/net10-collections.nettrace"
    rows, _ = tables(program, trace, 1, 0)
    time = lambda value: -(1 << 63) if value is None else round(value * 1e6)
    size = lambda value: 0 if value is None else round(value * 1e6)
    expected = [
        [str(part) for part in (
            row["process_id"], row["number"], row["generation"], row["type"], row["reason"], time(row["start_ms"]),
            time(row["pause_start_ms"]), time(row["pause_ms"]), time(row["suspend_ms"]), time(row["duration_ms"]),
            int(row["complete"]), size(row["gen1_mb"]), size(row["large_mb"]),
        )]
        for row in rows_of_tool("gc", trace)
    ]
    equal("collections", rows["collection"], expected)


def counters(program):
    for name in ("net10-meters", "net10-eventcounters", "net8-meters"):
        trace = testdata / f"counters/{name}.nettrace"
        rows, _ = tables(program, trace, 777, 0)
        number = lambda value: math.nan if value is None else float(value)
        expected = sorted(
            (row["provider"], row["name"], row["unit"], row["kind"], repr(number(row.get("value"))), repr(number(row.get("rate"))))
            for row in rows_of_tool("counters", trace)
            if "kind" in row
        )
        found = sorted((*row[1:5], repr(float(row[6])), repr(float(row[7]))) for row in rows["counter"])
        equal(f"counters of {name}", found, expected)


def heap(program):
    for name in ("net10-linux", "net10-aot-linux"):
        trace = testdata / f"heap/{name}.nettrace"
        rows, _ = tables(program, trace, 65536, 0)
        (report,) = rows_of_tool("heap", trace)
        expected = [
            [str(part) for part in (
                report["process_id"], row["name"], row["module"] or "", row["count"], row["bytes"], row["largest"], int(row["own"]),
            )]
            for row in report["types"]
        ]
        equal(f"heap of {name}", rows["type"], expected)


def hottest(program):
    """The example prints the functions of the tool."""
    for name in ("net10-startup", "net31-sampled", "net10-precompiled"):
        trace = testdata / f"analysis/{name}.nettrace"
        (report,) = rows_of_tool("report", trace, "--cpu", "--top", "10")
        expected = [
            f"{row['exclusive']:7.2f} % {row['inclusive']:7.2f} % {'*' if row['own'] else ' '}{row['name']}"
            for row in report["frames"]
        ]
        equal(f"hottest {name}", output(program, trace).splitlines(), expected)


def broken(program):
    """Cut and damaged traces give what they have."""
    for trace in sorted([*testdata.glob("nettrace/synth-*.nettrace"), *testdata.glob("regressions/*.nettrace")]):
        rows, _ = tables(program, trace, 100, 0)
        stats = json.loads(output(tool, "stats", trace, "--json", codes=range(256)).splitlines()[0])
        equal(trace.name, int(rows["summary"][0][1]), stats["events"])


with tempfile.TemporaryDirectory() as work:
    folder = Path(work)
    build(folder)
    output(folder / "misuse-sanitized")
    output(*VALGRIND, folder / "misuse")
    sanitized = folder / "tables-sanitized"
    functions(sanitized)
    names(sanitized)
    collections(sanitized)
    counters(sanitized)
    heap(sanitized)
    hottest(folder / "hottest-sanitized")
    broken(sanitized)
    output(*VALGRIND, folder / "tables", testdata / "nettrace/gen-net10-small-mixed.nettrace", 512, 0)
    output(*VALGRIND, folder / "hottest", testdata / "analysis/net10-startup.nettrace")
    print("the tables of traces are those of the tool")
