use std::collections::VecDeque;

use arbitrary::{Arbitrary, Unstructured};
use ipc_proto::plan::Flavour;
use ipc_proto::port::{
    Arrival, Config, Entry, Full, Port, PortType, Roster, ToolPort, ToolPortError, Transport, Variable,
};
use ipc_proto::{Advertise, Exchange, Guid, ProtocolError, ReceiveAdvertise, Step};

/// A runtime's ports are those that a plain reading of its environment gives, whatever is in there; what is found odd
/// is said in one line each; a port that is written reads as the same; and the tools' form, likewise.
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
        let connect = Port::connect(port.address(), port.suspends()).expect("it was written somewhere");
        assert_eq!(connect == port, port.port_type() == PortType::Connect);
    }
    // At most: two of each variable, one that switches off, and twelve of each port beside one of each of its tags.
    let most = 9 + variables.iter().map(|(_, value)| 12 * (value.len() + 1)).sum::<usize>();
    assert!(config.findings().count() <= most, "finds and finds");
    for finding in config.findings() {
        let sentence = finding.to_string();
        assert!(sentence.len() > 20 && !sentence.contains(char::is_control), "{sentence:?}");
    }

    let tool = text(u)?;
    for native in [Transport::UnixSocket, Transport::NamedPipe] {
        let port = ToolPort::parse(&tool, native);
        assert_eq!(port.map(|p| (p.address, p.transport, p.port_type)), naive_tool_port(&tool, native));
    }
    Ok(())
}

fn parts<'a>(port: Port<'a>) -> (&'a str, bool, bool) {
    (port.address(), port.port_type() == PortType::Listen, port.suspends())
}

/// A text made of what matters in one, and of anything.
fn text(u: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    const WORDS: [&str; 32] = [
        ";",
        ";",
        ",",
        ",",
        ",",
        "connect",
        "listen",
        "suspend",
        "nosuspend",
        "NoSuspend",
        "LISTEN",
        "nosupend",
        "conenct",
        " ",
        "\t",
        "/tmp/a",
        "/tmp/a",
        "monitor",
        "0",
        "1",
        "10",
        "0x",
        "-",
        "+",
        "f",
        "uds:",
        "file:",
        "namedpipe:",
        "http:",
        "//",
        "/pipe/",
        r"\\.\pipe\",
    ];
    let mut text = String::new();
    for _ in 0..u.int_in_range(0..=15)? {
        match u.choose_index(WORDS.len() + 1)? {
            index if index < WORDS.len() => text.push_str(WORDS[index]),
            _ => text.push_str(u.arbitrary()?),
        }
    }
    Ok(text)
}

/// What a runtime does, with `Vec`s and C's functions written out.
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
        // As a u32, to which runtimes cut it.
        Self { enabled, default_port_suspends: enabled && suspend % (1 << 32) != 0, ports }
    }
}

fn strtok(text: &str, separator: char) -> Vec<String> {
    let (mut tokens, mut token) = (Vec::new(), String::new());
    for c in text.chars().chain([separator]) {
        if c != separator {
            token.push(c);
        } else if !token.is_empty() {
            tokens.push(core::mem::take(&mut token));
        }
    }
    tokens
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

/// No interleaving of connections that open, say who they are or anything else, in pieces or late, and hang up, makes a
/// monitor lose a runtime, announce one twice, lose or keep a connection twice, or hand out one of which it knows that
/// it is dead.
pub fn monitor(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let Ok(room) = u.int_in_range(0..=3) else { return };
    let slots = (0..room).map(|_| None).collect();
    let mut monitor = Monitor { roster: Roster::new(slots), wires: Vec::new(), log: Vec::new() };
    while let Ok(event) = u.arbitrary() {
        monitor.on(event);
        monitor.check();
        if u.is_empty() || monitor.log.len() > 500 {
            break;
        }
    }
}

/// What happens; `at` is a connection, the last opened being 0, and `who` a runtime.
#[derive(Debug, Arbitrary)]
enum Event<'a> {
    /// Somebody connects.
    Open,
    /// Somebody connects and says who it is.
    Advertise {
        who: u8,
        process_id: u8,
    },
    /// Bytes come.
    Frame {
        at: u8,
        who: u8,
        process_id: u8,
    },
    Bytes {
        at: u8,
        bytes: &'a [u8],
    },
    /// The monitor reads so many at most.
    Read {
        at: u8,
        n: u8,
    },
    /// The peer closes. The monitor has not seen it yet.
    HangUp {
        at: u8,
    },
    /// The monitor sees that the peer has closed.
    SeeHangUp {
        at: u8,
    },
    /// The frame has not come in time.
    TimeOut {
        at: u8,
    },
    /// The monitor sends a command.
    Take {
        who: u8,
    },
    Remove {
        who: u8,
    },
    Grow,
}

