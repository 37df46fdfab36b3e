//! Modules, and the files in the memory of processes.
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use ipc_proto::wire::to_u32;
use nettrace::TraceEvent;

use super::frames::{at, at_mut};
use super::native_image::{ElfMetadata, ImagePlace};
use super::rows::ModuleRow;
use super::spelling::module_name;
use crate::event::{number, owned, text};

/// How many methods, modules and mappings are stored at most, each.
pub(super) const ROWS: usize = 1 << 20;

/// The module of code whose module no row states.
pub(super) const NO_MODULE: u32 = u32::MAX;

/// A file in the memory of a process.
#[derive(Debug)]
struct Mapping {
    end: u64,
    file_offset: u64,
    module: u32,
    /// The id of its metadata, and its path if there is metadata.
    metadata: Option<(u64, String)>,
}

/// A program that was compiled ahead of time, in the memory of a process.
#[derive(Debug)]
struct NativeProgram {
    path: String,
    build_id: String,
}

#[derive(Debug, Default)]
pub(super) struct Modules {
    /// The names, as far as they are known.
    names: Vec<Option<Arc<str>>>,
    /// The modules by process and by the runtime's id.
    ids: BTreeMap<(u64, u64), u32>,
    /// Whether the file of a module belongs to a framework, for modules whose place is known.
    of_framework: BTreeMap<u32, bool>,
    /// The modules of symbols, by name: those of methods of .NET, and of others.
    named: [BTreeMap<Arc<str>, u32>; 2],
    /// The mapped files by process and start.
    mappings: BTreeMap<(u64, u64), Mapping>,
    /// The start of each mapping by process and id.
    mapping_ids: BTreeMap<(u64, u64), u64>,
    /// What the files of mappings are, by id.
    metadata: BTreeMap<u64, ElfMetadata>,
    /// The programs that were compiled ahead of time, by process and base address.
    programs: BTreeMap<(u64, u64), NativeProgram>,
    dropped: u64,
}

impl Modules {
    /// Returns the module of an id. If it has no name yet, a later row can name it.
    pub(super) fn of_id(&mut self, process: u64, id: u64) -> u32 {
        if let Some(module) = self.ids.get(&(process, id)) {
            return *module;
        }
        let module = self.add(None);
        if module != NO_MODULE {
            self.ids.insert((process, id), module);
        }
        module
    }

    /// Returns the module of a name that a symbol has. A symbol that `is_native` is no method of .NET, and so no code of
    /// the program.
    pub(super) fn of_name(&mut self, name: &str, is_native: bool) -> u32 {
        let [methods, native] = &self.named;
        if let Some(module) = if is_native { native } else { methods }.get(name) {
            return *module;
        }
        let name: Arc<str> = name.into();
        let module = self.add(Some(name.clone()));
        if module != NO_MODULE {
            let [methods, native] = &mut self.named;
            if is_native {
                self.of_framework.insert(module, true);
                native.insert(name, module);
            } else {
                methods.insert(name, module);
            }
        }
        module
    }

    fn add(&mut self, name: Option<Arc<str>>) -> u32 {
        if self.names.len() >= ROWS {
            self.dropped = self.dropped.saturating_add(1);
            return NO_MODULE;
        }
        self.names.push(name);
        to_u32(self.names.len().saturating_sub(1))
    }

    /// Takes the row of a module.
    pub(super) fn load(&mut self, process: u64, row: &ModuleRow<'_>) {
        let (path, is_native) = row.program();
        if is_native && !path.is_empty() && self.programs.len() < ROWS {
            let program = NativeProgram { path: path.clone(), build_id: owned(row.build_id) };
            self.programs.insert((process, row.module), program);
        }
        let name = module_name(&path);
        let name = if row.native_path == row.path { name.strip_suffix(".ni").unwrap_or(name) } else { name };
        if name.is_empty() {
            return;
        }
        let mut module = self.of_id(process, row.module);
        let Some(known) = at_mut(&mut self.names, module) else { return };
        match known {
            Some(known) if **known == *name => {}
            None => *known = Some(name.into()),
            Some(_) => {
                // The id belongs to another module now.
                module = self.add(Some(name.into()));
                self.ids.insert((process, row.module), module);
            }
        }
        if path.contains(['/', '\\']) {
            self.of_framework.insert(module, is_of_framework(&path));
        }
    }

    /// Returns whether the file of a module belongs to a framework, if its place is known.
    pub(super) fn is_of_framework(&self, module: u32) -> Option<bool> {
        self.of_framework.get(&module).copied()
    }

    /// Returns the name of a module for a method, and whether no later row can change it.
    pub(super) fn of_method(&self, module: u32) -> (&str, bool) {
        match at(&self.names, module) {
            Some(Some(name)) => (name, true),
            Some(None) => ("ManagedModule", false),
            None => ("?", true),
        }
    }

