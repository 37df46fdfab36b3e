//! The modules of a crate, and what each of them defines, imports and names.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMacro, ItemMod, ItemUse, Meta, UseTree, Visibility};

/// A module, by its names below the root of the crate.
pub(crate) type ModulePath = Vec<String>;

#[derive(Debug, Default)]
pub(crate) struct Module {
    /// The path of the file, below the folder of the crate's sources.
    pub(crate) file: PathBuf,
    pub(crate) definitions: BTreeSet<String>,
    /// Macros, each with the names that its body may define where it is called.
    pub(crate) macros: BTreeMap<String, BTreeSet<String>>,
    /// Macros that are called.
    pub(crate) calls: BTreeSet<String>,
    /// Names in macro calls, which may define them.
    pub(crate) generated: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
    /// Paths of two names or more in the bodies of items.
    pub(crate) paths: BTreeSet<Vec<String>>,
    /// All names in the bodies of items that can be names of other items.
    pub(crate) names: BTreeSet<String>,
}

/// One name of a `use`.
#[derive(Debug, Clone)]
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    /// `*` for all names of a module.
    pub(crate) name: String,
    /// Whether other modules can import the name from this module.
    pub(crate) is_exported: bool,
}

/// Adds the Rust files below a folder.
pub(crate) fn find_files(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            find_files(&entry, files);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            files.insert(entry);
        }
    }
}

/// Reads all modules of the crate whose root is this file.
pub(crate) fn read(root: &Path) -> BTreeMap<ModulePath, Module> {
    let mut modules = BTreeMap::new();
    let source = root.parent().unwrap();
    read_file(source, root, Vec::new(), &mut modules);
    let macros: Vec<_> = modules.values().flat_map(|module: &Module| module.macros.clone()).collect();
    for module in modules.values_mut() {
        let called = macros.iter().filter(|(name, _)| module.calls.contains(name));
        module.generated.extend(called.flat_map(|(_, defines)| defines.clone()));
    }
    modules
}

fn read_file(source: &Path, file: &Path, path: ModulePath, modules: &mut BTreeMap<ModulePath, Module>) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut children = Vec::new();
    let relative = file.strip_prefix(source).unwrap();
    read_items(&parsed.items, relative, &path, modules, &mut children);
    let stem = file.file_stem().unwrap().to_str().unwrap();
    let folder = file.parent().unwrap();
    let folder = if matches!(stem, "lib" | "main" | "mod") { folder.to_owned() } else { folder.join(stem) };
    for child in children {
        // An inline module's files lie in a folder of its own.
        let below: PathBuf = child[path.len()..].iter().collect();
        let direct = folder.join(&below).with_extension("rs");
        let nested = folder.join(&below).join("mod.rs");
        let declared = [direct, nested].into_iter().find(|file| file.exists());
        // Not every name in a macro call is a module.
        if let Some(file) = declared {
            read_file(source, &file, child, modules);
        }
    }
}

/// Reads the items of a module, which may be inline. Adds the modules that are files of their own to
/// `children`, and the names in macro calls, which may declare such modules.
fn read_items(
    items: &[Item],
    file: &Path,
    path: &ModulePath,
    modules: &mut BTreeMap<ModulePath, Module>,
    children: &mut Vec<ModulePath>,
) {
    let mut reader = Reader { module: Module { file: file.to_owned(), ..Module::default() }, depth: 0 };
    for item in items.iter().filter(|item| !is_test(attributes(item))) {
        let definition = match item {
            Item::Const(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Static(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            Item::Macro(item) => item.ident.as_ref(),
            _ => None,
        };
        reader.module.definitions.extend(definition.map(ToString::to_string));
        if let Item::Mod(ItemMod { ident, content, .. }) = item {
            let child = [&path[..], &[ident.to_string()]].concat();
            match content {
                Some((_, items)) => read_items(items, file, &child, modules, children),
                None => children.push(child),
            }
        } else {
            if let Item::Macro(ItemMacro { ident: None, mac, .. }) = item {
                let child = |name: String| [&path[..], &[name]].concat();
                children.extend(names(mac.tokens.clone()).into_iter().map(child));
            }
            reader.visit_item(item);
        }
    }
    modules.insert(path.clone(), reader.module);
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns whether an item exists in tests only.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) => {
            let names = names(list.tokens.clone());
            list.path.is_ident("cfg") && names.contains(&"test".into()) && !names.contains(&"not".into())
        }
        Meta::NameValue(_) => false,
    })
}

