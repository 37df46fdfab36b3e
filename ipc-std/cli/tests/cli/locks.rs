//! Tests of `dotnet-ipc locks`: a recorded trace, and traces that the tests write.

use std::fs;

use ipc_proto::{Code, CollectTracing4};
use ipc_testkit::{FakeRuntime, Profile, Response};
use nettrace::{Event, Metadata, Stack, Trace, TraceWriter, Version};
use serde_json::{Value, json};

use crate::tool::{run, run_with};
use crate::traces::{analysed, put, utf16};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
const COLLECT_TRACING_4: Code = Code(0x0205);

/// The events that the tests write.
const KINDS: [(&str, u32, u32); 5] =
    [(RUNTIME, 81, 2), (RUNTIME, 91, 1), (SAMPLER, 0, 0), (RUNDOWN, 144, 1), (RUNDOWN, 187, 0)];

const ENTER: u64 = 0x1000;
const POST: u64 = 0x2000;
const FLUSH: u64 = 0x3000;

/// A trace, by its events.
#[derive(Default)]
struct Written(Vec<WrittenEvent>);

struct WrittenEvent {
    ms: u64,
    thread: u64,
    /// The index in [`KINDS`], from 1 on.
    kind: u32,
    payload: Vec<u8>,
    stack: Vec<u64>,
}

impl Written {
    /// Begins with the names of the methods, and the version of the runtime.
    fn new(version: u16) -> Self {
        let mut trace = Self::default();
        for (start, type_name, method) in [
            (ENTER, "System.Threading.Monitor", "Enter"),
            (POST, "Contoso.Orders.AccountLedger", "PostBooking"),
            (FLUSH, "Contoso.Orders.AuditTrail", "Flush"),
        ] {
            let numbers = [start, 1, start].map(u64::to_le_bytes).concat();
            let sizes = [0x100_u32, 0, 0].map(u32::to_le_bytes).concat();
            let names = [type_name, method, "void (class System.String)"].map(utf16).concat();
            trace.put(1, 1, 4, &[numbers, sizes, names].concat(), &[]);
        }
        trace.put(1, 1, 5, &[0, 2, 10, 0, 12, 0, version].map(u16::to_le_bytes).concat(), &[]);
        trace
    }

    fn put(&mut self, ms: u64, thread: u64, kind: u32, payload: &[u8], stack: &[u64]) {
        self.0.push(WrittenEvent { ms, thread, kind, payload: payload.to_vec(), stack: stack.to_vec() });
    }

    /// The thread begins to wait for a lock.
    fn start(&mut self, ms: u64, thread: u64, (lock, owner): (u64, u64), stack: &[u64]) -> &mut Self {
        let numbers = [lock, 0xaa, owner].map(u64::to_le_bytes).concat();
        self.put(ms, thread, 1, &[&[0; 3][..], &numbers].concat(), stack);
        self
    }

    fn stop(&mut self, ms: u64, thread: u64) -> &mut Self {
        self.put(ms, thread, 2, &[&[0; 3][..], &7e9_f64.to_le_bytes()].concat(), &[]);
        self
    }

    /// The thread is sampled outside managed code.
    fn sample(&mut self, ms: u64, thread: u64, stack: &[u64]) -> &mut Self {
        self.put(ms, thread, 3, &1_u32.to_le_bytes(), stack);
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let (mut buf, mut trace) = (vec![0; 64 << 10], Vec::new());
        let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
        for (id, (provider, event_id, version)) in (1..).zip(KINDS) {
            let mut metadata = Metadata::new(id, provider, event_id, "");
            metadata.version = version;
            put!(trace, writer.describe(&metadata));
        }
        for (id, event) in (1..).zip(&self.0) {
            let bytes: Vec<u8> = event.stack.iter().flat_map(|address| address.to_le_bytes()).collect();
            put!(trace, writer.stack(&Stack { id, bytes: &bytes }));
        }
        for (sequence, WrittenEvent { ms, thread, kind, payload, stack }) in (1..).zip(&self.0) {
            let event = Event {
                metadata_id: *kind,
                sequence,
                thread: *thread,
                timestamp: ms * 1_000_000,
                payload,
                stack_id: if stack.is_empty() { 0 } else { sequence },
                ..Event::default()
            };
            put!(trace, writer.event(&event));
        }
        trace.extend_from_slice(&writer.finish());
        trace
    }

    fn text(&self, options: &[&str]) -> String {
        run_with(&[&["locks", "-"], options].concat(), self.bytes()).well().into_text()
    }

    fn json(&self) -> Value {
        run_with(&["locks", "-", "--json"], self.bytes()).well().json()
    }
}

fn recorded() -> String {
    analysed("net10-locks.nettrace")
}

