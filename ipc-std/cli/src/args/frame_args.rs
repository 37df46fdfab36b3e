//! `--own`, `--raw` and `--symbols`: which functions belong to the program, and which frames of stacks are shown.
use nettrace_analysis::OwnCode;
use nettrace_analysis::names::Names;
use nettrace_analysis::samples::{Clock, Samples};

use super::symbol_args::SymbolArgs;

/// Which functions belong to the program, and where the names of native ones are.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NameArgs {
    /// Functions of the program begin with PATTERN: a module, namespace or type; repeatable [default: all outside of
    /// .NET and Microsoft's libraries]
    #[arg(long, value_name = "PATTERN")]
    own: Vec<String>,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
}

impl NameArgs {
    pub(crate) fn own_code(&self) -> OwnCode {
        OwnCode::new(self.own.iter().cloned())
    }
}

/// Which functions belong to the program, and which frames of stacks are shown.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FrameArgs {
    #[command(flatten)]
    pub(crate) names: NameArgs,
    /// Show all frames of stacks with their exact names
    #[arg(long)]
    pub(crate) raw: bool,
}

impl FrameArgs {
    /// Makes names state which functions belong to the program. Names need this before they name any frame.
    pub(crate) fn prepare(&self, names: &mut Names) {
        names.set_own_code(self.names.own_code());
    }

    /// Returns samples without any event, by these clocks. Their names are short or whole, and state what belongs to the
    /// program.
    pub(crate) fn samples(&self, clocks: impl IntoIterator<Item = Clock>, is_short: bool) -> Samples {
        let mut samples = Samples::new(clocks);
        self.prepare(samples.names_mut());
        if is_short {
            samples.names_mut().shorten();
        }
        samples
    }
}
