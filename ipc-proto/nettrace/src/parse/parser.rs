//! The parser. `parser.rs` has its state and the loop; the other files each parse one part of a stream.
mod body;
mod header;
mod object;
mod parser;
mod stop;
mod tags;

pub use parser::{Limits, Parser, Record};
