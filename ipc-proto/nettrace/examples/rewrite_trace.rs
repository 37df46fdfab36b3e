//! Copies a trace from standard input to standard output, with the events of one provider and no command line.
use std::io::{Read, Write};

use nettrace::{
    EventSelector, Limits, Parser, Record, Rewrite, RewriteError, RewriteOptions, RewriteSpace, Slot,
    TraceWriter,
};

pub(crate) fn rewrite_trace(source: &[u8], only: &[EventSelector<'_>]) -> Result<Vec<u8>, RewriteError> {
    let options = RewriteOptions { only, strip_command_line: true, ..RewriteOptions::default() };
    let mut buffer = vec![0; TraceWriter::BUFFER];
    let (mut metadata, mut threads) = ([Slot::default(); 1024], [Slot::default(); 1024]);
    let space =
        RewriteSpace { buffer: &mut buffer, metadata: &mut metadata, threads: &mut threads, labels: &mut [] };
    let mut rewrite = Rewrite::new(options, space)?;
    let mut parser = Parser::new(Limits::default());
    let mut result = Vec::new();
    loop {
        let record = match parser.next(source) {
            Record::More { .. } => Record::End(parser.finish(source)),
            record => record,
        };
        result.extend_from_slice(&rewrite.record(&record)?);
        if let Record::End(_) = record {
            break;
        }
    }
    let mut end = rewrite.finish();
    while let Some(bytes) = end.next_bytes()? {
        result.extend_from_slice(&bytes);
    }
    Ok(result)
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let mut source = Vec::new();
    std::io::stdin().read_to_end(&mut source)?;
    let only = [EventSelector { provider: "Demo", event_id: None, event_name: None }];
    std::io::stdout().write_all(&rewrite_trace(&source, &only)?)?;
    Ok(())
}
