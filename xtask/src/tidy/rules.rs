//! The rules. Each takes one file and returns what breaks it; the words that a rule looks for are
//! put together from halves, so that this file passes its own rules.

use super::{Finding, SourceFile};

/// Lines that a source file may have.
const LINES_MAX: usize = 600;

/// Lines from which on a file should be thought about.
const LINES_WARN: usize = 500;

/// Directories of one person's machine.
const MACHINE_PATHS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/t", "mp/"),
    concat!("/wo", "rk/"),
    concat!("C:\\Us", "ers\\"),
];

/// Marks of work that was put off. It belongs into an issue, where it is seen.
const PUT_OFF: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Words with which the documentation of a crate says what it leaves out.
const LEFT_OUT: &[&str] = &["not modelled", "does not model", "not here:", "not modeled"];

/// All rules that need nothing but the file.
pub(super) fn apply(file: &SourceFile) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(machine_paths(file));
    found.extend(put_off(file));
    match file.extension() {
        "rs" => {
            found.extend(length(file));
            found.extend(unfinished(file));
            found.extend(attributes(file));
            found.extend(crate_documentation(file));
            found.extend(includes(file));
        }
        "toml" => found.extend(relaxed_in_manifest(file)),
        _ => {}
    }
    found.sort_by_key(|finding| finding.line);
    found
}

/// Links to files inside the repository must lead somewhere; `exists` takes a path from the root.
pub(super) fn links(file: &SourceFile, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    if file.extension() != "md" {
        return Vec::new();
    }
    let directory = file.path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let mut found = Vec::new();
    for (line, text) in numbered(file) {
        for (_, rest) in text.match_indices("](").map(|(at, m)| text.split_at(at + m.len())) {
            let target = rest.split([')', '#', ' ']).next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let path = if directory.is_empty() {
                target.to_owned()
            } else {
                format!("{directory}/{target}")
            };
            if !exists(&path) {
                found.push(error(line, format!("the link to `{target}` leads nowhere")));
            }
        }
    }
    found
}

/// Examples in documentation are run, unless the manifest of their crate, which `read` gives, says that there are
/// none.
pub(super) fn examples(file: &SourceFile, read: impl Fn(&str) -> String) -> Option<Finding> {
    let (package, _) = file.path.split_once("/src/").filter(|_| file.extension() == "rs")?;
    let fences = numbered(file).filter_map(|(line, text)| {
        let text = text.trim_start();
        let text = text.strip_prefix("//!").or_else(|| text.strip_prefix("///"))?;
        Some((line, text.trim().strip_prefix("```")?))
    });
    // Each second fence closes the one before it.
    let run = |language: &str| ["", "rust", "no_run", "should_panic"].contains(&language);
    let (line, _) = fences.step_by(2).find(|(_, language)| run(language))?;
    let message =
        "an example, but `doctest = false` in the manifest: it is never run; take that out";
    let off = read(&format!("{package}/Cargo.toml")).lines().any(|line| line == "doctest = false");
    off.then(|| error(line, message.to_owned()))
}

fn length(file: &SourceFile) -> Option<Finding> {
    let lines = file.text.lines().count();
    let message = format!("{lines} lines; split it by purpose (limit {LINES_MAX})");
    (lines > LINES_WARN).then_some(Finding { line: lines, message, warning: lines <= LINES_MAX })
}

fn machine_paths(file: &SourceFile) -> Vec<Finding> {
    // Part of a longer path or of an address when something stands directly before it.
    let starts = |text: &str, at: usize| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "-_./~*}>".contains(c))
    };
    let hit = |text: &str| {
        MACHINE_PATHS.iter().find(|path| text.match_indices(**path).any(|(at, _)| starts(text, at)))
    };
    numbered(file)
        .filter_map(|(line, text)| hit(text).map(|path| (line, path)))
        .map(|(line, path)| {
            error(line, format!("`{path}…` exists on one machine only; use a relative path"))
        })
        .collect()
}

fn put_off(file: &SourceFile) -> Vec<Finding> {
    numbered(file)
        .filter_map(|(line, text)| PUT_OFF.iter().find(|w| has_word(text, w)).map(|w| (line, w)))
        .map(|(line, word)| error(line, format!("`{word}`: do it now or open an issue")))
        .collect()
}

fn unfinished(file: &SourceFile) -> Vec<Finding> {
    const MACROS: &[&str] = &[concat!("to", "do!"), concat!("unimpl", "emented!")];
    numbered(file)
        .filter_map(|(line, text)| MACROS.iter().find(|m| text.contains(**m)).map(|m| (line, m)))
        .map(|(line, name)| error(line, format!("`{name}`: code that is not there yet")))
        .collect()
}

