//! Traces of plausible events of a runtime, from any bytes. Each event has a byte for its kind, and bytes for its
//! parts.
#![allow(clippy::cast_possible_truncation, reason = "numbers are cut to the width of their field")]
use nettrace::{
    Event, Fields, Metadata, Scalar, Stack, ThreadEntry, Trace, TraceBytes, TraceWriter, Version, WriteError,
};

/// An event before it is written.
#[derive(Debug, Clone)]
pub(super) struct MadeUp {
    /// The index in [`DESCRIPTIONS`].
    pub(super) description: usize,
    pub(super) thread: u64,
    pub(super) time: u64,
    pub(super) payload: Vec<u8>,
    pub(super) stack: Vec<u64>,
}

/// A method's code, as the row of the method states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MethodCode {
    pub(super) module: u64,
    pub(super) start: u64,
    pub(super) size: u32,
    pub(super) name: String,
}

/// The names that a row of a made-up event states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Naming {
    Load(MethodCode),
    Unload(MethodCode),
    Module { id: u64, name: String },
    None,
}

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";

/// Provider, event id, version and name of each kind of event.
const DESCRIPTIONS: [(&str, u32, u32, &str); 29] = [
    (RUNTIME, 143, 1, ""),
    (RUNTIME, 144, 1, ""),
    (RUNDOWN, 144, 1, ""),
    (RUNTIME, 152, 2, ""),
    (RUNDOWN, 154, 2, ""),
    ("Microsoft-DotNETCore-SampleProfiler", 0, 0, ""),
    (RUNTIME, 9, 1, ""),
    (RUNTIME, 8, 1, ""),
    (RUNTIME, 1, 2, ""),
    (RUNTIME, 2, 1, ""),
    (RUNTIME, 4, 2, ""),
    (RUNTIME, 3, 1, ""),
    (RUNTIME, 145, 1, ""),
    (RUNTIME, 10, 4, ""),
    (RUNTIME, 80, 1, ""),
    (RUNTIME, 81, 1, ""),
    (RUNTIME, 91, 1, ""),
    (RUNTIME, 85, 0, ""),
    ("Shop", 1, 0, "OrderStart"),
    ("Shop", 2, 0, "OrderStop"),
    (RUNTIME, 141, 1, ""),
    (RUNTIME, 1, 9, ""),
    (RUNTIME, 190, 1, ""),
    (RUNDOWN, 159, 0, ""),
    (RUNTIME, 303, 0, ""),
    ("Universal.System", 3, 0, "ProcessMapping"),
    ("Universal.System", 4, 0, "ProcessSymbol"),
    ("Universal.Events", 7, 0, "cpu"),
    ("Universal.Events", 8, 0, "cswitch"),
];

// The fields of events, for `fields`.
const MAPPING: &str = "Id:var StartAddress:var EndAddress:var FileOffset:var FileName:utf8 MetadataId:var";
const SYMBOL: &str = "Id:var MappingId:var StartAddress:var EndAddress:var Name:utf8";
const VALUE: &str = "Value:var";

/// Returns the fields of an event, in order: names, with their types if they are not texts in UTF-16.
pub(super) fn fields(described: &'static str) -> impl Iterator<Item = (&'static str, Scalar)> {
    described.split_whitespace().map(|field| match field.split_once(':') {
        None => (field, Scalar::Utf16String),
        Some((name, "f64")) => (name, Scalar::Double),
        Some((name, "f32")) => (name, Scalar::Single),
        Some((name, "i32")) => (name, Scalar::Int32),
        Some((name, "i64")) => (name, Scalar::Int64),
        Some((name, "time")) => (name, Scalar::DateTime),
        Some((name, "utf8")) => (name, Scalar::Utf8String),
        Some((name, "var")) => (name, Scalar::VarUInt),
        Some(_) => panic!("{field}"),
    })
}

/// Names of methods and files, with every character that a format must escape.
const TEXTS: &str = "Add|Cart||/app/Shop.dll|Castle.DynamicProxy|a;b|a\"b\\c|line\nbreak\r\t|\
    \u{1f600}\u{2028}|[shop] Shop.Cart::Total(int32[])[Tier0]|/memfd:doublemapper|</script>|x!y (z) 1|(int32)";

/// Any bytes, taken one after another; 0 after the last.
pub(super) struct Source<'a>(pub(super) &'a [u8]);

