//! The stream of a session for a snapshot of a fake heap.
use ipc_proto::wire::to_u32;
use nettrace::{Event, Metadata, SequencePoint, ThreadSequence, Trace, TraceWriter, Version, WriteError};

use super::fake_heap::FakeHeap;

/// The types, by the place of their id.
const TYPES: [&str; 9] = [
    "Fake.Node",
    "Fake.Cycle",
    "Fake.Rooted",
    "Fake.Weak",
    "Fake.Com",
    "Fake.Rcw",
    "Fake.Key",
    "Fake.Value",
    "Fake.OfThread",
];
pub(crate) const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// The provider, the id and the version of each kind of event.
const EVENTS: [(&str, u32, u32); 12] = [
    (RUNTIME, 1, 2),
    (RUNTIME, 2, 1),
    (RUNTIME, 3, 1),
    (RUNTIME, 15, 0),
    (RUNTIME, 16, 0),
    (RUNTIME, 17, 0),
    (RUNTIME, 18, 0),
    (RUNTIME, 19, 0),
    (RUNTIME, 36, 0),
    (RUNTIME, 37, 0),
    (RUNTIME, 38, 0),
    (RUNDOWN, 154, 2),
];
const START: usize = 0;
const END: usize = 1;
const RESTART: usize = 2;
const TYPE: usize = 3;
const ROOT: usize = 4;
const CONDITIONAL: usize = 5;
const NODE: usize = 6;
const EDGE: usize = 7;
const CCW: usize = 8;
const RCW: usize = 9;
const STATIC: usize = 10;
const MODULE: usize = 11;

/// The id of a type, by its place.
const fn type_id(place: usize) -> u64 {
    0x7F00_0000_1000_u64.wrapping_add((place as u64).wrapping_mul(0x40))
}

const MODULE_ID: u64 = 0x7F00_0000_0000;
const OBJECT_SIZE: u64 = 24;
/// The weak flag of a root, and the flag of a static variable that belongs to a thread.
const WEAK: u32 = 2;
const OF_THREAD: u32 = 1;
/// How many elements an event has.
const ELEMENTS: usize = 1000;

/// The elements of the events of each kind.
#[derive(Default)]
struct Elements {
    objects: u64,
    is_32_bit: bool,
    of: [Vec<Vec<u8>>; EVENTS.len()],
}

impl Elements {
    fn add(&mut self, kind: usize, parts: &[&[u8]]) {
        if let Some(elements) = self.of.get_mut(kind) {
            elements.push(parts.concat());
        }
    }

    fn address(&self, object: u64) -> u64 {
        let base = if self.is_32_bit { 0x1000_0000 } else { 0x7E00_0000_0000 };
        OBJECT_SIZE.wrapping_mul(object).wrapping_add(base)
    }

    fn pointer(&self, address: u64) -> Vec<u8> {
        let bytes = address.to_le_bytes();
        bytes.get(..if self.is_32_bit { 4 } else { 8 }).unwrap_or_default().to_vec()
    }

    /// Adds an object, which refers to another one. Returns its address.
    fn object(&mut self, type_place: usize, reference: Option<u64>) -> u64 {
        let address = self.address(self.objects);
        self.objects = self.objects.wrapping_add(1);
        let edges = u64::from(reference.is_some());
        let facts = [OBJECT_SIZE, type_id(type_place), edges].map(u64::to_le_bytes);
        self.add(NODE, &[&self.pointer(address), facts.as_flattened()]);
        if let Some(to) = reference {
            self.add(EDGE, &[&self.pointer(self.address(to)), &[0; 4]]);
        }
        address
    }

    fn root(&mut self, address: u64, kind: u8, flags: u32) {
        let id = self.pointer(0);
        self.add(ROOT, &[&self.pointer(address), &[kind], &flags.to_le_bytes(), &id]);
    }

