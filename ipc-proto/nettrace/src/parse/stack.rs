//! Stacks, and their instruction pointers.
/// A call stack that events refer to by its id.
///
/// Ids count from 1, and start again at each sequence point. Runtimes give the empty stack an id too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stack<'a> {
    /// The id, as in [`Event::stack_id`](crate::Event::stack_id).
    pub id: u32,
    /// Instruction pointers of the trace's pointer size, the innermost first.
    pub bytes: &'a [u8],
}

/// Returns the instruction pointers of a stack, the innermost first. An incomplete pointer at the end is ignored.
///
/// ```
/// use nettrace::frames;
///
/// assert!(frames(&[1, 0, 0, 0, 2, 0, 0, 0], 4).eq([1, 2]));
/// assert!(frames(&[1, 0, 0, 0, 2, 0, 0, 0], 8).eq([0x2_0000_0001]));
/// ```
pub fn frames(stack: &[u8], pointer_size: u32) -> impl ExactSizeIterator<Item = u64> {
    Frames { bytes: stack, is_narrow: pointer_size == 4 }
}

struct Frames<'a> {
    bytes: &'a [u8],
    /// Whether pointers have four bytes, not eight.
    is_narrow: bool,
}

impl Iterator for Frames<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.is_narrow {
            let (ip, rest) = self.bytes.split_first_chunk::<4>()?;
            self.bytes = rest;
            Some(u32::from_le_bytes(*ip).into())
        } else {
            let (ip, rest) = self.bytes.split_first_chunk::<8>()?;
            self.bytes = rest;
            Some(u64::from_le_bytes(*ip))
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = if self.is_narrow { self.bytes.len() / 4 } else { self.bytes.len() / 8 };
        (len, Some(len))
    }
}

impl ExactSizeIterator for Frames<'_> {}
