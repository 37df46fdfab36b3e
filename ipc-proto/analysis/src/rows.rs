//! Decoders of the rows (events) that name methods, modules and threads, and of compilations, collections,
//! allocations and waits for locks. Their layouts are fixed: later versions only
//! append fields, so that a decoder of the first fields reads every version.
use ipc_proto::DecodeError;
use ipc_proto::wire::Reader;
use nettrace::{Scalar, Str, Value};

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
    /// The names, and what follows them.
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

    fn read(r: &mut Reader<'a>) -> Self {
        let [type_name, name, signature] = [text(r), text(r), text(r)];
        Self { type_name, name, signature }
    }
}

/// The start of a compilation: MethodJittingStarted.
///
/// ```text
/// u64 method, u64 module, u32 token, u32 size of the IL, names
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct JittingRow<'a> {
    pub(crate) method: u64,
    pub(crate) module: u64,
    pub(crate) il_size: u32,
    pub(crate) names: MethodNames<'a>,
}

impl<'a> JittingRow<'a> {
    pub(crate) fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(payload);
        let [method, module]: [u64; 2] = [r.read()?, r.read()?];
        let [_token, il_size]: [u32; 2] = [r.read()?, r.read()?];
        Ok(Self { method, module, il_size, names: MethodNames::read(&mut r) })
    }
}

/// The start of a garbage collection: GCStart.
///
/// ```text
/// u32 number, u32 generation, u32 reason, u32 type
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct GcStartRow {
    pub(crate) number: u32,
    pub(crate) generation: u32,
    pub(crate) reason: u32,
    pub(crate) collection_type: u32,
}

impl GcStartRow {
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(payload);
        let [number, generation, reason, collection_type] = [r.read()?, r.read()?, r.read()?, r.read()?];
        Ok(Self { number, generation, reason, collection_type })
    }
}

/// The sizes after a garbage collection: GCHeapStats. The heap of pinned objects came with version 2.
///
/// ```text
/// 4 x { u64 size, u64 promoted }, u64 finalized bytes, u64 finalized objects, u32 pinned objects, u32 sink blocks,
/// u32 handles, u16 runtime, u64 size, u64 promoted
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct GcHeapRow {
    /// The size of each part of the heap, and the bytes of it that survived.
    pub(crate) parts: [[u64; 2]; 5],
    pub(crate) pinned_objects: u32,
    pub(crate) handles: u32,
}

impl GcHeapRow {
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(payload);
        let mut parts = [[0; 2]; 5];
        for part in parts.iter_mut().take(4) {
            *part = [r.read()?, r.read()?];
        }
        r.bytes(8 + 8)?;
        let [pinned_objects, _sink_blocks, handles] = [r.read()?, r.read()?, r.read()?];
        if let (Ok(_), Some(pinned)) = (r.bytes(2), parts.last_mut()) {
            *pinned = [r.read().unwrap_or_default(), r.read().unwrap_or_default()];
        }
        Ok(Self { parts, pinned_objects, handles })
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

/// The start of a wait for a lock: ContentionStart. `P` has the size of a pointer. Version 1 ends after the runtime.
///
/// ```text
/// u8 flags, u16 runtime, P lock, P object, u64 owner
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContentionRow {
    /// The id of the lock; `None` before .NET 8.
    pub(crate) lock: Option<u64>,
    /// The address of the object, which the collector can move.
    pub(crate) object: Option<u64>,
    /// The thread that has the lock, as the runtime counts threads; `None` if the runtime does not know it.
    pub(crate) owner: Option<u64>,
}

impl ContentionRow {
    pub(crate) fn decode(payload: &[u8], pointer_size: usize) -> Self {
        let mut r = Reader::new(payload);
        // The flags, and the number of the runtime.
        let _ = r.bytes(1 + 2);
        let lock = pointer(&mut r, pointer_size);
        let object = pointer(&mut r, pointer_size);
        let owner = object.and_then(|_| r.read().ok()).filter(|owner| *owner != 0);
        Self { lock, object, owner }
    }
}

/// Reads an address.
fn pointer(r: &mut Reader<'_>, size: usize) -> Option<u64> {
    if size == 4 { r.read::<u32>().ok().map(u64::from) } else { r.read().ok() }
}

/// Returns the nanoseconds of a wait for a lock, by its end: ContentionStop. `None` before .NET 5.
///
/// ```text
/// u8 flags, u16 runtime, f64 nanoseconds
/// ```
pub(crate) fn contention_time(payload: &[u8]) -> Option<u64> {
    let mut r = Reader::new(payload);
    r.bytes(1 + 2).ok()?;
    let nanoseconds = f64::from_bits(r.read().ok()?);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the conversion saturates, and makes 0 of what is no number"
    )]
    let nanoseconds = nanoseconds as u64;
    Some(nanoseconds)
}

