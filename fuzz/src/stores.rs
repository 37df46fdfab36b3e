//! The property of the stores in the caller's memory: they equal maps and sorted lists.
use std::collections::{HashMap, HashSet};

use arbitrary::{Result, Unstructured};
use nettrace::{
    Backing, Block, BlockKind, Counter, Event, Held, IdMap, LossCounter, Order, Record, SequencePoint, Slot,
    Store, StoreFull, Thread, ThreadSequence, Trace, Version,
};

/// Tables, stores, the order of time and losses, in memory of the caller, equal maps and sorted lists without a limit
/// as long as there is room.
pub fn stores(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let _ = match bytes.last().map_or(0, |byte| byte % 4) {
        0 => table(&mut u),
        1 => store(&mut u),
        2 => order(&mut u),
        _ => loss(&mut u),
    };
}

/// Returns a number: next to others, or one that prefers the same slot of a table as others, or one far below others in
/// the tree of a table, or any number.
fn key(u: &mut Unstructured<'_>) -> Result<u64> {
    /// The inverse of the factor by which a table spreads numbers.
    const GATHER: u64 = 0xf1de_83e1_9937_733d;
    Ok(match u.arbitrary::<u8>()? {
        n @ 0..=99 => u64::from(n % 12),
        n @ 100..=149 => u64::from(n % 8) << 16,
        n @ 150..=213 => (1 << (n - 150) | 1_u64).wrapping_mul(GATHER),
        n @ 214..=229 => 0xffff_ffff_0000_0000 + u64::from(n),
        _ => u.arbitrary()?,
    })
}

fn table(u: &mut Unstructured<'_>) -> Result<()> {
    let mut slots = vec![Slot::default(); u.int_in_range(0..=40)?];
    let room = slots.len();
    let (mut table, mut map) = (IdMap::new(&mut slots), HashMap::new());
    while !u.is_empty() {
        let key = key(u)?;
        match u.int_in_range(0..=9)? {
            0..=4 => {
                let value: u16 = u.arbitrary()?;
                let expected = if map.len() < room || map.contains_key(&key) {
                    Ok(map.insert(key, value))
                } else {
                    Err(StoreFull)
                };
                assert_eq!(table.insert(key, value), expected);
            }
            5..=7 => assert_eq!(table.remove(key), map.remove(&key)),
            8 => {
                let (one, other) = (table.get_mut(key), map.get_mut(&key));
                assert_eq!(one, other);
                if let Some((one, other)) = one.zip(other) {
                    (*one, *other) = (7, 7);
                }
            }
            _ if u.ratio(1, 8)? => {
                table.clear();
                map.clear();
            }
            _ => {}
        }
        assert_eq!((table.len(), table.is_empty()), (map.len(), map.is_empty()));
        assert!(map.iter().all(|(key, value)| table.get(*key) == Some(value)), "lost");
        assert_eq!(table.get(key), map.get(&key));
        let all: HashMap<u64, u16> = table.iter().map(|(key, value)| (key, *value)).collect();
        assert_eq!((all, table.iter().count()), (map.clone(), map.len()));
    }
    Ok(())
}

fn store(u: &mut Unstructured<'_>) -> Result<()> {
    let (mut slots, mut bytes) =
        (vec![Slot::default(); u.int_in_range(0..=20)?], vec![0xa5; u.int_in_range(0..=200)?]);
    let (room, len) = (slots.len(), bytes.len());
    let (mut store, mut map, mut used) = (Store::new(&mut slots, &mut bytes), HashMap::new(), 0);
    while !u.is_empty() {
        let key = key(u)?;
        if u.ratio(1, 32)? {
            store.clear();
            map.clear();
            used = 0;
        }
        let record: &[u8] = u.arbitrary()?;
        let fits = used + record.len() <= len && (map.len() < room || map.contains_key(&key));
        assert_eq!(store.insert(key, record), if fits { Ok(()) } else { Err(StoreFull) });
        if fits {
            used += record.len();
            map.insert(key, record);
        }
        assert!(map.iter().all(|(key, record)| store.get(*key) == Some(record)), "lost");
        assert_eq!(store.get(key), map.get(&key).copied());
    }
    Ok(())
}

/// Events in the order in which they were added. The oldest is popped first. Of events with the same time, the one that
/// was added first is popped first.
#[derive(Default)]
struct Events {
    held: Vec<(u64, u32)>,
    released: Option<u64>,
    newest: u64,
    late: u64,
}

