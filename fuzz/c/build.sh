#!/bin/sh
# Builds the half of the fuzz target c_messages that is in C: the library for this target, and messages.c, with sanitizers
# and with all checks of a debug build.
#
#   fuzz/c/build.sh PROGRAM FOLDER
#
# PROGRAM is written. FOLDER is cargo's. Both are absolute paths. CC, CFLAGS and RUSTFLAGS are used if they are set.
set -eu
program=$1 folder=$2
cd "$(dirname "$0")/../.."
host=$(rustc --print host-tuple)
RUSTFLAGS="${RUSTFLAGS:-} -Zsanitizer=address -Cdebug-assertions" cargo rustc --locked --release --lib \
    --manifest-path ipc-proto/c/Cargo.toml --crate-type staticlib --target "$host" --target-dir "$folder"
# shellcheck disable=SC2086 # the flags are words
"${CC:-cc}" ${CFLAGS:--O1 -g} -std=c99 -D_POSIX_C_SOURCE=200809L \
    -fsanitize=address,undefined -fno-sanitize-recover=all -Iipc-proto/c/include \
    fuzz/c/messages.c "$folder/$host/release/libdotnet_ipc.a" -o "$program"
