//! Tables, stores, losses and the order of time, over recorded traces and random input.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test asserts what it expects"
)]
use std::collections::HashMap;

use ipc_proto::wire::steps;
use ipc_testdata::RecordedTrace;
use nettrace::{
    Block, BlockKind, Event, Held, IdMap, Limits, LossCounter, Order, Parser, Record, SequencePoint, Slot,
    Store, StoreFull, Thread, ThreadSequence, Trace, Version,
};
use proptest::prelude::*;

/// Returns the events between sequence points in a stable order of time.
fn by_sorting<'w>(bytes: &'w [u8]) -> Vec<Event<'w>> {
    let mut parser = Parser::new(Limits::default());
    let (mut sorted, mut region) = (Vec::new(), Vec::new());
    loop {
        let step = parser.next(bytes);
        if let Record::Event(event) = step {
            region.push(event);
            continue;
        }
        if matches!(step, Record::SequencePoint(_) | Record::More { .. } | Record::End(_)) {
            region.sort_by_key(|event| event.timestamp);
            sorted.append(&mut region);
        }
        if matches!(step, Record::More { .. } | Record::End(_)) {
            return sorted;
        }
    }
}

/// Returns the events in the order of an [`Order`] with `slots` slots, which is released as soon as possible if `soon`;
/// how many were late; and how many waited at most.
fn by_order<'w>(bytes: &'w [u8], slots: usize, soon: bool) -> (Vec<Event<'w>>, u64, usize) {
    let mut slots = vec![Held::default(); slots];
    let mut order = Order::new(&mut slots);
    let mut parser = Parser::new(Limits::default());
    let (mut sorted, mut most) = (Vec::new(), 0);
    loop {
        let step = parser.next(bytes);
        match step {
            Record::Event(event) => {
                if let Err(event) = order.push(event.timestamp, event) {
                    order.release_all();
                    sorted.extend(core::iter::from_fn(|| order.pop()));
                    order.push(event.timestamp, event).unwrap();
                }
                most = most.max(order.len());
                if soon && event.sorted {
                    order.release(event.timestamp);
                }
            }
            Record::SequencePoint(_) | Record::More { .. } | Record::End(_) => order.release_all(),
            _ => {}
        }
        sorted.extend(core::iter::from_fn(|| order.pop()));
        if matches!(step, Record::More { .. } | Record::End(_)) {
            assert!(order.is_empty());
            return (sorted, order.late(), most);
        }
    }
}

#[test]
fn traces_in_order() {
    for RecordedTrace { name, bytes, .. } in ipc_testdata::TRACES {
        let want = by_sorting(bytes);
        let (got, late, most) = by_order(bytes, 4096, false);
        assert!(got == want && late == 0, "{name} by region");
        let (got, late, soon) = by_order(bytes, 4096, true);
        // Two of the traces made by hand mark events as sorted that are not.
        if name.starts_with("gen-net") {
            assert!(got == want && late == 0, "{name} released early");
            assert!(soon <= most);
        }
        // Without room, all events are returned, and those out of order are counted as late.
        let (mut got, late, _) = by_order(bytes, 3, true);
        let mut newest = 0;
        let later = got.iter().filter(|event| {
            let late = event.timestamp < newest;
            newest = newest.max(event.timestamp);
            late
        });
        assert_eq!(late, later.count() as u64, "{name}");
        let mut want = want;
        for events in [&mut got, &mut want] {
            events.sort_by_key(|event| (event.timestamp, event.capture_thread, event.sequence));
        }
        assert!(got == want, "{name} with three slots");
    }
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Push(u64),
    Release(u64),
    ReleaseAll,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => (0..60_u64).prop_map(Act::Push),
        2 => (0..60_u64).prop_map(Act::Release),
        1 => Just(Act::ReleaseAll),
    ]
}

