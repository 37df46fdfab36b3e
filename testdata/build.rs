//! Writes the files of this folder as slices, for `src/lib.rs` to include.
use core::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, error, fs};

type Result<T> = core::result::Result<T, Box<dyn error::Error>>;

fn main() -> Result<()> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let mut source = String::new();
    for folder in ["messages", "malformed", "refused", "tolerated", "fragments", "legacy"] {
        println!("cargo::rerun-if-changed={folder}");
        let vectors = vectors(&here, folder)?;
        writeln!(source, "pub(super) static {}: &[crate::Vector] = &[{vectors}];", folder.to_uppercase())?;
    }
    println!("cargo::rerun-if-changed=regressions");
    source += "pub(super) static REGRESSIONS: &[(&str, &[crate::Vector])] = &[";
    for folder in sorted(&here.join("regressions"))? {
        let target = name(&folder);
        write!(source, "({target:?}, &[{}]),", vectors(&here, &format!("regressions/{target}"))?)?;
    }
    println!("cargo::rerun-if-changed=corpus");
    source += "];\npub(super) static CORPUS: &[crate::Corpus] = &[";
    for file in sorted(&here.join("corpus"))? {
        let target = name(&file).trim_end_matches(".txt").to_owned();
        write!(source, "crate::Corpus {{ target: {target:?}, inputs: &[")?;
        for line in fs::read_to_string(&file)?.lines() {
            write!(source, "{},", literal(&unhex(line)?))?;
        }
        source += "] },";
    }
    println!("cargo::rerun-if-changed=nettrace");
    source += "];\npub(super) static TRACES: &[crate::RecordedTrace] = &[";
    for file in sorted(&here.join("nettrace"))? {
        if file.extension().is_some_and(|of| of == "nettrace" || of == "netperf") {
            let json = format!("{}.json", file.display());
            let (name, file) = (name(&file), file.display().to_string());
            write!(
                source,
                "crate::RecordedTrace {{ name: {name:?}, bytes: include_bytes!({file:?}), \
                 expected: include_str!({json:?}) }},"
            )?;
        }
    }
    source += "];\n";
    fs::write(Path::new(&env::var("OUT_DIR")?).join("files.rs"), source)?;
    Ok(())
}

/// Returns the files of hex in a folder, as elements of a list.
fn vectors(here: &Path, folder: &str) -> Result<String> {
    let mut elements = String::new();
    for file in sorted(&here.join(folder))? {
        if file.extension().is_some_and(|of| of == "hex") {
            let text = fs::read_to_string(&file)?;
            let bytes: Vec<u8> = text.lines().try_fold(Vec::new(), |mut bytes, line| {
                let digits = line.split('#').next().unwrap_or_default();
                bytes.extend(unhex(&digits.split_whitespace().collect::<String>())?);
                Ok::<_, Box<dyn error::Error>>(bytes)
            })?;
            let path = format!("{folder}/{}", name(&file));
            let bytes = literal(&bytes);
            write!(elements, "crate::Vector {{ path: {path:?}, text: {text:?}, bytes: {bytes} }},")?;
        }
    }
    Ok(elements)
}

/// Returns the entries of a folder, in the order of their names.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut entries =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    entries.sort();
    Ok(entries)
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the bytes that pairs of hexadecimal digits stand for.
fn unhex(digits: &str) -> Result<Vec<u8>> {
    digits.as_bytes().chunks(2).map(|pair| Ok(u8::from_str_radix(core::str::from_utf8(pair)?, 16)?)).collect()
}

/// Returns an expression of type `&[u8]`.
fn literal(bytes: &[u8]) -> String {
    let escaped: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    format!("b\"{escaped}\"")
}