#[test]
fn a_deadlock_comes_first() {
    let text = run(&["locks", &recorded()]).well().into_text();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("10 waits for 4 locks in 4.29 s: 12.46 s together, "), "{text}");
    assert_eq!(lines[2], "deadlock: 9893 waits for 9896, which waits for 9893, for 3.03 s");
    assert!(
        text.contains("\n  owner: 9893 (.NET ThreadPool), waiting for lock 0x55f51a0c0318, in\n"),
        "{text}"
    );
    let json = run(&["locks", &recorded(), "--json"]).well().json();
    let cycle = json["cycles"][0]["threads"].as_array().unwrap();
    let threads: Vec<_> = cycle.iter().map(|of| (&of["thread_id"], &of["lock"])).collect();
    let [first, second] = [&json["locks"][0], &json["locks"][1]];
    assert_eq!(threads, [(&json!(9893), &second["lock"]), (&json!(9896), &first["lock"])]);
    assert_eq!((&first["owner"]["thread_id"], &first["waits"]), (&json!(9893), &json!(3)));
    assert_eq!(first["owner"]["waits_for"], json!({ "lock": second["lock"], "since_before": false }));
    assert_eq!(
        (&json["waits"], &json["lost"], &json["ended_before"]["waits"]),
        (&json!(10), &json!(0), &json!(0))
    );
    let short = run(&["locks", &recorded(), "--top", "1"]).well().into_text();
    assert!(short.ends_with("\n3 more locks; --top 4 shows all\n"), "{short}");
}

#[test]
fn methods_that_wait_and_hold() {
    let mut trace = Written::new(10);
    for (start, stop) in [(10, 30), (50, 60)] {
        trace.start(start, 29_533, (0x70, 29_534), &[ENTER, POST]);
        trace.sample(start + 1, 29_534, &[FLUSH]).stop(stop, 29_533);
    }
    let expected = "\
2 waits for 1 lock in 60.00 ms: 30.00 ms together, the longest 20.00 ms

lock 0x70: 2 waits, 30.00 ms, the longest 20.00 ms
  waits in 2  Contoso.Orders.AccountLedger.PostBooking
  held in   100 %  Contoso.Orders.AuditTrail.Flush
";
    let text = trace.text(&["--short"]);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&text), words(expected), "{text}");
    // The program can be another one.
    let text = trace.text(&["--short", "--own", "System.Threading"]);
    assert!(text.contains(" System.Threading.Monitor.Enter\n") && !text.contains("held in"), "{text}");
    let json = trace.json();
    let lock = &json["locks"][0];
    assert_eq!(
        (&lock["lock"], &lock["object"], &lock["owner"]),
        (&json!("0x70"), &json!("0xaa"), &Value::Null)
    );
    let method = &lock["methods"][0];
    assert_eq!(
        *method,
        json!({
            "method": "ManagedModule!Contoso.Orders.AccountLedger.PostBooking(class System.String)",
            "own": true,
            "waits": 2,
            "wait_ms": 30.0,
            "longest_ms": 20.0,
        })
    );
    assert_eq!((&lock["held_in"][0]["samples"], &lock["held_samples"]), (&json!(2), &json!(2)));
}