impl Source<'_> {
    pub(super) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(super) fn choice<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.byte()) % of.len()]
    }

    /// Chooses one of the words, which are separated by `|`.
    pub(super) fn word(&mut self, words: &'static str) -> &'static str {
        let words: Vec<_> = words.split('|').collect();
        self.choice(&words)
    }

    /// A small number in most cases, sometimes one at an end of the range.
    pub(super) fn number(&mut self) -> u64 {
        let (kind, byte) = (self.byte(), self.byte());
        match kind {
            0..=199 => u64::from(byte),
            200..=219 => u64::from(byte) << 32 | u64::from(kind),
            220..=229 => u64::MAX - u64::from(byte),
            230..=239 => u64::from(u32::MAX) - u64::from(byte),
            240..=249 => (1 << 63) + u64::from(byte),
            _ => u64::from(byte) << 56,
        }
    }

    /// Most addresses are close together, so that code overlaps.
    fn address(&mut self) -> u64 {
        let byte = self.byte();
        if byte < 0xf0 { 0x1000 + u64::from(byte) * 4 } else { self.number() }
    }

    fn text(&mut self) -> &'static str {
        self.word(TEXTS)
    }
}

pub(super) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

fn var_uint(payload: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        payload.push(number as u8 | 0x80);
        number >>= 7;
    }
    payload.push(number as u8);
}

pub(super) fn utf8(payload: &mut Vec<u8>, text: &str) {
    payload.extend(u16::try_from(text.len()).unwrap_or_default().to_le_bytes());
    payload.extend(text.as_bytes());
}

pub(super) fn u32s(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| (*number as u32).to_le_bytes()).collect()
}

/// Makes events from any bytes, and the names that each event states. V6 has additional kinds of events.
pub(super) fn events(bytes: &[u8], version: Version) -> Vec<(MadeUp, Naming)> {
    let (mut source, mut events, mut time) = (Source(bytes), Vec::new(), 1_000);
    while !source.0.is_empty() && events.len() < 300 {
        let kinds = if version == Version::V6 { DESCRIPTIONS.len() } else { 25 };
        let description = usize::from(source.byte()) % kinds;
        let thread = u64::from(source.byte() % 3) + 1;
        // Some times are before the last one, and some are long after it.
        time = match source.byte() {
            0xff => source.number(),
            0xfe => time.saturating_sub(50),
            step => time.saturating_add(u64::from(step) * 1_000),
        };
        // The ticks of a trace have 63 bits.
        time &= u64::MAX >> 2;
        let (payload, naming) = payload(&mut source, description);
        let depth =
            if matches!(description, 5 | 10 | 13..=16 | 18 | 19 | 27 | 28) { source.byte() % 6 } else { 0 };
        let stack = (0..depth).map(|_| source.address()).collect();
        events.push((MadeUp { description, thread, time, payload, stack }, naming));
    }
    events
}

