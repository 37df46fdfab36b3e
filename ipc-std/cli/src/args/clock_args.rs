//! The options for the clock: what counts in a trace.
use dotnet_ipc_sans_io::syntax::only_arg::OnlyArg;
use nettrace_analysis::samples::Clock;

use crate::run::Failure;

/// The choice of a clock, and its form.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct ClockArgs {
    #[command(flatten)]
    choice: ClockChoice,
    /// With --allocations: add the type of the objects
    #[arg(long, requires = "allocations")]
    pub(crate) by_type: bool,
}

/// The choice of a clock.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct ClockChoice {
    /// Count samples of threads that run managed code, the default
    #[arg(long)]
    cpu: bool,
    /// Count all samples
    #[arg(long)]
    wall: bool,
    /// Add up the time of threads, as dotnet-trace does
    #[arg(long)]
    thread_time: bool,
    /// Add up allocated bytes
    #[arg(long)]
    allocations: bool,
    /// Count exceptions
    #[arg(long)]
    exceptions: bool,
    /// Add up the time of waiting for locks
    #[arg(long)]
    contention: bool,
    /// Add up the time of waiting on WaitHandles (.NET 9)
    #[arg(long)]
    waits: bool,
    /// Count the events PROVIDER[/ID], or `all` with a stack
    #[arg(long, value_name = "PROVIDER/ID")]
    event: Option<String>,
}

impl ClockArgs {
    /// Returns whether no clock was chosen.
    pub(crate) const fn is_default(&self) -> bool {
        let ClockChoice { cpu, wall, thread_time, allocations, exceptions, contention, waits, event } =
            &self.choice;
        !(*cpu
            || *wall
            || *thread_time
            || *allocations
            || *exceptions
            || *contention
            || *waits
            || event.is_some())
    }

    /// Returns the clock: CPU time, if none was chosen.
    pub(crate) fn clock(&self) -> Result<Clock, Failure> {
        Ok(match &self.choice {
            ClockChoice { wall: true, .. } => Clock::Wall,
            ClockChoice { thread_time: true, .. } => Clock::ThreadTime,
            ClockChoice { allocations: true, .. } if self.by_type => Clock::AllocatedTypes,
            ClockChoice { allocations: true, .. } => Clock::Allocations,
            ClockChoice { exceptions: true, .. } => Clock::Exceptions,
            ClockChoice { contention: true, .. } => Clock::Contention,
            ClockChoice { waits: true, .. } => Clock::Waits,
            ClockChoice { event: Some(event), .. } if event == "all" => Clock::AllEvents,
            ClockChoice { event: Some(event), .. } => {
                let invalid = |e: &str| {
                    Failure::usage(format!("invalid value {event:?} for --event: {e}"))
                        .with_hint("an event is PROVIDER/ID, PROVIDER or all")
                };
                let only = OnlyArg::parse(event).map_err(|e| invalid(&e))?;
                let selector = only.as_filter();
                if let Some(name) = selector.event_name {
                    return Err(invalid(&format!("{name:?} after the / is not an ID")));
                }
                let provider = selector.provider.to_owned();
                Clock::Events { provider, event_id: selector.event_id }
            }
            _ => Clock::Cpu,
        })
    }
}