impl Events {
    fn pop(&mut self) -> Option<u32> {
        let released = self.released?;
        let Some((timestamp, item)) =
            self.held.iter().min_by_key(|event| event.0).copied().filter(|e| e.0 <= released)
        else {
            self.released = None;
            return None;
        };
        self.held.retain(|event| *event != (timestamp, item));
        self.late += u64::from(timestamp < self.newest);
        self.newest = self.newest.max(timestamp);
        Some(item)
    }
}

/// Checks an order with slots of the caller, and an order with slots that grow.
fn order(u: &mut Unstructured<'_>) -> Result<()> {
    let mut slots = vec![Held::default(); u.int_in_range(0..=24)?];
    let len = slots.len();
    let (mut order, mut events) = (Order::new(&mut slots), Events::default());
    let (mut growing, mut all) = (Order::new(Vec::new()), Events::default());
    let mut now = 0u64;
    for item in 0..2000u32 {
        if u.is_empty() {
            break;
        }
        let what: u8 = u.arbitrary()?;
        match what {
            0..=159 => {
                now = match what {
                    0..=99 => now.saturating_add(u64::from(what % 4)),
                    100..=149 => now.saturating_sub(u64::from(what % 16)),
                    _ => u.arbitrary()?,
                };
                match order.push(now, item) {
                    Ok(()) => events.held.push((now, item)),
                    // Up to a quarter of the slots may still be those of popped events.
                    Err(back) => assert!(back == item && events.held.len() + len / 4 >= len, "there is room"),
                }
                assert!(growing.push(now, item).is_ok());
                all.held.push((now, item));
            }
            160..=179 => {
                let to = now.saturating_sub(u64::from(what % 8));
                order.release(to);
                growing.release(to);
                events.released = events.released.max(Some(to));
                all.released = all.released.max(Some(to));
            }
            180..=189 => {
                order.release_all();
                growing.release_all();
                (events.released, all.released) = (Some(u64::MAX), Some(u64::MAX));
            }
            _ => {
                assert_eq!(order.pop(), events.pop());
                assert_eq!(growing.pop(), all.pop());
            }
        }
        assert_eq!(
            (order.len(), order.is_empty(), order.late()),
            (events.held.len(), events.held.is_empty(), events.late)
        );
        assert!(order.len() <= len);
        assert_eq!((growing.len(), growing.late()), (all.held.len(), all.late));
        assert!(growing.iter_mut().map(|item| *item).eq(all.held.iter().map(|event| event.1)));
    }
    Ok(())
}

/// The number of the last event of a thread, and its losses.
#[derive(Default, Clone, Copy)]
struct ThreadCount {
    last: u32,
    /// Since the last event of the thread.
    at_end: u64,
    lost: u64,
}

/// The losses according to the documentation of [`LossCounter`], counted with a map.
#[derive(Default)]
struct Losses {
    threads: HashMap<u64, ThreadCount>,
    v6: bool,
    flush: bool,
    lost: u64,
    lost_at_start: u64,
    lost_at_end: u64,
    gaps: u64,
    went_back: u64,
}

impl Losses {
    /// Adds a thread that is not declared and whose first number is `sequence`, after `before` others.
    fn first(&mut self, thread: u64, sequence: u32, before: u32) -> u32 {
        if sequence == 0 && !self.v6 {
            return 0;
        }
        self.lost_at_start += u64::from(if before < 1 << 31 && !self.v6 { before } else { 0 });
        self.counts(thread, sequence, sequence)
    }

    /// Sets the last number of a thread to `sequence`, where `expected` was expected.
    fn counts(&mut self, thread: u64, sequence: u32, expected: u32) -> u32 {
        let counted = self.threads.entry(thread).or_default();
        counted.last = sequence;
        let ahead = sequence.wrapping_sub(expected);
        if ahead >= 1 << 31 {
            self.went_back += 1;
            return 0;
        }
        counted.lost += u64::from(ahead);
        self.lost += u64::from(ahead);
        self.gaps += u64::from(ahead > 0);
        ahead
    }

