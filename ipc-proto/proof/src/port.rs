//! Ports.
use core::fmt::Display;

use ipc_proto::Guid;
use ipc_proto::plan::Flavour;
use ipc_proto::port::*;

use crate::{each, proves};

proves! { PORT:
    read, Config::is_enabled, Config::disabled_by, Config::default_port_suspends, ports, findings,
    Variable::name, Variable::old_name, Tag::name, Port::connect, list, Port::address, Port::port_type,
    Port::suspends, ToolPort::parse,
    ConnectPort::new, ConnectPort::step, ConnectPort::advance,
    Backoff::new, <Backoff as Default>::default, Backoff::next, Backoff::hung_up, Backoff::reset,
    Suspension::<&mut [bool]>::new, Suspension::<&mut [bool]>::resume, Suspension::<&mut [bool]>::is_suspended, waiting,
    <Tag as Display>::fmt, <Port<'_> as Display>::fmt, <PortAddressError as Display>::fmt,
    <Finding<'_> as Display>::fmt, <Full<u32> as Display>::fmt, <ToolPortError as Display>::fmt,
}

fn read<'a>(flavour: Flavour, lookup: &dyn Fn(&str) -> Option<&'a str>) -> Config<'a> {
    Config::read(flavour, lookup)
}

fn ports<'a>(config: &Config<'a>, see: &mut dyn FnMut(Port<'a>)) {
    each(config.ports(), see);
}

fn findings<'a>(config: &Config<'a>, see: &mut dyn FnMut(Finding<'a>)) {
    each(config.findings(), see);
}

fn list<'a>(value: &'a str, see: &mut dyn FnMut(Port<'a>)) {
    each(Port::list(value), see);
}

fn waiting(suspension: &Suspension<&mut [bool]>, see: &mut dyn FnMut(usize)) {
    each(suspension.waiting(), see);
}

type Runtimes<'s> = Roster<u32, &'s mut [Option<Entry<u32>>]>;

proves! { ROSTER:
    Runtimes::new, Runtimes::arrive, Runtimes::take, take_if, Runtimes::remove, Runtimes::get,
    Runtimes::connection_mut, runtimes, Runtimes::len, Runtimes::is_empty, Runtimes::capacity,
    Roster::<u32, Slots>::grow,
}

fn take_if(roster: &mut Runtimes<'_>, cookie: &Guid, is_it: &dyn Fn(&u32) -> bool) -> Option<u32> {
    roster.take_if(cookie, is_it)
}

fn runtimes<'r>(roster: &'r Runtimes<'_>, see: &mut dyn FnMut(&'r Entry<u32>)) {
    each(roster.iter(), see);
}

/// A storage that can grow; the caller's own, and its panics too.
struct Slots(usize);

impl Extend<Option<Entry<u32>>> for Slots {
    fn extend<I: IntoIterator<Item = Option<Entry<u32>>>>(&mut self, slots: I) {
        slots.into_iter().for_each(|_| self.0 = self.0.wrapping_add(1));
    }
}