proptest! {
    /// An order returns the same events as a list that is sorted for each removal.
    #[test]
    fn order_is_a_stable_sort(acts in proptest::collection::vec(act(), 0..200), slots in 1..40_usize) {
        let mut slots = vec![Held::default(); slots];
        let room = slots.len();
        let mut order = Order::new(&mut slots);
        let mut list: Vec<(u64, usize)> = Vec::new();
        for (i, act) in acts.into_iter().enumerate() {
            let released = match act {
                Act::Push(time) => {
                    match order.push(time, (time, i)) {
                        Ok(()) => list.push((time, i)),
                        Err(item) => {
                            prop_assert_eq!(item, (time, i));
                            // Slots of popped events are reused if they are at least a quarter of all slots.
                            let held = list.len();
                            prop_assert!(held == room || held > room - room / 4, "{held} of {room}");
                        }
                    }
                    None
                }
                Act::Release(time) => {
                    order.release(time);
                    Some(time)
                }
                Act::ReleaseAll => {
                    order.release_all();
                    Some(u64::MAX)
                }
            };
            list.sort();
            let popped: Vec<_> = core::iter::from_fn(|| order.pop()).collect();
            let (want, held) = list.iter().partition(|item| released.is_some_and(|to| item.0 <= to));
            list = held;
            prop_assert_eq!(popped, want);
            prop_assert_eq!((order.len(), order.is_empty()), (list.len(), list.is_empty()));
        }
    }

    /// An order whose memory grows returns the same events.
    #[test]
    fn owned_order(acts in proptest::collection::vec(act(), 0..200)) {
        let mut slots = vec![Held::default(); 200];
        let mut want = Order::new(&mut slots);
        let mut order = Order::default();
        for (i, act) in acts.into_iter().enumerate() {
            match act {
                Act::Push(time) => {
                    want.push(time, i).unwrap();
                    order.push(time, i).unwrap();
                }
                Act::Release(time) => {
                    want.release(time);
                    order.release(time);
                }
                Act::ReleaseAll => {
                    want.release_all();
                    order.release_all();
                }
            }
            // `iter_mut` visits the events in the order in which they were added.
            let held: Vec<usize> = order.iter_mut().map(|item| { *item += 1; *item - 1 }).collect();
            order.iter_mut().for_each(|item| *item -= 1);
            prop_assert!(held.is_sorted());
            prop_assert_eq!(held.len(), want.len());
            let popped = |pop: &mut dyn FnMut() -> Option<usize>| core::iter::from_fn(pop).collect::<Vec<_>>();
            prop_assert_eq!(popped(&mut || order.pop()), popped(&mut || want.pop()));
            prop_assert_eq!((order.len(), order.late()), (want.len(), want.late()));
        }
    }

    /// A map has the values of a `HashMap`, with keys that collide.
    #[test]
    fn table_is_a_map(
        acts in proptest::collection::vec((0..5_u8, 0..40_u64, any::<bool>()), 0..300),
        slots in 0..40_usize,
    ) {
        let room = slots;
        let mut slots = vec![Slot::default(); slots];
        let mut table = IdMap::new(&mut slots);
        let mut map = HashMap::new();
        for (i, (act, key, wide)) in acts.into_iter().enumerate() {
            let key = if wide { (key << 33) | (key % 4) } else { key };
            match act {
                0..=2 => match table.insert(key, i) {
                    Ok(before) => prop_assert_eq!(before, map.insert(key, i)),
                    Err(StoreFull) => prop_assert!(map.len() == room && !map.contains_key(&key)),
                },
                3 => prop_assert_eq!(table.remove(key), map.remove(&key)),
                _ if key == 0 => {
                    table.clear();
                    map.clear();
                }
                _ => {}
            }
            prop_assert_eq!((table.len(), table.is_empty()), (map.len(), map.is_empty()));
            for key in (0..40).chain((0..40).map(|key| (key << 33) | (key % 4))) {
                prop_assert_eq!(table.get(key), map.get(&key));
                prop_assert_eq!(table.get_mut(key).copied(), map.get(&key).copied());
            }
            let mut all: Vec<_> = table.iter().map(|(key, value)| (key, *value)).collect();
            all.sort_unstable();
            let mut want: Vec<_> = map.iter().map(|(key, value)| (*key, *value)).collect();
            want.sort_unstable();
            prop_assert_eq!(all, want);
        }
    }
}

#[test]
fn store() {
    let (mut slots, mut bytes) = ([Slot::default(); 4], [0; 10]);
    let mut store = Store::new(&mut slots, &mut bytes);
    for round in 0..3 {
        assert_eq!(store.insert(1, &[round; 4]), Ok(()));
        assert_eq!(store.insert(2, &[]), Ok(()));
        assert_eq!(store.insert(1, &[9; 6]), Ok(()));
        assert_eq!(store.insert(1, &[8]), Err(StoreFull));
        assert_eq!(store.insert(3, &[]), Ok(()));
        assert_eq!(store.insert(4, &[]), Ok(()));
        assert_eq!(store.insert(5, &[]), Err(StoreFull));
        assert_eq!((store.get(1), store.get(2), store.get(5)), (Some(&[9; 6][..]), Some(&[][..]), None));
        store.clear();
        assert_eq!(store.get(1), None);
    }
}

