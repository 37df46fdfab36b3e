use std::collections::{HashMap, HashSet};

use arbitrary::{Result, Unstructured};
use ipc_proto::nettrace::{
    Block, BlockKind, Event, Full, Held, Loss, LossBuf, Order, OrderBuf, SequencePoint, Slot, Step, Store,
    Table, ThreadSequence, Trace, Version,
};

/// What a reader keeps of a trace in memory of its caller is what maps and sorted lists without a limit keep, as long as
/// there is room: tables, copies of records, events in the order of time, and how many were lost.
pub fn stores(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let _ = match bytes.last().map_or(0, |byte| byte % 4) {
        0 => table(&mut u),
        1 => store(&mut u),
        2 => order(&mut u),
        _ => loss(&mut u),
    };
}

/// Numbers that lie side by side, that would like to have the same place, and any.
fn key(u: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match u.arbitrary::<u8>()? {
        n @ 0..=99 => u64::from(n % 12),
        n @ 100..=199 => u64::from(n % 8) << 16,
        n @ 200..=229 => 0xffff_ffff_0000_0000 + u64::from(n),
        _ => u.arbitrary()?,
    })
}

/// How many values so many slots hold: seven eighths of the largest power of two.
fn room(slots: usize) -> usize {
    let used = (1..=slots).rev().find(|n| n.is_power_of_two()).unwrap_or(0);
    used - used / 8
}

fn table(u: &mut Unstructured<'_>) -> Result<()> {
    let mut slots = vec![Slot::default(); u.int_in_range(0..=40)?];
    let room = room(slots.len());
    let (mut table, mut map) = (Table::new(&mut slots), HashMap::new());
    while !u.is_empty() {
        let key = key(u)?;
        match u.int_in_range(0..=9)? {
            0..=4 => {
                let value: u16 = u.arbitrary()?;
                let expected = if map.len() < room || map.contains_key(&key) {
                    Ok(map.insert(key, value))
                } else {
                    Err(Full)
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
    let (room, len) = (room(slots.len()), bytes.len());
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
        assert_eq!(store.insert(key, record), if fits { Ok(()) } else { Err(Full) });
        if fits {
            used += record.len();
            map.insert(key, record);
        }
        assert!(map.iter().all(|(key, record)| store.get(*key) == Some(record)), "lost");
        assert_eq!(store.get(key), map.get(&key).copied());
    }
    Ok(())
}

/// Events as they came, of which the oldest goes first, and of several the one that came first.
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

/// Also one that grows.
fn order(u: &mut Unstructured<'_>) -> Result<()> {
    let mut slots = vec![Held::default(); u.int_in_range(0..=24)?];
    let len = slots.len();
    let (mut order, mut events) = (Order::new(&mut slots), Events::default());
    let (mut growing, mut all) = (OrderBuf::default(), Events::default());
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
                    // One in four slots may be taken by what was popped.
                    Err(back) => assert!(back == item && events.held.len() + len / 4 >= len, "there is room"),
                }
                if growing.push(now, item).is_err() {
                    growing.grow(3);
                    while growing.push(now, item).is_err() {
                        growing.grow(growing.capacity());
                    }
                }
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
        assert_eq!((growing.get().len(), growing.get().late()), (all.held.len(), all.late));
        assert!(growing.iter_mut().map(|item| *item).eq(all.held.iter().map(|event| event.1)));
    }
    Ok(())
}

/// How far a thread has counted and how many of its events were lost.
#[derive(Default, Clone, Copy)]
struct Counted {
    last: u32,
    lost: u64,
}

/// By the documentation of [`Loss`], with a map.
#[derive(Default)]
struct Losses {
    threads: HashMap<u64, Counted>,
    v6: bool,
    flush: bool,
    lost: u64,
    gaps: u64,
    went_back: u64,
}

impl Losses {
    /// The thread has counted to `sequence`, where `expected` should be.
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
        match self.threads.get(&thread).map(|counted| counted.last.wrapping_add(1)) {
            Some(expected) if self.v6 || sequence != 1 || expected == 1 => {
                self.counts(thread, sequence, expected)
            }
            None if self.v6 => self.counts(thread, sequence, 1),
            Some(_) | None => self.counts(thread, sequence, sequence),
        }
    }

    fn row(&mut self, row: &ThreadSequence) -> u32 {
        let ThreadSequence { thread, sequence } = *row;
        match self.threads.get(&thread).map(|counted| counted.last) {
            Some(expected) => self.counts(thread, sequence, expected),
            None => self.counts(thread, sequence, if self.v6 { 0 } else { sequence }),
        }
    }
}

fn loss(u: &mut Unstructured<'_>) -> Result<()> {
    let mut slots = vec![Slot::default(); 1024];
    let (mut loss, mut growing, mut model) = (Loss::new(&mut slots), LossBuf::default(), Losses::default());
    let mut few = [Slot::default(); 4];
    let (mut cramped, mut seen) = (Loss::new(&mut few), HashSet::new());
    let version = if u.arbitrary()? { Version::V6 } else { Version::V4 };
    model.v6 = version == Version::V6;
    let trace = Trace::new(version);
    let begin = Step::Trace(trace);
    assert_eq!([loss.step(&begin), growing.step(&begin), cramped.step(&begin)], [0; 3]);
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
            0 => (Step::ThreadSequence(row), model.row(&row)),
            1 => {
                let lost = model.row(&row);
                model.threads.remove(&thread);
                (Step::RemoveThread(row), lost)
            }
            2 => {
                let point = SequencePoint { timestamp: 0, flags: u.int_in_range(0..=3)?, threads: 1 };
                model.flush = point.flushes_threads();
                (Step::SequencePoint(point), 0)
            }
            3 => {
                if core::mem::take(&mut model.flush) {
                    model.threads.clear();
                    seen.clear();
                }
                (Step::Block(Block { kind: BlockKind::Event, offset: 0, body: 0, len: 0 }), 0)
            }
            _ => {
                let event = Event { capture_thread: thread, sequence, ..Event::default() };
                (Step::Event(event), model.event(thread, sequence))
            }
        };
        assert_eq!((loss.step(&step), growing.step(&step)), (expected, expected), "{step:?}");
        cramped.step(&step);
        for loss in [&loss, growing.get()] {
            assert_eq!(
                (loss.lost(), loss.gaps(), loss.went_back()),
                (model.lost, model.gaps, model.went_back)
            );
            assert_eq!(loss.untracked(), 0);
        }
        let threads: HashMap<u64, u64> = loss.threads().collect();
        assert!(threads == model.threads.iter().map(|(thread, counted)| (*thread, counted.lost)).collect());
        assert!(seen.len() <= 4 || cramped.untracked() > 0 || cramped.threads().count() <= 4);
        assert!(
            cramped.untracked() > 0 || cramped.lost() == loss.lost(),
            "it does not say what it does not know"
        );
    }
    Ok(())
}
