//! The property of a configuration of ports: it agrees with a naive reading of the environment.
use std::collections::VecDeque;

use arbitrary::Unstructured;
use ipc_proto::plan::Flavour;
use ipc_proto::port::{Config, Port, PortList, PortType, ToolPort, ToolPortError, Transport, Variable};

/// For any environment, a runtime's ports are those of a naive reading. Each finding is one line. A written port is
/// read again as the same port, and a written list as the same ports. A tool's port is that of a naive reading, too.
pub fn port_config(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let _ = environment(&mut u);
}

fn environment(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let flavour = *u.choose(&[Flavour::CoreClr, Flavour::Mono, Flavour::NativeAot])?;
    let mut variables: Vec<(&str, String)> = Vec::new();
    for name in Variable::ALL.into_iter().flat_map(|variable| [variable.name(), variable.old_name()]) {
        if u.arbitrary()? {
            variables.push((name, text(u)?));
        }
    }
    let lookup = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| &value[..]);
    let config = Config::read(flavour, lookup);

    let expected = Naive::read(flavour, lookup);
    assert_eq!(config.is_enabled(), expected.enabled);
    assert_eq!(config.default_port_suspends(), expected.default_port_suspends);
    assert!(config.ports().map(parts).eq(expected.ports.iter().map(|(a, l, s)| (&a[..], *l, *s))));
    for port in config.ports().filter(|port| !port.address().contains('\0')) {
        let written = port.to_string();
        assert!(Port::list(&written).eq([port]));
        let connect = Port::connect(port.address(), port.suspends()).expect("a list contained it");
        assert_eq!(connect == port, port.port_type() == PortType::Connect);
        let listen = Port::listen(port.address(), port.suspends()).expect("a list contained it");
        assert_eq!(listen == port, port.port_type() == PortType::Listen);
    }
    // There are at most this many findings: two for each variable, one for disabled ports, and for each port twelve and
    // one for each of its tags.
    let most = 9 + variables.iter().map(|(_, value)| 12 * (value.len() + 1)).sum::<usize>();
    assert!(config.findings().count() <= most, "there are too many findings");
    for finding in config.findings() {
        let sentence = finding.to_string();
        // A finding quotes at most two texts, each of 200 characters of at most ten bytes.
        assert!((21..4500).contains(&sentence.len()), "{sentence:?}");
        assert!(!sentence.contains(char::is_control), "{sentence:?}");
    }

    let tool = text(u)?;
    for native in [Transport::UnixSocket, Transport::NamedPipe] {
        let port = ToolPort::parse(&tool, native);
        assert_eq!(port.map(|p| (p.address, p.transport, p.port_type)), naive_tool_port(&tool, native));
    }
    port_list(&config.ports().collect::<Vec<_>>(), &text(u)?);
    Ok(())
}

/// A written list is read as its own ports and those of `value`, which follow them. No address is in both parts.
fn port_list(ports: &[Port<'_>], value: &str) {
    let list = PortList::new(ports).followed_by(value);
    let written = list.to_string();
    assert!(Port::list(&written).eq(list.ports()));
    let ours = |address: &String| ports.iter().any(|port| port.address() == address);
    let appended = strtok(value, ';').into_iter().filter(|spec| !strtok(spec, ',').first().is_some_and(ours));
    let expected: Vec<String> = ports.iter().map(Port::to_string).chain(appended).collect();
    assert_eq!(written, expected.join(";"));
}

fn parts<'a>(port: Port<'a>) -> (&'a str, bool, bool) {
    (port.address(), port.port_type() == PortType::Listen, port.suspends())
}

/// A text of relevant words and arbitrary ones.
fn text(u: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    const WORDS: &str = ";|;|,|,|,|connect|listen|suspend|nosuspend|NoSuspend|LISTEN|nosupend|conenct| |\t|\
        /tmp/a|/tmp/a|monitor|0|1|10|0x|-|+|f|uds:|file:|namedpipe:|http:|//|/pipe/|\\\\.\\pipe\\";
    let words: Vec<&str> = WORDS.split('|').collect();
    let mut text = String::new();
    for _ in 0..u.int_in_range(0..=15)? {
        match u.choose_index(words.len() + 1)? {
            index if index < words.len() => text.push_str(words[index]),
            _ => text.push_str(u.arbitrary()?),
        }
    }
    Ok(text)
}

/// A runtime's reading, with `Vec`s and C's functions written out.
struct Naive {
    enabled: bool,
    default_port_suspends: bool,
    ports: Vec<(String, bool, bool)>,
}

