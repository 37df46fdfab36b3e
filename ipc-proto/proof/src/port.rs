//! The functions for ports.
use core::fmt::Display;

use ipc_proto::plan::Flavour;
use ipc_proto::port::*;

use crate::{each, proves};

proves! { PORT:
    read, Config::is_enabled, Config::disabled_by, Config::default_port_suspends, ports, findings,
    Variable::name, Variable::old_name, Tag::name, Port::connect, Port::listen, list, Port::address, Port::port_type,
    Port::suspends, NetworkAddress::parse, Config::on_windows, Config::on_phone, PortList::new, PortList::followed_by, ports_of_list, ToolPort::parse,
    ConnectPort::new, ConnectPort::step, ConnectPort::advance,
    Backoff::new, <Backoff as Default>::default, Backoff::next, Backoff::hung_up, Backoff::reset,
    Suspension::<&mut [bool]>::new, Suspension::<&mut [bool]>::resume, Suspension::<&mut [bool]>::is_suspended, waiting,
    <Tag as Display>::fmt, <Port<'_> as Display>::fmt, <PortList<'_> as Display>::fmt, <PortAddressError as Display>::fmt,
    <Finding<'_> as Display>::fmt, <ToolPortError as Display>::fmt,
}

fn read<'a>(flavour: Flavour, lookup: &dyn Fn(&str) -> Option<&'a str>) -> Config<'a> {
    Config::read(flavour, lookup)
}

fn ports<'a>(config: &Config<'a>, visit: &mut dyn FnMut(Port<'a>)) {
    each(config.ports(), visit);
}

fn findings<'a>(config: &Config<'a>, visit: &mut dyn FnMut(Finding<'a>)) {
    each(config.findings(), visit);
}

fn list<'a>(value: &'a str, visit: &mut dyn FnMut(Port<'a>)) {
    each(Port::list(value), visit);
}

fn ports_of_list<'a>(list: &PortList<'a>, visit: &mut dyn FnMut(Port<'a>)) {
    each(list.ports(), visit);
}

fn waiting(suspension: &Suspension<&mut [bool]>, visit: &mut dyn FnMut(usize)) {
    each(suspension.waiting(), visit);
}

type Slot = Option<MonitorSlot<u32, u8>>;
type Monitor<'s> = MonitorPort<u32, u8, &'s mut [Slot]>;

proves! { MONITOR:
    Monitor::new, Monitor::with_limits, Monitor::accept, Monitor::receive, Monitor::advance, Monitor::evict_oldest,
    Monitor::pause_accept, Monitor::take, Monitor::released, Monitor::remove, Monitor::idle, Monitor::runtime, Monitor::state, runtimes,
    Monitor::arriving, Monitor::capacity, Monitor::due, on_due, MonitorPort::<u32, u8, Slots>::grow,
    <MonitorLimits as Default>::default, Rejection::is_probe, <Rejection as Display>::fmt,
    <MonitorFull<u32, u8> as Display>::fmt,
}

fn runtimes<'r>(port: &'r Monitor<'_>, visit: &mut dyn FnMut(&'r RuntimeEntry<u8>)) {
    each(port.runtimes(), visit);
}

fn on_due(
    port: &mut Monitor<'_>,
    now: u64,
    has_ended: &dyn Fn(&RuntimeEntry<u8>) -> bool,
) -> Option<MonitorChange<u32, u8>> {
    port.on_due(now, has_ended)
}

/// A storage that can grow. The storage is code of the caller, so panics of a real storage are not part of the proof.
struct Slots(usize);

impl Extend<Slot> for Slots {
    fn extend<I: IntoIterator<Item = Slot>>(&mut self, slots: I) {
        slots.into_iter().for_each(|_| self.0 = self.0.wrapping_add(1));
    }
}
