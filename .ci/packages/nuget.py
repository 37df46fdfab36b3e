#!/usr/bin/env python3
"""Writes the packages of a .NET tool that is a native program: nuget.py FOLDER VERSION ADDRESS RID=PROGRAM...

`dotnet tool install -g dotnet-ipc` and `dnx dotnet-ipc` of the SDK 10 and newer fetch `dotnet-ipc`, which names the
package of each platform (RID), and then the one of theirs, which has the program. No managed code is needed.
"""
import pathlib
import sys
import zipfile
from xml.sax.saxutils import escape

NAME = "dotnet-ipc"
DESCRIPTION = "Inspect, trace and control running .NET processes"

RELATIONSHIPS = """<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/{id}.nuspec" Id="R1" />
</Relationships>
"""

CONTENT_TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml" />
  <Default Extension="nuspec" ContentType="application/octet" />
  <Default Extension="xml" ContentType="application/octet" />
  <Default Extension="md" ContentType="application/octet" />
  <Default Extension="txt" ContentType="application/octet" />
  <Default Extension="exe" ContentType="application/octet" />
  {overrides}
</Types>
"""

NUSPEC = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2012/06/nuspec.xsd">
  <metadata>
    <id>{id}</id>
    <version>{version}</version>
    <authors>dotnet-ipc</authors>
    <license type="expression">MIT OR Apache-2.0</license>
    <projectUrl>{address}</projectUrl>
    <readme>README.md</readme>
    <description>{description}</description>
    <tags>dotnet diagnostics eventpipe nettrace trace profiler</tags>
    <packageTypes>
      <packageType name="{kind}" />
    </packageTypes>
    <repository type="git" url="{address}" />
  </metadata>
</package>
"""

SETTINGS = """<?xml version="1.0" encoding="utf-8"?>
<DotNetCliTool Version="2">
  <Commands>
    <Command Name="dotnet-ipc"{entry} />
  </Commands>{packages}
</DotNetCliTool>
"""


def write(folder, version, address, name, kind, files):
    """Writes a package with the files, which are pairs of a path in the package and its bytes."""
    # A file without an extension has its type by name.
    overrides = "".join(
        f'<Override PartName="/{path}" ContentType="application/octet" />'
        for path, _ in files
        if "." not in path.rsplit("/", 1)[1 if "/" in path else 0]
    )
    fields = {"id": name, "version": version, "address": escape(address), "description": DESCRIPTION, "kind": kind}
    parts = [
        ("_rels/.rels", RELATIONSHIPS.format(**fields).encode()),
        ("[Content_Types].xml", CONTENT_TYPES.format(overrides=overrides).encode()),
        (f"{name}.nuspec", NUSPEC.format(**fields).encode()),
        *files,
    ]
    with zipfile.ZipFile(folder / f"{name}.{version}.nupkg", "w") as package:
        for path, content in parts:
            # A fixed date, so that two builds give the same bytes.
            info = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix: the mode of the file counts
            info.external_attr = (0o100755 if content[:4] == b"\x7fELF" else 0o100644) << 16
            package.writestr(info, content)


def main():
    folder, version, address = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    programs = dict(argument.split("=", 1) for argument in sys.argv[4:])
    page = ("README.md", pathlib.Path("ipc-std/cli/README.md").read_bytes())
    rows = "".join(
        f'\n    <RuntimeIdentifierPackage RuntimeIdentifier="{rid}" Id="{NAME}.{rid}" />' for rid in programs
    )
    packages = f"\n  <RuntimeIdentifierPackages>{rows}\n  </RuntimeIdentifierPackages>"
    settings = SETTINGS.format(entry="", packages=packages).encode()
    write(
        folder, version, address, NAME, "DotnetTool", [page, ("tools/net8.0/any/DotnetToolSettings.xml", settings)]
    )
    for rid, program in programs.items():
        program = pathlib.Path(program)
        entry = f' EntryPoint="{program.name}" Runner="executable"'
        settings = SETTINGS.format(entry=entry, packages="").encode()
        licences = [
            (f"licences/{file.name}", file.read_bytes()) for file in sorted((program.parent / "licences").iterdir())
        ]
        files = [
            page,
            *((name, (program.parent / name).read_bytes()) for name in ("LICENSE-APACHE", "LICENSE-MIT")),
            *licences,
            (f"tools/any/{rid}/DotnetToolSettings.xml", settings),
            (f"tools/any/{rid}/{program.name}", program.read_bytes()),
        ]
        write(folder, version, address, f"{NAME}.{rid}", "DotnetToolRidPackage", files)


main()
