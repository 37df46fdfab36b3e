//! Values that are parsed from text: GUIDs, and the names of sockets and pipes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cases;

use cases::cases;
use ipc_proto::{Guid, PipeName, RouterSocketName, SocketName};
use proptest::prelude::*;

#[test]
fn invalid_guids() {
    let good = "123e4567-e89b-12d3-a456-426614174000";
    let guid: Guid = good.parse().unwrap();
    assert_eq!(good.to_uppercase().parse(), Ok(guid));
    assert_eq!(format!("{{{good}}}").parse(), Ok(guid));
    for bad in [
        "",
        "123e4567-e89b-12d3-a456-42661417400",
        "123e4567-e89b-12d3-a456-4266141740000",
        "123e4567e89b12d3a456426614174000",
        "123e4567-e89b-12d3-a4564-26614174000",
        "123e4567-e89b-12d3-a456-42661417400g",
        "+23e4567-e89b-12d3-a456-426614174000",
        "{123e4567-e89b-12d3-a456-426614174000",
        "123e4567-e89b-12d3-a456-42661417400é",
    ] {
        assert!(bad.parse::<Guid>().is_err(), "{bad}");
    }
}

#[test]
fn invalid_socket_names() {
    for bad in [
        "",
        "dotnet-diagnostic--socket",
        "dotnet-diagnostic-1-socket",
        "dotnet-diagnostic-1--socket",
        "dotnet-diagnostic--1-2-socket",
        "dotnet-diagnostic-1-2-3-socket",
        "dotnet-diagnostic-+1-2-socket",
        "dotnet-diagnostic-01-2-socket",
        "dotnet-diagnostic-1-02-socket",
        "dotnet-diagnostic-1-2-socket ",
        "dotnet-diagnostic-4294967296-2-socket",
        "dotnet-diagnostic-1-18446744073709551616-socket",
        "dotnet-diagnostic-dsrouter-1-2-socket",
        "clr-debug-pipe-1-2-in",
    ] {
        assert!(bad.parse::<SocketName>().is_err(), "{bad}");
    }
    let longest = SocketName { process_id: u32::MAX, disambiguation_key: u64::MAX };
    assert_eq!(longest.to_text().as_str(), "dotnet-diagnostic-4294967295-18446744073709551615-socket");
}

#[test]
fn invalid_socket_names_of_routers() {
    for bad in [
        "dotnet-diagnostic-1-2-socket",
        "dotnet-diagnostic-dsrouter-1-socket",
        "dotnet-diagnostic-dsrouter--1-2-socket",
        "dotnet-diagnostic-dsrouter-01-2-socket",
        "dotnet-diagnostic-dsrouter-1-+2-socket",
        "dotnet-diagnostic-dsrouter-1-2-3-socket",
        "dotnet-diagnostic-dsrouter-dsrouter-1-2-socket",
        "dotnet-diagnostic-dsrouter-4294967296-2-socket",
    ] {
        assert!(bad.parse::<RouterSocketName>().is_err(), "{bad}");
    }
    let longest = RouterSocketName { process_id: u32::MAX, start_seconds: u64::MAX };
    assert_eq!(
        longest.to_text().as_str(),
        "dotnet-diagnostic-dsrouter-4294967295-18446744073709551615-socket"
    );
}

#[test]
fn invalid_pipe_names() {
    for bad in [
        "",
        "dotnet-diagnostic-",
        "dotnet-diagnostic--1",
        "dotnet-diagnostic-+1",
        "dotnet-diagnostic-01",
        "dotnet-diagnostic-1 ",
        "dotnet-diagnostic-1-2-socket",
        "dotnet-diagnostic-4294967296",
        "dotnet-diagnostic-dsrouter-1",
        "Dotnet-diagnostic-1",
        r"\\.\pipe\dotnet-diagnostic-1",
        "clr-debug-pipe-1-2-in",
    ] {
        assert!(bad.parse::<PipeName>().is_err(), "{bad}");
    }
    assert_eq!("dotnet-diagnostic-0".parse(), Ok(PipeName { process_id: 0 }));
    let longest = PipeName { process_id: u32::MAX };
    assert_eq!(longest.to_text().as_str(), "dotnet-diagnostic-4294967295");
    assert_eq!(format!("{longest:>30}"), "  dotnet-diagnostic-4294967295");
}

proptest! {
    #![proptest_config(cases(1))]

    #[test]
    fn formatted_names_parse(bytes: [u8; 16], process_id: u32, disambiguation_key: u64) {
        prop_assert_eq!(Guid(bytes).to_string().parse(), Ok(Guid(bytes)));
        let name = SocketName { process_id, disambiguation_key };
        prop_assert_eq!(name.to_text().as_str().parse(), Ok(name));
        let name = RouterSocketName { process_id, start_seconds: disambiguation_key };
        prop_assert_eq!(name.to_text().as_str().parse(), Ok(name));
        prop_assert!(name.to_text().as_str().parse::<SocketName>().is_err());
        let name = PipeName { process_id };
        prop_assert_eq!(name.to_text().as_str().parse(), Ok(name));
    }

    #[test]
    fn parsed_names_format_as_the_same_text(
        text in "dotnet-diagnostic-(dsrouter-)?[+-]?[0-9]{0,12}(-[0-9]{1,4}-socket)?",
    ) {
        if let Ok(name) = text.parse::<PipeName>() {
            prop_assert_eq!(name.to_string(), text.as_str());
        }
        if let Ok(name) = text.parse::<SocketName>() {
            prop_assert_eq!(name.to_string(), text.as_str());
        }
        if let Ok(name) = text.parse::<RouterSocketName>() {
            prop_assert_eq!(name.to_string(), text.as_str());
        }
    }
}