    fn event(&mut self, thread: u64, sequence: u32) -> u32 {
        if let Some(counted) = self.threads.get_mut(&thread) {
            let at_end = core::mem::take(&mut counted.at_end);
            if self.v6 || sequence != 1 || counted.last == 0 {
                self.lost_at_end -= at_end;
            }
        }
        match self.threads.get(&thread).map(|counted| counted.last.wrapping_add(1)) {
            Some(expected) if self.v6 || sequence != 1 || expected == 1 => {
                self.counts(thread, sequence, expected)
            }
            Some(_) => self.counts(thread, sequence, sequence),
            None => self.first(thread, sequence, sequence.wrapping_sub(1)),
        }
    }

    fn row(&mut self, row: &ThreadSequence) -> u32 {
        let ThreadSequence { thread, sequence } = *row;
        match self.threads.get(&thread).map(|counted| counted.last) {
            Some(expected) => {
                let lost = self.counts(thread, sequence, expected);
                self.threads.entry(thread).or_default().at_end += u64::from(lost);
                self.lost_at_end += u64::from(lost);
                lost
            }
            None => self.first(thread, sequence, sequence),
        }
    }
}

fn counts_of<S: Backing<Slot = Slot<Counter>>>(loss: &LossCounter<S>) -> [u64; 6] {
    let at_end = loss.losses().at_end;
    [loss.lost_after_start(), loss.lost_at_start(), at_end, loss.gaps(), loss.went_back(), loss.untracked()]
}

fn loss(u: &mut Unstructured<'_>) -> Result<()> {
    let mut slots = vec![Slot::default(); 1024];
    let (mut loss, mut growing, mut model) =
        (LossCounter::new(&mut slots), LossCounter::default(), Losses::default());
    let mut few = [Slot::default(); 4];
    let (mut cramped, mut seen) = (LossCounter::new(&mut few), HashSet::new());
    let version = if u.arbitrary()? { Version::V6 } else { Version::V4 };
    model.v6 = version == Version::V6;
    let trace = Trace::new(version);
    let begin = Record::Trace(trace);
    assert_eq!([loss.record(&begin), growing.record(&begin), cramped.record(&begin)], [0; 3]);
    for _ in 0..500 {
        if u.is_empty() {
            break;
        }
        let thread = key(u)?;
        seen.insert(thread);
        let last = model.threads.get(&thread).map_or(0, |counted| counted.last);
        let sequence = match u.arbitrary::<u8>()? {
            n @ 0..=199 => last.wrapping_add(u32::from(n % 4)),
            n @ 200..=229 => last.wrapping_sub(u32::from(n % 8)),
            230..=239 => 1,
            _ => u.arbitrary()?,
        };
        let row = ThreadSequence { thread, sequence };
        let (step, expected) = match u.int_in_range(0..=15)? {
            0 => (Record::ThreadSequence(row), model.row(&row)),
            1 => {
                let lost = if model.threads.contains_key(&thread) { model.row(&row) } else { 0 };
                model.threads.remove(&thread);
                (Record::RemoveThread(row), lost)
            }
            4 if model.v6 => {
                model.threads.entry(thread).or_default();
                (Record::Thread(Thread { index: thread, ..Thread::default() }), 0)
            }
            2 => {
                let point = SequencePoint { timestamp: 0, flags: u.int_in_range(0..=3)?, threads: 1 };
                model.flush = point.flushes_threads();
                (Record::SequencePoint(point), 0)
            }
            3 => {
                if core::mem::take(&mut model.flush) {
                    model.threads.clear();
                    seen.clear();
                }
                (Record::Block(Block { kind: BlockKind::Event, offset: 0, body: 0, len: 0 }), 0)
            }
            _ => {
                let event = Event { capture_thread: thread, sequence, ..Event::default() };
                (Record::Event(event), model.event(thread, sequence))
            }
        };
        assert_eq!((loss.record(&step), growing.record(&step)), (expected, expected), "{step:?}");
        cramped.record(&step);
        let counts = [model.lost, model.lost_at_start, model.lost_at_end, model.gaps, model.went_back, 0];
        assert_eq!((counts_of(&loss), counts_of(&growing)), (counts, counts));
        let threads: HashMap<u64, u64> = loss.threads().collect();
        assert!(threads == model.threads.iter().map(|(thread, counted)| (*thread, counted.lost)).collect());
        assert!(seen.len() <= 4 || cramped.untracked() > 0 || cramped.threads().count() <= 4);
        assert!(
            cramped.untracked() > 0 || cramped.lost_after_start() == loss.lost_after_start(),
            "it does not say what it does not know"
        );
    }
    Ok(())
}
