//! Files of a crate that import one another in a circle, directly or through others.
//!
//! An arrow goes from a file to the one that defines what it names: in a `use`, or in a path in its
//! code. Names that come through a `pub use` or a `use` of another module count for the file that
//! defines them. `mod x;` and `pub use x::Y` are no arrows, unless the file uses `Y` itself. Tests
//! are left out.
//!
//! Not seen: methods (the type that they belong to is), what macros define, functions handed over by a
//! re-exported name without being called.

mod graph;
mod lexer;
mod modules;
mod resolve;

use std::path::Path;

use anyhow::Result;

use crate::workspace::Workspace;
use modules::Crate;

/// The most files of a circle.
const FILES_MAX: usize = 3;

/// Circles that are larger still: the crate and the number of files of each. Entries only shrink and go.
const NOT_YET: &[(&str, usize)] = &[];

/// One circle.
#[derive(Debug, PartialEq, Eq)]
struct Circle {
    /// Files, from the directory of the crate's root file, in the order of their names.
    files: Vec<String>,
    /// A shortest cycle: each file with the name because of which it needs the next one.
    cycle: Vec<(String, String)>,
}

/// Every circle of more than [`FILES_MAX`] files that [`NOT_YET`] does not have, and every entry of it
/// that is larger than its circle.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn breaches(workspace: &Workspace) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for package in &workspace.packages {
        let source = package.manifest_path.parent().unwrap_or(&workspace.root).join("src");
        let mut circles = Vec::new();
        for root in
            ["lib.rs", "main.rs"].map(|name| source.join(name)).iter().filter(|r| r.is_file())
        {
            circles.extend(circles_below(root)?);
        }
        let known = NOT_YET.iter().filter(|(name, _)| *name == package.name);
        found.extend(judge(&package.name, circles, known.map(|(_, files)| *files).collect()));
    }
    let gone = NOT_YET.iter().filter(|(name, _)| !workspace.has(name));
    found.extend(gone.map(|(name, _)| format!("{name}: no such crate: remove it from NOT_YET")));
    Ok(found)
}

/// The circles among the files of one crate.
fn circles_below(root: &Path) -> Result<Vec<Circle>> {
    let source = root.parent().unwrap_or(root);
    let read = Crate::read(root)?;
    let names = resolve::arrows(&read);
    let mut arrows: graph::Arrows = vec![Vec::new(); read.files.len()];
    for (from, to) in names.keys() {
        arrows[*from].push(*to);
    }
    let file = |at: &usize| shown(source, &read.files[*at]);
    let circle = |members: Vec<usize>| {
        let cycle = graph::shortest_cycle(&arrows, &members);
        let next = cycle.iter().cycle().skip(1);
        let step = |(at, to): (&usize, &usize)| {
            (file(at), names.get(&(*at, *to)).cloned().unwrap_or_default())
        };
        let mut files: Vec<String> = members.iter().map(file).collect();
        files.sort_unstable();
        Circle { files, cycle: cycle.iter().zip(next).map(step).collect() }
    };
    Ok(graph::circles(&arrows).into_iter().map(circle).collect())
}

/// A file as the messages name it.
fn shown(source: &Path, file: &Path) -> String {
    file.strip_prefix(source).unwrap_or(file).to_string_lossy().replace('\\', "/")
}

/// Compares the circles of one crate with what is allowed, the largest with the largest.
fn judge(package: &str, mut circles: Vec<Circle>, mut allowed: Vec<usize>) -> Vec<String> {
    circles.retain(|circle| circle.files.len() > FILES_MAX);
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.files.len()));
    allowed.sort_unstable_by(|a, b| b.cmp(a));
    let mut found = Vec::new();
    for at in 0..circles.len().max(allowed.len()) {
        let (circle, allowed) = (circles.get(at), allowed.get(at).copied());
        let files = circle.map_or(0, |circle| circle.files.len());
        match (circle, allowed) {
            (Some(circle), _) if files > allowed.unwrap_or(FILES_MAX) => {
                found.push(too_large(package, circle, allowed.unwrap_or(FILES_MAX)));
            }
            (Some(_), Some(allowed)) if files < allowed => found.push(format!(
                "{package}: the circle of {allowed} files has {files} now: set {files} in NOT_YET in xtask/src/circles/mod.rs"
            )),
            (None, Some(allowed)) => found.push(format!(
                "{package}: the circle of {allowed} files is gone: remove it from NOT_YET in xtask/src/circles/mod.rs"
            )),
            (Some(_), _) | (None, None) => {}
        }
    }
    found
}

