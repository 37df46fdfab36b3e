//! The runtime's own events, a row each: id, version, name, fields.
//!
//! Fields are written as in [`Fields`](crate::Fields), V6. `Ptr` is a pointer. `N32` and `N16` are numbers that count
//! the elements of the arrays after them. `[…]` is an array that such a number counts, of fields or of one type. A
//! Boolean has 4 bytes. `..NAME` begins with the fields of another list.

use crate::describe::code;

const fn len(mut parts: &[&[u8]]) -> usize {
    let mut len = 0usize;
    while let [part, rest @ ..] = parts {
        len = len.wrapping_add(part.len());
        parts = rest;
    }
    len
}

const fn join<const LEN: usize>(mut parts: &[&[u8]]) -> [u8; LEN] {
    let mut joined = [0; LEN];
    let mut part: &[u8] = &[];
    let mut room: &mut [u8] = &mut joined;
    while let Some((to, left)) = room.split_first_mut() {
        while let ([], [next, rest @ ..]) = (part, parts) {
            part = next;
            parts = rest;
        }
        if let [byte, more @ ..] = part {
            *to = *byte;
            part = more;
        }
        room = left;
    }
    joined
}

/// The first bytes of a field: its size (2 bytes) and the length of its name (1 byte). The name and the type follow.
#[allow(
    clippy::cast_possible_truncation,
    reason = "tables are small, and constants have no other conversion"
)]
const fn head(name: &str, field_type: &[u8]) -> [u8; 3] {
    let size = field_type.len().wrapping_add(name.len()).wrapping_add(1);
    // The length must be a varint of one byte.
    assert!(name.len() < 0x80);
    [size as u8, size.wrapping_shr(8) as u8, name.len() as u8]
}

const fn count(fields: &[u8]) -> u8 {
    if let [count, ..] = fields { *count } else { 0 }
}

const fn after_count(fields: &'static [u8]) -> &'static [u8] {
    if let [_, _, fields @ ..] = fields { fields } else { &[] }
}

/// Joins byte strings.
macro_rules! join {
    ($($part:expr),* $(,)?) => {{
        const PARTS: &[&[u8]] = &[$($part),*];
        const JOINED: [u8; len(PARTS)] = join(PARTS);
        &JOINED
    }};
}

/// Makes a list of fields: their number in the first two bytes, then each field. It can begin with another list.
macro_rules! fields {
    (..$start:ident) => { $start };
    (..$start:ident, $($fields:tt)*) => {{
        const MORE: &[u8] = fields!($($fields)*);
        join![&[count($start).wrapping_add(count(MORE)), 0], after_count($start), after_count(MORE)]
    }};
    ($($name:ident $field_type:tt),* $(,)?) => {{
        const COUNT: u8 = 0 $(+ { let _ = stringify!($name); 1 })*;
        join![&[COUNT, 0] $(, join![
            &head(stringify!($name), field_type!($field_type)),
            stringify!($name).as_bytes(),
            field_type!($field_type),
        ])*]
    }};
}

macro_rules! field_type {
    (Bool) => { &[3] };
    (U8) => { &[6] };
    (U16) => { &[8] };
    (I32) => { &[9] };
    (U32) => { &[10] };
    (I64) => { &[11] };
    (U64) => { &[12] };
    (F64) => { &[14] };
    (Guid) => { &[17] };
    (Str) => { &[18] };
    (VarU) => { &[21] };
    (Utf8) => { &[23] };
    (Ptr) => { &[code::POINTER] };
    (N16) => { &[8 | code::COUNTS] };
    (N32) => { &[10 | code::COUNTS] };
    ([$of:ident]) => { join![&[code::COUNTED], field_type!($of)] };
    ([$($fields:tt)*]) => { join![&[code::COUNTED, code::OBJECT], fields!($($fields)*)] };
}

macro_rules! rows {
    ($($id:literal $version:literal $name:ident { $($fields:tt)* })*) => {
        &[$(Row { id: $id, version: $version, name: stringify!($name), fields: fields!($($fields)*) }),*]
    };
}

/// An event of the runtime.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) id: u16,
    pub(crate) version: u8,
    pub(crate) name: &'static str,
    /// The description of the fields: a `u16` count, then the fields in this layout.
    pub(crate) fields: &'static [u8],
}

