//! Packages: static programs for Linux, as archives, Debian packages and the directory of a container.
//!
//! Everything is made from a commit: times in the packages are that of the commit, so that the same commit
//! gives the same bytes with the same compilers.

mod debian;
mod program;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command::Cmd;
use crate::workspace::Workspace;

/// Where packages go, and where their trees are put together.
const PLACE: &str = "target/packages";

/// The common data of all packages of a release.
struct Release {
    /// Where the packages go.
    place: PathBuf,
    version: String,
    /// Seconds since 1970 of the commit.
    epoch: u64,
    shared: tree::Shared,
}

/// A system that packages are made for.
#[derive(Debug)]
pub(crate) struct System {
    /// The target of the compiler. musl makes programs that need no library of the system, whatever its age.
    pub(crate) target: &'static str,
    /// Debian's name of the processor, which is also Docker's.
    pub(crate) debian: &'static str,
    /// As `std::env::consts::ARCH` has it.
    processor: &'static str,
}

/// All of them. The one that this machine runs makes manual pages and completion.
const SYSTEMS: [System; 2] = [
    System { target: "x86_64-unknown-linux-musl", debian: "amd64", processor: "x86_64" },
    System { target: "aarch64-unknown-linux-musl", debian: "arm64", processor: "aarch64" },
];

/// Largest sizes in MiB. A package that outgrows its limit has gained something by accident.
const PROGRAM_MIB: u64 = 48;
const PACKAGE_MIB: u64 = 20;

/// Makes the packages of `only`, or of every system, of programs that are built first if `build` says so.
///
/// # Errors
/// A tool is missing, something does not build, or a package is not what it has to be: it needs a library, is
/// too large, or is of another version.
pub(crate) fn run(workspace: &Workspace, only: &[String], build: bool) -> Result<bool> {
    let systems = chosen(only)?;
    let place = workspace.root.join(PLACE);
    if place.is_dir() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(&place)?;
    let version = version(workspace)?;
    let epoch = commit_time(workspace)?;
    let mut built = Vec::new();
    for system in systems {
        built.push((system, program::of(workspace, system, build)?));
    }
    let here = built.iter().find(|(system, _)| system.runs_here()).map(|(_, program)| program);
    let here = match here {
        Some(program) => program.clone(),
        None => program::for_pages(workspace)?,
    };
    program::check_version(&here, &version)?;
    let shared = tree::shared(workspace, &here, &place.join("shared"))?;
    let release = Release { place, version, epoch, shared };
    let mut files = Vec::new();
    for (system, program) in &built {
        program::check(program, PROGRAM_MIB)?;
        files.push(archive(&release, system, program)?);
        files.push(debian::package(&release, system, program)?);
        container(workspace, &release.place, system, program)?;
    }
    let place = &release.place;
    for directory in ["shared", "trees"] {
        fs::remove_dir_all(place.join(directory))?;
    }
    check_sizes(&files)?;
    sums(place, &files)?;
    println!("packages are in {}", place.display());
    Ok(true)
}

impl System {
    fn runs_here(&self) -> bool {
        cfg!(target_os = "linux") && self.processor == std::env::consts::ARCH
    }
}

/// The systems that are named by target or processor; all of them if none is named.
fn chosen(only: &[String]) -> Result<Vec<&'static System>> {
    let named = |name: &str| {
        let known = |system: &&System| name == system.target || name == system.processor;
        let names: Vec<_> = SYSTEMS.iter().map(|system| system.processor).collect();
        let help = || format!("there are no packages for {name}; use {}", names.join(" or "));
        SYSTEMS.iter().find(known).with_context(help)
    };
    match only {
        [] => Ok(SYSTEMS.iter().collect()),
        some => some.iter().map(|name| named(name)).collect(),
    }
}

fn version(workspace: &Workspace) -> Result<String> {
    let package = workspace.packages.iter().find(|package| package.name == "ssdyno");
    Ok(package.context("there is no package ssdyno")?.version.clone())
}

