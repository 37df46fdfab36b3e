#!/usr/bin/env python3
"""Checks the structure of a release: check.py FOLDER VERSION.

The packages for NuGet and the image have what their readers look for, and the program of the archive, byte by byte. The
addresses of `cargo binstall` name the archives.
"""
import gzip
import hashlib
import io
import json
import pathlib
import sys
import tarfile
import tomllib
import xml.etree.ElementTree as xml
import zipfile

folder, version = pathlib.Path(sys.argv[1]), sys.argv[2]
rids = {"linux-x64": "linux-x64", "linux-musl-x64": "linux-x64", "linux-arm64": "linux-arm64"}
rids |= {"linux-musl-arm64": "linux-arm64", "win-x64": "windows-x64"}


def check(holds, message):
    if not holds:
        sys.exit(f"error: {message}")


def of_archives():
    """Returns the program of each archive, by platform."""
    programs = {}
    for file in folder.glob(f"dotnet-ipc-{version}-*"):
        platform = file.name.removeprefix(f"dotnet-ipc-{version}-").split(".")[0]
        root = f"dotnet-ipc-{version}-{platform}"
        if file.suffix == ".zip":
            programs[platform] = zipfile.ZipFile(file).read(f"{root}/dotnet-ipc.exe")
        elif platform.startswith("linux-"):
            programs[platform] = tarfile.open(file).extractfile(f"{root}/dotnet-ipc").read()
    return programs


def elements(text):
    """Returns the elements of a document by name, without namespaces."""
    found = {}
    for element in xml.fromstring(text).iter():
        found.setdefault(element.tag.rsplit("}", 1)[-1], []).append(element)
    return found


def check_nuget(programs):
    def opened(name, kind):
        package = zipfile.ZipFile(folder / f"{name}.{version}.nupkg")
        check(package.testzip() is None, f"{name} is damaged")
        nuspec = elements(package.read(f"{name}.nuspec"))
        texts = {key: nuspec[key][0].text for key in ("id", "version", "license", "readme")}
        check(texts["id"] == name and texts["version"] == version, f"{name}: {texts}")
        check(texts["readme"] in package.namelist(), f"{name} has no page")
        check([one.get("name") for one in nuspec["packageType"]] == [kind], f"{name} is no {kind}")
        relation = elements(package.read("_rels/.rels"))["Relationship"][0]
        check(relation.get("Target") == f"/{name}.nuspec", f"{name}: _rels/.rels names no nuspec")
        types = elements(package.read("[Content_Types].xml"))
        known = {one.get("Extension") for one in types["Default"]} | {one.get("PartName") for one in types.get("Override", [])}
        for path in package.namelist():
            check(f"/{path}" in known or path.rsplit(".", 1)[-1] in known or path[0] == "[", f"{name}: {path} has no type")
        return package

    package = opened("dotnet-ipc", "DotnetTool")
    settings = elements(package.read("tools/net8.0/any/DotnetToolSettings.xml"))
    check(settings["Command"][0].get("Name") == "dotnet-ipc", "another command")
    named = {one.get("RuntimeIdentifier"): one.get("Id") for one in settings["RuntimeIdentifierPackage"]}
    wanted = {rid: f"dotnet-ipc.{rid}" for rid, platform in rids.items() if platform in programs}
    check(named == wanted, f"the package names {named}")
    for rid, name in named.items():
        package = opened(name, "DotnetToolRidPackage")
        command = elements(package.read(f"tools/any/{rid}/DotnetToolSettings.xml"))["Command"][0]
        check(command.get("Runner") == "executable", f"{name} is no program")
        program = package.read(f"tools/any/{rid}/{command.get('EntryPoint')}")
        check(program == programs[rids[rid]], f"{name} has another program than the archive")


def check_image(programs):
    image = tarfile.open(folder / f"dotnet-ipc-{version}-image.tar")

    def blob(descriptor):
        content = image.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()
        check(len(content) == descriptor["size"], f"the size of {descriptor['digest']}")
        check("sha256:" + hashlib.sha256(content).hexdigest() == descriptor["digest"], f"the digest {descriptor['digest']}")
        return content

    check(json.load(image.extractfile("oci-layout")) == {"imageLayoutVersion": "1.0.0"}, "no OCI archive")
    index = json.loads(blob(json.load(image.extractfile("index.json"))["manifests"][0]))
    found = set()
    for descriptor in index["manifests"]:
        manifest = json.loads(blob(descriptor))
        config = json.loads(blob(manifest["config"]))
        layer = gzip.decompress(blob(manifest["layers"][0]))
        check(config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(layer).hexdigest()], "the digest of the layer")
        check(config["architecture"] == descriptor["platform"]["architecture"], "another architecture")
        platform = {"amd64": "linux-x64", "arm64": "linux-arm64"}[config["architecture"]]
        files = tarfile.open(fileobj=io.BytesIO(layer))
        check(files.extractfile("dotnet-ipc").read() == programs[platform], "the image has another program")
        check(files.getmember("dotnet-ipc").mode == 0o755, "the program cannot be started")
        found.add(platform)
    check(found == {platform for platform in programs if platform.startswith("linux")}, f"the image has {found}")


def check_binstall(programs):
    manifest = tomllib.loads(pathlib.Path("ipc-std/cli/Cargo.toml").read_text())
    found = set()
    for target, row in manifest["package"]["metadata"]["binstall"]["overrides"].items():
        texts = {}
        for key, text in row.items():
            for name, value in (("repo", ""), ("version", version), ("bin", "dotnet-ipc")):
                text = text.replace(f"{{ {name} }}", value)
            texts[key] = text.replace("{ binary-ext }", ".exe" if "windows" in target else "")
        file = folder / texts["pkg-url"].removeprefix(f"/releases/download/v{version}/")
        platform = file.name.removeprefix(f"dotnet-ipc-{version}-").split(".")[0]
        if platform not in programs:
            continue
        names = zipfile.ZipFile(file).namelist() if file.suffix == ".zip" else tarfile.open(file).getnames()
        check(texts["bin-dir"] in names, f"{target}: {file.name} has no {texts['bin-dir']}")
        check(texts["pkg-fmt"] == ("zip" if file.suffix == ".zip" else "txz"), f"{target}: the form of the archive")
        found.add(platform)
    check(found == set(programs), f"cargo binstall knows {found}")


programs = of_archives()
check(programs, f"{folder} has no archive of {version}")
check_nuget(programs)
check_image(programs)
check_binstall(programs)
print(f"{version}: {', '.join(sorted(programs))}")
