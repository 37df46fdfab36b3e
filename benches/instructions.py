#!/usr/bin/env python3
"""Counts the instructions of each operation with callgrind, and compares them with the table in instructions.md.

usage: instructions.py RUSTC-VV PROGRAM…

RUSTC-VV is what `rustc -vV` says, PROGRAM the built instructions.rs or instructions.c. Under the compiler that the table names, a
difference of more than 2 % in either direction is an error; under another the counts are only printed. A row too many
or too few is an error under any. BLESS=1 writes the counts into the table.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

TABLE = pathlib.Path(__file__).with_name("instructions.md")
# What instructions.c reads; instructions.rs contains it.
TRACE = TABLE.parent.parent / "testdata/nettrace/gen-net10-small-mixed.nettrace"
# The program does everything twice and then twelve times.
TIMES = 10
# libc copies memory by other instructions where the processor has better ones. These it can do without.
TUNABLES = ",".join(
    f"-{name}"
    for feature in ("AVX", "AVX2", "AVX512F", "AVX512VL", "ERMS", "FSRM", "SSSE3")
    for name in (feature, f"{feature}_Usable")
)


def count(program):
    """The operations in their order, and how many instructions each takes."""
    with tempfile.TemporaryDirectory() as directory:
        command = ["valgrind", "--quiet", "--tool=callgrind", "--callgrind-out-file=counts", "--combine-dumps=yes"]
        command += ["--dump-before=*part_ends*", program]
        environment = {
            "PATH": os.environ["PATH"],
            "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={TUNABLES},-AVX_Fast_Unaligned_Load",
        }
        with open(TRACE, "rb") as trace:
            run = subprocess.run(
                command, cwd=directory, env=environment, stdin=trace, stdout=subprocess.PIPE, text=True, check=True
            )
        counts = pathlib.Path(directory, "counts").read_text()
    names = run.stdout.splitlines()
    # What comes before the first operation, two parts for each, and what follows the last.
    parts = [int(n) for n in re.findall(r"^summary: (\d+)$", counts, re.MULTILINE)]
    if len(parts) != 2 * len(names) + 2:
        raise SystemExit(f"error: callgrind has seen {len(parts)} parts of {len(names)} operations")
    return {name: round((parts[2 * i + 2] - parts[2 * i + 1]) / TIMES) for i, name in enumerate(names)}


def main():
    version, *programs = sys.argv[1:]
    version = version.splitlines()
    host = next(line.removeprefix("host: ") for line in version if line.startswith("host: "))
    compiler = f"Compiler: `{version[0]}` for `{host}`."
    text = TABLE.read_text()
    (of,) = re.findall(r"^Compiler: .*$", text, re.MULTILINE)
    (table,) = re.findall(r"(?:^\| .* \|\n)(?:^\|[-|]+\|\n)((?:^\| .* \|\n)+)", text, re.MULTILINE)[:1]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]
    known = {name: (int(number.replace(",", "")), what) for name, number, what in rows}

    counted = {name: now for program in programs for name, now in count(os.path.abspath(program)).items()}
    bad = [f"{name} is in the table, and not in a program" for name in known if name not in counted]
    for name, now in counted.items():
        print(f"{name:<16} {now:>12,}", end="")
        if name not in known:
            bad.append(f"{name} is not in the table")
        elif compiler == of:
            then, _ = known[name]
            percent = (now - then) * 100 / then
            print(f" {percent:+8.2f} %", end="")
            if abs(percent) > 2:
                bad.append(f"{name} takes {now:,} instructions, and {then:,} in the table: {percent:+.1f} %")
        print()

    if os.environ.get("BLESS") == "1":
        new = "".join(f"| {name} | {now:,} | {known.get(name, (0, '?'))[1]} |\n" for name, now in counted.items())
        TABLE.write_text(text.replace(table, new).replace(of, compiler))
        print(f"{TABLE.name} is written: say below the table, and in the commit, what has moved it")
        return
    if compiler != of:
        print(f"\nNOT COMPARED: {TABLE.name} is of another compiler.\n  here:  {compiler}\n  there: {of}")
    if bad:
        bad.append(
            f"if it is to be so, .ci/run bless writes benches/{TABLE.name}; say there, and in the commit, "
            "what has moved it"
        )
        raise SystemExit("\n".join(f"error: {line}" for line in bad))


main()
