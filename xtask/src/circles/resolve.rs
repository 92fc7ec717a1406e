//! From paths to arrows: which file defines what a module imports or mentions.

use std::collections::BTreeMap;

use super::modules::{Crate, Module};

/// The target of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Module(usize),
    /// Something that is defined in a module.
    Item(usize),
    /// Something of another crate.
    Outside,
}

/// A name in a module that is being looked up, so that globs and names in a circle end.
type Seen = Vec<(usize, String)>;

/// The arrows between files, by number in [`Crate::files`]: the file that needs, the file that
/// defines, and the first name in the alphabet because of which.
pub(super) fn arrows(of: &Crate) -> BTreeMap<(usize, usize), String> {
    let mut arrows = BTreeMap::new();
    for (at, module) in of.modules.iter().enumerate() {
        let handed_on = |name: &String| module.alone.contains(name);
        let imports = module.imports.iter();
        // A re-export is no arrow, unless the module uses what it hands on.
        let needed = imports.filter(|import| !import.is_public || handed_on(&import.name));
        let paths = needed.map(|import| &import.path).chain(&module.paths);
        for path in paths {
            let defines = match path_from(of, at, path, &mut Vec::new()) {
                Some(Found::Item(defines)) => defines,
                // Of a module imported by name, the paths through it say what is needed.
                Some(Found::Module(_) | Found::Outside) | None => continue,
            };
            let (from, to) = (module.file, of.modules[defines].file);
            if from != to {
                let name: &mut String = arrows.entry((from, to)).or_default();
                let last = path.last().cloned().unwrap_or_default();
                if name.is_empty() || last < *name {
                    *name = last;
                }
            }
        }
        for import in module.imports.iter().filter(|i| i.name == "*" && !i.is_public) {
            let Some(Found::Module(to)) = path_from(of, at, &import.path, &mut Vec::new()) else {
                continue;
            };
            let (from, to) = (module.file, &of.modules[to]);
            if from != to.file && !to.items.is_empty() {
                arrows.entry((from, to.file)).or_insert_with(|| "*".to_owned());
            }
        }
    }
    arrows
}

/// Follows `path`, which stands in the module `from`.
fn path_from(of: &Crate, from: usize, path: &[String], seen: &mut Seen) -> Option<Found> {
    let (first, mut rest) = path.split_first()?;
    let mut at = match first.as_str() {
        "crate" => Found::Module(0),
        "self" => Found::Module(from),
        "super" => Found::Module(of.modules[from].parent?),
        name => name_in(of, from, name, !rest.is_empty(), seen)?,
    };
    while let Found::Module(module) = at {
        let Some((name, after)) = rest.split_first() else { break };
        rest = after;
        at = if name == "super" {
            Found::Module(of.modules[module].parent?)
        } else {
            // What a macro defines is not seen, and belongs to the module that it is found in.
            name_in(of, module, name, !rest.is_empty(), seen).unwrap_or(Found::Item(module))
        };
    }
    Some(at)
}

/// Finds `name` in a module. A name that more follow is a module before anything else.
fn name_in(of: &Crate, at: usize, name: &str, goes_on: bool, seen: &mut Seen) -> Option<Found> {
    let module = &of.modules[at];
    let child = module.children.get(name).map(|child| Found::Module(*child));
    if goes_on && child.is_some() {
        return child;
    }
    if module.items.contains(name) {
        return Some(Found::Item(at));
    }
    let key = (at, name.to_owned());
    if seen.contains(&key) {
        return child;
    }
    seen.push(key);
    let found = imported(of, at, module, name, goes_on, seen);
    seen.pop();
    found.or(child)
}

/// Finds `name` among what a module imports, by name first.
fn imported(
    of: &Crate,
    at: usize,
    module: &Module,
    name: &str,
    goes_on: bool,
    seen: &mut Seen,
) -> Option<Found> {
    if let Some(import) = module.imports.iter().find(|import| import.name == name) {
        return Some(path_from(of, at, &import.path, seen).unwrap_or(Found::Outside));
    }
    module.imports.iter().filter(|import| import.name == "*").find_map(|import| {
        match path_from(of, at, &import.path, seen)? {
            Found::Module(all) if all != at => name_in(of, all, name, goes_on, seen),
            Found::Module(_) | Found::Item(_) | Found::Outside => None,
        }
    })
}
