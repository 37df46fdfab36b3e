#!/usr/bin/env python3
"""Compiles the C programs in examples/ and tests/, measures them, and runs them: against a fake runtime, under
AddressSanitizer and UndefinedBehaviorSanitizer, and under valgrind, which sees into the Rust code too.

usage: run.py FOLDER_OF_THE_LIBRARY DOTNET_IPC
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

library, tool = (Path(argument).resolve() for argument in sys.argv[1:])
here = Path(__file__).parent.parent.resolve()
testdata = here.parent.parent / "testdata"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-D_POSIX_C_SOURCE=200809L", f"-I{here}/include"]
SANITIZED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
SMALL = ["-Os", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-s"]
VALGRIND = ["valgrind", "--quiet", "--error-exitcode=9"]
# The most bytes: the text of the whole library, and the code and constants of a client that is linked with what it needs.
LIBRARY_LIMIT, CLIENT_LIMIT = 400_000, 27 * 1024


def output(*command, **options):
    """Runs a command that must succeed, and returns its output."""
    command = [str(part) for part in command]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, **options)
    if run.returncode != 0:
        sys.exit(f"exit code {run.returncode} of {' '.join(command)}\n{run.stdout}")
    return run.stdout


def text(file):
    """The bytes of a library that are only read: code, constants, and tables for the linker."""
    return int(output("size", file).splitlines()[1].split()[0])


def size(file):
    """The bytes of code and constants in a program."""
    lines = [line.split() for line in output("size", "-A", file).splitlines()]
    return sum(int(line[1]) for line in lines if line and line[0] in (".text", ".rodata"))


def build(folder):
    """Compiles each program in C and in C++ with all warnings, by two compilers; links three of each."""
    archive = library / "libdotnet_ipc.a"
    commands = []
    for source in [*here.glob("examples/*.c"), *here.glob("tests/*.c")]:
        name = folder / source.stem
        commands += [
            ["clang", "-std=c99", *WARNINGS, "-fsyntax-only", source],
            ["clang++", "-x", "c++", "-std=c++17", *WARNINGS, "-fsyntax-only", source],
            ["g++", "-x", "c++", "-std=c++17", *WARNINGS, "-fsyntax-only", source],
            ["gcc", "-std=c99", *WARNINGS, *SMALL, source, archive, "-o", name],
            ["gcc", "-std=c99", *WARNINGS, *SANITIZED, source, archive, "-o", f"{name}-sanitized"],
            ["gcc", "-std=c99", *WARNINGS, source, f"-L{library}", "-ldotnet_ipc", "-o", f"{name}-shared"],
        ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda command: output(*command), commands))


def measure(folder):
    measured = {"libdotnet_ipc.so": (text(library / "libdotnet_ipc.so"), LIBRARY_LIMIT)}
    measured["client"] = (size(folder / "client"), CLIENT_LIMIT)
    for name, (bytes_, limit) in measured.items():
        print(f"{name}: {bytes_} bytes, limit {limit}")
        if bytes_ > limit:
            sys.exit(f"{name} is too large")
    undefined = output("nm", "--dynamic", "--undefined-only", library / "libdotnet_ipc.so").split("\n")
    strong = {line.split()[1].split("@")[0] for line in undefined if line.split()[:1] == ["U"]}
    # The compiler replaces `memcmp` by `bcmp` where only equality counts.
    if not strong <= {"memcpy", "memmove", "memset", "memcmp", "bcmp"}:
        sys.exit(f"libdotnet_ipc.so needs {strong}")


def against_fake_runtime(folder):
    """Asks a fake runtime with each build of the client, and with the tool."""
    fake = subprocess.Popen(
        [tool, "fake-runtime", "--dir", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        socket = json.loads(fake.stdout.readline())["socket"]
        info = json.loads(output(tool, "info", "--json", "--socket", socket))
        names = ["process_id", "command_line", "os", "arch", "managed_entrypoint_assembly_name", "clr_product_version"]
        expected = {
            "info": "".join(f"{name}: {info[name]}\n" for name in names),
            "env": output(tool, "env", "--socket", socket),
        }
        shared = {"env": {**os.environ, "LD_LIBRARY_PATH": str(library)}}
        for command, options in [
            ([folder / "client"], {}),
            ([folder / "client-sanitized"], {}),
            ([folder / "client-shared"], shared),
            ([*VALGRIND, folder / "client"], {}),
        ]:
            for subcommand, printed in expected.items():
                actual = output(*command, socket, subcommand, **options)
                if actual != printed:
                    sys.exit(f"{command} {subcommand} prints\n{actual}instead of\n{printed}")
        for command in ([folder / "plan"], [folder / "plan-sanitized"], [*VALGRIND, folder / "plan"]):
            printed = output(*command, socket)
            if "command: 0x0408\n" not in printed or f"process_id: {info['process_id']}\n" not in printed:
                sys.exit(f"{command} prints\n{printed}")
        for command in ([folder / "trace"], [folder / "trace-sanitized"], [*VALGRIND, folder / "trace"]):
            printed = output(*command, socket, "1")
            if "Microsoft-Windows-DotNETRuntime/GCStart" not in printed or not printed.endswith("the trace is complete\n"):
                sys.exit(f"{command} prints\n{printed}")
    finally:
        fake.stdin.close()
        fake.wait()
    print("client: the same as the tool; plan: the newest command; trace: complete")


def against_old_runtime(folder):
    """A runtime of .NET Core 3.1 refuses each command of a plan for its description."""
    command = [tool, "fake-runtime", "--runtime", "net31", "--dir", folder]
    fake = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        socket = json.loads(fake.stdout.readline())["socket"]
        plan = subprocess.run([folder / "plan-sanitized", socket], capture_output=True, text=True)
        if plan.returncode != 1 or "refused with 0x80131385" not in plan.stderr:
            sys.exit(f"the plan ends with {plan}")
    finally:
        fake.stdin.close()
        fake.wait()


def serve(folder):
    """Runs the conformance kit against the runtime, and records a trace of it with the tool and with the client."""
    for command, tests_all in [
        ([folder / "runtime-sanitized"], True),
        ([*VALGRIND, folder / "runtime"], False),
    ]:
        command = [str(part) for part in [*command, folder]]
        environment = {**os.environ, "LONG": "x" * 40_000}  # with 64 KiB, a message has no room for its code units
        runtime = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        try:
            socket = runtime.stdout.readline().strip()
            if tests_all:
                print("runtime:", output(tool, "conformance", "--deadly", "--socket", socket), end="")
            info = json.loads(output(tool, "info", "--json", "--socket", socket))
            if info["command_line"] != "small-runtime" or info["runtime_identifier"] != "linux-x64":
                sys.exit(f"the runtime describes itself as {info}")
            found = output(tool, "env", "--socket", socket)
            if "PATH=" not in found or f"LONG={environment['LONG']}\n" not in found:
                sys.exit(f"the environment of the runtime is {found}")
            if output(folder / "client-sanitized", socket, "env") != found:
                sys.exit("the client finds another environment than the tool")
            if not re.search(r"dotnet-diagnostic-\d+-[1-9]\d*-socket$", socket):
                sys.exit(f"the runtime listens at {socket}")
            trace = folder / "runtime.nettrace"
            provider = ["--provider", "Small-Runtime", "--duration", "300ms", "--overwrite"]
            output(tool, "trace", "--socket", socket, "-o", trace, *provider, stderr=subprocess.DEVNULL)
            stats = json.loads(output(tool, "stats", "--json", trace))
            kinds = [(kind["provider"], kind["id"]) for kind in stats["by_event"]]
            if stats["end"] != "complete" or kinds != [("Small-Runtime", 7)]:
                sys.exit(f"the trace of the runtime has {stats}")
            if "Small-Runtime/Tick" not in output(folder / "trace", socket, "1", "Small-Runtime"):
                sys.exit("the client finds no events of the runtime")
        finally:
            runtime.stdin.close()
            code = runtime.wait()
        if code != 0:
            sys.exit(f"the runtime ends with {code}")


def call_monitor(folder):
    """Lets a suspended runtime call a monitor that listens later, and that resumes it."""
    for command in ([folder / "runtime-sanitized"], [*VALGRIND, folder / "runtime"]):
        port = folder / "port"
        environment = {**os.environ, "DOTNET_DiagnosticPorts": f"{folder}/nothing,nosuspend;{port},suspend"}
        command = [str(part) for part in [*command, folder]]
        runtime = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        monitor = None
        try:
            socket = runtime.stdout.readline().strip()
            info = ("info", "--json", "--socket", socket)
            if json.loads(output(tool, *info))["managed_entrypoint_assembly_name"]:
                sys.exit("the runtime is not suspended")
            trace = ["--trace", folder / "start.nettrace", "--provider", "Small-Runtime", "--overwrite"]
            command = [tool, "monitor", "--json", "--listen", port, *trace]
            monitor = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            events = [json.loads(monitor.stdout.readline()) for _ in range(3)]
            if [event["event"] for event in events] != ["arrived", "tracing", "resumed"]:
                sys.exit(f"the monitor sees {events}")
            if runtime.stdout.readline() != "started\n":
                sys.exit("the runtime does not start")
            described = json.loads(output(tool, *info))
            if described["managed_entrypoint_assembly_name"] != "small-runtime":
                sys.exit(f"the runtime describes itself as {described}")
            for name in ("process_id", "runtime_cookie"):
                if any(event[name] != described[name] for event in events):
                    sys.exit(f"the runtime advertises another {name} than it has: {events}, {described}")
            runtime.stdin.close()
            last = [json.loads(monitor.stdout.readline()) for _ in range(2)]
        finally:
            runtime.stdin.close()
            code = runtime.wait()
            if monitor:
                monitor.terminate()
                monitor.wait()
        if code != 0:
            sys.exit(f"the runtime ends with {code}")
        if [event["event"] for event in last] != ["recorded", "left"] or not last[0]["complete"]:
            sys.exit(f"in the end, the monitor sees {last}")
    print("runtime: called a monitor, and was resumed")


def compare(folder, script, build_, *arguments):
    """Runs a script that compares what a program prints with what the tool prints."""
    program = folder / f"{script}{build_ or '-valgrind'}"
    if not build_:
        program.write_text(f"#!/bin/sh\nexec {' '.join(VALGRIND)} {folder}/{script} \"$@\"\n")
        program.chmod(0o755)
    print(output(here / f"tests/{script}.py", program, tool, testdata, *arguments), end="")


def run(folder):
    for build_, valgrind in [("-sanitized", []), ("", VALGRIND)]:
        for test in [["misuse"], ["requests", testdata / "messages"]]:
            print(output(*valgrind, f"{folder}/{test[0]}{build_}", *test[1:]), end="")
        compare(folder, "messages", build_)
        # Under valgrind, which is slow, only those traces that were made to be odd, in large pieces.
        compare(folder, "events", build_, *(["synth-*", "65536"] if valgrind else ["*", "1", "512", "65536"]))
    against_fake_runtime(folder)
    against_old_runtime(folder)
    serve(folder)
    call_monitor(folder)


def decode(folder):
    """The decoder prints the parts of a short message, and refuses one that is longer than its buffer."""
    def message(name):
        text = (testdata / "messages" / f"{name}.hex").read_text()
        return bytes.fromhex("".join(line.split("#")[0] for line in text.splitlines()))

    lines = [
        " 17   1  command_id: 3 CollectTracing2",
        " 28   1  rundown: 1",
        ' 49  64  providers[0].name: "Microsoft-Windows-DotNETRuntime"',
        '117   2  providers[0].arguments: ""',
    ]
    short = message("CollectTracing2.before-resume.request")
    for name in ("decode", "decode-sanitized"):
        printed = subprocess.run([folder / name], input=short, stdout=subprocess.PIPE, check=True).stdout.decode()
        missing = set(lines) - set(printed.splitlines())
        if missing:
            sys.exit(f"{name} does not print {missing}, but\n{printed}")
        long = subprocess.run([folder / name], input=short[:14] + b"\xff\xff" + short[16:] + bytes(600), capture_output=True)
        if long.returncode != 1 or b"decode: " not in long.stderr:
            sys.exit(f"{name} takes a message that is longer than its buffer: {long}")
    print("decode: prints the parts of a message")


def columns(folder):
    """The sums of the columns are those of the tool's events."""
    trace = testdata / "nettrace/gen-net10-small-mixed.nettrace"
    events = [json.loads(line) for line in output(tool, "events", "--json", trace).splitlines()]
    collections = [event["fields"] for event in events if event.get("name") == "GCStart"]
    expected = f"GCStart: {len(collections)} events\n  Count: {sum(fields['Count'] for fields in collections)}\n"
    for command in ([folder / "columns-sanitized"], [*VALGRIND, folder / "columns"]):
        if not collections or expected not in (printed := output(*command, trace)):
            sys.exit(f"{command} does not print\n{expected}but\n{printed}")
    print("columns: the same sums as the tool")


def adopters(folder):
    """The functions in adopters.md compile."""
    snippets = re.findall("```c\n(.*?)```", (here / "adopters.md").read_text(), re.DOTALL)
    headers = ["dotnet_ipc.h", "errno.h", "string.h", "sys/socket.h", "sys/types.h"]
    source = folder / "adopters.c"
    source.write_text("".join(f"#include <{header}>\n" for header in headers) + "\n".join(snippets))
    output("gcc", "-std=c99", *WARNINGS, "-Wno-unused-function", "-fsyntax-only", source)


with tempfile.TemporaryDirectory() as work:
    build(Path(work))
    measure(Path(work))
    run(Path(work))
    decode(Path(work))
    columns(Path(work))
    adopters(Path(work))
