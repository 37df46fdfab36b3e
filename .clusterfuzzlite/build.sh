#!/usr/bin/env bash
# Builds every fuzz target into $OUT, each with its seeds, dictionary and options. OSS-Fuzz and ClusterFuzzLite set the
# variables, and so does `.ci/run oss-fuzz`.
#
# Under the Apache License 2.0 (http://www.apache.org/licenses/LICENSE-2.0) or MIT.
set -eu
cd "$SRC/dotnet-ipc"
host=x86_64-unknown-linux-gnu
export CARGO_TARGET_DIR=$WORK/fuzz
targets=()
for dir in fuzz fuzz/std fuzz/c; do
    # For a report of coverage, the services replace `cargo fuzz` by `cargo build` in the current folder.
    # Optimising the whole program takes minutes for each target; the library in C needs it.
    (cd "$dir" && CARGO_PROFILE_RELEASE_LTO=off cargo fuzz build --fuzz-dir . --target "$host")
    for file in "$dir"/fuzz_targets/*.rs; do
        name=$(basename "$file" .rs)
        cp "$CARGO_TARGET_DIR/$host/release/$name" "$OUT/"
        targets+=("$name")
    done
done
# The name has an extension, because the services take a program without one for a target.
fuzz/c/build.sh "$OUT/c_messages.child" "$WORK/c/sanitized"
fuzz/inputs.py "$OUT" "${targets[@]}"
