//! A row of the table of the runtime's events.
/// An event of the runtime.
pub(crate) struct Row {
    pub(crate) id: u16,
    pub(crate) version: u8,
    pub(crate) name: &'static str,
    /// `u16` count, then fields.
    pub(crate) fields: &'static [u8],
}
