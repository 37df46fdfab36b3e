//! Texts in `/proc`, parsed without access to files.
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use ipc_proto::plan::Flavour;
use ipc_proto::port::{Config, Variable};

use crate::error::Signs;

/// The content of `mountinfo`. Every mount has a unique number, so two processes with equal content have the same
/// mounts and the same root.
#[derive(Debug, PartialEq, Eq)]
pub struct Mounts(Vec<u8>);

impl Mounts {
    /// Stores the content of the file.
    pub const fn new(mountinfo: Vec<u8>) -> Self {
        Self(mountinfo)
    }

    /// Returns the mounts of this process; empty without `/proc`.
    pub(crate) fn own() -> Self {
        Self(std::fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    /// Returns whether this kernel alone serves an absolute path without links: every file system on the path has a
    /// type that is known to be local. True on systems without `mountinfo`.
    pub fn is_local(&self, path: &Path) -> bool {
        /// The local types. A file system of another type may be served by another system or by a program.
        const LOCAL: [&[u8]; 17] = [
            b"bcachefs",
            b"btrfs",
            b"devtmpfs",
            b"erofs",
            b"ext2",
            b"ext3",
            b"ext4",
            b"f2fs",
            b"overlay",
            b"ramfs",
            b"rootfs",
            b"squashfs",
            b"tmpfs",
            b"ubifs",
            b"vfat",
            b"xfs",
            b"zfs",
        ];
        let plain = |component| matches!(component, Component::RootDir | Component::Normal(_));
        if !path.is_absolute() || !path.components().all(plain) {
            return false;
        }
        let mut is_local = true;
        for line in self.0.split(|byte| *byte == b'\n') {
            let fields: Vec<_> = line.split(|byte| *byte == b' ').collect();
            let Some(point) = fields.get(4) else { continue };
            let kind = fields.iter().skip_while(|field| ***field != *b"-").nth(1);
            let is_on_path = path.starts_with(OsStr::from_bytes(&unescaped(point)));
            is_local &= !is_on_path || kind.is_some_and(|kind| LOCAL.contains(kind));
        }
        is_local
    }
}

/// Replaces the escapes of the kernel: space, tab, line feed and backslash are written as `\040` etc.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut rest = field;
    let mut plain = Vec::with_capacity(field.len());
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|octal| *first == b'\\' && octal.iter().all(u8::is_ascii_digit));
        let value = octal.and_then(|octal| u8::from_str_radix(core::str::from_utf8(octal).ok()?, 8).ok());
        plain.push(value.unwrap_or(*first));
        rest = if value.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    plain
}

/// Some fields of `/proc/PID/status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The effective user.
    pub user_id: u32,
    /// The process that the thread belongs to; for a process its own id.
    pub leader: Option<u32>,
    /// The process id in its own PID namespace; `None` before Linux 4.1, which does not report this id.
    pub local_process_id: Option<u32>,
}

impl Status {
    /// Parses the file; `None` without an effective user.
    pub fn read(status: &[u8]) -> Option<Self> {
        let line = |name: &str| {
            let line =
                status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name.as_bytes()));
            core::str::from_utf8(line?).ok()
        };
        let user_id = line("Uid:")?.split_ascii_whitespace().nth(1)?.parse().ok()?;
        let ids = line("NSpid:").and_then(|ids| ids.split_ascii_whitespace().next_back());
        let leader = line("Tgid:").and_then(|id| id.trim().parse().ok());
        Some(Self { user_id, leader, local_process_id: ids.and_then(|id| id.parse().ok()) })
    }
}

/// Returns the signs of a runtime in `/proc/PID/maps`.
///
/// A runtime of .NET 11, or of a late .NET 10, maps `/memfd:dotnet_ipc_created` when it has made its socket; NativeAOT
/// does too.
pub(crate) fn runtime_signs(maps: &[u8]) -> Signs {
    let mut signs = Signs::Absent;
    for line in maps.split(|byte| *byte == b'\n') {
        let file = line.iter().position(|byte| *byte == b'/').and_then(|start| line.get(start..));
        let file = file.unwrap_or_default();
        let has = |part: &[u8]| file.windows(part.len()).any(|window| window == part);
        if has(b"/memfd:dotnet_ipc_created") {
            return Signs::Listening;
        }
        if shared_runtime_version(file).is_some_and(|version| version >= FIRST_WITH_MARK) {
            signs = Signs::NotListening;
        }
        // A single-file program has only the last of these mappings.
        let is_runtime =
            [&b"/libcoreclr.so"[..], b"/libmonosgen", b"/memfd:doublemapper"].into_iter().any(has);
        if is_runtime && signs == Signs::Absent {
            signs = Signs::Loaded;
        }
    }
    signs
}

