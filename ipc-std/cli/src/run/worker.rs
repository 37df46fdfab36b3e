//! A thread that uses bytes while the next ones are produced.
use core::ops::ControlFlow;
use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};

/// A thread that gets bytes in batches, in their order.
#[derive(Debug)]
pub(crate) struct Worker<T> {
    batches: SyncSender<Vec<u8>>,
    /// Empty batches that the thread returns.
    used: Receiver<Vec<u8>>,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Worker<T> {
    /// The number of batches that can wait for the thread. Of two more, one is filled and one is used by the thread.
    const WAITING: usize = 2;

    /// Starts the thread, which passes `state` and each batch to `take` until that breaks.
    pub(crate) fn spawn(
        name: &str,
        mut state: T,
        mut take: impl FnMut(&mut T, &[u8]) -> ControlFlow<()> + Send + 'static,
    ) -> io::Result<Self> {
        let (batches, receiver) = mpsc::sync_channel::<Vec<u8>>(Self::WAITING);
        let (sender, used) = mpsc::channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            for mut batch in receiver {
                if take(&mut state, &batch).is_break() {
                    break;
                }
                batch.clear();
                let _ = sender.send(batch);
            }
            state
        })?;
        Ok(Self { batches, used, thread })
    }

    /// Passes a batch to the thread, and waits while too many batches are unused. Returns an empty batch, or `None` if
    /// the thread takes no more.
    pub(crate) fn pass(&self, batch: Vec<u8>) -> Option<Vec<u8>> {
        self.batches.send(batch).ok()?;
        Some(self.used.try_recv().unwrap_or_default())
    }

    /// Returns the state after the last batch.
    pub(crate) fn finish(self) -> io::Result<T> {
        let Self { batches, thread, .. } = self;
        drop(batches);
        thread.join().map_err(|_| io::Error::other("a thread has failed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_arrive_in_order_until_the_thread_takes_no_more() {
        let worker = Worker::spawn("test", Vec::new(), |all: &mut Vec<u8>, batch| {
            all.extend_from_slice(batch);
            ControlFlow::Continue(())
        });
        let worker = worker.unwrap();
        let mut batch = Vec::new();
        for n in 0..100 {
            assert!(batch.is_empty());
            batch.push(n);
            batch = worker.pass(batch).unwrap();
        }
        assert_eq!(worker.finish().unwrap(), (0..100).collect::<Vec<u8>>());
        let worker = Worker::spawn("test", 0, |calls, _| {
            *calls += 1;
            ControlFlow::Break(())
        });
        let worker = worker.unwrap();
        while worker.pass(vec![1]).is_some() {}
        assert_eq!(worker.finish().unwrap(), 1);
    }
}