/// A connection, by its place in [`Monitor::wires`].
type Id = usize;

struct Wire {
    bytes: VecDeque<u8>,
    /// All that ever came.
    came: Vec<u8>,
    hung_up: bool,
    place: Place,
}

/// Where a connection is.
enum Place {
    Receiving(ReceiveAdvertise),
    /// In the roster, as far as the monitor knows.
    Kept(Guid),
    Taken,
    Closed,
}

/// What the monitor has seen, in the order in which it has.
#[derive(Debug, PartialEq)]
enum Seen {
    Arrived { who: Guid, process_id: u64, id: Id },
    Refused { who: Guid },
    HungUp { id: Id },
    Taken { id: Id },
    Removed { who: Guid },
}

struct Monitor {
    roster: Roster<Id, Vec<Option<Entry<Id>>>>,
    wires: Vec<Wire>,
    log: Vec<Seen>,
}

fn cookie(who: u8) -> Guid {
    Guid([who % 5; 16])
}

fn frame(who: u8, process_id: u8) -> Vec<u8> {
    [&b"ADVR_V1\0"[..], &cookie(who).0, &[process_id], &[0; 9]].concat()
}

impl Monitor {
    fn on(&mut self, event: Event<'_>) {
        match event {
            Event::Open => self.open(),
            Event::Advertise { who, process_id } => {
                self.open();
                self.send(0, &frame(who, process_id));
                self.read(0, usize::MAX);
            }
            Event::Frame { at, who, process_id } => self.send(at, &frame(who, process_id)),
            Event::Bytes { at, bytes } => self.send(at, bytes),
            Event::Read { at, n } => self.read(at, n.into()),
            Event::HangUp { at } => {
                if let Some(id) = self.id(at) {
                    self.wires[id].hung_up = true;
                }
            }
            Event::SeeHangUp { at } => self.see_hang_up(at),
            Event::TimeOut { at } => {
                if let Some(id) = self.id(at) {
                    if let Place::Receiving(_) = self.wires[id].place {
                        self.wires[id].place = Place::Closed;
                    }
                }
            }
            Event::Take { who } => {
                let (who, expected) = (cookie(who), self.live(cookie(who)));
                let taken = self.roster.take(&who);
                assert_eq!(taken, expected);
                if let Some(id) = taken {
                    self.wires[id].place = Place::Taken;
                    self.log.push(Seen::Taken { id });
                }
            }
            Event::Remove { who } => {
                let (who, expected) = (cookie(who), self.live(cookie(who)));
                let known = self.is_known(who);
                let removed = self.roster.remove(&who);
                assert_eq!(removed.is_some(), known);
                if let Some(entry) = removed {
                    assert_eq!((entry.cookie, entry.connection), (who, expected));
                    if let Some(id) = entry.connection {
                        self.wires[id].place = Place::Closed;
                    }
                    self.log.push(Seen::Removed { who });
                }
            }
            Event::Grow => {
                let before = self.roster.capacity();
                if before < 8 {
                    self.roster.grow(1);
                    assert_eq!(self.roster.capacity(), before + 1);
                }
            }
        }
    }

    fn id(&self, at: u8) -> Option<Id> {
        let back = usize::from(at).checked_rem(self.wires.len())?;
        Some(self.wires.len() - 1 - back)
    }

    fn open(&mut self) {
        let place = Place::Receiving(ReceiveAdvertise::new());
        self.wires.push(Wire { bytes: VecDeque::new(), came: Vec::new(), hung_up: false, place });
    }

    fn send(&mut self, at: u8, bytes: &[u8]) {
        if let Some(wire) = self.id(at).map(|id| &mut self.wires[id]).filter(|wire| !wire.hung_up) {
            wire.bytes.extend(bytes);
            wire.came.extend(bytes);
        }
    }

    fn read(&mut self, at: u8, mut n: usize) {
        let Some(id) = self.id(at) else { return };
        let wire = &mut self.wires[id];
        let Place::Receiving(receive) = &mut wire.place else { return };
        let mut failed = None;
        while let Step::Receive(space) = receive.step() {
            let count = space.len().min(wire.bytes.len()).min(n);
            if count == 0 && !(wire.hung_up && n > 0) {
                return; // it would block
            }
            n -= count;
            for (to, byte) in space.iter_mut().zip(wire.bytes.drain(..count)) {
                *to = byte;
            }
            if let Err(error) = receive.advance(count) {
                failed = Some(error);
                break;
            }
        }
        let outcome = receive.finish();
        // It has taken the frame and nothing behind it; or all there was; or some of what is none.
        let taken = wire.came.len() - wire.bytes.len();
        let magic = wire.came.iter().zip(b"ADVR_V1\0").all(|(a, b)| a == b);
        match outcome {
            Ok(advertise) => {
                assert_eq!((failed, taken), (None, 34));
                assert_eq!(wire.came[..34], frame_of(&advertise));
                self.arrive(id, advertise.runtime_cookie, advertise.process_id);
            }
            Err(error) => {
                assert_eq!(failed, Some(error));
                let closed = error == ProtocolError::Closed { received: taken };
                assert!(if magic { closed && taken < 34 && wire.bytes.is_empty() } else { taken <= 34 });
                wire.place = Place::Closed;
            }
        }
    }

