//! [`OperatingSystem`] and [`Architecture`], the names in the answers that describe a process.
use crate::Text;

/// Declares an enum of names that a runtime reports.
macro_rules! names {
    ($(#[$meta:meta])* $type:ident, $count:literal, $($variant:ident = $name:literal,)*) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $type {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl $type {
            /// Every name.
            pub const ALL: [Self; $count] = [$(Self::$variant),*];

            /// Returns the name as runtimes report it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the variant of a name; `None` for a name that no known runtime reports.
            #[must_use]
            pub fn of(name: Text<'_>) -> Option<Self> {
                Self::ALL.into_iter().find(|known| name == known.name())
            }
        }
    };
}
names! {
    /// The operating system of a process: the field `os` of [`ProcessInfo`](super::types::ProcessInfo).
    ///
    /// Erratum: the specification lists only Windows, Linux, macOS and Unknown.
    ///
    /// ```
    /// use ipc_proto::types::{CommandLineForm, OperatingSystem};
    ///
    /// assert_eq!(OperatingSystem::of("macOS".into()), Some(OperatingSystem::MacOs));
    /// assert_eq!(OperatingSystem::Linux.command_line_form(), CommandLineForm::Joined);
    /// ```
    OperatingSystem, 8,
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
    Architecture, 9,
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

/// The form of the field `command_line` of [`ProcessInfo`](super::types::ProcessInfo).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommandLineForm {
    /// The text of the Windows function `GetCommandLineW`: arguments are quoted as on Windows.
    Quoted,
    /// The whole path of the executable and all arguments, joined by spaces without quotes, so that an argument with a
    /// space looks like two.
    Joined,
}

impl OperatingSystem {
    /// Returns the form of command lines on this system.
    #[must_use]
    pub const fn command_line_form(self) -> CommandLineForm {
        match self {
            Self::Windows => CommandLineForm::Quoted,
            _ => CommandLineForm::Joined,
        }
    }
}
