//! The samples that `report`, `flame` and `top` take for CPU time, and their text about it.

use std::fs;

use ipc_proto::Code;
use ipc_testkit::{FakeRuntime, Profile, Response};
use nettrace::{Event, Metadata, Stack, Trace, TraceWriter, Version};

use serde_json::Value;
use tempfile::TempDir;

use crate::tool::{Ran, run, run_with};
use crate::traces::{put, utf16};

const EXTERNAL: u32 = 1;
const MANAGED: u32 = 2;

/// Methods at the addresses 0x100, 0x200 and so on, each with its type.
const METHODS: [(&str, &str); 7] = [
    ("Shop.Cart", "Total"),                                                    // 0x100
    ("System.Threading.Thread", "Sleep"),                                      // 0x200
    ("System.Threading.PortableThreadPool+WorkerThread", "WorkerThreadStart"), // 0x300
    ("System.Threading.LowLevelLifoSemaphore", "Wait"),                        // 0x400
    ("System.Threading.LowLevelSpinWaiter", "Wait"),                           // 0x500
    ("System.Diagnostics.Tracing.ManifestBuilder", "CreateManifest"),          // 0x600
    ("System.Runtime.CompilerServices.InitHelpers", "InitClassSlow"),          // 0x700
];

/// Returns a trace of samples, each with its thread and its stack, the innermost method first. The names of methods
/// come after the samples.
fn trace(samples: &[(u64, u32, &[u64])], has_names: bool) -> Vec<u8> {
    let (mut buf, mut trace) = (vec![0; 64 << 10], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    let mut load = Metadata::new(2, "Microsoft-Windows-DotNETRuntimeRundown", 144, "");
    load.version = 1;
    put!(trace, writer.describe(&Metadata::new(1, "Microsoft-DotNETCore-SampleProfiler", 0, "")));
    put!(trace, writer.describe(&load));
    for (id, (_, _, stack)) in (1..).zip(samples) {
        let addresses: Vec<u8> = stack.iter().flat_map(|address| (address + 1).to_le_bytes()).collect();
        put!(trace, writer.stack(&Stack { id, bytes: &addresses }));
    }
    let mut sequence = 0;
    let mut event = |metadata_id, thread, stack_id, payload: &[u8]| {
        sequence += 1;
        let timestamp = sequence.into();
        let event = Event { metadata_id, sequence, thread, timestamp, stack_id, payload, ..Event::default() };
        trace.extend_from_slice(&writer.event(&event).unwrap());
    };
    for (id, (thread, kind, _)) in (1..).zip(samples) {
        event(1, *thread, id, &kind.to_le_bytes());
    }
    for (number, (of, name)) in (1_u64..).zip(METHODS).filter(|_| has_names) {
        let numbers = [number, 1, number << 8].map(u64::to_le_bytes).concat();
        let sizes = [0x100_u32, 0, 0].map(u32::to_le_bytes).concat();
        event(2, 9, 0, &[numbers, sizes, utf16(of), utf16(name), utf16("()")].concat());
    }
    trace.extend_from_slice(&writer.finish());
    trace
}

fn named(samples: &[(u64, u32, &[u64])]) -> Vec<u8> {
    trace(samples, true)
}

fn report(trace: &[u8], options: &[&str]) -> Ran {
    run_with(&[&["report", "-", "--short"], options].concat(), trace).well()
}

/// Sleepers that wake for a sample are in managed code, and are not CPU time.
#[test]
fn sleepers_are_not_cpu() {
    let mut samples = Vec::new();
    for thread in 1..=50 {
        samples.push((thread, MANAGED, &[0x200, 0x100][..]));
        samples.push((thread, EXTERNAL, &[0x200, 0x100]));
    }
    samples.extend([(51, MANAGED, &[0x100][..]), (51, EXTERNAL, &[0x100])]);
    let trace = named(&samples);
    let text = report(&trace, &[]).into_text();
    assert!(text.contains("\n1 of 102 samples, ") && !text.contains("Thread.Sleep"), "{text}");
    assert!(text.contains("\n 100.00 %  100.00 % *Shop.Cart.Total\n"), "{text}");
    assert!(
        text.ends_with("50 threads only wait or run native code (100 samples); --wall shows where\n"),
        "{text}"
    );
    let json = report(&trace, &["--json", "--threads"]).json();
    assert_eq!((&json["samples"], json["threads"].as_array().unwrap().len()), (&1.into(), 1));
    assert_eq!((&json["sampled_cores"], &json["system_cores"]), (&0.5.into(), &Value::Null));
    let folded = run_with(&["flame", "-", "--cpu", "-o", "-", "--format", "folded"], &*trace);
    assert_eq!(folded.text(), "ManagedModule!Shop.Cart.Total() 1\n");
    // The rule of dotnet-trace is another one.
    let time = report(&trace, &["--thread-time", "--json"]).json();
    assert_eq!(time["frames"][0]["name"], "System.Threading.Thread.Sleep");
}

/// An idle thread of the pool spins before it waits, which takes CPU time.
#[test]
fn what_is_not_the_work_of_the_program() {
    let spin = (1, MANAGED, &[0x500, 0x400, 0x300][..]);
    let manifest = (2, MANAGED, &[0x600, 0x5000, 0x700, 0x300][..]);
    let text = report(&named(&[spin, spin, manifest, (2, MANAGED, &[0x100])]), &[]).into_text();
    for line in [
        "50.00 % of these samples: the spin of idle pool threads",
        "25.00 % of these samples: work for this recording (manifests of event sources)",
        "?!? (25.00 %) calls methods for the runtime: static constructors, reflection",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let json = report(&named(&[spin, manifest]), &["--json"]).json();
    assert_eq!((&json["pool_spin"], &json["session"]), (&50.0.into(), &50.0.into()));
    let text = report(&named(&[(1, MANAGED, &[0x5000])]), &[]).into_text();
    assert!(text.contains("\n?!? (100.00 %) is code whose name the trace does not have\n"), "{text}");
    let text = report(&named(&[(1, MANAGED, &[0x100])]), &[]).into_text();
    assert!(!text.contains("of these samples") && !text.contains("?!?"), "{text}");
}

/// The shares of a handful of samples are not an answer.
#[test]
fn nearly_idle() {
    let mut samples = vec![(1, EXTERNAL, &[0x200, 0x100][..]); 999];
    samples.push((1, MANAGED, &[0x100]));
    let trace = named(&samples);
    let text = report(&trace, &[]).into_text();
    assert!(text.contains("\n0.001 cores by 1 sample: nearly idle; see --wall\n"), "{text}");
    assert!(!text.contains("FUNCTION"), "{text}");
    assert!(report(&trace, &["--cpu"]).into_text().contains("FUNCTION"));
    samples.extend(vec![samples[999]; 20]);
    assert!(report(&named(&samples), &[]).into_text().contains("FUNCTION"));
}

/// A program that was compiled ahead of time has only samples outside managed code.
#[test]
fn compiled_ahead_of_time() {
    const WHY: &str = "All samples: a program compiled ahead of time does not tell running from waiting";
    let samples = [(1, EXTERNAL, &[0x100][..]), (2, EXTERNAL, &[0x200, 0x100])];
    let compiled = trace(&samples, false);
    for options in [&[][..], &["--cpu"]] {
        let text = report(&compiled, options).into_text();
        assert!(text.starts_with("Wall clock: samples of all threads\n2 samples, "), "{text}");
        assert!(text.lines().any(|line| line == WHY), "{text}");
        assert!(text.contains("\n 100.00 %  100.00 %  ?!?\n"), "{text}");
    }
    let ran = report(&compiled, &["--json"]);
    assert_eq!((&ran.json()["clock"], &ran.json()["total"]), (&"wall".into(), &2.into()));
    assert_eq!(ran.json()["tells_running"], false);
    for format in ["folded", "html"] {
        let ran = run_with(&["flame", "-", "-o", "-", "--format", format], &*compiled);
        assert!(ran.status == Some(0) && ran.stderr.contains(WHY), "{ran:?}");
    }
    // Another program whose threads all wait tells it.
    let ran = report(&named(&samples), &[]);
    assert!(ran.text().contains("\n0 of 2 samples, ") && !ran.text().contains(WHY), "{ran:?}");
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("old.nettrace");
    fs::write(&file, &compiled).unwrap();
    for new in [&compiled, &named(&samples)] {
        let text = report(new, &["--diff", file.to_str().unwrap()]).into_text();
        assert!(text.contains(WHY) && text.contains("Before: "), "{text}");
    }
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    for code in [Code(0x0203), Code(0x0205)] {
        let compiled = compiled.clone();
        runtime.on(code, move |_| Response::Trace(compiled.clone()));
    }
    let socket = runtime.path().to_str().unwrap();
    let ran = run(&["top", "--socket", socket, "--duration", "0.2", "--since-start"]);
    assert!(ran.status == Some(0) && ran.stderr.contains(WHY), "{ran:?}");
    assert!(
        ran.text().contains("2 threads, GC paused") && ran.text().contains("FUNCTION (all samples"),
        "{ran:?}"
    );
    let lines = run(&["top", "--socket", socket, "--duration", "0.2", "--since-start", "--json"]).lines();
    let last = lines.last().unwrap();
    assert_eq!((&last["clock"], &last["running_threads"]), (&"wall".into(), &Value::Null));
}
