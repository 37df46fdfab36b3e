#!/usr/bin/env python3
"""Writes what OSS-Fuzz and ClusterFuzzLite expect beside the program of each target: NAME_seed_corpus.zip, NAME.dict and
NAME.options. run.py uses the functions."""
import pathlib
import re
import shutil
import sys
import zipfile

TOP = pathlib.Path(__file__).resolve().parent.parent
TESTDATA = TOP / "testdata"
DICTIONARY = TOP / "fuzz/ipc.dict"
# Longer inputs are slow, and this is enough for every part of a message or a trace.
MAX_LEN = 4096


def unhex(file):
    return bytes.fromhex(re.sub("#.*", "", file.read_text()))


def common_seeds():
    """Returns testdata as inputs: the messages, good and bad, and the beginnings of the traces."""
    messages = [unhex(file) for file in sorted(TESTDATA.glob("**/*.hex"))]
    traces = sorted([*TESTDATA.glob("nettrace/*.nettrace"), *TESTDATA.glob("nettrace/*.netperf")])
    return messages + [file.read_bytes()[:MAX_LEN] for file in traces]


def corpus(target):
    return TESTDATA / "corpus" / f"{target}.txt"


def seeds_of(target):
    """Returns the stored inputs of earlier runs."""
    lines = corpus(target).read_text().splitlines() if corpus(target).exists() else []
    return [bytes.fromhex(line) for line in lines]


def main(folder, targets):
    common = common_seeds()
    for target in targets:
        with zipfile.ZipFile(folder / f"{target}_seed_corpus.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for number, seed in enumerate(common + seeds_of(target)):
                archive.writestr(str(number), seed)
        shutil.copy(DICTIONARY, folder / f"{target}.dict")
        (folder / f"{target}.options").write_text(f"[libfuzzer]\nmax_len = {MAX_LEN}\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
