//! The tests of the tool. Each starts the built program, with fake runtimes, faulty peers and recorded traces. They are
//! one program, since to link a program takes longer than to run most of these files.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports a fault by a panic"
)]
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "some tests need signals, or other features of Unix or Linux")
)]

mod analyses_live;
#[cfg(target_os = "linux")]
mod clean;
mod commands;
mod conformance;
#[cfg(target_os = "linux")]
mod containers;
mod counter_series;
mod counters;
mod counters_file;
mod counters_served;
mod cpu;
mod dates;
mod decode;
#[cfg(target_os = "linux")]
mod diagnose;
mod diagnosis_columns;
mod diagnosis_services;
#[cfg(target_os = "linux")]
mod discover;
mod eventpipe_env;
mod events;
mod events_lengths;
mod events_live;
#[cfg(target_os = "linux")]
mod exhaustion;
#[cfg(unix)]
mod fake_runtime;
#[cfg(target_os = "linux")]
mod find;
mod flame;
mod flame_page;
mod gc;
mod heap;
#[cfg(unix)]
mod heap_process;
mod help;
#[cfg(target_os = "linux")]
mod hostile_texts;
mod info_and_env;
mod jit;
#[cfg(target_os = "linux")]
mod json;
#[cfg(unix)]
mod links;
mod list_profiles;
mod locks;
mod mapped;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(unix)]
mod monitor;
mod parts;
#[path = "../../../tests/peer/mod.rs"]
mod peer;
#[cfg(windows)]
mod pipes;
#[cfg(unix)]
mod ps;
mod readers;
mod report;
mod requests;
mod rewrite;
#[path = "../../../../ipc-proto/analysis/tests/runtime_events/mod.rs"]
mod runtime_events;
#[cfg(unix)]
mod search;
mod stack;
#[cfg(unix)]
mod stack_cache;
mod stats;
#[cfg(target_os = "linux")]
mod stuck;
mod symbols;
mod symptoms;
#[cfg(target_os = "linux")]
mod target;
#[cfg(target_os = "linux")]
mod terminals;
mod thread_states;
#[path = "../tool/mod.rs"]
mod tool;
mod top;
mod trace;
mod trace_names;
mod traces;
mod version_6;
#[cfg(target_os = "linux")]
mod work;
