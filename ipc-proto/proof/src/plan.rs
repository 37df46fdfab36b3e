//! The functions of plans: the steps of each wish, the machine that carries out a plan, and the facts about runtimes.
use core::error::Error;
use core::fmt::Display;

use ipc_proto::plan::*;
use ipc_proto::types::{
    EventFilter, ProcessInfo, ProcessInfo2, ProcessInfo3, Provider, StreamingProvider, UserEventsProvider,
    UserEventsSession,
};
use ipc_proto::{Array, CollectTracing6, EnablePerfMap, Encode, ProtocolError, Request, Serve};

use crate::{Address, each, proves, proves_each};

/// Returns the functions of a step, and of the machine that carries it out.
const fn step<S: PlanStep + Clone>() -> [Address; 20] {
    [
        Address(<S as PlanStep>::code as *const ()),
        Address(<S as PlanStep>::check as *const ()),
        Address(<S as PlanStep>::lost_features as *const ()),
        Address(<S as PlanStep>::older as *const ()),
        Address(<S as PlanStep>::response as *const ()),
        Address(<S as PlanStep>::steps as *const ()),
        Address(<S as Encode>::encode as *const ()),
        Address(<S as Encode>::encoded_len as *const ()),
        Address(last::<S> as *const ()),
        Address(Fallback::<S>::new as *const ()),
        Address(Fallback::<S>::command as *const ()),
        Address(Fallback::<S>::transferred as *const ()),
        Address(Fallback::<S>::step as *const ()),
        Address(Fallback::<S>::connected as *const ()),
        Address(Fallback::<S>::busy as *const ()),
        Address(Fallback::<S>::advance as *const ()),
        Address(Fallback::<S>::until as *const ()),
        Address(Fallback::<S>::tick as *const ()),
        Address(Fallback::<S>::finish as *const ()),
        Address(<Fallback<S> as Clone>::clone as *const ()),
    ]
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
