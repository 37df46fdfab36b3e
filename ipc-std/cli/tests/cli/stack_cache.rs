//! The names that `dotnet-ipc stack` stores for its next run.

use core::time::Duration;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ipc_proto::{Code, Guid};
use ipc_testkit::{FakeRuntime, Profile, Response};
use nettrace::{Event, Metadata, Stack, Trace, TraceWriter, Version};
use serde_json::Value;

use crate::tool::{Ran, finish, tool};
use crate::traces::{analysed, put};

/// Sessions without rundown, and with one.
const SAMPLES: Code = Code(0x0203);
const RUNDOWN: Code = Code(0x0205);
const PROCESS_INFO_2: Code = Code(0x0404);

/// A runtime and an empty folder for caches.
struct Fixture {
    runtime: FakeRuntime,
    caches: tempfile::TempDir,
    requests: usize,
}

impl Fixture {
    /// Starts a runtime that sends this trace.
    fn new(trace: &[u8]) -> Self {
        let runtime = FakeRuntime::start(Profile::net10()).unwrap();
        for code in [SAMPLES, RUNDOWN] {
            let trace = trace.to_vec();
            runtime.on(code, move |_| Response::Trace(trace.clone()));
        }
        Self { runtime, caches: tempfile::tempdir().unwrap(), requests: 0 }
    }

    fn run(&self, options: &[&str]) -> Ran {
        let socket = self.runtime.path().to_str().unwrap();
        let mut command = tool(&[&["stack", "--json", "--socket", socket], options].concat());
        finish(command.env("XDG_CACHE_HOME", self.caches.path()).spawn().unwrap())
    }

    /// Runs `stack`. Returns the threads that it shows, and the commands of its sessions.
    fn stack(&mut self, options: &[&str]) -> (Vec<Value>, Vec<Code>) {
        let threads = self.run(options).well().lines();
        let requests = self.runtime.requests();
        let codes = requests[self.requests..].iter().filter_map(|request| request.code());
        let sessions = codes.filter(|code| [SAMPLES, RUNDOWN].contains(code)).collect();
        self.requests = requests.len();
        (threads, sessions)
    }

    fn folder(&self) -> PathBuf {
        self.caches.path().join("dotnet-ipc")
    }

    /// Returns the path of the runtime's file in the cache.
    fn file(&self) -> PathBuf {
        let Profile { process_id, runtime_cookie, .. } = self.runtime.profile();
        self.folder().join(format!("rundown-{process_id}-{runtime_cookie}.nettrace"))
    }
}

