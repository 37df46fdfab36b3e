//! [`DumpConfig`], the wish for a dump, and [`DumpStep`], a command that writes one.
use super::lost_feature::{LostFeature, LostFeatures};
use super::runtime::Runtime;
use super::step::{DUMP_LIMIT_MS, PlanStep, first_known};
use crate::sentences::sentences;
use crate::types::{DumpFlags, DumpType, Status};
use crate::wire::Writer;
use crate::{
    Code, Command, Encode, GenerateCoreDump, GenerateCoreDump2, GenerateCoreDump3, InvalidValue, Request,
    Text,
};

/// The wish for a dump of the process. A server converts each request for a dump, GenerateCoreDump to GenerateCoreDump3,
/// with [`TryFrom`].
///
/// ```
/// use ipc_proto::plan::{DumpConfig, LostFeature, PlanStep, Runtime};
/// use ipc_proto::types::{DumpFlags, DumpType};
///
/// let config = DumpConfig {
///     path: "/tmp/core.%p".into(),
///     dump_type: DumpType::WITH_HEAP,
///     flags: DumpFlags::CRASH_REPORT_ENABLED,
/// };
/// let core_3 = Runtime { version: Some(3), ..Runtime::default() };
/// let step = config.first_step(&core_3);
/// assert_eq!(step.code().0, 0x0101);
/// assert!(step.lost_features().contains(LostFeature::DumpFlags) && step.older().is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpConfig<'a> {
    /// The path in the target's file system. The runtime expands `%p` and other templates.
    pub path: Text<'a>,
    /// The part of the process that the dump contains.
    pub dump_type: DumpType,
    /// Options of the dump's writer.
    pub flags: DumpFlags,
}

impl<'a> DumpConfig<'a> {
    /// Returns the newest command that the runtime can know.
    #[must_use]
    pub fn first_step(&self, runtime: &Runtime) -> DumpStep<'a> {
        first_known(DumpStep { config: *self, code: GenerateCoreDump3::CODE }, runtime)
    }
}

/// A command that writes a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpStep<'a> {
    config: DumpConfig<'a>,
    code: Code,
}

impl Encode for DumpStep<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        let DumpConfig { path: dump_name, dump_type, flags } = self.config;
        match self.code {
            // GenerateCoreDump2 and GenerateCoreDump3 have the same fields.
            GenerateCoreDump3::CODE | GenerateCoreDump2::CODE => {
                GenerateCoreDump3 { dump_name, dump_type, flags }.encode(w);
            }
            _ => {
                let diagnostics = flags.0 & DumpFlags::LOGGING_ENABLED.0;
                GenerateCoreDump { dump_name, dump_type, diagnostics }.encode(w);
            }
        }
    }
}

impl PlanStep for DumpStep<'_> {
    type Response<'r> = Status;

    const LIMIT_MS: u64 = DUMP_LIMIT_MS;

    fn code(&self) -> Code {
        self.code
    }

    fn check(&self) -> Result<(), InvalidValue> {
        let DumpConfig { path: dump_name, dump_type, flags } = self.config;
        GenerateCoreDump3 { dump_name, dump_type, flags }.check()
    }

    fn lost_features(&self) -> LostFeatures {
        let message = LostFeatures::default().with(LostFeature::DumpMessage);
        let beyond_logging = self.config.flags.0 & !DumpFlags::LOGGING_ENABLED.0 != 0;
        match self.code {
            GenerateCoreDump3::CODE => LostFeatures::default(),
            GenerateCoreDump::CODE if beyond_logging => message.with(LostFeature::DumpFlags),
            _ => message,
        }
    }

    fn older(&self) -> Option<Self> {
        let code = match self.code {
            GenerateCoreDump3::CODE => GenerateCoreDump2::CODE,
            GenerateCoreDump2::CODE => GenerateCoreDump::CODE,
            _ => return None,
        };
        Some(Self { code, ..*self })
    }
}

sentences! {
    /// The request writes no dump.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct NotDumping = "the request writes no dump";
}
impl core::error::Error for NotDumping {}

/// Converts a request, GenerateCoreDump to GenerateCoreDump3, for servers.
impl<'a> TryFrom<&Request<'a>> for DumpConfig<'a> {
    type Error = NotDumping;

    fn try_from(request: &Request<'a>) -> Result<Self, NotDumping> {
        let (path, dump_type, flags) = match *request {
            Request::GenerateCoreDump(dump) => {
                let flags = if dump.diagnostics == 0 { DumpFlags(0) } else { DumpFlags::LOGGING_ENABLED };
                (dump.dump_name, dump.dump_type, flags)
            }
            Request::GenerateCoreDump2(dump) => (dump.dump_name, dump.dump_type, dump.flags),
            Request::GenerateCoreDump3(dump) => (dump.dump_name, dump.dump_type, dump.flags),
            _ => return Err(NotDumping),
        };
        Ok(Self { path, dump_type, flags })
    }
}
