//! The modules of a crate, and what each of them defines, imports and names.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::tokens::{Token, tokens};

/// A module, by its names below the root of the crate.
pub(crate) type ModulePath = Vec<String>;

#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Below the folder of the crate's sources.
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
    /// All names in the bodies of items.
    pub(crate) names: BTreeSet<String>,
}

/// One name of a `use`.
#[derive(Debug, Clone)]
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    /// `*` for all names of a module.
    pub(crate) name: String,
    /// Whether other modules can import it from here.
    pub(crate) is_exported: bool,
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
    let tokens = tokens(&text);
    let mut children = Vec::new();
    let relative = file.strip_prefix(source).unwrap();
    Reader { tokens: &tokens, at: 0, file: relative, modules, children: &mut children }.module(&path, true);
    let stem = file.file_stem().unwrap().to_str().unwrap();
    let folder = file.parent().unwrap();
    let folder = if matches!(stem, "lib" | "main" | "mod") { folder.to_owned() } else { folder.join(stem) };
    for child in children {
        // An inline module's files lie in a folder of its own.
        let below: PathBuf = child[path.len()..].iter().collect();
        let direct = folder.join(&below).with_extension("rs");
        let nested = folder.join(&below).join("mod.rs");
        read_file(source, if direct.exists() { &direct } else { &nested }, child, modules);
    }
}

/// The keywords before the name of an item.
const ITEMS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    file: &'a Path,
    modules: &'a mut BTreeMap<ModulePath, Module>,
    /// Modules that are files of their own.
    children: &'a mut Vec<ModulePath>,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    fn is(&self, ahead: usize, text: &str) -> bool {
        self.peek(ahead).is_some_and(|token| token.is(text))
    }

    fn name(&self, ahead: usize) -> Option<String> {
        self.peek(ahead).and_then(Token::name).map(str::to_owned)
    }

    /// Returns what is between the brackets that begin so many tokens ahead.
    fn ahead(&mut self, tokens: usize) -> Vec<Token> {
        let at = self.at;
        self.at += tokens;
        let between = self.brackets().to_vec();
        self.at = at;
        between
    }

    /// Skips the brackets that begin here, and returns what is between them.
    fn brackets(&mut self) -> &[Token] {
        let start = self.at + 1;
        let mut depth = 0;
        while let Some(token) = self.peek(0) {
            if ["(", "[", "{"].iter().any(|open| token.is(open)) {
                depth += 1;
            } else if [")", "]", "}"].iter().any(|close| token.is(close)) {
                depth -= 1;
            }
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
        &self.tokens[start..self.at - 1]
    }

    /// Reads the items of a module, to the end of the file or to the bracket that ends it.
    fn module(&mut self, path: &ModulePath, is_file: bool) {
        let mut module = Module { file: self.file.to_owned(), ..Module::default() };
        let mut depth = 0;
        let mut is_test = false;
        let mut is_public = false;
        while let Some(token) = self.peek(0).cloned() {
            if token.is("#") && (self.is(1, "[") || self.is(1, "!")) {
                self.at += if self.is(1, "!") { 2 } else { 1 };
                let attribute = self.brackets();
                is_test |= attribute.first().is_some_and(|name| name.is("cfg"))
                    && attribute.iter().any(|name| name.is("test"))
                    && !attribute.iter().any(|name| name.is("not"));
                continue;
            }
            if token.is("pub") {
                is_public = true;
                self.at += 1;
                if self.is(0, "(") {
                    self.brackets();
                }
                continue;
            }
            match &token {
                Token::Name(keyword) if keyword == "mod" && self.name(1).is_some() => {
                    let mut child = path.clone();
                    child.extend(self.name(1));
                    self.at += 2;
                    match (self.is(0, "{"), is_test) {
                        (true, true) => drop(self.brackets().len()),
                        (true, false) => {
                            self.at += 1;
                            self.module(&child, false);
                        }
                        (false, true) => {}
                        (false, false) => self.children.push(child),
                    }
                }
                Token::Name(keyword) if keyword == "use" && !self.is(1, "<") => {
                    self.at += 1;
                    let imports = self.imports(&[], is_public);
                    if !is_test {
                        module.imports.extend(imports);
                    }
                }
                Token::Name(name) => {
                    if depth == 0 && ITEMS.contains(&name.as_str()) {
                        module.definitions.extend(self.name(1));
                    }
                    if name == "macro_rules" {
                        let body = self.ahead(3);
                        let defined =
                            body.windows(2).filter(|pair| ITEMS.iter().any(|item| pair[0].is(item)));
                        let defined = defined.filter_map(|pair| pair[1].name().map(str::to_owned)).collect();
                        module.definitions.extend(self.name(2));
                        module.macros.extend(self.name(2).map(|name| (name, defined)));
                    } else if self.is(1, "!") {
                        module.calls.insert(name.clone());
                        if depth == 0 {
                            let call = self.ahead(2);
                            module.generated.extend(call.iter().filter_map(Token::name).map(str::to_owned));
                        }
                    }
                    self.path(&mut module);
                    is_test = false;
                    is_public = false;
                    continue;
                }
                Token::Punctuation('{') => depth += 1,
                Token::Punctuation('}') if depth == 0 && !is_file => break,
                Token::Punctuation('}') => depth -= 1,
                Token::Punctuation(_) => {}
            }
            self.at += 1;
            is_test = false;
            is_public = false;
        }
        self.modules.insert(path.clone(), module);
    }

    /// Reads a name and all that follow it in one path.
    fn path(&mut self, module: &mut Module) {
        let follows_dot = self.at > 0 && self.tokens[self.at - 1].is(".");
        let mut path = vec![self.name(0).unwrap()];
        self.at += 1;
        while self.is(0, ":") && self.is(1, ":") && self.name(2).is_some() {
            path.extend(self.name(2));
            self.at += 3;
        }
        if follows_dot {
            return;
        }
        module.names.insert(path[0].clone());
        if path.len() > 1 {
            module.paths.insert(path);
        }
    }

    /// Reads the tree of a `use`, up to its semicolon, comma or bracket.
    fn imports(&mut self, prefix: &[String], is_exported: bool) -> Vec<Import> {
        let mut path = prefix.to_vec();
        let mut imports = Vec::new();
        loop {
            if self.is(0, "{") {
                self.at += 1;
                while !self.is(0, "}") {
                    imports.extend(self.imports(&path, is_exported));
                    if self.is(0, ",") {
                        self.at += 1;
                    }
                }
                self.at += 1;
                return imports;
            }
            if self.is(0, "*") {
                self.at += 1;
                return vec![Import { path, name: "*".to_owned(), is_exported }];
            }
            if self.is(0, ":") {
                // `use ::name`
                self.at += 2;
                continue;
            }
            path.extend(self.name(0));
            self.at += 1;
            if self.is(0, ":") {
                self.at += 2;
                continue;
            }
            if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
                path.pop();
            }
            let mut name = path.last().unwrap().clone();
            if self.is(0, "as") {
                name = self.name(1).unwrap();
                self.at += 2;
            }
            return vec![Import { path, name, is_exported }];
        }
    }
}