// Fields that several events have, or begin with.
const POOL_THREADS: &[u8] = fields! {
    ActiveWorkerThreadCount U32, RetiredWorkerThreadCount U32, ClrInstanceID U16,
};
const BULK: &[u8] = fields! { Index U32, Count N32, ClrInstanceID U16 };
const RESOLVING_HANDLER: &[u8] = fields! { ClrInstanceID U16, AssemblyName Str, HandlerName Str };
const AUTHENTICODE: &[u8] = fields! {
    VerificationFlags U32, ErrorCode U32, ModulePath Str, ClrInstanceID U16,
};
const APP_DOMAIN: &[u8] = fields! {
    AppDomainID U64, AppDomainFlags U32, AppDomainName Str, AppDomainIndex U32, ClrInstanceID U16,
};
const METHOD: &[u8] = fields! {
    MethodID U64, ModuleID U64, MethodStartAddress U64, MethodSize U32, MethodToken U32, MethodFlags U32,
};
const ASSEMBLY: &[u8] = fields! {
    AssemblyID U64, AppDomainID U64, BindingID U64, AssemblyFlags U32, FullyQualifiedAssemblyName Str,
    ClrInstanceID U16,
};
const THREAD: &[u8] = fields! {
    ManagedThreadID U64, AppDomainID U64, Flags U32, ManagedThreadIndex U32, OSThreadID U32, ClrInstanceID
    U16,
};
const MODULE: &[u8] = fields! {
    ModuleID U64, AssemblyID U64, ModuleFlags U32, Reserved1 U32, ModuleILPath Str, ModuleNativePath Str,
};
const IL_TO_NATIVE_MAP: &[u8] = fields! {
    MethodID U64, ReJITID U64, MethodExtent U8, CountOfMapEntries N16, ILOffsets [U32], NativeOffsets [U32],
    ClrInstanceID U16,
};
const DOMAIN_MODULE: &[u8] = fields! {
    ModuleID U64, AssemblyID U64, AppDomainID U64, ModuleFlags U32, Reserved1 U32, ModuleILPath Str,
    ModuleNativePath Str, ClrInstanceID U16,
};
const ALLOCATION_TICK: &[u8] = fields! {
    AllocationAmount U32, AllocationKind U32, ClrInstanceID U16, AllocationAmount64 U64, TypeID Ptr, TypeName
    Str, HeapIndex U32, Address Ptr,
};
const METHOD_NAMES: &[u8] = fields! { ..METHOD, MethodNamespace Str, MethodName Str, MethodSignature Str };
const INLINING: &[u8] = fields! {
    MethodBeingCompiledNamespace Str, MethodBeingCompiledName Str, MethodBeingCompiledNameSignature Str,
    InlinerNamespace Str, InlinerName Str, InlinerNameSignature Str, InlineeNamespace Str, InlineeName Str,
    InlineeNameSignature Str,
};
const TAIL_CALL: &[u8] = fields! {
    MethodBeingCompiledNamespace Str, MethodBeingCompiledName Str, MethodBeingCompiledNameSignature Str,
    CallerNamespace Str, CallerName Str, CallerNameSignature Str, CalleeNamespace Str, CalleeName Str,
    CalleeNameSignature Str, TailPrefix Bool,
};
const MODULE_PDBS: &[u8] = fields! {
    ..MODULE, ClrInstanceID U16, ManagedPdbSignature Guid, ManagedPdbAge U32, ManagedPdbBuildPath Str,
    NativePdbSignature Guid, NativePdbAge U32, NativePdbBuildPath Str,
};
const HEAP_STATS: &[u8] = fields! {
    GenerationSize0 U64, TotalPromotedSize0 U64, GenerationSize1 U64, TotalPromotedSize1 U64, GenerationSize2
    U64, TotalPromotedSize2 U64, GenerationSize3 U64, TotalPromotedSize3 U64, FinalizationPromotedSize U64,
    FinalizationPromotedCount U64, PinnedObjectCount U32, SinkBlockCount U32, GCHandleCount U32, ClrInstanceID
    U16,
};
const RUNTIME_INFORMATION: &[u8] = fields! {
    ClrInstanceID U16, Sku U16, BclMajorVersion U16, BclMinorVersion U16, BclBuildNumber U16, BclQfeNumber
    U16, VMMajorVersion U16, VMMinorVersion U16, VMBuildNumber U16, VMQfeNumber U16, StartupFlags U32,
    StartupMode U8, CommandLine Str, ComObjectGuid Guid, RuntimeDllPath Str,
};

