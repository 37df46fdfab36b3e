//! `--own`, `--raw` and `--symbols`: which functions belong to the program, and which frames of stacks are shown.
use nettrace_analysis::OwnCode;
use nettrace_analysis::names::Names;
use nettrace_analysis::samples::{Clock, Samples};

use super::symbol_args::SymbolArgs;
use crate::input::symbol_file::SymbolsOf;
use crate::run::Failure;

/// Which functions belong to the program.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OwnArgs {
    /// Functions of the program begin with PATTERN: a module, namespace or type; repeatable [default: all outside of
    /// .NET and Microsoft's libraries]
    #[arg(long, value_name = "PATTERN")]
    own: Vec<String>,
}

impl OwnArgs {
    pub(crate) fn code(&self) -> OwnCode {
        OwnCode::new(self.own.iter().cloned())
    }
}

/// Which functions belong to the program, and which frames of stacks are shown.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FrameArgs {
    #[command(flatten)]
    own: OwnArgs,
    /// Show all frames of stacks with their exact names
    #[arg(long)]
    pub(crate) raw: bool,
    #[command(flatten)]
    symbols: SymbolArgs,
}

impl FrameArgs {
    /// Makes names state which functions belong to the program. Names need this before they name any frame.
    pub(crate) fn prepare(&self, names: &mut Names) {
        names.set_own_code(self.own.code());
    }

    /// Names native code by its symbols. The names need the events before.
    pub(crate) fn name_native(&self, names: &mut Names) -> Result<(), Failure> {
        let images = names.native_images();
        self.symbols.read(images, SymbolsOf::Code, |image, symbols| names.native_symbols(image, symbols))
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
