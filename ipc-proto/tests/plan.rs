//! Plans, for every combination of wishes and versions; the hazards and obstacles of requests.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use ipc_proto::plan::{
    self, DEFAULT_RUNDOWN, DumpConfig, Flavour, Hazard, InfoConfig, LostFeature, NotTracing, Obstacle,
    PlanStep, Providers, Runtime, StartupTrace, StartupTraceError, TraceConfig, TraceStep,
};
use ipc_proto::types::{
    DumpFlags, DumpType, EventFilter, EventLevel, Format, PerfMapType, Provider, SessionBufferMode,
    SessionConfig, SessionConfig6, StreamingProvider, StreamingSession6, TracepointConfig, TracepointSet,
    UserEventsProvider, UserEventsSession,
};
use ipc_proto::wire::Writer;
use ipc_proto::{
    ApplyStartupHook, Array, Code, CollectTracing5, CollectTracing6, Command, CommandInfo, DisablePerfMap,
    EnablePerfMap, Encode, Exchange, GenerateCoreDump3, GetProcessInfo3, HResult, Message, Parsed, Request,
    ResumeRuntime, Serve, SetEnvironmentVariable, Text, Violation, encode, encode_to_vec,
};

fn version(version: u8) -> Runtime {
    Runtime { version: Some(version), ..Runtime::default() }
}

const PLAIN: [Provider<'_>; 2] = [
    Provider { keywords: 1, level: EventLevel::VERBOSE, name: Text::new("A"), arguments: Text::NULL },
    Provider { keywords: 2, level: EventLevel::ERROR, name: Text::new("B"), arguments: Text::new("k=v") },
];

/// Returns every combination of features, each with the command that Microsoft's client sends for the combination.
fn all_configs<'a>(filtered: &'a [StreamingProvider<'a>]) -> Vec<(TraceConfig<'a>, u16)> {
    let mut all = Vec::new();
    for rundown_keyword in [0, DEFAULT_RUNDOWN, 0x10] {
        for bits in 0..8 {
            let (stackwalk, filters, block) = (bits & 1 == 0, bits & 2 != 0, bits & 4 != 0);
            let config = TraceConfig {
                rundown_keyword,
                stackwalk,
                buffer_mode: SessionBufferMode(u32::from(block)),
                ..if filters { TraceConfig::new(filtered) } else { TraceConfig::new(&PLAIN) }
            };
            let command = match (block, filters, rundown_keyword, stackwalk) {
                (true, ..) => 0x0207,
                (_, true, ..) => 0x0206,
                (_, _, 0x10, _) => 0x0205,
                (_, _, _, false) => 0x0204,
                _ => 0x0203,
            };
            all.push((config, command));
        }
    }
    all
}

fn filtered() -> [StreamingProvider<'static>; 2] {
    let filter = EventFilter { enable: true, event_ids: Array::from(&[1, 2]) };
    let [a, b] = PLAIN.map(StreamingProvider::from);
    [a, StreamingProvider { filter, ..b }]
}

fn steps<'a>(config: &TraceConfig<'a>, runtime: &Runtime) -> Vec<TraceStep<'a>> {
    config.first_step(runtime).steps().collect()
}

/// Encodes a step, as a client does, and decodes it, as a server does.
fn through_the_wire(step: &TraceStep<'_>) {
    let bytes = encode_to_vec(step.code(), step).unwrap();
    let Ok(Parsed::Complete { value: message, used }) = Message::parse(&bytes) else { panic!("{step:?}") };
    let request = message.request().unwrap();
    assert_eq!((request.code(), used, request.check()), (step.code(), bytes.len(), Ok(())));
    assert_eq!(encode_to_vec(request.code(), &request).unwrap(), bytes, "nothing else is in the message");
    let received = TraceConfig::try_from(&request).unwrap();
    assert_eq!(received, *step.config());
    assert_eq!(steps(&received, &Runtime::default())[0].code(), step.code());
}

