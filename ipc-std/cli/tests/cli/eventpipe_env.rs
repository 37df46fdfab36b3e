//! Tests of `dotnet-ipc eventpipe-env`.

use std::process::Command;

use serde_json::json;

use crate::tool::{Ran, run};

/// Returns the lines of the output, without the prefix of the names.
fn variables(args: &[&str]) -> Vec<String> {
    let ran = run(&[&["eventpipe-env", "--format", "shell"], args].concat()).well();
    ran.text().lines().map(|line| line.strip_prefix("export DOTNET_").unwrap().to_owned()).collect()
}

fn refused(args: &[&str], status: i32, message: &str) {
    let ran: Ran = run(&[&["eventpipe-env"], args].concat());
    assert_eq!(ran.text(), "", "{args:?}");
    ran.fails(status, message);
}

#[test]
fn the_options_are_those_of_trace() {
    assert_eq!(
        variables(&[]),
        [
            "EnableEventPipe=1",
            "EventPipeOutputPath=trace_{pid}.nettrace",
            "EventPipeConfig=Microsoft-Windows-DotNETRuntime:100003801d:4,\
         Microsoft-DotNETCore-SampleProfiler:f00000000000:4",
            "EventPipeCircularMB=100",
            "EventPipeOutputStreaming=1",
        ]
    );
    let options = [
        "-o",
        "{pid}",
        "--provider",
        "App:3:5:A=1;B=2",
        "--provider",
        "Other",
        "--buffer",
        "10",
        "--no-rundown",
        "--no-stacks",
        "--buffering",
        "block",
        "--sampling-interval",
        "100ms",
        "--processors",
        "--runtime",
        "net11-aot",
    ];
    assert_eq!(
        variables(&options)[1..],
        [
            "EventPipeOutputPath={pid}",
            "EventPipeConfig='App:3:5:A=1;B=2,Other:ffffffffffffffff:4'",
            "EventPipeCircularMB=a",
            "EventPipeOutputStreaming=1",
            "EventPipeRundown=0",
            "EventPipeEnableStackwalk=0",
            "EventPipeBufferingMode=1",
            "EventPipeThreadSamplingRate=100",
            "EventPipeProcNumbers=1",
        ]
    );
    // The rundown of this profile has other keywords, which variables cannot select.
    let collections = variables(&["--profile", "gc-collect", "--write-at-end"]);
    assert!(collections.contains(&"EventPipeOutputStreaming=0".to_owned()), "{collections:?}");
    assert!(!collections.iter().any(|variable| variable.starts_with("EventPipeRundown")), "{collections:?}");
}

#[test]
fn numbers_are_those_of_the_runtime() {
    for (runtime, expected) in
        [("net10", "64"), ("net10-aot", "100"), ("net10-mono", "100"), ("net11", "100")]
    {
        let variables = variables(&["--sampling-interval", "100ms", "--runtime", runtime]);
        assert!(variables.contains(&format!("EventPipeThreadSamplingRate={expected}")), "{variables:?}");
    }
    assert!(variables(&["--runtime", "net9-mono"]).contains(&"EventPipeCircularMB=256".to_owned()));
}

#[test]
fn what_leads_to_no_file_or_another_trace_is_refused() {
    refused(&["--buffering", "block", "--write-at-end"], 2, "records nothing");
    refused(&["--buffering", "block", "--runtime", "net10"], 5, "needs .NET 11");
    refused(
        &["--provider", "System.Diagnostics.Metrics:2:4:Metrics=A:B"],
        2,
        "cannot contain a comma, a colon",
    );
    let offered = "[possible values: dotnet-common, dotnet-sampled-thread-time, gc-verbose, gc-collect]";
    refused(&["--profile", "database"], 2, offered);
    refused(&["--provider", "App", "--event-ids", "App=+1"], 2, "cannot filter events by id");
    refused(&["--rundown-keyword", "10"], 2, "cannot select a rundown by keywords");
    refused(&["-o", ""], 2, "the path of the file is empty");
    for option in [&["--duration", "1s"][..], &["--no-resume"]] {
        refused(option, 2, "a process traces itself to its end");
    }
    refused(&["--sampling-interval", "10ms"], 2, "--runtime");
    refused(&["--sampling-interval", "1ms", "--runtime", "net9"], 5, "needs .NET 10");
    refused(&["--sampling-interval", "1000s", "--runtime", "net11"], 2, "1 to 999,999 ms");
    refused(&["--sampling-interval", "1500us"], 2, "whole milliseconds");
    for runtime in ["net7", "10", "net", "net11-jit", "net300", ""] {
        refused(&["--runtime", runtime], 2, "use a version since net8");
    }
    for format in ["docker", "env-file", "systemd"] {
        refused(&["-o", "a\nb", "--format", format], 2, "line break");
    }
    refused(&["--", "/nowhere/app"], 1, "cannot run /nowhere/app");
}

