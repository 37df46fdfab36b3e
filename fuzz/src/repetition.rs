//! Makes traces that repeat records, to find records that are expensive to read. A few bytes describe each trace.
#![allow(clippy::cast_possible_truncation, reason = "all lengths are short, and any number will do")]

/// Makes a trace of V4 or V6 in which each part is repeated many times.
///
/// The first byte is the version: even is V6, odd is V4. Each part has six bytes: its kind, a `u16` count, the way to
/// number what it contains, and two bytes whose meaning depends on the kind. A part can repeat the parts before it, so
/// that a state is built and discarded many times. A trace has about 4 KiB, so that a fuzzer reads thousands in a
/// minute.
pub(crate) fn repetition(bytes: &[u8]) -> Vec<u8> {
    let Some((first, parts)) = bytes.split_first() else { return Vec::new() };
    let is_v6 = first % 2 == 0;
    let mut trace = if is_v6 { v6_header() } else { v4_header() };
    let mut starts = Vec::new();
    for part in parts.chunks_exact(6) {
        let part = Part {
            kind: part[0] % 16,
            count: (u32::from(part[1]) | u32::from(part[2]) << 8) % 2048,
            numbers: part[3],
            a: part[4],
            b: part[5],
        };
        if part.kind == 15 {
            let back = starts.len().saturating_sub(1 + usize::from(part.a % 4));
            let repeated = trace[starts.get(back).copied().unwrap_or(trace.len())..].to_vec();
            let times = (MAX.saturating_sub(trace.len()) / repeated.len().max(1)).min(part.count as usize);
            trace.extend(repeated.repeat(times));
            continue;
        }
        starts.push(trace.len());
        if is_v6 {
            part.v6(&mut trace)
        } else {
            part.v4(&mut trace)
        }
        if trace.len() > MAX {
            break;
        }
    }
    trace.extend(if is_v6 { &[0, 0, 0, 0][..] } else { &[1] });
    trace
}

const MAX: usize = 4 << 10;

struct Part {
    kind: u8,
    count: u32,
    numbers: u8,
    a: u8,
    b: u8,
}

impl Part {
    /// Returns a number for `i`. Depending on the part, the numbers count up, have equal low bits, prefer one slot of a
    /// table, or make the tree of a table deep.
    fn number(&self, i: u32) -> u64 {
        /// The inverse of the factor by which a table spreads numbers.
        const GATHER: u64 = 0xf1de_83e1_9937_733d;
        let n = u64::from(i) + 1;
        match self.numbers % 4 {
            0 => n,
            1 => n << 14,
            2 => (5 << 33 | n).wrapping_mul(GATHER),
            _ => (1 << (63 - n % 40) | n).wrapping_mul(GATHER),
        }
    }

    fn short_number(&self, i: u32) -> u32 {
        self.number(i) as u32
    }

    /// Adds each number, with a byte after it.
    fn numbered(&self, body: &mut Vec<u8>, last: u8) {
        for i in 0..self.count {
            varint(body, self.number(i));
            body.push(last);
        }
    }

