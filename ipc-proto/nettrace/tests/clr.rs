//! The runtime's own events.
#![cfg(feature = "clr")]
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what it expects"
)]

mod blobs;

use std::collections::BTreeMap;

use blobs::{Blob, traces};
use nettrace::{Item, Metadata, Str, Value, clr};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";

fn event(provider: &str, event_id: u32, version: u32, pointer_size: u32) -> Metadata<'_> {
    let mut metadata = Metadata::new(0, provider, event_id, "");
    metadata.version = version;
    clr::describe(metadata, pointer_size)
}

/// Every event of the runtime in the recorded traces has a row, and the row fills its payload.
#[test]
fn every_trace() {
    let mut seen = BTreeMap::<(String, u32, u32), (String, u32)>::new();
    for (name, bytes, _) in traces() {
        let mut rows = BTreeMap::new();
        blobs::read(&bytes, &mut |blob| match blob {
            Blob::Metadata(metadata) => {
                let described = clr::describe(metadata, 8);
                if !metadata.fields.is_empty() {
                    assert_eq!(described.fields.len(), metadata.fields.len());
                    assert_eq!(described.name, metadata.name);
                }
                rows.insert(metadata.id, described);
            }
            Blob::FlushMetadata => rows.clear(),
            Blob::Event { metadata_id, payload } => {
                let metadata: Metadata<'_> = rows[&metadata_id];
                let provider = metadata.provider.to_string();
                if !provider.starts_with("Microsoft-Windows-DotNETRuntime")
                    && !provider.ends_with("SampleProfiler")
                {
                    return;
                }
                let key = (provider, metadata.event_id, metadata.version);
                assert!(!metadata.name.is_empty(), "{name}: {key:?}");
                assert_eq!(metadata.fields.values(payload).finish(), Ok(&[][..]), "{name}: {key:?}");
                seen.entry(key).or_insert_with(|| (metadata.name.to_string(), 0)).1 += 1;
            }
        });
    }
    assert_eq!(seen[&(RUNTIME.into(), 1, 2)].0, "GCStart");
    let total: u32 = seen.values().map(|(_, count)| count).sum();
    assert_eq!((seen.len(), total), (15, 100), "{seen:#?}");
}

/// One payload of each kind, as runtimes write them.
#[test]
fn every_kind() {
    let mut kinds = 0;
    for line in include_str!("../../../testdata/nettrace/clr-payloads.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let columns: Vec<&str> = line.split(' ').collect();
        let [provider, id, version, name, payload] = columns[..] else { panic!("{line}") };
        let payload: Vec<u8> = payload
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
        let metadata = event(provider, id.parse().unwrap(), version.parse().unwrap(), 8);
        assert_eq!(metadata.name, name);
        assert_eq!(metadata.fields.values(&payload).finish(), Ok(&[][..]), "{line}");
        // Every field of these payloads is required, so a payload without its last byte fails.
        if let Some((_, less)) = payload.split_last() {
            assert!(metadata.fields.values(less).finish().is_err(), "{line}");
        }
        kinds += 1;
    }
    assert_eq!(kinds, 95);
}

