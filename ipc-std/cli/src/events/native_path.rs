//! The path of the program in the event ModuleDCEnd of NativeAOT.
//!
//! The runtime writes this path without its NUL, so that it seems to continue with whatever follows it in the memory of
//! the process. It is the path of the process, which the command line in the event ProcessInfo begins with.
use std::borrow::Cow;

use nettrace::Metadata;
use nettrace_analysis::{KnownProvider, RuntimeEvent};

/// The bytes of ModuleDCEnd before its two paths: two numbers of 8 bytes and two of 4.
const PATHS: usize = 24;

/// The path of the process of a trace.
#[derive(Debug, Default)]
pub(crate) struct NativePath {
    /// UTF-16, little-endian, without its NUL.
    command_line: Vec<u8>,
}

impl NativePath {
    /// Returns the payload of an event, in that of ModuleDCEnd without the bytes after the path of the program.
    pub(crate) fn payload<'p>(
        &mut self,
        metadata: Option<&Metadata<'_>>,
        payload: &'p [u8],
    ) -> Cow<'p, [u8]> {
        match metadata {
            Some(kind) if kind.event_id == 1 && kind.provider == "Microsoft-DotNETCore-EventPipe" => {
                self.command_line = text(payload).to_vec();
            }
            Some(kind)
                if kind.event_id == RuntimeEvent::ModuleDCEnd.id()
                    && kind.provider == KnownProvider::Rundown.name() =>
            {
                if let Some(payload) = self.without_foreign_bytes(payload) {
                    return Cow::Owned(payload);
                }
            }
            _ => {}
        }
        Cow::Borrowed(payload)
    }

    fn without_foreign_bytes(&self, payload: &[u8]) -> Option<Vec<u8>> {
        let (start, paths) = payload.split_at_checked(PATHS)?;
        // A program of NativeAOT has no path of an assembly.
        let path = text(paths.strip_prefix(&[0, 0])?);
        let rest = paths.get(path.len().saturating_add(2)..)?;
        let own = path.get(..self.own_len(path)?)?;
        Some([start, &[0, 0], own, rest].concat())
    }

    /// Returns the length of the part of a path that is the path of the process: the one that the command line begins
    /// with, or, if the program was started by another path, the path up to the name of its file.
    fn own_len(&self, path: &[u8]) -> Option<usize> {
        let command_line = self.command_line.as_slice();
        let common = common_len(path, command_line);
        let is_whole = command_line.get(common..)?.chunks_exact(2).next().is_none_or(|unit| unit == SPACE);
        if is_whole && name_start(path) < common {
            return Some(common);
        }
        let program = command_line.chunks_exact(2).take_while(|unit| *unit != SPACE).count();
        let program = command_line.get(..program.saturating_mul(2))?;
        let name = program.get(name_start(program)..)?;
        let start = name_start(path);
        let is_own = !name.is_empty() && path.get(start..)?.starts_with(name);
        is_own.then(|| start.saturating_add(name.len()))
    }
}

const SLASH: &[u8] = b"/\0";
const SPACE: &[u8] = b" \0";

/// Returns the length of the common start of two texts.
fn common_len(one: &[u8], other: &[u8]) -> usize {
    let units = one.chunks_exact(2).zip(other.chunks_exact(2)).take_while(|(one, other)| one == other);
    units.count().saturating_mul(2)
}

/// Returns where the last part of a path begins.
fn name_start(path: &[u8]) -> usize {
    let slash = path.chunks_exact(2).rposition(|unit| unit == SLASH);
    slash.map_or(0, |slash| slash.saturating_add(1).saturating_mul(2))
}

/// Returns the text at the start of these bytes, up to its NUL.
fn text(bytes: &[u8]) -> &[u8] {
    let units = bytes.chunks_exact(2).take_while(|unit| **unit != [0, 0]).count();
    bytes.get(..units.saturating_mul(2)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use nettrace::Metadata;

    use super::NativePath;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    /// Returns the path in an event ModuleDCEnd after a command line.
    fn shown(command_line: &str, il_path: &str, path: &str) -> String {
        let mut native_path = NativePath::default();
        let info = Metadata::new(1, "Microsoft-DotNETCore-EventPipe", 1, "ProcessInfo");
        let line = utf16(&format!("{command_line}\0Linux\0"));
        assert_eq!(native_path.payload(Some(&info), &line), line);

        let module = Metadata::new(2, "Microsoft-Windows-DotNETRuntimeRundown", 154, "");
        let payload = [&[7; 24][..], &utf16(&format!("{il_path}\0{path}\0")), &[9; 40]].concat();
        let seen = native_path.payload(Some(&module), &payload);
        let start = [&[7; 24][..], &utf16(il_path), &[0, 0]].concat();
        let path = seen
            .strip_prefix(&*start)
            .unwrap()
            .strip_suffix(&[9; 40])
            .unwrap()
            .strip_suffix(&[0, 0])
            .unwrap();
        let units: Vec<u16> = path.chunks(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
        String::from_utf16(&units).unwrap()
    }

    #[test]
    fn the_path_ends_where_that_of_the_process_does() {
        let foreign = "/opt/lab/Workload\u{4}\u{7f48}";
        for command_line in [
            "/opt/lab/Workload",
            "/opt/lab/Workload --port 1",
            "./Workload",
            "Workload x",
            "../lab/Workload /x",
        ] {
            assert_eq!(shown(command_line, "", foreign), "/opt/lab/Workload", "{command_line}");
        }
        assert_eq!(
            shown("/opt/my lab/Work load x", "", "/opt/my lab/Work load\u{1}"),
            "/opt/my lab/Work load"
        );
        assert_eq!(shown("/opt/lab/Workload", "", "/opt/lab/Workload"), "/opt/lab/Workload");
    }

    #[test]
    fn other_paths_stay() {
        // The program was started by a link of another name, or the command line is not known.
        for command_line in ["/usr/bin/link", "/opt/lab/Worker", "/opt/lab/", "", "/"] {
            assert_eq!(shown(command_line, "", "/opt/lab/Workload\u{4}"), "/opt/lab/Workload\u{4}");
        }
        // A program that is compiled at run time has paths with a NUL.
        assert_eq!(shown("/opt/App", "/opt/App.dll", "/opt/App.ni.dll"), "/opt/App.ni.dll");
    }

    #[test]
    fn short_payloads_stay() {
        let mut native_path = NativePath::default();
        let module = Metadata::new(2, "Microsoft-Windows-DotNETRuntimeRundown", 154, "");
        for len in 0..40 {
            let payload = vec![0; len];
            assert_eq!(native_path.payload(Some(&module), &payload), payload);
        }
    }
}
