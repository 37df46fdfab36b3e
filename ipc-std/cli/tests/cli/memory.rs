//! The memory of the tool is limited by its input.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};
use std::thread;

use tempfile::TempDir;

use crate::counter_series::{HITS, Instrument, MeterEvents};
use crate::tool::tool;

/// The maximum memory in bytes: the input, and much room for the tool and for an emulator that runs it.
const LIMIT: u64 = 64 << 20;

/// Returns the response to GetProcessEnvironment, and an environment of `strings` empty strings, each of 6 bytes.
fn response(strings: usize) -> Vec<u8> {
    let entries = [1, 0, 0, 0, 0, 0].repeat(strings);
    let count = u32::try_from(strings).unwrap().to_le_bytes();
    let len = u32::try_from(entries.len() + 4).unwrap().to_le_bytes();
    [b"DOTNET_IPC_V1\0\x1a\0\xff\0\0\0", &len[..], &[0, 0], &count, &entries].concat()
}

/// Reads the output of the tool, which can have nothing to show. Returns its length, and the memory that the tool has
/// needed at its end.
pub(crate) fn drained(mut child: Child) -> (usize, u64) {
    let status = format!("/proc/{}/status", child.id());
    let (mut output, mut buf, mut len) = (child.stdout.take().unwrap(), vec![0; 64 << 10], 0);
    let mut peak = 0;
    loop {
        // Only a read shows that the tool runs: for a moment after its start, its memory is that of the tests.
        match output.read(&mut buf).unwrap() {
            0 => break,
            n => len += n,
        }
        // The tool waits in a write, or has just ended.
        let text = fs::read_to_string(&status).unwrap();
        let kilobytes = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        peak = peak.max(kilobytes.map_or(0, |text| text.parse::<u64>().unwrap() << 10));
    }
    let status = child.wait().unwrap();
    assert!(matches!(status.code(), Some(0 | 9)), "{status}");
    (len, peak)
}

#[test]
fn decode() {
    const STRINGS: usize = 50_000;
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("environment.bin");
    fs::write(&file, response(STRINGS)).unwrap();
    let args = ["decode", "--answer-to", "GetProcessEnvironment", file.to_str().unwrap()];
    for more in [&["--json"][..], &[]] {
        let child = tool(&[&args, more].concat()).spawn().unwrap();
        let (len, peak) = drained(child);
        assert!(len > 50 * STRINGS, "{len} bytes");
        assert!((1..LIMIT).contains(&peak), "{peak} bytes of memory");
    }
}

#[test]
fn env() {
    const STRINGS: usize = 800_000;
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 20]).unwrap();
        stream.write_all(&response(STRINGS)).unwrap();
    });
    let mut command = tool(&["env", "--json", "--timeout", "10m", "--socket", socket.to_str().unwrap()]);
    let (len, peak) = drained(command.stderr(Stdio::inherit()).spawn().unwrap());
    server.join().unwrap();
    assert!(len > 2 * STRINGS, "{len} bytes");
    assert!((1..LIMIT).contains(&peak), "{peak} bytes of memory");
}

/// The output of `counters` is in proportion to its input, and its memory is limited, whatever a program repeats: the
/// tags of a series, those of an instrument in each sample, or the labels with each quantile.
#[test]
fn counters() {
    let (mut tags, mut details, mut quantiles) = <(MeterEvents, MeterEvents, MeterEvents)>::default();
    let many_tags = "a=,".repeat(20_000);
    let long = format!("a={}", "x".repeat(30_000));
    let many_quantiles: Vec<String> = (0..5_000).map(|n| format!("0.{n:04}=1")).collect();
    details.instrument(7, Instrument { id: 1, tags: &long, ..HITS });
    (0..2_000).for_each(|_| _ = details.sample(2, Instrument { id: 1, ..HITS }, "", "1"));
    for id in 1..40 {
        let series = Instrument { id, ..HITS };
        tags.sample(2, series, &many_tags, "1");
        quantiles.quantiles(series, &long, &many_quantiles.join(";"));
    }
    for (name, events) in [("many-tags", tags), ("long-details", details), ("many-quantiles", quantiles)] {
        let file = events.write_in("counter-limits", name);
        let limit = 6 * usize::try_from(fs::metadata(&file).unwrap().len()).unwrap();
        let formats =
            [&[][..], &["--json"], &["--csv"], &["--format", "prometheus"], &["--format", "otlp-json"]];
        for format in formats {
            let child = tool(&[&["counters", "--file", &file], format].concat()).spawn().unwrap();
            let (len, peak) = drained(child);
            assert!((1..limit).contains(&len), "{name} {format:?}: {len} of {limit} bytes");
            // The tool can end before the memory is read, unless its output exceeds the room of a pipe and of a read.
            let is_known = peak > 0 || len < 256 << 10;
            assert!(is_known && peak < LIMIT, "{name} {format:?}: {peak} bytes of memory");
        }
    }
}
