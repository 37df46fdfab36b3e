//! `--symbols`: where the names of native code and of types of NativeAOT are.
use std::path::{Path, PathBuf};

use nettrace_analysis::names::{Names, NativeImage, NativeSymbol};

use crate::input::symbol_file::{SymbolFile, SymbolsOf, is_dsym};
use crate::run::{Failure, Kind};

/// Where symbols are.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SymbolArgs {
    /// Read the names of native code and NativeAOT from this program or its .dbg, or from a folder with these files
    /// [default: beside the program, if the build ID is equal]
    #[arg(long, value_name = "FILE|DIR")]
    symbols: Option<PathBuf>,
}

/// The folder in which the packages of distributions have symbols.
const SYSTEM: &str = "/usr/lib/debug";

/// The most files of a folder that are opened.
const FILES: usize = 10_000;

impl SymbolArgs {
    /// Names native code by its symbols. The names need the events before.
    pub(crate) fn name_native(&self, names: &mut Names) -> Result<(), Failure> {
        let images = names.native_images();
        self.read(images, SymbolsOf::Code, |image, symbols| names.native_symbols(image, symbols))
    }

    /// Passes to `take` the symbols of each program and library whose file is found. Fails if the file of `--symbols`
    /// belongs to none of them.
    pub(crate) fn read(
        &self,
        images: Vec<NativeImage>,
        of: SymbolsOf,
        mut take: impl FnMut(&NativeImage, &[NativeSymbol]),
    ) -> Result<(), Failure> {
        let is_file = |path: &&Path| !path.is_dir() || is_dsym(path);
        let given = self.symbols.as_deref().filter(is_file);
        let given = given.map(|path| Ok::<_, Failure>((path, SymbolFile::open(path)?))).transpose()?;
        let (mut is_used, mut other) = (images.is_empty(), String::new());
        for mut image in images {
            let fits = |file: &SymbolFile| image.build_id.is_empty() || file.build_id == image.build_id;
            if let Some((path, file)) = given.as_ref().filter(|(_, file)| fits(file)) {
                if image.path.is_empty() {
                    // The program has the name of its symbols.
                    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                    image.path = stem.unwrap_or_default();
                }
                take(&image, &file.symbols(&image, of)?.ok_or_else(|| without_symbols(path))?);
                is_used = true;
                continue;
            }
            // Nothing is stated about files that were not named, because they need not exist.
            let found = self.files(&image).iter().find_map(|path| {
                let file = SymbolFile::open(path).ok().filter(|file| file.build_id == image.build_id)?;
                file.symbols(&image, of).ok()?
            });
            is_used |= found.is_some() && given.is_none();
            found.inspect(|symbols| take(&image, symbols));
            other = format!("{} has the build ID {}", image.path, image.build_id);
        }
        let Some(path) = self.symbols.as_deref().filter(|_| !is_used) else { return Ok(()) };
        let text = match given {
            Some((_, file)) => {
                format!("has the symbols of another program: its build ID is {:?}", file.build_id)
            }
            None => "has no file with the symbols of the program".to_owned(),
        };
        Err(Failure::new(Kind::Different, format!("{} {text}", path.display())).with_hint(other))
    }

    /// Returns the files that may have the symbols.
    fn files(&self, image: &NativeImage) -> Vec<PathBuf> {
        let Some((begin, rest)) = image.build_id.split_at_checked(2) else { return Vec::new() };
        let by_id = |folder: &Path| folder.join(begin).join(format!("{rest}.debug"));
        let mut files = Vec::new();
        if let Some(folder) = &self.symbols {
            files.extend([by_id(&folder.join(".build-id")), by_id(folder)]);
            let entries = std::fs::read_dir(folder).into_iter().flatten().take(FILES).flatten();
            files.extend(entries.map(|entry| entry.path()));
        }
        // Paths of other systems can mean something else here, such as a share on the network.
        if cfg!(unix) && image.path.starts_with('/') {
            files.extend(
                ["dbg", "debug"].map(|extension| PathBuf::from(format!("{}.{extension}", image.path))),
            );
            files.extend([by_id(&Path::new(SYSTEM).join(".build-id")), PathBuf::from(&image.path)]);
        }
        files
    }
}

fn without_symbols(path: &Path) -> Failure {
    let failure = Failure::new(Kind::NothingFound, format!("{} has no symbols", path.display()));
    failure.with_hint("they were moved to another file: for a program NAME, publishing makes NAME.dbg")
}
