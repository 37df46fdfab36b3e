//! A command of the protocol as the value of an option.
use dotnet_ipc_sans_io::syntax::unsigned::unsigned;
use ipc_proto::{Code, CommandInfo, Request};

/// Parses a command by one of its two names or its code.
pub(crate) fn parse_command(text: &str) -> Result<Code, String> {
    let named = |row: &&CommandInfo| {
        [row.name, row.specification_name].iter().any(|name| name.eq_ignore_ascii_case(text))
    };
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let code = || {
        let digits = unsigned(digits).filter(|digits| digits.len() == 4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let found = Request::ALL.iter().find(named).map(|row| row.code);
    found.or_else(|| code().map(Code)).ok_or_else(|| {
        let names: Vec<_> = Request::ALL.iter().map(|row| row.name).collect();
        format!("no such command: give a code such as 0x0408, or one of {}", names.join(", "))
    })
}
