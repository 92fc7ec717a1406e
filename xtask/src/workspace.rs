//! The output of `cargo metadata` on the workspace: packages, their targets, their dependencies.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::command::Cmd;

/// The workspace at the time of the call.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    /// Its members, in cargo's order.
    pub(crate) packages: Vec<Package>,
    /// The directory of the top `Cargo.toml`.
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds.
    pub(crate) target_directory: PathBuf,
}

/// One member.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    /// Its name, as in `cargo -p NAME`.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// Its `Cargo.toml`.
    pub(crate) manifest_path: PathBuf,
    /// What it depends on.
    pub(crate) dependencies: Vec<Dependency>,
    /// Libraries, binaries, examples, tests, benchmarks.
    pub(crate) targets: Vec<Target>,
}

/// One line of a `[dependencies]` table.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    /// Name of the package depended on.
    pub(crate) name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
}

/// Something that cargo builds.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    /// Its name, as in `cargo run --example NAME`.
    pub(crate) name: String,
    /// `lib`, `bin`, `example`, `test`, `bench` …
    pub(crate) kind: Vec<String>,
}

impl Workspace {
    /// Asks cargo.
    ///
    /// # Errors
    /// When cargo cannot be started, or a manifest is broken (its message is passed on).
    pub(crate) fn load() -> Result<Self> {
        let here = std::env::current_dir().context("the current directory is gone")?;
        let root = checkout_above(&here)
            .context("not inside a checkout of the project: no directory above holds xtask/")?;
        let metadata = Cmd::cargo(&root, ["metadata", "--no-deps", "--format-version", "1"]);
        let captured = metadata.capture()?;
        if !captured.ok {
            bail!("`{metadata}` failed:\n{}", captured.stderr.trim_end());
        }
        serde_json::from_str(&captured.stdout)
            .with_context(|| format!("`{metadata}` printed what this xtask cannot read"))
    }

    /// (package, target) of every target of a kind, in a stable order.
    pub(crate) fn targets_of_kind(&self, kind: &str) -> Vec<(&str, &str)> {
        let mut found: Vec<_> = self
            .packages
            .iter()
            .flat_map(|p| p.targets.iter().map(move |t| (p, t)))
            .filter(|(_, target)| target.kind.iter().any(|k| k == kind))
            .map(|(package, target)| (package.name.as_str(), target.name.as_str()))
            .collect();
        found.sort_unstable();
        found
    }

    /// Whether a package of this name is a member.
    pub(crate) fn has(&self, package: &str) -> bool {
        self.packages.iter().any(|p| p.name == package)
    }
}

/// The nearest directory at or above `dir` that holds this workspace (it has an `xtask/`).
fn checkout_above(dir: &Path) -> Option<PathBuf> {
    dir.ancestors().find(|d| d.join("xtask/Cargo.toml").is_file()).map(Path::to_owned)
}
