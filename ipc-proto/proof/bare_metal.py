#!/usr/bin/env python3
"""Measures bare-metal images, prints the sizes, and compares them with bare-metal.txt.

usage: bare_metal.py COMPILER IMAGE...

Each image is a 32-bit ELF file whose name lists its parts. It is compiled with -Z emit-stack-sizes and linked without
unused sections. The limits in bare-metal.txt apply to every compiler. The measured sizes must agree within 2 % (flash) and
64 bytes (frame) if COMPILER is the one in bare-metal.txt. The table in README.md has the same numbers. BLESS=1 replaces
them in both files.
"""

import os
import pathlib
import struct
import subprocess
import sys

TABLE = pathlib.Path(__file__).with_name("bare-metal.txt")
README = TABLE.with_name("README.md")
ALLOCATED, WRITABLE, WITHOUT_BYTES = 2, 1, 8


def measure(path):
    """Returns the bytes of flash, the bytes of static memory, and the largest stack frame with the name of its function."""
    elf = path.read_bytes()
    at, size, count, names = struct.unpack_from("<I10xHHH", elf, 32)
    headers = [struct.unpack_from("<10I", elf, at + i * size) for i in range(count)]

    def string(table, offset):
        start = headers[table][4] + offset
        return elf[start : elf.index(0, start)].decode()

    flash = static = 0
    functions, frames = {}, []
    for name, kind, flags, _, offset, length, link, *_ in headers:
        if flags & ALLOCATED:
            static += length if flags & WRITABLE or kind == WITHOUT_BYTES else 0
            flash += length if kind != WITHOUT_BYTES else 0
        match string(names, name):
            case ".symtab":
                for symbol in struct.iter_unpack("<IIIBBH", elf[offset : offset + length]):
                    if symbol[3] & 15 == 2:  # a function; bit 0 of its address marks Thumb code
                        functions[symbol[1] & ~1] = string(link, symbol[0])
            case ".stack_sizes":
                end = offset + length
                while offset < end:
                    (function,) = struct.unpack_from("<I", elf, offset)
                    offset, frame, shift = offset + 4, 0, 0
                    while True:
                        byte = elf[offset]
                        frame |= (byte & 127) << shift
                        offset, shift = offset + 1, shift + 7
                        if byte < 128:
                            break
                    frames.append((frame, function & ~1))
    if not frames:
        raise SystemExit(f"error: {path} has no stack sizes")
    frame, function = max(frames)
    return flash, static, frame, functions.get(function, "?")


def plain(function):
    """Returns the name in Rust, without hashes."""
    out = subprocess.run(["c++filt", function], check=True, capture_output=True, text=True).stdout.strip()
    return "::".join(part.split("[")[0].lstrip("<") for part in out.split("::"))


def cells(flash, frame):
    """Returns the numbers of an image as they are in the table of README.md."""
    return f"| {int(flash):,} | {int(frame):,} |"


def main():
    compiler, images = sys.argv[1], [pathlib.Path(name) for name in sys.argv[2:]]
    lines = TABLE.read_text().splitlines()
    heading = [line for line in lines if line.startswith("#")]
    known = {line.split()[0]: [int(n) if n != "-" else None for n in line.split()[1:]] for line in lines if not line.startswith("#")}
    same_compiler = heading[-1] == f"# {compiler}"
    if not same_compiler:
        print(f"bare-metal.txt was measured with another compiler ({heading[-1][2:]}): only its limits are compared")

    blesses = os.environ.get("BLESS") == "1"
    bad, rows = [], []
    print(f"{'parts':<22} {'flash':>6} {'static':>6} {'frame':>6}  largest frame")
    for image in images:
        flash, static, frame, function = measure(image)
        most, deepest, flash_then, frame_then = known.get(image.name, [None, None, 0, 0])
        rows.append(f"{image.name:<20} {most or '-':>6} {deepest or '-':>5} {flash:>6} {frame:>5}")
        print(f"{image.name:<22} {flash:>6} {static:>6} {frame:>6}  {plain(function)}")
        if most and flash > most:
            bad.append(f"{image.name}: {flash} bytes of flash exceed the limit of {most}")
        if deepest and frame > deepest:
            bad.append(f"{image.name}: a frame of {frame} bytes exceeds the limit of {deepest}")
        if static:
            bad.append(f"{image.name}: static memory")
        if blesses or not same_compiler:
            continue
        if abs(flash - flash_then) > flash_then * 0.02:
            bad.append(f"{image.name}: {flash} bytes of flash instead of {flash_then} in bare-metal.txt")
        if abs(frame - frame_then) > 64:
            bad.append(f"{image.name}: a frame of {frame} bytes instead of {frame_then} in bare-metal.txt")
    readme = README.read_text()
    if blesses:
        TABLE.write_text("\n".join([*heading[:-1], f"# {compiler}", *rows, ""]))
        for row in rows:
            image, *_, flash, frame = row.split()
            *_, flash_then, frame_then = known.get(image, [flash, frame])
            readme = readme.replace(cells(flash_then, frame_then), cells(flash, frame))
        README.write_text(readme)
    elif unmeasured := known.keys() - {image.name for image in images}:
        bad.append(f"not measured: {', '.join(sorted(unmeasured))}")
    for row in rows if blesses else [line for line in lines if not line.startswith("#")]:
        image, *_, flash, frame = row.split()
        if cells(flash, frame) not in readme:
            bad.append(f"README.md does not have the row for {image}")
    for line in bad:
        print(f"error: {line}", file=sys.stderr)
    raise SystemExit(1 if bad else 0)


main()
