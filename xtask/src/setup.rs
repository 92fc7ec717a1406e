//! The tools that the checks need: installs what it can, names the rest with what to type.

use std::path::Path;

use anyhow::{Result, bail};

use crate::command::Cmd;
use crate::report::Outcome;

/// Components of the Rust toolchain: (program argument of cargo, rustup's name).
const COMPONENTS: &[(&str, &str)] = &[("fmt", "rustfmt"), ("clippy", "clippy")];

/// Makes sure that a C linker and the toolchain's components are there.
///
/// # Errors
/// Never; what is missing comes back as [`Outcome::Failed`].
pub(crate) fn tools() -> Result<Outcome> {
    let mut missing = Vec::new();
    for (verb, component) in COMPONENTS {
        if let Err(error) = component_present(verb, component) {
            missing.push(format!("{error:#}"));
        }
    }
    if let Err(error) = linker_present() {
        missing.push(format!("{error:#}"));
    }
    if missing.is_empty() { Ok(Outcome::Passed) } else { Ok(Outcome::Failed(missing.join("; "))) }
}

/// Makes sure that the standard library for `target` is there.
///
/// # Errors
/// Names the command to type when it is missing and rustup cannot fetch it.
pub(crate) fn cross_target(target: &str) -> Result<()> {
    if std_library_present(target) {
        return Ok(());
    }
    let add = add_target(target);
    if has_rustup() && add.clone().announced().stream().unwrap_or(false) {
        return Ok(());
    }
    bail!("the standard library for {target} is missing; type: {add}")
}

fn add_target(target: &str) -> Cmd {
    Cmd::new("rustup").args(["target", "add", target])
}

fn component_present(verb: &str, component: &str) -> Result<()> {
    let present = || Cmd::new("cargo").args([verb, "--version"]).works();
    let add = Cmd::new("rustup").args(["component", "add", component]);
    let added = || has_rustup() && add.clone().announced().stream().unwrap_or(false) && present();
    if present() || added() {
        return Ok(());
    }
    bail!("`cargo {verb}` is missing; type: {add}")
}

fn linker_present() -> Result<()> {
    let present =
        || ["cc", "gcc", "clang"].iter().any(|cc| Cmd::new(*cc).args(["--version"]).works());
    if cfg!(windows) || present() {
        return Ok(());
    }
    if is_debian(Path::new("/etc/os-release")) {
        // Without root the attempt is pointless: it would only ask for a password.
        if is_root() && apt_install("build-essential") && present() {
            return Ok(());
        }
        bail!("there is no C linker (cc); type: sudo apt-get install build-essential");
    }
    bail!("there is no C linker (cc); install gcc or clang with the system's package manager")
}

/// Makes sure that `program` is there, which Debian has in `package`. It is looked for and not run: nbd-server fails with each
/// option that asks for help or a version.
///
/// # Errors
/// Names the command to type when it is missing and cannot be installed.
pub(crate) fn program(program: &str, package: &str) -> Result<()> {
    let present = || Cmd::new("sh").args(["-c", "command -v \"$0\"", program]).works();
    if present() {
        return Ok(());
    }
    let debian = is_debian(Path::new("/etc/os-release"));
    if debian && is_root() && apt_install(package) && present() {
        return Ok(());
    }
    if debian {
        bail!("{program} is missing; type: sudo apt-get install {package}");
    }
    bail!("{program} is missing; install it (Debian's package is {package})")
}

fn apt_install(package: &str) -> bool {
    let apt = |args: &[&str]| {
        Cmd::new("apt-get")
            .args(args.iter().copied())
            .env("DEBIAN_FRONTEND", "noninteractive")
            .announced()
            .stream()
            .unwrap_or(false)
    };
    apt(&["update"]) && apt(&["install", "--yes", "--no-install-recommends", package])
}

fn has_rustup() -> bool {
    Cmd::new("rustup").args(["--version"]).works()
}

pub(crate) fn is_root() -> bool {
    Cmd::new("id").args(["-u"]).capture().is_ok_and(|id| id.stdout.trim() == "0")
}

fn std_library_present(target: &str) -> bool {
    let sysroot = Cmd::new("rustc").args(["--print", "sysroot"]).capture();
    sysroot.is_ok_and(|s| {
        s.ok && Path::new(s.stdout.trim()).join("lib/rustlib").join(target).join("lib").is_dir()
    })
}

/// Whether an `os-release` file describes Debian or a system made from it.
fn is_debian(os_release: &Path) -> bool {
    let text = std::fs::read_to_string(os_release).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
        .flat_map(|value| value.trim_matches('"').split_whitespace())
        .any(|id| id == "debian")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_is_told_from_others() {
        let dir = tempfile::tempdir().unwrap();
        let debian = |text: &str| {
            let path = dir.path().join("os-release");
            std::fs::write(&path, text).unwrap();
            is_debian(&path)
        };
        assert!(debian("NAME=x\nID=debian\n"));
        assert!(debian("ID=mint\nID_LIKE=\"ubuntu debian\"\n"));
        assert!(!debian("ID=fedora\nNAME=debian\n"));
        assert!(!is_debian(&dir.path().join("absent")));
    }

    #[test]
    fn standard_library_is_found_for_the_host_only_where_it_is() {
        let host = Cmd::new("rustc").args(["--print", "host-tuple"]).capture().unwrap().stdout;
        assert!(std_library_present(host.trim()));
        assert!(!std_library_present("no-such-target"));
        assert_eq!(add_target("no-such-target").to_string(), "rustup target add no-such-target");
    }
}
