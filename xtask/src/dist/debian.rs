//! A Debian package, by dpkg-deb.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::{Release, System, tree};
use crate::command::Cmd;
use crate::setup;

/// The license of a Debian package has a form of its own (Debian Policy 12.5).
const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ssdyno
Source: https://github.com/ssdyno/ssdyno

Files: *
Copyright: The developers of SSDyno
License: Apache-2.0 or MIT
 The full texts are LICENSE-APACHE and LICENSE-MIT in this directory.
";

/// Makes `ssdyno_VERSION_PROCESSOR.deb` in `place`.
pub(super) fn package(release: &Release, system: &System, program: &Path) -> Result<PathBuf> {
    let Release { place, version, epoch, shared } = release;
    setup::program("dpkg-deb", "dpkg")?;
    let root = place.join("trees").join(format!("debian-{}", system.debian));
    lay_out(&root, program, shared)?;
    // In KiB, as Debian Policy 5.6.20 has it.
    let installed = size_of(&root)?.div_ceil(1024);
    tree::write(&root.join("DEBIAN/control"), &control(system, version, installed))?;
    let package = place.join(format!("ssdyno_{version}_{}.deb", system.debian));
    let build = Cmd::new("dpkg-deb")
        .args(["--root-owner-group", "-Zxz", "--build"])
        .args([root.display().to_string(), package.display().to_string()])
        .env("SOURCE_DATE_EPOCH", epoch.to_string());
    if !build.stream()? {
        bail!("`{build}` failed");
    }
    Ok(package)
}

fn lay_out(root: &Path, program: &Path, shared: &tree::Shared) -> Result<()> {
    let usr = root.join("usr");
    tree::install(program, &usr.join("bin/ssdyno"), tree::PROGRAM)?;
    for page in &shared.pages {
        let to = usr.join("share/man/man1").join(tree::name_of(page));
        tree::install(page, &to, tree::TEXT)?;
        tree::compressed(&to)?;
    }
    for script in &shared.completions {
        // Each shell looks in a directory of its own.
        let to = match tree::name_of(script).as_str() {
            "ssdyno.bash" => "bash-completion/completions/ssdyno",
            "_ssdyno" => "zsh/vendor-completions/_ssdyno",
            _ => "fish/vendor_completions.d/ssdyno.fish",
        };
        tree::install(script, &usr.join("share").join(to), tree::TEXT)?;
    }
    let documents = usr.join("share/doc/ssdyno");
    for document in &shared.documents {
        let name = tree::name_of(document);
        // dpkg tools show the changes under this name (Debian Policy 12.7).
        let name = if name == "CHANGELOG.md" { "changelog".to_owned() } else { name };
        tree::install(document, &documents.join(name), tree::TEXT)?;
    }
    tree::compressed(&documents.join("changelog"))?;
    tree::write(&documents.join("copyright"), COPYRIGHT)
}

fn control(system: &System, version: &str, installed_kib: u64) -> String {
    format!(
        "Package: ssdyno\n\
         Version: {version}\n\
         Architecture: {}\n\
         Maintainer: The developers of SSDyno <developers@ssdyno.invalid>\n\
         Installed-Size: {installed_kib}\n\
         Section: utils\n\
         Priority: optional\n\
         Homepage: https://github.com/ssdyno/ssdyno\n\
         Description: benchmark and simulator for storage devices\n \
         ssdyno measures speed, latency and energy of storage devices: real drives, drives\n \
         behind a network, and simulated SSDs and disks. It does not write to a device\n \
         without consent.\n",
        system.debian
    )
}

fn size_of(directory: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let (path, facts) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
        bytes += if facts.is_dir() { size_of(&path)? } else { facts.len() };
    }
    Ok(bytes)
}
