//! The functions of plans: the steps of each wish, the machine that carries out a plan, and the facts about runtimes.
use core::error::Error;
use core::fmt::Display;

use ipc_proto::plan::*;
use ipc_proto::types::{
    EventFilter, ProcessInfo, ProcessInfo2, ProcessInfo3, Provider, StreamingProvider, UserEventsProvider,
    UserEventsSession,
};
use ipc_proto::{Array, CollectTracing6, EnablePerfMap, Encode, ProtocolError, Request, Serve};

use crate::{Address, addresses, each, proves, proves_each};

/// Returns the functions of a step, and of the machine that carries it out.
const fn step<S: PlanStep + Clone>() -> [Address; 21] {
    addresses! {
        <S as PlanStep>::code, <S as PlanStep>::check, <S as PlanStep>::lost_features, <S as PlanStep>::older,
        <S as PlanStep>::response, <S as PlanStep>::steps, <S as Encode>::encode,
        <S as Encode>::encoded_len, last::<S>, Fallback::<S>::new, Fallback::<S>::command,
        Fallback::<S>::transferred, Fallback::<S>::step, Fallback::<S>::connected, Fallback::<S>::busy,
        Fallback::<S>::advance, Fallback::<S>::supply, Fallback::<S>::until, Fallback::<S>::tick, Fallback::<S>::finish,
        <Fallback<S> as Clone>::clone,
    }
}
fn last<S: PlanStep>(step: S) -> Option<S> {
    step.steps().last()
}

proves_each! { STEPS: step,
    TraceStep<'_>, DumpStep<'_>, InfoStep, Single<EnablePerfMap>, Single<CollectTracing6<'_>>,
}

proves! { WISHES:
    trace, TraceConfig::first_step, TraceConfig::includes, TraceConfig::includes_rundown, TraceStep::config,
    <TraceConfig<'_> as TryFrom<&Request<'_>>>::try_from, <NotTracing as Display>::fmt, StreamingProvider::includes,
    <UserEventsSession<'_> as TryFrom<&Request<'_>>>::try_from,
    UserEventsProvider::includes, EventFilter::includes,
    Providers::len, Providers::is_empty, providers, <Providers<'_> as PartialEq>::eq,
    <Providers<'_> as From<Array<'_, Provider<'_>>>>::from, <Providers<'_> as From<&[Provider<'_>]>>::from,
    <Providers<'_> as From<&[Provider<'_>; 3]>>::from, <Providers<'_> as From<Array<'_, StreamingProvider<'_>>>>::from,
    <Providers<'_> as From<&[StreamingProvider<'_>]>>::from, <Providers<'_> as From<&[StreamingProvider<'_>; 3]>>::from,
    <StreamingProvider<'_> as From<Provider<'_>>>::from,
    DumpConfig::first_step, <DumpConfig<'_> as TryFrom<&Request<'_>>>::try_from, <NotDumping as Display>::fmt,
    InfoConfig::first_step,
    InfoStep::of, InfoStep::answer, InfoStep::has_version, InfoStep::has_platform,
    <InfoAnswer<'_> as Encode>::encode, <InfoAnswer<'_> as Encode>::encoded_len,
    <ProcessInfo3<'_> as From<ProcessInfo<'_>>>::from, <ProcessInfo3<'_> as From<ProcessInfo2<'_>>>::from,
    <FallbackError as Display>::fmt, <FallbackError as Error>::source, <FallbackError as From<ProtocolError>>::from,
}

proves! { STARTUP_TRACES:
    startup_trace, startup_variables, <StartupValue<'_> as Display>::fmt,
    <StartupTraceError as Display>::fmt, <StartupTraceError as Error>::source,
}

proves! { RUNTIMES:
    obstacle, refusal, hazard, stop_hazard, explain, major_version, Serve::finish_for, <Runtime as From<&ProcessInfo3<'_>>>::from,
    losses, LostFeatures::is_empty, LostFeatures::contains,
    <Hazard as Display>::fmt, <LostFeature as Display>::fmt, <Obstacle as Display>::fmt, <Explanation as Display>::fmt,
}

fn trace<'a>(providers: Providers<'a>) -> TraceConfig<'a> {
    TraceConfig::new(providers)
}

fn startup_trace<'a>(config: TraceConfig<'a>, output_path: &'a str) -> StartupTrace<'a> {
    StartupTrace::new(config, output_path)
}

fn startup_variables<'a>(
    trace: &StartupTrace<'a>,
    runtime: &Runtime,
    visit: &mut dyn FnMut(StartupVariable<'a>),
) -> Result<(), StartupTraceError> {
    trace.variables(runtime).map(|variables| each(variables, visit))
}

fn providers<'a>(providers: &Providers<'a>, visit: &mut dyn FnMut(StreamingProvider<'a>)) {
    each(providers.iter(), visit);
}

fn losses(lost: LostFeatures, visit: &mut dyn FnMut(LostFeature)) {
    each(lost.iter(), visit);
}
