//! [`InfoConfig`], the wish for the description of a process, and [`InfoStep`], a command that returns one.
use super::runtime::Runtime;
use super::step::{PlanStep, first_known};
use crate::types::{ProcessInfo, ProcessInfo3};
use crate::wire::{Reader, Writer};
use crate::{
    Code, Command, DecodeError, Encode, GetProcessInfo, GetProcessInfo2, GetProcessInfo3, Message, Text,
};

/// The wish for the description of a process. There is nothing to configure.
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
    /// Returns the newest command that the runtime can know. A runtime older than .NET 5 refuses all three commands.
    #[must_use]
    pub fn first_step(self, runtime: &Runtime) -> InfoStep {
        first_known(InfoStep { code: GetProcessInfo3::CODE }, runtime)
    }
}

/// A command that describes a process. A client receives every answer as a [`ProcessInfo3`], with null for missing
/// texts. A server answers each of the three commands from a [`ProcessInfo3`].
///
/// ```
/// use ipc_proto::plan::{InfoStep, PlanStep};
/// use ipc_proto::types::ProcessInfo3;
/// use ipc_proto::{Code, Guid, Message, Text, encode};
///
/// let info = ProcessInfo3 {
///     version: 1,
///     process_id: 4242,
///     runtime_cookie: Guid::NIL,
///     command_line: "toy".into(),
///     os: "Linux".into(),
///     arch: "x64".into(),
///     managed_entrypoint_assembly_name: "toy".into(),
///     clr_product_version: "10.0.1".into(),
///     portable_rid: "linux-x64".into(),
/// };
/// let step = InfoStep::of(Code(0x0404)).unwrap(); // the code of the request
/// let mut buf = [0; 256];
/// let bytes = encode(Code::OK, &step.answer(&info), &mut buf)?; // or `reply.answer_untyped(&step.answer(&info))`
/// # let ipc_proto::Parsed::Complete { value: message, .. } = Message::parse(bytes)? else { unreachable!() };
/// let received = step.response(&message)?;
/// assert_eq!(received.clr_product_version, "10.0.1");
/// assert!(received.portable_rid.is_null()); // GetProcessInfo2 has none
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoStep {
    code: Code,
}

impl InfoStep {
    /// Returns the command with this code, if the command describes a process.
    #[must_use]
    pub const fn of(code: Code) -> Option<Self> {
        match code {
            GetProcessInfo::CODE | GetProcessInfo2::CODE | GetProcessInfo3::CODE => Some(Self { code }),
            _ => None,
        }
    }

    /// Returns the payload of an OK answer to this command.
    #[must_use]
    pub const fn answer<'a>(self, info: &'a ProcessInfo3<'a>) -> InfoAnswer<'a> {
        InfoAnswer { step: self, info }
    }

    /// Returns whether the answer has the entry point and the version of the runtime.
    #[must_use]
    pub fn has_version(self) -> bool {
        self.code != GetProcessInfo::CODE
    }

    /// Returns whether the answer has the field `version`, the version of the answer itself, and the platform.
    #[must_use]
    pub fn has_platform(self) -> bool {
        self.code == GetProcessInfo3::CODE
    }
}

/// The payload of an answer: see [`InfoStep::answer`].
#[derive(Debug, Clone, Copy)]
pub struct InfoAnswer<'a> {
    step: InfoStep,
    info: &'a ProcessInfo3<'a>,
}

impl Encode for InfoAnswer<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        let &ProcessInfo3 { version, process_id, runtime_cookie, command_line, os, arch, .. } = self.info;
        if self.step.has_platform() {
            version.encode(w);
        }
        ProcessInfo { process_id, runtime_cookie, command_line, os, arch }.encode(w);
        if self.step.has_version() {
            self.info.managed_entrypoint_assembly_name.encode(w);
            self.info.clr_product_version.encode(w);
        }
        if self.step.has_platform() {
            self.info.portable_rid.encode(w);
        }
    }
}

/// The payload of the request is empty.
impl Encode for InfoStep {
    fn encode(&self, _: &mut Writer<'_>) {}
}

impl PlanStep for InfoStep {
    type Response<'r> = ProcessInfo3<'r>;

    fn code(&self) -> Code {
        self.code
    }

    fn older(&self) -> Option<Self> {
        let code = match self.code {
            GetProcessInfo3::CODE => GetProcessInfo2::CODE,
            GetProcessInfo2::CODE => GetProcessInfo::CODE,
            _ => return None,
        };
        Some(Self { code })
    }

    /// Each answer has the fields of the older answer, and more fields around them. One function reads the fields of
    /// all three answers: three copies of the code would be a tenth of a small client.
    fn response<'r>(&self, answer: &Message<'r>) -> Result<Self::Response<'r>, DecodeError> {
        let mut r = Reader::at(answer.payload, Message::HEADER_LEN);
        let version = if self.has_platform() { r.read()? } else { 0 };
        let info: ProcessInfo<'r> = r.read()?;
        let mut text = |has: bool| if has { r.read() } else { Ok(Text::NULL) };
        Ok(ProcessInfo3 {
            version,
            managed_entrypoint_assembly_name: text(self.has_version())?,
            clr_product_version: text(self.has_version())?,
            portable_rid: text(self.has_platform())?,
            ..info.into()
        })
    }
}
