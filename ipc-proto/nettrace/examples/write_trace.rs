//! Writes a trace of 1,000 events to standard output.
use std::io::Write;
use std::time::SystemTime;

use nettrace::{
    CalendarTime, Event, Fields, Metadata, PayloadWriter, Scalar, ThreadEntry, Trace, TraceWriter, Version,
    WriteError,
};

pub(crate) fn write_trace(version: Version, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let sync_time = CalendarTime::from_unix(now).unwrap_or_default();
    let trace = Trace { sync_time, process_id: Some(4711), ..Trace::new(version) };
    // For instance, readers refuse a trace with an impossible clock.
    debug_assert_eq!(trace.check(), Ok(()));
    let mut buf = [0; 4096];
    let mut writer = TraceWriter::new(&trace, &mut buf)?;

    let mut space = [0; 64];
    let mut tick = Metadata::new(1, "Demo", 7, "Tick");
    tick.fields = Fields::build(&[("Count", Scalar::UInt32), ("Text", Scalar::Utf16String)], &mut space)?;
    out.extend_from_slice(&writer.describe(&tick)?);

    // A reader of V6 refuses events of a thread that it does not know. V4 has no records of threads.
    if version == Version::V6 {
        let entries = [ThreadEntry::ProcessId(4711), ThreadEntry::ThreadId(4712)];
        out.extend_from_slice(&writer.thread(1, entries)?);
    }

    // One event per millisecond; the ticks of `Trace::new` are nanoseconds.
    let mut space = [0; 64];
    for (count, timestamp) in (1..=1000).zip((0..).step_by(1_000_000)) {
        let payload = PayloadWriter::new(&mut space).uint32(count).utf16_string("a millisecond").finish()?;
        let event = Event {
            metadata_id: 1,
            sequence: count,
            capture_thread: 1,
            thread: 1,
            timestamp,
            payload,
            ..Event::default()
        };
        out.extend_from_slice(&writer.event(&event)?);
    }
    out.extend_from_slice(&writer.finish());
    Ok(())
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let mut out = Vec::new();
    write_trace(Version::V4, &mut out)?;
    std::io::stdout().write_all(&out)?;
    Ok(())
}
