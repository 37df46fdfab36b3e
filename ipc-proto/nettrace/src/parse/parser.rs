//! The parser. `parser/parser.rs` has its state and the loop. Each other file of the folder parses one part of a
//! stream.
mod body;
mod header;
mod object;
mod parser;
mod stop;
mod tags;

pub use parser::{Limits, Parser, Record};
