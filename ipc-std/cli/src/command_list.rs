//! The macro `commands`, which declares the modules of all commands and the enum `Command`.

/// Declares the modules of commands, `Command` with a variant for each, and `GROUPS`. A group has the heading of its
/// commands in the help. A line has the name of a command and its module, which has `Args` (its arguments) and `run`. An
/// attribute `cfg` applies to the module and the variant, and an attribute `command` to the help.
macro_rules! commands {
    ($($heading:literal {
        $($(#[cfg($cfg:meta)])? $(#[command($($help:tt)*)])? $name:ident($module:ident),)*
    })*) => {
        $($($(#[cfg($cfg)])? mod $module;)*)*

        /// The groups of the help: a heading, and the modules of its commands.
        pub(crate) const GROUPS: &[(&str, &[&str])] =
            &[$(($heading, &[$($(#[cfg($cfg)])? stringify!($module),)*]),)*];

        /// A command and its arguments.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Command {
            $($($(#[cfg($cfg)])? $(#[command($($help)*)])? $name($module::Args),)*)*
        }

        impl Command {
            /// Runs the command. The exit status of a success is 0, unless the command returns another status.
            pub(crate) fn run(
                self,
                globals: &crate::run::Globals,
            ) -> Result<std::process::ExitCode, crate::run::Failure> {
                match self {
                    $($($(#[cfg($cfg)])? Self::$name(args) => {
                        $module::run(&args, globals).map(std::process::Termination::report)
                    })*)*
                }
            }
        }
    };
}
