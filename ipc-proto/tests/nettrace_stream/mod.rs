//! Streams as a [`TraceWriter`] writes them.
#![allow(clippy::unwrap_used, reason = "a test states what it expects by unwrapping it")]
use ipc_proto::nettrace::{End, Event, Record, Trace, TraceWriter, Version, WriteError};

use crate::nettrace_steps::picked;

/// A stream under construction.
pub(crate) struct Stream<'b> {
    writer: TraceWriter<'b>,
    bytes: Vec<u8>,
}

impl<'b> Stream<'b> {
    pub(crate) fn new(version: Version, buf: &'b mut [u8]) -> Self {
        Self { writer: TraceWriter::new(version, buf).unwrap(), bytes: Vec::new() }
    }

    /// Calls `give` until the writer has taken the record. [`put`] calls this.
    #[track_caller]
    pub(crate) fn put(
        &mut self,
        mut give: impl for<'w> FnMut(&'w mut TraceWriter<'b>) -> Result<Option<&'w [u8]>, WriteError>,
    ) {
        while let Some(bytes) = give(&mut self.writer).unwrap() {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Ends the open block.
    pub(crate) fn flush(&mut self) {
        while let Some(bytes) = self.writer.flush() {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Returns the whole stream with its end.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        while let Some(bytes) = self.writer.finish() {
            self.bytes.extend_from_slice(bytes);
        }
        self.bytes
    }
}

/// Writes a record to a stream by the name of the writer's method: `put!(stream.event(&event))`.
macro_rules! put {
    ($stream:ident.$method:ident($($arg:expr),*)) => {
        $stream.put(|writer| writer.$method($($arg),*))
    };
}

/// Returns a stream with a `Trace` record, the records that `records` writes, and an end.
pub(crate) fn written(version: Version, records: impl FnOnce(&mut Stream<'_>)) -> Vec<u8> {
    let mut buf = vec![0xa5; TraceWriter::BUFFER];
    let mut stream = Stream::new(version, &mut buf);
    put!(stream.trace(&Trace::new(version)));
    records(&mut stream);
    stream.finish()
}

/// The same of these records: `stream!(version, describe(&metadata); event(&event))`.
macro_rules! stream {
    ($version:expr, $($method:ident($($arg:expr),*));* $(;)?) => {
        $crate::nettrace_stream::written($version, |stream| {
            $($crate::nettrace_stream::put!(stream.$method($($arg),*));)*
        })
    };
}

/// The descriptions in a stream, which is complete.
#[track_caller]
pub(crate) fn descriptions(bytes: &[u8]) -> Vec<Event<'_>> {
    let (records, end) =
        picked(bytes, |step| if let Record::Metadata(record) = step { Some(record) } else { None });
    assert_eq!(end, End::Complete);
    records
}

pub(crate) use {put, stream};