#[test]
fn a_trace_steps_down_until_no_wish_needs_a_newer_command() {
    let filtered = filtered();
    for (config, command) in all_configs(&filtered) {
        let steps = steps(&config, &Runtime::default());
        assert!(steps[0].lost_features().is_empty() && *steps[0].config() == config);
        assert_eq!(steps[0].code().0, command);
        for pair in steps.windows(2) {
            assert!(pair[1].code() < pair[0].code());
            assert_eq!(
                pair[1].lost_features().iter().count(),
                pair[0].lost_features().iter().count() + 1,
                "one loss a step"
            );
        }
        for step in &steps {
            assert_eq!(step.check(), Ok(()));
            through_the_wire(step);
        }
        let last = steps.last().unwrap();
        let lost = |feature| last.lost_features().contains(feature);
        assert_eq!(last.code(), Code(0x0203));
        assert_eq!(lost(LostFeature::Blocking), config.buffer_mode == SessionBufferMode::BLOCK);
        let filters = config.providers.iter().any(|p| p.filter != EventFilter::ALL);
        assert_eq!(lost(LostFeature::EventFilters), filters);
        assert_eq!(lost(LostFeature::RundownKeyword), config.rundown_keyword == 0x10);
        assert_eq!(lost(LostFeature::Stackwalk), !config.stackwalk);
    }
}

#[test]
fn the_default_configuration_needs_one_command() {
    assert_eq!(steps(&TraceConfig::new(&PLAIN), &Runtime::default()).len(), 1);
    // Filters that let all events pass need no newer command.
    let all = PLAIN.map(StreamingProvider::from);
    assert_eq!(steps(&TraceConfig::new(&all), &Runtime::default())[0].code(), Code(0x0203));
}

#[test]
fn a_plan_for_a_known_version_omits_newer_commands() {
    let filtered = filtered();
    for (config, _) in all_configs(&filtered) {
        let whole = steps(&config, &Runtime::default());
        for known in 3..=11 {
            let steps = steps(&config, &version(known));
            let may = |code| CommandInfo::find(code).unwrap().since <= known;
            assert!(!steps.is_empty() && steps.iter().all(|step| may(step.code())));
            assert_eq!(steps, whole[whole.len() - steps.len()..], "the same plan without its first steps");
        }
        // A version that has none of the commands still gets the last step, which the runtime itself refuses.
        assert_eq!(steps(&config, &version(2)).len(), 1);
    }
}

