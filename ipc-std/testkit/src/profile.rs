//! `Profile`: the identity of a fake runtime (version, kind, texts); and `FakePort`: a monitor that it connects to.
use core::hash::{BuildHasher, Hasher};
use core::time::Duration;
use std::hash::RandomState;
use std::path::PathBuf;

use ipc_proto::Guid;
use ipc_proto::plan::Flavour;

use crate::heap::FakeHeap;

/// The identity of a `FakeRuntime`.
///
/// ```
/// use ipc_testkit::Profile;
///
/// let suspended = Profile { suspended: true, ..Profile::net9() };
/// assert_eq!(suspended.clr_product_version, "9.0.20");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The major version of .NET, which decides which commands the runtime knows.
    pub version: u8,
    /// The kind of runtime.
    pub flavour: Flavour,
    /// Whether the runtime answers as a careful server where real runtimes of its kind err. Otherwise it does what they
    /// were observed to do, as for the requests of the [conformance kit](crate::conformance): it accepts some values
    /// that break a rule, sends bytes that are not an answer, never answers, or closes the connection in place of its
    /// end. Default: `false` for .NET 11 and for NativeAOT 10, `true` for the others.
    pub careful: bool,
    /// Whether the runtime is suspended at startup until a `ResumeRuntime` arrives at its own socket. While the runtime
    /// is suspended, traces have no bytes, or the header of the stream since .NET 11.
    pub suspended: bool,
    /// The monitors that the runtime connects to. Default: none.
    pub ports: Vec<FakePort>,
    /// The process id, in the name of the socket and in answers. Default: the id of this process.
    pub process_id: u32,
    /// The runtime cookie. Default: random.
    pub runtime_cookie: Guid,
    /// The command line.
    pub command_line: String,
    /// The operating system.
    pub os: String,
    /// The architecture.
    pub arch: String,
    /// The assembly of the entry point.
    pub managed_entrypoint_assembly_name: String,
    /// The runtime's version.
    pub clr_product_version: String,
    /// The runtime identifier (RID).
    pub portable_rid: String,
    /// The heap, which a session for a heap snapshot receives. Default: none; such a session gets no snapshot.
    pub heap: Option<FakeHeap>,
    /// The environment: `NAME=value` each.
    pub environment: Vec<String>,
    /// How long a client can take to send its request, and then each time until it reads more of the response or the
    /// stream. After this time its connection is closed. Default: 60 seconds.
    pub client_timeout: Duration,
}

impl Profile {
    /// Returns the profile of .NET 11.
    #[must_use]
    pub fn net11() -> Self {
        Self { careful: false, ..Self::new(11, "11.0.0") }
    }
    /// Returns the profile of .NET 11 with NativeAOT.
    #[must_use]
    pub fn net11_aot() -> Self {
        Self { flavour: Flavour::NativeAot, ..Self::net11() }
    }
    /// Returns the profile of .NET 10 with NativeAOT.
    #[must_use]
    pub fn net10_aot() -> Self {
        Self { flavour: Flavour::NativeAot, careful: false, ..Self::net10() }
    }
    /// Returns the profile of .NET 10.
    #[must_use]
    pub fn net10() -> Self {
        Self::new(10, "10.0.12")
    }
    /// Returns the profile of .NET 9.
    #[must_use]
    pub fn net9() -> Self {
        Self::new(9, "9.0.20")
    }
    /// Returns the profile of .NET 8.
    #[must_use]
    pub fn net8() -> Self {
        Self::new(8, "8.0.31")
    }
    /// Returns the profile of .NET 9 with NativeAOT.
    #[must_use]
    pub fn net9_aot() -> Self {
        Self { flavour: Flavour::NativeAot, ..Self::net9() }
    }
    /// Returns the profile of .NET Core 3.1, which knows five commands.
    #[must_use]
    pub fn net31() -> Self {
        Self::new(3, "3.1.23")
    }

    /// Returns the name of this kind of runtime in the data of the conformance kit: `net11`, `net10-aot`, …
    #[cfg(feature = "io")]
    pub(crate) fn kind(&self) -> String {
        match (self.version, self.flavour) {
            (3, _) => "net31".to_owned(),
            (version, Flavour::NativeAot) => format!("net{version}-aot"),
            (version, _) => format!("net{version}"),
        }
    }

    fn new(version: u8, clr_product_version: &str) -> Self {
        Self {
            version,
            flavour: Flavour::CoreClr,
            careful: true,
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
            heap: None,
            environment: ["HOME=/home/fake", "PATH=/usr/bin:/bin", "OPTIONS=a=1;b=2"]
                .map(str::to_owned)
                .to_vec(),
            client_timeout: Duration::from_secs(60),
        }
    }
}

/// A monitor that a `FakeRuntime` connects to, as soon as the monitor listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakePort {
    /// The path of the monitor's socket.
    pub path: PathBuf,
    /// Whether the runtime is suspended at startup until a `ResumeRuntime` arrives at this port.
    pub suspended: bool,
}

/// Returns a random value that is not a secret.
pub(crate) fn random() -> Guid {
    let [a, b] = [(); 2].map(|()| RandomState::new().build_hasher().finish());
    Guid(((u128::from(a) << u64::BITS) | u128::from(b)).to_le_bytes())
}
