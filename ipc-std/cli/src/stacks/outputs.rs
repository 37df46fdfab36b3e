//! The list of the outputs of `flame`.
use super::output::StacksOutput;

/// Declares the modules of outputs, each with its `OUTPUT`, and lists them.
macro_rules! outputs {
    ($($module:ident,)*) => {
        $(mod $module;)*

        /// All outputs, in the order of the help.
        pub(super) static ALL: &[&StacksOutput] = &[$(&$module::OUTPUT,)*];
    };
}

outputs! {
    html,
    folded,
    speedscope,
    chromium,
    firefox,
    pprof,
}
