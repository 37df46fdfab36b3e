//! The examples of clients over other transports, with real runtimes.
use std::process::Command;

use ipc_std::TraceReader;

use crate::runtime::with_runtimes;

/// Each program checks information, a variable, a trace with the best command, the Stop, a cancel and live events.
#[test]
fn clients_over_other_transports() {
    let tests = std::env::current_exe().unwrap();
    let examples = tests.ancestors().nth(2).unwrap().join("examples");
    with_runtimes(|runtime| {
        if runtime.name.contains("31") {
            return; // it has neither process information nor variables
        }
        for name in ["ssh_like", "async_stream"] {
            let program = examples.join(name);
            let output = Command::new(&program).arg(&runtime.socket).output();
            let output =
                output.unwrap_or_else(|e| panic!("{e}: `.ci/run real` builds {}", program.display()));
            let (stdout, stderr) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{}: {name}: {stdout}{stderr}", runtime.name);
            assert!(stdout.contains(&format!("SET_BY={name}")), "{}: {stdout}", runtime.name);
        }
    });
}

/// A client of `ipc-proto` alone, over streams that block.
#[test]
fn a_trace_over_blocking_streams() {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("examples/trace");
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("trace.nettrace");
    with_runtimes(|runtime| {
        let output = Command::new(&program).arg(&runtime.socket).arg("1").arg(&file).output().unwrap();
        assert_eq!(output.stdout, b"Complete\n", "{}: {output:?}", runtime.name);
        let mut reader = TraceReader::new(std::fs::File::open(&file).unwrap());
        let mut events = 0;
        while reader.next_event().unwrap().is_some() {
            events += 1;
        }
        assert!(events > 0, "{}: no event", runtime.name);
    });
}
