//! Checks the examples. Each public type that a README names has an example, or is used in an example of another item
//! or of a README.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Returns the words in the inline code of a README that can be names of types.
fn names(readme: &str) -> BTreeSet<String> {
    let text: String = readme.split("```").step_by(2).collect();
    let code = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let words = code.flat_map(|code| code.split(|c: char| !c.is_ascii_alphanumeric()));
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase())).map(str::to_owned).collect()
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Returns the public types that a file defines, each with whether its documentation has an example.
fn types(source: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut has_example = false;
    for line in source.lines().map(str::trim_start) {
        if line.starts_with("///") {
            has_example |= line.starts_with("/// ```");
            continue;
        }
        let item = ["pub struct ", "pub enum ", "pub trait "].iter().find_map(|item| line.strip_prefix(item));
        if let Some(item) = item {
            let name = item.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap();
            found.push((name.to_owned(), has_example));
        }
        // A `doc` attribute contains an example that has a file of its own.
        has_example |= line.starts_with("#[doc = ") && line.contains("```");
        // Attributes stand between the documentation and the item.
        let is_attribute = line.starts_with("#[") || line.starts_with(')') || line.starts_with("allow(");
        has_example &= is_attribute;
    }
    found
}

/// Returns the words in the examples of a file: a README, or a source with documentation.
fn words_of_examples(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut is_example = false;
    for line in text.lines().map(str::trim_start) {
        let line = line.trim_start_matches("/// ").trim_start_matches("//! ");
        // Some examples begin with an attribute, because only some systems compile them.
        if line.starts_with("```") || (line.contains("doc = \"```\"") && !is_example) {
            is_example = !is_example;
        } else if is_example {
            words.extend(line.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_owned));
        }
    }
    words
}

#[test]
fn each_type_in_a_readme_has_an_example() {
    let repository = Path::new(REPOSITORY);
    let readmes = [
        "README.md",
        "ipc-proto/README.md",
        "ipc-proto/ERRATA.md",
        "ipc-std/README.md",
        "ipc-std/discover/README.md",
        "ipc-std/async/README.md",
        "ipc-std/testkit/README.md",
        "ipc-std/cli/README.md",
    ];
    let readmes = readmes.map(|path| fs::read_to_string(repository.join(path)).unwrap());
    let mut files = Vec::new();
    for package in
        ["ipc-proto/src", "ipc-std/discover/src", "ipc-std/src", "ipc-std/async/src", "ipc-std/testkit/src"]
    {
        sources(&repository.join(package), &mut files);
    }
    let sources: Vec<String> = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let named: BTreeSet<String> = readmes.iter().flat_map(|readme| names(readme)).collect();
    let checked: Vec<(String, bool)> =
        sources.iter().flat_map(|source| types(source)).filter(|(name, _)| named.contains(name)).collect();
    assert!(checked.len() > 60, "{} types", checked.len());
    let shown: BTreeSet<String> =
        readmes.iter().chain(&sources).flat_map(|text| words_of_examples(text)).collect();
    let without: Vec<&String> = checked
        .iter()
        .filter(|(name, has_example)| !has_example && !shown.contains(name))
        .map(|(name, _)| name)
        .collect();
    assert!(without.is_empty(), "types without an example: {without:?}");
}

#[test]
fn names_types_and_examples_are_found() {
    let readme = "A `Reader` of `Map<Key>` and `std::Path`.\n```\nlet Hidden = 1;\n```\nNot Code.";
    assert_eq!(names(readme), ["Key", "Map", "Path", "Reader"].map(str::to_owned).into());
    assert!(words_of_examples(readme).contains("Hidden") && !words_of_examples(readme).contains("Not"));
    let source = "/// One.\n///\n/// ```\n/// Two::new();\n/// ```\n#[derive(Debug)]\npub struct One;\n\
                  #[cfg_attr(unix, doc = \"```\")]\n/// Three;\n/// ```\npub enum Two {}\n";
    assert_eq!(types(source), [("One".to_owned(), true), ("Two".to_owned(), true)]);
    assert_eq!(words_of_examples(source), ["", "Three", "Two", "new"].map(str::to_owned).into());
}
