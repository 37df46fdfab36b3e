//! One thread that reads the counters of many processes.
use core::task::Poll;
use core::time::Duration;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ipc_std::discover::{self, ScanConfig};
use ipc_std::{Client, CounterStream, Timeouts};
use nettrace_analysis::counters::{CounterConfig, CounterEvent};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The sessions of many processes.
pub(crate) struct Agent {
    config: CounterConfig,
    open: Vec<CounterStream>,
    /// The sockets that were found so far.
    known: BTreeSet<PathBuf>,
    processes: u64,
    samples: u64,
}

/// The pause between two reads: runtimes send the samples of an interval in several pieces.
const PAUSE: Duration = Duration::from_millis(250);
const SCAN_INTERVAL: Duration = Duration::from_secs(5);

impl Agent {
    pub(crate) const fn new(config: CounterConfig) -> Self {
        Self { config, open: Vec::new(), known: BTreeSet::new(), processes: 0, samples: 0 }
    }

    /// Starts a session.
    pub(crate) fn add(&mut self, client: &Client) -> Result<(), Box<dyn core::error::Error>> {
        let mut stream = client.start_counters(&self.config)?;
        stream.session_mut().set_nonblocking(true)?;
        self.open.push(stream);
        self.processes = self.processes.saturating_add(1);
        Ok(())
    }

    /// Starts a session of each process of the machine that has none. A process that refuses is skipped.
    fn add_new(&mut self) {
        for search in discover::scan(&ScanConfig::default()).searches {
            let Some(path) = search.path().map(Path::to_owned).filter(|path| !self.known.contains(path))
            else {
                continue;
            };
            self.known.insert(path);
            let process_id = search.process_id();
            let added = Client::for_search(search, &Timeouts::default())
                .map_err(Into::into)
                .and_then(|client| self.add(&client));
            if let Err(e) = added {
                println!("process {process_id}: {e}");
            }
        }
    }

    /// Reads samples for the time `length`, or until all processes have ended.
    pub(crate) fn run(&mut self, length: Duration, finds_all: bool) -> io::Result<()> {
        let began = Instant::now();
        let mut scanned: Option<Instant> = None;
        while began.elapsed() < length && (finds_all || !self.open.is_empty()) {
            if finds_all && scanned.is_none_or(|scanned| scanned.elapsed() >= SCAN_INTERVAL) {
                self.add_new();
                scanned = Some(Instant::now());
            }
            let left = length.saturating_sub(began.elapsed()).min(SCAN_INTERVAL);
            for place in self.wait(left)?.into_iter().rev() {
                if self.is_over(place) {
                    self.open.swap_remove(place);
                }
            }
            std::thread::sleep(PAUSE);
        }
        // Dropping a session stops it and waits. So all sessions are requested to stop first, and none waits for
        // another.
        self.open.iter().for_each(|stream| stream.session().stop());
        self.open.clear();
        Ok(())
    }

    /// Returns the indexes of the sessions that have work, in ascending order.
    fn wait(&self, timeout: Duration) -> io::Result<Vec<usize>> {
        let timeout = Timespec::try_from(timeout).ok();
        let polled = self.open.iter().map(|stream| PollFd::new(stream.session(), PollFlags::IN));
        let mut polled: Vec<PollFd<'_>> = polled.collect();
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let ready = polled.iter().enumerate().filter(|(_, polled)| !polled.revents().is_empty());
        Ok(ready.map(|(place, _)| place).collect())
    }

    /// Reads the samples that are available. Returns whether the session is over.
    fn is_over(&mut self, place: usize) -> bool {
        let Some(stream) = self.open.get_mut(place) else { return false };
        loop {
            match stream.poll_next_event() {
                Ok(Poll::Ready(Some(CounterEvent::Sample(_)))) => {
                    // Here an agent stores or forwards the sample.
                    self.samples = self.samples.saturating_add(1);
                }
                Ok(Poll::Ready(Some(CounterEvent::Problem(problem)))) => println!("{problem}"),
                Ok(Poll::Ready(Some(_))) => {}
                Ok(Poll::Pending) => return false,
                Ok(Poll::Ready(None)) => return true,
                Err(e) => {
                    println!("{e}");
                    return true;
                }
            }
        }
    }

    pub(crate) const fn processes(&self) -> u64 {
        self.processes
    }

    pub(crate) const fn samples(&self) -> u64 {
        self.samples
    }
}
