//! The parser in a window that is as small as possible, and the writer, whose stream the parser reads again.
use super::*;

unsafe fn utf8(text: Text<'_>) -> String {
    text_of(|space, size, len| unsafe { dipc_text_to_utf8(text, space, size, len) })
}

unsafe extern "C" fn visit_label(seen: *mut c_void, label: *const Label<'_>) {
    let Label { kind, name, number, text, .. } = unsafe { label.read() };
    let shown = unsafe { format!("{kind} {}={}{number}", utf8(name), utf8(text)) };
    unsafe { (*seen.cast::<Vec<String>>()).push(shown) };
}

unsafe extern "C" fn visit_value(seen: *mut c_void, value: *const FieldValue<'_>) -> bool {
    let FieldValue { name, number, text, .. } = unsafe { value.read() };
    let shown = unsafe { format!("{}={}{number}", utf8(name), utf8(text)) };
    unsafe { (*seen.cast::<Vec<String>>()).push(shown) };
    true
}

/// Declares the columns of a batch, each with memory of exactly its size, and a row of them.
macro_rules! columns {
    ($($name:ident: $of:ty,)*) => {
        struct Columns {
            columns: Memory<EventColumns>,
            $($name: Memory<$of>,)*
        }

        struct Row {
            $($name: $of,)*
        }

        impl Columns {
            fn new(rows: usize) -> Self {
                $(let $name = Memory::<$of>::array(rows);)*
                let columns = Memory::of(EventColumns { $($name: $name.at,)* });
                Self { columns, $($name,)* }
            }

            unsafe fn row(&self, row: usize) -> Row {
                Row { $($name: unsafe { self.$name.at.add(row).read() },)* }
            }
        }
    };
}
columns! {
    metadata_id: u32,
    timestamp: u64,
    thread: u64,
    stack_id: u32,
    payload_offset: usize,
    payload_len: usize,
    capture_thread: u64,
    sequence: u32,
    processor: u32,
    label_list: u32,
    sorted: bool,
    activity_id: Guid,
    related_activity_id: Guid,
    stack_offset: usize,
    stack_len: usize,
}

impl Row {
    /// Returns the row as the event of a record.
    fn event(self, window: *const u8) -> Event<'static> {
        let Self { metadata_id, timestamp, thread, stack_id, payload_offset, payload_len, .. } = self;
        let Self { capture_thread, sequence, processor, label_list, sorted, .. } = self;
        let Self { activity_id, related_activity_id, stack_offset, stack_len, .. } = self;
        Event {
            metadata_id,
            sequence,
            capture_thread,
            thread,
            processor,
            stack_id,
            timestamp,
            activity_id,
            related_activity_id,
            label_list,
            sorted,
            payload: window.wrapping_add(payload_offset),
            payload_len,
            stack: window.wrapping_add(stack_offset),
            stack_len,
            owner: PhantomData,
        }
    }
}

/// Returns every part of an event as text, with the bytes of its payload and of its stack.
unsafe fn shown(event: Event<'_>) -> String {
    let bytes = |at: *const u8, len: usize| (0..len).map(|i| unsafe { at.add(i).read() }).collect::<Vec<_>>();
    let (payload, stack) = (bytes(event.payload, event.payload_len), bytes(event.stack, event.stack_len));
    let (activity, related) = (event.activity_id.bytes, event.related_activity_id.bytes);
    let Event { metadata_id, sequence, capture_thread, thread, processor, .. } = event;
    let Event { stack_id, timestamp, label_list, sorted, .. } = event;
    format!(
        "{metadata_id} {sequence} {capture_thread} {thread} {processor} {stack_id} {timestamp} {label_list} {sorted} \
         {activity:?} {related:?} {payload:?} {stack:?}"
    )
}

