//! Loads of bytes into the cache, ahead of the parser.
use ipc_proto::wire::steps;

/// The number of bytes of a block of events to load into the cache at a time. If the number were larger, the last bytes
/// would evict the first ones before the parser reads them.
pub(crate) const AHEAD: usize = 8 << 10;

/// Loads bytes into the cache. The position of a record depends on the record before it, so without the prefetch each
/// record would wait for memory on its own.
pub(crate) fn prefetch(block: &[u8]) {
    steps::count(block.len() / 64);
    let lines = block.chunks(64).filter_map(|line| line.first());
    core::hint::black_box(lines.fold(0u8, |sum, byte| sum ^ byte));
}
