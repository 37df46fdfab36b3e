//! `Graph`: which other files each file of a crate uses.
use core::fmt::Write;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::modules::{self, Module, ModulePath};

/// The files that each file uses. Each used file has one path that names an item in it.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) uses: BTreeMap<PathBuf, BTreeMap<PathBuf, String>>,
}

/// Returns the room of a file: the name of the file itself, or of the outermost folder that contains it, beside the
/// root.
pub(crate) fn room(file: &Path) -> &str {
    let first = file.components().next().unwrap().as_os_str().to_str().unwrap();
    first.strip_suffix(".rs").unwrap_or(first)
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Module(ModulePath),
    Item(PathBuf),
}

struct Crate {
    modules: BTreeMap<ModulePath, Module>,
}

impl Graph {
    pub(crate) fn read(root: &Path) -> Self {
        let modules = modules::read(root);
        let mut graph = Self { uses: BTreeMap::new() };
        let source = Crate { modules };
        for (path, module) in &source.modules {
            let uses = graph.uses.entry(module.file.clone()).or_default();
            for (text, target) in source.targets(path, module) {
                if target != module.file {
                    uses.entry(target).or_insert(text);
                }
            }
        }
        graph
    }

    /// Returns the rooms that each room uses.
    pub(crate) fn of_rooms(&self) -> Self {
        let mut rooms = Self { uses: BTreeMap::new() };
        for (file, uses) in &self.uses {
            let others = uses.iter().filter(|(used, _)| room(used) != room(file));
            let others = others.map(|(used, path)| (room(used).into(), path.clone()));
            rooms.uses.entry(room(file).into()).or_default().extend(others);
        }
        rooms
    }

    /// Returns a circle of files, the first of which is also the last, if there is one.
    pub(crate) fn circle(&self) -> Option<Vec<PathBuf>> {
        let mut done = BTreeSet::new();
        self.uses.keys().find_map(|file| {
            let mut trail = Vec::new();
            let circle = self.search(file, &mut trail, &mut done);
            circle.map(|circle| circle.into_iter().map(Path::to_owned).collect())
        })
    }

    fn search<'a>(
        &'a self,
        file: &'a Path,
        trail: &mut Vec<&'a Path>,
        done: &mut BTreeSet<&'a Path>,
    ) -> Option<Vec<&'a Path>> {
        if let Some(start) = trail.iter().position(|visited| *visited == file) {
            trail.push(file);
            return Some(trail.split_off(start));
        }
        if done.contains(file) {
            return None;
        }
        trail.push(file);
        let used = self.uses.get(file).into_iter().flat_map(BTreeMap::keys);
        for next in used {
            if let Some(circle) = self.search(next, trail, done) {
                return Some(circle);
            }
        }
        trail.pop();
        done.insert(file);
        None
    }

    pub(crate) fn remove_use(&mut self, file: &Path, used: &Path) {
        self.uses.get_mut(file).and_then(|uses| uses.remove(used));
    }

    /// Describes each step of a circle by a path that causes it.
    pub(crate) fn describe(&self, circle: &[PathBuf]) -> String {
        let mut text = String::new();
        for step in circle.windows(2) {
            let path = &self.uses[&step[0]][&step[1]];
            writeln!(text, "{} uses {}: {path}", step[0].display(), step[1].display()).unwrap();
        }
        text
    }
}

impl Crate {
    /// Returns the files that a module uses, each with the path that leads there.
    fn targets(&self, at: &ModulePath, module: &Module) -> Vec<(String, PathBuf)> {
        let mut targets = Vec::new();
        for import in &module.imports {
            if import.name == "*" {
                let Some(Target::Module(from)) = self.resolve(at, &import.path, 0) else { continue };
                for name in &module.names {
                    let item = self.member(&from, name, 0);
                    if let Some(Target::Item(file)) = item {
                        targets.push((format!("{}::{name}", import.path.join("::")), file));
                    }
                }
                continue;
            }
            // A name that a module only exports again is used by the modules that import it from there.
            if import.is_exported && !module.names.contains(&import.name) {
                continue;
            }
            let target = self.resolve(at, &import.path, 0);
            let is_internal = ["crate", "self", "super"].contains(&import.path[0].as_str());
            assert!(target.is_some() || !is_internal, "{at:?}: {} leads nowhere", import.path.join("::"));
            if let Some(Target::Item(file)) = target {
                targets.push((import.path.join("::"), file));
            }
        }
        for name in &module.calls {
            let mut others = self.modules.values().filter(|other| other.macros.contains_key(name));
            targets.extend(others.next().map(|other| (format!("{name}!"), other.file.clone())));
        }
        for path in &module.paths {
            let target = self.resolve(at, path, 0);
            if let Some(Target::Item(file)) = target {
                targets.push((path.join("::"), file));
            }
        }
        targets
    }

    /// Resolves a path in a module; `None` for one that leads out of the crate.
    fn resolve(&self, at: &ModulePath, path: &[String], depth: usize) -> Option<Target> {
        let mut rest = path;
        let mut module = at.clone();
        match rest.first()?.as_str() {
            "crate" => {
                module.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    module.pop();
                    rest = &rest[1..];
                }
            }
            _ => {}
        }
        let mut target = Target::Module(module);
        for name in rest {
            let Target::Module(module) = &target else { break };
            target = self.member(module, name, depth)?;
        }
        Some(target)
    }

    /// Resolves one name in a module.
    fn member(&self, at: &ModulePath, name: &str, depth: usize) -> Option<Target> {
        // Two modules may import all names of each other.
        if depth > 16 {
            return None;
        }
        let module = self.modules.get(at)?;
        let mut child = at.clone();
        child.push(name.to_owned());
        if self.modules.contains_key(&child) {
            return Some(Target::Module(child));
        }
        if module.definitions.contains(name) {
            return Some(Target::Item(module.file.clone()));
        }
        let named = module.imports.iter().filter(|import| import.name == name);
        // The path of `use name;` is resolved from the outside, as that of another crate.
        let mut named = named.filter(|import| import.path != [name]);
        if let Some(target) = named.find_map(|import| self.resolve(at, &import.path, depth + 1)) {
            return Some(target);
        }
        // The first name in the path of a `*` import cannot come from this import itself.
        let all = module.imports.iter().filter(|import| import.name == "*" && import.path[0] != name);
        let mut all = all.filter_map(|import| match self.resolve(at, &import.path, depth + 1) {
            Some(Target::Module(from)) if from != *at => self.member(&from, name, depth + 1),
            _ => None,
        });
        if let Some(target) = all.next() {
            return Some(target);
        }
        module.generated.contains(name).then(|| Target::Item(module.file.clone()))
    }
}