    /// Adds the part to a trace of V6.
    fn v6(&self, out: &mut Vec<u8>) {
        let all = 0..self.count;
        let mut body = Vec::new();
        let kind = match self.kind {
            0 => {
                body.extend([0, 0]);
                for i in all {
                    row(&mut body, &v6_description(self.short_number(i), &[]));
                }
                METADATA
            }
            // One description with many fields: objects without fields, arrays of them, numbers.
            1 => {
                let field: &[u8] =
                    [&[0, 1, 0, 0][..], &[0, 22, 1, 0, 0, 0xff, 0xff], &[0, 6]][usize::from(self.a % 3)];
                let mut fields = Vec::new();
                for _ in all {
                    fields.extend((field.len() as u16).to_le_bytes());
                    fields.extend(field);
                }
                fields.truncate(60_000);
                let count = (fields.len() / (field.len() + 2)) as u16;
                fields.truncate(usize::from(count) * (field.len() + 2));
                let mut counted = count.to_le_bytes().to_vec();
                counted.extend(fields);
                body.extend([0, 0]);
                row(&mut body, &v6_description(self.b.into(), &counted));
                METADATA
            }
            2 => {
                body.extend(self.short_number(0).to_le_bytes());
                body.extend(self.count.to_le_bytes());
                all.for_each(|_| body.extend(stack(self.a)));
                STACKS
            }
            // Stacks whose ids are far apart.
            3 => {
                for i in all.take(1000) {
                    let mut body = self.short_number(i).to_le_bytes().to_vec();
                    body.extend([1, 0, 0, 0]);
                    body.extend(stack(self.a));
                    block(out, STACKS, &body);
                }
                return;
            }
            // One label list of many labels.
            4 => {
                body.extend([1, 0, 0, 0, 1, 0, 0, 0]);
                all.for_each(|_| body.extend([7, 0]));
                body.extend([0x87, 0]);
                LABELS
            }
            // Many label lists of one label.
            5 => {
                body.extend(self.short_number(0).to_le_bytes());
                body.extend(self.count.to_le_bytes());
                all.for_each(|_| body.extend([0x89, self.a]));
                LABELS
            }
            6 => {
                for i in all {
                    let mut of_thread = Vec::new();
                    varint(&mut of_thread, self.number(i));
                    of_thread.extend([3, self.a & 0x7f]);
                    row(&mut body, &of_thread);
                }
                THREADS
            }
            7 => {
                self.numbered(&mut body, self.a & 0x7f);
                REMOVED_THREADS
            }
            // One sequence point with many threads.
            8 => {
                body.extend([0; 8]);
                body.extend(u32::from(self.a & 3).to_le_bytes());
                body.extend(self.count.to_le_bytes());
                self.numbered(&mut body, self.b & 0x7f);
                SEQUENCE_POINT
            }
            // Many sequence points.
            9 => {
                body.extend([0; 8]);
                body.extend(u32::from(self.a & 3).to_le_bytes());
                body.extend([0; 4]);
                for _ in all {
                    block(out, SEQUENCE_POINT, &body);
                }
                return;
            }
            // All events are of one thread, or each event is of another thread (kind 12).
            10..=12 => {
                body.extend([20, 0, 1, 0]);
                body.extend([0; 16]);
                // Metadata id, sequence number and capture thread, processor, thread, stack, time, label list, size.
                body.extend([0x9f, self.b & 0x7f, 1, 1, 0, 1, 1, 0, 1, self.a & 0x0f]);
                body.extend(vec![0xff; usize::from(self.a & 0x0f)]);
                for i in all {
                    if self.kind == 12 {
                        body.extend([0x02, 0]);
                        varint(&mut body, self.number(i));
                        body.push(0);
                    } else {
                        body.push(0);
                    }
                    // The times decrease (kind 11), or they increase.
                    varint(&mut body, if self.kind == 11 { u64::MAX } else { 1 });
                    body.extend(vec![0xff; usize::from(self.a & 0x0f)]);
                }
                EVENTS
            }
            _ => {
                for _ in all {
                    block(out, self.a, &[0; 8][..usize::from(self.b & 7)]);
                }
                return;
            }
        };
        block(out, kind, &body);
    }

    /// Adds the part to a trace of V4.
    fn v4(&self, out: &mut Vec<u8>) {
        let all = 0..self.count;
        let mut body = vec![20, 0, 1, 0];
        body.extend([0; 16]);
        match self.kind {
            0..=2 => {
                for i in all {
                    blob(&mut body, &v4_description(self.short_number(i), &[0; 4]));
                }
                object(out, "MetadataBlock", &body);
            }
            // One description with many fields of V1, and one of V2.
            5 => {
                let mut fields = self.count.to_le_bytes().to_vec();
                all.for_each(|_| fields.extend([9, 0, 0, 0, 0, 0]));
                fields.extend([14, 0, 0, 0, 2, 1, 0, 0, 0]);
                fields.extend([10, 0, 0, 0, 0, 0, 9, 0, 0, 0]);
                blob(&mut body, &v4_description(self.b.into(), &fields));
                object(out, "MetadataBlock", &body);
            }
            // One description with many fields in an object, or nested objects.
            3 | 4 => {
                let mut fields = Vec::new();
                if self.a % 2 == 0 {
                    for number in [1, 1, self.count] {
                        fields.extend(number.to_le_bytes());
                    }
                    all.for_each(|_| fields.extend([9, 0, 0, 0, 0, 0]));
                    fields.extend([b'o', 0, 0, 0]);
                } else {
                    fields.extend(self.count.to_le_bytes());
                    for _ in all {
                        (0..10).for_each(|_| fields.extend([1, 0, 0, 0, 1, 0, 0, 0]));
                        fields.extend([9, 0, 0, 0, 0, 0]);
                        fields.extend([0; 20]);
                    }
                }
                blob(&mut body, &v4_description(self.b.into(), &fields));
                object(out, "MetadataBlock", &body);
            }
            6 => {
                let mut body = self.short_number(0).to_le_bytes().to_vec();
                body.extend(self.count.to_le_bytes());
                all.for_each(|_| body.extend(stack(self.a)));
                object(out, "StackBlock", &body);
            }
            7 | 8 => {
                let mut body = vec![0; 8];
                body.extend(self.count.to_le_bytes());
                for i in all {
                    body.extend(self.number(i).to_le_bytes());
                    body.extend(u32::from(self.b).to_le_bytes());
                }
                object(out, "SPBlock", &body);
            }
            9..=11 => {
                // Metadata id, sequence number and capture thread, processor, thread, stack, time, size.
                body.extend([0x8f, self.b & 0x7f, 1, 1, 0, 1, 1, self.a & 1, self.a & 0x0f]);
                body.extend(vec![0xff; usize::from(self.a & 0x0f)]);
                for i in all {
                    body.extend([0x02, 0]);
                    varint(&mut body, if self.kind == 11 { self.number(i) } else { 1 });
                    body.push(0);
                    varint(&mut body, if self.kind == 10 { u64::MAX } else { 1 });
                    body.extend(vec![0xff; usize::from(self.a & 0x0f)]);
                }
                object(out, "EventBlock", &body);
            }
            _ => {
                for _ in all.take(1000) {
                    object(out, "Unknown", &[0; 8][..usize::from(self.b & 7)]);
                }
            }
        }
    }
}

