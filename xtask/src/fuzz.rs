//! Coverage-guided fuzzing of everything that parses, by cargo-fuzz and the targets in
//! `crates/NAME/fuzz/` (or `fuzz/` for what spans crates).
//!
//! The property tests next to each parser are the first net and run everywhere; this is the
//! second, and needs a nightly compiler.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command::Cmd;
use crate::workspace::Workspace;

/// One fuzz target.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    /// Its package, from the root of the checkout, as in `crates/workload/fuzz`.
    directory: String,
    name: String,
}

/// Runs the fuzz targets of one name, or all in turn, for `seconds` each; `Ok(true)` when none
/// found a fault.
///
/// # Errors
/// When there are no targets, none of that name, or a tool is missing and cannot be installed.
pub(crate) fn run(workspace: &Workspace, wanted: Option<&str>, seconds: u64) -> Result<bool> {
    let chosen = choose(all(&workspace.root)?, wanted)?;
    tools()?;
    let mut ok = true;
    for Target { directory, name } in chosen {
        let time = format!("-max_total_time={seconds}");
        let fuzz = ["run", "nightly", "cargo", "fuzz", "run", "--fuzz-dir", &directory];
        // The outer cargo pins its own toolchain through this variable.
        let cmd = Cmd::new("rustup").args(fuzz).args([&name, "--", &time]);
        let cmd = cmd.dir(&workspace.root).without_env("RUSTUP_TOOLCHAIN").announced();
        if !cmd.stream()? {
            ok = false;
            println!("a failing input, if any, is kept in {directory}/artifacts/{name}/");
            println!("make a unit test of it; to run it again: cargo xtask fuzz {name}");
        }
    }
    Ok(ok)
}

fn choose(mut targets: Vec<Target>, wanted: Option<&str>) -> Result<Vec<Target>> {
    if targets.is_empty() {
        bail!("there are no fuzz targets: no crates/*/fuzz/Cargo.toml with a [[bin]]");
    }
    if let Some(wanted) = wanted {
        let names: Vec<String> = targets.iter().map(|target| target.name.clone()).collect();
        targets.retain(|target| target.name == wanted);
        if targets.is_empty() {
            bail!("no fuzz target is called `{wanted}`; the targets are: {}", names.join(", "));
        }
    }
    Ok(targets)
}

/// Every fuzz target of the checkout, in a stable order.
fn all(root: &Path) -> Result<Vec<Target>> {
    let mut directories = vec![PathBuf::from("fuzz")];
    for entry in std::fs::read_dir(root.join("crates")).context("cannot read crates/")? {
        directories.push(Path::new("crates").join(entry?.file_name()).join("fuzz"));
    }
    directories.sort_unstable();
    let mut found = Vec::new();
    for directory in directories {
        let Ok(manifest) = std::fs::read_to_string(root.join(&directory).join("Cargo.toml")) else {
            continue;
        };
        let directory = directory.to_string_lossy().replace('\\', "/");
        let target = |name| Target { directory: directory.clone(), name };
        found.extend(targets(&manifest).into_iter().map(target));
    }
    Ok(found)
}

/// The names of the `[[bin]]` tables of fuzz/Cargo.toml.
fn targets(manifest: &str) -> Vec<String> {
    let mut in_bin = false;
    let mut names = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            in_bin = line == "[[bin]]";
        } else if let Some(value) = line.strip_prefix("name").filter(|_| in_bin) {
            names.push(value.trim_matches(|c: char| c == '=' || c == '"' || c == ' ').to_owned());
        }
    }
    names
}

fn tools() -> Result<()> {
    let needed = [
        (
            Cmd::new("rustup").args(["run", "nightly", "rustc", "--version"]),
            Cmd::new("rustup").args(["toolchain", "install", "nightly", "--profile", "minimal"]),
        ),
        (
            Cmd::new("cargo").args(["fuzz", "--version"]),
            Cmd::new("cargo").args(["install", "--locked", "cargo-fuzz"]),
        ),
    ];
    for (probe, install) in needed {
        if !probe.works() && !(install.clone().announced().stream().unwrap_or(false)) {
            bail!("`{probe}` does not work; type: {install}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_the_bins_only() {
        let manifest = "[package]\nname = \"fuzz\"\n[[bin]]\nname = \"units\"\npath=\"x\"\n\
                        [dependencies]\nname = \"1\"\n[[bin]]\nname=\"trace\"\n";
        assert_eq!(targets(manifest), ["units", "trace"]);
    }

    #[test]
    fn targets_of_all_crates_are_found_and_chosen_by_name() {
        let dir = tempfile::tempdir().unwrap();
        for (path, name) in [("crates/b/fuzz", "trace"), ("crates/a/fuzz", "units")] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(&path).unwrap();
            let manifest = format!("[[bin]]\nname = \"{name}\"\n");
            std::fs::write(path.join("Cargo.toml"), manifest).unwrap();
        }
        let found = all(dir.path()).unwrap();
        let directories: Vec<_> = found.iter().map(|target| target.directory.as_str()).collect();
        assert_eq!(directories, ["crates/a/fuzz", "crates/b/fuzz"]);
        assert_eq!(choose(found.clone(), None).unwrap(), found);
        assert_eq!(choose(found.clone(), Some("trace")).unwrap(), found[1..]);
        let error = choose(found, Some("tarce")).unwrap_err().to_string();
        assert!(error.contains("units, trace"), "{error}");
    }
}
