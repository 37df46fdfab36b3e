//! Files of native code, whose symbols have the names that a trace does not have.
use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::string::String;

use super::spelling::{MAX_METHOD, cut};

/// A native library or program, with the addresses in it that need a name. A caller that finds its symbols passes those
/// at these addresses to what returned the image: [`Names::native_symbols`](super::Names::native_symbols), or
/// [`Graph::native_symbols`](crate::heap::Graph::native_symbols).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NativeImage {
    /// The path of the file where the process ran; empty if the trace does not state it.
    pub path: String,
    /// The build id (`NT_GNU_BUILD_ID`) in lower-case hexadecimal; empty if the trace does not state it.
    pub build_id: String,
    /// Whether addresses count from the start of the first segment. Else they are those of the file's symbols.
    pub is_relative: bool,
    /// The addresses that need a name.
    pub wanted: BTreeSet<u64>,
    pub(crate) process: u64,
    /// The difference between an address in the process and in the file.
    pub(crate) bias: u64,
}

/// A symbol at an address that needs a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NativeSymbol {
    /// The address, as [`NativeImage::is_relative`] states.
    pub start: u64,
    /// The number of bytes.
    pub size: u64,
    /// The symbol as the file has it.
    pub name: String,
}

/// The file that an address is in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImagePlace<'a> {
    pub(crate) path: &'a str,
    pub(crate) build_id: &'a str,
    pub(crate) bias: u64,
    pub(crate) is_relative: bool,
}

impl ImagePlace<'_> {
    /// Returns the file without any address.
    pub(crate) fn image(self, process: u64) -> NativeImage {
        let Self { path, build_id, bias, is_relative } = self;
        let (path, build_id) = (cut(path, MAX_METHOD).to_owned(), build_id.to_ascii_lowercase());
        NativeImage { path, build_id, is_relative, wanted: BTreeSet::new(), process, bias }
    }
}

/// What ProcessMappingMetadata states of an ELF file.
#[derive(Debug)]
pub(super) struct ElfMetadata {
    pub(super) build_id: String,
    /// The address of the code in the symbols of the file, less its offset in the file.
    pub(super) offset: u64,
}

impl ElfMetadata {
    /// The smallest page. A writer can state the offset of the page and the address within it.
    const PAGE: u64 = 4096;

    /// Reads an object of JSON. Its numbers are numbers, or texts with `0x`. `None` if it has no build id.
    pub(super) fn read(json: &str) -> Option<Self> {
        let field = |name: &str| {
            let rest = json.split_once(name)?.1.trim_start().strip_prefix(':')?.trim_start();
            let rest = rest.strip_prefix('"').unwrap_or(rest);
            rest.split(['"', ',', '}']).next().map(str::trim)
        };
        let number = |name| {
            let text = field(name)?;
            let radix = if text.starts_with("0x") { 16 } else { 10 };
            u64::from_str_radix(text.trim_start_matches("0x"), radix).ok()
        };
        let is_id = |id: &&str| !id.is_empty() && id.bytes().all(|digit| digit.is_ascii_hexdigit());
        let build_id = field("\"build_id\"").filter(is_id)?.to_owned();
        let [address, offset] = ["\"p_vaddr\"", "\"p_offset\""].map(|name| number(name).unwrap_or_default());
        let offset = address.wrapping_sub(offset);
        Some(Self { build_id, offset: offset.wrapping_sub(offset % Self::PAGE) })
    }
}

#[cfg(test)]
mod tests {
    use super::ElfMetadata;

    #[test]
    fn metadata_of_elf_files() {
        let read = |json| ElfMetadata::read(json).map(|of| (of.build_id, of.offset));
        let json = r#"{"type":"ELF","build_id":"0e28","p_vaddr":"0x179d10","p_offset":1543440}"#;
        assert_eq!(read(json), Some(("0e28".into(), 0x1000)));
        // The offset is that of a page.
        assert_eq!(
            read(r#"{"build_id" : "a", "p_offset":0x1000, "p_vaddr":0x3d10}"#),
            Some(("a".into(), 0x2000))
        );
        assert_eq!(read(r#"{"build_id":"a"}"#), Some(("a".into(), 0)));
        for json in ["", "{}", r#"{"build_id":""}"#, r#"{"build_id":null"#, r#""build_id""#] {
            assert_eq!(read(json), None, "{json}");
        }
    }
}