#[test]
fn a_trace_has_the_rules_of_its_commands() {
    let valid = TraceConfig::new(&PLAIN);
    let check = |config: TraceConfig<'_>| {
        config.first_step(&Runtime::default()).check().map_err(|invalid| invalid.violation)
    };
    assert_eq!(check(TraceConfig { buffer_mb: 0, ..valid }), Err(Violation::BufferSize));
    assert_eq!(check(TraceConfig { format: Format(2), ..valid }), Err(Violation::Format));
    let mode = SessionBufferMode(2);
    assert_eq!(check(TraceConfig { buffer_mode: mode, ..valid }), Err(Violation::SessionBufferMode));
    assert_eq!(check(TraceConfig::new(&[] as &[Provider<'_>])), Err(Violation::ProviderCount));
    let mut filtered = filtered();
    filtered[0].filter.event_ids = Array::from(&[7, 7]);
    assert_eq!(check(TraceConfig::new(&filtered)), Err(Violation::DuplicateEventId));
}

/// The check of a step reports the same rule and path as the check of the request that the server receives. Filters
/// that the step does not send break no rule. If two rules are broken, both checks report the same one.
#[test]
fn a_step_breaks_the_rules_that_its_request_breaks() {
    let mut filtered = filtered();
    filtered[1].filter.event_ids = Array::from(&[1, 2, 1]);
    let wrong = |config: TraceConfig<'static>| TraceConfig {
        buffer_mb: 0,
        buffer_mode: SessionBufferMode(2),
        ..config
    };
    for config in [TraceConfig::new(&filtered), wrong(TraceConfig::new(&PLAIN))] {
        for step in steps(&config, &Runtime::default()) {
            let bytes = encode_to_vec(step.code(), &step).unwrap();
            let Ok(Parsed::Complete { value, .. }) = Message::parse(&bytes) else { panic!("{step:?}") };
            assert_eq!(step.check(), value.request().unwrap().check(), "{step:?}");
        }
    }
}

#[test]
fn only_a_request_for_a_stream_is_a_trace() {
    let resume = Request::ResumeRuntime(ResumeRuntime {});
    assert_eq!(TraceConfig::try_from(&resume), Err(NotTracing));
}

#[test]
fn keywords_then_level_then_filter_select_events() {
    let filtered = filtered();
    let config = TraceConfig { rundown_keyword: 6, ..TraceConfig::new(&filtered) };
    for (provider, keywords, level, id, included) in [
        ("A", 1, 5, 9, true),
        ("A", 0, 5, 9, true),
        ("A", 2, 5, 9, false),
        ("A", 1, 6, 9, false),
        ("B", 2, 2, 1, true),
        ("B", 2, 2, 3, false),
        ("B", 2, 3, 1, false),
        ("B", 2, 0, 1, true),
        ("C", 0, 0, 1, false),
    ] {
        let result = config.includes(provider, keywords, EventLevel(level), id);
        assert_eq!(result, included, "{provider} {keywords} {level} {id}");
    }
    let all = [Provider { keywords: u64::MAX, name: "*".into(), ..PLAIN[0] }];
    assert!(TraceConfig::new(&all).includes("C", 8, EventLevel::VERBOSE, 1));
    assert!(config.includes_rundown(2) && config.includes_rundown(0) && !config.includes_rundown(1));
    assert!(!TraceConfig { rundown_keyword: 0, ..config }.includes_rundown(0));
}

#[test]
fn plans_for_dumps_and_process_information_begin_with_the_newest_command() {
    let config =
        |flags| DumpConfig { path: "/core".into(), dump_type: DumpType::FULL, flags: DumpFlags(flags) };
    let dumps = |known| config(5).first_step(&version(known)).steps().map(|s| s.code().0).collect::<Vec<_>>();
    assert_eq!(dumps(11), [0x0103, 0x0102, 0x0101]);
    assert_eq!(dumps(6), [0x0102, 0x0101]);
    assert_eq!(dumps(3), [0x0101]);
    for (flags, lost) in [(0, false), (1, false), (2, true), (5, true)] {
        let last = config(flags).first_step(&Runtime::default()).steps().last().unwrap();
        assert_eq!(last.lost_features().contains(LostFeature::DumpFlags), lost, "{flags}");
        assert!(last.lost_features().contains(LostFeature::DumpMessage));
        let bytes = encode_to_vec(last.code(), &last).unwrap();
        let Ok(Parsed::Complete { value: message, .. }) = Message::parse(&bytes) else { panic!() };
        let Ok(Request::GenerateCoreDump(dump)) = message.request() else { panic!() };
        assert_eq!((dump.dump_type, dump.diagnostics), (DumpType::FULL, flags & 1));
    }
    assert_eq!(config(0).first_step(&version(8)).check(), Ok(()));
    let infos =
        |known| InfoConfig.first_step(&version(known)).steps().map(|s| s.code().0).collect::<Vec<_>>();
    assert_eq!(infos(8), [0x0408, 0x0404, 0x0400]);
    assert_eq!(infos(6), [0x0404, 0x0400]);
    assert_eq!(infos(3), [0x0400]);
}

#[test]
fn unknown_facts_count_as_the_worse_case() {
    let perf_map = Request::EnablePerfMap(EnablePerfMap { perf_map_type: PerfMapType::ALL });
    let unset =
        Request::SetEnvironmentVariable(SetEnvironmentVariable { name: "A".into(), value: Text::NULL });
    let empty =
        Request::SetEnvironmentVariable(SetEnvironmentVariable { name: "A".into(), value: "".into() });
    let hook = Request::ApplyStartupHook(ApplyStartupHook { startup_hook_path: "/h.dll".into() });
    let dump = |dump_name| {
        let (dump_type, flags) = (DumpType::FULL, DumpFlags::NONE);
        Request::GenerateCoreDump3(GenerateCoreDump3 { dump_name, dump_type, flags })
    };
    let unknown = Runtime::default();
    for (request, expected) in [
        (perf_map, Some(Hazard::PerfMapWhileSuspended)),
        (unset, Some(Hazard::UnsetVariable)),
        (empty, None),
        (hook, Some(Hazard::StartupHook)),
        (dump(Text::NULL), Some(Hazard::DumpWithoutName)),
        (dump("".into()), None),
        (Request::GetProcessInfo3(GetProcessInfo3 {}), None),
    ] {
        assert_eq!(plan::hazard(&request, &unknown, None), expected, "{request:?}");
    }

    let coreclr = Runtime { flavour: Some(Flavour::CoreClr), suspended: Some(false), ..version(9) };
    assert_eq!(plan::hazard(&perf_map, &coreclr, None), None);
    assert_eq!(plan::hazard(&unset, &coreclr, None), None);
    assert_eq!(plan::hazard(&hook, &coreclr, Some(false)), Some(Hazard::StartupHook));
    assert_eq!(plan::hazard(&hook, &coreclr, Some(true)), None);
    let suspended = Runtime { suspended: Some(true), ..coreclr };
    assert_eq!(plan::hazard(&perf_map, &suspended, None), Some(Hazard::PerfMapWhileSuspended));
    assert_eq!(plan::hazard(&perf_map, &Runtime { version: Some(10), ..suspended }, None), None);
    // A running .NET 8 or 11 refuses a missing hook. A suspended one accepts the hook, and loads it at startup.
    for version in [8, 11, 12] {
        let running = Runtime { version: Some(version), ..coreclr };
        assert_eq!(plan::hazard(&hook, &running, Some(false)), None, "{version}");
        let suspended = Runtime { version: Some(version), ..suspended };
        assert_eq!(plan::hazard(&hook, &suspended, Some(false)), Some(Hazard::StartupHook), "{version}");
    }
    // Version 3 refuses these requests, and a refused request does not end the process.
    for request in [perf_map, unset, hook] {
        assert_eq!(plan::hazard(&request, &version(3), None), None);
    }
    let native = Runtime { flavour: Some(Flavour::NativeAot), ..unknown };
    let (twice, long) = ([7, 7], "n".repeat(437));
    let sets = [TracepointSet { tracepoint_name: "set".into(), event_ids: Array::from(&twice) }];
    let tracepoints = |default_tracepoint_name, sets| TracepointConfig { default_tracepoint_name, sets };
    for (tracepoints, expected) in [
        (tracepoints("t".into(), Array::from(&sets)), Some(Hazard::DuplicateEventId)),
        (tracepoints((&*long).into(), Array::EMPTY), Some(Hazard::TracepointNameLength)),
        (tracepoints((&long[1..]).into(), Array::EMPTY), None),
        (tracepoints("".into(), Array::EMPTY), None),
    ] {
        let StreamingProvider { keywords, level, name, arguments, filter } = PLAIN[0].into();
        let providers = [UserEventsProvider { keywords, level, name, arguments, filter, tracepoints }];
        let session = UserEventsSession { rundown_keyword: 0, providers: Array::from(&providers) };
        let request = CollectTracing6 { session: SessionConfig6::UserEvents(session) };
        let bytes = encode_to_vec(CollectTracing6::CODE, &request).unwrap();
        let Ok(Parsed::Complete { value, .. }) = Message::parse(&bytes) else { panic!("{request:?}") };
        assert_eq!(value.request().unwrap(), Request::CollectTracing6(request), "decoding keeps the values");
        for runtime in [native, version(10)] {
            assert_eq!(
                plan::hazard(&Request::CollectTracing6(request), &runtime, None),
                expected.filter(|_| runtime.version != Some(10))
            );
            let request =
                Request::CollectTracing5(CollectTracing5 { session: SessionConfig::UserEvents(session) });
            assert_eq!(plan::hazard(&request, &runtime, None), expected);
        }
        let stream = CollectTracing6 {
            session: SessionConfig6::Streaming(StreamingSession6 {
                buffer_mb: 1,
                format: Format::NET_TRACE,
                rundown_keyword: 0,
                stackwalk: false,
                providers: Array::EMPTY,
                session_buffer_mode: SessionBufferMode::DROP,
            }),
        };
        assert_eq!(plan::hazard(&Request::CollectTracing6(stream), &native, None), None);
    }
    assert_eq!(plan::hazard(&hook, &native, None), None);
    assert_eq!(plan::hazard(&unset, &native, None), Some(Hazard::UnsetVariable));
}

/// A payload that is encoded already.
struct Raw<'a>(&'a [u8]);

impl Encode for Raw<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.bytes(self.0);
    }
}

