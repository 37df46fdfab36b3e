//! The row of the start of a compilation.
use ipc_proto::DecodeError;
use ipc_proto::wire::Reader;

use crate::names::MethodNames;

/// The start of a compilation: MethodJittingStarted.
///
/// ```text
/// u64 method, u64 module, u32 token, u32 size of the IL, names
/// ```
#[derive(Debug, Clone, Copy)]
pub(super) struct JittingRow<'a> {
    pub(super) method: u64,
    pub(super) module: u64,
    pub(super) il_size: u32,
    pub(super) names: MethodNames<'a>,
}

impl<'a> JittingRow<'a> {
    pub(super) fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(payload);
        let [method, module]: [u64; 2] = [r.read()?, r.read()?];
        let [_token, il_size]: [u32; 2] = [r.read()?, r.read()?];
        Ok(Self { method, module, il_size, names: MethodNames::read(&mut r) })
    }
}
