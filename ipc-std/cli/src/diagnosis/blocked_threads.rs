//! Threads that wait in one method of the program for most of a recording.
use std::collections::BTreeMap;

use nettrace_analysis::names::{FrameId, Names, source_name};
use nettrace_analysis::samples::{Clock, Samples, ThreadNumber};
use nettrace_analysis::{StackId, WaitKind};

use super::entry_point::is_entry_point;
use super::own_shares::OwnFrames;

/// The object that blocks a thread, as the frames between the method of the program and the end of its stack show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Blocker {
    Lock,
    Task,
    Sleep,
    Semaphore,
    Join,
    Signal,
    Other,
}

impl Blocker {
    /// Methods that wait, beside those that [`WaitKind`] knows.
    const METHODS: [(&'static str, Self); 6] = [
        ("System.Runtime.CompilerServices.TaskAwaiter", Self::Task),
        ("System.Threading.Thread.Sleep", Self::Sleep),
        ("System.Threading.Thread.Join", Self::Join),
        ("System.Threading.Monitor.Wait", Self::Signal),
        ("System.Threading.ManualResetEventSlim.Wait", Self::Signal),
        ("System.Threading.WaitHandle.Wait", Self::Signal),
    ];

    /// Returns what blocks a thread in these frames, the innermost first.
    fn of(frames: &[FrameId], names: &Names) -> Self {
        match WaitKind::of(frames.iter().map(|frame| names.text(*frame))) {
            Some((WaitKind::Lock | WaitKind::ReaderWriterLock, _)) => return Self::Lock,
            Some((WaitKind::Semaphore, _)) => return Self::Semaphore,
            Some((WaitKind::Task, _)) => return Self::Task,
            _ => {}
        }
        // The method that the program calls says most.
        let mut frames = frames.iter().rev().map(|frame| names.short(*frame));
        let method = |name: &str| Self::METHODS.iter().find(|(method, _)| name.starts_with(method));
        frames.find_map(method).map_or(Self::Other, |(_, blocker)| *blocker)
    }

    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Lock => "for a lock",
            Self::Task => "for a task",
            Self::Sleep => "in Thread.Sleep",
            Self::Semaphore => "for a semaphore",
            Self::Join => "for the end of a thread",
            Self::Signal => "for a signal",
            Self::Other => "outside managed code",
        }
    }
}

/// Threads that wait in the same method of the program.
#[derive(Debug)]
pub(super) struct BlockedGroup {
    pub(super) method: String,
    pub(super) blocker: Blocker,
    pub(super) threads: usize,
    /// The threads of them that belong to the thread pool.
    pub(super) pool_threads: usize,
    /// The finalizer that one of them runs.
    pub(super) finalizer: Option<String>,
    /// The ids of the threads.
    pub(super) ids: Vec<u64>,
}

/// The place of a wait: the object that blocks the thread, and the method of the program.
pub(super) type Place = (Blocker, String);

/// A thread of the recording.
#[derive(Debug, Default)]
struct SeenThread {
    samples: u64,
    waits: BTreeMap<Place, u64>,
    is_of_pool: bool,
    finalizer: Option<String>,
}

/// The threads that are in one place for most of their samples, the largest group first, and the threads of the pool.
#[derive(Debug, Default)]
pub(super) struct BlockedThreads {
    pub(super) groups: Vec<BlockedGroup>,
    pub(super) pool_threads: usize,
    pub(super) threads: usize,
}

impl BlockedThreads {
    /// The share of its samples that a blocked thread has in one place.
    const SHARE: f64 = 0.8;

    pub(super) fn new(samples: &mut Samples) -> Self {
        let rows: Vec<_> = samples.weights(&Clock::Wall).collect();
        let mut own = OwnFrames::default();
        let mut places = BTreeMap::<StackId, StackPlace>::new();
        let mut threads = BTreeMap::<ThreadNumber, SeenThread>::new();
        for (thread, stack, weight) in rows {
            let place = places.entry(stack).or_insert_with(|| StackPlace::new(samples, &mut own, stack));
            let thread = threads.entry(thread).or_default();
            thread.samples = thread.samples.saturating_add(weight.total());
            thread.is_of_pool |= place.is_of_pool;
            if thread.finalizer.is_none() {
                thread.finalizer.clone_from(&place.finalizer);
            }
            if let Some(place) = &place.wait {
                // Native code can also compute: only a thread that does not run is blocked in it.
                let samples = if place.0 == Blocker::Other { weight.waiting } else { weight.total() };
                let waits = thread.waits.entry(place.clone()).or_default();
                *waits = waits.saturating_add(samples);
            }
        }
        let mut groups = BTreeMap::<Place, BlockedGroup>::new();
        for (number, thread) in &threads {
            let longest = thread.waits.iter().max_by_key(|(_, samples)| **samples);
            let Some(((blocker, method), waits)) = longest else { continue };
            // The main thread of a server waits for its end.
            if is_entry_point(method) || (*waits as f64) < thread.samples as f64 * Self::SHARE {
                continue;
            }
            let group = groups.entry((*blocker, method.clone())).or_insert_with(|| BlockedGroup {
                method: method.clone(),
                blocker: *blocker,
                threads: 0,
                pool_threads: 0,
                finalizer: None,
                ids: Vec::new(),
            });
            group.threads = group.threads.saturating_add(1);
            group.pool_threads = group.pool_threads.saturating_add(usize::from(thread.is_of_pool));
            group.finalizer = group.finalizer.take().or_else(|| thread.finalizer.clone());
            group.ids.extend(samples.threads().get(number.number()).map(|thread| thread.id));
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.sort_by_key(|group| core::cmp::Reverse(group.threads));
        let pool_threads = threads.values().filter(|thread| thread.is_of_pool).count();
        Self { groups, pool_threads, threads: threads.len() }
    }
}

/// What a stack shows about its thread.
pub(super) struct StackPlace {
    /// The innermost method of the program, and what the thread waits for there.
    pub(super) wait: Option<Place>,
    is_of_pool: bool,
    finalizer: Option<String>,
    /// Whether the outermost method of the program is its entry point.
    pub(super) is_below_entry_point: bool,
}

impl StackPlace {
    pub(super) fn new(samples: &mut Samples, own: &mut OwnFrames, stack: StackId) -> Self {
        let [own_frame, _] = own.of(samples, stack);
        let frames = samples.frames(stack);
        let names = samples.names();
        let text = |frame: &_| names.short(*frame);
        let innermost = frames.iter().position(|frame| Some(*frame) == own_frame).unwrap_or_default();
        let callees = frames.get(..innermost).unwrap_or_default();
        let wait = own_frame.map(|own| (Blocker::of(callees, names), source_name(names.short(own))));
        let is_below_entry_point = frames.iter().rev().take(6).map(text).any(is_entry_point);
        // Since .NET 10, `GC.RunFinalizers` calls the finalizers; before, native code does.
        let finalizer = frames.iter().rev().take(2).map(text).find(|name| name.ends_with(".Finalize"));
        let finalizer = finalizer.map(str::to_owned);
        let is_of_pool = frames.iter().rev().take(4).map(text).any(|name| {
            name.contains("ThreadPool+WorkerThread.WorkerThreadStart")
                || name.contains("ThreadPoolWorkQueue.Dispatch")
        });
        Self { wait, is_of_pool, finalizer, is_below_entry_point }
    }
}