    fn arrive(&mut self, id: Id, who: Guid, process_id: u64) {
        let (known, before) = (self.is_known(who), self.live(who));
        let full = self.roster.len() == self.roster.capacity();
        match self.roster.arrive(who, process_id, id) {
            Ok(Arrival { first, stale }) => {
                assert!(known || !full);
                assert_eq!((first, stale), (!known, before));
                if let Some(stale) = stale {
                    self.wires[stale].place = Place::Closed;
                }
                self.wires[id].place = Place::Kept(who);
                self.log.push(Seen::Arrived { who, process_id, id });
            }
            Err(Full { connection }) => {
                assert!(full && !known && connection == id);
                self.wires[id].place = Place::Closed;
                self.log.push(Seen::Refused { who });
            }
        }
    }

    /// The poll says so, perhaps long after the roster has another connection of that runtime, or none.
    fn see_hang_up(&mut self, at: u8) {
        let Some(id) = self.id(at).filter(|id| self.wires[*id].hung_up) else { return };
        let known_as = self.log.iter().find_map(|seen| match seen {
            Seen::Arrived { who, id: arrived, .. } if *arrived == id => Some(*who),
            _ => None,
        });
        let Some(who) = known_as else { return };
        let expected = self.live(who).filter(|live| *live == id);
        assert_eq!(self.roster.take_if(&who, |connection| *connection == id), expected);
        if expected.is_some() {
            self.wires[id].place = Place::Closed;
        }
        self.log.push(Seen::HungUp { id });
    }

    /// By what was seen: whether the runtime has arrived, and was not removed since.
    fn is_known(&self, of: Guid) -> bool {
        let decisive = self.log.iter().rev().find_map(|seen| match seen {
            Seen::Arrived { who, .. } if *who == of => Some(true),
            Seen::Removed { who } if *who == of => Some(false),
            _ => None,
        });
        decisive.unwrap_or(false)
    }

    /// By what was seen: the runtime's last connection, unless it was taken, hung up or removed since.
    fn live(&self, of: Guid) -> Option<Id> {
        let (mut live, mut gone) = (None, Vec::new());
        for seen in &self.log {
            match seen {
                Seen::Arrived { who, id, .. } if *who == of => live = Some(*id),
                Seen::Removed { who } if *who == of => live = None,
                Seen::Taken { id } | Seen::HungUp { id } => gone.push(*id),
                Seen::Arrived { .. } | Seen::Removed { .. } | Seen::Refused { .. } => {}
            }
        }
        live.filter(|id| !gone.contains(id))
    }

    fn check(&self) {
        let known: Vec<Guid> = (0..5).map(cookie).filter(|who| self.is_known(*who)).collect();
        let strangers = |entry: &&Entry<Id>| !(0..5).map(cookie).any(|who| who == entry.cookie);
        let strangers = self.roster.iter().filter(strangers).count();
        assert_eq!(self.roster.len(), known.len() + strangers);
        assert!(self.roster.len() <= self.roster.capacity());
        for entry in self.roster.iter() {
            let who = entry.cookie;
            assert!(self.is_known(who));
            assert_eq!(self.roster.get(&who), Some(entry), "twice in the roster");
            assert_eq!(entry.connection, self.live(who));
            let last = self.log.iter().rev().find_map(|seen| match seen {
                Seen::Arrived { who: arrived, process_id, .. } if *arrived == who => Some(*process_id),
                _ => None,
            });
            assert_eq!(Some(entry.process_id), last);
        }
        // Every connection is in one place.
        for (id, wire) in self.wires.iter().enumerate() {
            let kept: Vec<Guid> =
                self.roster.iter().filter(|e| e.connection == Some(id)).map(|e| e.cookie).collect();
            match wire.place {
                Place::Kept(who) => assert_eq!(kept, [who]),
                Place::Receiving(_) | Place::Taken | Place::Closed => assert_eq!(kept, []),
            }
        }
    }
}

fn frame_of(advertise: &Advertise) -> Vec<u8> {
    let Advertise { runtime_cookie, process_id, future } = advertise;
    [&b"ADVR_V1\0"[..], &runtime_cookie.0, &process_id.to_le_bytes(), &future.to_le_bytes()].concat()
}
