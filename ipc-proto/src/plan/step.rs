//! One command of a plan, and the older ones that can replace it.
use core::iter;

use super::lost_feature::LostFeatures;
use super::runtime::Runtime;
use crate::{Code, Command, Decode, DecodeError, Encode, InvalidValue, Message};

/// How long a client waits for the answer to a command by default, in milliseconds, with all older commands that it
/// tries. A runtime carries out one command at a time.
pub const CALL_LIMIT_MS: u64 = 10_000;

/// How long a client waits for a dump by default, in milliseconds: a dump is as large as the process.
pub const DUMP_LIMIT_MS: u64 = 600_000;

/// One command of a plan, chosen at run time. Its encoding is the payload of the request.
///
/// [`Fallback`](super::Fallback) sends it. To send it on one connection, without the older ones, give its code and itself
/// to [`UntypedCall::untyped`](crate::UntypedCall::untyped).
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
/// assert_eq!((step.code().0, step.lost().is_empty()), (0x0207, true));
/// let older = step.older().unwrap();
/// let lost: Vec<String> = older.lost().iter().map(|loss| loss.to_string()).collect();
/// assert_eq!((older.code().0, lost), (0x0203, vec!["blocking instead of dropping needs .NET 11".to_owned()]));
/// assert_eq!(older.check(), Ok(()));
/// let mut buf = [0; 256];
/// ipc_proto::encode(older.code(), &older, &mut buf)?;
/// # Ok::<(), ipc_proto::EncodeError>(())
/// ```
pub trait PlanStep: Encode + Sized {
    /// The answer of the runtime, of the same type for every step of a plan.
    type Response<'r>: Decode<'r>;

    /// How long a client waits for the whole plan by default, in milliseconds.
    const LIMIT_MS: u64 = CALL_LIMIT_MS;

    /// Returns the code of the command.
    fn code(&self) -> Code;

    /// Checks the values of the command, as [`Command::check`] does. By default, a step breaks no rule.
    ///
    /// # Errors
    /// The first rule that a value breaks.
    fn check(&self) -> Result<(), InvalidValue> {
        Ok(())
    }

    /// Returns the parts of the wish that the command does not carry.
    fn lost(&self) -> LostFeatures {
        LostFeatures::default()
    }

    /// Returns the step to send after the answer [`UNKNOWN_COMMAND`](crate::HResult::UNKNOWN_COMMAND).
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

    /// Returns an iterator over this step and all older ones, the newest first.
    fn steps(self) -> impl Iterator<Item = Self> {
        iter::successors(Some(self), Self::older)
    }
}

/// Returns this step, or the newest older one that the runtime can know; the oldest one if it can know none.
pub(super) fn first_known<S: PlanStep>(mut step: S, runtime: &Runtime) -> S {
    while let (false, Some(older)) = (runtime.may_know(step.code()), step.older()) {
        step = older;
    }
    step
}

/// A plan of one command, which has no older one.
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
