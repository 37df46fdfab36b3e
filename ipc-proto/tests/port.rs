//! Ports: the grammar, the variables around it, and what is found odd in them; back-off, suspension and roster.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::arithmetic_side_effects,
    reason = "a test says what it expects by failing"
)]

mod cases;

use std::collections::BTreeMap;

use cases::cases;
use ipc_proto::Guid;
use ipc_proto::plan::Flavour;
use ipc_proto::port::{
    Arrival, Backoff, Config, Entry, Finding, Full, Port, PortAddressError, PortType, Roster, Suspension,
    Tag, ToolPort, ToolPortError, Transport, Variable,
};
use proptest::prelude::*;
use proptest::{collection::vec, sample::select};

const FLAVOURS: [Flavour; 3] = [Flavour::CoreClr, Flavour::Mono, Flavour::NativeAot];

/// A runtime with these variables.
fn config<'a>(flavour: Flavour, variables: &[(&str, &'a str)]) -> Config<'a> {
    Config::read(flavour, |name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| *value))
}

/// The ports of a list as text: type, address, suspension.
fn ports(list: &str) -> Vec<String> {
    Port::list(list).map(show).collect()
}

fn show(port: Port<'_>) -> String {
    let does = if port.port_type() == PortType::Listen { "listen" } else { "connect" };
    let waits = if port.suspends() { "suspend" } else { "nosuspend" };
    format!("{does} {} {waits}", port.address())
}

fn sentences(config: &Config<'_>) -> Vec<String> {
    config.findings().map(|finding| finding.to_string()).collect()
}

/// What is found in a list of ports, for CoreCLR.
fn in_list(list: &str) -> Vec<String> {
    sentences(&config(Flavour::CoreClr, &[("DOTNET_DiagnosticPorts", list)]))
}

#[test]
fn a_list_of_ports_reads_as_a_runtime_reads_it() {
    let table: &[(&str, &[&str])] = &[
        ("", &[]),
        (";;", &[]),
        (",", &[]),
        (",;,,;", &[]),
        ("/a", &["connect /a suspend"]),
        ("/a;/b;/c", &["connect /c suspend", "connect /b suspend", "connect /a suspend"]),
        (";;/a;;/b;", &["connect /b suspend", "connect /a suspend"]),
        ("/a;,;/b", &["connect /b suspend", "connect /a suspend"]),
        ("/a,nosuspend", &["connect /a nosuspend"]),
        ("/a,NOSUSPEND,ConNect", &["connect /a nosuspend"]),
        ("/a,,suspend", &["connect /a suspend"]),
        ("/a,,nosuspend,", &["connect /a nosuspend"]),
        (",nosuspend", &["connect nosuspend suspend"]),
        ("nosuspend,/a", &["connect nosuspend suspend"]),
        ("/a,suspend,nosuspend", &["connect /a suspend"]),
        ("/a,nosuspend,suspend", &["connect /a nosuspend"]),
        ("/a,x,nosuspend,y,suspend,nosuspend", &["connect /a nosuspend"]),
        ("/a,connect,listen", &["connect /a suspend"]),
        ("/a,listen,connect,nosuspend", &["listen /a nosuspend"]),
        ("/a, nosuspend", &["connect /a suspend"]),
        ("/a,nosuspend ", &["connect /a suspend"]),
        ("/a,nosuspend;/b , connect", &["connect /b  suspend", "connect /a nosuspend"]),
        (" /a b ,nosuspend", &["connect  /a b  nosuspend"]),
        ("/a,nosupend", &["connect /a suspend"]),
        ("/a,nosuspend\n", &["connect /a suspend"]),
        ("/a;/a", &["connect /a suspend", "connect /a suspend"]),
        ("pipe;127.0.0.1:9000,listen", &["listen 127.0.0.1:9000 suspend", "connect pipe suspend"]),
        ("/ä,ſuspend,NOſUSPEND,nosuspend", &["connect /ä nosuspend"]),
    ];
    for (list, expected) in table {
        assert_eq!(ports(list), *expected, "{list:?}");
    }
}

