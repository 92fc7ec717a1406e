//! The Linux guest that `scsi-guest`, `nvme-guest` and `iocost-guest` start: a stock Debian with the tools that
//! they use.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::command::Cmd;
use crate::setup;
use crate::workspace::Workspace;

/// The programs in the guest, with its packages.
const SUITE: &str = "bookworm";
const PACKAGES: &str = "linux-image-amd64,open-iscsi,sg3-utils,sdparm,fio,xfsprogs,e2fsprogs,fdisk,\
                        util-linux,kmod,iproute2,udev";
/// Size of its disk, of which it changes nothing.
const DISK_BYTES: u64 = 2500 << 20;
/// First processes, with the name that each has in the guest's /sbin.
const SCRIPTS: [(&str, &str); 3] = [
    ("crates/iscsi/tests/guest.sh", "guest"),
    ("xtask/guest/nvme.sh", "guest-nvme"),
    ("xtask/guest/iocost.sh", "guest-iocost"),
];

/// Makes the guest where it is missing or older than a script, and says where it is: files `disk`, `vmlinuz`
/// and `initrd`.
///
/// # Errors
/// A tool is missing and cannot be installed, or the guest cannot be made: named with what to do.
pub(crate) fn made(workspace: &Workspace) -> Result<PathBuf> {
    setup::program("qemu-system-x86_64", "qemu-system-x86")?;
    let folder = workspace.target_directory.join("guest");
    let scripts = SCRIPTS.map(|(path, name)| (workspace.root.join(path), name));
    make(&folder, &scripts)?;
    Ok(folder)
}

/// Builds `ssdyno` for the guest, which has the same libraries as Debian here, and says where it is.
///
/// # Errors
/// It cannot be built.
pub(crate) fn program(workspace: &Workspace) -> Result<PathBuf> {
    if !Cmd::cargo(&workspace.root, ["build", "-p", "ssdyno"]).announced().stream()? {
        bail!("the program could not be built");
    }
    Ok(workspace.target_directory.join("debug/ssdyno"))
}

/// Puts `program` and the files `names` of the folder `from` on the guest's second disk, /dev/vdb.
///
/// # Errors
/// `tar` fails.
pub(crate) fn pack(folder: &Path, program: &Path, from: &Path, names: &[String]) -> Result<()> {
    let (place, name) = (program.parent().unwrap_or(program), program.file_name());
    let name = name.unwrap_or_default().to_string_lossy().into_owned();
    let text = |path: &Path| path.display().to_string();
    let mut tar = Cmd::new("tar").args([
        "-cf".to_owned(),
        text(&folder.join("program.tar")),
        "-C".into(),
        text(place),
        name,
    ]);
    // tar fails where no file follows a folder.
    if !names.is_empty() {
        tar = tar.args(["-C".to_owned(), text(from)]).args(names);
    }
    if !tar.stream()? {
        bail!("tar failed");
    }
    Ok(())
}

/// Boots the guest with `init` of its /sbin as first process, its own disk, the disk of [`pack`] and `devices`
/// (arguments of QEMU), and returns what it printed. `words` are added to the kernel's arguments.
///
/// # Errors
/// QEMU cannot be started, or ends before the guest prints anything.
pub(crate) fn boot(folder: &Path, how: &Boot<'_>) -> Result<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    let kernel = format!(
        "console=ttyS0 root=/dev/vda rw quiet init=/sbin/{} panic=-1 {}",
        how.init, how.words
    );
    let disk = |name: &str, how: &str| format!("file={},format=raw,if=virtio,{how}", file(name));
    let most = [how.seconds_max.to_string(), "qemu-system-x86_64".into()];
    let machine = ["-M", "pc", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "1G"];
    let plain = ["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"];
    let captured = Cmd::new("timeout")
        .args(most)
        .args(machine)
        .args(["-smp".to_owned(), how.processors.to_string()])
        .args(plain)
        .args(["-append".to_owned(), kernel])
        .args(["-kernel".to_owned(), file("vmlinuz"), "-initrd".into(), file("initrd")])
        .args(["-drive".to_owned(), disk("disk", "snapshot=on")])
        .args(["-drive".to_owned(), disk("program.tar", "readonly=on")])
        .args(how.devices.iter().copied())
        .capture()?;
    if captured.stdout.is_empty() {
        bail!("QEMU said nothing but: {}", captured.stderr);
    }
    Ok(captured.stdout.replace('\r', ""))
}

/// How [`boot`] starts the guest.
pub(crate) struct Boot<'a> {
    /// One of [`SCRIPTS`], by its name in the guest.
    pub(crate) init: &'a str,
    /// Further arguments of the kernel.
    pub(crate) words: &'a str,
    /// Processors, emulated without KVM.
    pub(crate) processors: u32,
    /// Time after which QEMU is ended, in s.
    pub(crate) seconds_max: u32,
    /// Arguments of QEMU.
    pub(crate) devices: &'a [&'a str],
}

/// The tree once, which is a download of a few hundred megabytes; the disk whenever a script is newer.
fn make(folder: &Path, scripts: &[(PathBuf, &str)]) -> Result<()> {
    let (tree, disk) = (folder.join("tree"), folder.join("disk"));
    if !tree.join("complete").exists() {
        if !setup::is_root() {
            bail!("the tree of the guest is made by root; type the same command after sudo");
        }
        setup::program("debootstrap", "debootstrap")?;
        fs::remove_dir_all(&tree).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let include = format!("--include={PACKAGES}");
        let arguments = ["--arch=amd64", "--variant=minbase", &include, SUITE];
        let debootstrap =
            Cmd::new("debootstrap").args(arguments).args([tree.display().to_string()]);
        if !debootstrap.announced().stream()? {
            bail!("debootstrap failed; its messages are above");
        }
        fs::write(tree.join("complete"), "")?;
    }
    let modified = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
    let older = |disk| scripts.iter().all(|(path, _)| modified(path).is_ok_and(|at| at < disk));
    if modified(&disk).is_ok_and(older) {
        return Ok(());
    }
    fs::copy(boot_file(&tree, "vmlinuz-")?, folder.join("vmlinuz"))?;
    fs::copy(boot_file(&tree, "initrd.img-")?, folder.join("initrd"))?;
    for (script, name) in scripts {
        let to = tree.join("sbin").join(name).display().to_string();
        if !Cmd::new("install")
            .args(["-m", "755"])
            .args([script.display().to_string(), to])
            .stream()?
        {
            bail!("{} cannot be written", tree.display());
        }
    }
    // The root of the guest comes from the kernel's arguments alone.
    fs::write(tree.join("etc/fstab"), "")?;
    let unfinished = folder.join("disk.unfinished");
    fs::File::create(&unfinished)?.set_len(DISK_BYTES)?;
    let image = ["-q", "-F", "-t", "ext4", "-d"];
    let paths = [tree.display().to_string(), unfinished.display().to_string()];
    if !Cmd::new("mke2fs").args(image).args(paths).announced().stream()? {
        bail!("mke2fs failed; it needs e2fsprogs 1.43 or newer");
    }
    fs::rename(unfinished, disk)?;
    Ok(())
}

/// The one file in `boot` of this kind.
fn boot_file(tree: &Path, start: &str) -> Result<PathBuf> {
    let boot = tree.join("boot");
    let mut files = fs::read_dir(&boot)?.filter_map(|entry| Some(entry.ok()?.path()));
    let kind = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
    };
    files.find(kind).with_context(|| format!("{} has no {start}*", boot.display()))
}
