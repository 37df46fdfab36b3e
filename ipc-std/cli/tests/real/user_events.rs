//! Real runtimes and the descriptor of `user_events`: that of a plain file, with which tracepoints cannot be
//! registered.
use core::time::Duration;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

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