/// Ignored tests and relaxed lints say why.
fn attributes(file: &SourceFile) -> Vec<Finding> {
    let mut found = Vec::new();
    for (line, text) in attribute_texts(file) {
        let ignored = ["ignore]", "ignore)"].iter().any(|end| {
            text.match_indices(end).any(|(at, _)| text[..at].ends_with(['[', ',', '(', ' ']))
        });
        if ignored {
            let advice = "say why the test is ignored: #[ignore = \"…\"]";
            found.push(error(line, advice.to_owned()));
        }
        let relaxed = has_word(&text, "allow") || has_word(&text, "expect");
        if relaxed && !has_word(&text, "reason") {
            let advice = "say why the lint is relaxed: #[expect(lint, reason = \"…\")]";
            found.push(error(line, advice.to_owned()));
        }
    }
    found
}

/// Every attribute with its first line, blanks squeezed, over several lines where it needs them.
fn attribute_texts(file: &SourceFile) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut open = 0_usize;
    for (line, text) in numbered(file) {
        let text = text.trim();
        if open == 0 && !text.starts_with("#[") && !text.starts_with("#![") {
            continue;
        }
        if open == 0 {
            found.push((line, String::new()));
        }
        let Some((_, gathered)) = found.last_mut() else { continue };
        for c in text.chars() {
            match c {
                '[' => open += 1,
                ']' => open = open.saturating_sub(1),
                _ => {}
            }
            gathered.push(c);
            if open == 0 && c == ']' {
                break;
            }
        }
    }
    found
}

/// A library opens with its purpose and with what it leaves out; a binary with its purpose.
fn crate_documentation(file: &SourceFile) -> Option<Finding> {
    let library = file.path.ends_with("src/lib.rs");
    if !library && !file.path.ends_with("src/main.rs") {
        return None;
    }
    let documentation: Vec<&str> =
        file.text.lines().map_while(|line| line.trim().strip_prefix("//!")).collect();
    let text = documentation.join(" ").to_lowercase();
    if text.trim().is_empty() {
        return Some(error(
            1,
            "open with //! documentation: purpose, key types, errors".to_owned(),
        ));
    }
    let says = LEFT_OUT.iter().any(|words| text.contains(words));
    (library && !says).then(|| {
        error(
            1,
            "the crate documentation must say what is not modelled (\"Not modelled: …\")"
                .to_owned(),
        )
    })
}

/// A lint that a manifest switches off has its reason in a comment on or above its line.
fn relaxed_in_manifest(file: &SourceFile) -> Vec<Finding> {
    let mut found = Vec::new();
    let (mut in_lints, mut commented) = (false, false);
    for (line, text) in numbered(file) {
        let text = text.trim();
        if text.starts_with('[') {
            in_lints = text.contains("lints");
        }
        if in_lints && text.contains("\"allow\"") && !commented && !text.contains('#') {
            found.push(error(line, "say in a comment why this lint is switched off".to_owned()));
        }
        commented = text.starts_with('#');
    }
    found
}

/// A file that a crate includes is inside it, or behind a link in it: what `cargo package` makes has nothing else.
fn includes(file: &SourceFile) -> Vec<Finding> {
    let Some((_, inside)) = file.path.split_once("/src/") else { return Vec::new() };
    // From the directory of the file, this is outside: `src` itself is one step down.
    let outside = "../".repeat(inside.matches('/').count() + 2);
    let is_test = inside.split('/').any(|part| part == "tests" || part == "tests.rs");
    let macros = ["include_str!", "include_bytes!", "presets!"];
    let leaves = |text: &str| {
        let included = macros.iter().any(|name| text.contains(name));
        // The path in a macro begins where the macro is used.
        let fixed = !text.contains('$') && !text.trim_start().starts_with("//");
        included && fixed && text.contains(&format!("\"{outside}"))
    };
    let lines = numbered(file).filter(|(_, text)| !is_test && leaves(text));
    let message =
        "a file outside the crate is in no package; include it through a link in the crate";
    lines.map(|(line, _)| error(line, message.to_owned())).collect()
}

fn error(line: usize, message: String) -> Finding {
    Finding { line, message, warning: false }
}

