"""Tests of the module dotnet_ipc with peers that fail, and with sessions that end early. dotnetipc_test.go has the same tests.

The variable DOTNET_IPC names the program dotnet-ipc; TESTDATA the folder.
"""
import io
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from contextlib import contextmanager
from pathlib import Path

import dotnet_ipc

RECORDING = Path(os.environ["TESTDATA"], "nettrace/gen-net10-lab-small.nettrace").read_bytes()
PROVIDERS = [dotnet_ipc.Provider("Microsoft-Windows-DotNETRuntime")]


@contextmanager
def fake_runtime():
    with tempfile.TemporaryDirectory() as folder:
        command = [os.environ["DOTNET_IPC"], "fake-runtime", "--dir", folder]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, **pipes) as process:
            try:
                yield process, dotnet_ipc.Runtime(json.loads(process.stdout.readline())["socket"])
            finally:
                process.stdin.close()


@contextmanager
def peer(answer):
    """A peer that answers each request with these bytes, and then waits."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        path = Path(folder, "socket")
        listener.bind(str(path))
        listener.listen()
        connections = []

        def accept():
            while True:
                try:
                    connections.append(listener.accept()[0])
                except OSError:
                    return
                connections[-1].recv(65536)
                connections[-1].sendall(answer)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield dotnet_ipc.Runtime(path, timeout=0.3)
        finally:
            # Wakes `accept`.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in connections:
                connection.close()


class Tests(unittest.TestCase):
    def test_silent_peer(self):
        started = time.monotonic()
        with peer(b"") as runtime, self.assertRaises(TimeoutError):
            runtime.info()
        self.assertLess(time.monotonic() - started, 5)

    def test_malformed_answer(self):
        with peer(b"HTTP/1.1 400 Bad Request\r\n\r\n") as runtime, self.assertRaises(dotnet_ipc.StatusError) as raised:
            runtime.info()
        self.assertEqual((raised.exception.status, raised.exception.detail), (dotnet_ipc.Status.BAD_MAGIC, 0))

    def test_refusal(self):
        with fake_runtime() as (_, runtime), self.assertRaises(dotnet_ipc.Refused) as raised:
            runtime.start_tracing([])
        self.assertEqual(raised.exception.name, "DS_IPC_E_BAD_ENCODING")

    def test_environment_with_long_variables(self):
        entries = ["A=b", "LONG=" + "x" * 40_000, "LONGER=" + "\u20ac" * 300_000, "C=d"]
        texts = [f"{entry}\0".encode("utf-16-le") for entry in entries]
        lengths = [(len(text) // 2).to_bytes(4, "little") for text in texts]
        environment = len(entries).to_bytes(4, "little") + b"".join(map(b"".join, zip(lengths, texts)))
        answer = b"DOTNET_IPC_V1\0\x1a\0\xff\0\0\0" + len(environment).to_bytes(4, "little") + b"\0\0"
        with peer(answer + environment) as runtime:
            self.assertEqual(dotnet_ipc.Runtime(runtime.path).environment(), entries)

    def test_stream_that_reads_more_than_its_room(self):
        class Stream:
            def readinto(self, buffer):
                return self.n(buffer)

        for n in (lambda buffer: len(buffer) + 1, lambda buffer: -1):
            stream = Stream()
            stream.n = n
            with self.assertRaisesRegex(OSError, "into a buffer of 131072"):
                next(dotnet_ipc.Trace(stream))

    def test_session_that_is_left_early(self):
        with fake_runtime() as (_, runtime):
            with runtime.start_tracing(PROVIDERS) as session:
                self.assertIn("Microsoft", next(dotnet_ipc.Trace(session)).provider)
            self.assertEqual(session.end, dotnet_ipc.SessionEnd.COMPLETE)
            session.stop()
            session.close()
            with self.assertRaises(ValueError):
                session.read(1)

    def test_stop_by_another_thread(self):
        with fake_runtime() as (_, runtime), runtime.start_tracing(PROVIDERS) as session:
            threads = [threading.Timer(0.2, session.stop) for _ in range(4)]
            for thread in threads:
                thread.start()
            trace = dotnet_ipc.Trace(session)
            self.assertNotEqual(list(trace), [])
            self.assertEqual(trace.end, dotnet_ipc.TraceEnd.COMPLETE)

    def test_process_that_is_killed(self):
        with fake_runtime() as (process, runtime), runtime.start_tracing(PROVIDERS) as session:
            trace = dotnet_ipc.Trace(session)
            next(trace)
            process.kill()
            for _ in trace:
                pass
            self.assertEqual((trace.end, session.end), (dotnet_ipc.TraceEnd.TRUNCATED, dotnet_ipc.SessionEnd.CUT_OFF))

    def test_session_that_the_runtime_does_not_end(self):
        session_id = b"DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\x07\0\0\0\0\0\0\0"
        with peer(session_id + RECORDING[:1000]) as runtime:
            session = runtime.start_tracing(PROVIDERS)
            self.assertEqual(session.session_id, 7)
            with self.assertRaises(TimeoutError):
                session.close()
            self.assertEqual(session.end, dotnet_ipc.SessionEnd.TIMED_OUT)

    def test_damaged_trace(self):
        # The length of a block becomes impossible.
        corrupt = RECORDING[:2000] + b"\xff" * 3000 + RECORDING[5000:]
        for data, end in [
            (RECORDING[: len(RECORDING) // 2], dotnet_ipc.TraceEnd.TRUNCATED),
            (corrupt, dotnet_ipc.TraceEnd.CORRUPT),
            (b"", dotnet_ipc.TraceEnd.TRUNCATED),
        ]:
            trace = dotnet_ipc.Trace(io.BytesIO(data))
            self.assertLess(len(list(trace)), 142)
            self.assertEqual(trace.end, end)
            self.assertNotEqual(trace.end_text, "complete")


if __name__ == "__main__":
    unittest.main()