/// What a late recording shows of a deadlock: threads that wait in all samples, and one more that waits for one of them.
#[test]
fn waits_from_before_the_recording() {
    let mut trace = Written::new(10);
    for ms in [10, 20, 30] {
        for thread in 100..122 {
            trace.sample(ms, thread, &[ENTER, POST]);
        }
    }
    let waiting = "22 threads wait for locks since before the recording:\n    22  Contoso.Orders.AccountLedger.PostBooking\n        \
                   threads 100, 101, 102, 103, 104 and 17 more\n";
    let text = trace.text(&["--short"]);
    assert!(
        text.starts_with("No thread began to wait for a lock in 30.00 ms\n\n") && text.ends_with(waiting),
        "{text}"
    );
    trace.start(40, 200, (0x70, 100), &[ENTER, FLUSH]);
    // One wait has ended, after seven seconds.
    trace.stop(45, 121);
    let text = trace.text(&["--short"]);
    for expected in [
        "\n1 more began before the recording and have ended: the longest took 7.00 s\n",
        "\nperhaps a deadlock: 1 thread waits for 100, which itself waits for a lock\n",
        "\n21 threads wait for locks since before the recording:\n",
        "\n  owner: 100, itself waiting for a lock, in\n",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let json = trace.json();
    let lock = &json["locks"][0];
    assert_eq!((&lock["perhaps_deadlock"], &json["cycles"]), (&json!(true), &json!([])));
    assert_eq!(lock["owner"]["waits_for"], json!({ "lock": null, "since_before": true }));
    let group = &json["waiting_before"][0];
    assert_eq!((&group["kind"], &group["count"], &group["own"]), (&json!("lock"), &json!(21), &json!(true)));
}

/// A managed number without its thread is shown as that.
#[test]
fn unknown_owners() {
    let mut trace = Written::new(11);
    trace.start(10, 29_533, (0x70, 5), &[ENTER, POST]).start(20, 29_534, (0x80, 0), &[ENTER, POST]);
    let text = trace.text(&[]);
    assert!(text.contains("\n  owner: number 5, a thread without an id in the trace\n"), "{text}");
    assert!(
        text.contains("\n  owner: the runtime does not know it\n") && !text.contains("deadlock"),
        "{text}"
    );
    let json = trace.json();
    let owners: Vec<_> = json["locks"].as_array().unwrap().iter().map(|lock| &lock["owner"]).collect();
    assert_eq!(
        (&owners[0]["thread_id"], &owners[0]["number"], owners[1]),
        (&Value::Null, &json!(5), &Value::Null)
    );
}

/// Nothing found is not a failure, and a note says what a trace would need.
#[test]
fn no_waits() {
    let ran = run(&["locks", &analysed("net10-collections.nettrace")]);
    assert!(
        ran.status == Some(0) && ran.text().starts_with("No thread began to wait for a lock in "),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("--profile sick"), "{ran:?}");
    let mut trace = Written::new(10);
    trace.start(10, 7, (0x70, 0), &[]).stop(20, 7);
    let ran = run_with(&["locks", "-"], trace.bytes());
    assert!(ran.status == Some(0) && ran.stderr.starts_with("note: the waits have no stacks: "), "{ran:?}");
    let bytes = trace.bytes();
    let ran = run_with(&["locks", "-"], &bytes[..bytes.len() - 30]);
    assert!(ran.status == Some(6) && ran.stderr.contains("truncated"), "{ran:?}");
}

#[test]
fn a_process_is_recorded_with_its_threads() {
    let runtime = FakeRuntime::start(Profile::net10()).unwrap();
    let trace = fs::read(recorded()).unwrap();
    runtime.on(COLLECT_TRACING_4, move |_| Response::Trace(trace.clone()));
    let args = ["locks", "--socket", runtime.path().to_str().unwrap(), "--duration", "100ms"];
    assert_eq!(run(&args).well().into_text(), run(&["locks", &recorded()]).well().into_text());
    let requests = runtime.requests();
    let request = requests.iter().find(|request| request.code() == Some(COLLECT_TRACING_4)).unwrap();
    let session: CollectTracing4<'_> = request.message().unwrap().decode().unwrap();
    // Methods and modules, and threads with their numbers.
    assert_eq!(session.rundown_keyword, 0x10138);
    let providers: Vec<_> = session.providers.iter().map(|of| (of.name.to_string(), of.keywords)).collect();
    assert!(providers.iter().any(|(name, _)| name == SAMPLER), "{providers:?}");
    assert!(
        providers.iter().any(|(name, keywords)| name == RUNTIME && keywords & 0x14000 == 0x14000),
        "{providers:?}"
    );
}

/// Each lock has the stack of its owner, 27 KB here: its object is made, written and dropped before the next one.
#[cfg(target_os = "linux")]
#[test]
fn json_is_written_lock_by_lock() {
    const CALL: u64 = 0x4000;
    const HOLDER: u64 = 7;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("locks.nettrace");
    let [few, many] = [10, 500].map(|locks| {
        let mut trace = Written::new(10);
        let numbers = [CALL, 1, CALL].map(u64::to_le_bytes).concat();
        let sizes = [0x100_u32, 0, 0].map(u32::to_le_bytes).concat();
        let names = [&"N".repeat(400)[..], "Call", "void ()"].map(utf16).concat();
        trace.put(1, 1, 4, &[numbers, sizes, names].concat(), &[]);
        for lock in 0..locks {
            trace.start(10, 100 + lock, (0x1_0000 + lock, HOLDER), &[CALL]);
        }
        trace.sample(20, HOLDER, &[CALL; 100]);
        fs::write(&file, trace.bytes()).unwrap();
        crate::memory::drained(
            crate::tool::tool(&["locks", file.to_str().unwrap(), "--json"]).spawn().unwrap(),
        )
    });
    let (text, memory) = (many.0 - few.0, many.1.saturating_sub(few.1));
    assert!(text > 13_000_000 && memory < 4_000_000, "{few:?} {many:?}");
}

/// Threads that block on a task wait on a handle. The waits of timers and of idle threads of the pool are apart.
#[test]
fn waits_on_handles() {
    let trace = analysed("../sick/handle.nettrace");
    let row = run(&["locks", &trace, "--json", "--short"]).json();
    let handles = row["handles"].as_array().unwrap();
    assert_eq!(
        (handles.len(), &handles[0]["method"]),
        (1, &"Contoso.Orders.InventoryClient.GetStock".into())
    );
    assert_eq!((&handles[0]["waits"], &row["other_handles"]["waits"]), (&13.into(), &58.into()));
    let report = run(&["report", &trace, "--waits", "--json"]).json();
    let idle = &report["idle_waits"];
    assert_eq!((&idle["timers"], &idle["pool"], &report["samples"]), (&34.into(), &16.into(), &22.into()));
    let waited: f64 = ["timers_ms", "pool_ms"].iter().map(|key| idle[key].as_f64().unwrap()).sum();
    let all = report["total"].as_f64().unwrap() / 1e6 + waited;
    // The same waits, added up in another way. In the report, a wait for a lock of 1.5 ms is one on a handle too.
    let by_locks =
        handles[0]["wait_ms"].as_f64().unwrap() + row["other_handles"]["wait_ms"].as_f64().unwrap();
    assert!((1.0..2.0).contains(&(all - by_locks)), "{all} {by_locks}");
}
