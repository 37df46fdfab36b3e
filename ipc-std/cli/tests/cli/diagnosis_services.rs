//! Tests of `dotnet-ipc diagnose` on made recordings: sick services and their healthy twins, each in many forms that
//! must not change the findings.
use core::ops::Range;
use std::collections::BTreeMap;

use nettrace::Scalar;
use serde_json::Value;

use crate::runtime_events::{Written, numbers, utf16};
use crate::tool::run_with;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
const COUNTERS: &str = "System.Runtime";
const HOSTING: &str = "Microsoft.AspNetCore.Hosting";

pub(crate) const POOL: &[&str] = &[
    "System.Threading.ThreadPoolWorkQueue.Dispatch",
    "System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart",
];
pub(crate) const LOCK: &[&str] =
    &["System.Threading.Monitor.Enter_Slowpath", "System.Threading.Monitor.Enter"];
pub(crate) const TASK: &[&str] = &[
    "System.Threading.ManualResetEventSlim.Wait",
    "System.Threading.Tasks.Task.SpinThenBlockingWait",
    "System.Threading.Tasks.Task.InternalWaitCore",
];
pub(crate) const SIGNAL: &[&str] =
    &["System.Threading.WaitHandle.WaitOneNoCheck", "System.Threading.WaitHandle.WaitOne"];
const SOCKET: &[&str] = &["Interop+Sys.Receive", "System.Net.Sockets.Socket.Receive"];
pub(crate) const IDLE: &[&str] = &["System.Threading.LowLevelLifoSemaphore.WaitForSignal"];
pub(crate) const WORK: &[&str] = &["System.String.Concat"];

/// A form of the same recording.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Form {
    /// Added to the numbers of threads, whose order is reversed.
    thread_offset: u64,
    /// The number of the other names that the methods have: one more than the place in `OTHER_NAMES`.
    names: usize,
    has_idle_threads: bool,
    /// Adds a healthy process; the trace has version 6.
    has_other_process: bool,
    is_version_6: bool,
    /// Adds threads of the pool that read sockets.
    has_healthy_group: bool,
    /// The timestamp at the start of the trace.
    clock: u64,
    /// The recording lasts so many times as long.
    times: u64,
}

impl Form {
    pub(crate) fn plain() -> Self {
        Self { times: 1, ..Self::default() }
    }

    fn all() -> Vec<Self> {
        let plain = Self::plain();
        vec![
            plain,
            Self { thread_offset: 7_000, ..plain },
            Self { names: 1, ..plain },
            Self { names: 2, ..plain },
            Self { has_healthy_group: true, ..plain },
            Self { clock: 1 << 60, ..plain },
            Self { clock: 1 << 60, is_version_6: true, ..plain },
            Self { has_idle_threads: true, ..plain },
            Self { has_other_process: true, is_version_6: true, ..plain },
            Self { is_version_6: true, ..plain },
            Self { times: 2, ..plain },
        ]
    }
}

/// Names of the program as compilers of several languages spell them.
const OTHER_NAMES: [[(&str, &str); 5]; 2] = [
    [
        ("Shop.Program.Main", "Startup@.main@"),
        ("Shop.Stock.Get", "Shop.Stock`1[Shop.Key`1[System.Int32]].Get"),
        ("Shop.Orders.Pay", "Program+<>c.<<Main>$>b__0_2"),
        ("Shop.Prices.Parse", "Microsoft.Shop.Order.Finalize"),
        ("Shop.Report.Build", "Money.op_Addition"),
    ],
    // Namespaces of the framework in a module of the program, a local function, and a method without a type.
    [
        ("Shop.Program.Main", "<StartupCode$Shop>.$Program.main@"),
        ("Shop.Stock.Get", "Internal.Stock.<Get>g__Wait|3_0"),
        ("Shop.Orders.Pay", "Microsoft.Extensions.DependencyInjection.Orders.Pay"),
        ("Shop.Prices.Parse", ".Interop"),
        ("Shop.Report.Build", "System.Text.Report.Build"),
    ],
];

/// A recording of a service, in milliseconds.
pub(crate) struct Service {
    written: Written,
    form: Form,
    addresses: BTreeMap<&'static str, u64>,
    end: u64,
    collections: u32,
}