#[test]
fn rows() {
    let allocation = event(RUNTIME, 10, 4, 8);
    assert_eq!(allocation.name, "GCAllocationTick");
    let names: Vec<String> = allocation.fields.iter().map(|field| field.name.to_string()).collect();
    let expected = [
        "AllocationAmount",
        "AllocationKind",
        "ClrInstanceID",
        "AllocationAmount64",
        "TypeID",
        "TypeName",
        "HeapIndex",
        "Address",
        "ObjectSize",
    ];
    assert_eq!(names, expected);
    // Only fields that are pointers have the trace's pointer size.
    for (pointer_size, len) in [(4, 40), (8, 48)] {
        let fields = event(RUNTIME, 10, 4, pointer_size).fields;
        assert_eq!(fields.values(&[0; 60]).finish().map(<[u8]>::len), Ok(60 - len), "{pointer_size}");
    }
    assert_eq!(event(RUNDOWN, 144, 2, 8).name, "MethodDCEndVerbose");
    let checkpoint = event(RUNDOWN, 300, 0, 8);
    let payload = [&[9, 0][..], b"R\0u\0n\0\0\0", &7i64.to_le_bytes()].concat();
    assert_eq!(checkpoint.name, "ExecutionCheckpointDCEnd");
    assert_eq!(checkpoint.fields.values(&payload).field("Name"), Some(Value::Text("Run".into())));
    assert_eq!(checkpoint.fields.values(&payload).finish(), Ok(&[][..]));
    assert_eq!(event(RUNTIME, 144, 2, 8).name, "MethodUnloadVerbose");
    assert_eq!(event(RUNTIME, 144, 1, 8).fields.len(), 10);
    let sample = event("Microsoft-DotNETCore-SampleProfiler", 0, 0, 8);
    assert_eq!((sample.name, sample.fields.len()), ("ThreadSample".into(), 1));
    // A version that is newer than the table has the fields of the newest one.
    for (provider, id, version, known) in [
        (RUNTIME, 10, 5, 4),
        (RUNTIME, 1, 2 + 256, 2),
        (RUNTIME, 4, u32::MAX, 2),
        (RUNDOWN, 144, 3, 2),
        ("Microsoft-DotNETCore-SampleProfiler", 0, 1, 0),
    ] {
        let [new, known] = [version, known].map(|version| event(provider, id, version, 8));
        assert_eq!((new.version, new.fields.len()), (version, known.fields.len()), "{provider} {id}");
        assert!(new.name == known.name && !new.name.is_empty(), "{provider} {id}");
    }
    let mut payload = [1_u32, 2, 3, 4].map(u32::to_le_bytes).concat();
    payload.extend([0; 10]);
    payload.extend(*b"new");
    let start = event(RUNTIME, 1, 3, 8);
    assert_eq!(start.fields.values(&payload).finish(), Ok(&b"new"[..]));
    // A version that is too old has the name only.
    for (id, version, name) in [(10, 2, "GCAllocationTick"), (1, 0, "GCStart")] {
        let metadata = event(RUNTIME, id, version, 8);
        assert_eq!((metadata.name, metadata.fields.len()), (name.into(), 0));
    }
    // An unknown event remains unchanged.
    for (provider, id, version) in
        [(RUNTIME, 1 + 65536, 2), (RUNTIME, 9999, 0), (RUNDOWN, 1, 2), ("Else", 1, 2), ("", 0, 0)]
    {
        let metadata = event(provider, id, version, 8);
        assert!(metadata.fields.is_empty() && metadata.name.is_empty(), "{provider} {id} {version}");
    }
    // The name of a record that has one is not replaced.
    let mut named = Metadata::new(0, RUNTIME, 1, "");
    named.version = 2;
    named.name = "Mine".into();
    assert_eq!(clr::describe(named, 8).name, "Mine");
    let fields = event(RUNTIME, 2, 1, 8).fields;
    named.fields = fields;
    assert_eq!(clr::describe(named, 8).fields.len(), fields.len());
}

fn text(items: impl Iterator<Item = Item<'static>>) -> Vec<String> {
    items
        .map(|item| match item {
            Item::Value { name, value } => format!("{name}={value:?}"),
            Item::BeginObject { name } => format!("{name}{{"),
            Item::EndObject => "}".into(),
            Item::BeginArray { name } => format!("{name}["),
            Item::EndArray => "]".into(),
        })
        .collect()
}

/// The events of a whole machine are known by their names.
#[test]
fn universal() {
    let universal = |provider, name| clr::describe(Metadata::new(0, provider, 77, name), 8);
    let process = universal("Universal.System", "ProcessCreate");
    let payload = [1, 4, 0, b'b', b'a', b's', b'h', 0, 0];
    assert_eq!(process.fields.values(&payload).field("Name"), Some(Value::Text("bash".into())));
    assert_eq!(process.fields.values(&payload).finish(), Ok(&[][..]));
    let sample = universal("Universal.Events", "cpu");
    assert_eq!(sample.fields.values(&[0x80, 1]).field("Value"), Some(Value::UInt(128)));
    for (provider, name) in [("Universal.System", "Else"), ("Universal.Else", "cpu"), ("Else", "cpu")] {
        assert!(universal(provider, name).fields.is_empty());
    }
}