/// `Microsoft-Windows-DotNETRuntime`.
#[rustfmt::skip]
pub(crate) static RUNTIME: &[Row] = rows! {
    1 2 GCStart { Count U32, Depth U32, Reason U32, Type U32, ClrInstanceID U16, ClientSequenceNumber U64 }
    2 1 GCEnd { Count U32, Depth U32, ClrInstanceID U16 }
    3 1 GCRestartEEEnd { ClrInstanceID U16 }
    4 1 GCHeapStats { ..HEAP_STATS }
    4 2 GCHeapStats { ..HEAP_STATS, GenerationSize4 U64, TotalPromotedSize4 U64 }
    5 1 GCCreateSegment { Address U64, Size U64, Type U32, ClrInstanceID U16 }
    6 1 GCFreeSegment { Address U64, ClrInstanceID U16 }
    7 1 GCRestartEEBegin { ClrInstanceID U16 }
    8 1 GCSuspendEEEnd { ClrInstanceID U16 }
    9 1 GCSuspendEEBegin { Reason U32, Count U32, ClrInstanceID U16 }
    10 3 GCAllocationTick { ..ALLOCATION_TICK }
    10 4 GCAllocationTick { ..ALLOCATION_TICK, ObjectSize U64 }
    11 1 GCCreateConcurrentThread { ClrInstanceID U16 }
    12 1 GCTerminateConcurrentThread { ClrInstanceID U16 }
    13 1 GCFinalizersEnd { Count U32, ClrInstanceID U16 }
    14 1 GCFinalizersBegin { ClrInstanceID U16 }
    15 0 BulkType {
        Count N32, ClrInstanceID U16, Values [TypeID U64, ModuleID U64, TypeNameID U32, Flags U32,
        CorElementType U8, Name Str, TypeParameterCount N32, TypeParameters [U64]],
    }
    16 0 GCBulkRootEdge {
        ..BULK, Values [RootedNodeAddress Ptr, GCRootKind U8, GCRootFlag U32, GCRootID Ptr],
    }
    17 0 GCBulkRootConditionalWeakTableElementEdge {
        Index U32, Count N32, ClrInstanceID U16, Values [GCKeyNodeID Ptr, GCValueNodeID Ptr, GCRootID Ptr],
    }
    18 0 GCBulkNode { ..BULK, Values [Address Ptr, Size U64, TypeID U64, EdgeCount U64] }
    19 0 GCBulkEdge { Index U32, Count N32, ClrInstanceID U16, Values [Value Ptr, ReferencingFieldID U32] }
    20 0 GCSampledObjectAllocationHigh {
        Address Ptr, TypeID Ptr, ObjectCountForTypeSample U32, TotalSizeForTypeSample U64, ClrInstanceID U16,
    }
    21 0 GCBulkSurvivingObjectRanges { ..BULK, Values [RangeBase Ptr, RangeLength U64] }
    22 0 GCBulkMovedObjectRanges { ..BULK, Values [OldRangeBase Ptr, NewRangeBase Ptr, RangeLength U64] }
    23 0 GCGenerationRange {
        Generation U8, RangeStart Ptr, RangeUsedLength U64, RangeReservedLength U64, ClrInstanceID U16,
    }
    25 0 GCMarkStackRoots { HeapNum U32, ClrInstanceID U16 }
    26 0 GCMarkFinalizeQueueRoots { HeapNum U32, ClrInstanceID U16 }
    27 0 GCMarkHandles { HeapNum U32, ClrInstanceID U16 }
    28 0 GCMarkOlderGenerationRoots { HeapNum U32, ClrInstanceID U16 }
    29 0 FinalizeObject { TypeID Ptr, ObjectID Ptr, ClrInstanceID U16 }
    30 0 SetGCHandle {
        HandleID Ptr, ObjectID Ptr, Kind U32, Generation U32, AppDomainID U64, ClrInstanceID U16,
    }
    31 0 DestroyGCHandle { HandleID Ptr, ClrInstanceID U16 }
    32 0 GCSampledObjectAllocationLow {
        Address Ptr, TypeID Ptr, ObjectCountForTypeSample U32, TotalSizeForTypeSample U64, ClrInstanceID U16,
    }
    33 0 PinObjectAtGCTime { HandleID Ptr, ObjectID Ptr, ObjectSize U64, TypeName Str, ClrInstanceID U16 }
    35 0 GCTriggered { Reason U32, ClrInstanceID U16 }
    36 0 GCBulkRootCCW { Count U32, ClrInstanceID U16 }
    37 0 GCBulkRCW { Count U32, ClrInstanceID U16 }
    38 0 GCBulkRootStaticVar {
        Count N32, AppDomainID U64, ClrInstanceID U16, Values [GCRootID U64, ObjectID U64, TypeID U64, Flags
        U32, FieldName Str],
    }
    39 0 GCDynamicEvent { Name Str, DataSize N32, Data [U8], ClrInstanceID U16 }
    40 0 WorkerThreadCreate { WorkerThreadCount U32, RetiredWorkerThreads U32 }
    41 0 WorkerThreadTerminate { WorkerThreadCount U32, RetiredWorkerThreads U32 }
    42 0 WorkerThreadRetire { WorkerThreadCount U32, RetiredWorkerThreads U32 }
    43 0 WorkerThreadUnretire { WorkerThreadCount U32, RetiredWorkerThreads U32 }
    44 1 IOThreadCreate { IOThreadCount U32, RetiredIOThreads U32, ClrInstanceID U16 }
    45 1 IOThreadTerminate { IOThreadCount U32, RetiredIOThreads U32, ClrInstanceID U16 }
    46 1 IOThreadRetire { IOThreadCount U32, RetiredIOThreads U32, ClrInstanceID U16 }
    47 1 IOThreadUnretire { IOThreadCount U32, RetiredIOThreads U32, ClrInstanceID U16 }
    48 0 ThreadpoolSuspensionSuspendThread { ClrThreadID U32, CpuUtilization U32 }
    49 0 ThreadpoolSuspensionResumeThread { ClrThreadID U32, CpuUtilization U32 }
    50 0 ThreadPoolWorkerThreadStart { ..POOL_THREADS }
    51 0 ThreadPoolWorkerThreadStop { ..POOL_THREADS }
    52 0 ThreadPoolWorkerThreadRetirementStart { ..POOL_THREADS }
    53 0 ThreadPoolWorkerThreadRetirementStop { ..POOL_THREADS }
    54 0 ThreadPoolWorkerThreadAdjustmentSample { Throughput F64, ClrInstanceID U16 }
    55 0 ThreadPoolWorkerThreadAdjustmentAdjustment {
        AverageThroughput F64, NewWorkerThreadCount U32, Reason U32, ClrInstanceID U16,
    }
    56 0 ThreadPoolWorkerThreadAdjustmentStats {
        Duration F64, Throughput F64, ThreadWave F64, ThroughputWave F64, ThroughputErrorEstimate F64,
        AverageThroughputErrorEstimate F64, ThroughputRatio F64, Confidence F64, NewControlSetting F64,
        NewThreadWaveMagnitude U16, ClrInstanceID U16,
    }
    57 0 ThreadPoolWorkerThreadWait { ..POOL_THREADS }
    58 0 YieldProcessorMeasurement { ClrInstanceID U16, NsPerYield F64, EstablishedNsPerYield F64 }
    59 0 ThreadPoolMinMaxThreads {
        MinWorkerThreads U16, MaxWorkerThreads U16, MinIOCompletionThreads U16, MaxIOCompletionThreads U16,
        ClrInstanceID U16,
    }
    60 0 ThreadPoolWorkingThreadCount { Count U32, ClrInstanceID U16 }
    61 0 ThreadPoolEnqueue { WorkID Ptr, ClrInstanceID U16 }
    62 0 ThreadPoolDequeue { WorkID Ptr, ClrInstanceID U16 }
    63 0 ThreadPoolIOEnqueue { NativeOverlapped Ptr, Overlapped Ptr, MultiDequeues Bool, ClrInstanceID U16 }
    64 0 ThreadPoolIODequeue { NativeOverlapped Ptr, Overlapped Ptr, ClrInstanceID U16 }
    65 0 ThreadPoolIOPack { NativeOverlapped Ptr, Overlapped Ptr, ClrInstanceID U16 }
    70 0 ThreadCreating { ID Ptr, ClrInstanceID U16 }
    71 0 ThreadRunning { ID Ptr, ClrInstanceID U16 }
    72 0 MethodDetails {
        MethodID U64, TypeID U64, MethodToken U32, TypeParameterCount N32, LoaderModuleID U64, TypeParameters
        [U64],
    }
    73 0 TypeLoadStart { TypeLoadStartID U32, ClrInstanceID U16 }
    74 0 TypeLoadStop { TypeLoadStartID U32, ClrInstanceID U16, LoadLevel U16, TypeID U64, TypeName Str }
    80 1 ExceptionThrown {
        ExceptionType Str, ExceptionMessage Str, ExceptionEIP Ptr, ExceptionHRESULT U32, ExceptionFlags U16,
        ClrInstanceID U16,
    }
    81 1 ContentionStart { ContentionFlags U8, ClrInstanceID U16 }
    81 2 ContentionStart {
        ContentionFlags U8, ClrInstanceID U16, LockID Ptr, AssociatedObjectID Ptr, LockOwnerThreadID U64,
    }
    82 0 CLRStackWalk { ClrInstanceID U16, Reserved1 U8, Reserved2 U8, FrameCount U32 }
    83 0 AppDomainMemAllocated { AppDomainID U64, Allocated U64, ClrInstanceID U16 }
    84 0 AppDomainMemSurvived { AppDomainID U64, Survived U64, ProcessSurvived U64, ClrInstanceID U16 }
    85 0 ThreadCreated { ..THREAD }
    86 0 ThreadTerminated { ManagedThreadID U64, AppDomainID U64, ClrInstanceID U16 }
    87 0 ThreadDomainEnter { ManagedThreadID U64, AppDomainID U64, ClrInstanceID U16 }
    88 0 ILStubGenerated {
        ClrInstanceID U16, ModuleID U64, StubMethodID U64, StubFlags U32, ManagedInteropMethodToken U32,
        ManagedInteropMethodNamespace Str, ManagedInteropMethodName Str, ManagedInteropMethodSignature Str,
        NativeMethodSignature Str, StubMethodSignature Str, StubMethodILCode Str,
    }
    89 0 ILStubCacheHit {
        ClrInstanceID U16, ModuleID U64, StubMethodID U64, ManagedInteropMethodToken U32,
        ManagedInteropMethodNamespace Str, ManagedInteropMethodName Str, ManagedInteropMethodSignature Str,
    }
    90 0 ContentionLockCreated { LockID Ptr, AssociatedObjectID Ptr, ClrInstanceID U16 }
    91 1 ContentionStop { ContentionFlags U8, ClrInstanceID U16, DurationNs F64 }
    135 0 DCStartCompleteV2 {}
    136 0 DCEndCompleteV2 {}
    137 0 MethodDCStartV2 { ..METHOD }
    138 0 MethodDCEndV2 { ..METHOD }
    139 0 MethodDCStartVerboseV2 { ..METHOD_NAMES }
    140 0 MethodDCEndVerboseV2 { ..METHOD_NAMES }
    141 2 MethodLoad { ..METHOD, ClrInstanceID U16, ReJITID U64 }
    142 2 MethodUnload { ..METHOD, ClrInstanceID U16, ReJITID U64 }
    143 1 MethodLoadVerbose { ..METHOD_NAMES, ClrInstanceID U16 }
    143 2 MethodLoadVerbose { ..METHOD_NAMES, ClrInstanceID U16, ReJITID U64 }
    144 1 MethodUnloadVerbose { ..METHOD_NAMES, ClrInstanceID U16 }
    144 2 MethodUnloadVerbose { ..METHOD_NAMES, ClrInstanceID U16, ReJITID U64 }
    145 1 MethodJittingStarted {
        MethodID U64, ModuleID U64, MethodToken U32, MethodILSize U32, MethodNamespace Str, MethodName Str,
        MethodSignature Str, ClrInstanceID U16,
    }
    146 0 MethodJitMemoryAllocatedForCode {
        MethodID U64, ModuleID U64, JitHotCodeRequestSize U64, JitRODataRequestSize U64,
        AllocatedSizeForJitCode U64, JitAllocFlag U32, ClrInstanceID U16,
    }
    149 0 ModuleDCStartV2 { ..MODULE }
    150 0 ModuleDCEndV2 { ..MODULE }
    151 1 DomainModuleLoad { ..DOMAIN_MODULE }
    152 2 ModuleLoad { ..MODULE_PDBS }
    152 3 ModuleLoad { ..MODULE_PDBS, NativeBuildID Str }
    153 2 ModuleUnload { ..MODULE_PDBS }
    154 1 AssemblyLoad { ..ASSEMBLY }
    155 1 AssemblyUnload { ..ASSEMBLY }
    156 1 AppDomainLoad { ..APP_DOMAIN }
    157 1 AppDomainUnload { ..APP_DOMAIN }
    158 0 ModuleRangeLoad { ClrInstanceID U16, ModuleID U64, RangeBegin U32, RangeSize U32, RangeType U8 }
    159 0 R2RGetEntryPoint {
        MethodID U64, MethodNamespace Str, MethodName Str, MethodSignature Str, EntryPoint U64, ClrInstanceID
        U16,
    }
    160 0 R2RGetEntryPointStart { MethodID U64, ClrInstanceID U16 }
    181 1 StrongNameVerificationStart {
        VerificationFlags U32, ErrorCode U32, FullyQualifiedAssemblyName Str, ClrInstanceID U16,
    }
    182 1 StrongNameVerificationStop {
        VerificationFlags U32, ErrorCode U32, FullyQualifiedAssemblyName Str, ClrInstanceID U16,
    }
    183 1 AuthenticodeVerificationStart { ..AUTHENTICODE }
    184 1 AuthenticodeVerificationStop { ..AUTHENTICODE }
    185 0 MethodJitInliningSucceeded { ..INLINING, ClrInstanceID U16 }
    186 0 MethodJitInliningFailedAnsi { ..INLINING, FailAlways Bool }
    187 0 RuntimeInformationStart { ..RUNTIME_INFORMATION }
    188 0 MethodJitTailCallSucceeded { ..TAIL_CALL, TailCallType U32, ClrInstanceID U16 }
    189 0 MethodJitTailCallFailedAnsi { ..TAIL_CALL }
    190 0 MethodILToNativeMap { ..IL_TO_NATIVE_MAP }
    190 1 MethodILToNativeMap { ..IL_TO_NATIVE_MAP, ILVersionID U64 }
    191 0 MethodJitTailCallFailed { ..TAIL_CALL, FailReason Str, ClrInstanceID U16 }
    192 0 MethodJitInliningFailed { ..INLINING, FailAlways Bool, FailReason Str, ClrInstanceID U16 }
    200 0 IncreaseMemoryPressure { BytesAllocated U64, ClrInstanceID U16 }
    201 0 DecreaseMemoryPressure { BytesFreed U64, ClrInstanceID U16 }
    202 0 GCMarkWithType { HeapNum U32, ClrInstanceID U16, Type U32, Bytes U64 }
    203 2 GCJoin { Heap U32, JoinTime U32, JoinType U32, ClrInstanceID U16, JoinID U32 }
    204 3 GCPerHeapHistory {
        ClrInstanceID U16, FreeListAllocated Ptr, FreeListRejected Ptr, EndOfSegAllocated Ptr,
        CondemnedAllocated Ptr, PinnedAllocated Ptr, PinnedAllocatedAdvance Ptr, RunningFreeListEfficiency
        U32, CondemnReasons0 U32, CondemnReasons1 U32, CompactMechanisms U32, ExpandMechanisms U32, HeapIndex
        U32, ExtraGen0Commit Ptr, Count N32, Values [SizeBefore Ptr, FreeListSpaceBefore Ptr,
        FreeObjSpaceBefore Ptr, SizeAfter Ptr, FreeListSpaceAfter Ptr, FreeObjSpaceAfter Ptr, In Ptr,
        PinnedSurv Ptr, NonePinnedSurv Ptr, NewAllocation Ptr],
    }
    205 2 GCGlobalHeapHistory {
        FinalYoungestDesired U64, NumHeaps I32, CondemnedGeneration U32, Gen0ReductionCount U32, Reason U32,
        GlobalMechanisms U32, ClrInstanceID U16, PauseMode U32, MemoryPressure U32,
    }
    205 4 GCGlobalHeapHistory {
        FinalYoungestDesired U64, NumHeaps I32, CondemnedGeneration U32, Gen0ReductionCount U32, Reason U32,
        GlobalMechanisms U32, ClrInstanceID U16, PauseMode U32, MemoryPressure U32, CondemnReasons0 U32,
        CondemnReasons1 U32, Count N32, Values [Time U32],
    }
    206 0 GenAwareBegin { Count U32, ClrInstanceID U16 }
    207 0 GenAwareEnd { Count U32, ClrInstanceID U16 }
    208 0 GCLOHCompact { ClrInstanceID U16, Count U16 }
    209 0 GCFitBucketInfo {
        ClrInstanceID U16, BucketKind U16, TotalSize U64, Count N16, Values [Index U16, Reserved U16, Count
        U32, Size U64],
    }
    240 0 DebugIPCEventStart {}
    241 0 DebugIPCEventEnd {}
    242 0 DebugExceptionProcessingStart {}
    243 0 DebugExceptionProcessingEnd {}
    250 0 ExceptionCatchStart { EntryEIP U64, MethodID U64, MethodName Str, ClrInstanceID U16 }
    251 0 ExceptionCatchStop {}
    252 0 ExceptionFinallyStart { EntryEIP U64, MethodID U64, MethodName Str, ClrInstanceID U16 }
    253 0 ExceptionFinallyStop {}
    254 0 ExceptionFilterStart { EntryEIP U64, MethodID U64, MethodName Str, ClrInstanceID U16 }
    255 0 ExceptionFilterStop {}
    256 0 ExceptionThrownStop {}
    260 0 CodeSymbols { ModuleId U64, TotalChunks U16, ChunkNumber U16, ChunkLength U32 }
    270 0 EventSource { EventID I32, EventName Str, EventSourceName Str, Payload Str }
    280 0 TieredCompilationSettings { ClrInstanceID U16, Flags U32 }
    281 0 TieredCompilationPause { ClrInstanceID U16 }
    282 0 TieredCompilationResume { ClrInstanceID U16, NewMethodCount U32 }
    283 0 TieredCompilationBackgroundJitStart { ClrInstanceID U16, PendingMethodCount U32 }
    284 0 TieredCompilationBackgroundJitStop {
        ClrInstanceID U16, PendingMethodCount U32, JittedMethodCount U32,
    }
    290 0 AssemblyLoadStart {
        ClrInstanceID U16, AssemblyName Str, AssemblyPath Str, RequestingAssembly Str, AssemblyLoadContext
        Str, RequestingAssemblyLoadContext Str,
    }
    291 0 AssemblyLoadStop {
        ClrInstanceID U16, AssemblyName Str, AssemblyPath Str, RequestingAssembly Str, AssemblyLoadContext
        Str, RequestingAssemblyLoadContext Str, Success Bool, ResultAssemblyName Str, ResultAssemblyPath Str,
        Cached Bool,
    }
    292 0 ResolutionAttempted {
        ClrInstanceID U16, AssemblyName Str, Stage U16, AssemblyLoadContext Str, Result U16,
        ResultAssemblyName Str, ResultAssemblyPath Str, ErrorMessage Str,
    }
    293 0 AssemblyLoadContextResolvingHandlerInvoked {
        ..RESOLVING_HANDLER, AssemblyLoadContext Str, ResultAssemblyName Str, ResultAssemblyPath Str,
    }
    294 0 AppDomainAssemblyResolveHandlerInvoked {
        ClrInstanceID U16, AssemblyName Str, HandlerName Str, ResultAssemblyName Str, ResultAssemblyPath Str,
    }
    295 0 AssemblyLoadFromResolveHandlerInvoked {
        ClrInstanceID U16, AssemblyName Str, IsTrackedLoad Bool, RequestingAssemblyPath Str,
        ComputedRequestedAssemblyPath Str,
    }
    296 0 KnownPathProbed { ClrInstanceID U16, FilePath Str, Source U16, Result I32 }
    297 0 JitInstrumentationData { ClrInstanceID U16, MethodFlags U32, DataSize N32, MethodID U64, Data [U8] }
    298 0 JitInstrumentationDataVerbose {
        ClrInstanceID U16, MethodFlags U32, DataSize N32, MethodID U64, ModuleID U64, MethodToken U32,
        MethodNamespace Str, MethodName Str, MethodSignature Str, Data [U8],
    }
    299 0 ProfilerMessage { ClrInstanceID U16, Message Str }
    300 0 ExecutionCheckpoint { ClrInstanceID U16, Name Str, Timestamp I64 }
    301 0 WaitHandleWaitStart { WaitSource U8, AssociatedObjectID Ptr, ClrInstanceID U16 }
    302 0 WaitHandleWaitStop { ClrInstanceID U16 }
    303 0 AllocationSampled {
        AllocationKind U32, ClrInstanceID U16, TypeID Ptr, TypeName Str, Address Ptr, ObjectSize U64,
        SampledByteOffset U64,
    }
};

