//! Plans, over every combination of wishes and versions.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use ipc_proto::plan::{self, DEFAULT_RUNDOWN, Flavour, Hazard, LostFeature, Obstacle, Runtime, TraceWishes};
use ipc_proto::types::{DumpFlags, DumpType, PerfMapType, SessionBufferMode};
use ipc_proto::{
    ApplyStartupHook, Code, CommandInfo, EnablePerfMap, GenerateCoreDump3, GetProcessInfo3, HResult, Request,
    SetEnvironmentVariable, Text,
};

fn version(version: u8) -> Runtime {
    Runtime { version: Some(version), ..Runtime::default() }
}

fn all_wishes() -> Vec<TraceWishes> {
    let mut all = Vec::new();
    for rundown_keyword in [0, DEFAULT_RUNDOWN, 0x10] {
        for bits in 0..16 {
            all.push(TraceWishes {
                rundown_keyword,
                stackwalk: bits & 1 == 0,
                event_filters: bits & 2 != 0,
                buffer_mode: SessionBufferMode((bits & 4) / 4),
                user_events: bits & 8 != 0,
            });
        }
    }
    all
}

/// Returns the command that Microsoft's client sends. It does not support `user_events`.
fn reference(wishes: &TraceWishes) -> u16 {
    match wishes {
        TraceWishes { buffer_mode: SessionBufferMode::BLOCK, .. } => 0x0207,
        TraceWishes { event_filters: true, .. } => 0x0206,
        TraceWishes { rundown_keyword: 0x10, .. } => 0x0205,
        TraceWishes { stackwalk: false, .. } => 0x0204,
        _ => 0x0203,
    }
}

#[test]
fn a_trace_steps_down_until_no_wish_needs_a_newer_command() {
    for wishes in all_wishes() {
        let steps: Vec<_> = plan::trace(wishes, &Runtime::default()).collect();
        assert!(steps[0].lost.is_empty() && steps[0].wishes == wishes);
        if wishes.user_events {
            assert_eq!(steps.len(), 1, "no older command supports user_events");
            assert_eq!(steps[0].command, Code(0x0206));
            continue;
        }
        assert_eq!(steps[0].command.0, reference(&wishes));
        assert!(steps[1..].iter().all(|step| !step.lost.is_empty()));
        for pair in steps.windows(2) {
            assert!(pair[1].command < pair[0].command);
            assert_eq!(pair[1].lost.iter().count(), pair[0].lost.iter().count() + 1, "one loss a step");
            assert_eq!(pair[1].command.0, reference(&pair[1].wishes));
        }
        let last = steps.last().unwrap();
        assert_eq!(last.command, Code(0x0203));
        assert_eq!(last.lost.contains(LostFeature::Blocking), wishes.buffer_mode == SessionBufferMode::BLOCK);
        assert_eq!(last.lost.contains(LostFeature::EventFilters), wishes.event_filters);
        assert_eq!(last.lost.contains(LostFeature::RundownKeyword), wishes.rundown_keyword == 0x10);
        assert_eq!(last.lost.contains(LostFeature::Stackwalk), !wishes.stackwalk);
    }
}

#[test]
fn the_default_wishes_need_one_command() {
    let steps: Vec<_> = plan::trace(TraceWishes::default(), &Runtime::default()).collect();
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0].command, Code(0x0203));
}

#[test]
fn a_plan_for_a_known_version_omits_newer_commands() {
    for wishes in all_wishes().into_iter().filter(|wishes| !wishes.user_events) {
        let whole: Vec<_> = plan::trace(wishes, &Runtime::default()).collect();
        for known in 3..=11 {
            let steps: Vec<_> = plan::trace(wishes, &version(known)).collect();
            let may = |code| CommandInfo::find(code).unwrap().since <= known;
            assert!(!steps.is_empty() && steps.iter().all(|step| may(step.command)));
            assert_eq!(steps, whole[whole.len() - steps.len()..], "the same plan without its first steps");
        }
    }
}

#[test]
fn plans_for_dumps_and_process_information_begin_with_the_newest_command() {
    let dumps =
        |known| plan::dump(DumpFlags(5), &version(known)).map(|step| step.command.0).collect::<Vec<_>>();
    assert_eq!(dumps(11), [0x0103, 0x0102, 0x0101]);
    assert_eq!(dumps(6), [0x0102, 0x0101]);
    assert_eq!(dumps(3), [0x0101]);
    for (flags, lost) in [(0, false), (1, false), (2, true), (5, true)] {
        let last = plan::dump(DumpFlags(flags), &Runtime::default()).last().unwrap();
        assert_eq!(last.lost.contains(LostFeature::DumpFlags), lost, "{flags}");
        assert!(last.lost.contains(LostFeature::DumpMessage));
    }
    let infos = |known| plan::process_info(&version(known)).map(|code| code.0).collect::<Vec<_>>();
    assert_eq!(infos(8), [0x0408, 0x0404, 0x0400]);
    assert_eq!(infos(6), [0x0404, 0x0400]);
    assert!(infos(3).is_empty());
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
    // .NET 8 refuses a missing hook, unless it is suspended: it loads the hook at startup.
    let running_8 = Runtime { version: Some(8), ..coreclr };
    assert_eq!(plan::hazard(&hook, &running_8, Some(false)), None);
    let suspended_8 = Runtime { version: Some(8), ..suspended };
    assert_eq!(plan::hazard(&hook, &suspended_8, Some(false)), Some(Hazard::StartupHook));
    // A refused request does not end the process.
    for request in [perf_map, unset, hook] {
        assert_eq!(plan::hazard(&request, &version(3), None), None);
    }
    let native = Runtime { flavour: Some(Flavour::NativeAot), ..unknown };
    assert_eq!(plan::hazard(&hook, &native, None), None);
    assert_eq!(plan::hazard(&unset, &native, None), Some(Hazard::UnsetVariable));
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
        (hook, native, None), // a runtime reads the path first
        (attach, native, not_supported),
        (attach, coreclr(9), None),
        (dump, native, None),
        (perf_map, windows, not_supported),
        (perf_map, coreclr(9), None),
    ] {
        assert_eq!(plan::refusal(command, &runtime), expected, "{command} of {runtime:?}");
    }
}
