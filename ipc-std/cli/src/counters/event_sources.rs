//! The names of the event sources of a program, which a runtime does not list: they are read from its assemblies.
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The classes of event counters. An assembly that has none of these names has no event counters.
const CLASSES: [&[u8]; 2] = [b"EventCounter\0", b"PollingCounter\0"];
/// The start of the attribute's property `Name` in the metadata of an assembly: a property, of the type string, its name.
/// The length of the text and the text follow.
const NAME: &[u8] = b"\x54\x0e\x04Name";
/// The library of the runtime itself, whose event sources are known.
const CORE_LIBRARY: &str = "System.Private.CoreLib.dll";
/// The maximum number of names, and the maximum size of an assembly in bytes.
const MAX_NAMES: usize = 256;
const MAX_LEN: u64 = 256 << 20;

/// Returns the names that the assemblies of a local process give to event sources, as far as they can be read: on Linux,
/// of assemblies that are files of their own or parts of the program's file. Some names can be those of other things.
pub(crate) fn names(process_id: u64) -> BTreeSet<String> {
    let folder = Path::new("/proc").join(process_id.to_string());
    let maps = std::fs::read(folder.join("maps")).unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    let files = maps.lines().filter_map(|line| line.get(line.find('/')?..));
    let assemblies = files.filter(|path| path.ends_with(".dll") && !path.ends_with(CORE_LIBRARY));
    // The paths are those of the process, which can have another root.
    let assemblies = assemblies.map(|path| folder.join("root").join(path.trim_start_matches('/')));
    let mut names = BTreeSet::new();
    for path in assemblies.chain([folder.join("exe")]).collect::<BTreeSet<_>>() {
        // The process can have replaced its file, for example by a pipe without a writer.
        if !std::fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
            continue;
        }
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MAX_LEN).read_to_end(&mut bytes));
        if read.is_ok() {
            names.extend(names_in(&bytes));
        }
    }
    names.into_iter().take(MAX_NAMES).collect()
}

/// Returns the names in the metadata of an assembly.
fn names_in(assembly: &[u8]) -> BTreeSet<String> {
    let contains = |text: &&[u8]| assembly.windows(text.len()).any(|window| window == *text);
    if !CLASSES.iter().any(contains) {
        return BTreeSet::new();
    }
    let starts = assembly.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME);
    let name = |(start, _): (usize, &[u8])| {
        let (len, rest) = assembly.get(start.checked_add(NAME.len())?..)?.split_first()?;
        // A first byte from 128 on begins a longer length, which no name has.
        let name = core::str::from_utf8(rest.get(..usize::from(*len))?).ok().filter(|_| *len < 0x80)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
    };
    starts.filter_map(name).collect()
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
        let found = names_in(&assembly(b"IncrementingEventCounter\0", &names));
        assert_eq!(found, ["Lab.X", "My-Shop."].map(str::to_owned).into());
        assert!(names_in(&assembly(b"Counter\0", &names)).is_empty());
    }
}