const EVENTS: u8 = 2;
const METADATA: u8 = 3;
const SEQUENCE_POINT: u8 = 4;
const STACKS: u8 = 5;
const THREADS: u8 = 6;
const REMOVED_THREADS: u8 = 7;
const LABELS: u8 = 8;

fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn row(out: &mut Vec<u8>, row: &[u8]) {
    out.extend((row.len() as u16).to_le_bytes());
    out.extend(row);
}

/// A stack of up to seven addresses, with its length.
fn stack(addresses: u8) -> Vec<u8> {
    let len = usize::from(addresses & 7) * 8;
    let mut stack = (len as u32).to_le_bytes().to_vec();
    stack.resize(4 + len, 1);
    stack
}

fn block(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.extend(&(body.len() as u32).to_le_bytes()[..3]);
    out.push(kind);
    out.extend(body);
}

/// The facts that a trace states about itself, up to the size of a pointer.
fn facts() -> Vec<u8> {
    let mut facts = Vec::new();
    for of_date in [2026_u16, 1, 1, 1, 0, 0, 0, 0] {
        facts.extend(of_date.to_le_bytes());
    }
    facts.extend(0_u64.to_le_bytes());
    facts.extend(1_000_000_000_u64.to_le_bytes());
    facts.extend(8_u32.to_le_bytes());
    facts
}

fn v6_header() -> Vec<u8> {
    let mut out = b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0".to_vec();
    block(&mut out, 1, &[facts(), vec![0; 4]].concat());
    out
}

/// A row of V6: id, provider, event id, name, fields with their count, no further properties.
fn v6_description(id: u32, fields: &[u8]) -> Vec<u8> {
    let mut row = Vec::new();
    varint(&mut row, id.into());
    row.extend([1, b'P', 1, 1, b'E']);
    row.extend(if fields.is_empty() { &[0, 0] } else { fields });
    row.extend([0, 0]);
    row
}

fn v4_header() -> Vec<u8> {
    let mut out =
        b"Nettrace\x14\0\0\0!FastSerialization.1\x05\x05\x01\x04\0\0\0\x04\0\0\0\x05\0\0\0Trace\x06".to_vec();
    out.extend(facts());
    out.extend([0; 12]);
    out.push(6);
    out
}

fn object(out: &mut Vec<u8>, name: &str, body: &[u8]) {
    out.extend(b"\x05\x05\x01\x02\0\0\0\x02\0\0\0");
    out.extend((name.len() as u32).to_le_bytes());
    out.extend(name.as_bytes());
    out.push(6);
    out.extend((body.len() as u32).to_le_bytes());
    while out.len() % 4 != 0 {
        out.push(0);
    }
    out.extend(body);
    out.push(6);
}

/// Adds a compressed blob. Compared with the blob before it, only the payload and its size are other ones.
fn blob(out: &mut Vec<u8>, payload: &[u8]) {
    out.extend([0x80, 0]);
    varint(out, payload.len() as u64);
    out.extend(payload);
}

/// A metadata record of V4: id, provider, event id, name, keywords, version, level, fields with their count.
fn v4_description(id: u32, fields: &[u8]) -> Vec<u8> {
    let mut record = id.to_le_bytes().to_vec();
    record.extend([b'P', 0, 0, 0, 1, 0, 0, 0, b'E', 0, 0, 0]);
    record.extend([0; 16]);
    record.extend(fields);
    record
}
