//! The options of `report`.
use std::path::PathBuf;

use nettrace_analysis::call_tree::Order;
use nettrace_analysis::report::ReportQuery;

use crate::args::clock_args::ClockArgs;
use crate::args::frame_args::FrameArgs;
use crate::output::failure::Failure;
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
    top: usize,
    /// Sort the functions by this share
    #[arg(long, value_name = "SHARE", default_value = "exclusive")]
    by: ReportOrder,
    #[command(flatten)]
    clock: ClockArgs,
    /// Show the threads, the heaviest first
    #[arg(long)]
    threads: bool,
    /// Show the calls from the root, down to 1 % of the total, in up to 5 N lines; `+` is one of several callees
    #[arg(long)]
    tree: bool,
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
    /// Returns what the report shows.
    pub(super) fn query(&self) -> Result<ReportQuery, Failure> {
        Ok(ReportQuery {
            clock: self.clock.clock()?,
            is_default_clock: self.clock.is_default(),
            order: match self.by {
                ReportOrder::Exclusive => Order::Exclusive,
                ReportOrder::Inclusive => Order::Inclusive,
                ReportOrder::Own => Order::Own,
            },
            top: self.top,
            is_raw: self.frames.raw,
            threads: self.threads,
            calls: self.tree,
        })
    }
}
