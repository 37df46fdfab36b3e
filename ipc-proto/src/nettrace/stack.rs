/// A call stack that events point to by its id.
///
/// Ids count from 1 and begin anew at every sequence point. Runtimes intern the empty stack too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stack<'a> {
    /// What [`Event::stack_id`](super::Event::stack_id) says.
    pub id: u32,
    /// Instruction pointers of the trace's pointer size, the innermost first.
    pub bytes: &'a [u8],
}

/// The instruction pointers of a stack, the innermost first; what is left over at the end is no pointer.
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
    let narrow = narrow.chunks_exact(4).filter_map(|ip| ip.first_chunk().copied().map(u32::from_le_bytes));
    let wide = wide.chunks_exact(8).filter_map(|ip| ip.first_chunk().copied().map(u64::from_le_bytes));
    narrow.map(u64::from).chain(wide)
}
