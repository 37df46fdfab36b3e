#!/usr/bin/env python3
"""signatures.py RUSTDOC_JSON…: checks that a library exports every type that its public signatures name, or the
package of the type.

Each argument is rustdoc's JSON description of a library. Types of the standard library are not checked.
"""
import json
import sys


def named(node, found):
    """Adds the ids of the types and traits that a part of a signature names to `found`."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("resolved_path", "trait") and isinstance(value, dict) and "id" in value:
                found.add(value["id"])
            named(value, found)
    elif isinstance(node, list):
        for value in node:
            named(value, found)


class Library:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.index, self.paths = document["index"], document["paths"]
        self.crates = document["external_crates"]
        self.exported, self.users = set(), {}
        self.name = self.item(document["root"])["name"]
        self.visited = set()
        self.visit(document["root"])

    def item(self, key):
        return self.index.get(str(key))

    def visit(self, key):
        """Visits an item that is exported, and all that it exports."""
        item = self.item(key)
        self.exported.add(key)
        if key in self.visited or item is None or item["crate_id"] != 0:
            return
        self.visited.add(key)
        [(kind, body)] = item["inner"].items()
        if kind == "module":
            for child in body["items"]:
                self.visit(child)
        elif kind == "use":
            if body["id"] is not None:
                self.visit(body["id"])
        else:
            found = set()
            self.signatures(item, found)
            for other in found:
                self.users.setdefault(other, set()).add(item["name"])

    def signatures(self, item, found):
        """Adds the types that the public parts of an item name."""
        for kind, body in item["inner"].items():
            if kind == "impl":
                if body["is_synthetic"] or body["blanket_impl"]:
                    continue
                if body["trait"] is None:
                    self.each([i for i in body["items"] if self.item(i)["visibility"] == "public"], found)
                else:
                    named(body["trait"]["args"], found)
                    self.each([i for i in body["items"] if "assoc_type" in self.item(i)["inner"]], found)
            elif kind in ("struct", "union", "enum", "trait", "variant"):
                named(body.get("generics"), found)
                named(body.get("bounds"), found)
                self.each(body.get("impls", []), found)
                self.each(body.get("items", []), found)
                self.each(body.get("variants", []), found)
                shape = body.get("kind")
                if isinstance(shape, dict):
                    for fields in shape.values():
                        fields = fields["fields"] if isinstance(fields, dict) else fields
                        self.each([field for field in fields if field is not None], found)
            else:
                named(body, found)

    def each(self, keys, found):
        for item in filter(None, map(self.item, keys)):
            self.signatures(item, found)

    def missing(self):
        exported = [self.paths[str(key)] for key in self.exported if str(key) in self.paths]
        packages = [path["path"][0] for path in exported if path["kind"] == "module" and len(path["path"]) == 1]
        for key, users in self.users.items():
            path = self.paths.get(str(key))
            if path is None or key in self.exported:
                continue
            crate = self.crates.get(str(path["crate_id"]), {}).get("name", self.name)
            if crate not in ("core", "alloc", "std") and crate not in packages:
                yield f"{self.name} does not export {'::'.join(path['path'])}, which {', '.join(sorted(users))} names"


lines = sorted(line for path in sys.argv[1:] for line in Library(path).missing())
print("\n".join(lines) or f"{len(sys.argv) - 1} libraries export all types that their signatures name")
sys.exit(bool(lines))
