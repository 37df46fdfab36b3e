//! The purpose of a thread, by the methods in which samples show it.
use crate::stacks::{MethodName, MethodTable};

/// The purposes of a thread that its stacks show. On Linux, a thread has the name of its creator until it gets one of
/// its own: a thread that the program starts from a thread of the pool is `.NET TP Worker`, too. So a name that states
/// a purpose is only valid for a thread that was seen in the method for it.
///
/// ```
/// use nettrace_analysis::samples::ThreadRoles;
///
/// let mut roles = ThreadRoles::default();
/// roles.add("Shop!Shop.Heartbeat.Run()");
/// assert_eq!((roles.has_name(".NET TP Worker"), roles.has_name("Heartbeat")), (false, true));
/// roles.add("System.Private.CoreLib!System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart()");
/// assert!(roles.has_name(".NET TP Worker") && roles.name() == Some(".NET TP Worker"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadRoles(u8);

/// The names of threads with a purpose, and the methods for it. Linux stores 15 bytes of a name.
const ROLES: &[(&str, MethodTable)] = &[
    (
        ThreadRoles::POOL,
        MethodTable(&[
            ("System.Threading.PortableThreadPool+WorkerThread", "WorkerThreadStart"),
            ("System.Threading._ThreadPoolWaitCallback", "PerformWaitCallback"),
            ("System.Threading.ThreadPoolWorkQueue", "Dispatch"),
        ]),
    ),
    (".NET TP Gate", MethodTable(&[("System.Threading.PortableThreadPool+GateThread", "GateThreadStart")])),
    (".NET TP Wait", MethodTable(&[("System.Threading.PortableThreadPool+WaitThread", "WaitThreadStart")])),
    (".NET TP IO", MethodTable(&[("System.Threading.PortableThreadPool+IOCompletionPoller", "Poll")])),
    (".NET Timer", MethodTable(&[("System.Threading.TimerQueue", "TimerThread")])),
    (".NET Sockets", MethodTable(&[("System.Net.Sockets.SocketAsyncEngine", "EventLoop")])),
];

impl ThreadRoles {
    /// The name of the threads of the pool.
    pub const POOL: &'static str = ".NET TP Worker";

    /// Adds a method of a stack of the thread.
    pub fn add(&mut self, method: &str) {
        let Some(method) = MethodName::of(method) else { return };
        for (place, (_, methods)) in ROLES.iter().enumerate() {
            if methods.has(method) {
                self.0 |= 1 << place;
            }
        }
    }

    /// Adds the purposes that another sample of the thread shows.
    pub const fn merge(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Returns the name that .NET gives a thread with this purpose, if one is known.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        ROLES.iter().map(|(name, _)| *name).find(|name| self.has_name(name))
    }

    /// Returns whether a name that the operating system has for the thread is its own.
    #[must_use]
    pub fn has_name(self, name: &str) -> bool {
        let role = ROLES.iter().position(|(known, _)| *known == name);
        role.is_none_or(|place| self.0 & (1 << place) != 0)
    }
}
