use byteorder::{ByteOrder, LittleEndian};

/// A call stack that events refer to by its id.
///
/// Ids count from 1, and start again at each sequence point. Runtimes give the empty stack an id too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stack<'a> {
    /// The id, as in [`Event::stack_id`](super::Event::stack_id).
    pub id: u32,
    /// Instruction pointers of the trace's pointer size, the innermost first.
    pub bytes: &'a [u8],
}

/// Returns the instruction pointers of a stack, the innermost first. An incomplete pointer at the end is ignored.
///
/// ```
/// use ipc_proto::nettrace::frames;
///
/// assert!(frames(&[1, 0, 0, 0, 2, 0, 0, 0], 4).eq([1, 2]));
/// assert!(frames(&[1, 0, 0, 0, 2, 0, 0, 0], 8).eq([0x2_0000_0001]));
/// ```
pub fn frames(stack: &[u8], pointer_size: u32) -> impl Iterator<Item = u64> {
    let (narrow, wide): (&[u8], &[u8]) = if pointer_size == 4 { (stack, &[]) } else { (&[], stack) };
    // One of the two is empty.
    let narrow = narrow
        .chunks_exact(4)
        .filter_map(|ip| ip.first_chunk().map(|ip: &[u8; 4]| LittleEndian::read_u32(ip)));
    let wide =
        wide.chunks_exact(8).filter_map(|ip| ip.first_chunk().map(|ip: &[u8; 8]| LittleEndian::read_u64(ip)));
    narrow.map(u64::from).chain(wide)
}