fn startup() -> Vec<u8> {
    fs::read(analysed("net10-startup.nettrace")).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn the_second_stack_has_the_names_of_the_first() {
    let mut fixture = Fixture::new(&startup());
    let (first, sessions) = fixture.stack(&[]);
    assert_eq!(sessions, [RUNDOWN]);
    assert!(first.iter().any(|thread| thread["frames"].to_string().contains("System.Private.CoreLib!")));
    let file = fixture.file();
    assert_eq!((mode(&file), mode(&fixture.folder())), (0o600, 0o700));
    assert_eq!(fs::read_dir(fixture.folder()).unwrap().count(), 1);
    let inode = fs::metadata(&file).unwrap().ino();
    let (second, sessions) = fixture.stack(&[]);
    assert_eq!((sessions, second == first), (vec![SAMPLES], true));
    assert_eq!(fs::metadata(&file).unwrap().ino(), inode);

    let (third, sessions) = fixture.stack(&["--no-cache"]);
    assert_eq!((sessions, third == first), (vec![RUNDOWN], true));
    assert_eq!(fs::metadata(&file).unwrap().ino(), inode);
}

#[test]
fn another_runtime_of_the_process_has_its_own_names() {
    let mut fixture = Fixture::new(&startup());
    let (first, _) = fixture.stack(&[]);
    let mut profile = Profile::net10();
    profile.runtime_cookie = Guid([7; 16]);
    fixture.runtime = FakeRuntime::start(profile).unwrap();
    fixture.requests = 0;
    for code in [SAMPLES, RUNDOWN] {
        fixture.runtime.on(code, |_| Response::Trace(startup()));
    }
    let (other, sessions) = fixture.stack(&[]);
    assert_eq!((sessions, other == first), (vec![RUNDOWN], true));
    assert_eq!(fs::read_dir(fixture.folder()).unwrap().count(), 2);
    // A runtime without a cookie has no place in the cache.
    fixture.runtime.on(PROCESS_INFO_2, |_| Response::Refuse(ipc_proto::HResult::UNKNOWN_COMMAND));
    for code in [Code(0x0400), Code(0x0408)] {
        fixture.runtime.on(code, |_| Response::Refuse(ipc_proto::HResult::UNKNOWN_COMMAND));
    }
    assert_eq!(fixture.stack(&[]).1, [RUNDOWN]);
}

#[test]
fn a_file_that_another_user_may_have_written_is_not_read() {
    let trace = startup();
    let mut fixture = Fixture::new(&trace);
    let (expected, _) = fixture.stack(&[]);
    let file = fixture.file();
    let good = fs::read(&file).unwrap();
    let beside = fixture.caches.path().join("beside");
    fs::write(&beside, &good).unwrap();
    fs::set_permissions(&beside, Permissions::from_mode(0o600)).unwrap();
    let write = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    };
    let faults: [(&str, &dyn Fn()); 8] = [
        ("empty", &|| write(&[])),
        ("truncated", &|| write(&good[..good.len() - 1])),
        ("half", &|| write(&good[..good.len() / 2])),
        ("garbage", &|| write(&good.iter().map(|byte| byte ^ 0x55).collect::<Vec<_>>())),
        ("readable by others", &|| {
            write(&good);
            fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        }),
        ("a symbolic link", &|| {
            fs::remove_file(&file).unwrap();
            symlink(&beside, &file).unwrap();
        }),
        ("a second name", &|| {
            fs::remove_file(&file).unwrap();
            fs::hard_link(&beside, &file).unwrap();
        }),
        ("too long", &|| {
            write(&good);
            File::options().write(true).open(&file).unwrap().set_len((64 << 20) + 1).unwrap();
        }),
    ];
    for (fault, make) in faults {
        make();
        let (threads, sessions) = fixture.stack(&[]);
        assert_eq!((sessions, threads == expected), (vec![RUNDOWN], true), "{fault}");
        // The file was replaced. If it was a link, its target was not replaced.
        let (threads, sessions) = fixture.stack(&[]);
        assert_eq!((sessions, threads == expected), (vec![SAMPLES], true), "{fault}");
        assert!(mode(&file) == 0o600 && !file.is_symlink() && fs::read(&beside).unwrap() == good, "{fault}");
    }
    // A folder in the place of the file cannot be replaced, which is not an error.
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    for _ in 0..2 {
        let (threads, sessions) = fixture.stack(&[]);
        assert_eq!((sessions, threads == expected), (vec![RUNDOWN], true));
    }
    assert_eq!(fs::read_dir(fixture.folder()).unwrap().count(), 1);
}