/// Arrays that are counted by a field before them.
#[test]
fn counted() {
    let payload: &[u8] = &[
        &[2, 0, 0, 0, 9, 0][..],
        &[1, 0, 0, 0, 0, 0, 0, 0],
        &[2, 0, 0, 0, 0, 0, 0, 0],
        &[3, 0, 0, 0, 4, 0, 0, 0, 5, b'A', 0, 0, 0],
        &[1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0],
        &[7, 0, 0, 0, 0, 0, 0, 0],
        &[0; 8],
        &[0; 11],
        &[0; 4],
    ]
    .concat();
    let payload: &'static [u8] = payload.to_vec().leak();
    let mut values = event(RUNTIME, 15, 0, 8).fields.values(payload);
    let expected = [
        "Count=UInt(2)",
        "ClrInstanceID=UInt(9)",
        "Values[",
        "{",
        "TypeID=UInt(1)",
        "ModuleID=UInt(2)",
        "TypeNameID=UInt(3)",
        "Flags=UInt(4)",
        "CorElementType=UInt(5)",
        "Name=Text(\"A\")",
        "TypeParameterCount=UInt(1)",
        "TypeParameters[",
        "=UInt(6)",
        "]",
        "}",
        "{",
        "TypeID=UInt(7)",
        "ModuleID=UInt(0)",
        "TypeNameID=UInt(0)",
        "Flags=UInt(0)",
        "CorElementType=UInt(0)",
        "Name=Text(\"\")",
        "TypeParameterCount=UInt(0)",
        "TypeParameters[",
        "]",
        "}",
        "]",
    ];
    assert_eq!(text(values.by_ref()), expected);
    assert_eq!(values.finish(), Ok(&[][..]));
    // A count that exceeds the payload fails at the first missing element.
    let mut values = event(RUNTIME, 15, 0, 8).fields.values(&[0xff; 20]);
    assert_eq!(text(values.by_ref()).len(), 7);
    assert!(values.finish().is_err());

    // Objects with the pointers of a 32-bit process.
    let payload: &'static [u8] =
        &[1, 0, 0, 0, 2, 0, 0, 0, 9, 0, 5, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0];
    let mut values = event(RUNTIME, 19, 0, 4).fields.values(payload);
    let expected = [
        "Index=UInt(1)",
        "Count=UInt(2)",
        "ClrInstanceID=UInt(9)",
        "Values[",
        "{",
        "Value=UInt(5)",
        "ReferencingFieldID=UInt(6)",
        "}",
        "{",
        "Value=UInt(7)",
        "ReferencingFieldID=UInt(8)",
        "}",
        "]",
    ];
    assert_eq!(text(values.by_ref()), expected);
    assert_eq!(values.finish(), Ok(&[][..]));

    // Each entry of a weak table has a key, a value and its handle.
    let payload: &'static [u8] = &[
        0, 0, 0, 0, 1, 0, 0, 0, 9, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,
    ];
    let mut values = event(RUNTIME, 17, 0, 8).fields.values(payload);
    let entry = ["{", "GCKeyNodeID=UInt(1)", "GCValueNodeID=UInt(2)", "GCRootID=UInt(3)", "}"];
    assert_eq!(text(values.by_ref())[4..9], entry);
    assert_eq!(values.finish(), Ok(&[][..]));

    // Two arrays with one common count, and a field after them.
    let payload: &'static [u8] = &[
        1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 2, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0,
        0, 8, 0,
    ];
    let mut values = event(RUNTIME, 190, 0, 8).fields.values(payload);
    let tail = ["ILOffsets[", "=UInt(4)", "=UInt(5)", "]", "NativeOffsets[", "=UInt(6)", "=UInt(7)", "]"];
    let items = text(values.by_ref());
    assert_eq!(items[4..12], tail);
    assert_eq!(items[12..], ["ClrInstanceID=UInt(8)"]);
    assert_eq!(values.finish(), Ok(&[][..]));

    // Bytes whose length is in a field.
    let mut values = event(RUNTIME, 39, 0, 8).fields.values(&[b'n', 0, 0, 0, 2, 0, 0, 0, 0xca, 0xfe, 1, 0]);
    values.by_ref().take(2).for_each(drop);
    let data = Item::Value { name: "Data".into(), value: Value::Bytes(&[0xca, 0xfe]) };
    assert_eq!(values.next(), Some(data));
    assert_eq!(values.finish(), Ok(&[][..]));
}

/// A `MetadataBuf` gets the same names and fields as a borrowed description.
#[cfg(feature = "alloc")]
#[test]
fn owned() {
    use nettrace::{MetadataBuf, Version};

    let utf16 = |s: &str| -> Vec<u8> { s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect() };
    for (provider, id, name, described) in [
        (RUNTIME, 2u32, "", "GCEnd"),
        (RUNTIME, 2, "Mine", "Mine"),
        (RUNTIME, 9999, "", ""),
        ("Else", 2, "x", "x"),
    ] {
        let record = [
            &1u32.to_le_bytes()[..],
            &utf16(provider),
            &id.to_le_bytes(),
            &utf16(name),
            &[0; 8],
            &[1, 0, 0, 0],
            &[4, 0, 0, 0],
        ]
        .concat();
        let mut owned = MetadataBuf::decode(Version::V4, &record).unwrap();
        owned.describe(8);
        let borrowed = clr::describe(Metadata::decode(Version::V4, &record).unwrap(), 8);
        assert_eq!(format!("{owned:?}"), format!("{borrowed:?}"));
        assert_eq!(owned.get().name, described);
        assert_eq!(owned.get().fields.len(), borrowed.fields.len());
        owned.describe(8);
        assert_eq!(format!("{owned:?}"), format!("{borrowed:?}"));
    }
}

/// .NET Core 3 does not describe the fields of these events.
#[test]
fn diagnostic_source() {
    let mut metadata = Metadata::default();
    metadata.provider = "Microsoft-Diagnostics-DiagnosticSource".into();
    metadata.name = "Activity1Start".into();
    let utf16 = |s: &str| -> Vec<u8> { s.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect() };
    let payload = [utf16("Source"), utf16("Name"), vec![1, 0], utf16("k"), utf16("v")].concat();
    let described = clr::describe(metadata, 8);
    let values: Vec<Str<'_>> = described
        .fields
        .values(&payload)
        .filter_map(|item| match item {
            Item::Value { value: Value::Text(text), .. } => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(values, ["Source", "Name", "k", "v"].map(Str::from));
    assert_eq!(described.fields.values(&payload).finish(), Ok(&[][..]));
    metadata.name = "Other".into();
    assert!(clr::describe(metadata, 8).fields.is_empty());
}
