#!/usr/bin/env python3
"""Lets Prometheus scrape what the DaemonSet of kubernetes.yaml runs: scraped.py TOOL FOLDER COMMAND...

TOOL stands for the program of the image. COMMAND starts a .NET process, which ends with its standard input.
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import yaml

tool, folder, command = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
documents = list(yaml.safe_load_all(pathlib.Path("ipc-std/cli/kubernetes.yaml").read_text()))
template = next(one for one in documents if one["kind"] == "DaemonSet")["spec"]["template"]
container = template["spec"]["containers"][0]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def value(port, query):
    """Returns the value of a query to Prometheus, or None."""
    address = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    try:
        result = json.load(urllib.request.urlopen(address, timeout=10))["data"]["result"]
    except OSError:
        return None
    return float(result[0]["value"][1]) if result else None


port = template["metadata"]["annotations"]["prometheus.io/port"]
assert container["ports"][0]["containerPort"] == int(port), "the port of the annotation is another one"
ours, theirs = free_port(), free_port()
args = [arg.replace(f":{port}", f":{ours}") for arg in container["args"]]
assert args != container["args"], f"the container does not serve at port {port}"
config = folder / "prometheus.yml"
config.write_text(
    f"scrape_configs: [{{job_name: dotnet, scrape_interval: 1s, static_configs: [{{targets: ['127.0.0.1:{ours}']}}]}}]"
)
sockets = folder / "sockets"
sockets.mkdir()
environment = os.environ | {"TMPDIR": str(sockets)}
programs = [
    subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment),
    subprocess.Popen([tool, *args], env=environment),
    subprocess.Popen(
        ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/series",
         f"--web.listen-address=127.0.0.1:{theirs}"],
        stderr=(folder / "prometheus.log").open("w"),
    ),
]
try:
    end = time.monotonic() + 60
    while not (found := value(theirs, '{__name__=~".*working_set.*"}')):
        if time.monotonic() > end:
            sys.exit(f"error: Prometheus has no series: up is {value(theirs, 'up')}; see {folder}/prometheus.log")
        time.sleep(0.2)
    print(f"Prometheus: up {value(theirs, 'up')}, working set {found:.0f}")
finally:
    for program in programs:
        program.kill()