/// Returns the major version of a runtime: RuntimeInformationStart, and the row of the rundown.
///
/// ```text
/// u16 runtime, u16 kind, 4 x u16 version of the library, u16 major version of the runtime, ...
/// ```
pub(crate) fn runtime_version(payload: &[u8]) -> Option<u16> {
    let mut r = Reader::new(payload);
    r.bytes(2 + 2 + 4 * 2).ok()?;
    r.read().ok()
}

/// An allocation: AllocationTick and AllocationSampled. `P` has the size of a pointer.
///
/// ```text
/// AllocationTick     u32 amount, u32 kind, u16 runtime, u64 amount, P type, name, u32 heap, P address, u64 size
/// AllocationSampled  u32 kind, u16 runtime, P type, name, P address, u64 size, u64 offset       name UTF-16 and NUL
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct AllocationRow<'a> {
    /// The whole bytes that the event stands for; `None` if the row does not state them.
    pub(crate) amount: Option<u64>,
    /// The part of a byte beside them.
    pub(crate) fraction: f64,
    /// The name of the object's type; empty if the row does not state it.
    pub(crate) type_name: Str<'a>,
}

impl<'a> AllocationRow<'a> {
    /// Decodes an AllocationTick: one event for each 100 KB or so that a thread has allocated.
    pub(crate) fn decode_tick(payload: &'a [u8], pointer_size: usize) -> Self {
        let mut r = Reader::new(payload);
        let low: Option<u32> = r.read().ok();
        // The kind, and the number of the runtime.
        let _ = r.bytes(4 + 2);
        let amount = r.read().ok().or_else(|| low.map(u64::from));
        let type_name = r.bytes(pointer_size).map(|_| text(&mut r)).unwrap_or_default();
        Self { amount, fraction: 0.0, type_name }
    }

    /// Decodes an AllocationSampled (.NET 10): the event of an object of which a byte was drawn.
    pub(crate) fn decode_sampled(payload: &'a [u8], pointer_size: usize) -> Self {
        let mut r = Reader::new(payload);
        let type_name = r.bytes(pointer_size.saturating_add(4 + 2)).map(|_| text(&mut r)).unwrap_or_default();
        let size = r.bytes(pointer_size).and_then(|_| r.read()).ok();
        let (amount, fraction) = size.and_then(sampled_weight).unzip();
        Self { amount, fraction: fraction.unwrap_or_default(), type_name }
    }
}

/// Returns how many allocated bytes a sampled object of a size stands for, and the fraction of a byte beside them;
/// `None` for the size 0, which no object has.
///
/// Each allocated byte is drawn with the probability 1/102,400, so an object of `s` bytes is sampled with the
/// probability `1 - (1 - 1/102400)^s`, and stands for its size divided by that:
/// docs/design/features/RandomizedAllocationSampling.md of dotnet/runtime.
fn sampled_weight(size: u64) -> Option<(u64, f64)> {
    const MEAN: u64 = 102_400;
    // A larger object is always sampled, as far as the precision of a float shows.
    if size > 64 * MEAN {
        return Some((size, 0.0));
    }
    // (1 - 1/MEAN)^size, by squaring.
    let (mut missed, mut power, mut rest) = (1.0, 1.0 - 1.0 / MEAN as f64, size);
    while rest > 0 {
        if rest & 1 == 1 {
            missed *= power;
        }
        power *= power;
        rest >>= 1;
    }
    let weight = size as f64 / (1.0 - missed);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the weight of a size below the limit is between 102,400 and 100 times that"
    )]
    let whole = weight as u64;
    (size > 0).then_some((whole, weight - whole as f64))
}

/// Reads UTF-16 up to its NUL. A string without a NUL is the rest of the row, so that a name that the row cuts off is
/// not lost.
fn text<'a>(r: &mut Reader<'a>) -> Str<'a> {
    let rest = r.rest();
    let (text, len) = match Scalar::Utf16String.decode(rest) {
        Ok((Value::Text(text), after)) => (text, rest.len().saturating_sub(after.len())),
        _ => (Str::Utf16(rest), rest.len()),
    };
    let _ = r.bytes(len);
    text
}