/// A counter whose memory grows counts the same losses, for any number of threads.
#[test]
fn owned_loss() {
    for RecordedTrace { name, bytes, .. } in ipc_testdata::TRACES {
        let mut slots = vec![Slot::default(); 1024];
        let (mut want, mut loss) = (LossCounter::new(&mut slots), LossCounter::default());
        let mut parser = Parser::new(Limits::default());
        loop {
            let step = parser.next(bytes);
            match &step {
                Record::Event(event) => assert_eq!(loss.event(event), want.event(event), "{name}"),
                Record::End(_) | Record::More { .. } => break,
                step => assert_eq!(loss.record(step), want.record(step), "{name}"),
            }
        }
        let numbers = [loss.lost_after_start(), loss.gaps(), loss.went_back(), loss.untracked()];
        assert_eq!(
            numbers,
            [want.lost_after_start(), want.gaps(), want.went_back(), want.untracked()],
            "{name}"
        );
        assert!(loss.threads().eq(want.threads()), "{name}");
    }
    let mut loss = LossCounter::default();
    for sequence in [1, 3] {
        for capture_thread in 0..1000 {
            let event = Event { sequence, capture_thread, ..Event::default() };
            assert_eq!(loss.record(&Record::Event(event)), sequence / 2);
        }
    }
    assert_eq!((loss.lost_after_start(), loss.untracked()), (1000, 0));
}

#[test]
fn a_declared_thread_starts_at_zero() {
    let mut slots = [Slot::default(); 8];
    let mut loss = LossCounter::new(&mut slots);
    let thread = |index| Record::Thread(Thread { index, ..Thread::default() });
    loss.record(&Record::Trace(Trace::new(Version::V6)));
    let event = |sequence| Event { sequence, capture_thread: 7, ..Event::default() };
    let row = ThreadSequence { thread: 7, sequence: 3 };
    for (sequence, lost) in [(1, 0), (3, 2)] {
        loss.record(&thread(7));
        assert_eq!(loss.event(&event(sequence)), lost);
        loss.record(&Record::RemoveThread(ThreadSequence { sequence, ..row }));
    }
    assert_eq!((loss.lost_after_start(), loss.went_back()), (2, 0));
}

/// Without a valid declaration, the numbers before the first one of a thread are unknown: they are not a loss.
#[test]
fn what_is_not_declared_is_not_lost() {
    let lost = |records: &[Record<'_>]| {
        let mut loss = LossCounter::default();
        loss.record(&Record::Trace(Trace::new(Version::V6)));
        records.iter().for_each(|record| _ = loss.record(record));
        (loss.lost_after_start(), loss.lost_at_start())
    };
    let thread = Record::Thread(Thread { index: 7, ..Thread::default() });
    let event = |sequence| Record::Event(Event { sequence, capture_thread: 7, ..Event::default() });
    let removed = |sequence| Record::RemoveThread(ThreadSequence { thread: 7, sequence });
    let row = |sequence| Record::ThreadSequence(ThreadSequence { thread: 7, sequence });
    // Never declared: only the gap between two events is a loss.
    assert_eq!(lost(&[event(50), event(52)]), (1, 0));
    assert_eq!(lost(&[row(50), event(52)]), (1, 0));
    // Removed, and removed twice.
    assert_eq!(lost(&[thread, event(1), removed(2), event(40), removed(40), removed(40)]), (1, 0));
    // Declared twice: the numbers continue or start again.
    assert_eq!(lost(&[thread, event(1), event(2), thread, event(3), thread, event(1), event(2)]), (0, 0));
}

/// Losses at the start of a thread, between its events, and after its last one.
#[test]
fn kinds_of_losses() {
    let of = |thread, sequence, timestamp| {
        Record::Event(Event { sequence, capture_thread: thread, timestamp, ..Event::default() })
    };
    let event = |sequence| of(7, sequence, 0);
    let row_of = |thread, sequence| Record::ThreadSequence(ThreadSequence { thread, sequence });
    let row = |sequence| row_of(7, sequence);
    let block = Record::Block(Block { kind: BlockKind::Event, offset: 0, body: 0, len: 0 });
    let point = Record::SequencePoint(SequencePoint::default());
    for (records, lost) in [
        (&[block, event(1), event(2)][..], (0, 0, 0)),
        (&[block, event(2), event(4), event(6)], (3, 1, 0)),
        (&[block, event(1), event(5)], (3, 0, 0)),
        (&[block, event(1), point, row(4)], (3, 0, 3)),
        // The thread has not ended with the first sequence point.
        (&[block, event(1), point, row(4), block, event(5), point, row(6)], (4, 0, 1)),
        // Nor has a thread of which the sequence point has counted an event before it arrives.
        (&[block, event(1), point, row(4), block, event(3)], (3, 0, 0)),
        // Events of other threads follow.
        (&[block, event(1), of(8, 1, 0), point, row(4), row_of(8, 1), block, of(8, 2, 0)], (3, 0, 3)),
        // Two sequence points show parts of the losses.
        (&[block, event(1), point, row(4), point, row(6)], (5, 0, 5)),
        (&[block, event(1), point, row(4), point, row(6), block, event(8)], (6, 0, 0)),
        // A new thread has the id of the one that has ended.
        (&[block, event(1), point, row(4), block, event(1), event(2)], (3, 0, 3)),
        (&[block, event(1), event(3), point, row(4), block, event(1), event(4)], (4, 0, 1)),
    ] {
        let mut loss = LossCounter::default();
        records.iter().for_each(|record| _ = loss.record(record));
        let losses = loss.losses();
        assert_eq!((losses.lost, losses.at_start, losses.at_end), lost, "{records:?}");
    }
    let point = |timestamp| Record::SequencePoint(SequencePoint { timestamp, ..SequencePoint::default() });
    for (records, threads, times) in [
        (&[of(7, 1, 10), of(8, 1, 11), of(7, 2, 12)][..], 0, None),
        (&[of(7, 1, 10), of(8, 1, 11), of(7, 3, 12)], 1, Some((12, 12))),
        (
            &[of(7, 1, 10), of(7, 3, 12), of(7, 5, 14), of(8, 1, 15), point(20), row_of(8, 3)],
            2,
            Some((12, 20)),
        ),
        // The start of a thread has a time, but is not a loss after its first event.
        (&[of(7, 3, 10), of(7, 4, 12)], 0, Some((10, 10))),
    ] {
        let mut loss = LossCounter::default();
        records.iter().for_each(|record| _ = loss.record(record));
        let losses = loss.losses();
        assert_eq!((losses.threads, losses.times), (threads, times), "{records:?}");
    }
}