#[test]
fn a_folder_that_another_user_may_write_to_is_not_used() {
    let mut fixture = Fixture::new(&startup());
    fixture.stack(&[]);
    let (folder, away) = (fixture.folder(), fixture.caches.path().join("away"));
    for mode in [0o770, 0o702] {
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        assert_eq!(fixture.stack(&[]).1, [RUNDOWN], "{mode:o}");
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(fixture.stack(&[]).1, [SAMPLES]);
    fs::rename(&folder, &away).unwrap();
    symlink(&away, &folder).unwrap();
    assert_eq!(fixture.stack(&[]).1, [RUNDOWN]);
    fs::remove_file(&folder).unwrap();
    fs::write(&folder, "a file").unwrap();
    assert_eq!(fixture.stack(&[]).1, [RUNDOWN]);
    assert_eq!(fs::read_to_string(&folder).unwrap(), "a file");
}

#[test]
fn old_files_are_removed() {
    let mut fixture = Fixture::new(&startup());
    let folder = fixture.folder();
    fs::create_dir(&folder).unwrap();
    let cookie = "01010101-0101-0101-0101-010101010101";
    let mut ended = tool(&["--version"]).spawn().unwrap();
    ended.wait().unwrap();
    let own = std::process::id();
    let week = Duration::from_secs(7 * 24 * 60 * 60);
    let write = |name: &str, age: Duration| {
        let file = File::create(folder.join(name)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    };
    let hour = Duration::from_secs(3600);
    write(&format!("rundown-{}-{cookie}.nettrace", ended.id()), Duration::ZERO);
    write(&format!("rundown-{own}-{cookie}.nettrace"), week + hour);
    write(&format!("rundown-{own}-new.nettrace"), week - hour);
    write(".rundown-old", week + hour);
    write(".rundown-new", Duration::ZERO);
    write("another", week * 10);
    write("rundown-name.nettrace", week * 10);
    fixture.stack(&[]);
    let names = || {
        let files = fs::read_dir(&folder).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let this = fixture.file().file_name().unwrap().to_str().unwrap().to_owned();
    let mut expected =
        [".rundown-new", "another", &format!("rundown-{own}-new.nettrace"), "rundown-name.nettrace", &this]
            .map(str::to_owned);
    expected.sort();
    assert_eq!(names(), expected);

    for age in 0..40 {
        write(&format!("rundown-{own}-{age}.nettrace"), hour * (age + 1));
    }
    fs::remove_file(folder.join(&this)).unwrap();
    fixture.stack(&[]);
    let names = names();
    let stored: Vec<_> =
        names.iter().filter(|name| name.contains("rundown-") && *name != "rundown-name.nettrace").collect();
    assert_eq!(stored.len(), 32);
    assert!(stored.contains(&&this) && stored.contains(&&format!("rundown-{own}-29.nettrace")));
    assert!(!stored.contains(&&format!("rundown-{own}-30.nettrace")));
}

/// Without a folder for caches, the names come from the process.
#[test]
fn there_may_be_no_folder() {
    let mut fixture = Fixture::new(&startup());
    let caches = fixture.caches.path().to_owned();
    fs::set_permissions(&caches, Permissions::from_mode(0o500)).unwrap();
    // Root can write to the folder anyway, so the sessions are not checked.
    let (threads, _) = fixture.stack(&[]);
    fs::set_permissions(&caches, Permissions::from_mode(0o700)).unwrap();
    for folder in ["", "relative"] {
        let socket = fixture.runtime.path().to_str().unwrap().to_owned();
        let mut command = tool(&["stack", "--json", "--socket", &socket]);
        let command = command.env("XDG_CACHE_HOME", folder).current_dir(&caches);
        assert_eq!(finish(command.spawn().unwrap()).well().lines(), threads);
        assert!(!caches.join("relative").exists());
    }
    fs::remove_dir_all(fixture.folder()).ok();
    let socket = fixture.runtime.path().to_str().unwrap().to_owned();
    let mut command = tool(&["stack", "--json", "--socket", &socket]);
    finish(command.env("HOME", &caches).spawn().unwrap()).well();
    let folder = caches.join(".cache/dotnet-ipc");
    assert_eq!((mode(&folder), mode(&caches.join(".cache"))), (0o700, 0o700));
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
}

/// The assembly, the flags and the name of a method.
struct Method {
    collectible: bool,
    flags: u32,
    name: &'static str,
}

/// Returns a trace with one sample in this method, and with the rundown. `has_collectible` adds an assembly that can be
/// unloaded.
fn sampled(method: &Method, has_collectible: bool, has_module: bool) -> Vec<u8> {
    let utf16 = |text: &str| text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let long = |numbers: &[u64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let short = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let assembly = |id: u64, flags: u32| [long(&[id, 1, 0]), short(&[flags]), utf16("Shop")].concat();
    let mut rows = vec![
        (
            2,
            [
                long(&[1, 7, 0x1000]),
                short(&[0x100, 0, method.flags]),
                utf16("Cart"),
                utf16(method.name),
                utf16("()"),
            ]
            .concat(),
        ),
        (4, assembly(70, if method.collectible { 8 } else { 0 })),
    ];
    if has_module {
        rows.push((3, [long(&[7, 70]), short(&[0, 0]), utf16("/shop.dll"), utf16("")].concat()));
    }
    if has_collectible {
        rows.push((4, assembly(71, 8)));
    }
    let (mut buf, mut trace) = (vec![0; 64 << 10], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    let rundown = "Microsoft-Windows-DotNETRuntimeRundown";
    for (id, provider, event_id, version) in [
        (1, "Microsoft-DotNETCore-SampleProfiler", 0, 0),
        (2, rundown, 144, 1),
        (3, rundown, 154, 2),
        (4, rundown, 156, 1),
    ] {
        let mut metadata = Metadata::new(id, provider, event_id, "");
        metadata.version = version;
        put!(trace, writer.describe(&metadata));
    }
    put!(trace, writer.stack(&Stack { id: 1, bytes: &long(&[0x1010, 0x9000]) }));
    let sample = (1, vec![2, 0, 0, 0]);
    for (sequence, (metadata_id, payload)) in (1..).zip([sample].into_iter().chain(rows)) {
        let stack_id = u32::from(metadata_id == 1);
        put!(
            trace,
            writer.event(&Event { metadata_id, stack_id, sequence, payload: &payload, ..Event::default() })
        );
    }
    trace.extend_from_slice(&writer.finish());
    trace
}

/// The address of code that can be freed can have other code the next time.
#[test]
fn code_that_can_be_freed_has_no_name_in_the_cache() {
    let method = |collectible, flags, name| Method { collectible, flags, name };
    for (method, has_collectible, has_module, is_cached) in [
        (method(false, 8, "Add"), false, true, true),
        (method(false, 8, "Add"), true, true, true),
        (method(false, 8, "Add"), false, false, false),
        (method(true, 8, "Add"), false, true, false),
        // Generic: its type argument can be of any assembly.
        (method(false, 0xa, "Add"), false, true, true),
        (method(false, 0xa, "Add"), true, true, false),
        (method(false, 0xc, "Add"), true, true, false),
        // Dynamic, unless it is a stub.
        (method(false, 9, "Add"), false, true, false),
        (method(false, 9, "IL_STUB_PInvoke"), false, true, true),
        (method(false, 9, "IL_STUB_PInvoke"), true, true, false),
    ] {
        let case = (method.collectible, method.flags, method.name, has_collectible, has_module);
        let mut fixture = Fixture::new(&sampled(&method, has_collectible, has_module));
        let (first, sessions) = fixture.stack(&[]);
        assert_eq!(sessions, [RUNDOWN]);
        let name = format!("{}!Cart.{}()", if has_module { "shop" } else { "ManagedModule" }, method.name);
        assert_eq!(first[0]["frames"], serde_json::json!([name, "?!?"]), "{case:?}");
        let (second, sessions) = fixture.stack(&[]);
        let expected = if is_cached { vec![SAMPLES] } else { vec![SAMPLES, RUNDOWN] };
        assert_eq!((sessions, second), (expected, first), "{case:?}");
    }
}

/// A thread can run code that was compiled after the rundown.
#[test]
fn new_code_is_named_by_the_process() {
    let old = Method { collectible: false, flags: 8, name: "Add" };
    let mut fixture = Fixture::new(&sampled(&old, false, true));
    fixture.stack(&[]);
    let moved = sampled(&old, false, true);
    let place = moved.windows(8).position(|bytes| bytes == 0x1010_u64.to_le_bytes()).unwrap();
    let mut moved = moved;
    moved[place..place + 8].copy_from_slice(&0x1110_u64.to_le_bytes());
    for code in [SAMPLES, RUNDOWN] {
        let moved = moved.clone();
        fixture.runtime.on(code, move |_| Response::Trace(moved.clone()));
    }
    assert_eq!(fixture.stack(&[]).1, [SAMPLES, RUNDOWN]);
    // The process itself has no name for the new code, so no second rundown is requested for it.
    assert_eq!(fixture.stack(&[]).1, [SAMPLES]);
}
