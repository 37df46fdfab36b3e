#!/usr/bin/env python3
"""Shows the module dotnet_ipc at work.

    example.py list             the .NET processes with their command lines
    example.py info PID         the description of a process
    example.py env PID          its environment
    example.py trace PID [S]    record events for S seconds (5), and count them
    example.py trace FILE       count the events of a trace
    example.py events FILE      print the events of a trace with their fields
"""

import collections
import dataclasses
import sys
import threading

import dotnet_ipc

PROVIDERS = [
    dotnet_ipc.Provider("Microsoft-Windows-DotNETRuntime", keywords=0x1 | 0x8000),  # garbage collector, exceptions
    dotnet_ipc.Provider("System.Runtime", arguments="EventCounterIntervalSec=1"),
]


def list_runtimes() -> None:
    for runtime in dotnet_ipc.runtimes():
        try:
            print(runtime.process_id, runtime.info().command_line)
        except (OSError, dotnet_ipc.Error) as error:
            print(runtime.process_id, error)


def info(process_id: int) -> None:
    for name, value in dataclasses.asdict(dotnet_ipc.for_process(process_id).info()).items():
        print(f"{name}: {'' if value is None else value}")


def environment(process_id: int) -> None:
    for entry in dotnet_ipc.for_process(process_id).environment():
        print(entry)


def trace_process(process_id: int, seconds: float) -> int:
    with dotnet_ipc.for_process(process_id).start_tracing(PROVIDERS) as session:
        timer = threading.Timer(seconds, session.stop)
        timer.daemon = True
        timer.start()
        return count(dotnet_ipc.Trace(session))


def trace_file(path: str) -> int:
    with open(path, "rb") as file:
        return count(dotnet_ipc.Trace(file))


def count(trace: dotnet_ipc.Trace) -> int:
    """Counts the events by provider, and prints the last one of each."""
    counts: collections.Counter[str] = collections.Counter()
    last = {}
    for event in trace:
        counts[event.provider] += 1
        last[event.provider] = event
    for provider, number in counts.most_common():
        event = last[provider]
        print(f"{number:8} {provider or '(not described)'}; the last one is {event.name or 'unnamed'} {event.fields}")
    print(f"{counts.total():8} events; the trace is {trace.end_text}")
    return 0 if trace.end == dotnet_ipc.TraceEnd.COMPLETE else 1


def events(path: str) -> None:
    with open(path, "rb") as file:
        for event in dotnet_ipc.Trace(file):
            print(event.unix_nanoseconds, event.thread_id, event.provider, event.name, event.fields)


def main(arguments: list[str]) -> int:
    match arguments:
        case ["list"]:
            list_runtimes()
        case ["info", process_id]:
            info(int(process_id))
        case ["env", process_id]:
            environment(int(process_id))
        case ["trace", process_id, *seconds] if process_id.isdigit():
            return trace_process(int(process_id), float(*seconds or ["5"]))
        case ["trace", path]:
            return trace_file(path)
        case ["events", path]:
            events(path)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (OSError, dotnet_ipc.Error) as error:
        sys.exit(f"example.py: {error}")
