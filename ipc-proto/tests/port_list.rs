//! Values of `DOTNET_DiagnosticPorts`: a written list is parsed as the same ports.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cases;

use cases::cases;
use ipc_proto::port::{Port, PortAddressError, PortList, PortType};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Generates ports: any address that a list can contain, whether the port listens, whether it suspends.
fn ports() -> impl Strategy<Value = Vec<(String, bool, bool)>> {
    let address = prop_oneof![
        select(vec!["/a", "/b", " /a", "suspend", "LISTEN", "127.0.0.1:9000", "ä"]).prop_map(String::from),
        "[^;,\0]{1,8}",
    ];
    vec((address, any::<bool>(), any::<bool>()), 0..5)
}

/// Generates values with separators, tags and addresses, or with any characters.
fn value() -> impl Strategy<Value = String> {
    let words = vec![";", ";", ",", "listen", "NoSuspend", "later", "/a", "/b", " ", "ä"];
    prop_oneof![vec(select(words), 0..16).prop_map(|words| words.concat()), "[^\0]*"]
}

/// Returns the text and the address of each port of a value, in the order of the text: a naive parser.
fn naive(value: &str) -> Vec<(&str, Option<&str>)> {
    let parts = value.split(';').filter(|part| !part.is_empty());
    parts.map(|part| (part, part.split(',').find(|token| !token.is_empty()))).collect()
}

proptest! {
    #![proptest_config(cases(8))]

    #[test]
    fn list_is_parsed_as_its_ports(ports in ports(), value in value()) {
        let ports: Vec<_> = ports
            .iter()
            .map(|(address, listens, suspend)| {
                let new = if *listens { Port::listen } else { Port::connect };
                new(address, *suspend).unwrap()
            })
            .collect();
        for port in &ports {
            prop_assert!(Port::list(&port.to_string()).eq([*port]));
        }
        let list = PortList::new(&ports);
        prop_assert!(list.ports().eq(ports.iter().rev().copied()));
        prop_assert!(Port::list(&list.to_string()).eq(list.ports()));

        let list = list.followed_by("replaced").followed_by(&value);
        let written = list.to_string();
        prop_assert!(Port::list(&written).eq(list.ports()));
        let is_ours = |address: &str| ports.iter().any(|port| port.address() == address);
        let others = naive(&value).into_iter().filter(|(_, address)| !address.is_some_and(is_ours));
        let expected: Vec<String> =
            ports.iter().map(Port::to_string).chain(others.map(|(text, _)| text.to_owned())).collect();
        prop_assert_eq!(written, expected.join(";"));
    }

    #[test]
    fn address_that_a_list_cannot_contain_is_refused(before in ".{0,4}", bad in select(vec![';', ',', '\0']), after in ".{0,4}") {
        let address = format!("{before}{bad}{after}");
        for new in [Port::connect, Port::listen] {
            prop_assert_eq!(new(&address, true), Err(PortAddressError));
            prop_assert_eq!(new("", true), Err(PortAddressError));
        }
    }
}

#[test]
fn port_that_listens_says_so() {
    let port = Port::listen("*:9000", false).unwrap();
    assert_eq!((port.port_type(), port.suspends()), (PortType::Listen, false));
    assert_eq!(port.to_string(), "*:9000,listen,nosuspend");
}

#[test]
fn list_without_ports_is_the_value() {
    assert_eq!(PortList::new(&[]).to_string(), "");
    assert_eq!(PortList::new(&[]).followed_by(";/a,later;;,;/b").to_string(), "/a,later;,;/b");
}