/// Thousands of ids, chosen so that many prefer one slot or are in one branch of the tree: each call takes at most
/// `LIMIT` steps.
#[test]
fn calls_of_a_table_have_a_limit() {
    const NUMBERS: u64 = 10_000;
    /// A search visits each level at most once. A removal searches twice, and goes down to a leaf.
    const LIMIT: u64 = 3 * 65 + 2;
    /// The inverse of the factor with which a map spreads ids.
    const GATHER: u64 = 0xf1de_83e1_9937_733d;
    let equal_low_bits = |shift: u32| move |n: u64| n << shift;
    let equal_slots = |n: u64| (5 << 33 | n).wrapping_mul(GATHER);
    // Each level has one value at first: 1 << 63, 1 << 62 and so on.
    let one_branch = |n: u64| if n < 64 { 1 << (63 - n) } else { n << 7 | 1 };
    let numbers: [&dyn Fn(u64) -> u64; 7] = [
        &equal_low_bits(0),
        &equal_low_bits(12),
        &equal_low_bits(23),
        &equal_low_bits(31),
        &equal_low_bits(44),
        &equal_slots,
        &|n| one_branch(n).wrapping_mul(GATHER),
    ];
    let mut slots = vec![Slot::default(); 1 << 14];
    let mut table = IdMap::new(&mut slots);
    let mut most = 0;
    for number in numbers {
        table.clear();
        let mut steps_of = |call: &mut dyn FnMut(&mut Map<'_>)| {
            let before = steps::counted();
            call(&mut table);
            steps::counted() - before
        };
        let mut call = |of: &mut dyn FnMut(&mut Map<'_>)| most = most.max(steps_of(of));
        for n in 1..NUMBERS {
            call(&mut |table| assert_eq!(table.insert(number(n), n), Ok(None)));
        }
        for n in 1..NUMBERS {
            call(&mut |table| assert_eq!(table.get(number(n)), Some(&n)));
            call(&mut |table| assert_eq!(table.get_mut(number(n)), Some(&mut { n })));
        }
        // The first removal may add all values to the tree.
        let first = steps_of(&mut |table| assert_eq!(table.remove(number(1)), Some(1)));
        assert!(first <= LIMIT * NUMBERS, "{first}");
        let mut call = |of: &mut dyn FnMut(&mut Map<'_>)| most = most.max(steps_of(of));
        for n in 2..NUMBERS {
            call(&mut |table| assert_eq!(table.remove(number(n)), Some(n)));
            call(&mut |table| assert_eq!(table.get(number(n)), None));
        }
        assert!(table.is_empty());
    }
    assert!((65..=LIMIT).contains(&most), "{most}");
}

type Map<'s> = IdMap<&'s mut Vec<Slot<u64>>>;

/// The time of an iteration depends on the values, not on the slots.
#[test]
fn vacant_slots_take_no_time() {
    let mut slots = vec![Slot::default(); 1 << 14];
    let mut table = IdMap::new(&mut slots);
    (0..1000).for_each(|n| assert_eq!(table.insert(n, n), Ok(None)));
    table.clear();
    assert_eq!(table.insert(7, 8), Ok(None));
    let before = steps::counted();
    assert!(table.iter().eq([(7, &8)]));
    assert_eq!(steps::counted() - before, 1);
}