/// `Microsoft-Windows-DotNETRuntimeRundown`.
#[rustfmt::skip]
pub(crate) static RUNDOWN: &[Row] = rows! {
    10 0 GCSettingsRundown {
        HardLimit U64, LOHThreshold U64, PhysicalMemoryConfig U64, Gen0MinBudgetConfig U64,
        Gen0MaxBudgetConfig U64, HighMemPercentConfig U32, BitSettings U32, ClrInstanceID U16,
    }
    143 1 MethodDCStartVerbose { ..METHOD_NAMES, ClrInstanceID U16 }
    143 2 MethodDCStartVerbose { ..METHOD_NAMES, ClrInstanceID U16, ReJITID U64 }
    144 1 MethodDCEndVerbose { ..METHOD_NAMES, ClrInstanceID U16 }
    144 2 MethodDCEndVerbose { ..METHOD_NAMES, ClrInstanceID U16, ReJITID U64 }
    145 1 DCStartComplete { ClrInstanceID U16 }
    146 1 DCEndComplete { ClrInstanceID U16 }
    147 1 DCStartInit { ClrInstanceID U16 }
    148 1 DCEndInit { ClrInstanceID U16 }
    149 0 MethodDCStartILToNativeMap { ..IL_TO_NATIVE_MAP }
    149 1 MethodDCStartILToNativeMap { ..IL_TO_NATIVE_MAP, ILVersionID U64 }
    150 0 MethodDCEndILToNativeMap { ..IL_TO_NATIVE_MAP }
    150 1 MethodDCEndILToNativeMap { ..IL_TO_NATIVE_MAP, ILVersionID U64 }
    151 1 DomainModuleDCStart { ..DOMAIN_MODULE }
    152 1 DomainModuleDCEnd { ..DOMAIN_MODULE }
    153 2 ModuleDCStart { ..MODULE_PDBS }
    153 3 ModuleDCStart { ..MODULE_PDBS, NativeBuildID Str }
    154 2 ModuleDCEnd { ..MODULE_PDBS }
    154 3 ModuleDCEnd { ..MODULE_PDBS, NativeBuildID Str }
    155 1 AssemblyDCStart { ..ASSEMBLY }
    156 1 AssemblyDCEnd { ..ASSEMBLY }
    157 1 AppDomainDCStart { ..APP_DOMAIN }
    158 1 AppDomainDCEnd { ..APP_DOMAIN }
    159 0 ThreadDC { ..THREAD }
    187 0 RuntimeInformationDCStart { ..RUNTIME_INFORMATION }
    280 0 TieredCompilationSettingsDCStart { ClrInstanceID U16, Flags U32 }
    300 0 ExecutionCheckpointDCEnd { ClrInstanceID U16, Name Str, Timestamp I64 }
};