    fn variable(&mut self, address: u64, type_place: usize, flags: u32) {
        let ids = [0, address, type_id(type_place)].map(u64::to_le_bytes);
        self.add(STATIC, &[ids.as_flattened(), &flags.to_le_bytes(), &utf16("value")]);
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

impl FakeHeap {
    /// Returns the stream of a session that has nothing but a snapshot of the heap.
    pub(crate) fn trace(&self, process_id: u32) -> Result<Vec<u8>, WriteError> {
        let mut buf = vec![0; TraceWriter::BUFFER];
        let pointer_size = if self.is_32_bit { 4 } else { 8 };
        let trace = Trace { pointer_size, process_id: Some(process_id), ..Trace::new(Version::V4) };
        let mut out = Vec::new();
        let mut writer = TraceWriter::new(&trace, &mut buf)?;
        for (metadata_id, (provider, event_id, version)) in (1..).zip(EVENTS) {
            let mut described = Metadata::new(metadata_id, provider, event_id, "");
            described.version = version;
            out.extend_from_slice(&writer.describe(&described)?);
        }
        for (sequence, (kind, payload)) in (1..).zip(self.events()) {
            // A lost event has a sequence number too.
            let Some(payload) = payload else { continue };
            let metadata_id = to_u32(kind).wrapping_add(1);
            let event = Event {
                metadata_id,
                sequence,
                timestamp: sequence.into(),
                payload: &payload,
                ..Event::default()
            };
            out.extend_from_slice(&writer.event(&event)?);
            if matches!(kind, END | RESTART) {
                // A reader that sorts events returns those before a sequence point, although no other event follows.
                let point = SequencePoint { timestamp: sequence.into(), ..SequencePoint::default() };
                out.extend_from_slice(&writer.sequence_point(&point)?);
                out.extend_from_slice(&writer.thread_sequence(&ThreadSequence { thread: 0, sequence })?);
            }
        }
        out.extend_from_slice(&writer.finish());
        Ok(out)
    }

    /// Returns the kind and the payload of each event; `None` if it is lost.
    fn events(&self) -> Vec<(usize, Option<Vec<u8>>)> {
        let mut events = Vec::new();
        let numbers =
            |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        if !self.has_no_collection {
            // The second collection, of all generations, induced, blocking.
            events.push((START, Some(numbers(&[2, 2, 1, 0, 0, 0]))));
        }
        let elements = self.elements();
        let mut countdown = self.lost;
        for (kind, of_kind) in elements.of.iter().enumerate() {
            for (index, elements) in (0_u32..).zip(of_kind.chunks(ELEMENTS)) {
                let count = to_u32(elements.len());
                let mut payload = match kind {
                    ROOT | CONDITIONAL | NODE | EDGE => numbers(&[index, count]),
                    // The count and the application domain.
                    STATIC => numbers(&[count, 0, 0]),
                    _ => numbers(&[count]),
                };
                // The number of the runtime.
                payload.extend([0; 2]);
                payload.extend(elements.concat());
                let mut is_lost = false;
                if matches!(kind, NODE | EDGE) && self.lost > 0 {
                    countdown = countdown.wrapping_sub(1);
                    is_lost = countdown == 0;
                    countdown = if is_lost { self.lost } else { countdown };
                }
                events.push((kind, Some(payload).filter(|_| !is_lost)));
            }
        }
        match (self.has_no_end, self.has_no_collection) {
            (true, _) => {}
            (false, false) => events.push((END, Some(numbers(&[2, 2])))),
            (false, true) => events.push((RESTART, Some(vec![0; 2]))),
        }
        let [module, assembly] = [MODULE_ID, 0].map(u64::to_le_bytes);
        let module = [&module[..], &assembly, &[0; 8], &utf16("/app/Fake.dll"), &utf16("")].concat();
        events.push((MODULE, Some(module)));
        events
    }

    fn elements(&self) -> Elements {
        let mut elements = Elements { is_32_bit: self.is_32_bit, ..Elements::default() };
        let [node, cycle, rooted, weak, com, rcw, key, value, of_thread] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
        for (place, name) in TYPES.iter().enumerate() {
            let of_com: u32 = if place == rcw { 4 } else { 0 };
            let ids = [type_id(place), MODULE_ID].map(u64::to_le_bytes);
            let facts = [to_u32(place), of_com].map(u32::to_le_bytes);
            elements.add(TYPE, &[ids.as_flattened(), facts.as_flattened(), &[0], &utf16(name), &[0; 4]]);
        }
        for number in 1..=self.list {
            let next = elements.objects.wrapping_add(1);
            let address = elements.object(node, Some(next).filter(|_| number < self.list));
            if number == 1 {
                elements.variable(address, node, 0);
            }
        }
        let first = elements.objects;
        for number in 1..=self.cycle {
            let next = elements.objects.wrapping_add(1);
            elements.object(cycle, Some(if number < self.cycle { next } else { first }));
        }
        for _ in 0..self.roots {
            for kind in 0..6 {
                let address = elements.object(rooted, None);
                elements.root(address, kind, 0);
            }
        }
        for _ in 0..self.weak {
            let address = elements.object(weak, None);
            elements.root(address, 2, WEAK);
        }
        for _ in 0..self.com {
            let held = elements.object(com, None);
            let ids = [0, held, type_id(com), 0x5000].map(u64::to_le_bytes);
            elements.add(CCW, &[ids.as_flattened(), &[1, 0, 0, 0], &[0; 8]]);
            let holds = elements.object(rcw, None);
            let ids = [holds, type_id(rcw), 0x6000, 0].map(u64::to_le_bytes);
            elements.add(RCW, &[ids.as_flattened(), &[1, 0, 0, 0], &[0; 4]]);
            elements.root(holds, 2, 0);
        }
        for _ in 0..self.conditional {
            let [key, value] = [key, value].map(|of_type| elements.object(of_type, None));
            elements.root(key, 2, 0);
            let pointers = [key, value, 0].map(|address| elements.pointer(address));
            elements.add(CONDITIONAL, &[&pointers.concat()]);
        }
        for _ in 0..self.thread_static {
            let address = elements.object(of_thread, None);
            elements.variable(address, of_thread, OF_THREAD);
        }
        elements
    }
}
