//! The rows that name code, modules and threads.
use alloc::string::String;

use ipc_proto::DecodeError;
use ipc_proto::wire::Reader;
use nettrace::Str;

use crate::event::{owned, row_text};

/// A method's code: MethodLoadVerbose, MethodUnloadVerbose, both rows of the rundown, and MethodLoad, which has no
/// names.
///
/// ```text
/// u64 method, u64 module, u64 start, u32 size, u32 token, u32 flags, names, u16 runtime, u64 version
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeRow<'a> {
    pub(crate) method: u64,
    pub(crate) module: u64,
    pub(crate) start: u64,
    pub(crate) size: u32,
    pub(crate) flags: u32,
    /// The names, and the bytes that follow them.
    pub(crate) names: &'a [u8],
}

impl<'a> CodeRow<'a> {
    pub(crate) fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(payload);
        let [method, module, start]: [u64; 3] = [r.read()?, r.read()?, r.read()?];
        let [size, _token, flags]: [u32; 3] = [r.read()?, r.read()?, r.read()?];
        Ok(Self { method, module, start, size, flags, names: r.rest() })
    }
}

/// A [`CodeRow`] with its names and its version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MethodRow<'a> {
    pub(crate) code: CodeRow<'a>,
    pub(crate) names: MethodNames<'a>,
    /// The version of the method's code; `None` if the row does not state it.
    pub(crate) version: Option<u64>,
}

impl<'a> MethodRow<'a> {
    pub(crate) fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        Self::decode_with(payload, MethodNames::read)
    }

    /// Decodes a MethodLoad.
    pub(crate) fn decode_without_names(payload: &'a [u8]) -> Result<Self, DecodeError> {
        Self::decode_with(payload, |_| MethodNames::default())
    }

    fn decode_with(
        payload: &'a [u8],
        names: impl FnOnce(&mut Reader<'a>) -> MethodNames<'a>,
    ) -> Result<Self, DecodeError> {
        let code = CodeRow::decode(payload)?;
        let mut r = Reader::new(code.names);
        let names = names(&mut r);
        let version = r.bytes(2).and_then(|_| r.read()).ok();
        Ok(Self { code, names, version })
    }
}

/// The names of a method: its type, its name and its signature, each UTF-16 and NUL.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MethodNames<'a> {
    pub(crate) type_name: Str<'a>,
    pub(crate) name: Str<'a>,
    pub(crate) signature: Str<'a>,
}

impl<'a> MethodNames<'a> {
    /// Decodes the names at the beginning of the bytes.
    pub(crate) fn decode(bytes: &'a [u8]) -> Self {
        Self::read(&mut Reader::new(bytes))
    }

    pub(crate) fn read(r: &mut Reader<'a>) -> Self {
        let [type_name, name, signature] = [row_text(r), row_text(r), row_text(r)];
        Self { type_name, name, signature }
    }
}

/// A module: ModuleLoad, ModuleUnload, and both rows of the rundown.
///
/// ```text
/// u64 module, u64 assembly, u32 flags, u32 0, path, path of the precompiled image, u16 runtime,
/// twice (16 bytes, u32, path) of a PDB, build id                                              strings UTF-16 and NUL
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModuleRow<'a> {
    pub(crate) module: u64,
    pub(crate) path: Str<'a>,
    pub(crate) native_path: Str<'a>,
    /// The build id of the precompiled image in hexadecimal (since .NET 10).
    pub(crate) build_id: Str<'a>,
}

impl<'a> ModuleRow<'a> {
    pub(crate) fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(payload);
        let [module, _assembly]: [u64; 2] = [r.read()?, r.read()?];
        let [_flags, _reserved]: [u32; 2] = [r.read()?, r.read()?];
        let [path, native_path] = [row_text(&mut r), row_text(&mut r)];
        let mut build_id = || {
            r.bytes(2).ok()?;
            for _ in 0..2 {
                r.bytes(20).ok()?;
                row_text(&mut r);
            }
            Some(row_text(&mut r))
        };
        let build_id = build_id().unwrap_or_default();
        Ok(Self { module, path, native_path, build_id })
    }

    /// Returns the path of the module, which is the program itself if it was compiled ahead of time, and whether it was.
    pub(crate) fn program(&self) -> (String, bool) {
        if !self.path.is_empty() {
            return (owned(self.path), false);
        }
        // The runtime writes this path without its NUL, so that other bytes follow it, which mostly are no ASCII.
        let mut path = owned(self.native_path);
        let start = path.rfind(['/', '\\']).map_or(0, |place| place.saturating_add(1));
        let name = path.get(start..).unwrap_or_default();
        if let Some(len @ 1..) = name.find(|character: char| !character.is_ascii()) {
            path.truncate(start.saturating_add(len));
        }
        (path, true)
    }
}

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