#[test]
fn what_a_runtime_may_do_is_noted() {
    let notes = |args: &[&str]| {
        let ran = run(&[&["eventpipe-env"], args].concat());
        assert_eq!(ran.status, Some(0), "{ran:?}");
        ran.stderr
    };
    assert_eq!(notes(&[]), "");
    assert!(notes(&["-o", "t.nettrace"]).contains("{pid}"));
    assert!(notes(&["-o", "/nowhere/to/be/{pid}"]).contains("/nowhere/to/be is no directory here"));
    assert!(notes(&["--buffering", "block"]).contains("older than .NET 11"));
    assert_eq!(notes(&["--buffering", "block", "--runtime", "net11"]), "");
    assert!(notes(&["--sampling-interval", "9ms"]).contains("older than .NET 10"));
}

#[test]
fn each_format_has_the_value_unchanged() {
    // On Windows, a backslash ends the name of a directory, which a note says does not exist.
    let slash = if cfg!(windows) { "" } else { "\\" };
    let path = &format!("{{pid}} it's \"a\" $HOME {slash} `b` é;#");
    let args = ["eventpipe-env", "-o", path, "--format"];
    let object = &run(&[&args[..], &["json"]].concat()).well().lines()[0];
    assert_eq!(object["DOTNET_EventPipeOutputPath"], **path);
    assert_eq!(object["DOTNET_EnableEventPipe"], json!("1"));
    assert_eq!(run(&["eventpipe-env", "-o", path, "--json"]).well().lines()[0], *object);
    let docker = run(&[&args[..], &["docker"]].concat()).well();
    let line =
        format!(r#"ENV DOTNET_EventPipeOutputPath="{{pid}} it's \"a\" \$HOME {slash}{slash} `b` é;#""#);
    assert!(docker.text().lines().any(|l| l == line), "{}", docker.text());
    if cfg!(unix) {
        let lines = run(&[&args[..], &["shell"]].concat()).well().into_text();
        let script = format!("{lines}exec printenv DOTNET_EventPipeOutputPath");
        let printed = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(printed.stdout).unwrap(), format!("{path}\n"));
        let command = ["eventpipe-env", "-o", path, "--", "printenv", "DOTNET_EventPipeOutputPath"];
        assert_eq!(run(&command).well().text(), format!("{path}\n"));
        assert_eq!(run(&["eventpipe-env", "--", "sh", "-c", "exit 7"]).status, Some(7));
    }
    // `docker run --env-file` takes the rest of a line; systemd reads double quotes with the escapes of a shell.
    let env_file = run(&[&args[..], &["env-file"]].concat()).well().into_text();
    assert!(env_file.lines().any(|line| line == format!("DOTNET_EventPipeOutputPath={path}")), "{env_file}");
    let systemd = run(&[&args[..], &["systemd"]].concat()).well().into_text();
    let line = format!(r#"DOTNET_EventPipeOutputPath="{{pid}} it's \"a\" \$HOME {slash}{slash} \`b\` é;#""#);
    assert!(systemd.lines().any(|l| l == line), "{systemd}");
}

/// The profile `sick` is not offered, because variables cannot express all of it; what they can is useful.
#[test]
fn a_provider_of_a_profile_that_variables_cannot_express_is_left_out() {
    let output = run(&["eventpipe-env", "--profile", "sick", "--format", "env-file"]);
    assert_eq!(output.status, Some(0), "{output:?}");
    assert!(output.stderr.contains("without System.Diagnostics.Metrics: "), "{output:?}");
    let config = output.text().lines().find_map(|line| line.strip_prefix("DOTNET_EventPipeConfig=")).unwrap();
    assert!(config.contains("Microsoft-Windows-DotNETRuntime:") && !config.contains("Metrics"), "{config}");
}

#[test]
fn only_a_shell_reads_quotes() {
    let output = run(&["eventpipe-env", "--provider", "Lab:10:5:a=b;c=d"]);
    assert!(output.stderr.contains("`eval \"$(...)\"`, and not `env $(...)`"), "{output:?}");
    run(&["eventpipe-env"]).well();
}
