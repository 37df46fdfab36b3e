//! Facts about a runtime: for a server about itself, for a client about the runtime that it asks.
use ipc_proto::plan::{Flavour, Runtime};

use crate::memory;
use crate::status::{Failure, Status};

/// Not known.
pub const DIPC_UNKNOWN: u8 = 0;
/// Known to be so.
pub const DIPC_YES: u8 = 1;
/// Known not to be so.
pub const DIPC_NO: u8 = 2;

/// An unknown kind.
pub const DIPC_FLAVOUR_UNKNOWN: u32 = 0;
/// The runtime of .NET and of .NET Core.
pub const DIPC_FLAVOUR_CORE_CLR: u32 = 1;
/// Mono, the runtime of phones and browsers.
pub const DIPC_FLAVOUR_MONO: u32 = 2;
/// The runtime in a program that was compiled ahead of time.
pub const DIPC_FLAVOUR_NATIVE_AOT: u32 = 3;

/// The known facts about a runtime. All zeros: nothing is known.
#[repr(C)]
pub struct Facts {
    /// The major version of .NET, or of the .NET whose commands a server has; 0 if it is not known. It is the first number
    /// of `clr_product_version`.
    pub version: u8,
    /// One of `DIPC_YES`, `DIPC_NO` and `DIPC_UNKNOWN`: whether the process runs on Linux.
    pub is_linux: u8,
    /// One of `DIPC_YES`, `DIPC_NO` and `DIPC_UNKNOWN`: whether the runtime is suspended at startup.
    pub is_suspended: u8,
    /// The kind of runtime: one of `DIPC_FLAVOUR_*`.
    pub flavour: u32,
}

/// Returns a kind of runtime; `None` for an unknown one.
pub(crate) fn flavour(number: u32) -> Result<Option<Flavour>, Failure> {
    match number {
        DIPC_FLAVOUR_CORE_CLR => Ok(Some(Flavour::CoreClr)),
        DIPC_FLAVOUR_MONO => Ok(Some(Flavour::Mono)),
        DIPC_FLAVOUR_NATIVE_AOT => Ok(Some(Flavour::NativeAot)),
        DIPC_FLAVOUR_UNKNOWN => Ok(None),
        _ => Err(Status::InvalidArgument.into()),
    }
}

impl Facts {
    /// Returns the facts; those of an unknown runtime for null.
    ///
    /// # Safety
    /// `facts` is null or points to facts.
    pub(crate) unsafe fn runtime(facts: *const Self) -> Result<Option<Runtime>, Failure> {
        if facts.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller vouches for the pointer.
        let facts = unsafe { memory::reference(facts) }?;
        let known = |fact| match fact {
            DIPC_UNKNOWN => Ok(None),
            DIPC_YES => Ok(Some(true)),
            DIPC_NO => Ok(Some(false)),
            _ => Err(Failure::from(Status::InvalidArgument)),
        };
        Ok(Some(Runtime {
            version: (facts.version != 0).then_some(facts.version),
            flavour: flavour(facts.flavour)?,
            linux: known(facts.is_linux)?,
            suspended: known(facts.is_suspended)?,
        }))
    }
}
