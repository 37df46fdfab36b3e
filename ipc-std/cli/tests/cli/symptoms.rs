//! The page `docs/symptoms.md`: its commands run on recordings, and have the output that the page shows.
use std::fs;
use std::path::{Path, PathBuf};

use crate::tool::{finish, tool};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Returns the standard output of a command of the page, which runs in the folder of the recordings.
fn output(command: &str) -> String {
    let arguments = shlex::split(command).unwrap();
    let (program, arguments) = arguments.split_first().unwrap();
    assert_eq!(program, "dotnet-ipc", "{command}");
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let ran = finish(tool(&arguments).current_dir(folder("testdata/sick")).spawn().unwrap());
    assert_eq!(ran.status, Some(0), "{command}: {ran:?}");
    ran.into_text()
}

/// A block of the page is ```console, then commands after `$ ` with their output, and a line `...` stands for any
/// number of lines that the page leaves out. `BLESS=1 cargo test -p dotnet-ipc --test cli symptoms` writes the output
/// into the page, up to the number of lines that it has before such a line.
#[test]
fn commands_have_the_output_of_the_page() {
    let path = folder("docs/symptoms.md");
    let page = fs::read_to_string(&path).unwrap();
    let (mut result, mut commands) = (String::new(), 0);
    let mut lines = page.lines().peekable();
    let mut is_console = false;
    while let Some(line) = lines.next() {
        result.push_str(line);
        result.push('\n');
        if line.starts_with("```") {
            is_console = line == "```console";
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) else { continue };
        let mut shown = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && !line.starts_with("```")) {
            shown.push(line);
        }
        let output = output(command);
        let is_cut = shown.last() == Some(&"...");
        let count = if is_cut { shown.len() - 1 } else { usize::MAX };
        output.lines().take(count).for_each(|line| {
            result.push_str(line.trim_end());
            result.push('\n');
        });
        if is_cut {
            result.push_str("...\n");
        }
        commands += 1;
    }
    assert!(commands >= 14, "{commands}");
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, result).unwrap();
    } else {
        assert_eq!(page, result, "BLESS=1 rewrites docs/symptoms.md");
    }
}
