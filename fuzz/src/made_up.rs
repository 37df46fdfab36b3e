//! Generates streams from the bytes of a fuzzer.
use arbitrary::Unstructured;
use ipc_proto::Guid;
use nettrace::{
    Event, Label, Metadata, SequencePoint, Stack, ThreadEntry, ThreadSequence, Trace, TraceBytes,
    TraceWriter, Version, WriteError,
};

use crate::reading::{Plain, RecordBytes, of_event};
use crate::unknown::unknown;

/// Appends a record that was written.
pub(crate) fn put(out: &mut Vec<u8>, written: Result<TraceBytes<'_>, WriteError>) {
    out.extend_from_slice(&written.expect("there is room"));
}

/// A generated stream and its events.
#[derive(Debug, Default)]
pub(crate) struct MadeUp {
    pub(crate) stream: Vec<u8>,
    pub(crate) events: RecordBytes,
    pub(crate) plain: Vec<Plain>,
}

/// Generates a number: small, a limit of an encoding, or arbitrary.
fn odd(u: &mut Unstructured<'_>) -> arbitrary::Result<u64> {
    const ODD: [u64; 8] = [0, 1, 0x7f, 0x80, 0xffff_ffff, 0x1_0000_0000, 1 << 63, u64::MAX];
    Ok(match u.arbitrary::<u8>()? {
        n @ 0..=99 => n.into(),
        n @ 100..=199 => ODD[usize::from(n & 7)],
        _ => u.arbitrary()?,
    })
}

#[expect(clippy::cast_possible_truncation, reason = "any number will do")]
fn odd32(u: &mut Unstructured<'_>) -> arbitrary::Result<u32> {
    odd(u).map(|n| n as u32)
}

/// Generates a stream of at most `len` records.
///
/// With `makes_sense`, threads count their events, lose some, and later threads reuse their ids. Otherwise all numbers
/// are arbitrary.
pub(crate) fn made_up(
    u: &mut Unstructured<'_>,
    version: Version,
    makes_sense: bool,
    len: usize,
) -> arbitrary::Result<MadeUp> {
    let v6 = version == Version::V6;
    let mut buf = vec![0xa5; usize::from(u.int_in_range(1u8..=16)?) * 1024 + 1000];
    let mut writer = TraceWriter::new(&Trace::new(version), &mut buf).expect("a version that can be written");
    let mut made = MadeUp::default();
    let out = &mut made.stream;
    for id in 0..4u32 {
        put(out, writer.describe(&Metadata::new(id + 1, "p", id, "")));
    }
    // The sequence number of each thread; zero if a new thread has its id.
    let mut threads = [0u32; 4];
    if v6 {
        for thread in 0..4 {
            put(out, writer.thread(thread, [ThreadEntry::ThreadId(thread + 100)]));
        }
    }
    let mut now = 1000u64;
    for _ in 0..len {
        if u.is_empty() {
            break;
        }
        let what = u.arbitrary::<u8>()?;
        let thread = usize::from(what >> 6);
        let number = u64::from(what >> 6);
        match what & 0x3f {
            0 => {
                put(out, writer.sequence_point(&SequencePoint { timestamp: now, flags: 0, threads: 0 }));
                for (thread, last) in threads.iter_mut().enumerate() {
                    let known = *last != 0 || v6;
                    if known && u.arbitrary::<bool>()? {
                        *last += u32::from(u.arbitrary::<u8>()? & 3);
                        let row = ThreadSequence { thread: thread as u64, sequence: *last };
                        put(out, writer.thread_sequence(&row));
                    }
                }
            }
            1 => {
                let stack =
                    Stack { id: odd32(u)?, bytes: &[7; 64][..usize::from(u.arbitrary::<u8>()? & 63)] };
                put(out, writer.stack(&stack));
            }
            2 if v6 => {
                let labels =
                    [Label::ActivityId(Guid([7; 16])), Label::Number("n".into(), -5), Label::Opcode(3)];
                let some = labels.into_iter().take(usize::from(u.arbitrary::<u8>()? & 3));
                let id = odd32(u)?;
                put(out, writer.label_list(id, some.clone()));
            }
            3 if v6 && makes_sense => {
                let sequence = threads[thread] + u32::from(u.arbitrary::<u8>()? & 3);
                put(out, writer.remove_thread(&ThreadSequence { thread: number, sequence }));
                put(out, writer.thread(number, [ThreadEntry::ThreadId(number + 100)]));
                threads[thread] = 0;
            }
            // A new thread gets the id of one that ended.
            3 if makes_sense => {
                if threads[thread] != 0 {
                    threads[thread] = 0;
                }
            }
            4 => {
                let mut metadata = Metadata::default();
                metadata.id = u.int_in_range(10..=50)?;
                put(out, writer.describe(&metadata));
            }
            5 => {
                out.extend_from_slice(&writer.flush());
                out.extend(unknown(u, version)?);
            }
            _ => {
                let fresh = threads[thread] == 0;
                let len = u.arbitrary::<u8>()?;
                let payload = vec![len; if len == 255 { 300 } else { usize::from(len & 15) }];
                let mut event = Event { payload: &payload, sorted: what & 1 != 0, ..Event::default() };
                if makes_sense {
                    // In V4, a new thread with a reused id is recognised only by the sequence number 1.
                    let lost = if fresh && !v6 { 0 } else { u32::from((len >> 4).saturating_sub(12)) };
                    threads[thread] += 1 + lost;
                    now += u64::from(len & 7);
                    event.metadata_id = u.int_in_range(1..=4)?;
                    event.sequence = threads[thread];
                    (event.capture_thread, event.thread, event.timestamp) = (number, number, now);
                } else {
                    (event.metadata_id, event.sequence) = (odd32(u)?, odd32(u)?);
                    (event.capture_thread, event.thread, event.timestamp) = (odd(u)?, odd(u)?, odd(u)?);
                    (event.processor, event.stack_id) = (odd32(u)?, odd32(u)?);
                    if v6 {
                        event.label_list = odd32(u)?;
                    } else {
                        event.activity_id = Guid([len & 1; 16]);
                        event.related_activity_id = Guid([len >> 7; 16]);
                    }
                }
                put(out, writer.event(&event));
                made.events.push(&of_event(&event));
                let plain = (event.metadata_id, event.timestamp, payload.clone());
                made.plain.push(plain);
            }
        }
    }
    made.stream.extend_from_slice(&writer.finish());
    Ok(made)
}