fn payload(source: &mut Source<'_>, description: usize) -> (Vec<u8>, Naming) {
    let mut naming = Naming::None;
    let payload = match description {
        0..=2 | 12 | 20 => {
            let (module, start, size) = (u64::from(source.byte() % 4), source.address(), source.byte());
            let size = if size == 0xff { u32::MAX } else { u32::from(size) };
            let [type_name, name] = [source.text(), source.text()];
            let flags = u64::from(source.byte()) << 3;
            let mut payload =
                [1, module, start].iter().flat_map(|n: &u64| n.to_le_bytes()).collect::<Vec<u8>>();
            // MethodJittingStarted has other numbers at this offset.
            payload.extend(u32s(&[u64::from(size), 6, flags]));
            if description != 20 {
                payload.extend([type_name, name, "void  (int32)"].map(utf16).concat());
            }
            payload.extend([0; 2]);
            let dot = if type_name.is_empty() { "" } else { "." };
            let name = format!("{type_name}{dot}{name}(int32)");
            let code = MethodCode { module, start, size, name };
            naming = match description {
                0 | 2 => Naming::Load(code),
                1 => Naming::Unload(code),
                _ => Naming::None,
            };
            payload
        }
        3 | 4 => {
            let (id, path) = (u64::from(source.byte() % 4), source.text());
            let mut payload = [id, 5].iter().flat_map(|n: &u64| n.to_le_bytes()).collect::<Vec<u8>>();
            payload.extend(u32s(&[8, 0]));
            payload.extend([utf16(path), utf16("")].concat());
            naming = Naming::Module { id, name: path.to_owned() };
            payload
        }
        5 => u32s(&[u64::from(source.byte() % 4)]),
        6 => u32s(&[u64::from(source.byte() % 8), source.number()]),
        8 | 21 => u32s(&[0; 4].map(|_: u64| u64::from(source.byte() % 4))),
        9 => u32s(&[source.number(), source.number()]),
        10 => (0..14).flat_map(|_| source.number().to_le_bytes()).collect(),
        13 => {
            let mut payload = u32s(&[source.number(), 0]);
            payload.extend([0; 2]);
            payload.extend([source.number(), 0].iter().flat_map(|n| n.to_le_bytes()));
            payload.extend(utf16(source.text()));
            payload.extend([0; 20]);
            payload
        }
        17 | 23 => {
            let flags = u64::from(source.byte() % 8);
            [&[0; 16][..], &u32s(&[flags, 0, u64::from(source.byte() % 4)])].concat()
        }
        25 => {
            let mut payload = vec![source.byte()];
            [source.address(), source.address(), 0].iter().for_each(|n| var_uint(&mut payload, *n));
            utf8(&mut payload, source.text());
            payload.push(0);
            payload
        }
        26 => {
            let mut payload = vec![1, source.byte() & 0x7f];
            [source.address(), source.address()].iter().for_each(|n| var_uint(&mut payload, *n));
            utf8(&mut payload, source.text());
            payload
        }
        27 | 28 => {
            let mut payload = Vec::new();
            var_uint(&mut payload, source.number());
            payload
        }
        // The payload is arbitrary.
        _ => (0..source.byte() % 40).map(|_| source.byte()).collect(),
    };
    (payload, naming)
}

/// Appends the bytes that leave the buffer of the writer for a record.
pub(super) fn put(out: &mut Vec<u8>, written: Result<TraceBytes<'_>, WriteError>) {
    out.extend_from_slice(&written.expect("the record fits the buffer"));
}

/// Writes the events as a trace.
pub(super) fn trace(events: &[(MadeUp, Naming)], version: Version) -> Vec<u8> {
    let mut buf = vec![0; TraceWriter::BUFFER];
    let mut out = Vec::new();
    let mut writer = TraceWriter::new(&Trace::new(version), &mut buf).expect("a version that can be written");
    let is_v6 = version == Version::V6;
    for (id, (provider, event_id, event_version, name)) in (1..).zip(DESCRIPTIONS) {
        if provider.starts_with("Universal") && !is_v6 {
            continue;
        }
        let fields: Vec<_> = fields(match name {
            "ProcessMapping" => MAPPING,
            "ProcessSymbol" => SYMBOL,
            "cpu" | "cswitch" => VALUE,
            _ => "",
        })
        .collect();
        let mut space = [0; 512];
        let mut metadata = Metadata::new(id, provider, event_id, name);
        metadata.version = event_version;
        metadata.fields = Fields::build(&fields, &mut space).expect("room for the fields");
        put(&mut out, writer.describe(&metadata));
    }
    if is_v6 {
        for thread in 1..=3 {
            let entries = [ThreadEntry::ProcessId(thread / 3), ThreadEntry::ThreadId(thread)];
            put(&mut out, writer.thread(thread, entries));
        }
    }
    // Successive events with the same stack refer to it by one number.
    let mut stacks = Vec::new();
    for (event, _) in events {
        let last = stacks.last().copied();
        let same = last.filter(|(_, stack)| *stack == &event.stack);
        stacks.push(same.unwrap_or_else(|| {
            let id = last.map_or(1, |(id, _)| id + 1);
            let bytes: Vec<u8> = event.stack.iter().flat_map(|ip| ip.to_le_bytes()).collect();
            put(&mut out, writer.stack(&Stack { id, bytes: &bytes }));
            (id, &event.stack)
        }));
    }
    let mut sequences = [0; 4];
    for ((id, _), (event, _)) in stacks.into_iter().zip(events) {
        let sequence = &mut sequences[event.thread as usize];
        *sequence += 1;
        let event = Event {
            metadata_id: event.description as u32 + 1,
            sequence: *sequence,
            thread: event.thread,
            capture_thread: event.thread,
            timestamp: event.time,
            payload: &event.payload,
            stack_id: id,
            ..Event::default()
        };
        put(&mut out, writer.event(&event));
    }
    put(&mut out, Ok(writer.finish()));
    out
}
