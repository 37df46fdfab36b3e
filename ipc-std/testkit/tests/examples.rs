//! Checks of the examples.
#![cfg(feature = "io")]
#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test fails by unwrapping")]

#[cfg(unix)]
#[path = "../examples/many_sessions/recorder.rs"]
mod recorder;

/// The event loop of `many_sessions`.
#[cfg(unix)]
mod many_sessions {
    use super::recorder;
    use core::time::Duration;

    use ipc_proto::types::{EventLevel, Provider};
    use ipc_proto::{Code, SessionEnd};
    use ipc_std::{Client, Timeouts, TraceConfig};
    use ipc_testkit::{FakeRuntime, Fault, Profile, Response};

    fn record(clients: &[Client], length: Duration) -> Vec<recorder::Recording> {
        let (name, arguments) = ("Lab-Workload".into(), "".into());
        let provider = Provider { keywords: u64::MAX, level: EventLevel::VERBOSE, name, arguments };
        recorder::record(clients, &TraceConfig::new(&[provider]), length).unwrap()
    }

    #[test]
    fn every_session_is_read_to_its_end() {
        const TRACE: &[u8] = include_bytes!("../../../testdata/nettrace/gen-net10-lab-small.nettrace");
        let runtimes: Vec<_> = (0..20).map(|_| FakeRuntime::start(Profile::net10()).unwrap()).collect();
        for runtime in &runtimes {
            runtime.on(Code(0x0203), |_| Response::Trace(TRACE.to_vec()));
        }
        let clients: Vec<_> = runtimes.iter().map(|runtime| Client::at(runtime.path())).collect();
        for recording in record(&clients, Duration::from_millis(100)) {
            assert_eq!((recording.events, recording.end), (142, Some(SessionEnd::Complete)), "{recording:?}");
        }
    }

    /// A runtime that exits, hangs, or sends nothing does not delay the others.
    #[test]
    fn sessions_do_not_wait_for_each_other() {
        let [good, silent, hangs, exits] = [(); 4].map(|()| FakeRuntime::start(Profile::net10()).unwrap());
        silent.on(Code(0x0203), |_| Response::Trace(Vec::new()));
        hangs.set_fault(Fault::StallStream(1000));
        exits.set_fault(Fault::CloseAfter(5000));
        let clients: Vec<_> =
            [&good, &silent, &hangs, &exits].iter().map(|runtime| Client::at(runtime.path())).collect();
        let timeouts = Timeouts { stop: Duration::from_millis(500), ..Timeouts::default() };
        let clients: Vec<_> = clients
            .into_iter()
            .enumerate()
            .map(|(number, client)| if number == 2 { client.with_timeouts(timeouts) } else { client })
            .collect();
        let recordings = record(&clients, Duration::from_millis(300));
        let ends: Vec<_> = recordings.iter().map(|recording| recording.end).collect();
        assert_eq!(
            ends,
            [Some(SessionEnd::Complete), Some(SessionEnd::CutOff), None, Some(SessionEnd::CutOff)]
        );
        assert!(recordings.first().unwrap().events > 0, "{recordings:?}");
        let error = recordings.get(2).unwrap().error.as_ref().unwrap();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{error}");
    }
}
