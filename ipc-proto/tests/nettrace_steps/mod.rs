//! What is in a stream that lies in memory as a whole.
use ipc_proto::nettrace::{End, Limits, Parser, Step};

/// What `pick` takes of the steps, and how the stream ends.
pub(crate) fn picked<'a, T>(bytes: &'a [u8], mut pick: impl FnMut(Step<'a>) -> Option<T>) -> (Vec<T>, End) {
    let (mut parser, mut picked) = (Parser::new(Limits::default()), Vec::new());
    loop {
        match parser.next(bytes) {
            Step::More { .. } => return (picked, parser.finish(bytes)),
            Step::End(end) => return (picked, end),
            step => picked.extend(pick(step)),
        }
    }
}
