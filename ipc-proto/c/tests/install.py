#!/usr/bin/env python3
"""Installs the library with cargo-c, and builds and runs consumers outside of the repository: by pkg-config, by CMake, and
static ones. Then installs the next patch over it: the programs run on, and CMake still finds it.

usage: install.py TARGET_FOLDER [STATIC_LIBRARY_FOR_MUSL]
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

target = Path(sys.argv[1]).resolve()
musl = [Path(argument).resolve() for argument in sys.argv[2:]]
here = Path(__file__).parent.parent.resolve()
CMAKE = """cmake_minimum_required(VERSION 3.13)
project(consumer C)
find_package(@NAME@ @VERSION@ REQUIRED)
foreach(form @NAME@ static shared)
    add_executable(by-cmake-${form} program.c)
    target_link_libraries(by-cmake-${form} @NAME@::${form})
endforeach()
"""


def run(*command, **options):
    command = [str(part) for part in command]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def output(*command, **options):
    """Runs a command that must succeed, and returns its output."""
    done = run(*command, **options)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode} of {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def install(package, prefix, stage):
    """Installs a package below a prefix, by way of a folder for packagers. Returns the installed files."""
    # Without optimization, the smaller library would not link: that it cannot panic is then not proven.
    profile = "--release" if package.name == "c" else "--debug"
    output(
        "cargo", "cinstall", profile, "--locked", "--manifest-path", package / "Cargo.toml",
        f"--prefix={prefix}", f"--libdir={prefix}/lib64", f"--destdir={stage}",
        env={**os.environ, "CARGO_TARGET_DIR": str(target)},
    )
    # An upgrade replaces links.
    output("cp", "--archive", f"{stage}{prefix}/.", prefix)
    shutil.rmtree(stage)
    return sorted(str(file.relative_to(prefix)) for file in prefix.rglob("*") if not file.is_dir())


def expect_usage(*programs, **options):
    """Each program starts, and says how it is used."""
    for program in programs:
        done = run(program, **options)
        if done.returncode != 2 or "usage" not in done.stdout:
            sys.exit(f"{program} does not say how it is used: {done}")


def find(name, version, prefix, folder):
    """Lets CMake find a version; returns whether it does."""
    text = CMAKE.replace("@NAME@", name).replace("@VERSION@", version)
    (folder / "CMakeLists.txt").write_text(text)
    build = folder / f"build-{version}"
    return run("cmake", "-S", folder, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}"), build


def consume(name, example, folder):
    package = here if name == "dotnet_ipc" else here / "analysis"
    prefix = folder / "prefix"
    files = install(package, prefix, folder / "stage")
    expected = [f"lib64/lib{name}.a", f"lib64/lib{name}.so", f"lib64/lib{name}.so.0.1", f"lib64/lib{name}.so.0.1.0"]
    expected += ["include/dotnet_ipc.h", f"include/{name}.h", f"lib64/pkgconfig/{name}.pc"]
    if missing := set(expected) - set(files):
        sys.exit(f"not installed: {missing}, but {files}")
    if f"Library soname: [lib{name}.so.0.1]" not in output("readelf", "--dynamic", prefix / f"lib64/lib{name}.so"):
        sys.exit("the library has another soname")
    program = folder / "program.c"
    shutil.copy(package / f"examples/{example}.c", program)
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib64/pkgconfig")}

    def flags(*options):
        return output("pkg-config", *options, name, env=environment).split()

    output("gcc", program, *flags("--cflags", "--libs"), "-o", folder / "by-pkg-config")
    if run(folder / "by-pkg-config").returncode != 127:
        sys.exit("a program without a path to the library starts")
    expect_usage(folder / "by-pkg-config", env={**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib64")})
    rpath = f"-Wl,-rpath,{flags('--variable=libdir')[0]}"
    output("gcc", program, *flags("--cflags", "--libs"), rpath, "-o", folder / "by-rpath")
    # The page says: the name of the static library in place of that of the shared one.
    static = [re.sub(f"^-l{name}$", f"-l:lib{name}.a", flag) for flag in flags("--static", "--cflags", "--libs")]
    output("gcc", program, *static, "-o", folder / "by-static")
    found, build = find(name, "0.1", prefix, folder)
    if found.returncode != 0:
        sys.exit(f"CMake does not find {name}:\n{found.stdout}")
    output("cmake", "--build", build)
    by_cmake = [build / f"by-cmake-{form}" for form in (name, "static", "shared")]
    for program in (folder / "by-static", by_cmake[1]):
        if name in output("readelf", "--dynamic", program):
            sys.exit(f"{program} needs the shared library")
    programs = [folder / "by-rpath", folder / "by-static", *by_cmake]
    expect_usage(*programs)
    print(f"{name}: consumers by pkg-config, by CMake, and static")
    return prefix, programs


def upgrade(name, prefix, programs, folder):
    """Installs a made-up 0.1.1 over 0.1.0."""
    copy = folder / "next"
    listed = output("git", "ls-files", "-z", "Cargo.toml", "ipc-proto", cwd=here.parent.parent).split("\0")
    for file in filter(None, listed):
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(here.parent.parent / file, copy / file)
    package = copy / "ipc-proto/c"
    for file in ("Cargo.toml", "Cargo.lock"):
        text = (package / file).read_text()
        text, count = re.subn(r'(name = "ipc-proto-c"(?:\n.+)*?\nversion = )"0.1.0"', r'\1"0.1.1"', text)
        if count != 1:
            sys.exit(f"{file} has no version to raise")
        (package / file).write_text(text)
    files = install(package, prefix, folder / "stage")
    if f"lib64/lib{name}.so.0.1.1" not in files or f"libdotnet_ipc.so.0.1.1" != os.readlink(prefix / f"lib64/lib{name}.so.0.1"):
        sys.exit(f"0.1.1 installs {files}")
    expect_usage(*programs)
    for version, fits in (("0.1", True), ("0.1.0", True), ("0.1.1", True), ("0.1.2", False), ("0.2", False), ("1.0", False)):
        if (find(name, version, prefix, folder)[0].returncode == 0) != fits:
            sys.exit(f"CMake with version {version}: it should {'' if fits else 'not '}fit 0.1.1")
    print("0.1.1 in place of 0.1.0: programs run, and CMake finds it")


with tempfile.TemporaryDirectory() as work:
    work = Path(work)
    for name, example in (("dotnet_ipc", "client"), ("dotnet_ipc_analysis", "hottest")):
        (work / name).mkdir()
        installed = consume(name, example, work / name)
        if name == "dotnet_ipc":
            upgrade(name, *installed, work / name)
    for archive in musl:
        program = work / "by-musl"
        output("musl-gcc", "-static", here / "examples/client.c", f"-I{here}/include", archive, "-o", program)
        expect_usage(program)
        print("dotnet_ipc: a static consumer with musl")