    pub(super) fn name(&self, module: u32) -> &str {
        at(&self.names, module).and_then(Option::as_deref).unwrap_or("?")
    }

    /// Takes a file in the memory of a process: the event ProcessMapping.
    pub(super) fn map(&mut self, process: u64, event: &TraceEvent<'_>) {
        let [start, last] = ["StartAddress", "EndAddress"].map(|name| number(event, name));
        let (Some(start), Some(last), Some(path)) = (start, last, text(event, "FileName")) else { return };
        if self.mappings.len() >= ROWS {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        let file = owned(path);
        let name = module_name(&file);
        // A mapping of compiled code has no name of a file: the symbols of the code name their modules.
        let is_file = !name.is_empty() && !file.starts_with("/memfd:doublemapper");
        let module = if is_file { self.add(Some(name.into())) } else { NO_MODULE };
        let file_offset = number(event, "FileOffset").unwrap_or_default();
        let metadata = number(event, "MetadataId").filter(|id| is_file && *id != 0).map(|id| (id, file));
        let mapping = Mapping { end: last.saturating_add(1), file_offset, module, metadata };
        self.mappings.insert((process, start), mapping);
        if let Some(id) = number(event, "Id") {
            self.mapping_ids.insert((process, id), start);
        }
    }

    /// Takes what the file of mappings is: the event ProcessMappingMetadata.
    pub(super) fn describe(&mut self, event: &TraceEvent<'_>) {
        let (Some(id), Some(json)) = (number(event, "Id"), text(event, "SymbolMetadata")) else { return };
        let Some(metadata) = ElfMetadata::read(&owned(json)) else { return };
        if self.metadata.len() < ROWS {
            self.metadata.insert(id, metadata);
        }
    }

    /// Returns the place of an address in a file whose symbols can name it.
    pub(super) fn image_at(&self, process: u64, ip: u64) -> Option<ImagePlace<'_>> {
        if let Some((start, mapping)) = self.mapping_at(process, ip) {
            let (id, path) = mapping.metadata.as_ref()?;
            let metadata = self.metadata.get(id)?;
            let bias = start.wrapping_sub(mapping.file_offset).wrapping_sub(metadata.offset);
            return Some(ImagePlace { path, build_id: &metadata.build_id, bias, is_relative: false });
        }
        let ((of_process, base), program) = self.programs.range(..=(process, ip)).next_back()?;
        let is_near = *of_process == process && ip.wrapping_sub(*base) <= u32::MAX.into();
        let NativeProgram { path, build_id } = program;
        is_near.then_some(ImagePlace { path, build_id, bias: *base, is_relative: true })
    }

    fn mapping_at(&self, process: u64, ip: u64) -> Option<(u64, &Mapping)> {
        let (start, mapping) = self.mappings.range(..=(process, ip)).next_back()?;
        (start.0 == process && ip < mapping.end).then_some((start.1, mapping))
    }

    /// Returns the module of a mapping that a symbol is in.
    pub(super) fn of_mapping(&mut self, process: u64, id: Option<u64>) -> u32 {
        let start = id.and_then(|id| self.mapping_ids.get(&(process, id)));
        let mapping = start.and_then(|start| self.mappings.get(&(process, *start)));
        match mapping.map(|mapping| mapping.module) {
            Some(NO_MODULE) => self.of_name("unknown", false),
            module => module.unwrap_or(NO_MODULE),
        }
    }

    /// Returns the module of the mapping that has an address, and the offset in its file.
    pub(super) fn at(&self, process: u64, ip: u64) -> Option<(u32, u64)> {
        let (start, mapping) = self.mapping_at(process, ip)?;
        Some((mapping.module, ip.wrapping_sub(start).wrapping_add(mapping.file_offset)))
    }

    /// Returns how many rows were ignored because there was no room.
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Returns whether a file is one of an installed framework: `shared/Microsoft.NETCore.App/10.0.0/System.Linq.dll`.
fn is_of_framework(path: &str) -> bool {
    let mut folders = path.rsplit(['/', '\\']).skip(2);
    let is_framework = |name: &str| name.starts_with("Microsoft.") && name.ends_with(".App");
    folders.next().is_some_and(is_framework) && folders.next() == Some("shared")
}

#[cfg(test)]
mod tests {
    use super::is_of_framework;

    #[test]
    fn frameworks() {
        for path in [
            "/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.0/System.Private.CoreLib.dll",
            r"C:\Program Files\dotnet\shared\Microsoft.WindowsDesktop.App\8.0.1\ReachFramework.dll",
        ] {
            assert!(is_of_framework(path), "{path}");
        }
        for path in
            ["/srv/shared/shop/1.0/Shop.dll", "/srv/Microsoft.NETCore.App/1.0/Shop.dll", "Shop.dll", ""]
        {
            assert!(!is_of_framework(path), "{path}");
        }
    }
}
