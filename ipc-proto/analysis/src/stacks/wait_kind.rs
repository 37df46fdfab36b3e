//! The object for which a thread waits, by its stack.
use crate::event::name_list;

/// The kind of object for which a thread waits, as far as its stack shows it.
///
/// ```
/// use nettrace_analysis::WaitKind;
///
/// let stack = [
///     "System.Private.CoreLib!System.Threading.Monitor.Enter_Slowpath(class System.Object)",
///     "System.Private.CoreLib!System.Threading.Monitor.Enter(class System.Object)",
///     "Shop!Shop.Cart.Add(int32)",
/// ];
/// assert_eq!(WaitKind::of(stack), Some((WaitKind::Lock, 2)));
/// assert_eq!(WaitKind::leading_frames(stack), 2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WaitKind {
    /// A lock of `Monitor` (the keyword `lock` of C#) or `System.Threading.Lock`.
    Lock,
    /// A `ReaderWriterLockSlim` or `ReaderWriterLock`.
    ReaderWriterLock,
    /// A `SemaphoreSlim`.
    Semaphore,
    /// The end of a task.
    Task,
}

/// The methods that acquire, with the start of their names, and what they wait for.
const KINDS: &[(&str, &[&str], WaitKind)] = &[
    ("Monitor", &["Enter", "TryEnter", "ReliableEnter"], WaitKind::Lock),
    ("Lock", &["Enter", "TryEnter"], WaitKind::Lock),
    ("ReaderWriterLockSlim", &["Enter", "TryEnter"], WaitKind::ReaderWriterLock),
    ("ReaderWriterLock", &["Acquire", "Upgrade"], WaitKind::ReaderWriterLock),
    ("SemaphoreSlim", &["Wait"], WaitKind::Semaphore),
    ("Tasks.Task", &["Wait", "InternalWait", "SpinThenBlockingWait"], WaitKind::Task),
    ("Tasks.Task`1", &["get_Result", "GetResultCore"], WaitKind::Task),
];

/// Types of `System.Threading` whose methods only wait, block or wake a thread.
const PRIMITIVES: &[&str] = &name_list! {
    AutoResetEvent Condition EventWaitHandle Lock LowLevelFutex LowLevelLifoSemaphore LowLevelLock LowLevelMonitor
    LowLevelSpinWaiter LowLevelThreadBlocker ManualResetEvent ManualResetEventSlim Monitor Mutex ReaderWriterLock
    ReaderWriterLockSlim Semaphore SemaphoreSlim SpinLock SpinWait Thread WaitHandle WaitSubsystem
};

impl WaitKind {
    /// Returns the kind of object for which a thread waits, and the number of its innermost frames that only wait. The
    /// stack has full names, the innermost first. `None` if the stack shows no such wait.
    ///
    /// .NET 8 and 9 acquire a lock of `Monitor` in native code, so that the stack does not show it.
    #[must_use]
    pub fn of<'a>(frames: impl IntoIterator<Item = &'a str>) -> Option<(Self, usize)> {
        let mut found: Option<(Self, usize)> = None;
        for (place, frame) in (1..).zip(frames) {
            let (type_name, method) = split(frame);
            let kind = kind(type_name, method);
            match found {
                // A frame of another kind calls the one that waits.
                Some((known, _)) if kind != Some(known) => break,
                None if kind.is_none() && !is_primitive(type_name, method) => break,
                _ => {}
            }
            found = kind.map(|kind| (kind, place));
        }
        found
    }

    /// Returns the number of innermost frames that only wait, block or wake the thread. The stack has full names, the
    /// innermost first. 0 if the stack has no other frames.
    #[must_use]
    pub fn leading_frames<'a>(frames: impl IntoIterator<Item = &'a str>) -> usize {
        let waits = |frame: &&str| {
            let (type_name, method) = split(frame);
            kind(type_name, method).is_some() || is_primitive(type_name, method)
        };
        let mut frames = frames.into_iter().peekable();
        let mut count = 0_usize;
        while frames.next_if(waits).is_some() {
            count = count.saturating_add(1);
        }
        if frames.peek().is_some() { count } else { 0 }
    }

    /// Returns the name: `lock`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::ReaderWriterLock => "reader_writer_lock",
            Self::Semaphore => "semaphore",
            Self::Task => "task",
        }
    }

    /// Returns the name for people, in the plural.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Lock => "locks",
            Self::ReaderWriterLock => "reader-writer locks",
            Self::Semaphore => "semaphores",
            Self::Task => "tasks",
        }
    }
}

/// Splits a full name into the type and the method.
fn split(frame: &str) -> (&str, &str) {
    let head = frame.split('(').next().unwrap_or_default();
    let name = head.split_once('!').map_or(head, |(_, name)| name);
    // A method can begin with a dot: `.ctor`.
    let (type_name, method) = name.rsplit_once('.').unwrap_or(("", name));
    (type_name.trim_end_matches('.'), method)
}

