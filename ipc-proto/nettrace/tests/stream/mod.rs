//! Streams as a [`TraceWriter`] writes them.
#![allow(clippy::unwrap_used, reason = "a test states what it expects by unwrapping it")]
use nettrace::{End, Event, Record, Trace, TraceBytes, TraceWriter, Version, WriteError};

use crate::steps::picked;

/// A stream under construction.
pub(crate) struct Stream<'b> {
    writer: TraceWriter<'b>,
    bytes: Vec<u8>,
}

impl<'b> Stream<'b> {
    pub(crate) fn new(trace: &Trace<'_>, buf: &'b mut [u8]) -> Self {
        Self { writer: TraceWriter::new(trace, buf).unwrap(), bytes: Vec::new() }
    }

    /// Stores the bytes that the writer returns for the record of `give`. The macro [`put`] calls this method.
    #[track_caller]
    pub(crate) fn put(
        &mut self,
        give: impl for<'w> FnOnce(&'w mut TraceWriter<'b>) -> Result<TraceBytes<'w>, WriteError>,
    ) {
        self.bytes.extend_from_slice(&give(&mut self.writer).unwrap());
    }

    /// Ends the open block.
    pub(crate) fn flush(&mut self) {
        self.bytes.extend_from_slice(&self.writer.flush());
    }

    /// Returns the whole stream with its end.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(&self.writer.finish());
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
    let mut stream = Stream::new(&Trace::new(version), &mut buf);
    records(&mut stream);
    stream.finish()
}

/// Writes a stream of these records: `stream!(version, describe(&metadata); event(&event))`.
macro_rules! stream {
    ($version:expr, $($method:ident($($arg:expr),*));* $(;)?) => {
        $crate::stream::written($version, |stream| {
            $($crate::stream::put!(stream.$method($($arg),*));)*
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
