//! The records of a whole stream in memory.
use nettrace::{End, Limits, Parser, Record};

/// Returns what `pick` selects of the records, and the end of the stream.
pub(crate) fn picked<'a, T>(bytes: &'a [u8], mut pick: impl FnMut(Record<'a>) -> Option<T>) -> (Vec<T>, End) {
    let (mut parser, mut picked) = (Parser::new(Limits::default()), Vec::new());
    loop {
        match parser.next(bytes) {
            Record::More { .. } => return (picked, parser.finish(bytes)),
            Record::End(end) => return (picked, end),
            step => picked.extend(pick(step)),
        }
    }
}
