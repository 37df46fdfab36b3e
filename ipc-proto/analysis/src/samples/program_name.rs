//! The name of the program that a command line runs.

/// Returns the name of the program that a command line runs: the file name of its first word, or of the assembly if
/// that is `dotnet`. Arguments are left out, because they can be secrets.
pub(super) fn program_name(command_line: &str) -> Option<&str> {
    let (program, mut rest) = first_word(command_line)?;
    let name = without_suffix(file_name(program), ".exe");
    if name != "dotnet" {
        return Some(name);
    }
    while let Some((word, after)) = first_word(rest) {
        let assembly = file_name(word);
        match without_suffix(assembly, ".dll") {
            stem if stem.len() < assembly.len() => return Some(stem),
            _ => rest = after,
        }
    }
    Some(name)
}

/// Returns the first word, which can be in quotation marks, and what follows it.
fn first_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let split = match text.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
        None => text.split_once(' ').unwrap_or((text, "")),
    };
    (!text.is_empty()).then_some(split)
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn without_suffix<'t>(name: &'t str, suffix: &str) -> &'t str {
    let stem = name.len().checked_sub(suffix.len()).and_then(|len| name.split_at_checked(len));
    match stem {
        Some((stem, end)) if end.eq_ignore_ascii_case(suffix) => stem,
        _ => name,
    }
}
