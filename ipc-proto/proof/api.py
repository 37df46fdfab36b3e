#!/usr/bin/env python3
"""Finds the functions of public APIs that the proof does not contain.

usage: api.py RUSTDOC_JSON... OBJECT

Each RUSTDOC_JSON is the output of rustdoc for ipc-proto or nettrace with --output-format json. OBJECT is the proof, compiled without
optimisation and with `-C symbol-mangling-version=v0`, so that it has a symbol for each function it refers to. Debug and
derived implementations are ignored.
"""

import json
import re
import subprocess
import sys


def documented(path):
    """Returns the functions of the API: their names in Rust, and patterns for their symbols."""
    docs = json.load(open(path))
    index, paths = docs["index"], docs["paths"]

    def name(item, fallback):
        return "::".join(paths[str(item)]["path"]) if str(item) in paths else fallback

    def arguments(of):
        """Returns the types between the angle brackets after a path."""
        given = ((of or {}).get("angle_bracketed") or {}).get("args", [])
        return [kind(a["type"]) for a in given if "type" in a]

    def kind(of):
        """Returns a type as Rust code and as a pattern."""
        what, it = next(iter(of.items()))
        if what == "primitive":
            return it, re.escape(it)
        if what == "generic":
            return it, ".+"
        if what == "borrowed_ref":
            text, pattern = kind(it["type"])
            return "&" + text, "&(mut )?" + pattern
        if what == "slice":
            text, pattern = kind(it)
            return f"[{text}]", rf"\[{pattern}\]"
        if what == "array":
            text, pattern = kind(it["type"])
            return f"[{text}; {it['len']}]", rf"\[{pattern}; .+\]"
        if what == "resolved_path":
            text, inner = name(it["id"], it["path"]), arguments(it["args"])
            pattern = "(<.+>)?" if not inner else "<" + ", ".join(p for _, p in inner) + ".*>"
            written = f"<{', '.join(t for t, _ in inner)}>" if inner else ""
            return text + written, re.escape(text) + pattern
        raise SystemExit(f"error: api.py does not know the type {of}")

    def functions(items):
        return [index[str(i)]["name"] for i in items if "function" in index[str(i)]["inner"]]

    found, inside = {}, set()
    for item in index.values():
        if "impl" in item["inner"]:
            it = item["inner"]["impl"]
            inside.update(it["items"])
            derived = "automatically_derived" in json.dumps(item["attrs"])
            if item["crate_id"] != 0 or derived or it["is_synthetic"] or it["blanket_impl"]:
                continue
            of, pattern = kind(it["for"])
            if it["trait"]:
                trait = name(it["trait"]["id"], it["trait"]["path"])
                if trait == "core::fmt::Debug":
                    continue
                inner = arguments(it["trait"]["args"])
                of += f" as {trait}" + (f"<{', '.join(t for t, _ in inner)}>" if inner else "")
                pattern += f" as {re.escape(trait)}" + (f"<{', '.join(p for _, p in inner)}>" if inner else "")
            for function in functions(it["items"]):
                found[f"<{of}>::{function}"] = f"<{pattern}>::{function}(::<.*>)?"
        elif "trait" in item["inner"]:
            inside.update(item["inner"]["trait"]["items"])
            for i in item["inner"]["trait"]["items"]:
                if index[str(i)]["inner"].get("function", {}).get("has_body"):
                    trait, function = name(item["id"], item["name"]), index[str(i)]["name"]
                    found[f"{trait}::{function}"] = f"<.+ as {re.escape(trait)}(<.*>)?>::{function}"
    for key, item in index.items():
        if "function" in item["inner"] and item["crate_id"] == 0 and item["id"] not in inside:
            text = name(key, item["name"])
            found[text] = re.escape(text) + "(::<.*>)?"
    return found


def proved(path):
    """Returns the symbols that the code and tables of the proof, and core, refer to. References of the packages themselves do not count."""
    text = subprocess.run(["readelf", "-rW", path], check=True, capture_output=True, text=True).stdout
    references, section = set(), ""
    for line in text.splitlines():
        if begin := re.match(r"Relocation section '\.rela(\S*)'", line):
            section = begin[1]
        elif target := re.search(r" (?:\.text(?:\.unlikely)?\.)?(_R\w+)", line):
            references.add((section, target[1]))
    plain = "\n".join(f"{section.removeprefix('.text.')} {target}" for section, target in references)
    filtered = subprocess.run(["c++filt"], input=plain.replace(" ", "\n"), check=True, capture_output=True, text=True)
    # Removes the hash after the name of each crate.
    lines = re.sub(r"\[[0-9a-f]{8,16}\]", "", filtered.stdout).splitlines()
    own = lambda section: not re.match(r"(\.debug|\.eh_frame|[<&(\[]*(ipc_proto|nettrace)::)", section)
    return {target for section, target in zip(lines[::2], lines[1::2]) if own(section)}


def main():
    *packages, proof = sys.argv[1:]
    api, symbols = {}, "\n".join(proved(proof))
    for package in packages:
        api |= documented(package)
    missing = sorted(text for text, pattern in api.items() if not re.search(f"^{pattern}$", symbols, re.M))
    for text in missing:
        print(f"error: the proof does not contain {text}", file=sys.stderr)
    if missing:
        raise SystemExit(1)
    print(f"{len(api)} public functions; the proof contains all of them")


main()