/// Seconds since 1970 of the commit that is packaged.
fn commit_time(workspace: &Workspace) -> Result<u64> {
    let time =
        Cmd::new("git").args(["log", "-1", "--format=%ct"]).dir(&workspace.root).capture()?;
    time.stdout.trim().parse().context("git does not tell the time of the commit")
}

/// A directory with everything, as `cargo binstall` and people unpack it.
fn archive(release: &Release, system: &System, program: &Path) -> Result<PathBuf> {
    let Release { place, version, epoch, shared } = release;
    let name = archive_name(version, system.target);
    let trees = place.join("trees");
    let root = trees.join(&name);
    tree::install(program, &root.join("ssdyno"), tree::PROGRAM)?;
    for file in shared.documents.iter().chain(&shared.pages).chain(&shared.completions) {
        let directory =
            file.parent().and_then(Path::file_name).context("a file without a directory")?;
        let inside =
            if shared.documents.contains(file) { root.clone() } else { root.join(directory) };
        tree::install(file, &inside.join(tree::name_of(file)), tree::TEXT)?;
    }
    let archive = place.join(format!("{name}.tar.gz"));
    tree::packed(&trees, &name, &archive, *epoch)?;
    Ok(archive)
}

/// Also in `package.metadata.binstall` of `crates/cli/Cargo.toml`.
fn archive_name(version: &str, target: &str) -> String {
    format!("ssdyno-{version}-{target}")
}

/// The files for `docker build` and `podman build`, a directory for each processor.
fn container(workspace: &Workspace, place: &Path, system: &System, program: &Path) -> Result<()> {
    let directory = place.join("container");
    let inside = directory.join(system.debian);
    tree::install(program, &inside.join("ssdyno"), tree::PROGRAM)?;
    let recipe = workspace.root.join("packaging/Containerfile");
    tree::install(&recipe, &directory.join("Containerfile"), tree::TEXT)
}

fn check_sizes(files: &[PathBuf]) -> Result<()> {
    for file in files {
        let bytes = fs::metadata(file)?.len();
        println!("{:>6.1} MB  {}", bytes as f64 / 1e6, tree::name_of(file));
        if bytes > PACKAGE_MIB << 20 {
            bail!("{} is larger than {PACKAGE_MIB} MiB", file.display());
        }
    }
    Ok(())
}

/// `SHA256SUMS`, as `sha256sum --check` reads it.
fn sums(place: &Path, files: &[PathBuf]) -> Result<()> {
    let names = files.iter().map(|file| tree::name_of(file));
    let sums = Cmd::new("sha256sum").args(names).dir(place).capture()?;
    if !sums.ok {
        bail!("sha256sum: {}", sums.stderr.trim());
    }
    fs::write(place.join("SHA256SUMS"), sums.stdout)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_named_by_target_or_processor() {
        let targets = |only: &[&str]| -> Result<Vec<&str>> {
            let only: Vec<_> = only.iter().map(|name| (*name).to_owned()).collect();
            Ok(chosen(&only)?.iter().map(|system| system.target).collect())
        };
        assert_eq!(targets(&[]).unwrap().len(), 2);
        assert_eq!(targets(&["aarch64"]).unwrap(), ["aarch64-unknown-linux-musl"]);
        assert_eq!(targets(&["x86_64-unknown-linux-musl"]).unwrap().len(), 1);
        let wrong = targets(&["riscv64"]).unwrap_err().to_string();
        assert_eq!(wrong, "there are no packages for riscv64; use x86_64 or aarch64");
    }

    /// `cargo binstall` finds the archive by this pattern, so both have to change together.
    #[test]
    fn binstall_looks_for_the_archive_that_is_made() {
        let workspace = Workspace::load().unwrap();
        let manifest = fs::read_to_string(workspace.root.join("crates/cli/Cargo.toml")).unwrap();
        let pattern = archive_name("{ version }", "{ target }");
        assert!(manifest.contains(&format!("/v{{ version }}/{pattern}.tar.gz\"")), "{manifest}");
        assert!(manifest.contains(&format!("bin-dir = \"{pattern}/{{ bin }}\"")), "{manifest}");
    }
}