impl Service {
    pub(crate) fn new(form: Form, seconds: u64) -> Self {
        let mut written = Written::new();
        written.describe(HOSTING, (3, 0), "RequestStart", &["method", "path"]);
        written.describe(HOSTING, (4, 0), "RequestStop", &[]);
        written.describe(RUNTIME, (80, 1), "ExceptionThrown", &["ExceptionType"]);
        written.clock(form.clock);
        let end = seconds * 1_000 * form.times;
        let mut service = Self { written, form, addresses: BTreeMap::new(), end, collections: 0 };
        if form.is_version_6 {
            service.written.process(77);
        }
        service.waits(1, &[SIGNAL, &["Shop.Program.Main"]], 0..service.end);
        if form.has_idle_threads {
            (900..930).for_each(|thread| service.waits(thread, &[IDLE, POOL], 0..service.end));
        }
        if form.has_healthy_group {
            (300..304).for_each(|thread| {
                service.waits(thread, &[SOCKET, &["Shop.Feed.Poll"], POOL], 0..service.end);
            });
        }
        if form.has_other_process {
            service.written.process(88);
            (1..9).for_each(|thread| service.waits(thread, &[IDLE, POOL], 0..service.end));
            service.written.process(77);
        }
        service
    }

    /// Returns the part of the recording from and to these shares of it.
    fn part(&self, from: u64, to: u64) -> Range<u64> {
        self.end * from / 10..self.end * to / 10
    }

    fn thread(&self, thread: u64) -> u64 {
        match self.form.thread_offset {
            0 => thread,
            offset => offset - thread,
        }
    }

