//! [`OperatingSystem`] and [`Architecture`], the names in the answers that describe a process.
use super::names::names;
use crate::Text;

names! {
    /// The operating system of a process: the field `os` of [`ProcessInfo`](super::types::ProcessInfo).
    ///
    /// Erratum: the specification lists only Windows, Linux, macOS and Unknown.
    ///
    /// ```
    /// use ipc_proto::types::OperatingSystem;
    ///
    /// assert_eq!(OperatingSystem::of("macOS".into()), Some(OperatingSystem::MacOs));
    /// assert_eq!(OperatingSystem::Linux.name(), "Linux");
    /// ```
    #[non_exhaustive]
    OperatingSystem:
    Windows = "Windows",
    Linux = "Linux",
    MacOs = "macOS",
    Ios = "iOS",
    TvOs = "tvOS",
    WatchOs = "WatchOS",
    Android = "Android",
    Unknown = "Unknown",
}
names! {
    /// The architecture of a process: the field `arch` of [`ProcessInfo`](super::types::ProcessInfo).
    ///
    /// Erratum: the specification lists only x86, x64, arm32, arm64 and Unknown.
    ///
    /// ```
    /// use ipc_proto::types::Architecture;
    ///
    /// assert_eq!(Architecture::of("arm64".into()), Some(Architecture::Arm64));
    /// assert_eq!(Architecture::Arm64.name(), "arm64");
    /// ```
    #[non_exhaustive]
    Architecture:
    X86 = "x86",
    X64 = "x64",
    Arm32 = "arm32",
    Arm64 = "arm64",
    S390x = "s390x",
    LoongArch64 = "loongarch64",
    Ppc64Le = "ppc64le",
    RiscV64 = "riscv64",
    Unknown = "Unknown",
}

impl OperatingSystem {
    /// Returns the variant of a name; `None` for a name that no known runtime reports.
    #[must_use]
    pub fn of(name: Text<'_>) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| name == known.name())
    }
}

impl Architecture {
    /// Returns the variant of a name; `None` for a name that no known runtime reports.
    #[must_use]
    pub fn of(name: Text<'_>) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| name == known.name())
    }
}