/// `Microsoft-Windows-DotNETRuntimePrivate`.
#[rustfmt::skip]
pub(crate) static PRIVATE: &[Row] = rows! {
    11 0 BGCBegin { ClrInstanceID U16 }
    12 0 BGC1stNonConEnd { ClrInstanceID U16 }
    13 0 BGC1stConEnd { ClrInstanceID U16 }
    14 0 BGC2ndNonConBegin { ClrInstanceID U16 }
    15 0 BGC2ndNonConEnd { ClrInstanceID U16 }
    16 0 BGC2ndConBegin { ClrInstanceID U16 }
    17 0 BGC2ndConEnd { ClrInstanceID U16 }
    20 0 BGCDrainMark { Objects U64, ClrInstanceID U16 }
    21 0 BGCRevisit { Pages U64, Objects U64, IsLarge U32, ClrInstanceID U16 }
    22 1 BGCOverflow { Min U64, Max U64, Objects U64, IsLarge U32, ClrInstanceID U16, GenNumber U32 }
    23 0 BGCAllocWaitBegin { Reason U32, ClrInstanceID U16 }
    24 0 BGCAllocWaitEnd { Reason U32, ClrInstanceID U16 }
    26 0 BGC1stSweepEnd { GenNumber U32, ClrInstanceID U16 }
    80 1 EEStartupStart { ClrInstanceID U16 }
    81 1 EEStartupEnd { ClrInstanceID U16 }
    88 1 Main { ClrInstanceID U16 }
    89 1 MainEnd { ClrInstanceID U16 }
    192 0 PrvFinalizeObject { TypeID Ptr, ObjectID Ptr, ClrInstanceID U16, TypeName Str }
    194 0 PrvSetGCHandle {
        HandleID Ptr, ObjectID Ptr, Kind U32, Generation U32, AppDomainID U64, ClrInstanceID U16,
    }
    195 0 PrvDestroyGCHandle { HandleID Ptr, ClrInstanceID U16 }
    199 0 PinPlugAtGCTime { PlugStart Ptr, PlugEnd Ptr, GapBeforeSize Ptr, ClrInstanceID U16 }
    310 0 AllocRequest {
        LoaderHeapPtr Ptr, MemoryAddress Ptr, RequestSize U32, Unused1 U32, Unused2 U64, ClrInstanceID U16,
    }
};

