//! The program of a package: built, and checked.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::System;
use crate::command::Cmd;
use crate::workspace::Workspace;
use crate::{python, setup};

/// A C compiler and linker for every target in one package, and what makes cargo use it: one of our dependencies
/// has parts in C and assembly, and a machine has no C compiler for other processors.
const COMPILERS: [&str; 2] = ["ziglang>=0.13", "cargo-zigbuild>=0.19"];

/// The program of `system`, built if `wanted`.
pub(super) fn of(workspace: &Workspace, system: &System, wanted: bool) -> Result<PathBuf> {
    if wanted {
        build(workspace, system)?;
    }
    let program = workspace.target_directory.join(system.target).join("dist/ssdyno");
    if !program.is_file() {
        bail!("{} is missing; leave --no-build out", program.display());
    }
    Ok(program)
}

/// A program of this machine that makes manual pages and completion, where no packaged one runs. How fast it is does not
/// matter.
pub(super) fn for_pages(workspace: &Workspace) -> Result<PathBuf> {
    let build = Cmd::cargo(&workspace.root, ["build", "-p", "ssdyno"]);
    if !build.announced().stream()? {
        bail!("the program does not build");
    }
    Ok(workspace.target_directory.join("debug/ssdyno"))
}

/// Builds it optimised as a whole and without symbols.
fn build(workspace: &Workspace, system: &System) -> Result<()> {
    setup::cross_target(system.target)?;
    let python = python::environment(workspace, &COMPILERS)?;
    let tools = Path::new(&python).parent().context("an interpreter without a directory")?;
    let path = std::env::var("PATH").unwrap_or_default();
    let build =
        ["zigbuild", "--profile", "dist", "--target", system.target, "-p", "ssdyno", "--locked"];
    let build = Cmd::new("cargo")
        .args(build)
        .env("PATH", format!("{}:{path}", tools.display()))
        .env("CARGO_PROFILE_DIST_DEBUG", "false")
        .env("CARGO_PROFILE_DIST_STRIP", "symbols")
        .dir(&workspace.root);
    if !build.announced().stream()? {
        bail!("the program does not build for {}", system.target);
    }
    Ok(())
}

/// # Errors
/// The program is not the version that is packaged.
pub(super) fn check_version(program: &Path, version: &str) -> Result<()> {
    let told = Cmd::new(program.display().to_string()).args(["--version"]).capture()?;
    if !told.stdout.split_whitespace().any(|word| word == version) {
        bail!("{} is not version {version}: {}", program.display(), told.stdout.trim());
    }
    Ok(())
}

/// # Errors
/// The program needs a library or a loader, has symbols, or is larger than `most_mib`.
pub(super) fn check(program: &Path, most_mib: u64) -> Result<()> {
    let bytes = std::fs::read(program)?;
    if bytes.len() as u64 > most_mib << 20 {
        bail!("{} is larger than {most_mib} MiB", program.display());
    }
    let kinds = segments(&bytes)
        .with_context(|| format!("{} is not a 64-bit program", program.display()))?;
    if kinds.contains(&INTERPRETER) {
        bail!("{} needs a loader and libraries of the system", program.display());
    }
    Ok(())
}

/// The kind of segment that names a dynamic loader (`PT_INTERP` of the ELF specification).
const INTERPRETER: u32 = 3;

/// The kinds of all segments of a little-endian 64-bit ELF file.
fn segments(file: &[u8]) -> Option<Vec<u32>> {
    let at = |offset: usize, bytes: usize| file.get(offset..offset + bytes);
    let number = |offset, bytes| {
        let part: &[u8] = at(offset, bytes)?;
        Some(part.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)) as usize)
    };
    if at(0, 6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    // e_phoff, e_phentsize, e_phnum; a segment begins with its kind (p_type).
    let (table, entry, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    (0..count).map(|index| Some(number(table + index * entry, 4)? as u32)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn a_program_that_needs_libraries_is_refused() {
        let error = check(&std::env::current_exe().unwrap(), 1000).unwrap_err().to_string();
        assert!(error.ends_with("needs a loader and libraries of the system"), "{error}");
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x");
        for content in [&b""[..], b"\x7fELF", b"#!/bin/sh\nexit 0\n", b"\x7fELF\x02\x01\x01"] {
            std::fs::write(&file, content).unwrap();
            let error = check(&file, 1).unwrap_err().to_string();
            assert!(error.ends_with("is not a 64-bit program"), "{error}");
        }
        std::fs::write(&file, vec![0; (1 << 20) + 1]).unwrap();
        let error = check(&file, 1).unwrap_err().to_string();
        assert!(error.ends_with("is larger than 1 MiB"), "{error}");
    }
}