fn kind(type_name: &str, method: &str) -> Option<WaitKind> {
    let name = type_name.strip_prefix("System.Threading.")?;
    let is_of = |(of, starts, _): &&(&str, &[&str], WaitKind)| {
        // The type arguments of a generic type follow its name.
        let rest = name.strip_prefix(of);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
            && starts.iter().any(|start| method.starts_with(start))
    };
    KINDS.iter().find(is_of).map(|(_, _, kind)| *kind)
}

fn is_primitive(type_name: &str, method: &str) -> bool {
    let is_inside = |of: &str, name: &str| {
        let rest = name.strip_prefix(of);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
    };
    match type_name.strip_prefix("System.Threading.") {
        // The first methods of a thread start the program, and do not wait.
        Some("Thread") => ["Sleep", "Yield", "SpinWait", "Join", "PollGC", "FastPollGC", "<"]
            .iter()
            .any(|start| method.starts_with(start)),
        Some(name) => PRIMITIVES.iter().any(|of| *of != "Thread" && is_inside(of, name)),
        None => {
            // The locks of .NET 11 send their event themselves.
            (type_name == "System.Diagnostics.Tracing.NativeRuntimeEventSource"
                && method.starts_with("Contention"))
                || type_name.starts_with("Interop+")
                || type_name == "Interop"
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::WaitKind;

    fn of(frames: &str) -> Option<(WaitKind, usize)> {
        WaitKind::of(frames.split_whitespace())
    }

    #[test]
    fn kinds() {
        const THREADING: &str = "System.Private.CoreLib!System.Threading.";
        for (frames, expected) in [
            ("Monitor.Enter_Slowpath Monitor.Enter Lock.Leave", Some((WaitKind::Lock, 2))),
            (
                "LowLevelMonitor.WaitCore WaitSubsystem+ThreadWaitInfo.Wait WaitHandle.WaitOneNoCheck Lock.TryEnterSlow \
                 Lock.Enter Monitor.Enter",
                Some((WaitKind::Lock, 6)),
            ),
            ("Lock.TryEnterSlow Lock.EnterScope", Some((WaitKind::Lock, 2))),
            (
                "Monitor.Wait Monitor.Wait ManualResetEventSlim.Wait Tasks.Task.SpinThenBlockingWait",
                Some((WaitKind::Task, 4)),
            ),
            (
                "Monitor.Wait SemaphoreSlim.WaitUntilCountOrTimeout SemaphoreSlim.Wait",
                Some((WaitKind::Semaphore, 3)),
            ),
            ("Monitor.Enter SemaphoreSlim.Wait", Some((WaitKind::Lock, 1))),
            (
                "WaitHandle.WaitOneNoCheck ReaderWriterLockSlim.WaitOnEvent ReaderWriterLockSlim.TryEnterWriteLock",
                Some((WaitKind::ReaderWriterLock, 3)),
            ),
            ("Monitor.Wait BlockingCollection`1[X].Take", None),
            ("LowLevelLifoSemaphore.WaitForSignal PortableThreadPool+WorkerThread.WorkerThreadStart", None),
            ("Thread.Sleep", None),
            ("Locker.Enter", None),
        ] {
            let frames: Vec<_> =
                frames.split_whitespace().map(|frame| alloc::format!("{THREADING}{frame}()")).collect();
            assert_eq!(WaitKind::of(frames.iter().map(|frame| &**frame)), expected, "{frames:?}");
        }
        assert_eq!(of("Shop!Shop.Monitor.Enter()"), None);
        assert_eq!(
            of("Shop!Shop.Cart.Add(int32) System.Private.CoreLib!System.Threading.Monitor.Enter()"),
            None
        );
        assert_eq!(of("?!? app!?"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn leading_frames() {
        for (frames, expected) in [
            ("System.Threading.Monitor.Wait System.Threading.ManualResetEventSlim.Wait A.B", 2),
            ("System.Threading.LowLevelLifoSemaphore.Wait System.Threading.PortableThreadPool.X", 1),
            (
                "Interop+Sys.LowLevelFutex_WaitOnAddress System.Threading.LowLevelFutex.WaitOnAddress \
                 System.Threading.LowLevelThreadBlocker.TimedWait System.Threading.LowLevelLifoSemaphore.Block \
                 System.Threading.PortableThreadPool.X",
                4,
            ),
            ("System.Threading.Thread.Sleep System.Threading.Thread.StartCallback", 1),
            ("Interop+Sys.Read A.B", 1),
            ("System.Threading.Thread.StartCallback", 0),
            ("System.Threading.Thread.Sleep", 0),
            ("A.B System.Threading.Thread.Sleep", 0),
            ("", 0),
        ] {
            assert_eq!(WaitKind::leading_frames(frames.split_whitespace()), expected, "{frames}");
        }
    }
}
