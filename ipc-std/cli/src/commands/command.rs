//! The list of commands.
use std::process::ExitCode;

use clap::Subcommand;

#[cfg(unix)]
use super::clean;
use super::{
    completions, conformance, counters, decode, demo, dump, env, events, fake_runtime, find, flame, gc, info,
    jit, list_profiles, man, monitor, perf_map, profiler, ps, report, resume, rewrite, set_env, stack,
    startup_hook, stats, top, trace,
};
use crate::output::failure::Failure;
use crate::output::globals::Globals;

/// A command and its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Ps(ps::Args),
    Find(find::Args),
    #[cfg(unix)]
    Clean(clean::Args),
    Info(info::Args),
    Env(env::Args),
    Trace(trace::Args),
    Stack(stack::Args),
    Top(top::Args),
    Counters(counters::Args),
    ListProfiles(list_profiles::Args),
    Dump(dump::Args),
    SetEnv(set_env::Args),
    PerfMap(perf_map::Args),
    StartupHook(startup_hook::Args),
    AttachProfiler(profiler::AttachArgs),
    StartupProfiler(profiler::StartupArgs),
    Resume(resume::Args),
    Monitor(monitor::Args),
    Demo(demo::Args),
    FakeRuntime(fake_runtime::Args),
    Events(events::Args),
    Stats(stats::Args),
    Report(report::Args),
    Flame(flame::Args),
    Gc(gc::Args),
    Jit(jit::Args),
    Rewrite(rewrite::Args),
    Decode(decode::Args),
    Conformance(conformance::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    Man(man::Args),
}

impl Command {
    /// Runs the command; `cli` describes all of them. The exit status of a success is 0, but for `monitor`, which
    /// returns that of its own command.
    pub(crate) fn run(self, globals: &Globals, cli: clap::Command) -> Result<ExitCode, Failure> {
        let result = match self {
            Self::Ps(args) => ps::run(&args, globals),
            Self::Find(args) => find::run(&args, globals),
            #[cfg(unix)]
            Self::Clean(args) => clean::run(&args, globals),
            Self::Info(args) => info::run(&args, globals),
            Self::Env(args) => env::run(&args, globals),
            Self::Trace(args) => trace::run(&args, globals),
            Self::Stack(args) => stack::run(&args, globals),
            Self::Top(args) => top::run(&args, globals),
            Self::Counters(args) => counters::run(&args, globals),
            Self::ListProfiles(args) => list_profiles::run(&args, globals),
            Self::Dump(args) => dump::run(&args, globals),
            Self::SetEnv(args) => set_env::run(&args, globals),
            Self::PerfMap(args) => perf_map::run(&args, globals),
            Self::StartupHook(args) => startup_hook::run(&args, globals),
            Self::AttachProfiler(args) => profiler::attach(&args, globals),
            Self::StartupProfiler(args) => profiler::startup(&args, globals),
            Self::Resume(args) => resume::run(&args, globals),
            Self::Monitor(args) => {
                let status = monitor::run(&args, globals)?;
                return Ok(status.unwrap_or(ExitCode::SUCCESS));
            }
            Self::Demo(args) => demo::run(&args, globals),
            Self::FakeRuntime(args) => fake_runtime::run(&args, globals),
            Self::Events(args) => events::run(&args, globals),
            Self::Stats(args) => stats::run(&args, globals),
            Self::Report(args) => report::run(&args, globals),
            Self::Flame(args) => flame::run(&args, globals),
            Self::Gc(args) => gc::run(&args, globals),
            Self::Jit(args) => jit::run(&args, globals),
            Self::Rewrite(args) => rewrite::run(&args, globals),
            Self::Decode(args) => decode::run(&args, globals),
            Self::Conformance(args) => conformance::run(&args, globals),
            Self::Completions(args) => completions::run(&args, cli),
            Self::Man(args) => man::run(&args, cli),
        };
        result.map(|()| ExitCode::SUCCESS)
    }
}