impl Naive {
    fn read<'a>(flavour: Flavour, lookup: impl Fn(&str) -> Option<&'a str>) -> Self {
        let get = |name: &str, old_too: bool| {
            let mut prefixes = vec!["DOTNET_"];
            if old_too || flavour == Flavour::CoreClr {
                prefixes.push("COMPlus_");
            }
            let mut found = prefixes.iter().filter_map(|prefix| lookup(&format!("{prefix}{name}")));
            found.find(|value| flavour == Flavour::Mono || !value.is_empty())
        };
        let is_mono = flavour == Flavour::Mono;
        let is_zero = |name| get(name, is_mono).is_some_and(|value| naive_number(flavour, value) == Some(0));
        let enabled = !is_zero("EnableDiagnostics") && !is_zero("EnableDiagnostics_IPC");
        let suspend = get("DefaultDiagnosticPortSuspend", false);
        let suspend = suspend.and_then(|value| naive_number(flavour, value)).unwrap_or(0);
        let mut ports = Vec::new();
        for spec in strtok(get("DiagnosticPorts", false).unwrap_or(""), ';').iter().rev() {
            let tokens = strtok(spec, ',');
            let (mut listen, mut suspend) = (false, true);
            for (index, token) in tokens.iter().enumerate().rev() {
                match (index, &token.to_ascii_lowercase()[..]) {
                    (0, _) if enabled && !(listen && flavour == Flavour::CoreClr) => {
                        ports.push((token.clone(), listen, suspend));
                    }
                    (0, _) => {}
                    (_, "connect") => listen = false,
                    (_, "listen") => listen = true,
                    (_, "suspend") => suspend = true,
                    (_, "nosuspend") => suspend = false,
                    _ => {}
                }
            }
        }
        // Runtimes truncate the number to a u32.
        Self { enabled, default_port_suspends: enabled && suspend % (1 << 32) != 0, ports }
    }
}

fn strtok(text: &str, separator: char) -> Vec<String> {
    text.split(separator).filter(|token| !token.is_empty()).map(str::to_owned).collect()
}

fn naive_number(flavour: Flavour, text: &str) -> Option<u64> {
    let mut characters: VecDeque<char> = text.chars().collect();
    if flavour == Flavour::NativeAot {
        if characters.len() > 16 {
            return None;
        }
        return characters.iter().try_fold(0, |n, c| Some(n * 16 + u64::from(c.to_digit(16)?)));
    }
    let radix = if flavour == Flavour::Mono { 10 } else { 16 };
    while characters.front().is_some_and(|c| " \t\n\u{b}\u{c}\r".contains(*c)) {
        characters.pop_front();
    }
    let negative = characters.front() == Some(&'-');
    if matches!(characters.front(), Some('-' | '+')) {
        characters.pop_front();
    }
    let is_x = matches!(characters.get(1), Some('x' | 'X'));
    if radix == 16
        && characters.front() == Some(&'0')
        && is_x
        && characters.get(2).is_some_and(char::is_ascii_hexdigit)
    {
        characters.drain(..2);
    }
    let digits = characters.iter().map_while(|c| c.to_digit(radix));
    let number = digits.fold(None, |n: Option<u64>, digit| {
        Some(n.unwrap_or(0).saturating_mul(radix.into()).saturating_add(digit.into()))
    });
    let number = match number.map(u32::try_from) {
        Some(Ok(number)) if negative => Some(number.wrapping_neg().into()),
        Some(Ok(number)) => Some(number.into()),
        Some(Err(_)) | None => None,
    };
    if flavour == Flavour::Mono { number.or(Some(0)) } else { number }
}

type Parts<'a> = (&'a str, Transport, PortType);

fn naive_tool_port(text: &str, native: Transport) -> Result<Parts<'_>, ToolPortError> {
    let all: Vec<&str> = text.split(',').collect();
    let lower: Vec<String> = all.iter().map(|part| part.to_ascii_lowercase()).collect();
    if lower.iter().skip(1).any(|part| ["suspend", "nosuspend"].contains(&part.trim())) {
        return Err(ToolPortError::Suspend);
    }
    let port_type = match lower.iter().skip(1).map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["listen"] => PortType::Listen,
        ["connect"] => PortType::Connect,
        [_] => return Err(ToolPortError::Keyword),
        _ => return Err(ToolPortError::TooManyParts),
    };
    let (mut address, mut transport) = (all[0], native);
    if let Some(colon) = address.find(':') {
        let scheme = &lower[0][..colon];
        let letters = scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        if colon > 1 && letters && scheme.starts_with(|c: char| c.is_ascii_alphabetic()) {
            transport = match scheme {
                "uds" => Transport::UnixSocket,
                "namedpipe" => Transport::NamedPipe,
                "file" => native,
                _ => return Err(ToolPortError::Scheme),
            };
            address = &address[colon + 1..];
            if let Some(host) = address.strip_prefix("//") {
                address = &host[host.find('/').unwrap_or(host.len())..];
            }
        }
    }
    if transport == Transport::NamedPipe {
        let lower = address.to_ascii_lowercase();
        let prefix = [r"\\.\pipe\", "/pipe/", "/"].into_iter().find(|prefix| lower.starts_with(prefix));
        address = &address[prefix.map_or(0, str::len)..];
    }
    if address.is_empty() { Err(ToolPortError::NoAddress) } else { Ok((address, transport, port_type)) }
}
