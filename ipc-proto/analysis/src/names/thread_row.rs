//! The rows that state the number and the purpose of a thread.
use ipc_proto::DecodeError;
use ipc_proto::wire::Reader;

/// A thread: ThreadCreated, and the row of the rundown.
///
/// ```text
/// u64 managed id, u64 domain, u32 flags, u32 index, u32 the operating system's id
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadRow {
    pub(crate) flags: u32,
    /// The number that the runtime gives the thread: its `ManagedThreadId`.
    pub(crate) number: u32,
    /// The operating system's id.
    pub(crate) id: u32,
}

impl ThreadRow {
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(payload);
        let [_managed_id, _domain]: [u64; 2] = [r.read()?, r.read()?];
        let [flags, number, id]: [u32; 3] = [r.read()?, r.read()?, r.read()?];
        Ok(Self { flags, number, id })
    }
}