/// .NET 11 checks the bounds of a payload before it refuses a command that it does not support.
#[test]
fn net_11_decodes_what_it_does_not_support() {
    let (enable, disable) = (EnablePerfMap::CODE, DisablePerfMap::CODE);
    for (runtime_version, expected) in [(10, Some(HResult::NOT_SUPPORTED)), (11, None)] {
        let native = Runtime { flavour: Some(Flavour::NativeAot), ..version(runtime_version) };
        assert_eq!(plan::refusal(enable, &native), expected);
        assert_eq!(plan::refusal(disable, &native), Some(HResult::NOT_SUPPORTED));
        for (payload, refusal) in [
            (&[1, 0, 0, 0][..], HResult::NOT_SUPPORTED),
            (&[9, 0, 0, 0], HResult::NOT_SUPPORTED),
            (&[], expected.unwrap_or(HResult::BAD_ENCODING)),
        ] {
            let (mut receive, mut send, mut buf) = ([0; 64], [0; 64], [0; 64]);
            let mut serve = Serve::new(&mut receive, &mut send).unwrap();
            serve.supply(encode(enable, &Raw(payload), &mut buf).unwrap());
            let (_, reply) = serve.finish_for(&native);
            assert_eq!(reply.bytes()[20..24], refusal.0.to_le_bytes(), "{runtime_version}: {payload:?}");
        }
    }
}