/// Returns all names in tokens.
pub(crate) fn names(tokens: TokenStream) -> Vec<String> {
    let name = |token| match token {
        TokenTree::Ident(name) => vec![name.to_string()],
        TokenTree::Group(group) => names(group.stream()),
        TokenTree::Punct(_) | TokenTree::Literal(_) => Vec::new(),
    };
    tokens.into_iter().flat_map(name).collect()
}

/// Collects what the items of a module import and name.
struct Reader {
    module: Module,
    /// The number of blocks around the current item.
    depth: usize,
}

impl Reader {
    fn path(&mut self, path: Vec<String>) {
        self.module.names.extend(path.first().cloned());
        if path.len() > 1 {
            self.module.paths.insert(path);
        }
    }

    /// Collects the paths in tokens of a macro or an attribute, for which there is no syntax tree.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        let mut follows_dot = false;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.path(core::mem::take(&mut path));
                    }
                    if !follows_dot {
                        path.push(name.to_string());
                    }
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Punct(punct) => {
                    if punct.as_char() == '!' && path.len() == 1 {
                        self.module.calls.extend(path.first().cloned());
                    }
                    self.path(core::mem::take(&mut path));
                    follows_dot = punct.as_char() == '.';
                    colons = 0;
                    continue;
                }
                TokenTree::Literal(_) => {}
            }
            (colons, follows_dot) = (0, false);
        }
        self.path(path);
    }

    fn imports(&mut self, tree: &UseTree, mut path: Vec<String>, is_exported: bool) {
        let (path, name) = match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                return self.imports(&tree.tree, path, is_exported);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.imports(tree, path.clone(), is_exported));
            }
            UseTree::Glob(_) => (path, "*".to_owned()),
            UseTree::Name(tree) if tree.ident == "self" => {
                let name = path.last().cloned().unwrap();
                (path, name)
            }
            UseTree::Name(tree) => {
                path.push(tree.ident.to_string());
                (path, tree.ident.to_string())
            }
            UseTree::Rename(tree) => {
                if tree.ident != "self" {
                    path.push(tree.ident.to_string());
                }
                (path, tree.rename.to_string())
            }
        };
        self.module.imports.push(Import { path, name, is_exported });
    }
}

impl Visit<'_> for Reader {
    fn visit_item_use(&mut self, item: &ItemUse) {
        self.imports(&item.tree, Vec::new(), !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_item_macro(&mut self, item: &ItemMacro) {
        let tokens = item.mac.tokens.clone();
        if let Some(name) = &item.ident {
            const ITEMS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];
            let names = names(tokens.clone());
            let defined = names.windows(2).filter(|pair| ITEMS.contains(&pair[0].as_str()));
            let defined = defined.map(|pair| pair[1].clone()).collect();
            self.module.macros.insert(name.to_string(), defined);
        } else if self.depth == 0 {
            self.module.generated.extend(names(tokens));
        }
        visit::visit_item_macro(self, item);
    }

    fn visit_macro(&mut self, item: &syn::Macro) {
        self.module.calls.extend(item.path.segments.last().map(|segment| segment.ident.to_string()));
        self.tokens(item.tokens.clone());
        visit::visit_macro(self, item);
    }

    fn visit_path(&mut self, path: &syn::Path) {
        self.path(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_pat_ident(&mut self, pattern: &syn::PatIdent) {
        self.module.names.insert(pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_block(&mut self, block: &syn::Block) {
        self.depth += 1;
        visit::visit_block(self, block);
        self.depth -= 1;
    }

    fn visit_attribute(&mut self, attribute: &Attribute) {
        match &attribute.meta {
            // Derives and attributes of the compiler are not items here.
            Meta::Path(_) => {}
            Meta::List(list) => self.tokens(list.tokens.clone()),
            Meta::NameValue(pair) => self.visit_expr(&pair.value),
        }
    }

    fn visit_visibility(&mut self, _: &Visibility) {}
}
