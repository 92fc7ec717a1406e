//! The Python package: its wheel, and its tests in a virtual environment of their own.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::artifacts;
use crate::command::{Cmd, ci};
use crate::report::Outcome;
use crate::workspace::Workspace;

/// Where the package is, and where everything goes that is made of it.
const PACKAGE: &str = "crates/python";
const PLACE: &str = "target/python";

/// The packages that build the wheel, and those that the tests need.
const MATURIN: &str = "maturin>=1.9.4,<2";
const TESTED_WITH: [&str; 8] =
    ["pytest", "numpy", "pyarrow", "pandas", "polars", "duckdb", "distributed", "optuna"];

/// Builds the wheel that users install, and says where it is.
///
/// # Errors
/// Without Python or maturin.
pub(crate) fn wheel(workspace: &Workspace) -> Result<bool> {
    let python = environment(workspace, &[MATURIN])?;
    let wheel = build(workspace, &python, "release")?;
    if let Some(wheel) = &wheel {
        println!("built {}", wheel.display());
    }
    Ok(wheel.is_some())
}

/// Builds a wheel with the dev profile, which shares what other steps compile, and tests it.
///
/// # Errors
/// When a program cannot be started or a directory cannot be read.
pub(crate) fn test(workspace: &Workspace) -> Result<Outcome> {
    let packages: Vec<&str> = [MATURIN].into_iter().chain(TESTED_WITH).collect();
    let python = match environment(workspace, &packages) {
        Ok(python) => python,
        Err(missing) if ci() => return Ok(Outcome::Failed(format!("{missing:#}"))),
        Err(missing) => {
            eprintln!("WARNING: the Python package is not tested: {missing:#}");
            return Ok(Outcome::Skipped(format!("{missing:#}")));
        }
    };
    let Some(wheel) = build(workspace, &python, "dev")? else {
        return Ok(Outcome::Failed("the wheel does not build".to_owned()));
    };
    let wheel = wheel.display().to_string();
    let install = ["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", &wheel];
    if !run(workspace, &python, &install)? {
        return Ok(Outcome::Failed("the wheel cannot be installed".to_owned()));
    }
    // `sweep --dask` of the command line is tested with the workers of the package. `cargo build -p` would choose other
    // features of dependencies than the tests have, and compile most crates once more.
    let program = artifacts::program(workspace)?;
    let tests = format!("{PACKAGE}/tests");
    let pytest = Cmd::new(&python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", &tests])
        .env("SSDYNO_PROGRAM", program)
        .dir(&workspace.root)
        .announced();
    Ok(Outcome::of_command(pytest.stream()?))
}

/// The interpreter of the virtual environment, which is made where it is missing, with `packages` in it.
pub(crate) fn environment(workspace: &Workspace, packages: &[&str]) -> Result<String> {
    let place = workspace.root.join(PLACE).join("venv");
    let python = place.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let python = python.display().to_string();
    if !Cmd::new(&python).args(["-m", "pip", "--version"]).works() {
        let place = place.display().to_string();
        let made = run(workspace, "python3", &["-m", "venv", "--clear", &place]);
        if !made.context("there is no Python; install python3 with its module venv")? {
            bail!("`python3 -m venv` failed; on Debian type: sudo apt-get install python3-venv");
        }
    }
    let mut install = vec!["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    install.extend(packages);
    if !run(workspace, &python, &install)? {
        bail!("pip cannot install {}; is the registry reachable?", packages.join(", "));
    }
    Ok(python)
}

/// Builds the wheel; `None` where that fails, which was said.
fn build(workspace: &Workspace, python: &str, profile: &str) -> Result<Option<PathBuf>> {
    let wheels = workspace.root.join(PLACE).join("wheels").join(profile);
    // One is in there afterwards: this one.
    if wheels.is_dir() {
        std::fs::remove_dir_all(&wheels)?;
    }
    let (manifest, out) = (format!("{PACKAGE}/Cargo.toml"), wheels.display().to_string());
    let mut build = vec!["-m", "maturin", "build", "--manifest-path", &manifest];
    build.extend(["--profile", profile, "--interpreter", python, "--out", &out]);
    if ci() {
        build.push("--locked");
    }
    if !run(workspace, python, &build)? {
        return Ok(None);
    }
    Ok(Some(only_file(&wheels)?))
}

fn only_file(directory: &Path) -> Result<PathBuf> {
    let mut files = std::fs::read_dir(directory)?;
    let file = files.next().with_context(|| format!("{} is empty", directory.display()))??;
    Ok(file.path())
}

fn run(workspace: &Workspace, program: &str, args: &[&str]) -> Result<bool> {
    Cmd::new(program).args(args.iter().copied()).dir(&workspace.root).announced().stream()
}
