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
