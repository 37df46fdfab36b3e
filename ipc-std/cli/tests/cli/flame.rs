//! `dotnet-ipc flame` of traces, by its other name `convert`.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::tool::{finish, run, run_with, which};
use crate::traces::{analysed, lossy, path};

/// Returns the total of all stacks by `report`.
fn total(trace: &str, clock: &str) -> u64 {
    run(&["report", trace, clock, "--json"]).well().json()["total"].as_u64().unwrap()
}

#[test]
fn the_suffix_decides_the_format() {
    let directory = TempDir::new().unwrap();
    let trace = analysed("net10-startup.nettrace");
    let total = total(&trace, "--wall");
    let converted = |name: &str| {
        let file = directory.path().join(name).to_str().unwrap().to_owned();
        let ran = run(&["convert", &trace, "-o", &file, "--wall"]);
        assert!(ran.status == Some(0) && ran.stderr.starts_with("Wrote "), "{ran:?}");
        run(&["convert", &trace, "-o", &file, "--wall"]).fails(1, "exists already");
        let ran = run(&["convert", &trace, "-o", &file, "--wall", "--overwrite", "--json"]).well();
        let bytes = fs::read(&file).unwrap();
        assert_eq!(ran.json()["bytes"], bytes.len());
        bytes
    };

    let page = String::from_utf8(converted("x.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("net10-startup.nettrace"));

    let folded = String::from_utf8(converted("x.folded")).unwrap();
    let weights = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    assert_eq!(weights.sum::<u64>(), total);

    let file: Value = serde_json::from_slice(&converted("x.speedscope.json")).unwrap();
    // The trace states the command line of its process.
    assert_eq!(file["name"], "Workload");
    let profiles = file["profiles"].as_array().unwrap();
    assert_eq!(profiles.iter().map(|profile| profile["endValue"].as_u64().unwrap()).sum::<u64>(), total);

    let mut profile = Vec::new();
    GzDecoder::new(converted("x.pb.gz").as_slice()).read_to_end(&mut profile).unwrap();
    // The sample type, and an empty string: the beginning of the first piece.
    assert!(profile.starts_with(b"\x0a\x04\x08\x01\x10\x02\x32\x00"), "{:?}", &profile[..8]);
    for text in ["samples", "count", "thread_id", "System.Private.CoreLib"] {
        assert!(profile.windows(text.len()).any(|window| window == text.as_bytes()), "{text}");
    }
}

#[test]
fn convert_is_flame() {
    let trace = analysed("net10-startup.nettrace");
    let [flame, convert] = ["flame", "convert"].map(|command| {
        let ran = run(&[command, &trace, "-o", "-", "--format", "html", "--wall"]);
        assert_eq!(ran.status, Some(0), "{ran:?}");
        ran.into_text()
    });
    assert!(flame.starts_with("<!doctype html>") && flame == convert);
    let [flame, convert] = ["flame", "convert"].map(|command| run(&[command, "--help"]).well().into_text());
    assert!(flame.contains("dotnet-ipc convert app.nettrace") && flame == convert, "{convert}");
}

/// The files are recorded: they are equal to those of inferno-diff-folded with `--normalize`, with sorted lines.
#[test]
fn differences_of_recorded_traces() {
    for (new, old, clock, lines, digest) in [
        (
            "net10-startup",
            "../sick/slowstart",
            "--wall",
            263,
            "c7fe27f4713051a1dec2019a37b358bfdda0a0c605b29e4e893ad3ba468ba735",
        ),
        (
            "net10-startup",
            "../sick/slowstart",
            "--thread-time",
            275,
            "bef5b2cd4fba8d56bb81851539ed14e82c9394d9e539aa9d3e6d825b0f92a77a",
        ),
        (
            "net10-requests",
            "net10-outgoing-requests",
            "--thread-time",
            10,
            "3d51934fa5d10a2baaabd36aab01cd23efe5a9ef6d70c6383bfdade3f0819050",
        ),
        (
            "net10-startup",
            "net10-precompiled",
            "--exceptions",
            15,
            "ef2d8ed8a7118404f33ceeabe3ad58a1c4ef780ba47fccc67a8b55b352be6468",
        ),
        (
            "net10-precompiled",
            "../sick/regex",
            "--wall",
            113,
            "215cfa0bc54c323f84e746fff7a1ae7b7986096862b95697d3211c5423b6896b",
        ),
        (
            "net10-startup",
            "net10-startup",
            "--wall",
            140,
            "a56349538da06814cd5db06a587f2aa1803a6f40160b2ff55468c15496bda282",
        ),
    ] {
        let [new, old] = [new, old].map(|name| analysed(&format!("{name}.nettrace")));
        let folded = converted(&new, "folded", &["--diff", &old, clock]);
        assert_eq!(folded.split(|byte| *byte == b'\n').count() - 1, lines, "{new} {old}");
        assert_eq!(format!("{:x}", Sha256::digest(&folded)), digest, "{new} {old} {clock}");
    }
}

#[test]
fn standard_output_needs_a_format() {
    let trace = analysed("net31-sampled.nettrace");
    run(&["convert", &trace, "-o", "-"]).fails(2, "states no format");
    run(&["convert", &trace, "-o", "x.txt"]).fails(2, "choose --format");
    let ran = run(&["convert", &trace, "-o", "-", "--format", "folded", "--thread-time"]);
    assert_eq!(ran.status, Some(0), "{ran:?}");
    assert!(ran.stderr.ends_with(" to standard output\n"));
    let sum: u64 =
        ran.text().lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    assert_eq!(sum, total(&trace, "--thread-time"));
}

#[test]
fn a_trace_without_stacks_is_not_converted() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("x.folded");
    let output = file.to_str().unwrap();
    let trace = analysed("net10-collections.nettrace");
    run(&["convert", &trace, "-o", output]).fails(9, "--profile dotnet-sampled-thread-time");
    run(&["convert", &trace, "-o", output, "--exceptions"]).fails(9, "--clr-events exception");
    let ran = run_with(&["convert", "-", "-o", output, "--event", "Demo"], lossy());
    assert!(
        ran.status == Some(9) && ran.stderr.contains("standard input: no event has a stack; "),
        "{ran:?}"
    );
    run_with(&["convert", "-", "-o", output], Vec::new()).fails(6, "the trace is empty");
    run(&["convert", &path("nothing"), "-o", output]).fails(1, "cannot read");
    assert!(!file.exists());
    // The valid part of a cut trace is converted.
    let trace = fs::read(analysed("net31-sampled.nettrace")).unwrap();
    let ran = run_with(&["convert", "-", "-o", output, "--wall"], &trace[..trace.len() - 10_000]);
    assert_eq!(ran.status, Some(6), "{ran:?}");
    assert!(!fs::read_to_string(file).unwrap().is_empty());
}

/// Returns a converted trace.
fn converted(trace: &str, format: &str, options: &[&str]) -> Vec<u8> {
    let ran = run(&[&["convert", trace, "-o", "-", "--format", format], options].concat());
    assert_eq!(ran.status, Some(0), "{ran:?}");
    ran.stdout
}

#[test]
fn files_in_the_order_of_time() {
    let trace = analysed("net10-startup.nettrace");
    let json = |format, options: &[&str]| -> Value {
        serde_json::from_slice(&converted(&trace, format, options)).unwrap()
    };
    let kinds = |file: &Value| -> Vec<String> {
        let profiles = file["profiles"].as_array().unwrap();
        let mut kinds: Vec<_> =
            profiles.iter().map(|profile| profile["type"].as_str().unwrap().to_owned()).collect();
        kinds.dedup();
        kinds
    };
    // The end of the thread's last stack in the file of dotnet-trace: testdata/analysis.
    let evented = json("speedscope", &["--thread-time"]);
    assert_eq!(kinds(&evented), ["evented"]);
    let end = evented["profiles"][0]["endValue"].as_f64().unwrap();
    assert!((end - 1057.7739).abs() < 0.001, "{end}");
    assert_eq!(kinds(&json("speedscope", &[])), ["sampled"]);

    let chromium = json("chromium", &[]);
    assert_eq!(chromium, json("chromium", &["--thread-time"]));
    let events = chromium["traceEvents"].as_array().unwrap();
    assert!(events.len() > 1_000 && events.iter().all(|event| event["pid"] == 25_430));
    for clock in ["--cpu", "--wall", "--exceptions"] {
        run(&["convert", &trace, "-o", "x.chromium.json", clock])
            .fails(2, "choose --thread-time or --contention");
    }

    for (clock, weights) in [("--wall", "samples"), ("--thread-time", "tracing-ms")] {
        let firefox = json("firefox", &[clock]);
        let threads = firefox["threads"].as_array().unwrap();
        assert_eq!(
            (&threads[0]["pid"], &threads[0]["samples"]["weightType"]),
            (&"25430".into(), &weights.into())
        );
        let weights = threads.iter().flat_map(|thread| thread["samples"]["weight"].as_array().unwrap());
        let sum: f64 = weights.map(|weight| weight.as_f64().unwrap()).sum();
        if clock == "--wall" {
            assert_eq!(sum, total(&trace, clock) as f64);
        } else {
            assert!((sum - 3_095.25).abs() < 0.01, "{sum}");
        }
        // The trace was made in 2026, and the time is in milliseconds since 1970.
        assert!(firefox["meta"]["startTime"].as_f64().unwrap() > 1.7e12);
    }
}

#[test]
fn suffixes_of_files_in_the_order_of_time() {
    let directory = TempDir::new().unwrap();
    let trace = analysed("net31-sampled.nettrace");
    for (name, format) in
        [("a.speedscope.json", "speedscope"), ("a.chromium.json", "chromium"), ("a.firefox.json", "firefox")]
    {
        let file = directory.path().join(name).to_str().unwrap().to_owned();
        let ran = run(&["convert", &trace, "-o", &file, "--thread-time"]);
        assert_eq!(ran.status, Some(0), "{ran:?}");
        assert_eq!(fs::read(&file).unwrap(), converted(&trace, format, &["--thread-time"]));
    }
}

#[test]
#[ignore = "needs Chromium, Node and speedscope, which `.ci/run pages` installs"]
fn speedscope_opens_the_files() {
    let directory = TempDir::new().unwrap();
    let trace = analysed("net10-startup.nettrace");
    for (name, format) in [("evented.speedscope.json", "speedscope"), ("trace.chromium.json", "chromium")] {
        fs::write(directory.path().join(name), converted(&trace, format, &["--thread-time"])).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chromium/speedscope.mjs");
    let mut node = Command::new(which("node"));
    node.arg(script).arg(std::env::var_os("SPEEDSCOPE").unwrap()).arg(directory.path()).stdin(Stdio::null());
    let ran = finish(node.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!(ran.status, Some(0), "{ran:?}");
}

/// Names without modules and arguments, the same in each format.
#[test]
fn short_names() {
    let trace = analysed("net10-startup.nettrace");
    let full = "System.Private.CoreLib!System.Threading.Thread.Sleep(int32)";
    for format in ["folded", "html", "speedscope", "chromium", "firefox", "pprof"] {
        let text = |options: &[&str]| {
            let mut bytes = converted(&trace, format, &[&["--thread-time"], options].concat());
            if format == "pprof" {
                let mut text = Vec::new();
                GzDecoder::new(bytes.as_slice()).read_to_end(&mut text).unwrap();
                bytes = text;
            }
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let [long, short] = [text(&[]), text(&["--short"])];
        assert!(long.contains("Thread.Sleep(int32)"), "{format}");
        assert!(
            short.contains("System.Threading.Thread.Sleep") && !short.contains("Thread.Sleep("),
            "{format}"
        );
        assert!(!short.contains("System.Private.CoreLib!"), "{format}");
        if format == "folded" {
            assert!(long.contains(full));
            let mut stacks: Vec<&str> = short.lines().map(|line| line.rsplit_once(' ').unwrap().0).collect();
            let count = stacks.len();
            stacks.sort_unstable();
            stacks.dedup();
            assert_eq!(stacks.len(), count);
        }
    }
    let names = |options: &[&str]| -> Vec<String> {
        let ran = run(&[&["report", &trace, "--thread-time", "--json"], options].concat()).well().json();
        let frames = ran["frames"].as_array().unwrap();
        frames.iter().map(|frame| frame["name"].as_str().unwrap().to_owned()).collect()
    };
    let (long, short) = (names(&[]), names(&["--short"]));
    assert_eq!((&long[0], &short[0]), (&full.to_owned(), &"System.Threading.Thread.Sleep".to_owned()));
    assert!(short.iter().all(|name| !name.contains('!') || name.ends_with("!?")), "{short:?}");
}
