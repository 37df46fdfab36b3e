use arbitrary::Unstructured;
use ipc_proto::plan::{self, DEFAULT_RUNDOWN, Flavour, LostFeature, Obstacle, Runtime, TraceWishes};
use ipc_proto::types::{DumpFlags, SessionBufferMode};
use ipc_proto::{Code, CommandInfo, HResult, Request};

/// For all wishes and all known facts: a plan begins with the oldest command that supports every wish, loses exactly
/// the features that it reports at every step, and contains no command that the runtime cannot know. An unknown fact
/// counts as the worse case. Result codes are formatted unchanged.
pub fn plan(bytes: &[u8]) {
    let _ = plans(&mut Unstructured::new(bytes));
}

fn plans(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let runtime = runtime(u)?;
    traces(wishes(u)?, &runtime);
    others(DumpFlags(u.arbitrary()?), &runtime);
    results(HResult(u.arbitrary()?), u.arbitrary()?);
    let code = Code(u.arbitrary()?);
    let request: Request<'_> = u.arbitrary()?;
    let file_exists = u.arbitrary()?;
    for code in [code, request.code()] {
        obstacles(code, &runtime);
    }
    // More knowledge never makes the result worse.
    let hazard = plan::hazard(&request, &runtime, file_exists);
    if hazard.is_some() {
        assert_eq!(
            plan::obstacle(request.code(), &runtime),
            None,
            "a refused request does not end the process"
        );
    }
    let obstacle = plan::obstacle(request.code(), &runtime);
    for known in more_known(&runtime) {
        let now = plan::hazard(&request, &known, file_exists);
        assert!(
            now.is_none() || now == hazard,
            "{request:?}: {hazard:?} of {runtime:?}, {now:?} of {known:?}"
        );
        assert!(obstacle.is_none() || plan::obstacle(request.code(), &known).is_some());
    }
    Ok(())
}

fn runtime(u: &mut Unstructured<'_>) -> arbitrary::Result<Runtime> {
    let flavour =
        *u.choose(&[None, Some(Flavour::CoreClr), Some(Flavour::Mono), Some(Flavour::NativeAot)])?;
    let version = if u.arbitrary()? { Some(u.int_in_range(0..=12)?) } else { u.arbitrary()? };
    let (linux, suspended) = (u.arbitrary()?, u.arbitrary()?);
    let mut runtime = Runtime::default();
    (runtime.version, runtime.flavour, runtime.linux, runtime.suspended) =
        (version, flavour, linux, suspended);
    Ok(runtime)
}

/// Returns variants of the runtime with one more known fact.
fn more_known(runtime: &Runtime) -> Vec<Runtime> {
    let mut known = vec![*runtime];
    if runtime.version.is_none() {
        known.extend((0..=12).map(|version| Runtime { version: Some(version), ..*runtime }));
    }
    if runtime.flavour.is_none() {
        let flavours = [Flavour::CoreClr, Flavour::Mono, Flavour::NativeAot];
        known.extend(flavours.map(|flavour| Runtime { flavour: Some(flavour), ..*runtime }));
    }
    for is in [false, true] {
        if runtime.linux.is_none() {
            known.push(Runtime { linux: Some(is), ..*runtime });
        }
        if runtime.suspended.is_none() {
            known.push(Runtime { suspended: Some(is), ..*runtime });
        }
    }
    known
}

fn wishes(u: &mut Unstructured<'_>) -> arbitrary::Result<TraceWishes> {
    Ok(TraceWishes {
        rundown_keyword: *u.choose(&[0, DEFAULT_RUNDOWN, 1, u64::MAX])?,
        stackwalk: u.arbitrary()?,
        event_filters: u.arbitrary()?,
        buffer_mode: SessionBufferMode(u.int_in_range(0..=2)?),
        user_events: u.ratio(1, 4)?,
    })
}

/// Returns whether the command supports every wish.
fn carries(command: Code, wishes: &TraceWishes) -> bool {
    let own_rundown = ![0, DEFAULT_RUNDOWN].contains(&wishes.rundown_keyword);
    let mode = wishes.buffer_mode != SessionBufferMode::DROP && !wishes.user_events;
    command.0
        >= match wishes {
            _ if mode => 0x0207,
            TraceWishes { event_filters: true, .. } | TraceWishes { user_events: true, .. } => 0x0206,
            _ if own_rundown => 0x0205,
            TraceWishes { stackwalk: false, .. } => 0x0204,
            _ => 0x0203,
        }
}