#[test]
fn what_a_runtime_of_11_refuses_has_a_sentence() {
    let explain = |code, hresult| plan::explain(code, hresult).map(|why| why.to_string()).unwrap_or_default();
    let hook = explain(ApplyStartupHook::CODE, HResult::INVALID_ARG);
    assert!(hook.starts_with("it cannot load the startup hook"), "{hook}");
    let unset = explain(SetEnvironmentVariable::CODE, HResult(0x8007_00cb));
    assert_eq!(unset, "the runtime has no such environment variable");
    let mode = explain(CollectTracing6::CODE, HResult::BAD_ENCODING);
    assert!(mode.contains("does not accept one of its values"), "{mode}");
}

#[test]
fn obstacles_of_flavours_and_platforms() {
    let of = |flavour| Runtime { flavour: Some(flavour), ..Runtime::default() };
    let windows = Runtime { linux: Some(false), ..of(Flavour::CoreClr) };
    for row in Request::ALL {
        let (dump, profiler) = (row.code.set() == 1, row.code.set() == 3);
        let perf_map = [0x0405, 0x0406].contains(&row.code.0);
        let managed = profiler || perf_map || row.code.0 == 0x0407;
        let expect = |not: bool, obstacle| if not { Some(obstacle) } else { None };
        let (mono, native) = (Flavour::Mono, Flavour::NativeAot);
        assert_eq!(plan::obstacle(row.code, &of(Flavour::CoreClr)), None);
        assert_eq!(plan::obstacle(row.code, &of(mono)), expect(dump || managed, Obstacle::Flavour(mono)));
        assert_eq!(plan::obstacle(row.code, &of(native)), expect(managed, Obstacle::Flavour(native)));
        assert_eq!(plan::obstacle(row.code, &windows), expect(perf_map, Obstacle::NotLinux));
        let before = version(row.since - 1);
        assert_eq!(plan::obstacle(row.code, &before), Some(Obstacle::Version { since: row.since }));
    }
}