    fn stack(&mut self, parts: &[&[&'static str]]) {
        let frames = parts.concat();
        let addresses: Vec<u64> = frames
            .into_iter()
            .map(|frame| {
                let next = 0x10_000 + 0x1_000 * self.addresses.len() as u64;
                *self.addresses.entry(frame).or_insert(next) + 0x10
            })
            .collect();
        self.written.stack(&addresses);
    }

    fn sample(&mut self, thread: u64, parts: &[&[&'static str]], time: u64, is_managed: bool) {
        let thread = self.thread(thread);
        let kind = numbers(&[if is_managed { 2 } else { 1 }]);
        self.written.event_of(SAMPLER, time * 1_000_000 + thread, thread, (0, 0), &kind);
        self.stack(parts);
    }

    /// Samples a thread every 20 ms outside managed code.
    pub(crate) fn waits(&mut self, thread: u64, parts: &[&[&'static str]], time: Range<u64>) {
        time.step_by(20).for_each(|time| self.sample(thread, parts, time, false));
    }

    /// Samples a thread every 20 ms in managed code.
    pub(crate) fn runs(&mut self, thread: u64, parts: &[&[&'static str]], time: Range<u64>) {
        time.step_by(20).for_each(|time| self.sample(thread, parts, time, true));
    }

    fn throws(&mut self, parts: &[&[&'static str]], time: u64) {
        let thread = self.thread(5);
        let name = utf16("System.FormatException");
        self.written.event(time * 1_000_000, thread, (80, 1), &name);
        self.stack(parts);
    }

    /// A request that takes so long; `None` does not end.
    fn request(&mut self, number: u8, path: &str, time: u64, duration: Option<u64>) {
        let thread = self.thread(3);
        let start = [utf16("GET"), utf16(path)].concat();
        self.written.event_of(HOSTING, time * 1_000_000, thread, (3, 0), &start).activity(number, 0);
        if let Some(duration) = duration {
            self.written.event_of(HOSTING, (time + duration) * 1_000_000, thread, (4, 0), &[]);
            self.written.activity(number, 0);
        }
    }

    /// The work that waits for a thread of the pool, once a second.
    fn queue(&mut self, time: Range<u64>, length: f64) {
        const FIELDS: [(&str, Scalar); 5] = [
            ("Name", Scalar::Utf16String),
            ("Mean", Scalar::Double),
            ("StandardDeviation", Scalar::Double),
            ("Min", Scalar::Double),
            ("Max", Scalar::Double),
        ];
        self.written.describe_fields(COUNTERS, (2, 0), "EventCounters", &FIELDS);
        let thread = self.thread(98);
        let payload = [utf16("threadpool-queue-length"), length.to_le_bytes().to_vec(), vec![0; 24]].concat();
        for at in time.step_by(1_000) {
            self.written.event_of(COUNTERS, (at + 100) * 1_000_000, thread, (2, 0), &payload);
        }
    }

    /// A wait for a lock that takes so long.
    fn contends(&mut self, thread: u64, time: u64, duration: u64) {
        let thread = self.thread(thread);
        let (start, lock) = (time * 1_000_000, 0xA0_u64);
        let lock = [lock, lock + 8, self.thread(99)].map(u64::to_le_bytes).concat();
        self.written.event(start, thread, (81, 2), &[vec![0, 9, 0], lock].concat());
        self.stack(&[LOCK, &["Shop.Orders.Pay"], POOL]);
        let nanoseconds = (duration * 1_000_000) as f64;
        let stop = [vec![0, 9, 0], nanoseconds.to_le_bytes().to_vec()].concat();
        self.written.event(start + duration * 1_000_000, thread, (91, 1), &stop);
    }

    /// A collection of generation 2 with the megabytes that remain.
    fn collection(&mut self, time: u64, megabytes: u64) {
        self.collections += 1;
        let number = self.collections;
        let thread = self.thread(9);
        let runtime = [9, 0];
        let at = |step: u64| time * 1_000_000 + step * 100_000;
        let suspended = [numbers(&[1, number]), runtime.to_vec()].concat();
        let start = [numbers(&[number, 2, 0, 0]), runtime.to_vec(), vec![0; 8]].concat();
        let mut heap = vec![0; 4 * 16 + 16 + 12 + 2 + 16];
        heap[32..40].copy_from_slice(&(megabytes * 1_000_000).to_le_bytes());
        for (step, id, payload) in [
            (0, (9, 1), suspended),
            (1, (8, 1), runtime.to_vec()),
            (2, (1, 2), start),
            (3, (2, 1), [numbers(&[number, 2]), runtime.to_vec()].concat()),
            (4, (4, 2), heap),
            (5, (7, 1), runtime.to_vec()),
            (6, (3, 1), runtime.to_vec()),
        ] {
            self.written.event(at(step), thread, id, &payload);
        }
    }

    /// Ends the recording with the names of its methods.
    pub(crate) fn recorded(mut self) -> Vec<u8> {
        let end = self.end * 1_000_000;
        for (name, start) in core::mem::take(&mut self.addresses) {
            let is_own = name.starts_with("Shop.");
            let others = self.form.names.checked_sub(1).map(|place| OTHER_NAMES[place]);
            let other = others.and_then(|names| names.into_iter().find(|(known, _)| *known == name));
            let name = other.map_or(name, |(_, other)| other);
            let (owner, method) = name.rsplit_once('.').unwrap();
            let module: u64 = if is_own { 2 } else { 1 };
            let ids = [0x7000 + start, module, start].map(u64::to_le_bytes).concat();
            let names = [owner, method, "void ()"].map(utf16).concat();
            let payload = [ids, numbers(&[0x1000, 1, 0]), names, vec![9, 0], vec![0; 8]].concat();
            for process in [77, 88].into_iter().take(if self.form.is_version_6 { 2 } else { 1 }) {
                if self.form.is_version_6 {
                    self.written.process(process);
                }
                self.written.event_of(RUNDOWN, end + 1, 1, (144, 2), &payload);
            }
        }
        for (module, path) in [(1_u64, "/usr/share/dotnet/System.Private.CoreLib.dll"), (2, "/app/Shop.dll")]
        {
            let payload =
                [module.to_le_bytes().to_vec(), vec![0; 16], utf16(path), utf16(""), vec![9, 0]].concat();
            for process in [77, 88].into_iter().take(if self.form.is_version_6 { 2 } else { 1 }) {
                if self.form.is_version_6 {
                    self.written.process(process);
                }
                self.written.event_of(RUNDOWN, end + 2, 1, (154, 2), &payload);
            }
        }
        self.written.bytes()
    }

    /// Returns the findings by kind, without information.
    fn findings(self) -> Vec<(String, String)> {
        let names = self.form.names;
        let diagnosis = run_with(&["diagnose", "-", "--json"], self.recorded()).well().json();
        let findings = diagnosis["findings"].as_array().unwrap().iter();
        let findings = findings.filter(|finding| finding["severity"] != "info");
        let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
        let findings = findings.inspect(|finding| {
            let has_none =
                finding["evidence"].as_str().unwrap().contains("no wait of its threads explains it");
            let has_method =
                !has_none && !matches!(finding["kind"].as_str().unwrap(), "requests" | "heap_growth");
            assert_eq!(finding["method"].is_string(), has_method, "names {names}: {finding}");
        });
        findings.map(|finding| (text(finding, "kind"), text(finding, "evidence"))).collect()
    }
}

/// What a service does for a part of its recording.
type Behaviour = fn(&mut Service, Range<u64>);

/// The sick behaviours, each with the kind of its finding and its healthy twin.
const BEHAVIOURS: [(&str, Behaviour, Behaviour); 10] = [
    (
        "blocked_threads",
        |service, time| {
            (20..32)
                .for_each(|thread| service.waits(thread, &[TASK, &["Shop.Stock.Get"], POOL], time.clone()))
        },
        // A wait of a tenth of the time.
        |service, time| {
            for at in time.step_by(100) {
                (20..32).for_each(|thread| {
                    service.waits(thread, &[IDLE, POOL], at..at + 80);
                    if at / 100 % 5 == thread % 5 {
                        service.sample(thread, &[TASK, &["Shop.Stock.Get"], POOL], at + 90, false);
                    }
                });
            }
        },
    ),
    (
        "deadlock",
        |service, time| {
            (40..48)
                .for_each(|thread| service.waits(thread, &[LOCK, &["Shop.Orders.Pay"], POOL], time.clone()))
        },
        // Each thread gets the lock soon.
        |service, time| {
            for at in time.step_by(200) {
                (40..48).for_each(|thread| {
                    service.waits(thread, &[IDLE, POOL], at..at + 160);
                    if at / 200 % 8 == thread % 8 {
                        service.sample(thread, &[LOCK, &["Shop.Orders.Pay"], POOL], at + 170, false);
                    }
                });
            }
        },
    ),
    (
        "exceptions",
        |service, time| time.step_by(10).for_each(|at| service.throws(&[&["Shop.Prices.Parse"], POOL], at)),
        |service, time| time.step_by(900).for_each(|at| service.throws(&[&["Shop.Prices.Parse"], POOL], at)),
    ),
    (
        "processor",
        |service, time| service.runs(60, &[WORK, &["Shop.Report.Build"], POOL], time),
        |service, time| {
            for at in time.step_by(1_000) {
                service.runs(60, &[WORK, &["Shop.Report.Build"], POOL], at..at + 200);
                service.waits(60, &[IDLE, POOL], at + 200..at + 1_000);
            }
        },
    ),
    (
        "requests",
        |service, time| {
            (0..40).for_each(|number| {
                service.request(number, "/orders/1", time.start + u64::from(number), Some(2))
            });
            (100..110)
                .for_each(|number| service.request(number, "/pay", time.start + u64::from(number), None));
        },
        |service, time| {
            (0..40).for_each(|number| {
                service.request(number, "/orders/1", time.start + u64::from(number), Some(2))
            });
            (100..110).for_each(|number| service.request(number, "/pay", time.end - u64::from(number), None));
        },
    ),
    (
        "heap_growth",
        |service, time| {
            let step = (time.end - time.start) / 10;
            (0..10).for_each(|number| service.collection(time.start + number * step, 20 + number * 5));
        },
        // The heap reaches its level.
        |service, time| {
            let step = (time.end - time.start) / 10;
            (0..10).for_each(|number| {
                service.collection(time.start + number * step, if number == 0 { 20 } else { 80 });
            });
        },
    ),
    // Each thread waits for most of the time, or for a small share of it.
    (
        "contention",
        |service, time| {
            for at in time.step_by(100) {
                (40..48).for_each(|thread| service.contends(thread, at, 95));
            }
        },
        |service, time| {
            for at in time.step_by(100) {
                (40..48).for_each(|thread| service.contends(thread, at, 4));
            }
        },
    ),
    // A thread that reads a socket does its work, unless other work waits for it.
    (
        "thread_pool",
        |service, time| {
            service.queue(time.clone(), 60.0);
            (20..32).for_each(|thread| {
                service.waits(thread, &[SOCKET, &["Shop.Feed.Poll"], POOL], time.clone());
            });
        },
        |service, time| {
            service.queue(time.clone(), 0.0);
            (20..32).for_each(|thread| {
                service.waits(thread, &[SOCKET, &["Shop.Feed.Poll"], POOL], time.clone());
            });
        },
    ),
    // Long polling shows nothing of other requests.
    (
        "requests",
        |service, time| {
            (0..40).for_each(|number| {
                service.request(number, "/orders/1", time.start + u64::from(number), Some(2));
                service.request(120 + number, "/poll", time.start, Some(4_000 + u64::from(number)));
            });
            (100..110).for_each(|number| service.request(number, "/orders/1", time.start + 100, None));
        },
        |service, time| {
            (0..40).for_each(|number| {
                service.request(number, "/orders/1", time.start + u64::from(number), Some(2));
                service.request(120 + number, "/poll", time.start, Some(4_000 + u64::from(number)));
            });
            (100..110).for_each(|number| service.request(number, "/poll", time.start, None));
        },
    ),
    // The word in the path of requests that usually end soon says nothing.
    (
        "requests",
        |service, time| {
            (0..40).for_each(|number| {
                service.request(number, "/events", time.start + u64::from(number), Some(2))
            });
            (100..110)
                .for_each(|number| service.request(number, "/events", time.start + u64::from(number), None));
        },
        |service, time| {
            (0..40).for_each(|number| {
                service.request(number, "/orders/1", time.start + u64::from(number), Some(2))
            });
            (100..110)
                .for_each(|number| service.request(number, "/events", time.start + u64::from(number), None));
        },
    ),
];

fn kinds(findings: &[(String, String)]) -> Vec<&str> {
    findings.iter().map(|(kind, _)| kind.as_str()).collect()
}

#[test]
fn a_sickness_is_found_in_every_form() {
    for (kind, sick, _) in BEHAVIOURS {
        for form in Form::all() {
            let mut service = Service::new(form, 6);
            let whole = service.part(0, 10);
            sick(&mut service, whole);
            let findings = service.findings();
            assert_eq!(kinds(&findings), [kind], "{form:?}: {findings:?}");
        }
    }
}

#[test]
fn a_healthy_service_is_silent_in_every_form() {
    for (kind, _, healthy) in BEHAVIOURS {
        for form in Form::all() {
            let mut service = Service::new(form, 6);
            let whole = service.part(0, 10);
            healthy(&mut service, whole);
            let findings = service.findings();
            assert!(findings.is_empty(), "{kind}, {form:?}: {findings:?}");
        }
    }
}

#[test]
fn a_sick_half_is_found_with_its_time() {
    for (kind, sick, healthy) in BEHAVIOURS {
        let mut service = Service::new(Form::plain(), 12);
        let (first, second) = (service.part(0, 5), service.part(5, 10));
        match kind {
            // Its requests would go on.
            "requests" => {}
            _ => healthy(&mut service, first),
        }
        sick(&mut service, second);
        let findings = service.findings();
        assert_eq!(kinds(&findings), [kind], "{findings:?}");
        let evidence = &findings[0].1;
        let times = ["since 5.7 s", "since 5.9 s", "since 6.0 s", "since 6.1 s", "for up to 5.9 s"];
        assert!(times.iter().any(|time| evidence.contains(time)), "{kind}: {evidence}");
    }
}

#[test]
fn a_queue_without_a_wait_is_a_finding() {
    let mut service = Service::new(Form { has_idle_threads: true, ..Form::plain() }, 6);
    service.queue(0..6_000, 60.0);
    let findings = service.findings();
    assert_eq!(kinds(&findings), ["thread_pool"], "{findings:?}");
}

/// What the recording does not have is unknown, not zero.
#[test]
fn what_was_not_recorded_is_null() {
    let mut service = Service::new(Form::plain(), 3);
    service.throws(&[&["Shop.Prices.Parse"], POOL], 10);
    let diagnosis = run_with(&["diagnose", "-", "--json"], service.written.bytes()).well().json();
    assert!(diagnosis["exceptions_per_second"].as_f64().unwrap() > 0.0, "{diagnosis}");
    for unknown in
        ["collections", "allocated_mb_per_second", "lock_waits", "requests_in_flight", "compiled_methods"]
    {
        assert!(diagnosis[unknown].is_null(), "{unknown}: {diagnosis}");
    }
    assert_eq!(diagnosis["not_recorded"][0], "waits for locks", "{diagnosis}");
}