fn traces(wishes: TraceWishes, runtime: &Runtime) {
    let may_know = |code: Code| {
        let since = CommandInfo::find(code).expect("a command").since;
        runtime.version.is_none_or(|version| version >= since)
    };
    let all: Vec<_> = plan::trace(wishes, &Runtime::default()).collect();
    assert_eq!(all[0].wishes, wishes);
    for step in &all {
        let mut left = wishes;
        for loss in step.lost.iter() {
            assert!(step.lost.contains(loss));
            match loss {
                LostFeature::Blocking => left.buffer_mode = SessionBufferMode::DROP,
                LostFeature::EventFilters => left.event_filters = false,
                LostFeature::RundownKeyword => left.rundown_keyword = DEFAULT_RUNDOWN,
                LostFeature::Stackwalk => left.stackwalk = true,
                other => panic!("a trace cannot lose {other:?}"),
            }
            assert!(left != wishes, "{loss:?} was not a wish");
        }
        assert_eq!(step.wishes, left, "it loses a feature that it does not report");
        let older = Code(step.command.0 - 1);
        assert!(carries(step.command, &left) && (older.0 == 0x0202 || !carries(older, &left)), "{step:?}");
    }
    assert!(all.is_sorted_by(|a, b| a.command > b.command && a.lost.iter().count() < b.lost.iter().count()));
    let known: Vec<_> = plan::trace(wishes, runtime).collect();
    let expected: Vec<_> = all.into_iter().filter(|step| may_know(step.command)).collect();
    assert_eq!(known, expected);
    assert!(wishes.user_events || runtime.version.is_some_and(|version| version < 3) || !known.is_empty());
}

fn others(flags: DumpFlags, runtime: &Runtime) {
    let version = runtime.version.unwrap_or(u8::MAX);
    let dumps: Vec<_> = plan::dump(flags, runtime).map(|step| step.command.0).collect();
    let expected = [(0x0103, 7), (0x0102, 6), (0x0101, 3)].into_iter().filter(|row| row.1 <= version);
    assert!(dumps.iter().copied().eq(expected.map(|row| row.0)));
    for step in plan::dump(flags, runtime) {
        let beyond = step.command.0 == 0x0101 && flags.0 & !1 != 0;
        assert_eq!(step.lost.contains(LostFeature::DumpFlags), beyond);
        assert_eq!(step.lost.contains(LostFeature::DumpMessage), step.command.0 != 0x0103);
        assert_eq!(step.lost.is_empty(), step.command.0 == 0x0103);
    }
    let infos = [(0x0408, 8), (0x0404, 6), (0x0400, 5)].into_iter().filter(|row| row.1 <= version);
    assert!(plan::process_info(runtime).map(|code| code.0).eq(infos.map(|row| row.0)));
}

fn obstacles(code: Code, runtime: &Runtime) {
    let row = CommandInfo::find(code);
    let refusal = plan::refusal(code, runtime);
    match plan::obstacle(code, runtime) {
        Some(obstacle) => {
            assert!(obstacle.to_string().len() > 10);
            match obstacle {
                Obstacle::Version { since } => {
                    assert_eq!(row.map(|row| row.since), Some(since));
                    assert!(runtime.version.is_some_and(|version| version < since));
                    assert_eq!(refusal, Some(HResult::UNKNOWN_COMMAND));
                }
                Obstacle::Flavour(flavour) => assert_eq!(runtime.flavour, Some(flavour)),
                Obstacle::NotLinux => assert_eq!(runtime.linux, Some(false)),
                other => panic!("{other:?} is not in this list"),
            }
        }
        None => assert_eq!(refusal, row.is_none().then_some(HResult::UNKNOWN_COMMAND)),
    }
}

fn results(any: HResult, error: u16) {
    for code in HResult::NAMED.iter().copied().chain([any, HResult::from_win32(error)]) {
        let written = code.to_string();
        let digits = written.strip_prefix("0x").filter(|digits| digits.len() == 8);
        assert_eq!(digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()), Some(code.0));
        assert_eq!(code.name().is_some(), HResult::NAMED.contains(&code));
        assert_eq!(code.name().is_some(), code.hint().is_some());
        let named = code.name().map_or_else(|| written.clone(), |name| format!("{written} {name}"));
        assert_eq!(format!("{code:?}"), named);
    }
    assert_eq!(HResult::from_win32(error).0, 0x8007_0000 | u32::from(error));
}
