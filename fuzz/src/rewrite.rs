//! The property of a rewrite: the remaining events and the number of lost ones are unchanged.
use arbitrary::Unstructured;
use nettrace::{
    End, EventSelector, Limits, Parser, Record, Rewrite, RewriteCounts, RewriteOptions, RewriteSpace, Slot,
    TimeFilter, Version,
};

use crate::made_up::{MadeUp, made_up};
use crate::reading::read;
use crate::work::parse;

/// Checks that a rewrite keeps the remaining events unchanged and reports the same number of lost events, for each
/// filter and version. A rewrite of arbitrary bytes writes a complete stream.
pub fn rewrite(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    for from in [Version::V4, Version::V6] {
        let choice = u.arbitrary().unwrap_or_default();
        let made = made_up(&mut u, from, true, 120).unwrap_or_default();
        rewrite_made_up(&made, from, choice);
    }
    rewrite_any(bytes);
}

/// Checks that a rewrite of arbitrary bytes writes a complete stream.
pub(crate) fn rewrite_any(bytes: &[u8]) {
    for version in [None, Some(Version::V4), Some(Version::V6)] {
        let options = RewriteOptions { version, strip_command_line: true, ..RewriteOptions::default() };
        if let Some((result, counts)) = rewritten(bytes, options) {
            let seen = read(&result);
            assert!(result.is_empty() || seen.end == End::Complete, "{}", seen.end);
            assert_eq!(seen.events.len() as u64, counts.kept);
        }
    }
}

fn rewrite_made_up(made: &MadeUp, from: Version, choice: u8) {
    let only = [EventSelector { provider: "p", event_id: Some(u32::from(choice & 3)), event_name: None }];
    let filter = choice & 4 != 0;
    let to = [None, Some(Version::V4), Some(Version::V6), None][usize::from(choice >> 3 & 3)];
    let only = if filter { &only[..] } else { &[] };
    let options = RewriteOptions { only, version: to, ..RewriteOptions::default() };
    if choice & 0x20 != 0 {
        return rewrite_by_time(&made.stream, options);
    }
    let to = to.unwrap_or(from);
    let source = read(&made.stream);
    let (result, counts) = rewritten(&made.stream, options).expect("there is room");
    let seen = read(&result);
    assert_eq!(seen.end, End::Complete);
    assert_eq!(seen.lost, source.lost, "lost, {from} to {to}, filter {filter}");
    assert_eq!(seen.events.len() as u64, counts.kept);
    assert_eq!(counts.events, source.events.len() as u64);
    if !filter {
        assert_eq!(counts.kept, counts.events);
        if to == from {
            assert!(
                seen.events == source.events && seen.others == source.others,
                "a rewrite without a filter changed the stream"
            );
        }
    }
    // A rewrite changes neither the metadata id nor the time nor the payload of an event that it keeps.
    let want: Vec<_> =
        made.plain.iter().filter(|event| !filter || event.0 == u32::from(choice & 3) + 1).cloned().collect();
    assert!(seen.plain == want, "{from} to {to}, filter {filter}: other events than the selected ones");
}

/// Checks a rewrite of the events between two times. Skipping the blocks of other times does not change its events, and
/// it reports no losses in the gaps.
fn rewrite_by_time(stream: &[u8], options: RewriteOptions<'_>) {
    let mut times = Vec::new();
    parse(stream, |record, _| {
        if let Record::Event(event) = record {
            times.push(event.timestamp);
        }
    });
    times.sort_unstable();
    let [from, to] = [1, 2].map(|third| times.get(times.len() / 3 * third).copied().unwrap_or_default());
    let options = RewriteOptions { from, to, ..options };
    let (whole, whole_counts) = rewritten(stream, options).expect("there is room");
    let mut filter = TimeFilter::new(from, to);
    let (some, some_counts) = rewritten_with(stream, options, &mut filter).expect("there is room");
    let (whole, some) = (read(&whole), read(&some));
    assert_eq!((whole.end, some.end), (End::Complete, End::Complete));
    assert!(whole.plain == some.plain, "skipped blocks changed the other events");
    assert_eq!(whole_counts.kept, some_counts.kept);
    assert!(some.lost <= whole.lost, "{} lost instead of {}", some.lost, whole.lost);
    assert!(!filter.is_contradicted(), "the writer states wrong times");
}

fn rewritten(bytes: &[u8], options: RewriteOptions<'_>) -> Option<(Vec<u8>, RewriteCounts)> {
    rewritten_with(bytes, options, &mut TimeFilter::new(0, u64::MAX))
}

/// Rewrites the blocks that the filter does not skip.
fn rewritten_with(
    bytes: &[u8],
    options: RewriteOptions<'_>,
    times: &mut TimeFilter,
) -> Option<(Vec<u8>, RewriteCounts)> {
    let (mut metadata, mut threads) = (vec![Slot::default(); 128], vec![Slot::default(); 128]);
    let (mut buffer, mut labels) = (vec![0xa5; 0x4000], vec![Slot::default(); 128]);
    let space = RewriteSpace {
        buffer: &mut buffer,
        metadata: &mut metadata,
        threads: &mut threads,
        labels: &mut labels,
    };
    let mut rewrite = Rewrite::new(options, space).expect("a version that can be written");
    let (mut parser, mut result) = (Parser::new(Limits::default()), Vec::new());
    loop {
        let record = match parser.next(bytes) {
            // The stream can be complete although an object of an unknown name could continue.
            Record::More { .. } => Record::End(parser.finish(bytes)),
            record => record,
        };
        result.extend_from_slice(&rewrite.record(&record).ok()?);
        if times.record(&record) {
            parser.skip_block();
            rewrite.resync();
        }
        if let Record::End(_) = record {
            break;
        }
    }
    let (counts, mut end) = (*rewrite.counts(), rewrite.finish());
    while let Some(bytes) = end.next_bytes().ok()? {
        assert!(!bytes.is_empty(), "an empty slice to write");
        result.extend_from_slice(&bytes);
    }
    Some((result, counts))
}