/// The first version whose runtimes all show that they listen.
const FIRST_WITH_MARK: u32 = 11;

/// Returns the major version of a shared runtime, whose folder has the name of the version; `None` for another file.
fn shared_runtime_version(file: &[u8]) -> Option<u32> {
    let folder = Path::new(OsStr::from_bytes(file)).parent()?;
    let is_shared = file.ends_with(b"/libcoreclr.so") && folder.parent()?.ends_with("Microsoft.NETCore.App");
    let version = folder.file_name().filter(|_| is_shared)?.to_str()?;
    version.split('.').next()?.parse().ok()
}

/// The environment with which a process was started.
#[derive(Debug)]
pub struct Environ(Vec<u8>);

impl Environ {
    /// Stores the content of `/proc/PID/environ`.
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the value of the first variable with this name.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let value = self
            .0
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        value.map(OsStr::from_bytes)
    }

    /// Returns whether no diagnostic port suspends a runtime of any kind with this environment. A variable that is not
    /// UTF-8 may name a port that suspends, so the result is false then.
    pub fn never_suspends(&self) -> bool {
        let is_text = |name| self.variable(name).is_none_or(|value| value.to_str().is_some());
        Variable::ALL.iter().all(|variable| is_text(variable.name()) && is_text(variable.old_name()))
            && [Flavour::CoreClr, Flavour::Mono, Flavour::NativeAot].into_iter().all(|flavour| {
                let config = Config::read(flavour, |name| self.variable(name)?.to_str());
                !config.default_port_suspends() && !config.ports().any(|port| port.suspends())
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_of_a_process_in_a_container() {
        let status =
            b"Name:\tWorkload\nTgid:\t4242\nUid:\t1000\t1001\t1002\t1003\nNSpid:\t4242\t17\t1\nThreads:\t9\n";
        assert_eq!(
            Status::read(status),
            Some(Status { user_id: 1001, leader: Some(4242), local_process_id: Some(1) })
        );
        assert_eq!(
            Status::read(b"Uid:\t5\t6\n"),
            Some(Status { user_id: 6, leader: None, local_process_id: None })
        );
        assert_eq!(Status::read(b"Name:\tUid:\n"), None);
    }

    #[test]
    fn ports_that_suspend_no_runtime() {
        for (environment, never_suspends) in [
            (&b""[..], true),
            (b"DOTNET_DiagnosticPorts=", true),
            (b"DOTNET_DiagnosticPorts=/a,nosuspend;/b,connect,nosuspend", true),
            (b"DOTNET_DiagnosticPorts=/a,nosuspend;/b", false),
            (b"DOTNET_DiagnosticPorts=/a", false),
            (b"COMPlus_DiagnosticPorts=/a", false),
            (b"DOTNET_DiagnosticPorts=/a\0DOTNET_EnableDiagnostics=0", true),
            (b"DOTNET_DefaultDiagnosticPortSuspend=0", true),
            (b"DOTNET_DefaultDiagnosticPortSuspend=1", false),
            // The value is a number only in hexadecimal. Mono reads decimal numbers, the other kinds read hexadecimal
            // ones.
            (b"DOTNET_DefaultDiagnosticPortSuspend=a", false),
            (b"DOTNET_DiagnosticPorts=/\xff,nosuspend", false),
        ] {
            let text = environment.escape_ascii();
            assert_eq!(Environ(environment.to_vec()).never_suspends(), never_suspends, "{text}");
        }
    }

    /// A relative path can be on any file system.
    #[test]
    fn relative_paths_are_not_local() {
        let mounts = Mounts::new(b"1 0 8:1 / / rw - ext4 x rw\n2 1 0:9 / /a\\040b rw - fuse x rw\n".to_vec());
        assert!(mounts.is_local(Path::new("/tmp")));
        for path in ["tmp", "", "./tmp", "/tmp/../etc", "/a b", "/a b/c"] {
            assert!(!mounts.is_local(Path::new(path)), "{path:?}");
        }
        // A backslash starts an escape only before three digits.
        assert_eq!(unescaped(b"\\+12\\12\\040"), b"\\+12\\12 ");
    }

    #[test]
    fn first_of_two_variables_counts() {
        let environment = Environ(b"TMPDIRS=/no\0TMPDIR=/a=b\0TMPDIR=/c\0EMPTY=\0odd".to_vec());
        assert_eq!(environment.variable("TMPDIR"), Some(OsStr::new("/a=b")));
        assert_eq!(environment.variable("EMPTY"), Some(OsStr::new("")));
        assert_eq!(environment.variable("odd"), None);
    }
}