/// The message about a circle.
fn too_large(package: &str, circle: &Circle, allowed: usize) -> String {
    let (files, count) = (circle.files.join(", "), circle.files.len());
    let first = circle.cycle.first().map(|(file, _)| file.as_str()).unwrap_or_default();
    let steps: String =
        circle.cycle.iter().map(|(file, name)| format!("{file} -({name})-> ")).collect();
    format!(
        "{package}: {count} files import one another in a circle, the limit is {allowed}: {files}. \
         The shortest cycle: {steps}{first}. Move what both need to a file of its own, or hand it over as a value."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes files and gives the circles below `lib.rs`, each as its files.
    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        found(files).into_iter().map(|circle| circle.files).collect()
    }

    fn found(files: &[(&str, &str)]) -> Vec<Circle> {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        circles_below(&dir.path().join("lib.rs")).unwrap()
    }

    #[test]
    fn a_circle_is_found_through_crate_super_and_self() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod c; use self::c::C; pub(crate) struct A;"),
            ("a/c.rs", "pub(crate) struct C; fn f() { crate::b::b() }"),
            ("b.rs", "pub(crate) fn b() { let _ = super::a::A; }"),
        ];
        assert_eq!(circles(&files), [["a/c.rs", "a/mod.rs", "b.rs"]]);
        let cycle = found(&files).remove(0).cycle;
        let names: Vec<&str> = cycle.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(cycle.len(), 3);
        assert!(names.contains(&"A") && names.contains(&"b") && names.contains(&"C"), "{names:?}");
    }

    #[test]
    fn a_reexport_counts_for_the_file_that_defines_the_name() {
        let lib = "mod a; mod b; pub use a::A; pub use b::{B as Renamed};";
        let a = "pub struct A;";
        assert_eq!(
            circles(&[("lib.rs", lib), ("a.rs", a), ("b.rs", "use crate::A; pub struct B;")]),
            Vec::<Vec<String>>::new()
        );
        let a = "use crate::{self, Renamed}; pub struct A;";
        let b = "pub struct B(crate::A);";
        assert_eq!(circles(&[("lib.rs", lib), ("a.rs", a), ("b.rs", b)]), [["a.rs", "b.rs"]]);
    }

    #[test]
    fn a_parent_that_uses_what_it_hands_on_needs_its_child() {
        let child = ("a.rs", "use super::Kind; pub struct A(Kind);");
        let uses = "mod a; pub use a::A; pub enum Kind {} fn f(_: A) {}";
        assert_eq!(circles(&[("lib.rs", uses), child]), [["a.rs", "lib.rs"]]);
        let hands_on = "mod a; pub use a::A; pub enum Kind {}";
        assert_eq!(circles(&[("lib.rs", hands_on), child]), Vec::<Vec<String>>::new());
    }

    #[test]
    fn globs_and_modules_imported_by_name_lead_to_files() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use b::*;"),
            ("a.rs", "use crate::B; pub fn a() {}"),
            ("b.rs", "use crate::a; pub struct B; fn f() { a::a() }"),
        ];
        assert_eq!(circles(&files), [["a.rs", "b.rs"]]);
        // A module that is imported and not used for anything but its name is no arrow.
        let unused = ("b.rs", "use crate::a; pub struct B;");
        assert_eq!(circles(&[files[0], files[1], unused]), Vec::<Vec<String>>::new());
        let glob = ("b.rs", "use crate::a::*; pub struct B;");
        assert_eq!(circles(&[files[0], files[1], glob]), [["a.rs", "b.rs"]]);
    }

    #[test]
    fn tests_are_left_out() {
        let lib = "mod a; mod b; #[cfg(test)] mod tests; #[cfg(test)] #[cfg(unix)] mod more;";
        let a = "pub fn a() {} #[cfg(test)] use crate::b::{b, B}; #[cfg(test)] mod tests { use crate::b::B; }
                 struct S { #[cfg(test)] x: crate::b::B } #[cfg(test)] fn t() { crate::b::b() }";
        let b = "use crate::a::a; pub struct B; pub fn b() {}";
        let tests = ("tests.rs", "use crate::a::a; pub fn t() {}");
        assert_eq!(
            circles(&[("lib.rs", lib), ("a.rs", a), ("b.rs", b), tests]),
            Vec::<Vec<String>>::new()
        );
        let not_test = format!("{a} #[cfg(not(test))] use crate::b::B;");
        assert_eq!(circles(&[("lib.rs", lib), ("a.rs", &not_test), ("b.rs", b)]).len(), 1);
    }

    #[test]
    fn reexports_in_a_circle_end() {
        let files = [
            ("lib.rs", "mod a; mod b; fn f() { a::X::new(); }"),
            ("a.rs", "pub use crate::b::*; pub use crate::b::X;"),
            ("b.rs", "pub use crate::a::*; pub use crate::a::X;"),
        ];
        assert_eq!(circles(&files), Vec::<Vec<String>>::new());
    }

    fn circle(files: usize) -> Circle {
        let files: Vec<String> = (0..files).map(|file| format!("{file}.rs")).collect();
        let cycle = vec![("0.rs".to_owned(), "X".to_owned()), ("1.rs".to_owned(), "Y".to_owned())];
        Circle { files, cycle }
    }

    #[test]
    fn the_limit_and_the_table_are_kept_exactly() {
        assert_eq!(judge("p", vec![circle(FILES_MAX)], vec![]), Vec::<String>::new());
        assert_eq!(judge("p", vec![circle(4), circle(6)], vec![4, 6]), Vec::<String>::new());
        let found = judge("p", vec![circle(4)], vec![]).join("\n");
        assert!(found.contains("p: 4 files") && found.contains("the limit is 3"), "{found}");
        assert!(found.contains("0.rs, 1.rs, 2.rs, 3.rs"), "{found}");
        assert!(found.contains("0.rs -(X)-> 1.rs -(Y)-> 0.rs"), "{found}");
        assert!(judge("p", vec![circle(7)], vec![6])[0].contains("the limit is 6"));
        assert!(judge("p", vec![circle(5)], vec![6])[0].contains("set 5"));
        assert!(judge("p", vec![], vec![6])[0].contains("gone"));
        assert!(judge("p", vec![circle(2)], vec![4])[0].contains("gone"));
    }
}