fn numbered(file: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    file.text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

pub(super) fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn lines(path: &str, text: &str) -> Vec<usize> {
        apply(&file(path, text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn long_files_warn_then_fail() {
        let of = |n: usize| length(&file("a.rs", &"x\n".repeat(n))).map(|f| f.warning);
        assert_eq!(of(LINES_WARN), None);
        assert_eq!(of(LINES_WARN + 1), Some(true));
        assert_eq!(of(LINES_MAX), Some(true));
        assert_eq!(of(LINES_MAX + 1), Some(false));
    }

    #[test]
    fn an_example_that_is_never_run_is_found() {
        let found = |text: &str, manifest: &str| {
            let file = file("crates/a/src/lib.rs", text);
            examples(&file, |path| {
                assert_eq!(path, "crates/a/Cargo.toml");
                manifest.to_owned()
            })
            .map(|finding| finding.line)
        };
        let off = "[lib]\ndoctest = false\n";
        assert_eq!(
            found("//! ```text\n//! a\n//! ```\n/// ```\n/// a();\n/// ```\n", off),
            Some(4)
        );
        assert_eq!(found("//! ```text\n//! a\n//! ```\n", off), None);
        assert_eq!(found("//! ```\n//! a();\n//! ```\n", "[lib]\n"), None);
    }

    #[test]
    fn machine_paths_are_found_where_they_start() {
        for path in MACHINE_PATHS {
            assert_eq!(lines("a.md", &format!("see `{path}x`")), [1], "{path}");
            assert_eq!(lines("a.toml", &format!("# https://host{path}x")), [] as [usize; 0]);
        }
        assert_eq!(lines("a.md", "/dev/nvme0n1 and /etc/os-release"), [] as [usize; 0]);
    }

    #[test]
    fn work_put_off_is_found_as_a_word() {
        assert_eq!(lines("a.rs", &format!("// {}: later", PUT_OFF[0])), [1]);
        assert_eq!(lines("a.md", &format!("ok\n{} this", PUT_OFF[1])), [2]);
        assert_eq!(lines("a.rs", &format!("let {}S = 1;", PUT_OFF[0])), [] as [usize; 0]);
    }

    #[test]
    fn unfinished_code_is_found() {
        assert_eq!(lines("a.rs", concat!("fn a() {\n    to", "do!()\n}")), [2]);
        assert_eq!(lines("a.rs", concat!("unimpl", "emented!(\"x\")")), [1]);
    }

    #[test]
    fn ignored_tests_need_a_reason() {
        assert_eq!(lines("a.rs", concat!("#[ig", "nore]")), [1]);
        assert_eq!(lines("a.rs", "#[cfg_attr(miri, ignore)]"), [1]);
        assert_eq!(lines("a.rs", "#[ignore = \"takes an hour\"]"), [] as [usize; 0]);
        assert_eq!(lines("a.rs", "#[cfg_attr(miri, ignore = \"slow\")]"), [] as [usize; 0]);
    }

    #[test]
    fn relaxed_lints_need_a_reason_on_any_line_of_the_attribute() {
        assert_eq!(lines("a.rs", "fn a() {}\n    #[allow(dead_code)]"), [2]);
        assert_eq!(lines("a.rs", "#![expect(clippy::all)]"), [1]);
        let long = "#[expect(\n    clippy::x,\n    reason = \"one table\"\n)]\nfn a() {}";
        assert_eq!(lines("a.rs", long), [] as [usize; 0]);
        assert_eq!(lines("a.rs", &long.replace("reason = ", "")), [1]);
        assert_eq!(lines("a.rs", "#[derive(Debug)]\nx.expect(\"y\");"), [] as [usize; 0]);
    }

    #[test]
    fn lints_off_in_a_manifest_need_a_comment() {
        let bare = "[lints.clippy]\nx = \"allow\"\n";
        assert_eq!(lines("Cargo.toml", bare), [2]);
        assert_eq!(lines("Cargo.toml", &bare.replace("x =", "# why\nx =")), [] as [usize; 0]);
        assert_eq!(lines("Cargo.toml", "[a]\nx = \"allow\"\n"), [] as [usize; 0]);
    }

    #[test]
    fn crates_say_what_they_leave_out() {
        let path = "crates/a/src/lib.rs";
        assert_eq!(lines(path, "pub fn a() {}"), [1]);
        assert_eq!(lines(path, "//! Purpose."), [1]);
        assert_eq!(lines(path, "//! Purpose.\n//!\n//! Not modelled: wear."), [] as [usize; 0]);
        assert_eq!(lines("crates/a/src/main.rs", "//! Purpose."), [] as [usize; 0]);
        assert_eq!(lines("crates/a/src/other.rs", "pub fn a() {}"), [] as [usize; 0]);
    }

    #[test]
    fn included_files_are_inside_the_crate() {
        let include = |up: &str| format!("const A: &str = include_str!(\"{up}presets/a.toml\");");
        for (path, up, lines_found) in [
            ("crates/a/src/b.rs", "../", 0),
            ("crates/a/src/b.rs", "../../", 1),
            ("crates/a/src/b/c.rs", "../../", 0),
            ("crates/a/src/b/c.rs", "../../../../", 1),
            ("crates/a/src/tests/c.rs", "../../../../", 0),
            ("crates/a/tests/c.rs", "../../", 0),
        ] {
            assert_eq!(lines(path, &include(up)).len(), lines_found, "{path} {up}");
        }
        assert!(lines("crates/a/src/b.rs", "//! # include_str!(\"../../c\")").is_empty());
    }

    #[test]
    fn links_inside_the_repository_lead_somewhere() {
        let text =
            "[a](b.md) [c](../x.md#part) [web](https://example.org) [here](#part)\n[n](n.md)";
        let page = file("docs/a.md", text);
        let found = links(&page, |path| path == "docs/b.md" || path == "docs/../x.md");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
        assert!(links(&file("a.rs", text), |_| false).is_empty());
    }
}