/// Reads the events of a stream in batches of so many rows, or each as a record if there are none. Returns the rows, and
/// the records that are not events.
unsafe fn rows(stream: &[u8], batch: usize) -> (Vec<String>, Vec<u32>) {
    unsafe {
        let (window, columns, count) =
            (Memory::<u8>::from(stream), Columns::new(batch.max(1)), Memory::<usize>::one());
        let (parser, record) = (Memory::<Parser>::zeros(), Memory::<Record<'_>>::one());
        ok(dipc_parser_init(parser.at));
        let (mut rows, mut others) = (Vec::new(), Vec::new());
        loop {
            let next = dipc_parser_next_events;
            ok(next(parser.at, window.at, window.count, columns.columns.at, batch, count.at));
            rows.extend((0..count.get()).map(|row| shown(columns.row(row).event(window.at))));
            if count.get() > 0 {
                continue;
            }
            ok(dipc_parser_next(parser.at, window.at, window.count, record.at));
            let Record { kind, u } = record.get();
            match kind {
                DIPC_RECORD_MORE | DIPC_RECORD_END => return (rows, others),
                DIPC_RECORD_EVENT => {
                    assert_eq!(batch, 0, "there was room for the event");
                    rows.push(shown(u.event));
                }
                _ => others.push(kind),
            }
        }
    }
}

#[test]
fn columns_have_the_events_of_the_records() {
    let v3 = include_bytes!("../../../../testdata/nettrace/gen-net10-lab-v3-small.netperf").as_slice();
    let v6 = include_bytes!("../../../../testdata/nettrace/synth-v6-all.nettrace").as_slice();
    let plain =
        include_bytes!("../../../../testdata/nettrace/synth-v4-padded-uncompressed.nettrace").as_slice();
    // The last block is cut, and has bad bytes.
    let bad = [&v6[..v6.len() / 2], &[0xff; 40], &v6[v6.len() / 2 + 40..]].concat();
    for stream in [v3, v6, plain, &v6[..v6.len() - 9], &bad] {
        let expected = unsafe { rows(stream, 0) };
        assert!(!expected.0.is_empty());
        for batch in [1, 2, 3, 100] {
            assert_eq!(unsafe { rows(stream, batch) }, expected);
        }
    }
}

#[test]
fn a_column_that_cannot_be_is_an_error() {
    let stream = include_bytes!("../../../../testdata/nettrace/synth-v6-all.nettrace");
    unsafe {
        let (window, columns, count) = (Memory::<u8>::from(stream), Columns::new(2), Memory::<usize>::one());
        let (parser, record) = (Memory::<Parser>::zeros(), Memory::<Record<'_>>::one());
        ok(dipc_parser_init(parser.at));
        let at = columns.columns.at;
        let all = at.cast_const();
        let next = |rows| dipc_parser_next_events(parser.at, window.at, window.count, all, rows, count.at);
        // The columns are used, and checked, where an event can follow.
        while next(usize::MAX) == Status::Ok {
            ok(dipc_parser_next(parser.at, window.at, window.count, record.at));
            assert_ne!(record.get().kind, DIPC_RECORD_END);
        }
        assert_eq!(next(usize::MAX), Status::InvalidLength);
        (*at).timestamp = columns.timestamp.at.cast::<u8>().add(1).cast();
        assert_eq!(next(2), Status::Misaligned);
        (*at).timestamp = null_mut();
        ok(next(2));
    }
}

/// Returns the values of a payload: by a visitor, and by the indexes of the fields.
unsafe fn both(metadata: *const Metadata<'_>, payload: *const u8, len: usize) -> [(Vec<String>, Status); 2] {
    unsafe extern "C" fn visit(seen: *mut c_void, value: *const FieldValue<'_>) -> bool {
        let FieldValue { kind, name, number, real, text, guid, bytes, len } = unsafe { value.read() };
        let shown = match kind {
            DIPC_VALUE_REAL => format!("{real}"),
            DIPC_VALUE_TEXT => unsafe { utf8(text) },
            DIPC_VALUE_GUID | DIPC_VALUE_DECIMAL => format!("{:?}", guid.bytes),
            DIPC_VALUE_BYTES => format!("{bytes:p} {len}"),
            _ => format!("{number}"),
        };
        let shown = unsafe { format!("{kind} {}={shown}", utf8(name)) };
        unsafe { (*seen.cast::<Vec<String>>()).push(shown) };
        true
    }
    unsafe {
        let mut seen = Vec::<String>::new();
        let visited =
            dipc_metadata_values(metadata, payload, len, Some(visit), (&raw mut seen).cast(), null_mut());
        let (count, detail) = (Memory::<usize>::one(), Memory::<usize>::one());
        let status = dipc_metadata_fields(metadata, null_mut(), 0, count.at);
        let needed = count.get();
        assert_eq!(status, if needed > 0 { Status::BufferTooSmall } else { Status::Ok });
        let fields = Memory::<DescribedField<'_>>::array(needed);
        ok(dipc_metadata_fields(metadata, fields.at, needed, count.at));
        assert_eq!(count.get(), needed);
        let read = |values: &Memory<IndexedValue<'_>>| {
            let (at, room) = (values.at, values.count);
            dipc_fields_values(fields.at, needed, payload, len, at, room, count.at, detail.at)
        };
        let mut values = Memory::<IndexedValue<'_>>::array(0);
        let mut indexed = read(&values);
        if indexed == Status::BufferTooSmall {
            let all = detail.get();
            values = Memory::array(all - 1);
            assert_eq!((read(&values), detail.get(), count.get()), (indexed, all, all - 1));
            values = Memory::array(all);
            indexed = read(&values);
        }
        let mut shown = Vec::new();
        for value in 0..count.get() {
            let IndexedValue { field, kind, u } = values.at.add(value).read();
            let described = fields.at.add(field as usize).read();
            let name = match kind {
                DIPC_VALUE_END_OBJECT | DIPC_VALUE_END_ARRAY => String::new(),
                _ => utf8(described.name),
            };
            let content = match kind {
                DIPC_VALUE_REAL => format!("{}", u.real),
                DIPC_VALUE_TEXT => utf8(u.text),
                DIPC_VALUE_GUID | DIPC_VALUE_DECIMAL => format!("{:?}", u.guid.bytes),
                DIPC_VALUE_BYTES => format!("{:p} {}", u.bytes.data, u.bytes.len),
                _ => format!("{}", u.number),
            };
            shown.push(format!("{kind} {name}={content}"));
        }
        [(seen, visited), (shown, indexed)]
    }
}

#[test]
fn values_by_index_are_those_of_the_visitor() {
    let stream = include_bytes!("../../../../testdata/nettrace/synth-v6-all.nettrace");
    unsafe {
        let window = Memory::<u8>::from(stream);
        let (parser, record) = (Memory::<Parser>::zeros(), Memory::<Record<'_>>::one());
        ok(dipc_parser_init(parser.at));
        let (mut described, mut kinds) = (Vec::new(), Vec::new());
        loop {
            ok(dipc_parser_next(parser.at, window.at, window.count, record.at));
            let Record { kind, u } = record.get();
            match kind {
                DIPC_RECORD_METADATA => {
                    let metadata = Memory::<Metadata<'_>>::one();
                    let Event { payload, payload_len, .. } = u.event;
                    ok(dipc_metadata_decode(6, payload, payload_len, metadata.at, null_mut()));
                    described.push(metadata);
                }
                DIPC_RECORD_EVENT => {
                    let Event { metadata_id, payload, payload_len, .. } = u.event;
                    let metadata = described.iter().rfind(|m| (*m.at).id == metadata_id).unwrap();
                    for len in 0..=payload_len {
                        let [by_visitor, by_index] = both(metadata.at, payload, len);
                        assert_eq!(by_visitor, by_index);
                        kinds.extend(
                            by_index.0.iter().map(|shown| shown.split(' ').next().unwrap().to_owned()),
                        );
                    }
                }
                DIPC_RECORD_END => break,
                _ => {}
            }
        }
        for kind in [DIPC_VALUE_TEXT, DIPC_VALUE_GUID, DIPC_VALUE_BEGIN_OBJECT, DIPC_VALUE_END_ARRAY] {
            assert!(kinds.contains(&kind.to_string()), "no value of kind {kind}");
        }
    }
}

#[test]
fn fields_of_another_maker_are_errors() {
    let name = Text::NULL;
    let field = |kind, end, count| DescribedField { name, kind, parent: DIPC_NO_PARENT, end, count };
    // No type, no element, an object that never ends, an array that has too many elements, and a type of no byte.
    let made = [
        vec![field(2, 1, 0)],
        vec![field(DIPC_TYPE_ARRAY, 9, 0)],
        vec![field(DIPC_TYPE_OBJECT, 0, 0)],
        vec![field(DIPC_TYPE_FIXED_ARRAY, 2, 70_000), field(DIPC_TYPE_UINT8, 2, 0)],
        vec![field(300, 1, 0)],
    ];
    for fields in made {
        let (fields, payload) = (Memory::from(&fields), Memory::from(&[1_u8, 0, 1, 0]));
        let (values, count) = (Memory::<IndexedValue<'_>>::array(200), Memory::<usize>::one());
        let status = unsafe {
            let (at, room) = (values.at, values.count);
            dipc_fields_values(fields.at, fields.count, payload.at, 4, at, room, count.at, null_mut())
        };
        assert_ne!(status, Status::Ok);
        assert!(count.get() < 200);
    }
}

/// Reads a stream, of which at most 40 bytes arrive at a time, in a window that grows only if it must. Returns the number
/// of records of each kind, the names, labels and values in them, and the end.
unsafe fn read(mut stream: &[u8]) -> ([usize; 16], Vec<String>, String) {
    unsafe {
        let (mut records, mut seen, mut described) = ([0; 16], Vec::<String>::new(), Vec::new());
        // Until the end, only this pointer is used.
        let seen_at = &raw mut seen;
        let (parser, record, end) = (Memory::<Parser>::zeros(), Memory::<Record<'_>>::one(), Memory::one());
        let (mut window, mut len, mut version) = (Memory::<u8>::array(16), 0, 0);
        ok(dipc_parser_init(parser.at));
        loop {
            ok(dipc_parser_next(parser.at, window.at, len, record.at));
            let Record { kind, u } = record.get();
            records[kind as usize] += 1;
            match kind {
                DIPC_RECORD_MORE => {
                    let used = dipc_parser_release(parser.at);
                    len -= used;
                    window.at.copy_from(window.at.add(used), len);
                    if u.needed > window.count {
                        window.relocate(u.needed);
                    }
                    let n = stream.len().min(40).min(window.count - len);
                    if n == 0 {
                        break;
                    }
                    window.at.add(len).copy_from_nonoverlapping(stream.as_ptr(), n);
                    (stream, len) = (&stream[n..], len + n);
                }
                DIPC_RECORD_END => break,
                DIPC_RECORD_TRACE => version = u.trace.version,
                DIPC_RECORD_METADATA => {
                    // The window moves on: the program copies the record, and moves its description too.
                    let Event { payload, payload_len, .. } = u.event;
                    let (bytes, mut metadata) =
                        (Memory::<u8>::array(payload_len), Memory::<Metadata<'_>>::one());
                    bytes.at.copy_from_nonoverlapping(payload, payload_len);
                    let (decode, none) = (dipc_metadata_decode_runtime, null_mut());
                    ok(decode(version, 8, bytes.at, payload_len, metadata.at, none));
                    metadata.relocate(1);
                    (*seen_at).push(format!(
                        "{}/{}",
                        utf8((*metadata.at).provider),
                        utf8((*metadata.at).name)
                    ));
                    described.push((metadata, bytes));
                }
                DIPC_RECORD_EVENT => {
                    let Event { metadata_id, payload, payload_len, .. } = u.event;
                    let (metadata, _) = described.iter().rfind(|(m, _)| (*m.at).id == metadata_id).unwrap();
                    let visit = Some(visit_value as _);
                    // A payload that does not fit its description occurs in valid traces.
                    dipc_metadata_values(
                        metadata.at,
                        payload,
                        payload_len,
                        visit,
                        seen_at.cast(),
                        null_mut(),
                    );
                }
                DIPC_RECORD_LABEL_LIST => {
                    let LabelList { bytes, len, .. } = u.label_list;
                    ok(dipc_labels(bytes, len, Some(visit_label), seen_at.cast(), null_mut()));
                }
                DIPC_RECORD_STACK => {
                    let bytes = (0..u.stack.len).map(|i| u.stack.bytes.add(i).read());
                    (*seen_at).push(format!("stack {:?}", bytes.collect::<Vec<u8>>()));
                }
                _ => {}
            }
        }
        ok(dipc_parser_finish(parser.at, window.at, len, end.at));
        let text =
            |space, size, written| dipc_parser_end_text(parser.at, window.at, len, space, size, written);
        (records, seen, text_of(text))
    }
}

#[test]
fn every_kind_of_record_in_a_small_window() {
    let stream = include_bytes!("../../../../testdata/nettrace/synth-v6-all.nettrace");
    let (records, seen, end) = unsafe { read(stream) };
    let kinds = [DIPC_RECORD_METADATA, DIPC_RECORD_EVENT, DIPC_RECORD_THREAD, DIPC_RECORD_LABEL_LIST];
    assert_eq!(kinds.map(|kind| records[kind as usize]), [3, 9, 4, 3]);
    for text in ["Prov.A/All", "Prov.B/Redefined", "5 s=val0", "s16=zeroé0", "dat=loc0", "v=42"] {
        assert!(seen.contains(&text.into()), "{text} is not in {seen:?}");
    }
    assert_eq!(end, "complete");
    let (_, _, end) = unsafe { read(&stream[..700]) };
    assert!(end.starts_with("truncated at byte 700"), "{end}");
}

/// Calls a function that writes a record, and appends its output to the stream.
unsafe fn append(stream: &mut Vec<u8>, write: impl FnOnce(*mut Output) -> Status) {
    let out = Memory::<Output>::one();
    ok(write(out.at));
    let Output { data, len } = out.get();
    stream.extend((0..len).map(|i| unsafe { data.add(i).read() }));
}

#[test]
fn a_written_stream_is_read_again() {
    unsafe {
        let (writer, buf, mut stream) = (Memory::<Writer>::zeros(), Memory::array(1024), Vec::new());
        let trace = Memory::<Trace>::zeros();
        ((*trace.at).pointer_size, (*trace.at).frequency) = (8, 1000);
        ok(dipc_writer_init(writer.at, trace.at, buf.at, buf.count, null_mut()));
        let (fields, description) = (Memory::<Field<'_>>::array(2), Memory::<Description<'_>>::zeros());
        fields.at.write(Field { name: dipc_utf8(c"Count".as_ptr()), kind: DIPC_TYPE_UINT32 });
        fields.at.add(1).write(Field { name: dipc_utf8(c"Text".as_ptr()), kind: DIPC_TYPE_UTF16 });
        (*description.at).id = 1;
        (*description.at).name = dipc_utf8(c"Größe".as_ptr());
        ((*description.at).fields, (*description.at).field_count) = (fields.at, 2);
        append(&mut stream, |out| dipc_writer_describe(writer.at, description.at, out));
        let addresses = Memory::<u8>::from(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let stack = Memory::of(Stack { id: 1, bytes: addresses.at, len: 8 });
        append(&mut stream, |out| dipc_writer_stack(writer.at, stack.at, out));
        for sequence in 1..=20 {
            let payload = Memory::<u8>::from(&[sequence, 0, 0, 0, b'x', 0, 0, 0]);
            let event = Memory::<Event<'_>>::zeros();
            ((*event.at).metadata_id, (*event.at).sequence) = (1, sequence.into());
            ((*event.at).payload, (*event.at).payload_len) = (payload.at, payload.count);
            append(&mut stream, |out| dipc_writer_event(writer.at, event.at, out));
        }
        append(&mut stream, |out| dipc_writer_flush(writer.at, out));
        let point = Memory::of(SequencePoint { timestamp: 30, flags: 0, threads: 0 });
        append(&mut stream, |out| dipc_writer_sequence_point(writer.at, point.at, out));
        let thread = Memory::of(Thread { thread: 9, sequence: 20 });
        append(&mut stream, |out| dipc_writer_thread_sequence(writer.at, thread.at, out));
        append(&mut stream, |out| dipc_writer_finish(writer.at, out));

        let (records, mut seen, end) = read(&stream);
        assert_eq!((records[DIPC_RECORD_THREAD_SEQUENCE as usize], end.as_str()), (1, "complete"));
        let values: Vec<_> = (1..=20).flat_map(|n| [format!("Count={n}"), "Text=x0".into()]).collect();
        assert_eq!(seen.split_off(2), values);
        assert_eq!(seen, ["/Größe", "stack [1, 2, 3, 4, 5, 6, 7, 8]"]);
    }
}
