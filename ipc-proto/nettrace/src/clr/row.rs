/// An event of the runtime.
pub(super) struct Row {
    pub(super) id: u16,
    pub(super) version: u8,
    pub(super) name: &'static str,
    /// `u16` count, then fields.
    pub(super) fields: &'static [u8],
}
