use super::runtime::Runtime;
use super::step::PlanStep;
use crate::types::{ProcessInfo, ProcessInfo2, ProcessInfo3};
use crate::wire::Writer;
use crate::{
    Code, Command, DecodeError, Encode, GetProcessInfo, GetProcessInfo2, GetProcessInfo3, Message, Violation,
};

/// The wish for the description of a process. It has nothing to configure.
///
/// ```
/// use ipc_proto::plan::{InfoConfig, PlanStep, Runtime};
///
/// let codes: Vec<u16> = InfoConfig.first_step(&Runtime::default()).steps().map(|step| step.code().0).collect();
/// assert_eq!(codes, [0x0408, 0x0404, 0x0400]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InfoConfig;

impl InfoConfig {
    /// Returns the newest command that the runtime can know. A runtime older than .NET 5 knows none of them and refuses.
    #[must_use]
    pub fn first_step(self, runtime: &Runtime) -> InfoStep {
        let newest = InfoStep { code: GetProcessInfo3::CODE };
        newest
            .steps()
            .find(|step| runtime.may_know(step.code))
            .unwrap_or(InfoStep { code: GetProcessInfo::CODE })
    }
}

/// A command that describes a process. Every answer becomes a [`ProcessInfo3`], whose missing texts are null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoStep {
    code: Code,
}

/// The payload is empty.
impl Encode for InfoStep {
    fn encode(&self, _: &mut Writer<'_>) {}
}

impl PlanStep for InfoStep {
    type Response<'r> = ProcessInfo3<'r>;

    fn code(&self) -> Code {
        self.code
    }

    fn check(&self) -> Result<(), Violation> {
        Ok(())
    }

    fn older(&self) -> Option<Self> {
        let code = match self.code {
            GetProcessInfo3::CODE => GetProcessInfo2::CODE,
            GetProcessInfo2::CODE => GetProcessInfo::CODE,
            _ => return None,
        };
        Some(Self { code })
    }

    fn response<'r>(&self, answer: &Message<'r>) -> Result<Self::Response<'r>, DecodeError> {
        match self.code {
            GetProcessInfo3::CODE => answer.decode(),
            GetProcessInfo2::CODE => answer.decode::<ProcessInfo2<'r>>().map(Into::into),
            _ => answer.decode::<ProcessInfo<'r>>().map(Into::into),
        }
    }
}
