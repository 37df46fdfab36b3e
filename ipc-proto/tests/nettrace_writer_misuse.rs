//! A writer does not accept records where a trace has none.
#![allow(clippy::unwrap_used, reason = "a test states what it expects by unwrapping it")]

use ipc_proto::nettrace::{Event, Metadata, Stack, Trace, TraceWriter, Version, WriteError};

#[test]
fn no_record_precedes_the_header() {
    for version in [Version::V4, Version::V6] {
        let mut buf = [0; 4096];
        let mut writer = TraceWriter::new(version, &mut buf).unwrap();
        let event = Event { metadata_id: 1, payload: b"payload", ..Event::default() };
        assert_eq!(writer.event(&event), Err(WriteError::Misplaced), "{version}");
        assert_eq!(writer.describe(&Metadata::default()), Err(WriteError::Misplaced), "{version}");
        assert_eq!(writer.stack(&Stack::default()), Err(WriteError::Misplaced), "{version}");
    }
}

#[test]
fn no_record_follows_the_end() {
    for version in [Version::V4, Version::V6] {
        let mut buf = [0; 4096];
        let mut writer = TraceWriter::new(version, &mut buf).unwrap();
        assert_eq!(writer.trace(&Trace::new(version)), Ok(None));
        while writer.finish().is_some() {}
        assert_eq!(writer.event(&Event::default()), Err(WriteError::Misplaced), "{version}");
        assert_eq!(writer.describe(&Metadata::default()), Err(WriteError::Misplaced), "{version}");
        assert_eq!(writer.stack(&Stack::default()), Err(WriteError::Misplaced), "{version}");
    }
}
