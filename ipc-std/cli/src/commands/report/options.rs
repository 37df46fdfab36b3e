//! The options of `report`.
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use nettrace_analysis::call_tree::Order;
use nettrace_analysis::report::ReportQuery;
use nettrace_analysis::samples::Clock;

use crate::args::clock_args::ClockArgs;
use crate::args::frame_args::FrameArgs;
use crate::args::zone_args::ZoneArgs;
use crate::process::trace_target::TraceTargetArgs;
use crate::recording::analysis_input::AnalysisArgs;
use crate::run::Failure;

/// Show the functions of a process or of a trace that take the most time, or allocate, throw or wait
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../report.txt"))]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) target: TraceTargetArgs,
    /// Show N functions
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(super) top: usize,
    /// Sort the functions by this share
    #[arg(long, value_name = "SHARE", default_value = "exclusive", value_parser = order_parser())]
    pub(super) by: Order,
    #[command(flatten)]
    clock: ClockArgs,
    /// Show the threads, the heaviest first
    #[arg(long)]
    pub(super) threads: bool,
    /// Show the calls from the root, down to 1 % of the total, in up to 5 N lines; `+` is one of several callees
    #[arg(long)]
    pub(super) tree: bool,
    /// Leave out modules and arguments of functions
    #[arg(long)]
    pub(super) short: bool,
    #[command(flatten)]
    pub(super) frames: FrameArgs,
    /// Show the functions whose shares differ most from those in OLD
    #[arg(long, value_name = "OLD", conflicts_with_all = ["threads", "tree"])]
    pub(super) diff: Option<PathBuf>,
    #[command(flatten)]
    pub(super) zone: ZoneArgs,
    #[command(flatten)]
    pub(super) analysis: AnalysisArgs,
}

fn order_parser() -> impl TypedValueParser<Value = Order> {
    PossibleValuesParser::new(["exclusive", "inclusive", "own"]).map(|share| match share.as_str() {
        "inclusive" => Order::Inclusive,
        "own" => Order::Own,
        _ => Order::Exclusive,
    })
}

impl Args {
    /// Returns what the report is about.
    pub(super) fn query(&self) -> Result<ReportQuery, Failure> {
        let clock = self.clock.clock()?;
        let (is_chosen, is_exact) = (!self.clock.is_default(), self.is_exact(&clock));
        let threads = self.threads.then_some(self.top);
        Ok(ReportQuery { clock, is_chosen, order: self.by, is_exact, threads })
    }

    /// Returns whether all frames are shown, with their exact names. Thread time has the rule of another tool.
    pub(super) fn is_exact(&self, clock: &Clock) -> bool {
        self.frames.raw || *clock == Clock::ThreadTime
    }
}
