#!/usr/bin/env python3
"""Writes the image of a container as an OCI archive: image.py FILE VERSION ADDRESS ARCHITECTURE=FOLDER...

FOLDER is an unpacked release archive. The image has one layer for each architecture: the static program, and the
licences of its parts. `docker load`, `podman load`, `skopeo copy oci-archive:FILE docker://NAME` take it.
"""
import gzip
import hashlib
import io
import json
import os
import pathlib
import sys
import tarfile
from datetime import datetime, timezone

SECONDS = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
DATE = datetime.fromtimestamp(SECONDS, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def packed(files):
    """Returns a tar archive of the files, which are triples of path, mode and bytes. Owners and dates are fixed."""
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, mode, content in files:
            info = tarfile.TarInfo(path)
            info.size, info.mode, info.mtime = len(content), mode, SECONDS
            archive.addfile(info, io.BytesIO(content))
    return output.getvalue()


def main():
    file, version, address = sys.argv[1:4]
    blobs = {}

    def added(kind, content):
        """Adds a blob. Returns its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    def added_json(kind, value):
        return added(kind, json.dumps(value, sort_keys=True).encode())

    labels = {
        "org.opencontainers.image.title": "dotnet-ipc",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.source": address,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.created": DATE,
    }
    manifests = []
    for argument in sys.argv[4:]:
        architecture, folder = argument.split("=", 1)
        folder = pathlib.Path(folder)
        texts = sorted([*folder.glob("LICENSE-*"), *folder.glob("licences/*")])
        layer = packed(
            [("dotnet-ipc", 0o755, (folder / "dotnet-ipc").read_bytes())]
            + [(f"licences/{text.name}", 0o644, text.read_bytes()) for text in texts]
        )
        config = {
            "created": DATE,
            "architecture": architecture,
            "os": "linux",
            "config": {"Entrypoint": ["/dotnet-ipc"], "Labels": labels},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
            "history": [{"created": DATE, "created_by": "ipc-std/cli/Dockerfile"}],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": added_json("config.v1+json", config),
            "layers": [added("layer.v1.tar+gzip", gzip.compress(layer, mtime=0))],
            "annotations": labels,
        }
        platform = {"architecture": architecture, "os": "linux"}
        manifests.append(added_json("manifest.v1+json", manifest) | {"platform": platform})
    images = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests}
    # The index of the archive names one image of several architectures.
    name = {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": f"dotnet-ipc:{version}"}
    index = {"schemaVersion": 2, "manifests": [added_json("index.v1+json", images) | {"annotations": name}]}
    pathlib.Path(file).write_bytes(
        packed(
            [
                ("oci-layout", 0o644, b'{"imageLayoutVersion":"1.0.0"}'),
                ("index.json", 0o644, json.dumps(index, sort_keys=True).encode()),
                *((f"blobs/sha256/{digest}", 0o644, content) for digest, content in sorted(blobs.items())),
            ]
        )
    )


main()
