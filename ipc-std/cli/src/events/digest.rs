//! The digest of the events of a trace.
use core::ops::ControlFlow;
use std::io;

use dotnet_ipc_sans_io::syntax::hex::hex;
use ipc_proto::wire::to_u32;
use nettrace::Event;
use sha2::{Digest, Sha256};

use crate::run::Failure;
use crate::run::worker::Worker;

/// SHA-256 over all events in the order of the file, without their stacks and labels.
///
/// A thread computes the digest, because that takes as long as everything else that `stats` does.
#[derive(Debug)]
pub(crate) struct EventDigest {
    worker: Worker<Sha256>,
    /// Bytes for the thread.
    batch: Vec<u8>,
}

impl EventDigest {
    /// The length of a batch.
    const BATCH: usize = 64 << 10;

    pub(crate) fn new() -> Result<Self, Failure> {
        let worker = Worker::spawn("digest", Sha256::new(), |digest: &mut Sha256, batch| {
            digest.update(batch);
            ControlFlow::Continue(())
        });
        Ok(Self { worker: worker.map_err(|e| failed(&e))?, batch: Vec::new() })
    }

    /// Adds an event.
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        let batch = &mut self.batch;
        batch.extend_from_slice(&event.metadata_id.to_le_bytes());
        batch.extend_from_slice(&event.sequence.to_le_bytes());
        batch.extend_from_slice(&event.thread.to_le_bytes());
        batch.extend_from_slice(&event.capture_thread.to_le_bytes());
        batch.extend_from_slice(&event.processor.to_le_bytes());
        batch.extend_from_slice(&event.stack_id.to_le_bytes());
        batch.extend_from_slice(&event.timestamp.to_le_bytes());
        batch.extend_from_slice(&event.activity_id.0);
        batch.extend_from_slice(&event.related_activity_id.0);
        batch.push(event.sorted.into());
        batch.extend_from_slice(&to_u32(event.payload.len()).to_le_bytes());
        // Large payloads are divided, so that the memory is bounded.
        for part in event.payload.chunks(Self::BATCH) {
            self.batch.extend_from_slice(part);
            self.pass_full();
        }
        self.pass_full();
    }

    /// Passes the batch to the thread if it is full.
    fn pass_full(&mut self) {
        if self.batch.len() >= Self::BATCH {
            // The thread takes batches until the end, so `None` is impossible.
            self.batch = self.worker.pass(core::mem::take(&mut self.batch)).unwrap_or_default();
        }
    }

    /// Returns the digest in hexadecimal digits.
    pub(crate) fn finish(self) -> Result<String, Failure> {
        let Self { worker, batch } = self;
        worker.pass(batch);
        let digest = worker.finish().map_err(|e| failed(&e))?;
        Ok(hex(&digest.finalize()))
    }
}

fn failed(e: &io::Error) -> Failure {
    Failure::io("cannot compute the digest", e)
}
