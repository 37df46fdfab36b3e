#!/usr/bin/env python3
"""Checks what `dotnet-ipc counters` writes with the readers of other projects: promtool, the parser of Prometheus'
client for Python, and the classes of OTLP. Usage: foreign_counters.py TOOL TRACE..."""
import json
import subprocess
import sys

from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families

TOOL, *TRACES = sys.argv[1:]


def output(trace, *options):
    """Returns what the tool writes for a trace."""
    command = [TOOL, "counters", "--file", trace, *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def series(trace):
    """Returns the series of a trace that have a number, and how many samples have one."""
    found, count = set(), 0
    for line in output(trace, "--json").splitlines():
        sample = json.loads(line)
        names = ["process_id", "system", "kind", "provider", "name", "unit", "instrument_id", "instance"]
        names += ["meter_version", "meter_tags", "instrument_tags", "meter_scope_hash", "tags"]
        if "value" not in sample or sample["value"] is not None or "count" in sample:
            found.add(json.dumps([sample.get(name) for name in names]))
            count += 1
    return found, count


def points(trace):
    """Returns how many data points a trace has, and checks that each is where OTLP allows it."""
    count = 0
    for line in output(trace, "--format", "otlp-json").splitlines():
        request = Parse(line, ExportMetricsServiceRequest())
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    data = getattr(metric, metric.WhichOneof("data"))
                    for point in data.data_points:
                        keys = [attribute.key for attribute in point.attributes]
                        assert len(keys) == len(set(keys)), point
                        if metric.WhichOneof("data") == "exponential_histogram":
                            assert sum(point.positive.bucket_counts) + point.zero_count == point.count, point
                        count += 1
    return count


def main():
    """Checks each trace."""
    for trace in TRACES:
        expected, samples = series(trace)
        text = output(trace, "--format", "prometheus")
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        assert checked.returncode == 0, f"{trace}: {checked.stderr}{text}"
        found = set()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = {key: value for key, value in sample.labels.items() if key not in ("le", "quantile")}
                # The parser removes the suffixes of a name from that of its family.
                found.add(json.dumps([family.name, family.type, sorted(labels.items())]))
        # The text for Prometheus leaves out the series of instruments that have ended.
        has_ended = "ended" in trace
        assert has_ended or len(found) == len(expected), f"{trace}: {len(found)} of {len(expected)} series\n{text}"
        assert points(trace) == samples, f"{trace}: {points(trace)} of {samples} samples"
        print(f"{trace}: {len(found)} series, {samples} samples")


main()
