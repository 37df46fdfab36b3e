//! Ports: the grammar, the environment variables, and the findings in them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking"
)]

mod cases;

use cases::cases;
use ipc_proto::plan::Flavour;
use ipc_proto::port::{
    Config, Finding, NetworkAddress, Port, PortAddressError, PortType, Tag, ToolPort, ToolPortError,
    Transport, Variable,
};
use proptest::prelude::*;
use proptest::{collection::vec, sample::select};

const FLAVOURS: [Flavour; 3] = [Flavour::CoreClr, Flavour::Mono, Flavour::NativeAot];

/// Reads the ports of a runtime with these variables.
fn config<'a>(flavour: Flavour, variables: &[(&str, &'a str)]) -> Config<'a> {
    Config::read(flavour, |name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| *value))
}

/// Returns the ports of a list as text: type, address, suspension.
fn ports(list: &str) -> Vec<String> {
    Port::list(list).map(show).collect()
}

fn show(port: Port<'_>) -> String {
    let role = if port.port_type() == PortType::Listen { "listen" } else { "connect" };
    let suspension = if port.suspends() { "suspend" } else { "nosuspend" };
    format!("{role} {} {suspension}", port.address())
}

fn sentences(config: &Config<'_>) -> Vec<String> {
    config.findings().map(|finding| finding.to_string()).collect()
}

/// Returns the findings in a list of ports, for CoreCLR.
fn in_list(list: &str) -> Vec<String> {
    sentences(&config(Flavour::CoreClr, &[("DOTNET_DiagnosticPorts", list)]))
}

#[test]
fn list_of_ports_is_read_as_a_runtime_reads_it() {
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
        // Examples of the specification.
        ("<path>,nosuspend,suspend,suspend,", &["connect <path> nosuspend"]),
        ("nosuspend,connect", &["connect nosuspend suspend"]),
        (";~/mydiagport.sock,nosuspend;", &["connect ~/mydiagport.sock nosuspend"]),
        ("/ä,ſuspend,NOſUSPEND,nosuspend", &["connect /ä nosuspend"]),
    ];
    for (list, expected) in table {
        assert_eq!(ports(list), *expected, "{list:?}");
    }
}

