//! The frames that only carry threads, work items and continuations to the code that they run.
use alloc::vec::Vec;

use super::machinery::{Starts, has};
use crate::names::{FrameId, Known, Names};

/// Types and methods that start threads, dispatch work items, and start and continue asynchronous methods.
const MACHINERY: Starts = &[
    ("System.Environment.", "CallEntryPoint"),
    (
        "System.Threading.Thread",
        ".StartCallback .ThreadMain_ThreadStart .ThreadMain_ParameterizedThreadStart +StartHelper",
    ),
    (
        "System.Threading.",
        "ThreadHelper PortableThreadPool WindowsThreadPool _ThreadPoolWaitCallback ThreadPool ThreadPoolWorkQueue \
         QueueUserWorkItemCallback QueueUserWorkItemCallbackDefaultContext TimerQueue TimerQueueTimer ExecutionContext",
    ),
    (
        "System.Threading.Tasks.",
        "AwaitTaskContinuation SynchronizationContextAwaitTaskContinuation TaskSchedulerAwaitTaskContinuation \
         TaskContinuation ContinueWithTaskContinuation ContinuationTaskFromTask ContinuationResultTaskFromTask \
         ContinuationTaskFromResultTask ContinuationResultTaskFromResultTask UnwrapPromise ThreadPoolTaskScheduler \
         TaskCompletionSource Sources.ManualResetValueTaskSourceCore ValueTask",
    ),
    (
        "System.Runtime.CompilerServices.",
        "AsyncHelpers AsyncIteratorMethodBuilder AsyncMethodBuilderCore AsyncProfiler AsyncStateMachineDispatcher \
         AsyncTaskMethodBuilder AsyncValueTaskMethodBuilder AsyncVoidMethodBuilder PoolingAsyncValueTaskMethodBuilder \
         ConfiguredTaskAwaitable ConfiguredValueTaskAwaitable TaskAwaiter ValueTaskAwaiter YieldAwaitable",
    ),
];

/// Methods of a task that run or complete it. Others, such as `Wait`, state what the program does.
const TASK_METHODS: &str = "Execute ExecuteEntry ExecuteEntryUnsafe ExecuteFromThreadPool ExecuteWithThreadLocal \
     InnerInvoke Finish FinishContinuations FinishSlow FinishStageTwo FinishStageThree \
     NotifyParentIfPotentiallyAttachedTask RunContinuations ScheduleAndStart TrySetCanceled TrySetException \
     TrySetFromTask TrySetResult";

/// Knows which frames are folded: a sequence of them becomes [`FrameId::FOLDED`].
#[derive(Debug)]
pub(super) struct Folding(Known<bool>);

impl Folding {
    pub(super) const fn new() -> Self {
        Self(Known::new())
    }

    /// Returns whether a frame is folded if it calls another one.
    pub(super) fn has(&mut self, names: &Names, frame: FrameId) -> bool {
        self.0.of(frame.0, || is_folded(names, frame))
    }
}

/// Returns the frames of a stack, the innermost first, with [`FrameId::FOLDED`] for those that
/// [`CallTree::folded`](super::CallTree::folded) folds.
#[must_use]
pub fn folded_stack(names: &Names, frames: &[FrameId]) -> Vec<FrameId> {
    let mut folded = Vec::new();
    for (place, frame) in frames.iter().enumerate() {
        let is_folded = place > 0 && is_folded(names, *frame);
        let frame = if is_folded { FrameId::FOLDED } else { *frame };
        if !is_folded || folded.last() != Some(&frame) {
            folded.push(frame);
        }
    }
    folded
}

/// Returns whether a frame is folded if it calls another one: it is machinery, or the state machine of a method that
/// does not belong to the program.
fn is_folded(names: &Names, frame: FrameId) -> bool {
    let text = names.text(frame);
    !names.is_own(frame) && (has(MACHINERY, text) || is_task_method(text) || is_state_machine(text))
}

/// Returns whether a method runs or completes a task.
fn is_task_method(method: &str) -> bool {
    const TASK: &str = "System.Threading.Tasks.Task";
    let name = method.split_once('!').map_or(method, |(_, name)| name);
    let Some(rest) = name.strip_prefix(TASK) else { return false };
    // A generic task has its type after the name, and a promise is a type inside.
    if !rest.starts_with(['.', '`', '+']) {
        return false;
    }
    let is_promise = rest.split_once('+').is_some_and(|(_, promise)| promise.contains("Promise"));
    let method = without_arguments(rest).rsplit_once('.').map(|(_, method)| method);
    is_promise || TASK_METHODS.split_ascii_whitespace().any(|known| method == Some(known))
}

/// Returns whether a method is the state machine of an asynchronous method or of an iterator:
/// `Type+<Name>d__1.MoveNext()`.
fn is_state_machine(method: &str) -> bool {
    let name = without_arguments(method);
    name.ends_with(".MoveNext") && name.contains(">d")
}

fn without_arguments(name: &str) -> &str {
    name.split('(').next().unwrap_or_default()
}