#[test]
fn a_port_is_written_as_it_is_read() {
    for (address, suspend, value) in [
        ("/run/m", true, "/run/m,suspend"),
        ("pipe", false, "pipe,nosuspend"),
        ("suspend", false, "suspend,nosuspend"),
    ] {
        let port = Port::connect(address, suspend).unwrap();
        assert_eq!(port.to_string(), value);
        assert!(Port::list(value).eq([port]));
    }
    let listens = Port::list("/a,listen").next().unwrap();
    assert_eq!(listens.to_string(), "/a,listen,suspend");
    assert!(Port::list("/a,listen,suspend").eq([listens]));
    for address in ["", "/a;b", "/a,b", ";", ",suspend", "/a\0"] {
        assert_eq!(Port::connect(address, true), Err(PortAddressError), "{address:?}");
    }
}

/// Whether diagnostics are on, whether the default port suspends, and the other ports.
type Outcome<'a> = (bool, bool, &'a [&'a str]);

#[test]
fn each_kind_of_runtime_reads_its_variables() {
    const PORTS: &str = "DOTNET_DiagnosticPorts";
    const OLD_PORTS: &str = "COMPlus_DiagnosticPorts";
    const SUSPEND: &str = "DOTNET_DefaultDiagnosticPortSuspend";
    const OLD_SUSPEND: &str = "COMPlus_DefaultDiagnosticPortSuspend";
    const ENABLE: &str = "DOTNET_EnableDiagnostics";
    const OLD_ENABLE: &str = "COMPlus_EnableDiagnostics";
    const IPC: &str = "DOTNET_EnableDiagnostics_IPC";
    const OLD_IPC: &str = "COMPlus_EnableDiagnostics_IPC";
    const PLAIN: Outcome<'_> = (true, false, &[]);
    const OFF: Outcome<'_> = (false, false, &[]);
    const WAITS: Outcome<'_> = (true, true, &[]);
    const A: Outcome<'_> = (true, false, &["connect /a suspend"]);
    const B: Outcome<'_> = (true, false, &["connect /b suspend"]);
    const L: Outcome<'_> = (true, false, &["listen /a suspend"]);
    // The outcomes for CoreCLR, Mono, NativeAOT.
    type Row<'a> = (&'a [(&'a str, &'a str)], [Outcome<'a>; 3]);
    let table: &[Row<'_>] = &[
        (&[], [PLAIN, PLAIN, PLAIN]),
        (&[(PORTS, "/a")], [A, A, A]),
        (&[(OLD_PORTS, "/b")], [B, PLAIN, PLAIN]),
        (&[(PORTS, "/a"), (OLD_PORTS, "/b")], [A, A, A]),
        (&[(PORTS, ""), (OLD_PORTS, "/b")], [B, PLAIN, PLAIN]),
        (&[(PORTS, ";"), (OLD_PORTS, "/b")], [PLAIN, PLAIN, PLAIN]),
        (&[(PORTS, "/a,listen")], [PLAIN, L, L]),
        (&[(SUSPEND, "1")], [WAITS, WAITS, WAITS]),
        (&[(SUSPEND, "0")], [PLAIN, PLAIN, PLAIN]),
        (&[(SUSPEND, "")], [PLAIN, PLAIN, PLAIN]),
        (&[(OLD_SUSPEND, "1")], [WAITS, PLAIN, PLAIN]),
        (&[(SUSPEND, ""), (OLD_SUSPEND, "1")], [WAITS, PLAIN, PLAIN]),
        (&[(SUSPEND, "0"), (OLD_SUSPEND, "1")], [PLAIN, PLAIN, PLAIN]),
        (&[(SUSPEND, "10")], [WAITS, WAITS, WAITS]),
        (&[(SUSPEND, "f")], [WAITS, PLAIN, WAITS]),
        (&[(SUSPEND, "0x1")], [WAITS, PLAIN, PLAIN]),
        (&[(SUSPEND, "0X1")], [WAITS, PLAIN, PLAIN]),
        (&[(SUSPEND, "0x")], [PLAIN, PLAIN, PLAIN]),
        (&[(SUSPEND, "0xg")], [PLAIN, PLAIN, PLAIN]),
        (&[(SUSPEND, " +1")], [WAITS, WAITS, PLAIN]),
        (&[(SUSPEND, "+")], [PLAIN, PLAIN, PLAIN]),
        (&[(SUSPEND, "\u{a0}1")], [PLAIN, PLAIN, PLAIN]),
        (&[(SUSPEND, "-1")], [WAITS, WAITS, PLAIN]),
        (&[(SUSPEND, "1 or so")], [WAITS, WAITS, PLAIN]),
        (&[(SUSPEND, "true")], [PLAIN, PLAIN, PLAIN]),
        (&[(SUSPEND, "false")], [WAITS, PLAIN, PLAIN]),
        (&[(SUSPEND, "100000000")], [PLAIN, WAITS, PLAIN]),
        (&[(SUSPEND, "ffffffffffffffff")], [PLAIN, PLAIN, WAITS]),
        (&[(SUSPEND, "00000000000000001")], [WAITS, WAITS, PLAIN]),
        (&[(ENABLE, "0"), (PORTS, "/a"), (SUSPEND, "1")], [OFF, OFF, OFF]),
        (&[(ENABLE, "00"), (PORTS, "/a")], [OFF, OFF, OFF]),
        (&[(ENABLE, "1"), (PORTS, "/a")], [A, A, A]),
        (&[(ENABLE, "2"), (PORTS, "/a")], [A, A, A]),
        (&[(ENABLE, "false"), (PORTS, "/a")], [A, OFF, A]),
        (&[(ENABLE, "off"), (PORTS, "/a")], [A, OFF, A]),
        (&[(ENABLE, ""), (PORTS, "/a")], [A, OFF, A]),
        (&[(ENABLE, "0a"), (PORTS, "/a")], [A, OFF, A]),
        (&[(ENABLE, "100000000"), (PORTS, "/a")], [A, A, A]),
        (&[(ENABLE, "0x"), (PORTS, "/a")], [OFF, OFF, A]),
        (&[(ENABLE, "-0"), (PORTS, "/a")], [OFF, OFF, A]),
        (&[(OLD_ENABLE, "0"), (PORTS, "/a")], [OFF, OFF, A]),
        (&[(OLD_ENABLE, ""), (PORTS, "/a")], [A, OFF, A]),
        (&[(ENABLE, "1"), (OLD_ENABLE, "0"), (PORTS, "/a")], [A, A, A]),
        (&[(IPC, "0"), (PORTS, "/a"), (SUSPEND, "1")], [OFF, OFF, OFF]),
        (&[(OLD_IPC, "0"), (PORTS, "/a")], [OFF, OFF, A]),
        (&[(ENABLE, "1"), (IPC, "0"), (PORTS, "/a")], [OFF, OFF, OFF]),
        (&[(ENABLE, "0"), (IPC, "1"), (PORTS, "/a")], [OFF, OFF, OFF]),
    ];
    for (variables, outcomes) in table {
        for (flavour, (enabled, default_port_suspends, ports)) in FLAVOURS.into_iter().zip(outcomes) {
            let config = config(flavour, variables);
            assert_eq!(config.is_enabled(), *enabled, "{flavour:?} {variables:?}");
            assert_eq!(config.default_port_suspends(), *default_port_suspends, "{flavour:?} {variables:?}");
            assert_eq!(config.ports().map(show).collect::<Vec<_>>(), *ports, "{flavour:?} {variables:?}");
        }
    }
}

#[test]
fn every_variable_is_looked_up_under_both_names() {
    let asked = core::cell::RefCell::new(Vec::new());
    let _ = Config::read(Flavour::NativeAot, |name| {
        asked.borrow_mut().push(name.to_owned());
        None
    });
    let names: Vec<_> = Variable::ALL.into_iter().flat_map(|v| [v.name(), v.old_name()]).collect();
    assert_eq!(*asked.borrow(), names);
    for pair in names.chunks(2) {
        assert_eq!(pair[0].strip_prefix("DOTNET_").unwrap(), pair[1].strip_prefix("COMPlus_").unwrap());
    }
}

#[test]
fn a_usual_environment_gives_nothing_to_say() {
    let usual: &[&[(&str, &str)]] = &[
        &[],
        &[("DOTNET_DiagnosticPorts", "/run/a,suspend;/run/b,connect,nosuspend")],
        &[("DOTNET_DiagnosticPorts", "/run/a,NoSuspend,CONNECT;;/run/a b,nosuspend,;")],
        &[("DOTNET_DiagnosticPorts", ""), ("DOTNET_DefaultDiagnosticPortSuspend", "1")],
        &[("DOTNET_EnableDiagnostics", "0"), ("DOTNET_EnableDiagnostics_IPC", "0")],
        &[("DOTNET_EnableDiagnostics", "1"), ("DOTNET_DiagnosticPorts", "/a,suspend")],
        &[("DOTNET_EnableDiagnostics", "01"), ("DOTNET_EnableDiagnostics_IPC", "1")],
    ];
    for variables in usual {
        for flavour in FLAVOURS {
            assert_eq!(sentences(&config(flavour, variables)), [""; 0], "{flavour:?} {variables:?}");
        }
    }
    let phone = [("DOTNET_DiagnosticPorts", "127.0.0.1:9000,suspend,connect;*:9001,nosuspend")];
    assert_eq!(sentences(&config(Flavour::Mono, &phone)), [""; 0]);
    let same = [("DOTNET_DiagnosticPorts", "/a,suspend"), ("COMPlus_DiagnosticPorts", "/a,suspend")];
    for flavour in FLAVOURS {
        assert_eq!(sentences(&config(flavour, &same)), [""; 0]);
    }
    let hexadecimal = [("DOTNET_DefaultDiagnosticPortSuspend", "0x1")];
    assert_eq!(sentences(&config(Flavour::CoreClr, &hexadecimal)), [""; 0]);
}

#[test]
fn what_is_odd_in_a_list_is_said() {
    let table: &[(&str, &[&str])] = &[
        (
            ";;",
            &[
                "DOTNET_DiagnosticPorts=\";;\" has no port in it: unset it, or write ADDRESS,suspend or ADDRESS,nosuspend",
            ],
        ),
        (
            "/a,suspend;,,",
            &[
                "\",,\" has no address, and counts as a port that failed: write ADDRESS,suspend or ADDRESS,nosuspend, or \
               leave it out",
            ],
        ),
        (
            "/a",
            &[
                "\"/a\" says neither suspend nor nosuspend, so that the program does not start until it is resumed there: \
               add ,suspend or ,nosuspend",
            ],
        ),
        (
            "/a,nosupend,suspend",
            &["\"nosupend\" in \"/a,nosupend,suspend\" is no tag, and is ignored: write nosuspend"],
        ),
        (
            "/ä,\"\n\u{1b},suspend",
            &[
                "\"\\\"\\n\\u{1b}\" in \"/ä,\\\"\\n\\u{1b},suspend\" is no tag, and is ignored: tags are connect, listen, suspend and \
                 nosuspend; no address has a comma",
            ],
        ),
        (
            "/a, connect,suspend",
            &["\" connect\" in \"/a, connect,suspend\" is no tag, and is ignored: write connect"],
        ),
        (
            "/a,suspend,/b",
            &[
                "\"/b\" in \"/a,suspend,/b\" is no tag, and is ignored: tags are connect, listen, suspend and nosuspend; no \
               address has a comma",
            ],
        ),
        (
            "/a,suspend,nosuspend",
            &[
                "\"/a,suspend,nosuspend\" says both suspend and nosuspend, and the first, suspend, counts: leave one out",
            ],
        ),
        (
            "/a,nosuspend,listen,suspend,connect",
            &[
                "\"/a,nosuspend,listen,suspend,connect\" says both listen and connect, and the first, listen, counts: \
                 leave one out",
                "CoreCLR ignores \"/a\", because it says listen: leave listen out if it is to connect, or leave all of it \
                 out, as it listens at its default port anyway",
                "\"/a,nosuspend,listen,suspend,connect\" says both nosuspend and suspend, and the first, nosuspend, \
                 counts: leave one out",
            ],
        ),
        (
            ",nosuspend",
            &[
                "nosuspend in \",nosuspend\" stands in the place of the address, and is taken for one: write \
                 ADDRESS,nosuspend",
                "\"nosuspend\" says neither suspend nor nosuspend, so that the program does not start until it is resumed \
                 there: add ,suspend or ,nosuspend",
            ],
        ),
        ("/a ,suspend", &["the blanks around \"/a \" are a part of the address: write \"/a\""]),
        (
            "uds:///a,suspend",
            &[
                "\"uds:///a\" is an address as tools take it, of which the runtime takes all for the path: write \"/a\"",
            ],
        ),
        (
            r"\\.\pipe\a,suspend",
            &[
                r#""\\\\.\\pipe\\a" is an address as tools take it, of which the runtime takes all for the path: write "a""#,
            ],
        ),
        (
            "a,suspend",
            &[
                "\"a\" is looked for in the program's working directory, but on Windows, where it is the name of a pipe: write \
               the path from / on",
            ],
        ),
        (
            "/a,suspend;/b,suspend;/a,nosuspend",
            &["\"/a\" is there twice, and becomes two ports, each with a resume of its own: leave one out"],
        ),
    ];
    for (list, expected) in table {
        assert_eq!(in_list(list), *expected, "{list:?}");
    }
}

#[test]
fn what_is_odd_in_the_variables_is_said() {
    type Row<'a> = (Flavour, &'a [(&'a str, &'a str)], &'a str);
    let table: &[Row<'_>] = &[
        (
            Flavour::CoreClr,
            &[("DOTNET_DiagnosticPorts", "/a,suspend"), ("COMPlus_DiagnosticPorts", "/b,suspend")],
            "COMPlus_DiagnosticPorts is not looked at while DOTNET_DiagnosticPorts is set: unset one of them",
        ),
        (
            Flavour::Mono,
            &[("DOTNET_EnableDiagnostics", "1"), ("COMPlus_EnableDiagnostics", "0")],
            "COMPlus_EnableDiagnostics is not looked at while DOTNET_EnableDiagnostics is set: unset one of them",
        ),
        (
            Flavour::Mono,
            &[("COMPlus_DiagnosticPorts", "/b,suspend")],
            "Mono does not look at COMPlus_DiagnosticPorts: write DOTNET_DiagnosticPorts",
        ),
        (
            Flavour::NativeAot,
            &[("COMPlus_EnableDiagnostics", "0")],
            "a program compiled by NativeAOT does not look at COMPlus_EnableDiagnostics: write DOTNET_EnableDiagnostics",
        ),
        (
            Flavour::CoreClr,
            &[("DOTNET_DefaultDiagnosticPortSuspend", "10")],
            "DOTNET_DefaultDiagnosticPortSuspend=\"10\" is read as the hexadecimal number 0x10: write 0 or 1",
        ),
        (
            Flavour::NativeAot,
            &[("DOTNET_EnableDiagnostics", "fa")],
            "DOTNET_EnableDiagnostics=\"fa\" is read as the hexadecimal number 0xfa: write 0 or 1",
        ),
        (
            Flavour::CoreClr,
            &[("COMPlus_EnableDiagnostics", "off")],
            "COMPlus_EnableDiagnostics=\"off\" is no hexadecimal number and counts as not set: write 0 or 1",
        ),
        (
            Flavour::NativeAot,
            &[("DOTNET_EnableDiagnostics_IPC", "00000000000000000")],
            "DOTNET_EnableDiagnostics_IPC=\"00000000000000000\" is no hexadecimal number and counts as not set: write 0 or 1",
        ),
        (
            Flavour::Mono,
            &[("DOTNET_DefaultDiagnosticPortSuspend", "0x1")],
            "DOTNET_DefaultDiagnosticPortSuspend=\"0x1\" is read as the number 0: write 0 or 1",
        ),
        (
            Flavour::Mono,
            &[("DOTNET_EnableDiagnostics", "")],
            "DOTNET_EnableDiagnostics=\"\" is read as the number 0: write 0 or 1",
        ),
        (
            Flavour::CoreClr,
            &[("COMPlus_EnableDiagnostics", "0"), ("DOTNET_DiagnosticPorts", "/a")],
            "COMPlus_EnableDiagnostics=\"0\" switches all ports off, and nothing waits for them: unset it, or write 1",
        ),
        (
            Flavour::Mono,
            &[("DOTNET_EnableDiagnostics_IPC", "0"), ("DOTNET_DefaultDiagnosticPortSuspend", "1")],
            "DOTNET_EnableDiagnostics_IPC=\"0\" switches all ports off, and nothing waits for them: unset it, or write 1",
        ),
        (
            Flavour::NativeAot,
            &[("DOTNET_DiagnosticPorts", "/a,listen,suspend")],
            "a program compiled by NativeAOT listens at \"/a\" only where it has no default port, as on phones, and \
             ignores it elsewhere: leave listen out if it is to connect",
        ),
    ];
    for (flavour, variables, expected) in table {
        assert_eq!(sentences(&config(*flavour, variables)), [*expected], "{variables:?}");
    }
}

/// On phones, where Mono is, an address is a host and its port; elsewhere it is a path, whatever is in it.
#[test]
fn a_host_and_its_port_are_no_path_in_the_working_directory() {
    let relative = "is looked for in the program's working directory";
    for (flavour, list, is_path) in [
        (Flavour::CoreClr, "127.0.0.1:9000,suspend", true),
        (Flavour::Mono, "127.0.0.1:9000,suspend", false),
        (Flavour::Mono, "a,suspend", true),
        (Flavour::CoreClr, "a,suspend", true),
    ] {
        let said = sentences(&config(flavour, &[("DOTNET_DiagnosticPorts", list)]));
        assert_eq!(said.iter().any(|sentence| sentence.contains(relative)), is_path, "{flavour:?} {list}");
    }
}

#[test]
fn a_path_too_long_for_a_socket_is_said_with_the_system() {
    let found = |len: usize| {
        let list = format!("/{},suspend", "a".repeat(len - 1));
        let found = in_list(&list);
        assert!(found.len() < 2);
        found.first().map(|sentence| sentence.split_once("is too long").unwrap().1.to_owned())
    };
    assert_eq!(found(103), None);
    let macos = |n| format!(" for a Unix socket, with {n} bytes (macOS takes 103): choose a shorter path");
    assert_eq!((found(104), found(107)), (Some(macos(104)), Some(macos(107))));
    let both = " for a Unix socket, with 108 bytes (Linux takes 107, macOS 103): choose a shorter path";
    assert_eq!(found(108).unwrap(), both);
}

#[test]
fn a_tag_is_guessed_from_one_wrong_letter() {
    let guess = |tag: &str| {
        let list = format!("/a,suspend,{tag}");
        let found: Vec<_> = config(Flavour::CoreClr, &[("DOTNET_DiagnosticPorts", &list)])
            .findings()
            .map(|finding| match finding {
                Finding::UnknownTag { tag: found, meant, .. } if found == tag => meant,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(found.len(), 1);
        found[0]
    };
    for (tag, meant) in [
        ("nosupend", Tag::NoSuspend),
        ("nosusspend", Tag::NoSuspend),
        ("no-suspend", Tag::NoSuspend),
        ("NosuspenT", Tag::NoSuspend),
        ("onsuspend", Tag::NoSuspend),
        ("osuspend", Tag::NoSuspend),
        ("suspnd", Tag::Suspend),
        ("suspedn", Tag::Suspend),
        (" suspend", Tag::Suspend),
        ("\tnosuspend ", Tag::NoSuspend),
        ("connnect", Tag::Connect),
        ("conect", Tag::Connect),
        ("conenct", Tag::Connect),
        (" Conect", Tag::Connect),
        ("isten", Tag::Listen),
        ("listene", Tag::Listen),
    ] {
        assert_eq!(guess(tag), Some(meant), "{tag:?}");
    }
    for tag in [
        "x",
        " ",
        "suspended",
        "conn",
        "nosus",
        "tsilen",
        "resume",
        "/tmp/b",
        "csonnect_",
        "conexct",
        "coxnect_",
        "suspxnd_",
    ] {
        assert_eq!(guess(tag), None, "{tag:?}");
    }
}

#[test]
fn a_tools_port_has_two_parts_at_most() {
    use PortType::{Connect, Listen};
    use Transport::{NamedPipe, UnixSocket};
    let ok = |text, native| {
        let ToolPort { address, transport, port_type } = ToolPort::parse(text, native).unwrap();
        (address, transport, port_type)
    };
    for (text, expected) in [
        ("/a", ("/a", UnixSocket, Listen)),
        ("/a,listen", ("/a", UnixSocket, Listen)),
        ("/a,CONNECT", ("/a", UnixSocket, Connect)),
        ("a b ,connect", ("a b ", UnixSocket, Connect)),
        ("/a:b", ("/a:b", UnixSocket, Listen)),
        ("uds:/a", ("/a", UnixSocket, Listen)),
        ("UDS:///a,connect", ("/a", UnixSocket, Connect)),
        ("uds://host/a", ("/a", UnixSocket, Listen)),
        ("file:///a", ("/a", UnixSocket, Listen)),
        ("namedpipe:a", ("a", NamedPipe, Listen)),
        ("namedpipe://./pipe/a,connect", ("a", NamedPipe, Connect)),
        ("127.0.0.1:9000", ("127.0.0.1:9000", UnixSocket, Listen)),
        ("nosuspend", ("nosuspend", UnixSocket, Listen)),
    ] {
        assert_eq!(ok(text, UnixSocket), expected, "{text:?}");
    }
    for text in ["a", r"\\.\pipe\a", r"\\.\PIPE\a", "/pipe/a", "/Pipe/a", "/a", "namedpipe:/a", "file:/a"] {
        assert_eq!(ok(text, NamedPipe), ("a", NamedPipe, Listen), "{text:?}");
    }
    assert_eq!(ok(r"C:\a", NamedPipe).0, r"C:\a");

    for (text, error) in [
        ("", ToolPortError::NoAddress),
        (",connect", ToolPortError::NoAddress),
        ("uds:", ToolPortError::NoAddress),
        ("uds://host", ToolPortError::NoAddress),
        ("namedpipe:/pipe/", ToolPortError::NoAddress),
        ("/a,", ToolPortError::Keyword),
        ("/a, connect", ToolPortError::Keyword),
        ("/a,conect", ToolPortError::Keyword),
        ("/a,connect,", ToolPortError::TooManyParts),
        ("/a,connect,listen", ToolPortError::TooManyParts),
        ("/a,suspend", ToolPortError::Suspend),
        ("/a,connect,NoSuspend", ToolPortError::Suspend),
        ("/a, suspend", ToolPortError::Suspend),
        ("http://a/b", ToolPortError::Scheme),
        ("host:9000", ToolPortError::Scheme),
    ] {
        assert_eq!(ToolPort::parse(text, UnixSocket), Err(error), "{text:?}");
        assert!(error.to_string().len() > 40);
    }
}

/// The least that the runtime's sources say: floats, truncated.
fn next_of_the_runtime(timeout: u32) -> u32 {
    match timeout {
        u32::MAX => 10,
        500.. => 500,
        #[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "as the runtime does")]
        timeout => (timeout as f32 * 1.25) as u32,
    }
}

#[test]
fn the_back_off_is_the_runtimes() {
    let waits = |backoff: &mut Backoff, n: usize| (0..n).map(|_| backoff.next()).collect::<Vec<_>>();
    let expected = [
        10, 12, 15, 18, 22, 27, 33, 41, 51, 63, 78, 97, 121, 151, 188, 235, 293, 366, 457, 571, 500, 500, 500,
    ];
    assert_eq!(waits(&mut Backoff::new(), 23), expected);
    for hung_up_after in 0..25 {
        let (mut backoff, mut timeout) = (Backoff::default(), u32::MAX);
        for _ in 0..hung_up_after {
            timeout = next_of_the_runtime(timeout);
            assert_eq!(backoff.next(), timeout);
        }
        backoff.hung_up();
        timeout = 10;
        for _ in 0..25 {
            timeout = next_of_the_runtime(timeout);
            assert_eq!(backoff.next(), timeout);
        }
        backoff.reset();
        assert_eq!(backoff, Backoff::new());
    }
}

#[test]
fn each_port_resumes_itself_only() {
    let mut flags = [true, false, true, true];
    let mut suspension = Suspension::new(&mut flags[..]);
    assert_eq!(suspension.waiting().collect::<Vec<_>>(), [0, 2, 3]);
    assert!(suspension.resume(2));
    assert!(!suspension.resume(2), "a second time");
    assert!(!suspension.resume(1), "it does not wait");
    assert!(!suspension.resume(4), "there is none");
    assert!(suspension.is_suspended());
    assert_eq!(suspension.waiting().collect::<Vec<_>>(), [0, 3]);
    assert!(suspension.resume(3) && suspension.is_suspended());
    assert!(suspension.resume(0) && !suspension.is_suspended());
    assert_eq!(suspension.waiting().count(), 0);
    assert!(!Suspension::new(vec![false; 3]).is_suspended());
    assert!(!Suspension::new([false; 0]).is_suspended());
}

#[test]
fn a_full_roster_loses_nobody() {
    let cookies = [1, 2, 3].map(|n| Guid([n; 16]));
    let mut slots = [const { None }; 2];
    let mut roster = Roster::new(&mut slots[..]);
    for (cookie, connection) in cookies.iter().zip(["1", "2"]) {
        assert_eq!(roster.arrive(*cookie, 7, connection), Ok(Arrival { first: true, stale: None }));
    }
    assert_eq!(roster.arrive(cookies[2], 7, "3"), Err(Full { connection: "3" }));
    assert_eq!((roster.len(), roster.capacity()), (2, 2));
    assert_eq!(roster.get(&cookies[2]), None);
    // Who is known always comes in.
    assert_eq!(roster.arrive(cookies[0], 8, "1b"), Ok(Arrival { first: false, stale: Some("1") }));
    assert_eq!(roster.get(&cookies[0]).map(|entry| entry.process_id), Some(8));
    *roster.connection_mut(&cookies[1]).unwrap() = "2b";
    let removed = roster.remove(&cookies[1]);
    assert_eq!(removed, Some(Entry { cookie: cookies[1], process_id: 7, connection: Some("2b") }));
    assert_eq!(roster.remove(&cookies[1]), None);
    assert_eq!(roster.arrive(cookies[2], 7, "3"), Ok(Arrival { first: true, stale: None }));
}

/// What a roster is told, for the runtime with this number.
#[derive(Debug, Clone, Copy)]
enum Told {
    Arrive(u8),
    Take(u8),
    /// The connection that arrived as the nth hangs up.
    HangUp(u8, usize),
    Remove(u8),
    Grow,
}

fn told() -> impl Strategy<Value = Told> {
    prop_oneof![
        4 => (0u8..6).prop_map(Told::Arrive),
        1 => (0u8..6).prop_map(Told::Take),
        2 => (0u8..6, 0usize..60).prop_map(|(who, connection)| Told::HangUp(who, connection)),
        1 => (0u8..6).prop_map(Told::Remove),
        1 => Just(Told::Grow),
    ]
}

/// A runtime's environment out of the words that matter.
fn words() -> impl Strategy<Value = String> {
    let words =
        [";", ",", ",", "connect", "listen", "suspend", "nosuspend", "NoSuspend", " ", "/a", "/b", "c", "ſ"];
    vec(select(words.to_vec()), 0..16).prop_map(|words| words.concat())
}

/// C's `strtok`: characters up to the next separator, of which any number is one.
fn strtok(text: &str, separator: char) -> Vec<String> {
    let mut tokens = vec![String::new()];
    for c in text.chars() {
        if c == separator { tokens.push(String::new()) } else { tokens.last_mut().unwrap().push(c) }
    }
    tokens.retain(|token| !token.is_empty());
    tokens
}

proptest! {
    #![proptest_config(cases(8))]

    #[test]
    fn a_list_is_cut_as_by_strtok(list in prop_oneof![words(), ".*"]) {
        let mut expected = Vec::new();
        for spec in strtok(&list, ';') {
            let tokens = strtok(&spec, ',');
            let tags: Vec<_> = tokens.iter().skip(1).map(|tag| tag.to_ascii_lowercase()).collect();
            let first = |of: [&str; 2]| tags.iter().find(|tag| of.contains(&tag.as_str())).cloned();
            let does = first(["connect", "listen"]).unwrap_or_else(|| "connect".into());
            let waits = first(["suspend", "nosuspend"]).unwrap_or_else(|| "suspend".into());
            expected.extend(tokens.first().map(|address| format!("{does} {address} {waits}")));
        }
        expected.reverse();
        prop_assert_eq!(ports(&list), expected);
    }

    #[test]
    fn a_roster_is_a_map(room in 0usize..4, story in vec(told(), 0..60)) {
        let mut roster = Roster::new(vec![None; room]);
        let mut model: BTreeMap<Guid, Option<usize>> = BTreeMap::new();
        let mut room = room;
        for (now, told) in story.into_iter().enumerate() {
            let cookie = |who| Guid([who; 16]);
            match told {
                Told::Arrive(who) => {
                    let expected = if model.len() < room || model.contains_key(&cookie(who)) {
                        let before = model.insert(cookie(who), Some(now));
                        Ok(Arrival { first: before.is_none(), stale: before.flatten() })
                    } else {
                        Err(Full { connection: now })
                    };
                    prop_assert_eq!(roster.arrive(cookie(who), now as u64, now), expected);
                }
                Told::Take(who) => {
                    prop_assert_eq!(roster.take(&cookie(who)), model.get_mut(&cookie(who)).and_then(Option::take));
                }
                Told::HangUp(who, which) => {
                    let expected = model.get_mut(&cookie(who)).and_then(|kept| kept.take_if(|kept| *kept == which));
                    prop_assert_eq!(roster.take_if(&cookie(who), |kept| *kept == which), expected);
                }
                Told::Remove(who) => {
                    let removed = roster.remove(&cookie(who)).map(|entry| (entry.cookie, entry.connection));
                    prop_assert_eq!(removed, model.remove_entry(&cookie(who)));
                }
                Told::Grow => {
                    roster.grow(1);
                    room += 1;
                }
            }
            let kept: BTreeMap<_, _> = roster.iter().map(|entry| (entry.cookie, entry.connection)).collect();
            prop_assert_eq!((&kept, roster.len(), roster.is_empty()), (&model, model.len(), model.is_empty()));
            prop_assert_eq!(roster.capacity(), room);
        }
    }
}
