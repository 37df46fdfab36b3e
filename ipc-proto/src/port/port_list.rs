//! [`PortList`]: several ports as a value of `DOTNET_DiagnosticPorts`.
use core::fmt;

use super::Port;
use super::diagnostic_port::Split;

/// A value of `DOTNET_DiagnosticPorts`: a program's own ports, and after them the ports of another value.
///
/// Its `Display` writes the value without an allocation. A program that starts a runtime sets the value: the runtime
/// then connects to the program's ports, and to the ports that the environment already names. [`Port::list`] parses it.
///
/// ```
/// use ipc_proto::port::{Port, PortList};
///
/// let ports = [Port::connect("/run/first", true)?, Port::connect("/run/second", false)?];
/// assert_eq!(PortList::new(&ports).to_string(), "/run/first,suspend;/run/second,nosuspend");
/// let list = PortList::new(&ports[..1]).followed_by(";/run/other;/run/first,nosuspend");
/// assert_eq!(list.to_string(), "/run/first,suspend;/run/other");
/// assert!(Port::list(&list.to_string()).eq(list.ports()));
/// # Ok::<(), ipc_proto::port::PortAddressError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortList<'a> {
    ports: &'a [Port<'a>],
    value: &'a str,
}

impl<'a> PortList<'a> {
    /// Creates a list of these ports, in the order of the text: a runtime reads the last port first.
    #[must_use]
    pub const fn new(ports: &'a [Port<'a>]) -> Self {
        Self { ports, value: "" }
    }

    /// Appends the ports of `value`. A value that was appended earlier is replaced.
    ///
    /// A port of `value` with the address of a port of the list is left out, so that `value` can be a value that
    /// contains the list already. Other ports keep their text, because a newer runtime may know more tags.
    #[must_use]
    pub const fn followed_by(self, value: &'a str) -> Self {
        Self { value, ..self }
    }

    /// Returns the ports in the runtime's order: the last port of the text comes first.
    pub fn ports(&self) -> impl Iterator<Item = Port<'a>> + use<'a> {
        let Self { ports, value } = *self;
        let appended = Port::list(value).filter(move |port| !contains(ports, port));
        appended.chain(ports.iter().rev().copied())
    }
}

/// Returns whether one of `ports` has the address of `port`.
fn contains(ports: &[Port<'_>], port: &Port<'_>) -> bool {
    ports.iter().any(|other| other.address() == port.address())
}

impl fmt::Display for PortList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for port in self.ports {
            f.write_str(core::mem::replace(&mut separator, ";"))?;
            port.fmt(f)?;
        }
        let appended = Split::new(self.value, b';').filter(|text| !text.is_empty());
        for text in appended.filter(|text| !Port::parse(text).is_some_and(|port| contains(self.ports, &port)))
        {
            f.write_str(core::mem::replace(&mut separator, ";"))?;
            f.write_str(text)?;
        }
        Ok(())
    }
}
