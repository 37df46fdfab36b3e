//! [`PlanStep`], one command of a plan; [`Single`], a plan of one command; the default time limits of clients.
use core::iter;

use super::lost_feature::LostFeatures;
use super::runtime::Runtime;
use crate::{Code, Command, Decode, DecodeError, Encode, InvalidValue, Message};

/// The default time limit of a client for the answer to a command, with all older commands that the client tries, in
/// milliseconds. It includes a wait for other clients: a runtime carries out one command at a time.
pub const CALL_LIMIT_MS: u64 = 10_000;

/// The default time limit of a client for a dump, in milliseconds. It is long: a dump can be as large as the process.
pub const DUMP_LIMIT_MS: u64 = 600_000;

/// One command of a plan, chosen at run time. Its encoding is the payload of the request.
///
/// [`Fallback`](super::Fallback) sends a step and, if necessary, its older steps. To send only this step, pass its code
/// and the step to [`UntypedCall::untyped`](crate::UntypedCall::untyped).
///
/// ```
/// use ipc_proto::plan::{PlanStep, Runtime, TraceConfig};
/// use ipc_proto::types::{EventLevel, Provider, SessionBufferMode};
///
/// let providers = [Provider {
///     keywords: 1,
///     level: EventLevel::VERBOSE,
///     name: "Microsoft-Windows-DotNETRuntime".into(),
///     arguments: "".into(),
/// }];
/// let config = TraceConfig { buffer_mode: SessionBufferMode::BLOCK, ..TraceConfig::new(&providers) };
/// let step = config.first_step(&Runtime::default());
/// assert_eq!((step.code().0, step.lost_features().is_empty()), (0x0207, true));
/// let older = step.older().unwrap();
/// let lost: Vec<String> = older.lost_features().iter().map(|loss| loss.to_string()).collect();
/// assert_eq!((older.code().0, lost), (0x0203, vec!["blocking instead of dropping needs .NET 11".to_owned()]));
/// assert_eq!(older.check(), Ok(()));
/// let mut buf = [0; 256];
/// ipc_proto::encode(older.code(), &older, &mut buf)?;
/// # Ok::<(), ipc_proto::EncodeError>(())
/// ```
pub trait PlanStep: Encode + Sized {
    /// The answer of the runtime, of the same type for every step of a plan.
    type Response<'r>: Decode<'r>;

    /// The default time limit of a client for the whole plan, in milliseconds.
    const LIMIT_MS: u64 = CALL_LIMIT_MS;

    /// Returns the code of the command.
    fn code(&self) -> Code;

    /// Checks the values of the command, as [`Command::check`] does. The default implementation accepts all values.
    ///
    /// # Errors
    /// The first rule that a value breaks.
    fn check(&self) -> Result<(), InvalidValue> {
        Ok(())
    }

    /// Returns the requested features that the command lacks.
    fn lost_features(&self) -> LostFeatures {
        LostFeatures::default()
    }

    /// Returns the step to send after the answer [`UNKNOWN_COMMAND`](crate::HResult::UNKNOWN_COMMAND), if there is one.
    fn older(&self) -> Option<Self> {
        None
    }

    /// Decodes the payload of an OK answer.
    ///
    /// # Errors
    /// If the payload is malformed. Offsets count from the start of the message.
    fn response<'r>(&self, answer: &Message<'r>) -> Result<Self::Response<'r>, DecodeError> {
        answer.decode()
    }

    /// Returns an iterator over this step and all older steps, the newest first.
    fn steps(self) -> impl Iterator<Item = Self> {
        iter::successors(Some(self), Self::older)
    }
}

/// Returns the newest of this step and its older steps that the runtime can know; if it knows none, the oldest step.
pub(super) fn first_known<S: PlanStep>(mut step: S, runtime: &Runtime) -> S {
    while let (false, Some(older)) = (runtime.may_know(step.code()), step.older()) {
        step = older;
    }
    step
}

/// A plan of one command, without an older command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Single<C>(pub C);

impl<C: Encode> Encode for Single<C> {
    fn encode(&self, w: &mut crate::wire::Writer<'_>) {
        self.0.encode(w);
    }
}

impl<C: Command> PlanStep for Single<C> {
    type Response<'r> = C::Response<'r>;

    fn code(&self) -> Code {
        C::CODE
    }

    fn check(&self) -> Result<(), InvalidValue> {
        self.0.check()
    }
}