#[test]
fn refusals_that_depend_on_the_code_only() {
    let coreclr = |of| Runtime { flavour: Some(Flavour::CoreClr), ..version(of) };
    let native = Runtime { flavour: Some(Flavour::NativeAot), ..version(9) };
    let windows = Runtime { linux: Some(false), ..coreclr(9) };
    let [attach, dump, hook] = [Code(0x0301), Code(0x0101), Code(0x0407)];
    let (perf_map, info, unknown) = (Code(0x0405), Code(0x0404), Code(0x04f0));
    let not_supported = Some(HResult::NOT_SUPPORTED);
    let unknown_command = Some(HResult::UNKNOWN_COMMAND);
    for (command, runtime, expected) in [
        (info, coreclr(9), None),
        (info, coreclr(5), unknown_command), // older than the command
        (unknown, coreclr(9), unknown_command),
        (unknown, Runtime::default(), unknown_command),
        (hook, coreclr(9), None),
        (hook, coreclr(7), unknown_command),
        (hook, native, None), // a runtime reads the path before it refuses
        (attach, native, not_supported),
        (attach, coreclr(9), None),
        (dump, native, None),
        (perf_map, windows, not_supported),
        (perf_map, coreclr(9), None),
    ] {
        assert_eq!(plan::refusal(command, &runtime), expected, "{command} of {runtime:?}");
    }
}

/// Returns the variables of a trace as `NAME=VALUE`, without the prefix of their names.
fn startup_variables(trace: &StartupTrace<'_>, runtime: &Runtime) -> Vec<String> {
    let variables = trace.variables(runtime).unwrap();
    variables.map(|v| format!("{}={}", v.name.strip_prefix("DOTNET_").unwrap(), v.value)).collect()
}

fn startup_error(trace: &StartupTrace<'_>, runtime: &Runtime) -> StartupTraceError {
    trace.variables(runtime).err().unwrap()
}

fn native(version: u8, flavour: Flavour) -> Runtime {
    Runtime { version: Some(version), flavour: Some(flavour), ..Runtime::default() }
}

#[test]
fn a_startup_trace_has_a_variable_for_each_setting() {
    let config = TraceConfig {
        buffer_mb: 0x1f,
        rundown_keyword: 0,
        stackwalk: false,
        buffer_mode: SessionBufferMode::BLOCK,
        ..TraceConfig::new(&PLAIN)
    };
    let trace = StartupTrace {
        sampling_interval_ms: Some(20),
        processor_numbers: true,
        ..StartupTrace::new(config, "a b/{pid}")
    };
    let expected = [
        "EnableEventPipe=1",
        "EventPipeOutputPath=a b/{pid}",
        "EventPipeConfig=A:1:5,B:2:2:k=v",
        "EventPipeCircularMB=1f",
        "EventPipeOutputStreaming=1",
        "EventPipeRundown=0",
        "EventPipeEnableStackwalk=0",
        "EventPipeBufferingMode=1",
        "EventPipeThreadSamplingRate=20",
        "EventPipeProcNumbers=1",
    ];
    assert_eq!(startup_variables(&trace, &version(11)), expected);
    let at_exit = StartupTrace { streaming: false, ..StartupTrace::new(TraceConfig::new(&PLAIN), "t") };
    assert_eq!(
        startup_variables(&at_exit, &version(8))[3..],
        ["EventPipeCircularMB=100", "EventPipeOutputStreaming=0"]
    );
}

/// The numbers were measured with real runtimes: 10 is 16 ms for CoreCLR 10, and 10 ms for NativeAOT 10 and .NET 11.
#[test]
fn numbers_have_the_base_that_the_runtime_reads() {
    let [interval, size] = ["EventPipeThreadSamplingRate=", "EventPipeCircularMB="];
    let value = |ms, runtime: &Runtime, name: &str| {
        let trace =
            StartupTrace { sampling_interval_ms: ms, ..StartupTrace::new(TraceConfig::new(&PLAIN), "t") };
        let variables = startup_variables(&trace, runtime);
        variables.iter().find_map(|v| v.strip_prefix(name).map(ToOwned::to_owned)).unwrap()
    };
    for (runtime, ms, expected) in [
        (version(10), 16, "10"),
        (native(10, Flavour::CoreClr), 100, "64"),
        (native(10, Flavour::NativeAot), 100, "100"),
        (native(10, Flavour::Mono), 100, "100"),
        (version(11), 100, "100"),
        (version(11), 999_999, "999999"),
        (Runtime { flavour: Some(Flavour::NativeAot), ..Runtime::default() }, 10, "10"),
        (Runtime::default(), 9, "9"),
    ] {
        assert_eq!(value(Some(ms), &runtime, interval), expected, "{runtime:?}");
    }
    assert_eq!(value(None, &Runtime::default(), size), "100");
    assert_eq!(value(None, &native(11, Flavour::NativeAot), size), "100");
    assert_eq!(value(None, &native(11, Flavour::Mono), size), "256");
}

