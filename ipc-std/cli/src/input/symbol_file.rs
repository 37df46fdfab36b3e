//! The symbols of a program or library, from its file or from the file beside it that has only symbols.
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use nettrace_analysis::names::{NativeImage, NativeSymbol};
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, ReadCache, SymbolKind};

use crate::run::{Failure, Kind};

/// An ELF file. Only the parts that are needed are read.
pub(crate) struct SymbolFile {
    path: PathBuf,
    cache: ReadCache<File>,
    /// The build id in lower-case hexadecimal; empty if there is none.
    pub(crate) build_id: String,
}

/// What symbols name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SymbolsOf {
    /// Functions, which have all addresses from their start to their end.
    Code,
    /// Types, whose method tables begin at an address.
    Types,
}

impl SymbolFile {
    /// Opens a file. Fails if it is no ELF file.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |e| Failure::io(format_args!("cannot read {}", path.display()), &e);
        if is_dsym(path) {
            return Err(unsupported(path, "is a dSYM of macOS"));
        }
        // A pipe or a device could block.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(unsupported(path, "is no regular file"));
        }
        let mut file = File::open(path).map_err(failed)?;
        let mut begin = Vec::new();
        Read::by_ref(&mut file).take(24).read_to_end(&mut begin).map_err(failed)?;
        file.rewind().map_err(failed)?;
        if !begin.starts_with(b"\x7fELF") {
            return Err(unsupported(path, form(&begin)));
        }
        let mut file = Self { path: path.to_owned(), cache: ReadCache::new(file), build_id: String::new() };
        let build_id = file.elf()?.build_id().ok().flatten().unwrap_or_default().to_vec();
        file.build_id = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(file)
    }

    fn elf(&self) -> Result<object::File<'_, &ReadCache<File>>, Failure> {
        let failed = |e| Failure::new(Kind::Other, format!("cannot read {}: {e}", self.path.display()));
        object::File::parse(&self.cache).map_err(failed)
    }

    /// Returns the symbols at the addresses of a program or library that need a name; `None` if the file has no symbols.
    pub(crate) fn symbols(
        &self,
        image: &NativeImage,
        of: SymbolsOf,
    ) -> Result<Option<Vec<NativeSymbol>>, Failure> {
        let elf = self.elf()?;
        let first = elf.segments().map(|segment| segment.address()).min().unwrap_or_default();
        let base = if image.is_relative { first } else { 0 };
        let (mut found, mut is_empty) = (Vec::new(), true);
        for symbol in elf.symbols().chain(elf.dynamic_symbols()).filter(|symbol| symbol.is_definition()) {
            is_empty = false;
            let (start, size) = (symbol.address().wrapping_sub(base), symbol.size());
            let is_wanted = match of {
                SymbolsOf::Code => {
                    let end = start.saturating_add(size);
                    symbol.kind() == SymbolKind::Text && image.wanted.range(start..end).next().is_some()
                }
                SymbolsOf::Types => image.wanted.contains(&start),
            };
            let Some(name) = symbol.name().ok().filter(|_| is_wanted) else { continue };
            let is_type = || name.starts_with("_ZTV") || name.starts_with("__GCStaticEEType_");
            if matches!(of, SymbolsOf::Code) || is_type() {
                found.push(NativeSymbol { start, size, name: name.to_owned() });
            }
        }
        Ok((!is_empty).then_some(found))
    }
}

/// Returns whether a path is that of a bundle with symbols of macOS.
pub(crate) fn is_dsym(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "dSYM")
        || path.join("Contents/Resources/DWARF").is_dir()
}

/// Returns what a file is that is no ELF file, by its first bytes.
fn form(begin: &[u8]) -> &'static str {
    let starts = |forms: &[&[u8]]| forms.iter().any(|form| begin.starts_with(form));
    match begin {
        _ if starts(&[b"Microsoft C/C++ MSF", b"BSJB"]) => "is a PDB",
        _ if starts(&[b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"]) => "is a file of macOS",
        _ if starts(&[b"MZ"]) => "is a program of Windows, whose symbols are in a PDB",
        _ => "is no ELF file",
    }
}

fn unsupported(path: &Path, form: &str) -> Failure {
    let failure = Failure::new(Kind::Unsupported, format!("{} {form}", path.display()));
    failure.with_hint("symbols are read from ELF files: a program or library of Linux, or its .dbg")
}
