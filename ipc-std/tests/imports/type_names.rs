//! Finds the names that several types of a package have.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{
    Attribute, Ident, ItemEnum, ItemFn, ItemMod, ItemStruct, ItemTrait, ItemType, ItemUnion, Meta,
    TraitItemType,
};

use crate::modules::{find_files, is_test, names};

/// Names that describe a type only together with the name of its module, as `ps::Args`.
const REPEATED: [&str; 4] = ["Args", "Kind", "Row", "State"];

/// The systems for which a package can be compiled. A type that is defined once for each of them has one meaning.
const SYSTEMS: [&str; 2] = ["unix", "windows"];

/// Describes the names that several types in the files of a folder have; empty if there are none.
pub(crate) fn repeated(folder: &Path) -> String {
    let mut repeated = BTreeMap::new();
    for system in SYSTEMS {
        let mut types = Types { system, found: BTreeMap::new(), file: PathBuf::new() };
        types.read_folder(folder);
        repeated.extend(types.found.into_iter().filter(|(_, files)| files.len() > 1));
    }
    repeated.retain(|name, _| !REPEATED.contains(&name.as_str()));
    let describe = |(name, files): (&String, &Vec<PathBuf>)| {
        let files: Vec<_> = files.iter().map(|file| file.strip_prefix(folder).unwrap().display()).collect();
        format!("{name}: {files:?}\n")
    };
    repeated.iter().map(describe).collect()
}

/// Collects the types that exist on one system.
struct Types {
    system: &'static str,
    /// The files that define a type of each name.
    found: BTreeMap<String, Vec<PathBuf>>,
    file: PathBuf,
}

impl Types {
    fn is_elsewhere(&self, name: &str) -> bool {
        SYSTEMS.contains(&name) && name != self.system
    }

    fn read_folder(&mut self, folder: &Path) {
        let mut files = BTreeSet::new();
        find_files(folder, &mut files);
        for path in files {
            let module = path.strip_prefix(folder).unwrap().with_extension("");
            if module.iter().any(|name| self.is_elsewhere(name.to_str().unwrap())) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            self.file = path;
            self.visit_file(&file);
        }
    }

    /// Returns whether an item exists on the system, outside of tests.
    fn exists(&self, attributes: &[Attribute]) -> bool {
        let is_excluded = |attribute: &Attribute| match &attribute.meta {
            Meta::List(list) if list.path.is_ident("cfg") => {
                let names = names(list.tokens.clone());
                let is_negated = names.first().is_some_and(|name| name == "not");
                let named = if is_negated { names.get(1) } else { names.first() };
                named.is_some_and(|name| {
                    SYSTEMS.contains(&name.as_str()) && (name == self.system) == is_negated
                })
            }
            _ => false,
        };
        !is_test(attributes) && !attributes.iter().any(is_excluded)
    }

    fn add(&mut self, name: &Ident, attributes: &[Attribute]) {
        if self.exists(attributes) {
            self.found.entry(name.to_string()).or_default().push(self.file.clone());
        }
    }
}

impl Visit<'_> for Types {
    fn visit_item_struct(&mut self, item: &ItemStruct) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_enum(&mut self, item: &ItemEnum) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_union(&mut self, item: &ItemUnion) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_type(&mut self, item: &ItemType) {
        self.add(&item.ident, &item.attrs);
    }

    fn visit_item_trait(&mut self, item: &ItemTrait) {
        self.add(&item.ident, &item.attrs);
        visit::visit_item_trait(self, item);
    }

    fn visit_trait_item_type(&mut self, _: &TraitItemType) {}

    fn visit_item_mod(&mut self, item: &ItemMod) {
        if self.exists(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &ItemFn) {
        if self.exists(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }
}
