//! The names of the event sources of a program, which a runtime does not list: they are read from its assemblies.
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The classes of event counters. An assembly that has none of these names has no event counters.
const CLASSES: [&[u8]; 2] = [b"EventCounter\0", b"PollingCounter\0"];
/// The start of the attribute's property `Name` in the metadata of an assembly: a property, of the type string, its name.
/// The length of the text and the text follow.
const NAME: &[u8] = b"\x54\x0e\x04Name";
/// The library of the runtime itself, whose event sources are known.
const CORE_LIBRARY: &str = "System.Private.CoreLib.dll";
/// The maximum number of names, the maximum size of all assemblies in bytes, and that of the list of files.
const MAX_NAMES: usize = 256;
const MAX_LEN: u64 = 1 << 30;
const MAX_MAPS: u64 = 16 << 20;

/// Returns the names that the assemblies of a local process give to event sources, as far as they can be read: on Linux,
/// of assemblies that are files of their own or parts of the program's file. Some names can be those of other things.
pub(crate) fn names(process_id: u64) -> BTreeSet<String> {
    let folder = Path::new("/proc").join(process_id.to_string());
    let mut maps = Vec::new();
    // A list that cannot be read to its end is read as far as possible.
    let _ = File::open(folder.join("maps")).and_then(|file| file.take(MAX_MAPS).read_to_end(&mut maps));
    let maps = String::from_utf8_lossy(&maps);
    let files = maps.lines().filter_map(|line| line.get(line.find('/')?..));
    let assemblies = files.filter(|path| path.ends_with(".dll") && !path.ends_with(CORE_LIBRARY));
    // The paths are those of the process, which can have another root.
    let assemblies = assemblies.map(|path| folder.join("root").join(path.trim_start_matches('/')));
    let (mut names, mut left) = (BTreeSet::new(), MAX_LEN);
    for path in assemblies.chain([folder.join("exe")]).collect::<BTreeSet<_>>() {
        // The process can have replaced its file, for example by a pipe without a writer.
        if !std::fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
            continue;
        }
        let Ok(file) = File::open(path) else { continue };
        let mut assembly = file.take(left);
        if let Ok(found) = names_in(&mut assembly) {
            names.extend(found);
        }
        left = assembly.limit();
        if names.len() >= MAX_NAMES {
            break;
        }
    }
    names.into_iter().take(MAX_NAMES).collect()
}

/// Returns the names in the metadata of an assembly. A part of it at a time is in memory.
fn names_in(mut assembly: impl Read) -> io::Result<BTreeSet<String>> {
    const PART: u64 = 1 << 16;
    /// The bytes of a part that are searched again with the next one. A name or a class is shorter.
    const OVERLAP: usize = 256;
    let (mut names, mut has_class, mut bytes) = (BTreeSet::new(), false, Vec::new());
    while assembly.by_ref().take(PART).read_to_end(&mut bytes)? > 0 {
        let contains = |text: &&[u8]| bytes.windows(text.len()).any(|window| window == *text);
        has_class |= CLASSES.iter().any(contains);
        let starts = bytes.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME);
        let found = starts.filter_map(|(start, _)| name_at(bytes.get(start.checked_add(NAME.len())?..)?));
        names.extend(found.take(MAX_NAMES.saturating_sub(names.len())));
        bytes.drain(..bytes.len().saturating_sub(OVERLAP));
    }
    Ok(if has_class { names } else { BTreeSet::new() })
}

/// Returns the name at the start of a part of an assembly.
fn name_at(bytes: &[u8]) -> Option<String> {
    let (len, rest) = bytes.split_first()?;
    // A first byte from 128 on begins a longer length, which no name has.
    let name = core::str::from_utf8(rest.get(..usize::from(*len))?).ok().filter(|_| *len < 0x80)?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_attributes() {
        let assembly = |class: &[u8], names: &[&[u8]]| {
            let names = names.iter().map(|name| [b"\x01\0\x01\0", NAME, *name].concat());
            [&b"MZ..."[..], class, &names.collect::<Vec<_>>().concat()].concat()
        };
        let names = [&b"\x08My-Shop."[..], b"\x03a b", b"\x00", b"\x84Long", b"\x05Lab.X", b"\x7fcut"];
        let found = names_in(&*assembly(b"IncrementingEventCounter\0", &names)).unwrap();
        assert_eq!(found, ["Lab.X", "My-Shop."].map(str::to_owned).into());
        assert!(names_in(&*assembly(b"Counter\0", &names)).unwrap().is_empty());
    }

    /// A name or a class is found wherever it is, and there is a limit of names.
    #[test]
    fn large_assemblies() {
        const PART: usize = 1 << 16;
        let name = [NAME, b"\x05Lab.X"].concat();
        for offset in (PART - 20..PART + 2).chain([3 * PART - 300, 3 * PART]) {
            let mut assembly = vec![0; 4 * PART];
            assembly[offset..offset + name.len()].copy_from_slice(&name);
            assembly[2 * PART - 5..][..CLASSES[0].len()].copy_from_slice(CLASSES[0]);
            assert_eq!(names_in(&*assembly).unwrap(), ["Lab.X".to_owned()].into(), "{offset}");
        }
        let many = (0..1_000).flat_map(|n| [NAME, b"\x08", format!("{n:08}").as_bytes()].concat());
        let many: Vec<u8> = many.chain(CLASSES[0].iter().copied()).collect();
        assert_eq!(names_in(&*many).unwrap().len(), MAX_NAMES);
    }
}
