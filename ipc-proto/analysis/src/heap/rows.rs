//! The layouts of the events of a heap snapshot.
use ipc_proto::DecodeError;
use ipc_proto::wire::{Reader, to_usize};
use nettrace::Str;

use crate::event::{row_pointer, row_text};

/// The head of an event with elements: `u32 index` in some of them, and `u32 count, u16 runtime`.
#[derive(Debug, Clone, Copy)]
pub(super) struct BulkHead {
    /// The number of events of this kind before this one in the snapshot.
    pub(super) index: Option<u32>,
    pub(super) count: u32,
}

impl BulkHead {
    pub(super) fn read(r: &mut Reader<'_>, is_indexed: bool) -> Result<Self, DecodeError> {
        let index = if is_indexed { Some(r.read()?) } else { None };
        let head = Self { index, count: r.read()? };
        r.bytes(2)?;
        Ok(head)
    }

    /// Reads the head of GCBulkRootStaticVar: `u32 count, u64 domain, u16 runtime`.
    pub(super) fn read_static(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let head = Self { index: None, count: r.read()? };
        r.bytes(10)?;
        Ok(head)
    }

    /// Passes the elements to `take`, and returns how many of them the payload does not have.
    pub(super) fn each<'a>(
        self,
        r: &mut Reader<'a>,
        mut take: impl FnMut(&mut Reader<'a>) -> Option<()>,
    ) -> u64 {
        let mut left = self.count;
        while left > 0 && !r.rest().is_empty() && take(r).is_some() {
            left = left.saturating_sub(1);
        }
        left.into()
    }
}

/// An element of BulkType.
///
/// ```text
/// u64 type, u64 module, u32 name id, u32 flags, u8 element type, UTF-16 name and NUL, u32 n, n × u64 type parameter
/// ```
#[derive(Debug, Clone, Copy)]
pub(super) struct TypeElement<'a> {
    pub(super) id: u64,
    pub(super) module: u64,
    pub(super) name_id: u32,
    pub(super) flags: u32,
    pub(super) name: Str<'a>,
}

impl<'a> TypeElement<'a> {
    pub(super) fn read(r: &mut Reader<'a>) -> Option<Self> {
        let [id, module]: [u64; 2] = [r.read().ok()?, r.read().ok()?];
        let [name_id, flags]: [u32; 2] = [r.read().ok()?, r.read().ok()?];
        r.bytes(1).ok()?;
        let name = row_text(r);
        let parameters: u32 = r.read().ok()?;
        r.bytes(to_usize(parameters).checked_mul(8)?).ok()?;
        Some(Self { id, module, name_id, flags, name })
    }
}

/// An element of GCBulkNode: `pointer address, u64 size, u64 type, u64 number of edges`.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeElement {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) type_id: u64,
    pub(super) edges: u64,
}

impl NodeElement {
    #[inline]
    pub(super) fn read(r: &mut Reader<'_>, pointer: usize) -> Option<Self> {
        let address = row_pointer(r, pointer)?;
        let [size, type_id, edges]: [u64; 3] = [r.read().ok()?, r.read().ok()?, r.read().ok()?];
        Some(Self { address, size, type_id, edges })
    }
}

/// Reads pointers, which the program's pointer size makes 4 or 8 bytes.
pub(super) fn pointers<const N: usize>(r: &mut Reader<'_>, pointer: usize) -> Option<[u64; N]> {
    let mut pointers = [0; N];
    for address in &mut pointers {
        *address = row_pointer(r, pointer)?;
    }
    Some(pointers)
}
