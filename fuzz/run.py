#!/usr/bin/env python3
"""Runs fuzz targets in parallel. Prints for each the number of inputs, the number of edges, and the time of the last new
edge: a row of the table in README.md. For a target that fails it prints the log and the input; the others continue.

With --minimise it runs no target, but writes a minimal subset of the stored inputs that reaches every edge to
testdata/corpus/."""
import argparse
import base64
import collections
import concurrent.futures
import heapq
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
from inputs import DICTIONARY, MAX_LEN, common_seeds, corpus, seeds_of

# The same for stored inputs: the tests read all of them, and these targets take long for each.
MAX_STORED_LEN = {"analysis_work": 25, "counters": 200, "work": 25}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("programs", type=pathlib.Path, help="the folder of the targets' programs")
parser.add_argument("corpus", type=pathlib.Path, help="the folder that stores the inputs that each target finds")
parser.add_argument("targets", nargs="+")
parser.add_argument("--seconds", type=float, default=10, help="the run time of each target (10)")
parser.add_argument("--quiet", type=float, default=0,
                    help="continue until a target has found no new edge for this time, at most six times --seconds (0)")
parser.add_argument("--jobs", type=int, default=1, help="the number of targets that run at the same time (1)")
parser.add_argument("--minimise", action="store_true")
options = parser.parse_args()


def write(inputs, folder):
    folder.mkdir()
    for number, content in enumerate(inputs):
        (folder / str(number)).write_bytes(content)
    return folder


class Run:
    def __init__(self, target, work):
        self.target, self.executions, self.edges, self.last = target, 0, 0, 0.0
        corpus, findings = options.corpus / target, options.corpus / "findings" / target
        for folder in corpus, findings:
            folder.mkdir(parents=True, exist_ok=True)
        before = set(findings.iterdir())
        self.log = collections.deque(maxlen=100)
        self.begin = time.monotonic()
        self.process = subprocess.Popen(
            [options.programs / target, "-print_final_stats=1", "-timeout=10", f"-max_len={MAX_LEN}",
             f"-dict={DICTIONARY}", f"-artifact_prefix={findings}/",
             corpus, work / "seeds", write(seeds_of(target), work / target)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        reader = threading.Thread(target=self.read)
        reader.start()
        while self.process.poll() is None:
            if self.is_over():
                # libFuzzer ends after the inputs that it begins with, and says its numbers. Those of `work` take 32 seconds
                # of a processor, and the other processor can be as busy.
                self.process.send_signal(signal.SIGUSR1)
                try:
                    self.process.wait(240)
                except subprocess.TimeoutExpired:
                    self.process.kill()
            time.sleep(0.1)
        reader.join()
        self.seconds = time.monotonic() - self.begin
        self.findings = sorted(set(findings.iterdir()) - before)

    def is_over(self):
        now = time.monotonic() - self.begin
        enough = now >= options.seconds and now - self.last >= options.quiet
        return enough or now >= 6 * options.seconds

    def read(self):
        for line in self.process.stderr:
            self.log.append(line)
            if found := re.search(r"\bcov: (\d+)", line):
                edges = int(found[1])
                # What the seeds reach is not new.
                if edges > self.edges and not re.search("READ|INITED", line):
                    self.last = time.monotonic() - self.begin
                self.edges = max(self.edges, edges)
            elif found := re.match(r"stat::number_of_executed_units:\s*(\d+)", line):
                self.executions = int(found[1])

    def report(self):
        print(f"| `{self.target}` | {self.executions:,} | {self.edges:,} | {self.last:.0f} s of {self.seconds:.0f} s "
              f"| {len(self.findings)} |", flush=True)
        if self.process.returncode == 0:
            return True
        print(*self.log, f"{self.target} ended with {self.process.returncode}\n", sep="")
        for file in self.findings:
            print(f"{file.name}, in base64: {base64.b64encode(file.read_bytes()).decode()}", flush=True)
        return False


def fuzz(work):
    print("| target | executions | edges | last new edge | findings |\n|---|---|---|---|---|", flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(Run, target, work) for target in options.targets]
        reports = [run.result().report() for run in runs]
    return all(reports)


def minimise(work):
    for target in options.targets:
        control, unused = work / f"{target}.control", work / f"{target}.unused"
        unused.mkdir()
        max_len = MAX_STORED_LEN.get(target, MAX_LEN)
        # Edges alone: to reach each as often as before would take ten times as much.
        subprocess.run(
            [options.programs / target, "-set_cover_merge=1", "-use_counters=0", f"-max_len={max_len}",
             f"-merge_control_file={control}", unused, options.corpus / target, work / "seeds",
             write(seeds_of(target), work / target)],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        inputs = least(control.read_text().splitlines(), max_len)
        lines = sorted((input.hex() for input in inputs), key=lambda line: (len(line), line))
        corpus(target).parent.mkdir(exist_ok=True)
        corpus(target).write_text("".join(f"{line}\n" for line in lines))
        print(f"{target}: {len(lines)} inputs, {sum(map(len, inputs)):,} bytes", flush=True)
    return True


def least(lines, max_len):
    """Of the inputs in a control file, few and short ones that reach all that all do. libFuzzer's own choice is of few."""
    count = int(lines[0])
    inputs = [pathlib.Path(line).read_bytes()[:max_len] for line in lines[2:2 + count]]
    rows = [line.split() for line in lines[2 + count:] if line.startswith("FT ")]
    reach = {int(number): set(edges) for _, number, *edges in rows}
    cost = {number: len(inputs[number]) + 16 for number in reach}
    left, chosen = set().union(*reach.values()), []
    heap = [(-len(edges) / cost[number], number) for number, edges in reach.items()]
    heapq.heapify(heap)
    while left:
        _, number = heapq.heappop(heap)
        gain = -len(reach[number] & left) / cost[number]
        if heap and heap[0][0] < gain:
            heapq.heappush(heap, (gain, number))  # it was worth more before others were chosen
        elif gain:
            chosen.append(number)
            left -= reach[number]
    # The first may have become superfluous.
    times = collections.Counter(edge for number in chosen for edge in reach[number])
    for number in sorted(chosen, key=lambda number: -cost[number]):
        if all(times[edge] > 1 for edge in reach[number]):
            times.subtract(reach[number])
            chosen.remove(number)
    return [inputs[number] for number in chosen]


with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    write(common_seeds(), work / "seeds")
    sys.exit(0 if (minimise if options.minimise else fuzz)(work) else 1)
