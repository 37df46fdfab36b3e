use core::hash::{BuildHasher, Hasher};
use std::hash::RandomState;
use std::path::PathBuf;

use ipc_proto::plan::{self, Flavour, Runtime};
use ipc_proto::{Code, Guid, HResult, RequestError, Violation};

/// What a [`FakeRuntime`](super::FakeRuntime) says it is.
///
/// ```
/// use ipc_std::fake::Profile;
///
/// let suspended = Profile { suspended: true, ..Profile::net9() };
/// assert_eq!(suspended.clr_product_version, "9.0.20");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The major version of .NET; it decides which commands are known.
    pub version: u8,
    /// What kind of runtime.
    pub flavour: Flavour,
    /// Whether it waits at its start for a `ResumeRuntime` where it listens; until then no trace has a byte.
    pub suspended: bool,
    /// The monitors that it calls; none if not set otherwise.
    pub ports: Vec<Port>,
    /// The process, in the socket's name and in what it says of itself; this one if not set otherwise.
    pub process_id: u32,
    /// The runtime's identity; random if not set otherwise.
    pub runtime_cookie: Guid,
    /// How it was started.
    pub command_line: String,
    /// The operating system.
    pub os: String,
    /// The architecture.
    pub arch: String,
    /// The assembly of the entry point.
    pub managed_entrypoint_assembly_name: String,
    /// The runtime's version.
    pub clr_product_version: String,
    /// The platform.
    pub portable_rid: String,
    /// The environment: `NAME=value` each.
    pub environment: Vec<String>,
}

impl Profile {
    /// .NET 10.
    #[must_use]
    pub fn net10() -> Self {
        Self::new(10, "10.0.12")
    }
    /// .NET 9.
    #[must_use]
    pub fn net9() -> Self {
        Self::new(9, "9.0.20")
    }
    /// .NET 8.
    #[must_use]
    pub fn net8() -> Self {
        Self::new(8, "8.0.31")
    }
    /// .NET 9, compiled ahead of time.
    #[must_use]
    pub fn net9_aot() -> Self {
        Self { flavour: Flavour::NativeAot, ..Self::net9() }
    }
    /// .NET Core 3.1, which knows five commands.
    #[must_use]
    pub fn net31() -> Self {
        Self::new(3, "3.1.23")
    }

    fn new(version: u8, clr_product_version: &str) -> Self {
        Self {
            version,
            flavour: Flavour::CoreClr,
            suspended: false,
            ports: Vec::new(),
            process_id: std::process::id(),
            runtime_cookie: random(),
            command_line: "/app/Fake --of-a runtime".to_owned(),
            os: "Linux".to_owned(),
            arch: "x64".to_owned(),
            managed_entrypoint_assembly_name: "Fake".to_owned(),
            clr_product_version: clr_product_version.to_owned(),
            portable_rid: "linux-x64".to_owned(),
            environment: ["HOME=/home/fake", "PATH=/usr/bin:/bin", "OPTIONS=a=1;b=2"]
                .map(str::to_owned)
                .to_vec(),
        }
    }

    /// What a runtime of this version and kind refuses by its code, before it looks at the payload.
    pub(super) fn refuses(&self, code: Code) -> Option<HResult> {
        let (version, flavour) = (Some(self.version), Some(self.flavour));
        let linux = Some(self.os == "Linux");
        plan::refusal(code, &Runtime { version, flavour, linux, suspended: None })
    }

    /// What a runtime of this kind refuses in another way: where there are no startup hooks, it does not matter which
    /// one is wanted.
    pub(super) fn refuses_instead(&self, error: &RequestError) -> Option<HResult> {
        let hook = matches!(error, RequestError::Violation(Violation::StartupHookPath));
        (hook && self.flavour != Flavour::CoreClr).then_some(HResult::NOT_SUPPORTED)
    }
}

/// A monitor that a [`FakeRuntime`](super::FakeRuntime) calls, there or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// The monitor's socket.
    pub path: PathBuf,
    /// Whether the runtime waits at its start for a `ResumeRuntime` that comes by this port.
    pub suspended: bool,
}

/// Different each time, though no secret.
pub(super) fn random() -> Guid {
    let [a, b] = [(); 2].map(|()| RandomState::new().build_hasher().finish());
    Guid(((u128::from(a) << u64::BITS) | u128::from(b)).to_le_bytes())
}
