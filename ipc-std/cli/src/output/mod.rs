//! What the tool writes: results, notes, failures and files.
pub(crate) mod atomic_output;
pub(crate) mod bulk_stdout;
pub(crate) mod columns;
pub(crate) mod failure;
pub(crate) mod field;
pub(crate) mod full_screen;
pub(crate) mod globals;
pub(crate) mod hex;
pub(crate) mod narrow_terminal;
pub(crate) mod output_file;
pub(crate) mod printable;
pub(crate) mod rows;
pub(crate) mod signals;
pub(crate) mod stderr;
pub(crate) mod stdout;
pub(crate) mod tables;
pub(crate) mod worker;
