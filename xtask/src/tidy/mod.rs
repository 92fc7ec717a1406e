//! House rules that neither the compiler nor clippy knows, checked line by line.

mod rules;
mod words;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::report::Outcome;

/// Directories at the root whose files are made and not written. Hidden ones come on top.
const MADE_IN_ROOT: &[&str] = &["target", "results"];

/// The same for every directory called `fuzz`.
const MADE_IN_FUZZ: &[&str] = &["target", "corpus", "artifacts"];

/// Extensions of the files that the rules know.
const KNOWN: &[&str] = &["rs", "md", "toml"];

/// One file, read once for all rules.
pub(crate) struct SourceFile {
    /// From the root of the checkout, with forward slashes.
    pub(crate) path: String,
    /// The whole text.
    pub(crate) text: String,
}

impl SourceFile {
    /// The extension, without its dot.
    fn extension(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
    }
}

/// One breach of a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Line, from 1.
    pub(crate) line: usize,
    /// The problem and the remedy.
    pub(crate) message: String,
    /// A warning is printed and does not fail the step.
    pub(crate) warning: bool,
}

/// Checks every file of the checkout.
///
/// # Errors
/// When a file or directory cannot be read.
pub(crate) fn check(root: &Path) -> Result<Outcome> {
    let mut paths = Vec::new();
    walk(root, root, &mut paths)?;
    paths.sort_unstable();
    let glossary = std::fs::read_to_string(root.join(words::GLOSSARY));
    let retired =
        words::retired(&glossary.with_context(|| format!("cannot read {}", words::GLOSSARY))?);
    let (mut errors, mut warnings) = (0_usize, 0_usize);
    for path in paths {
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let relative = path.strip_prefix(root).unwrap_or(&path);
        let file = SourceFile { path: relative.to_string_lossy().replace('\\', "/"), text };
        let mut findings = rules::apply(&file);
        findings.extend(words::check(&file, &retired));
        findings.extend(rules::links(&file, |target| root.join(target).exists()));
        findings.extend(rules::examples(&file, |manifest| {
            std::fs::read_to_string(root.join(manifest)).unwrap_or_default()
        }));
        for Finding { line, message, warning } in findings {
            let kind = if warning { "warning: " } else { "" };
            println!("{}:{line}: {kind}{message}", file.path);
            *(if warning { &mut warnings } else { &mut errors }) += 1;
        }
    }
    if errors == 0 {
        return Ok(Outcome::Passed);
    }
    Ok(Outcome::Failed(format!("{errors} findings and {warnings} warnings, listed above")))
}

fn walk(root: &Path, directory: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(directory)
        .with_context(|| format!("cannot read the directory {}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_dir() {
            let made = (directory == root && MADE_IN_ROOT.contains(&name.as_str()))
                || (directory.ends_with("fuzz") && MADE_IN_FUZZ.contains(&name.as_str()));
            if !made && !name.starts_with('.') {
                walk(root, &path, paths)?;
            }
        } else if kind.is_file() && KNOWN.iter().any(|e| path.extension().is_some_and(|x| x == *e))
        {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_and_foreign_ones_left_out() {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            "crates/a/src/lib.rs",
            "crates/a/src/target/b.rs",
            "target/x.rs",
            "results/r/x.md",
            ".git/x.md",
            "a.png",
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let mut found = Vec::new();
        walk(dir.path(), dir.path(), &mut found).unwrap();
        found.sort_unstable();
        let ours = ["crates/a/src/lib.rs", "crates/a/src/target/b.rs"];
        assert_eq!(found, ours.map(|path| dir.path().join(path)));
    }

    #[test]
    fn a_breach_fails_the_step_and_a_clean_tree_passes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.rs");
        std::fs::create_dir(dir.path().join("docs")).unwrap();
        std::fs::write(dir.path().join(words::GLOSSARY), "# Glossary\n").unwrap();
        std::fs::write(&path, "//! Fine.\n").unwrap();
        assert_eq!(check(dir.path()).unwrap(), Outcome::Passed);
        std::fs::write(&path, concat!("#[ig", "nore]\nfn x() {}\n")).unwrap();
        assert!(matches!(check(dir.path()).unwrap(), Outcome::Failed(_)));
    }
}
