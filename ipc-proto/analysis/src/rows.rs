//! Decoders of the rows (events) that name methods, modules and threads. Their layouts are fixed: later versions only
//! append fields, so that a decoder of the first fields reads every version.
use ipc_proto::DecodeError;
use ipc_proto::wire::Reader;
use nettrace::Str;

/// A method's code: MethodLoadVerbose, MethodUnloadVerbose, and both rows of the rundown.
///
/// ```text
/// u64 method, u64 module, u64 start, u32 size, u32 token, u32 flags, type, name, signature      strings UTF-16 and NUL
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct MethodRow<'a> {
    pub(crate) module: u64,
    pub(crate) start: u64,
    pub(crate) size: u32,
    pub(crate) type_name: Str<'a>,
    pub(crate) name: Str<'a>,
    pub(crate) signature: Str<'a>,
}

impl<'a> MethodRow<'a> {
    pub(crate) fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(payload);
        let [_method, module, start]: [u64; 3] = [r.read()?, r.read()?, r.read()?];
        let [size, _token, _flags]: [u32; 3] = [r.read()?, r.read()?, r.read()?];
        let [type_name, name, signature] = [text(&mut r), text(&mut r), text(&mut r)];
        Ok(Self { module, start, size, type_name, name, signature })
    }
}

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
        Ok(Self { module, path: text(&mut r), native_path: text(&mut r) })
    }
}

/// A thread: ThreadCreated, and the row of the rundown.
///
/// ```text
/// u64 managed id, u64 domain, u32 flags, u32 index, u32 the operating system's id
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadRow {
    pub(crate) flags: u32,
    pub(crate) id: u32,
}

impl ThreadRow {
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(payload);
        let [_managed_id, _domain]: [u64; 2] = [r.read()?, r.read()?];
        let [flags, _index, id]: [u32; 3] = [r.read()?, r.read()?, r.read()?];
        Ok(Self { flags, id })
    }
}

/// Reads UTF-16 up to its NUL. A string without a NUL is the rest of the row, so that a name that the row cuts off is
/// not lost.
fn text<'a>(r: &mut Reader<'a>) -> Str<'a> {
    let rest = r.rest();
    let len = rest.chunks_exact(2).position(|unit| unit == [0, 0]).map(|units| units.saturating_mul(2));
    let units = r.bytes(len.unwrap_or(rest.len())).unwrap_or_default();
    // A NUL ends the text; at the end of the row it may be missing.
    let _ = r.bytes(2);
    Str::Utf16(units)
}
