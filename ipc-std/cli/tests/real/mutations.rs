//! Sends random mutations of valid requests to a real runtime and to a fake runtime of the same version. If the real
//! runtime responds, the fake runtime returns the same HRESULT or the same kind of OK. A fake runtime before .NET 11 is a
//! careful server, which never ends and never hangs. That of .NET 11 does what the real one does.
//!
//! The variable `MUTATIONS` sets the number of mutations for each runtime (default 200). `MUTATIONS_SEED` selects them.
use core::time::Duration;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use ipc_proto::plan::Flavour;
use ipc_proto::{Code, DecodeErrorKind, HResult, Message, Parsed, Request, RequestError, Violation};
use ipc_std::Client;
use ipc_testkit::{FakeRuntime, Profile};

use crate::runtime::{Runtime, each_runtime};

/// The received answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Ok,
    Refused(HResult),
    /// Bytes that are not an answer.
    Garbage,
    /// The end of the connection, without an answer.
    Closed,
    /// Nothing before the timeout.
    Silent,
}

/// Sends the request, closes the sending side, and reads the answer. Stops a session that the request has started.
fn exchange(socket: &Path, request: &[u8]) -> Answer {
    let Ok(mut stream) = UnixStream::connect(socket) else { return Answer::Closed };
    stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    // A runtime can answer and close before it has received all bytes, so errors of writing are ignored.
    let _ = stream.write_all(request).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answer = [0; 28];
    let mut len = 0;
    // A refusal has 24 bytes, and some runtimes do not close the connection after it.
    while len < answer.len() && !(len >= 24 && answer[16..18] == [0xff, 0xff]) {
        match stream.read(&mut answer[len..]) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return Answer::Silent,
            Err(_) => break,
        }
    }
    match (len, answer.starts_with(b"DOTNET_IPC_V1\0"), [answer[16], answer[17]]) {
        (0, ..) => Answer::Closed,
        (24.., true, [0xff, 0xff]) => {
            Answer::Refused(HResult(u32::from_le_bytes(answer[20..24].try_into().unwrap())))
        }
        (20.., true, [0xff, 0]) => {
            let started = request.get(16) == Some(&2) && request.get(17) != Some(&1);
            if started && len == 28 {
                stop_session(socket, &answer[20..28], stream);
            }
            Answer::Ok
        }
        _ => Answer::Garbage,
    }
}

/// Stops a session while its stream is read.
fn stop_session(socket: &Path, id: &[u8], mut stream: UnixStream) {
    let Ok(mut stop) = UnixStream::connect(socket) else { return };
    let _ = stop.write_all(&[b"DOTNET_IPC_V1\0\x1c\0\x02\x01\0\0", id].concat());
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
    let _ = stop.read(&mut [0; 64]);
}

/// Returns all recorded or derived requests except harmful ones.
fn valid_requests() -> Vec<Vec<u8>> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/messages"));
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut requests: Vec<PathBuf> =
        files.filter(|path| path.to_str().is_some_and(|path| path.ends_with(".request.hex"))).collect();
    requests.sort();
    let bytes = |path: PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let digits: String = text.lines().map(|line| line.split('#').next().unwrap_or_default()).collect();
        let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect::<Vec<u8>>()
    };
    requests.into_iter().map(bytes).filter(|request| !is_harmful(request)).collect()
}

/// Returns whether the request is a dump or a startup hook, with a path whose mutation could succeed.
fn is_harmful(request: &[u8]) -> bool {
    matches!(request.get(16..18), Some([1, _] | [4, 7]))
}

fn mutate(random: &mut fastrand::Rng, request: &mut Vec<u8>) {
    const ODD: [u32; 10] = [0, 1, 2, 4, 5, 6, 1000, 1001, 0x8000_0000, 0xffff_ffff];
    let mut resize = true;
    for _ in 0..random.usize(1..=3) {
        let len = request.len();
        let payload = 20.min(len)..len;
        match random.u8(0..8) {
            0 if !payload.is_empty() => request[random.usize(payload)] ^= 1 << random.u8(0..8),
            1 if !payload.is_empty() => request[random.usize(payload)] = random.u8(..),
            2 if payload.len() >= 4 => {
                let at = random.usize(20..=len - 4);
                request[at..at + 4].copy_from_slice(&ODD[random.usize(0..ODD.len())].to_le_bytes());
            }
            3 if len > 20 => request.truncate(random.usize(20..len)),
            4 => request.extend((0..random.usize(1..=8)).map(|_| random.u8(..))),
            5 if len >= 18 => request[17] = random.u8(0..10),
            6 if len >= 18 => request[random.usize(0..20.min(len))] ^= 1 << random.u8(0..8),
            7 => resize = false,
            _ => {}
        }
    }
    // In most cases the header has the right size. Otherwise the payload would not be tested.
    if resize && request.len() >= 20 {
        let size = u16::try_from(request.len()).unwrap();
        request[14..16].copy_from_slice(&size.to_le_bytes());
    }
}

/// Returns the reason why a fake runtime that does what the real one does can answer differently, if it is known.
fn known_reason_of_11(request: &[u8], theirs: Answer) -> Option<&'static str> {
    let Ok(Parsed::Complete { value: message, .. }) = Message::parse(request) else { return None };
    match (message.request(), theirs) {
        (Err(e), Answer::Silent | Answer::Closed) if e.kind == DecodeErrorKind::CountTooLarge => {
            Some("the runtime reserves memory for a count, which takes long or fails")
        }
        _ => None,
    }
}

