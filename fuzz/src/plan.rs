//! The property of plans without connections: their commands, and what each step loses.
use arbitrary::Unstructured;
use ipc_proto::plan::{
    self, DEFAULT_RUNDOWN, DumpConfig, Flavour, InfoConfig, LostFeature, LostFeatures, Obstacle, PlanStep,
    Providers, Runtime, TraceConfig, TraceStep,
};
use ipc_proto::types::{
    DumpFlags, DumpType, EventFilter, Format, Provider, SessionBufferMode, StreamingProvider,
};
use ipc_proto::{
    Array, AttachProfiler, Code, Command, CommandInfo, HResult, Message, Parsed, Request, encode_to_vec,
};

/// For all configurations and all known facts: a plan begins with the oldest command that carries everything, loses
/// exactly the features that it reports at every step, and contains no command that the runtime cannot know. Each
/// command arrives at the server as the configuration that it carries. An unknown fact counts as the worse case. Result
/// codes are formatted unchanged.
pub fn plan(bytes: &[u8]) {
    let _ = plans(&mut Unstructured::new(bytes));
}

fn plans(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let runtime = runtime(u)?;
    traces(&config(u)?, &runtime);
    others(DumpFlags(u.arbitrary()?), &runtime);
    results(HResult(u.arbitrary()?), u.arbitrary()?);
    let code = Code(u.arbitrary()?);
    let request: Request<'_> = u.arbitrary()?;
    let file_exists = u.arbitrary()?;
    for code in [code, request.code()] {
        obstacles(code, &runtime);
    }
    // A plan that is made with more facts about the runtime is never worse.
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

/// Returns variants of the runtime, each with one more fact.
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

fn config<'a>(u: &mut Unstructured<'a>) -> arbitrary::Result<TraceConfig<'a>> {
    let providers = match u.arbitrary()? {
        true => Providers::from(u.arbitrary::<Array<'_, Provider<'_>>>()?),
        false => u.arbitrary::<Array<'_, StreamingProvider<'_>>>()?.into(),
    };
    Ok(TraceConfig {
        buffer_mb: u.int_in_range(0..=2)?,
        format: Format(u.int_in_range(0..=2)?),
        rundown_keyword: *u.choose(&[0, DEFAULT_RUNDOWN, 1, u64::MAX])?,
        stackwalk: u.arbitrary()?,
        buffer_mode: SessionBufferMode(u.int_in_range(0..=2)?),
        providers,
    })
}

/// Returns whether the command carries the whole configuration.
fn carries(command: Code, config: &TraceConfig<'_>) -> bool {
    let own_rundown = ![0, DEFAULT_RUNDOWN].contains(&config.rundown_keyword);
    command.0
        >= match config {
            _ if config.buffer_mode != SessionBufferMode::DROP => 0x0207,
            _ if config.providers.iter().any(|provider| provider.filter != EventFilter::ALL) => 0x0206,
            _ if own_rundown => 0x0205,
            TraceConfig { stackwalk: false, .. } => 0x0204,
            _ => 0x0203,
        }
}

fn traces(config: &TraceConfig<'_>, runtime: &Runtime) {
    let may_know = |step: &TraceStep<'_>| {
        let since = CommandInfo::find(step.code()).expect("a command").since;
        runtime.version.is_none_or(|version| version >= since)
    };
    let all: Vec<_> = config.first_step(&Runtime::default()).steps().collect();
    assert_eq!(all[0].config(), config);
    for step in &all {
        let unfiltered: Vec<_> = config.providers.iter().map(without_filter).collect();
        let mut left = *config;
        for loss in step.lost_features().iter() {
            match loss {
                LostFeature::Blocking => left.buffer_mode = SessionBufferMode::DROP,
                LostFeature::EventFilters => left.providers = Providers::from(unfiltered.as_slice()),
                LostFeature::RundownKeyword => left.rundown_keyword = DEFAULT_RUNDOWN,
                LostFeature::Stackwalk => left.stackwalk = true,
                other => panic!("a trace cannot lose {other:?}"),
            }
            assert!(left != *config, "{loss:?} was not a wish");
        }
        assert_eq!(*step.config(), left, "it loses a feature that it does not report");
        let older = Code(step.code().0 - 1);
        assert!(carries(step.code(), &left) && (older.0 == 0x0202 || !carries(older, &left)), "{step:?}");
        arrives(step);
    }
    let losses = |lost: LostFeatures| lost.iter().count();
    assert!(
        all.is_sorted_by(|a, b| a.code() > b.code() && losses(a.lost_features()) < losses(b.lost_features()))
    );
    let known: Vec<_> = config.first_step(runtime).steps().collect();
    let expected: Vec<_> = all.iter().copied().filter(may_know).collect();
    assert!(known == expected || (expected.is_empty() && known == all[all.len() - 1..]));
}

fn without_filter(provider: StreamingProvider<'_>) -> StreamingProvider<'_> {
    StreamingProvider { filter: EventFilter::ALL, ..provider }
}

/// A server reads the step as the configuration that it carries, and finds the same broken rule.
fn arrives(step: &TraceStep<'_>) {
    let Ok(bytes) = encode_to_vec(step.code(), step) else { return };
    let Ok(Parsed::Complete { value: message, .. }) = Message::parse(&bytes) else { panic!("{step:?}") };
    let request = message.request().expect("a client sends what a server can read");
    assert_eq!(TraceConfig::try_from(&request).as_ref(), Ok(step.config()));
    assert_eq!(encode_to_vec(request.code(), &request).as_deref(), Ok(bytes.as_slice()));
    assert_eq!(step.check(), request.check());
}

fn others(flags: DumpFlags, runtime: &Runtime) {
    let version = runtime.version.unwrap_or(u8::MAX);
    let known = |rows: [(u16, u8); 3]| {
        let mut codes: Vec<u16> = rows.iter().filter(|row| row.1 <= version).map(|row| row.0).collect();
        if codes.is_empty() {
            codes.push(rows[2].0);
        }
        codes
    };
    let dump = DumpConfig { path: "/core".into(), dump_type: DumpType::FULL, flags };
    let dumps: Vec<_> = dump.first_step(runtime).steps().collect();
    let expected = known([(0x0103, 7), (0x0102, 6), (0x0101, 3)]);
    assert!(dumps.iter().map(|step| step.code().0).eq(expected));
    for step in dumps {
        let beyond = step.code().0 == 0x0101 && flags.0 & !1 != 0;
        assert_eq!(step.lost_features().contains(LostFeature::DumpFlags), beyond);
        assert_eq!(step.lost_features().contains(LostFeature::DumpMessage), step.code().0 != 0x0103);
        assert_eq!(step.lost_features().is_empty(), step.code().0 == 0x0103);
    }
    let infos = InfoConfig.first_step(runtime).steps().map(|step| step.code().0);
    assert!(infos.eq(known([(0x0408, 8), (0x0404, 6), (0x0400, 5)])));
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
        None if row.is_none() => assert_eq!(refusal, Some(HResult::UNKNOWN_COMMAND)),
        None if runtime.suspended == Some(true) && code == AttachProfiler::CODE => {
            assert_eq!(refusal, Some(HResult::NOT_YET_AVAILABLE));
        }
        None => assert_eq!(refusal, None),
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
