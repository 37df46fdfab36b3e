//! The names of processes.
use std::fs;
use std::path::Path;

use ipc_std::discover::{Found, Search};

/// The kernel stores at most this many bytes of a name.
const COMM_LEN: usize = 15;

/// Returns the name of the process of a runtime, as the operating system reports it. If the system does not show the
/// process, the name comes from the runtime, once the runtime is identified.
pub(crate) fn name(search: &Search, found: Option<&Found>) -> Option<String> {
    let visible = match found {
        Some(found) => found.listener,
        None => search.visible_process_id(),
    };
    visible.and_then(system_name).or_else(|| reported_name(found?))
}

/// Returns the name of a process, as dotnet-trace shows it: the file name of the executable, unless the process changed
/// it. Systems without a Linux `/proc` return nothing.
pub(crate) fn system_name(process_id: u32) -> Option<String> {
    let comm = fs::read(format!("/proc/{process_id}/comm")).ok()?;
    let comm = String::from_utf8_lossy(comm.strip_suffix(b"\n").unwrap_or(&comm)).into_owned();
    if comm.len() < COMM_LEN {
        return Some(comm);
    }
    let whole = program(process_id);
    Some(whole.filter(|whole| whole.starts_with(&comm)).unwrap_or(comm))
}

/// Returns the file name of a process's first argument.
fn program(process_id: u32) -> Option<String> {
    let arguments = fs::read(format!("/proc/{process_id}/cmdline")).ok()?;
    let program = arguments.strip_suffix(b"\0")?.split(|byte| *byte == 0).next()?;
    file_name(&String::from_utf8_lossy(program))
}

/// Returns the name of a process from its command line, or else the name of the program that its runtime reports.
fn reported_name(found: &Found) -> Option<String> {
    let assembly = || Some(found.info.as_ref()?.managed_entrypoint_assembly_name.to_string());
    let name = found.command_line().and_then(|command_line| name_in(&command_line));
    name.or_else(|| assembly().filter(|assembly| !assembly.is_empty()))
}

fn name_in(command_line: &str) -> Option<String> {
    let program = match command_line.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => command_line.split(' ').next()?,
    };
    file_name(program)
}

fn file_name(program: &str) -> Option<String> {
    let name = Path::new(program).file_name()?.to_str()?;
    Some(name.strip_suffix(".exe").unwrap_or(name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_command_lines() {
        for (command_line, name) in [
            ("/opt/app/app --fast", Some("app")),
            ("dotnet app.dll", Some("dotnet")),
            ("\"/opt/my app/app.exe\" x", Some("app")),
            ("", None),
        ] {
            assert_eq!(name_in(command_line).as_deref(), name, "{command_line}");
        }
    }
}