/// Returns the reason why a careful server answers differently than this runtime, if it is known.
fn known_reason(request: &[u8], ours: Answer, theirs: Answer) -> Option<&'static str> {
    if matches!(theirs, Answer::Closed | Answer::Garbage | Answer::Silent) {
        return Some("the runtime ends, leaks, or answers with uninitialised memory");
    }
    if (ours, theirs) == (Answer::Refused(HResult::ENVVAR_NOT_FOUND), Answer::Ok) {
        return Some("the runtime has set this variable to bytes after the end of an earlier payload");
    }
    if request.get(16) == Some(&3) && ours == Answer::Refused(HResult::UNKNOWN_COMMAND) {
        return Some(".NET Core 3 takes every profiler command for AttachProfiler");
    }
    let Ok(Parsed::Complete { value: message, .. }) = Message::parse(request) else { return None };
    let checked = message.request().map_err(RequestError::from).and_then(Request::into_checked);
    match checked {
        Err(RequestError::Decode(_)) if ours == Answer::Refused(HResult::BAD_ENCODING) => {
            Some("the runtime reads past the end of the payload")
        }
        Err(RequestError::Violation { violation: Violation::DuplicateEventId, .. }) => {
            Some("this runtime accepts duplicate ids")
        }
        Err(RequestError::Violation { violation: Violation::VariableName, .. }) => {
            Some("this runtime accepts an empty name")
        }
        Err(RequestError::Violation { violation: Violation::PerfMapType, .. }) => {
            Some("this runtime does not check the type")
        }
        _ => None,
    }
}

fn profile(runtime: &Runtime) -> Profile {
    let Ok(info) = Client::at(&runtime.socket).process_info() else { return Profile::net31() };
    let version = info.clr_product_version.to_string();
    let version: u8 = version.split('.').next().unwrap().parse().unwrap();
    let flavour = if runtime.is_native() { Flavour::NativeAot } else { Flavour::CoreClr };
    Profile { version, flavour, careful: version < 11, ..Profile::net10() }
}

#[test]
fn a_mutated_request_has_the_same_answer() {
    let number = |name, default| std::env::var(name).map_or(default, |value| value.parse().unwrap());
    let mutations = number("MUTATIONS", 200);
    let valid = valid_requests();
    each_runtime(|start| {
        let start = || {
            let mut runtime = start(&[]);
            runtime.wait_for_socket();
            runtime
        };
        let mut random = fastrand::Rng::with_seed(number("MUTATIONS_SEED", 1));
        let mut real = start();
        let mut fake = FakeRuntime::start(profile(&real)).unwrap();
        let (mut alike, mut dead) = (0, 0_u32);
        let mut decisions = std::collections::BTreeMap::<_, u32>::new();
        let mut different = Vec::new();
        for _ in 0..mutations {
            let mut request = valid[random.usize(0..valid.len())].clone();
            mutate(&mut random, &mut request);
            if is_harmful(&request) {
                continue;
            }
            let ours = exchange(fake.path(), &request);
            let is_careful = fake.profile().careful;
            assert!(
                !is_careful || matches!(ours, Answer::Ok | Answer::Refused(_)),
                "{ours:?} to {request:02x?}"
            );
            let mut theirs = exchange(&real.socket, &request);
            if theirs == Answer::Closed && !real.ends_soon() {
                // The runtime did not end. If it closes the next connection without an answer, too, that is a
                // difference.
                theirs = exchange(&real.socket, &request);
                if theirs == Answer::Closed && !real.ends_soon() {
                    different.push((request, ours, theirs));
                    continue;
                }
            }
            let reason = || match theirs {
                Answer::Refused(HResult::NOT_YET_AVAILABLE) => {
                    Some("the runtime was just started again after it ended")
                }
                _ if is_careful => known_reason(&request, ours, theirs),
                _ => known_reason_of_11(&request, theirs),
            };
            if ours == theirs {
                alike += 1;
            } else if let Some(why) = reason() {
                *decisions.entry(why).or_default() += 1;
            } else {
                different.push((request, ours, theirs));
            }
            let ended = theirs == Answer::Silent || real.has_ended();
            dead += u32::from(ended);
            // After different answers the two can have different states: one has carried out what the other has refused. A
            // runtime that hangs is replaced like one that has ended.
            if ended || ours != theirs {
                real = start();
                fake = FakeRuntime::start(profile(&real)).unwrap();
            }
        }
        eprintln!("{}: {alike} equal, {decisions:?}, ended {dead} times", real.name);
        for (request, ours, theirs) in different.iter().take(20) {
            let code = request.get(16..18).map(|code| Code(u16::from_be_bytes(code.try_into().unwrap())));
            let hex: String = request.iter().map(|byte| format!("{byte:02x}")).collect();
            eprintln!("  {code:?}: ours {ours:?}, theirs {theirs:?}: {hex}");
        }
        let excused = decisions.values().sum::<u32>();
        assert!(alike > excused, "{}: more answers have a known reason than are equal", real.name);
        assert!(different.is_empty(), "{}: {} different", real.name, different.len());
    });
}