#[test]
fn a_startup_trace_that_would_be_no_file_or_another_trace_is_refused() {
    let good = TraceConfig::new(&PLAIN);
    let any = Runtime::default();
    fn of(config: TraceConfig<'_>) -> StartupTraceError {
        startup_error(&StartupTrace::new(config, "t"), &Runtime::default())
    }
    fn invalid(config: TraceConfig<'_>) -> Violation {
        match of(config) {
            StartupTraceError::Value(invalid) => invalid.violation,
            other => panic!("{other}"),
        }
    }
    assert_eq!(invalid(TraceConfig { buffer_mb: 0, ..good }), Violation::BufferSize);
    assert_eq!(invalid(TraceConfig::new(Providers::NONE)), Violation::ProviderCount);
    assert_eq!(
        invalid(TraceConfig { buffer_mode: SessionBufferMode(2), ..good }),
        Violation::SessionBufferMode
    );
    for (name, violation) in [("", Violation::ProviderName), ("\0", Violation::ProviderName)] {
        assert_eq!(invalid(TraceConfig::new(&[Provider { name: name.into(), ..PLAIN[0] }])), violation);
    }
    let level = EventLevel(6);
    assert_eq!(invalid(TraceConfig::new(&[Provider { level, ..PLAIN[0] }])), Violation::ProviderLevel);
    assert_eq!(of(TraceConfig { format: Format::NET_PERF, ..good }), StartupTraceError::Format);
    assert_eq!(of(TraceConfig::new(&filtered())), StartupTraceError::EventFilters);
    assert_eq!(of(TraceConfig { rundown_keyword: 1, ..good }), StartupTraceError::RundownKeyword);
    let lone_surrogates = [[0xd800, 0x61], [0x61, 0xdc00]].each_ref().map(|units| Text::from_utf16(units));
    for text in ["a,b", "a:b", "a\0b", ",", "\"a,b\""].map(Text::from).into_iter().chain(lone_surrogates) {
        let by_name = [PLAIN[0], Provider { name: text, ..PLAIN[0] }];
        let by_arguments = [PLAIN[0], Provider { arguments: text, ..PLAIN[0] }];
        for providers in [by_name, by_arguments] {
            assert_eq!(
                of(TraceConfig::new(&providers)),
                StartupTraceError::ProviderText { provider: 1 },
                "{text:?}"
            );
        }
    }
    let trace = StartupTrace::new(good, "t");
    for output_path in ["", "a\0b"] {
        assert_eq!(
            startup_error(&StartupTrace { output_path, ..trace }, &any),
            StartupTraceError::OutputPath
        );
    }
    let block = TraceConfig { buffer_mode: SessionBufferMode::BLOCK, ..good };
    let at_exit = StartupTrace { streaming: false, ..StartupTrace::new(block, "t") };
    assert_eq!(startup_error(&at_exit, &version(11)), StartupTraceError::BlockingWithoutStreaming);
    assert_eq!(startup_error(&StartupTrace::new(block, "t"), &version(10)), StartupTraceError::Blocking);
    assert!(StartupTrace::new(block, "t").variables(&any).is_ok());
    let interval =
        |ms, runtime| startup_error(&StartupTrace { sampling_interval_ms: Some(ms), ..trace }, &runtime);
    assert_eq!(interval(0, version(11)), StartupTraceError::SamplingInterval);
    assert_eq!(interval(1_000_000, version(11)), StartupTraceError::SamplingInterval);
    assert_eq!(interval(1, version(9)), StartupTraceError::FixedSamplingInterval);
    assert_eq!(interval(10, any), StartupTraceError::UnknownVersion);
}
