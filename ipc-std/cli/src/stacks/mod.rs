//! Stacks of a trace: what counts in them, their names, and the files that show them.
pub(crate) mod clock_args;
pub(crate) mod flame_page;
pub(crate) mod stack_names;
pub(crate) mod stacks_file;
