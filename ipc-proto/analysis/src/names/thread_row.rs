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
    flags: u32,
    /// The number that the runtime gives the thread: its `ManagedThreadId`.
    pub(crate) number: u32,
    /// The operating system's id.
    pub(crate) id: u32,
}

impl ThreadRow {
    pub(crate) const FINALIZER: &str = ".NET Finalizer";

    pub(crate) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(payload);
        let [_managed_id, _domain]: [u64; 2] = [r.read()?, r.read()?];
        let [flags, number, id]: [u32; 3] = [r.read()?, r.read()?, r.read()?];
        Ok(Self { flags, number, id })
    }

    /// Returns the purpose of the thread in the runtime; empty if it has none.
    pub(crate) const fn name(&self) -> &'static str {
        match self.flags {
            flags if flags & 2 != 0 => Self::FINALIZER,
            flags if flags & 4 != 0 => ".NET ThreadPool",
            _ => "",
        }
    }
}
