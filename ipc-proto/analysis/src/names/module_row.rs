//! The rows of modules.
use ipc_proto::DecodeError;
use ipc_proto::wire::Reader;
use nettrace::Str;

use crate::event::row_text;

/// A module: ModuleLoad, ModuleUnload, and both rows of the rundown.
///
/// ```text
/// u64 module, u64 assembly, u32 flags, u32 0, path, path of the precompiled image               strings UTF-16 and NUL
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModuleRow<'a> {
    pub(crate) module: u64,
    pub(crate) path: Str<'a>,
    pub(crate) native_path: Str<'a>,
}

impl<'a> ModuleRow<'a> {
    pub(crate) fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(payload);
        let [module, _assembly]: [u64; 2] = [r.read()?, r.read()?];
        let [_flags, _reserved]: [u32; 2] = [r.read()?, r.read()?];
        Ok(Self { module, path: row_text(&mut r), native_path: row_text(&mut r) })
    }
}
