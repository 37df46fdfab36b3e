//! The HTML page of `dotnet-ipc flame`, and `--diff`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use nettrace::{Event, Metadata, Stack, Trace, TraceWriter, Version};
use serde_json::Value;
use tempfile::TempDir;

use crate::tool::{Ran, finish, run, run_with, which};
use crate::traces::{analysed, put, traces};

/// Names that could end a string, an element or a line.
const HOSTILE: [&str; 6] = [
    "</script><script>document.title='out'</script>",
    "<img src=x onerror=\"document.title='out'\">",
    "<!--<script>",
    "quotes \"'`${0}\\",
    "line\nbreak\u{1b}[31m\u{202e}",
    "{DATA}{SCRIPT}",
];

/// An event of a thread. The methods of its stack are numbers, the outermost first.
struct Happened<'a> {
    kind: u32,
    time: u64,
    thread: u64,
    stack: &'a [usize],
}

/// A sample of a thread in managed code.
const SAMPLE: u32 = 1;
const EXCEPTION: u32 = 3;

/// Returns a trace of methods with these names, in UTF-16.
fn trace(methods: &[Vec<u16>], events: &[Happened<'_>]) -> Vec<u8> {
    lossy_trace(methods, events, 0)
}

/// Returns a trace that has lost `lost` events before the first one.
fn lossy_trace(methods: &[Vec<u16>], events: &[Happened<'_>], lost: u32) -> Vec<u8> {
    let (mut buf, mut trace) = (vec![0; TraceWriter::BUFFER], Vec::new());
    let mut writer = TraceWriter::new(&Trace::new(Version::V4), &mut buf).unwrap();
    let kinds = [
        ("Microsoft-DotNETCore-SampleProfiler", 0),
        ("Microsoft-Windows-DotNETRuntime", 143),
        ("Microsoft-Windows-DotNETRuntime", 80),
        ("<b>Provider</b>", 5),
    ];
    for (id, (provider, event_id)) in (1..).zip(kinds) {
        let mut metadata = Metadata::new(id, provider, event_id, "");
        metadata.version = 2;
        put!(trace, writer.describe(&metadata));
    }
    let address = |method: usize| 0x10_0000 + 0x100 * u64::try_from(method).unwrap();
    let mut ids: BTreeMap<&[usize], u32> = BTreeMap::new();
    for event in events {
        let id = u32::try_from(ids.len() + 1).unwrap();
        ids.entry(event.stack).or_insert(id);
    }
    let mut in_order: Vec<_> = ids.iter().map(|(stack, id)| (*id, *stack)).collect();
    in_order.sort_unstable();
    for (id, stack) in in_order {
        let bytes: Vec<u8> = stack.iter().rev().flat_map(|method| address(*method).to_le_bytes()).collect();
        put!(trace, writer.stack(&Stack { id, bytes: &bytes }));
    }
    let mut sequence = 0;
    let mut event = |lost, metadata_id, thread, timestamp, stack_id, payload: &[u8]| {
        sequence += 1 + lost;
        let event = Event {
            metadata_id,
            sequence,
            thread,
            capture_thread: 1,
            timestamp,
            stack_id,
            payload,
            ..Event::default()
        };
        put!(trace, writer.event(&event));
    };
    for (method, name) in methods.iter().enumerate() {
        let mut payload = Vec::new();
        for field in [1, 0, address(method)] {
            payload.extend(field.to_le_bytes());
        }
        for field in [0x100_u32, 0, 0] {
            payload.extend(field.to_le_bytes());
        }
        for text in [&"T".encode_utf16().collect(), name, &"void ()".encode_utf16().collect::<Vec<_>>()] {
            payload.extend(text.iter().chain([&0]).flat_map(|unit| unit.to_le_bytes()));
        }
        event(0, 2, 1, 0, 0, &payload);
    }
    for (number, Happened { kind, time, thread, stack }) in events.iter().enumerate() {
        let lost = if number == 0 { lost } else { 0 };
        event(lost, *kind, *thread, *time, ids[stack], &2_u32.to_le_bytes());
    }
    trace.extend_from_slice(&writer.finish());
    trace
}

fn utf16(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

/// Returns a trace whose methods have hostile names, one with half a surrogate pair.
fn hostile() -> Vec<u8> {
    let mut methods: Vec<_> = HOSTILE.iter().map(|name| utf16(name)).collect();
    methods.push(vec![0x41, 0xd800, 0x42]);
    let all: Vec<_> = (0..methods.len()).collect();
    let sample = |time, thread, len| Happened { kind: SAMPLE, time, thread, stack: &all[..len] };
    trace(&methods, &[sample(1, 7, 7), sample(2, 7, 3), sample(3, 8, 3), sample(4, 8, 1)])
}

/// A page, and the data in it.
struct Page {
    text: String,
    data: Value,
}

impl Page {
    fn of(ran: Ran) -> Self {
        assert_eq!(ran.status, Some(0), "{ran:?}");
        let text = ran.into_text();
        assert!(text.starts_with("<!doctype html>") && text.trim_end().ends_with("</html>"));
        let (_, data) = text.split_once("id=\"data\">").unwrap();
        let data = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
        Self { text, data }
    }

    fn labels(&self) -> Vec<&str> {
        let clocks = self.data["clocks"].as_array().unwrap();
        clocks.iter().map(|clock| clock["label"].as_str().unwrap()).collect()
    }

    /// Returns the rows of a clock: call, thread and weight.
    fn rows(&self, clock: usize) -> Vec<[u64; 3]> {
        let mut call = 0;
        let mut row = |row: [u64; 3]| {
            call += row[0];
            [call, row[1], row[2]]
        };
        numbers(&self.data["clocks"][clock]["rows"]).chunks(3).map(|r| row(r.try_into().unwrap())).collect()
    }

    fn total(&self, clock: usize) -> u64 {
        self.rows(clock).iter().map(|row| row[2]).sum()
    }

    fn notes(&self) -> Vec<&str> {
        self.data["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect()
    }

    /// Returns the stacks of a clock with their weights, as `--format folded` writes them.
    fn folded(&self, clock: usize) -> BTreeSet<String> {
        let mut weights: BTreeMap<u64, u64> = BTreeMap::new();
        for [call, _, weight] in self.rows(clock) {
            *weights.entry(call).or_default() += weight;
        }
        let (frames, callers) = (&self.data["frames"], numbers(&self.data["callers"]));
        let line = |(call, weight): (&u64, &u64)| {
            let (mut call, mut path) = (usize::try_from(*call).unwrap(), Vec::new());
            while call != 0 {
                let name = usize::try_from(frames[call].as_u64().unwrap()).unwrap();
                path.push(self.data["names"][name].as_str().unwrap().replace(';', ":"));
                call -= usize::try_from(callers[call]).unwrap();
            }
            path.reverse();
            format!("{} {weight}", path.join(";"))
        };
        weights.iter().map(line).collect()
    }
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

fn page(trace: &str, args: &[&str]) -> Page {
    Page::of(run(&[&["flame", trace, "-o", "-", "--format", "html"], args].concat()))
}

fn page_of(trace: Vec<u8>, args: &[&str]) -> Page {
    Page::of(run_with(&[&["flame", "-", "-o", "-", "--format", "html"], args].concat(), trace))
}

#[test]
fn the_page_has_the_stacks_of_every_clock() {
    let trace = analysed("net10-startup.nettrace");
    let shown = page(&trace, &["--thread-time"]);
    assert_eq!(shown.labels(), ["CPU", "Wall clock", "Thread time", "Exceptions"]);
    assert_eq!(shown.data["clock"], 2);
    assert_eq!(shown.data["title"], trace);
    for (clock, name) in ["--cpu", "--wall", "--thread-time", "--exceptions"].iter().enumerate() {
        let folded = run(&["convert", &trace, "-o", "-", "--format", "folded", name]);
        let lines: BTreeSet<_> = folded.text().lines().map(str::to_owned).collect();
        assert_eq!(shown.folded(clock), lines, "{name}");
        // The shares of the threads.
        let report = run(&["report", &trace, name, "--threads", "--top", "99", "--json"]).well().json();
        assert_eq!(shown.total(clock), report["total"].as_u64().unwrap());
        let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
        for [_, thread, weight] in shown.rows(clock) {
            *sums.entry(thread).or_default() += weight;
        }
        let threads = report["threads"].as_array().unwrap();
        assert_eq!(threads.len(), sums.len());
        for thread in threads {
            let id = thread["thread_id"].as_u64().unwrap().to_string();
            let names = shown.data["threads"].as_array().unwrap();
            let place = names.iter().position(|name| name.as_str().unwrap().split(' ').next() == Some(&id));
            let sum = sums[&u64::try_from(place.unwrap()).unwrap()] as f64;
            let share = 100.0 * sum / shown.total(clock) as f64;
            assert!((share - thread["share"].as_f64().unwrap()).abs() < 1e-9);
        }
    }
    assert!(shown.notes().is_empty());
    // An event is one more clock.
    let event = "Microsoft-Windows-DotNETRuntime/80";
    let shown = page(&trace, &["--event", event]);
    assert_eq!(shown.labels().last(), Some(&event));
    assert_eq!(shown.data["clock"], 4);
}

#[test]
fn without_a_choice_the_page_begins_with_a_clock_that_has_data() {
    let method = [utf16("Main")];
    let event = |kind, time| Happened { kind, time, thread: 1, stack: &[0] };
    let thrown = trace(&method, &[event(EXCEPTION, 1)]);
    let shown = page_of(thrown.clone(), &[]);
    assert_eq!((shown.labels(), &shown.data["clock"]), (vec!["Exceptions"], &Value::from(0)));
    assert_eq!(shown.folded(0), ["ManagedModule!T.Main() 1".to_owned()].into());
    let args = ["flame", "-", "-o", "-", "--cpu", "--format", "html"];
    run_with(&args, thrown).fails(9, "no samples of threads");
    let lossy = page_of(lossy_trace(&method, &[event(SAMPLE, 1)], 1_234), &[]);
    assert_eq!(lossy.notes(), ["1,234 events lost."]);
    let empty = trace(&method, &[]);
    run_with(&["flame", "-", "-o", "-", "--format", "html"], empty).fails(9, "no samples of threads");
    run_with(&["flame", "-", "-o", "-", "--format", "html"], Vec::new()).fails(6, "the trace is empty");
}

#[test]
fn a_name_does_not_leave_its_string() {
    let page = page_of(hostile(), &[]);
    assert_eq!(page.text.matches("</script").count(), 2);
    assert_eq!(page.text.matches("<script").count(), 2);
    assert!(!page.text.contains("<img") && !page.text.contains("<!--") && !page.text.contains('\u{202e}'));
    let names: Vec<_> = page.data["names"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    for name in HOSTILE.iter().filter(|name| !name.contains('\n')) {
        assert!(names.contains(&format!("ManagedModule!T.{name}()").as_str()), "{name} in {names:?}");
    }
    assert!(names.contains(&"ManagedModule!T.line\\nbreak\\u{1b}[31m\\u{202e}()"), "{names:?}");
    assert!(names.contains(&"ManagedModule!T.A\u{fffd}B()"), "{names:?}");
    // The name of an event.
    let event = |kind, time| Happened { kind, time, thread: 1, stack: &[0] };
    let labelled = trace(&[utf16("Main")], &[event(4, 1), event(4, 5)]);
    let page = page_of(labelled, &["--thread-time"]);
    assert!(!page.text.contains("<b>"));
    assert_eq!(page.folded(0), ["ManagedModule!T.Main();EventName: <b>Provider</b>/ 4".to_owned()].into());
}

/// Windows does not allow such names of files.
#[cfg(unix)]
#[test]
fn the_name_of_a_file_is_no_html() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("<i>&amp;.nettrace");
    fs::write(&file, hostile()).unwrap();
    let text = run(&["flame", file.to_str().unwrap(), "-o", "-", "--format", "html"]).into_text();
    assert!(text.contains("&lt;i>&amp;amp;.nettrace</title>") && !text.contains("<i>"));
}

#[test]
fn every_recorded_trace_has_a_page_or_a_reason() {
    let mut pages = 0;
    for (path, _) in traces() {
        let ran = run(&["flame", &path, "-o", "-", "--format", "html", "--event", "all"]);
        if ran.text().is_empty() {
            assert!(matches!(ran.status, Some(6 | 9)) && ran.stderr.contains("error: "), "{path}: {ran:?}");
        } else {
            // A damaged trace has a page of the events before the damage.
            let page = Page::of(Ran { status: Some(0), ..ran });
            let clock = page.labels().iter().position(|label| *label == "Events").unwrap();
            assert!(page.total(clock) > 0);
            pages += 1;
        }
    }
    assert!(pages > 3, "{pages}");
}

#[test]
fn a_page_has_a_limit() {
    // 60,000 calls: 300 methods, each of which calls 199 others.
    let methods: Vec<_> = (0..300).map(|method| utf16(&format!("M{method}"))).collect();
    let mut stacks = Vec::new();
    for caller in 0..300 {
        stacks.extend((0..300).filter(|callee| *callee != caller).take(199).map(|callee| [caller, callee]));
    }
    let mut events = Vec::new();
    for (number, (stack, time)) in stacks.iter().zip(1..).enumerate() {
        // The first 240 methods weigh twice as much.
        for _ in 0..if stack[0] < 240 { 2 } else { 1 } {
            let thread = u64::try_from(number % 1_100).unwrap() + 1;
            events.push(Happened { kind: SAMPLE, time, thread, stack });
        }
    }
    let page = page_of(trace(&methods, &events), &[]);
    assert_eq!(page.data["frames"].as_array().unwrap().len(), 50_000);
    assert_eq!(page.total(0), u64::try_from(events.len()).unwrap());
    // Calls of weight 1 count for their callers, of which none is missing.
    let folded = page.folded(0);
    assert!(folded.contains("ManagedModule!T.M299() 199"), "{:?}", folded.first());
    assert!(folded.contains("ManagedModule!T.M0();ManagedModule!T.M1() 2"));
    assert!(page.notes().len() == 1 && page.notes()[0].contains("count for their callers"));
    let threads = page.data["threads"].as_array().unwrap();
    assert_eq!((threads.len(), &threads[1_000]), (1_001, &Value::from("100 other threads")));
    assert!(page.text.len() < 3_000_000, "{}", page.text.len());
}

#[test]
fn a_difference_has_the_weights_of_both_traces() {
    let method = ["Main", "Old", "New"].map(utf16);
    let sample = |time, stack| Happened { kind: SAMPLE, time, thread: 1, stack };
    let directory = TempDir::new().unwrap();
    let file = |name: &str, trace: Vec<u8>| {
        let path = directory.path().join(name);
        fs::write(&path, trace).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let old = file("old", trace(&method, &[sample(1, &[0, 1]), sample(2, &[0, 1])]));
    let samples = [sample(1, &[0]), sample(2, &[0, 1]), sample(3, &[0, 2]), sample(4, &[0, 2])];
    let new = file("new", trace(&method, &samples));

    // The old recording has 2 samples and the new one has 4, so the old weights count twice.
    let folded = |new: &str, old: &str| {
        let args = ["flame", new, "--diff", old, "-o", "-", "--format", "folded"];
        let ran = run(&args);
        assert_eq!(ran.status, Some(0), "{ran:?}");
        ran.into_text()
    };
    assert_eq!(
        folded(&new, &old),
        "ManagedModule!T.Main() 0 1\nManagedModule!T.Main();ManagedModule!T.New() 0 2\nManagedModule!T.Main();ManagedModule!T.Old() 4 1\n"
    );
    assert!(folded(&new, &new).lines().all(|line| {
        let [after, before] = line.rsplitn(3, ' ').collect::<Vec<_>>()[..2] else { panic!() };
        after == before
    }));

    let shown = page(&new, &["--diff", &old]);
    assert_eq!((shown.data["old"].as_str(), shown.total(0)), (Some(old.as_str()), 4));
    assert_eq!(shown.labels(), ["CPU", "Wall clock", "Thread time"]);
    let before = numbers(&shown.data["clocks"][0]["old"]);
    assert_eq!(before.chunks(2).map(|row| row[1]).sum::<u64>(), 2);
    assert!(shown.data["frames"].as_array().unwrap().len() == 4);

    // The shares of functions.
    let ran = run(&["report", &new, "--diff", &old]).well();
    let lines: Vec<_> = ran.text().lines().skip(3).collect();
    assert_eq!(lines[0], format!("Before: {old}, 2 samples"));
    assert_eq!(lines[2], "   BEFORE     AFTER    CHANGE  FUNCTION, BY EXCLUSIVE SHARE");
    assert_eq!(lines[3], " 100.00 %   25.00 %  -75.00 % *ManagedModule!T.Old()");
    assert_eq!(lines[4], "   0.00 %   50.00 %  +50.00 % *ManagedModule!T.New()");
    assert_eq!(lines[5], "   0.00 %   25.00 %  +25.00 % *ManagedModule!T.Main()");
    assert_eq!(lines.len(), 6);
    let by_inclusive = run(&["report", &new, "--diff", &old, "--by", "inclusive", "--top", "1"]).well();
    assert!(
        by_inclusive
            .text()
            .contains(" 100.00 %   25.00 %  -75.00 % *ManagedModule!T.Old()\n2 more functions")
    );
    assert!(run(&["report", &new, "--diff", &new]).well().text().ends_with("\nAll shares are equal\n"));
    // All functions belong to the program, so each has its exclusive share.
    let by_own = run(&["report", &new, "--diff", &old, "--by", "own"]).well().into_text();
    assert!(
        by_own.contains("FUNCTION, BY OWN SHARE\n 100.00 %   25.00 %  -75.00 % *ManagedModule!T.Old()"),
        "{by_own}"
    );
    let report = run(&["report", &new, "--diff", &old, "--json"]).well().json();
    assert_eq!(report["frames"][0]["own_share_before"], 100.0);
    assert_eq!((&report["total_before"], &report["total"]), (&2.into(), &4.into()));
    let first = &report["frames"][0];
    assert_eq!((&first["exclusive_before"], &first["exclusive"]), (&100.0.into(), &25.0.into()));
    assert_eq!((&first["inclusive_before"], &first["inclusive"]), (&100.0.into(), &25.0.into()));

    let thrown = file("thrown", trace(&method, &[Happened { kind: EXCEPTION, ..sample(1, &[0]) }]));
    // The older trace is checked before a process is recorded: here no process exists.
    let args = ["flame", "--name", "nothing", "-o", "x.folded", "--diff", &thrown];
    run(&args).fails(9, "thrown: the trace has no samples of threads");

    // Clocks without data in one of the traces, and formats that have no differences.
    let html = ["flame", &new, "-o", "-", "--format", "html", "--diff"];
    run(&["report", &new, "--diff", &thrown]).fails(9, "thrown: the trace has no samples of threads");
    run(&["report", &new, "--diff", &old, "--tree"]).fails(2, "cannot be used with");
    run(&[&html[..], &[&thrown]].concat()).fails(9, "thrown: the trace has no samples of threads");
    run(&[&html[..], &[&old, "--exceptions"]].concat()).fails(9, "old: the trace has no exceptions");
    run(&[&html[..], &[&thrown, "--exceptions"]].concat()).fails(9, "new: the trace has no exceptions");
    run(&[&html[..], &["/nothing"]].concat()).fails(1, "cannot read /nothing");
    let args = ["flame", &new, "--diff", &old, "-o", "-", "--format"];
    run(&[&args[..], &["speedscope"]].concat()).fails(2, "choose html or folded");
}

#[test]
#[ignore = "needs Chromium and Node, which `.ci/run pages` installs"]
fn the_page_in_chromium() {
    let directory = TempDir::new().unwrap();
    let write = |name: &str, page: Page| fs::write(directory.path().join(name), page.text).unwrap();
    write("startup.html", page(&analysed("net10-startup.nettrace"), &["--wall", "--raw"]));
    write("hostile.html", page_of(hostile(), &[]));
    let (old, new) = (analysed("net31-sampled.nettrace"), analysed("net10-startup.nettrace"));
    write("diff.html", page(&new, &["--wall", "--raw", "--diff", &old]));
    // One frame, and stacks of 100 frames.
    let deep: Vec<_> = (0..100).map(|method| utf16(&format!("Deep{method}"))).collect();
    let all: Vec<_> = (0..100).collect();
    let sample = |time, stack| Happened { kind: SAMPLE, time, thread: 1, stack };
    write("one.html", page_of(trace(&deep, &[sample(1, &[0])]), &[]));
    write("deep.html", page_of(trace(&deep, &[sample(1, &all)]), &[]));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chromium/flame_page.mjs");
    let mut node = Command::new(which("node"));
    // With PICTURES, the script writes pictures to that folder.
    node.arg(script).arg(directory.path()).args(std::env::var_os("PICTURES")).stdin(Stdio::null());
    let ran = finish(node.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!(ran.status, Some(0), "{ran:?}");
}

/// The page has from the tool which functions belong to the program, and where names can be cut.
#[test]
fn a_page_knows_own_functions_and_folds_the_others() {
    let methods = ["Total", "\u{1f980}<AddAsync>d__1.MoveNext"].map(utf16);
    let sample = |time, stack| Happened { kind: SAMPLE, time, thread: 1, stack };
    let trace = trace(&methods, &[sample(1, &[0, 1]), sample(2, &[0])]);
    let shown = page_of(trace.clone(), &[]);
    assert_eq!(shown.data["names"][0], "ManagedModule!T.Total()");
    // The end without arguments, after the module, and the method; in units of UTF-16.
    assert_eq!(shown.data["places"], serde_json::json!([[21, 14, 16], [41, 14, 16, 33]]));
    assert_eq!(shown.data["own"], serde_json::json!([1, 1]));
    let shown = page_of(trace, &["--own", "T.Total"]);
    assert_eq!(shown.data["own"], serde_json::json!([1, 0]));

    let startup = analysed("net10-startup.nettrace");
    let names = |options: &[&str]| {
        let shown = page(&startup, &[&["--wall"], options].concat());
        let name = |name: &Value| name.as_str().unwrap().to_owned();
        let names: Vec<_> = shown.data["names"].as_array().unwrap().iter().map(name).collect();
        assert_eq!(shown.data["own"].as_array().unwrap().len(), names.len());
        assert_eq!(shown.data["places"].as_array().unwrap().len(), names.len());
        names
    };
    let is_start = |name: &String| name.contains("System.Threading.Thread+StartHelper.Run(");
    let folded = names(&[]);
    assert!(folded.iter().any(|name| name == "[threads and async]") && !folded.iter().any(is_start));
    let raw = names(&["--raw"]);
    assert!(raw.iter().any(is_start) && !raw.iter().any(|name| name == "[threads and async]"));

    // Files for other tools have all frames.
    for format in ["folded", "speedscope"] {
        let file = run(&["flame", &startup, "-o", "-", "--format", format, "--wall"]).into_text();
        assert!(
            !file.contains("[threads and async]") && file.contains("Thread+StartHelper.Run("),
            "{format}"
        );
    }
}
