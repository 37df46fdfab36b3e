//! The options of `report`.
use std::path::PathBuf;

use nettrace_analysis::call_tree::{CallTree, Order};
use nettrace_analysis::samples::{Clock, Samples, ThreadNumber, Weight};

use crate::args::clock_args::ClockArgs;
use crate::args::frame_args::FrameArgs;
use crate::process::trace_target::TraceTargetArgs;
use crate::recording::analysis_input::AnalysisArgs;

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
    #[arg(long, value_name = "SHARE", default_value = "exclusive")]
    by: ReportOrder,
    #[command(flatten)]
    pub(super) clock: ClockArgs,
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
    pub(super) analysis: AnalysisArgs,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ReportOrder {
    Exclusive,
    Inclusive,
    Own,
}

impl Args {
    pub(super) const fn order(&self) -> Order {
        match self.by {
            ReportOrder::Exclusive => Order::Exclusive,
            ReportOrder::Inclusive => Order::Inclusive,
            ReportOrder::Own => Order::Own,
        }
    }

    /// Returns the tree of the frames that are shown.
    pub(super) fn call_tree(
        &self,
        samples: &mut Samples,
        clock: &Clock,
        weigh: impl FnMut(ThreadNumber, Weight) -> u64,
    ) -> CallTree {
        let tree = if self.is_exact(clock) { CallTree::new } else { CallTree::of_origins };
        tree(samples, clock, weigh)
    }

    /// Returns whether all frames are shown, with their exact names. Thread time has the rule of another tool.
    pub(super) fn is_exact(&self, clock: &Clock) -> bool {
        self.frames.raw || *clock == Clock::ThreadTime
    }
}
