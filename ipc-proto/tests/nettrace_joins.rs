//! What is built from a stream's records: tables, copies, the order of time.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test says what it expects by unwrapping it"
)]
use std::collections::HashMap;

use ipc_fuzz::RecordedTrace;
use ipc_proto::nettrace::{
    Event, Full, Held, Limits, Loss, LossBuf, Order, OrderBuf, Parser, Slot, Step, Store, Table, Thread,
    Trace, Version,
};
use proptest::prelude::*;

/// What each event was between sequence points: sorted by time, and what came first stays first.
fn by_sorting<'w>(bytes: &'w [u8]) -> Vec<Event<'w>> {
    let mut parser = Parser::new(Limits::default());
    let (mut sorted, mut region) = (Vec::new(), Vec::new());
    loop {
        let step = parser.next(bytes);
        if let Step::Event(event) = step {
            region.push(event);
            continue;
        }
        if matches!(step, Step::SequencePoint(_) | Step::More { .. } | Step::End(_)) {
            region.sort_by_key(|event| event.timestamp);
            sorted.append(&mut region);
        }
        if matches!(step, Step::More { .. } | Step::End(_)) {
            return sorted;
        }
    }
}

/// The same with `slots` slots, releasing what it may as soon as it may if `soon`; and how many came late, and how many
/// were held at most.
fn by_order<'w>(bytes: &'w [u8], slots: usize, soon: bool) -> (Vec<Event<'w>>, u64, usize) {
    let mut slots = vec![Held::default(); slots];
    let mut order = Order::new(&mut slots);
    let mut parser = Parser::new(Limits::default());
    let (mut sorted, mut most) = (Vec::new(), 0);
    loop {
        let step = parser.next(bytes);
        match step {
            Step::Event(event) => {
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
            Step::SequencePoint(_) | Step::More { .. } | Step::End(_) => order.release_all(),
            _ => {}
        }
        sorted.extend(core::iter::from_fn(|| order.pop()));
        if matches!(step, Step::More { .. } | Step::End(_)) {
            assert!(order.is_empty());
            return (sorted, order.late(), most);
        }
    }
}

#[test]
fn traces_in_order() {
    for RecordedTrace { name, bytes, .. } in ipc_fuzz::traces() {
        let want = by_sorting(&bytes);
        let (got, late, most) = by_order(&bytes, 4096, false);
        assert!(got == want && late == 0, "{name} by region");
        let (got, late, soon) = by_order(&bytes, 4096, true);
        // Two of the traces made by hand have events that say they are sorted and are not.
        if name.starts_with("gen-net") {
            assert!(got == want && late == 0, "{name} as soon as it may be");
            assert!(soon <= most);
        }
        // Without room, all comes all the same, and what could not be helped is counted.
        let (mut got, late, _) = by_order(&bytes, 3, true);
        let mut newest = 0;
        let behind = got.iter().filter(|event| {
            let late = event.timestamp < newest;
            newest = newest.max(event.timestamp);
            late
        });
        assert_eq!(late, behind.count() as u64, "{name}");
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
    /// Against a list that is sorted anew every time.
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
                            // Places popped count as taken, if they are less than a quarter.
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

    /// One that owns its slots is another's like, and has as much room as it is given.
    #[test]
    fn owned_order(acts in proptest::collection::vec(act(), 0..200)) {
        let mut slots = vec![Held::default(); 200];
        let mut want = Order::new(&mut slots);
        let mut order = OrderBuf::default();
        prop_assert_eq!(order.capacity(), 0);
        let mut room = 0;
        for (i, act) in acts.into_iter().enumerate() {
            match act {
                Act::Push(time) => {
                    want.push(time, i).unwrap();
                    if let Err(item) = order.push(time, i) {
                        prop_assert_eq!(item, i);
                        order.grow(3);
                        room += 3;
                        prop_assert!(order.capacity() >= room);
                        prop_assert_eq!(order.push(time, i), Ok(()));
                    }
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
            // As they came; to change them, and back again.
            let held: Vec<usize> = order.iter_mut().map(|item| { *item += 1; *item - 1 }).collect();
            order.iter_mut().for_each(|item| *item -= 1);
            prop_assert!(held.is_sorted());
            prop_assert_eq!(held.len(), want.len());
            let popped = |pop: &mut dyn FnMut() -> Option<usize>| core::iter::from_fn(pop).collect::<Vec<_>>();
            prop_assert_eq!(popped(&mut || order.pop()), popped(&mut || want.pop()));
            prop_assert_eq!((order.get().len(), order.get().late()), (want.len(), want.late()));
        }
    }

    /// Against a `HashMap`, with keys that fall on one another.
    #[test]
    fn table_is_a_map(
        acts in proptest::collection::vec((0..5_u8, 0..40_u64, any::<bool>()), 0..300),
        slots in 0..40_usize,
    ) {
        let mut slots = vec![Slot::default(); slots];
        let used = if slots.is_empty() { 0 } else { 1 << slots.len().ilog2() };
        let mut table = Table::new(&mut slots);
        let mut map = HashMap::new();
        for (i, (act, key, wide)) in acts.into_iter().enumerate() {
            let key = if wide { (key << 33) | (key % 4) } else { key };
            match act {
                0..=2 => match table.insert(key, i) {
                    Ok(before) => prop_assert_eq!(before, map.insert(key, i)),
                    Err(Full) => prop_assert!(map.len() == used - used / 8 && !map.contains_key(&key)),
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
        assert_eq!(store.insert(1, &[8]), Err(Full));
        assert_eq!(store.insert(3, &[]), Ok(()));
        assert_eq!(store.insert(4, &[]), Ok(()));
        assert_eq!(store.insert(5, &[]), Err(Full));
        assert_eq!((store.get(1), store.get(2), store.get(5)), (Some(&[9; 6][..]), Some(&[][..]), None));
        store.clear();
        assert_eq!(store.get(1), None);
    }
}

/// The one that owns its slots counts the same, whatever the number of threads.
#[test]
fn owned_loss() {
    for RecordedTrace { name, bytes, .. } in ipc_fuzz::traces() {
        let mut slots = vec![Slot::default(); 1024];
        let (mut want, mut loss) = (Loss::new(&mut slots), LossBuf::default());
        let mut parser = Parser::new(Limits::default());
        loop {
            let step = parser.next(&bytes);
            match &step {
                Step::Event(event) => assert_eq!(loss.event(event), want.event(event), "{name}"),
                Step::End(_) | Step::More { .. } => break,
                step => assert_eq!(loss.step(step), want.step(step), "{name}"),
            }
        }
        let numbers = |loss: &Loss<'_>| (loss.lost(), loss.gaps(), loss.went_back(), loss.untracked());
        assert_eq!(numbers(loss.get()), numbers(&want), "{name}");
    }
    let mut loss = LossBuf::default();
    for sequence in [1, 3] {
        for capture_thread in 0..1000 {
            let event = Event { sequence, capture_thread, ..Event::default() };
            assert_eq!(loss.step(&Step::Event(event)), sequence / 2);
        }
    }
    assert_eq!((loss.get().lost(), loss.get().untracked()), (1000, 0));
}

#[test]
fn a_thread_begins_at_nothing_when_it_is_declared() {
    let mut slots = [Slot::default(); 8];
    let mut loss = Loss::new(&mut slots);
    let thread = |index| Step::Thread(Thread { index, ..Thread::default() });
    loss.step(&Step::Trace(Trace::new(Version::V6)));
    let event = |sequence| Event { sequence, capture_thread: 7, ..Event::default() };
    for (sequence, lost) in [(1, 0), (3, 2)] {
        loss.step(&thread(7));
        assert_eq!(loss.event(&event(sequence)), lost);
    }
    assert_eq!((loss.lost(), loss.went_back()), (2, 0));
}

/// Ids that an honest hash of their low bits would put in one place, in the tens of thousands.
#[test]
fn numbers_far_apart_do_not_get_in_each_others_way() {
    const NUMBERS: u64 = 50_000;
    let mut slots = vec![Slot::default(); 1 << 16];
    let mut table = Table::new(&mut slots);
    for shift in [0, 12, 23, 31, 44] {
        table.clear();
        (1..NUMBERS).for_each(|number| assert_eq!(table.insert(number << shift, number), Ok(None)));
        assert!((1..NUMBERS).all(|number| table.get(number << shift) == Some(&number)));
    }
}
