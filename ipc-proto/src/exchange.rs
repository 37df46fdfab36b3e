//! Exchanges: the conversation on one connection, without I/O. [`Exchange`] explains them.
mod advertise;
mod answer;
mod call;
mod counted;
mod exchange;
mod observe;
mod poll;
mod serve;
mod session;

pub use advertise::ReceiveAdvertise;
pub use answer::Answer;
pub(crate) use call::Progress;
pub use call::{Call, SuspendedCall, Untyped, UntypedCall};
pub use counted::{ReceiveEnvironment, SendEnvironment, SuspendedEnvironment};
pub use exchange::{Exchange, Step};
pub use observe::{Direction, Observation, Observe, Observed};
pub use poll::{PollError, poll_exchange};
pub use serve::{Reply, Serve, SuspendedReply, SuspendedServe};
pub use session::{Session, SessionEnd, SessionPhase, SessionTimeout, StopEvent, StopStep};