#[test]
fn port_survives_a_round_trip() {
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

/// Whether diagnostics are enabled, whether the default port suspends, and the other ports.
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
    // Variables with their values; the outcomes for CoreCLR, Mono, NativeAOT.
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
fn each_variable_is_looked_up_under_both_names() {
    let names_read = core::cell::RefCell::new(Vec::new());
    let _ = Config::read(Flavour::NativeAot, |name| {
        names_read.borrow_mut().push(name.to_owned());
        None
    });
    let names: Vec<_> = Variable::ALL.into_iter().flat_map(|v| [v.name(), v.old_name()]).collect();
    assert_eq!(*names_read.borrow(), names);
    for pair in names.chunks(2) {
        assert_eq!(pair[0].strip_prefix("DOTNET_").unwrap(), pair[1].strip_prefix("COMPlus_").unwrap());
    }
}

#[test]
fn usual_environment_has_no_findings() {
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
fn mistakes_in_a_list_are_found() {
    let table: &[(&str, &[&str])] = &[
        (
            ";;",
            &[
                "DOTNET_DiagnosticPorts=\";;\" contains no port: unset it, or write ADDRESS,suspend or ADDRESS,nosuspend",
            ],
        ),
        (
            "/a,suspend;,,",
            &[
                "\",,\" has no address and counts as a failed port: write ADDRESS,suspend or ADDRESS,nosuspend, or remove it",
            ],
        ),
        (
            "/a",
            &[
                "\"/a\" has neither suspend nor nosuspend, so the program does not start until it is resumed there: add ,suspend or ,nosuspend",
            ],
        ),
        (
            "/a,nosupend,suspend",
            &["\"nosupend\" in \"/a,nosupend,suspend\" is not a tag and is ignored: write nosuspend"],
        ),
        (
            "/ä,\"\n\u{1b},suspend",
            &[
                "\"\\\"\\n\\u{1b}\" in \"/ä,\\\"\\n\\u{1b},suspend\" is not a tag and is ignored: the tags are connect, listen, suspend and nosuspend; an address cannot contain a comma",
            ],
        ),
        (
            "/a, connect,suspend",
            &["\" connect\" in \"/a, connect,suspend\" is not a tag and is ignored: write connect"],
        ),
        (
            "/a,suspend,/b",
            &[
                "\"/b\" in \"/a,suspend,/b\" is not a tag and is ignored: the tags are connect, listen, suspend and nosuspend; an address cannot contain a comma",
            ],
        ),
        (
            "/a,suspend,nosuspend",
            &[
                "\"/a,suspend,nosuspend\" has both suspend and nosuspend, and the first, suspend, counts: remove one of them",
            ],
        ),
        (
            "/a,nosuspend,listen,suspend,connect",
            &[
                "\"/a,nosuspend,listen,suspend,connect\" has both listen and connect, and the first, listen, counts: remove one of them",
                "CoreCLR ignores \"/a\" because of the tag listen: remove listen to make the runtime connect, or remove the port, as the runtime listens at its default port anyway",
                "\"/a,nosuspend,listen,suspend,connect\" has both nosuspend and suspend, and the first, nosuspend, counts: remove one of them",
            ],
        ),
        (
            ",nosuspend",
            &[
                "nosuspend in \",nosuspend\" is in the place of the address and is read as one: write ADDRESS,nosuspend",
                "\"nosuspend\" has neither suspend nor nosuspend, so the program does not start until it is resumed there: add ,suspend or ,nosuspend",
            ],
        ),
        ("/a ,suspend", &["the blanks around \"/a \" are part of the address: write \"/a\""]),
        (
            "uds:///a,suspend",
            &["\"uds:///a\" is an address for tools; a runtime reads all of it as the path: write \"/a\""],
        ),
        (
            r"\\.\pipe\a,suspend",
            &[
                r#""\\\\.\\pipe\\a" is an address for tools; a runtime reads all of it as the path: write "a""#,
            ],
        ),
        (
            "a,suspend",
            &[
                "\"a\" is relative to the program's working directory (on Windows it is the name of a pipe): write an absolute path",
            ],
        ),
        (
            "/a,suspend;/b,suspend;/a,nosuspend",
            &["\"/a\" occurs twice and becomes two ports, each of which must be resumed: remove one of them"],
        ),
    ];
    for (list, expected) in table {
        assert_eq!(in_list(list), *expected, "{list:?}");
    }
}

/// The path is an example of the specification, but runtimes do not expand `~`.
#[test]
fn path_in_the_home_directory_is_relative() {
    let ports = [("DOTNET_DiagnosticPorts", "~/mydiagport.sock,nosuspend")];
    let found = sentences(&config(Flavour::CoreClr, &ports));
    assert!(found.len() == 1 && found[0].contains("relative"), "{found:?}");
}

#[test]
fn mistakes_in_the_variables_are_found() {
    type Row<'a> = (Flavour, &'a [(&'a str, &'a str)], &'a str);
    let table: &[Row<'_>] = &[
        (
            Flavour::CoreClr,
            &[("DOTNET_DiagnosticPorts", "/a,suspend"), ("COMPlus_DiagnosticPorts", "/b,suspend")],
            "COMPlus_DiagnosticPorts is ignored while DOTNET_DiagnosticPorts is set: unset one of them",
        ),
        (
            Flavour::Mono,
            &[("DOTNET_EnableDiagnostics", "1"), ("COMPlus_EnableDiagnostics", "0")],
            "COMPlus_EnableDiagnostics is ignored while DOTNET_EnableDiagnostics is set: unset one of them",
        ),
        (
            Flavour::Mono,
            &[("COMPlus_DiagnosticPorts", "/b,suspend")],
            "Mono does not read COMPlus_DiagnosticPorts: set DOTNET_DiagnosticPorts",
        ),
        (
            Flavour::NativeAot,
            &[("COMPlus_EnableDiagnostics", "0")],
            "NativeAOT does not read COMPlus_EnableDiagnostics: set DOTNET_EnableDiagnostics",
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
            "COMPlus_EnableDiagnostics=\"off\" is not a hexadecimal number and counts as unset: write 0 or 1",
        ),
        (
            Flavour::NativeAot,
            &[("DOTNET_EnableDiagnostics_IPC", "00000000000000000")],
            "DOTNET_EnableDiagnostics_IPC=\"00000000000000000\" is not a hexadecimal number and counts as unset: write 0 or 1",
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
            "COMPlus_EnableDiagnostics=\"0\" disables all diagnostic ports, and suspends nothing: unset it, or write 1",
        ),
        (
            Flavour::Mono,
            &[("DOTNET_EnableDiagnostics_IPC", "0"), ("DOTNET_DefaultDiagnosticPortSuspend", "1")],
            "DOTNET_EnableDiagnostics_IPC=\"0\" disables all diagnostic ports, and suspends nothing: unset it, or write 1",
        ),
        (
            Flavour::NativeAot,
            &[("DOTNET_DiagnosticPorts", "/a,listen,suspend")],
            "NativeAOT listens at \"/a\" only on systems without a default port, for example phones, and ignores it elsewhere: remove listen to make the runtime connect",
        ),
    ];
    for (flavour, variables, expected) in table {
        assert_eq!(sentences(&config(*flavour, variables)), [*expected], "{variables:?}");
    }
}

/// On a phone, every kind of runtime opens its TCP ports, those with the tag `listen` too, and has no default port.
#[test]
fn ports_on_a_phone() {
    let variables = [
        ("DOTNET_DiagnosticPorts", "127.0.0.1:9000,suspend,connect;*:9001,nosuspend,listen"),
        ("DOTNET_DefaultDiagnosticPortSuspend", "1"),
    ];
    for flavour in FLAVOURS {
        let config = config(flavour, &variables).on_phone();
        let ports: Vec<_> = config.ports().map(|port| port.address()).collect();
        assert_eq!(ports, ["*:9001", "127.0.0.1:9000"], "{flavour:?}");
        assert!(!config.default_port_suspends(), "{flavour:?}");
        assert_eq!(sentences(&config), [""; 0], "{flavour:?}");
    }
}

/// Mono runs on phones, where an address is a host and its TCP port. For other runtimes, every address is a path.
#[test]
fn host_and_port_are_not_a_relative_path() {
    let relative = "is relative to the program's working directory";
    for (flavour, list, is_path) in [
        (Flavour::CoreClr, "127.0.0.1:9000,suspend", true),
        (Flavour::Mono, "127.0.0.1:9000,suspend", false),
        (Flavour::Mono, "a,suspend", true),
        (Flavour::CoreClr, "a,suspend", true),
    ] {
        let found = sentences(&config(flavour, &[("DOTNET_DiagnosticPorts", list)]));
        assert_eq!(found.iter().any(|sentence| sentence.contains(relative)), is_path, "{flavour:?} {list}");
    }
}

/// The limit of 32 keeps the work proportional to the length of the list, and not to its square.
#[test]
fn each_port_is_compared_with_the_32_ports_before_it() {
    let same = |between: usize| {
        let others: String = (0..between).map(|n| format!(";;/{n},suspend")).collect();
        let list = format!("/first,suspend;/same,suspend{others};/same,suspend");
        let found = in_list(&list);
        found.iter().filter(|sentence| sentence.starts_with("\"/same\" occurs twice")).count()
    };
    assert_eq!([0, 1, 30, 31].map(same), [1, 1, 1, 1]);
    assert_eq!([32, 33, 1000].map(same), [0, 0, 0]);
}

/// Each finding about a tag quotes its port. If all of the port were quoted, 10,000 tags would make a very long text.
#[test]
fn long_texts_are_cut() {
    let list = format!("/{}{}", "a".repeat(100), ",\u{7f}\u{e4}".repeat(10_000));
    let found = in_list(&list);
    assert!(found.len() > 10_000);
    let len = list.len();
    for sentence in found {
        assert!(sentence.len() < 2500, "{} bytes: {sentence:.100}", sentence.len());
        let is_cut = sentence.contains(&format!("…\" ({len} bytes)"));
        assert_eq!(is_cut, sentence.contains(" is not a tag "), "{sentence}");
    }
    let exact = in_list(&"a".repeat(200)).concat();
    assert!(!exact.contains('…') && exact.contains(&"a".repeat(200)), "{exact}");
    assert!(in_list(&"a".repeat(201)).concat().contains(&format!("\"{}…\" (201 bytes)", "a".repeat(200))));
}

#[test]
fn too_long_path_is_found_for_each_system() {
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
fn tag_with_one_wrong_letter_is_recognised() {
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
fn tool_port_has_at_most_two_parts() {
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

/// Generates lists of ports out of separators, tags and addresses.
fn words() -> impl Strategy<Value = String> {
    let words =
        [";", ",", ",", "connect", "listen", "suspend", "nosuspend", "NoSuspend", " ", "/a", "/b", "c", "ſ"];
    vec(select(words.to_vec()), 0..16).prop_map(|words| words.concat())
}

/// Splits as C's `strtok` does: several separators in a row count as one.
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
    fn list_is_split_as_by_strtok(list in prop_oneof![words(), ".*"]) {
        let mut expected = Vec::new();
        for spec in strtok(&list, ';') {
            let tokens = strtok(&spec, ',');
            let tags: Vec<_> = tokens.iter().skip(1).map(|tag| tag.to_ascii_lowercase()).collect();
            let first = |of: [&str; 2]| tags.iter().find(|tag| of.contains(&tag.as_str())).cloned();
            let role = first(["connect", "listen"]).unwrap_or_else(|| "connect".into());
            let suspension = first(["suspend", "nosuspend"]).unwrap_or_else(|| "suspend".into());
            expected.extend(tokens.first().map(|address| format!("{role} {address} {suspension}")));
        }
        expected.reverse();
        prop_assert_eq!(ports(&list), expected);
    }
}

#[test]
fn network_addresses() {
    for (text, host, port) in [
        ("127.0.0.1:9000", "127.0.0.1", 9000),
        ("localhost:0", "localhost", 0),
        ("[::1]:65535", "[::1]", 65_535),
        ("*:9000", "*", 9000),
        (":9000", "", 9000),
        ("tcp://host:1", "host", 1),
    ] {
        assert_eq!(NetworkAddress::parse(text), Some(NetworkAddress { host, port }), "{text}");
    }
    for text in [
        "",
        ":",
        "a",
        "a:",
        "a:b",
        "a:-1",
        "a:65536",
        "/tmp/a:9",
        "./a:9",
        r"\\.\pipe\a:9",
        "tcp://a",
        "C:\\a:9",
    ] {
        assert_eq!(NetworkAddress::parse(text), None, "{text}");
    }
}

/// On Windows, an address is the name of a pipe.
#[test]
fn paths_are_no_mistakes_on_windows() {
    let long = "a".repeat(200);
    let list = format!("a,suspend;{long},suspend; b,suspend");
    let config = config(Flavour::CoreClr, &[("DOTNET_DiagnosticPorts", &list)]);
    let found = |config: &Config<'_>| config.findings().map(|found| found.to_string()).collect::<Vec<_>>();
    assert_eq!(found(&config).len(), 5);
    let on_windows = found(&config.on_windows());
    assert!(on_windows.len() == 1 && on_windows[0].contains("blanks"), "{on_windows:?}");
}
