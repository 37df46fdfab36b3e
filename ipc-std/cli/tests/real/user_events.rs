//! Real runtimes and the descriptor of `user_events`: that of a plain file, with which tracepoints cannot be
//! registered.
use core::time::Duration;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use ipc_proto::types::{
    EventFilter, EventLevel, SessionConfig, TracepointConfig, UserEventsProvider, UserEventsSession,
};
use ipc_proto::{Array, CollectTracing5, Command, HResult, encode_to_vec};
use ipc_std::{Client, Error};

use crate::runtime::with_runtimes;

/// A runtime that received a descriptor tries to use it and reports that this failed. A runtime without a descriptor
/// refuses the request before it tries.
#[test]
fn a_descriptor_arrives() {
    with_runtimes(|runtime| {
        let name = &runtime.name;
        let client = Client::at(&runtime.socket);
        let version =
            client.process_info().map_or_else(|_| String::new(), |info| info.clr_product_version.to_string());
        // A version that is not a number is older than the command.
        let major: u32 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or_default();
        let [with, without] =
            if major < 10 { [HResult::UNKNOWN_COMMAND; 2] } else { [HResult::FAIL, HResult::BAD_ENCODING] };
        let tracepoints = TracepointConfig { default_tracepoint_name: "tp".into(), sets: Array::EMPTY };
        let providers = [UserEventsProvider {
            keywords: 1,
            level: EventLevel::VERBOSE,
            name: "Microsoft-Windows-DotNETRuntime".into(),
            arguments: "".into(),
            filter: EventFilter::ALL,
            tracepoints,
        }];
        let session = UserEventsSession { rundown_keyword: 0, providers: Array::from(&providers) };
        for _ in 0..20 {
            match client.start_user_events(&session, tempfile::tempfile().unwrap()) {
                Err(Error::Refused { hresult, .. }) => assert_eq!(hresult, with, "{name}"),
                other => panic!("{name}: {other:?}"),
            }
        }
        let command = CollectTracing5 { session: SessionConfig::UserEvents(session) };
        let mut request = encode_to_vec(CollectTracing5::CODE, &command).unwrap();
        request.push(b'!');
        let mut stream = UnixStream::connect(&runtime.socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(&request).unwrap();
        // Does not read to the end, because .NET 10 does not close the connection.
        let mut answer = [0; 24];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[20..], without.0.to_le_bytes(), "{name}");
    });
}

/// On a kernel with `user_events`, the runtime writes its events to the tracepoint of the request, until the session is
/// stopped.
#[test]
fn events_reach_the_kernel() {
    const TRACEFS: &str = "/sys/kernel/tracing";
    if !std::path::Path::new(TRACEFS).join("user_events_data").exists() {
        eprintln!("events_reach_the_kernel: skipped, the kernel has no user_events");
        return;
    }
    with_runtimes(|runtime| {
        let (name, tracepoint) = (&runtime.name, format!("dotnet_ipc_real_{}", runtime.process_id));
        let providers = [UserEventsProvider {
            keywords: u64::MAX,
            level: EventLevel::VERBOSE,
            name: "Microsoft-Windows-DotNETRuntime".into(),
            arguments: "".into(),
            filter: EventFilter::ALL,
            tracepoints: TracepointConfig {
                default_tracepoint_name: tracepoint.as_str().into(),
                sets: Array::EMPTY,
            },
        }];
        let wanted = UserEventsSession { rundown_keyword: 0, providers: Array::from(&providers) };
        let data = fs::OpenOptions::new().write(true).open(format!("{TRACEFS}/user_events_data")).unwrap();
        let client = Client::at(&runtime.socket);
        let session = client.start_user_events(&wanted, data).unwrap();
        let instance = format!("{TRACEFS}/instances/{tracepoint}");
        fs::create_dir(&instance).unwrap();
        let enable = format!("{instance}/events/user_events/{tracepoint}/enable");
        fs::write(&enable, "1").unwrap();
        let (end, line) = (Instant::now() + Duration::from_secs(60), format!("{tracepoint}:"));
        let mut trace = String::new();
        while !trace.contains(&line) && Instant::now() < end {
            trace = fs::read_to_string(format!("{instance}/trace")).unwrap();
        }
        fs::write(&enable, "0").unwrap();
        client.stop_tracing(session.session_id()).unwrap();
        assert!(!session.has_ended(), "{name}: a Stop by another client leaves the connection open");
        drop(session);
        fs::remove_dir(&instance).unwrap();
        assert!(trace.contains(&line), "{name}: {trace}");
    });
}