/// `Microsoft-DotNETCore-SampleProfiler`. A sample is useful for its stack. The type is 0 for an error, 1 for a thread
/// in code that is not managed, 2 for a thread in managed code.
pub(crate) static SAMPLE_PROFILER: &[Row] = rows! {
    0 0 ThreadSample { Type U32 }
};

/// The events of `Universal.System` and `Universal.Events` by their names, because their ids differ between writers.
pub(crate) static UNIVERSAL: &[(&str, &[u8])] = &[
    ("ExistingProcess", PROCESS),
    ("ProcessCreate", PROCESS),
    ("ProcessExit", &[0, 0]),
    (
        "ProcessMapping",
        fields!(Id VarU, StartAddress VarU, EndAddress VarU, FileOffset VarU, FileName Utf8, MetadataId VarU),
    ),
    ("ProcessSymbol", fields!(Id VarU, MappingId VarU, StartAddress VarU, EndAddress VarU, Name Utf8)),
    ("ProcessMappingMetadata", fields!(Id VarU, SymbolMetadata Utf8, VersionMetadata Utf8)),
    ("cpu", VALUE),
    ("cswitch", VALUE),
];
const PROCESS: &[u8] = fields!(NamespaceId VarU, Name Utf8, NamespaceName Utf8);
const VALUE: &[u8] = fields!(Value VarU);

/// `Microsoft-Diagnostics-DiagnosticSource` of .NET Core 3, for each of its events: they have names and no fields.
pub(crate) const DIAGNOSTIC_SOURCE: &[u8] = join![
    &[3, 0],
    join![&head("SourceName", &[18]), b"SourceName", &[18]],
    join![&head("EventName", &[18]), b"EventName", &[18]],
    join![&head("Arguments", ARGUMENTS), b"Arguments", ARGUMENTS],
];
const ARGUMENTS: &[u8] = join![&[code::ARRAY, code::OBJECT], fields!(Key Str, Value Str)];
