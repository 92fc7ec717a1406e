//! Builds binaries and learns from cargo where they are.
//!
//! Steps that run something ask here and do not use `cargo run -p NAME`: cargo then picks the
//! features of dependencies for that package alone, and compiles half of them once more.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::command::Cmd;
use crate::workspace::Workspace;

/// An executable that cargo built from a member of the workspace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Artifact {
    /// The file.
    pub(crate) executable: PathBuf,
    /// Where its package lives; cargo runs tests there.
    pub(crate) directory: PathBuf,
    /// The package, as in `-p NAME`.
    pub(crate) package: String,
    /// `bin`, `example`, `test`, `lib` …
    pub(crate) kind: String,
    /// The target, as in `--example NAME`.
    pub(crate) name: String,
    /// Whether it is a test harness.
    pub(crate) is_test: bool,
}

/// Builds all binaries and examples, with the features that `cargo test --workspace` uses.
///
/// # Errors
/// When they do not build.
pub(crate) fn programs(workspace: &Workspace) -> Result<Vec<Artifact>> {
    build(workspace, &["build", "--workspace", "--bins", "--examples"])
}

/// Builds the product and returns a call of it, without arguments, in the root of the checkout.
///
/// # Errors
/// When it does not build.
pub(crate) fn product(workspace: &Workspace) -> Result<Cmd> {
    Ok(Cmd::new(program(workspace)?).dir(&workspace.root))
}

/// Builds the product and returns its path.
///
/// # Errors
/// When it does not build.
pub(crate) fn program(workspace: &Workspace) -> Result<String> {
    let found = programs(workspace)?.into_iter().find(|a| a.kind == "bin" && a.name == "ssdyno");
    let Some(product) = found else { bail!("the workspace has no binary called `ssdyno`") };
    Ok(product.executable.display().to_string())
}

/// Builds all tests but those in documentation.
///
/// # Errors
/// When they do not build.
pub(crate) fn tests(workspace: &Workspace) -> Result<Vec<Artifact>> {
    let mut built = build(workspace, &["test", "--workspace", "--tests", "--no-run"])?;
    built.retain(|artifact| artifact.is_test);
    Ok(built)
}

fn build(workspace: &Workspace, args: &[&str]) -> Result<Vec<Artifact>> {
    let cmd = Cmd::cargo(&workspace.root, args.iter().copied());
    let json = cmd.clone().args(["--message-format", "json-render-diagnostics"]).announced();
    let output = json.build().stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("`{cmd}` failed");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut built: Vec<Artifact> =
        text.lines().filter_map(|line| artifact(workspace, line)).collect();
    // Cargo reports in the order in which compilations end.
    let key = |a: &Artifact| (a.package.clone(), a.kind.clone(), a.name.clone());
    built.sort_by_key(key);
    Ok(built)
}

/// Reads one of cargo's messages; `None` unless it announces an executable of a member.
fn artifact(workspace: &Workspace, line: &str) -> Option<Artifact> {
    let message: Value = serde_json::from_str(line).ok()?;
    let executable = PathBuf::from(message.get("executable")?.as_str()?);
    let manifest = PathBuf::from(message.get("manifest_path")?.as_str()?);
    let package = workspace.packages.iter().find(|p| p.manifest_path == manifest)?;
    let target = message.get("target")?;
    Some(Artifact {
        executable,
        directory: manifest.parent()?.to_owned(),
        package: package.name.clone(),
        kind: target.get("kind")?.get(0)?.as_str()?.to_owned(),
        name: target.get("name")?.as_str()?.to_owned(),
        is_test: message.get("profile")?.get("test")?.as_bool()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_among_messages() {
        let workspace = Workspace::load().unwrap();
        let manifest = workspace.root.join("xtask/Cargo.toml");
        let message = serde_json::json!({
            "reason": "compiler-artifact", "manifest_path": manifest, "executable": "x",
            "profile": {"test": true}, "target": {"name": "xtask", "kind": ["bin"]},
        });
        let found = artifact(&workspace, &message.to_string()).unwrap();
        assert_eq!((found.package.as_str(), found.kind.as_str()), ("xtask", "bin"));
        assert_eq!(found.directory, workspace.root.join("xtask"));
        assert!(found.is_test);
        let foreign = message.to_string().replace("xtask/Cargo.toml", "elsewhere/Cargo.toml");
        assert_eq!(artifact(&workspace, &foreign), None);
        assert_eq!(artifact(&workspace, r#"{"reason":"build-finished"}"#), None);
        assert_eq!(artifact(&workspace, "not json"), None);
    }
}
