#!/usr/bin/env python3
"""Checks the wrappers for Python and Go: their declarations, what they say about the files of testdata, and their examples,
against a fake runtime or against the real ones in DOTNET_IPC_RUNTIMES. The C client runs too.

Also runs the tests of the wrappers.

usage: bindings.py FOLDER_OF_THE_LIBRARY DOTNET_IPC fake|real
"""
import contextlib
import ctypes
import enum
import json
import os
import py_compile
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

library, tool = (Path(argument).resolve() for argument in sys.argv[1:3])
here = Path(__file__).parent.parent.resolve()
testdata = here.parent.parent / "testdata"
python_files = [*here.glob("python/*.py"), here / "tests/lines.py", here / "tests/wrapper.py"]
LINKED = [f"-I{here}/include", library / "libdotnet_ipc.a"]


def run(*command, **options):
    command = [str(part) for part in command]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def output(*command, **options):
    """Runs a command that must succeed, and returns its output."""
    done = run(*command, **options)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode} of {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def code_in_readme(language):
    (code,) = re.findall(f"```{language}\n(.*?)```", (here / "README.md").read_text(), re.DOTALL)
    return code


def build(folder):
    """Builds the programs with the library. Returns the environment that they need."""
    (folder / "dotnet_ipc.pc").write_text(
        "Name: dotnet_ipc\nDescription: the library of this build\nVersion: 0\n"
        f"Cflags: -I{here}/include\nLibs: -L{library} -ldotnet_ipc\n"
    )
    environment = {
        **os.environ,
        "PKG_CONFIG_PATH": str(folder),
        "LD_LIBRARY_PATH": str(library),
        "DOTNET_IPC_LIBRARY": str(library / "libdotnet_ipc.so"),
        "PYTHONDONTWRITEBYTECODE": "1",
        # The programs need only Go and what is here.
        "GOTOOLCHAIN": "local",
        "GOPROXY": "off",
        "GOFLAGS": "-buildvcs=false",
    }
    for file in python_files:
        py_compile.compile(str(file), str(folder / "compiled"), doraise=True)
    # In a new folder Go compiles the package anew. It would not notice that the header or its place has changed.
    shutil.copytree(here / "go", folder / "go")
    (folder / "bin").mkdir()
    for name, source in [("lines", (here / "tests/lines.go").read_text()), ("readme", code_in_readme("go"))]:
        command = folder / "go/cmd" / name
        command.mkdir()
        (command / "main.go").write_text(source)
    go = {"cwd": folder / "go", "env": environment}
    unformatted = output("gofmt", "-l", ".", **go)
    if unformatted:
        sys.exit(f"gofmt would change {unformatted}")
    with ThreadPoolExecutor(3) as pool:
        for done in [
            pool.submit(output, "go", "vet", "./...", **go),
            pool.submit(output, "go", "build", "-o", folder / "bin/", "./...", **go),
            pool.submit(output, "go", "test", "-c", "-o", folder / "bin/tests", ".", **go),
            pool.submit(output, "gcc", here / "examples/client.c", *LINKED, "-o", folder / "client"),
            pool.submit(output, "gcc", here / "examples/trace.c", *LINKED, "-o", folder / "trace"),
        ]:
            done.result()
    return environment


def declarations(folder, environment):
    """The structs, constants and functions that the Python module declares are those of the header."""
    os.environ["DOTNET_IPC_LIBRARY"] = environment["DOTNET_IPC_LIBRARY"]
    sys.path.insert(0, str(here / "python"))
    sys.dont_write_bytecode = True
    import dotnet_ipc

    prefixes = {
        "Status": "STATUS",
        "PartKind": "PART",
        "Level": "LEVEL",
        "SessionEnd": "SESSION",
        "TraceEnd": "END",
        "_Command": "COMMAND",
        "_Text": "TEXT",
        "_Step": "STEP",
        "_Stop": "STOP",
        "_Record": "RECORD",
        "_Label": "LABEL",
        "_Value": "VALUE",
    }
    expected = {"DIPC_VERSION": dotnet_ipc._VERSION}
    for name, class_ in vars(dotnet_ipc).items():
        if isinstance(class_, type) and issubclass(class_, (ctypes.Structure, ctypes.Union)):
            struct = ("union " if issubclass(class_, ctypes.Union) else "struct ") + name[1:]
            expected[f"sizeof({struct})"] = ctypes.sizeof(class_)
            for field, _ in class_._fields_:
                expected[f"offsetof({struct}, {field})"] = getattr(class_, field).offset
                expected[f"sizeof((({struct} *)0)->{field})"] = getattr(class_, field).size
        elif isinstance(class_, enum.EnumType) and class_.__module__ == "dotnet_ipc":
            for member in class_:
                expected[f"DIPC_{prefixes[name]}_{member.name}"] = member.value
    expressions = "".join(f'    printf("%llu\\n", (unsigned long long)({expression}));\n' for expression in expected)
    source = folder / "declarations.c"
    head = "#include <dotnet_ipc.h>\n#include <stddef.h>\n#include <stdio.h>\n"
    source.write_text(head + f"int main(void) {{\n{expressions}}}\n")
    output("gcc", f"-I{here}/include", source, "-o", folder / "declarations")
    numbers = map(int, output(folder / "declarations").split())
    for (expression, value), number in zip(expected.items(), numbers, strict=True):
        if value != number:
            sys.exit(f"{expression} is {number} in C, {value} in Python")

    header = re.sub(r"/\*.*?\*/", "", (here / "include/dotnet_ipc.h").read_text(), flags=re.DOTALL)
    missing = set(re.findall(r"\bDIPC_STATUS_\w+", header)) - expected.keys()
    if missing:
        sys.exit(f"statuses of the header that Python does not have: {', '.join(sorted(missing))}")
    for name, (_, parameters) in dotnet_ipc._FUNCTIONS.items():
        (in_c,) = re.findall(rf"\b{name}\(([^)]*)\);", header)
        if len(parameters) != (0 if in_c == "void" else in_c.count(",") + 1):
            sys.exit(f"{name} has other parameters in Python than ({in_c})")
    print(f"{len(expected)} sizes, offsets and constants of Python are those of the header")


def compare(folder, environment):
    """The wrappers find in the files of testdata what the tool finds."""
    for language, command in [("python", f"{sys.executable} {here}/tests/lines.py"), ("go", f"GOGC=5 {folder}/bin/lines")]:
        for script, arguments in [("messages", []), ("events", ["*", "512", "65536"])]:
            program = folder / f"{language}-{script}"
            program.write_text(f'#!/bin/sh\nexec env {command} {script} "$@"\n')
            program.chmod(0o755)
            compared = output(here / f"tests/{script}.py", program, tool, testdata, *arguments, env=environment)
            print(f"{language}: {compared}", end="")


def failures(folder, environment):
    """The wrappers report what fails, and leave no session behind."""
    environment = {
        **environment,
        "DOTNET_IPC": str(tool),
        "TESTDATA": str(testdata),
        "PYTHONPATH": str(here / "python"),
        "TMPDIR": str(folder),
    }
    with ThreadPoolExecutor(2) as pool:
        python = pool.submit(output, sys.executable, "-W", "error", here / "tests/wrapper.py", env=environment)
        go = pool.submit(output, folder / "bin/tests", env=environment)
        python.result()
        print("tests of python passed, tests of go:", go.result(), end="")


class Tee:
    """A socket that passes everything on to another one, and keeps the bytes of the last trace."""

    def __init__(self, path, target):
        self.trace = b""
        self.target = target
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(16)
        self.threads = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            self.threads.append(threading.Thread(target=self.serve, args=(client,), daemon=True))
            self.threads[-1].start()

    def serve(self, client):
        with client, socket.socket(socket.AF_UNIX) as runtime:
            runtime.connect(str(self.target))
            request = client.recv(65536)
            # In one piece: .NET Core 3.1 refuses a message in two.
            runtime.sendall(request)
            answer = bytearray()
            # A peer can close its connection before it has read everything.
            with contextlib.suppress(ConnectionError):
                while request and (piece := runtime.recv(65536)):
                    answer += piece
                    client.sendall(piece)
            if request[16:18] == b"\x02\x03":
                self.trace = bytes(answer[int.from_bytes(answer[14:16], "little") :])

    def last_trace(self):
        for thread in self.threads:
            thread.join(10)
        return self.trace


def eventually(name, check, command):
    for _ in range(20):
        if check(command):
            return
        time.sleep(0.5)
    sys.exit(f"{name}: the check {check.__name__} fails for 10 seconds")


def examples(folder, environment, name, process_id, path):
    """Runs the examples on one runtime, and compares what they print with what the tool prints."""
    python = [sys.executable, here / "python/example.py"]
    go = [folder / "bin/dotnetipc"]
    environment = {**environment, "TMPDIR": str(path.parent)}
    known = run(tool, "info", "--socket", path).returncode == 0

    def described():
        return json.loads(output(tool, "info", "--json", "--socket", path))

    def listed(command):
        return f"{process_id} {described()['command_line']}" in output(*command, "list", env=environment).splitlines()

    def same_info(command):
        lines = output(*command, "info", process_id, env=environment).splitlines()
        expected = {"portable_rid": described()["runtime_identifier"], **described()}
        return len(lines) == 8 and all(line == f"{(key := line.split(':')[0])}: {expected[key]}" for line in lines)

    def same_environment(command):
        return output(*command, "env", process_id, env=environment) == output(tool, "env", "--socket", path)

    def client_has_same_info(command):
        return f"command_line: {described()['command_line']}\n" in output(*command, path, "info")

    def is_refused(command):
        refused = run(*command, "info", process_id, env=environment)
        return refused.returncode == 1 and "refused with 0x80131385: DS_IPC_E_UNKNOWN_COMMAND" in refused.stderr

    for command in (python, go):
        for check in [listed, same_info, same_environment] if known else [is_refused]:
            # The command line is incomplete while a runtime starts.
            eventually(f"{name}: {command[-1]}", check, command)
    if known:
        eventually(f"{name}: client", client_has_same_info, [folder / "client"])

    def record(command):
        # Each has a folder of its own, in which the socket is found by the id of the process.
        with tempfile.TemporaryDirectory() as directory:
            tee = Tee(Path(directory, path.name), path)
            arguments = [directory + "/" + path.name] if command == [folder / "trace"] else ["trace", process_id]
            printed = output(*command, *arguments, "2", env={**environment, "TMPDIR": directory})
            copy = Path(directory, "copy.nettrace")
            copy.write_bytes(tee.last_trace())
            stats = json.loads(output(tool, "stats", "--json", copy))
            count, end = re.search(r"(\d+) events[,;].* the trace is (\w+)\n$", printed).groups()
            if (int(count), end) != (stats["events"], stats["end"]) or end != "complete" or count == "0":
                sys.exit(f"{name}: {command[-1]} prints\n{printed}instead of {stats['events']} events, {stats['end']}")
            return count

    with ThreadPoolExecutor(3) as pool:
        counts = list(pool.map(record, [python, go, [folder / "trace"]]))
    print(f"{name}: {'the same description and environment; ' if known else ''}events: {', '.join(counts)}")


def fake(folder, environment):
    directory = folder / "sockets"
    directory.mkdir()
    runtime = subprocess.Popen(
        [tool, "fake-runtime"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(directory)},
    )
    try:
        line = json.loads(runtime.stdout.readline())
        examples(folder, environment, "fake runtime", line["process_id"], Path(line["socket"]))
        readme(folder, {**environment, "TMPDIR": str(directory)}, line["process_id"])
    finally:
        runtime.stdin.close()
        runtime.wait()


def readme(folder, environment, process_id):
    """The programs in README.md list the process."""
    (folder / "readme.py").write_text(code_in_readme("python"))
    shutil.copy(testdata / "nettrace/gen-net10-lab-small.nettrace", folder / "app.nettrace")
    environment = {**environment, "PYTHONPATH": str(here / "python")}
    for command in ([sys.executable, folder / "readme.py"], [folder / "bin/readme"]):
        printed = output(*command, env=environment, cwd=folder)
        if f"{process_id} " not in printed or "142 events" not in printed:
            sys.exit(f"{command[-1]} prints {printed}")


def real(folder, environment):
    runtimes = [entry.split("=", 1) for entry in os.environ.get("DOTNET_IPC_RUNTIMES", "").split(";") if entry.strip()]
    for name, command in runtimes:
        command = command.split()
        if command[0].endswith(".exe"):
            continue
        directory = folder / name.strip()
        directory.mkdir()
        runtime = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(directory)},
            start_new_session=True,
        )
        try:
            path = wait_for_socket(name, runtime, directory)
            examples(folder, environment, name, path.name.split("-")[2], path)
        finally:
            os.killpg(runtime.pid, signal.SIGKILL)
            runtime.wait()


def wait_for_socket(name, runtime, directory):
    """Waits until the runtime listens."""
    for _ in range(300):
        for path in directory.glob("dotnet-diagnostic-*-socket"):
            with socket.socket(socket.AF_UNIX) as stream, contextlib.suppress(OSError):
                stream.connect(str(path))
                return path
        if runtime.poll() is not None:
            sys.exit(f"{name} ends with {runtime.returncode}")
        time.sleep(0.1)
    sys.exit(f"{name} creates no socket")


with tempfile.TemporaryDirectory() as work:
    environment = build(Path(work))
    if sys.argv[3] == "real":
        real(Path(work), environment)
    else:
        declarations(Path(work), environment)
        compare(Path(work), environment)
        failures(Path(work), environment)
        fake(Path(work), environment)
