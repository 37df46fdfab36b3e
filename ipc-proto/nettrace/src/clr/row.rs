//! A row of the table of the runtime's events.
/// An event of the runtime.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) id: u16,
    pub(crate) version: u8,
    pub(crate) name: &'static str,
    /// The description of the fields: a `u16` count, then the fields in the layout of `table.rs`.
    pub(crate) fields: &'static [u8],
}
