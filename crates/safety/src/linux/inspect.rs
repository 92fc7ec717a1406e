//! The kind of a target, its contents, and whether it may be written to.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use ssdyno_block::units::Bytes;

use crate::create::Space;
use crate::device::{Device, System};
use crate::file_system::is_of_the_kernel;
use crate::mark::{self, Mark};
use crate::permit::WritePermit;
use crate::signature::{self, Signature, signatures};

/// Why a target may not be written to, or could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum SafetyError {
    /// It cannot be looked at.
    #[error("cannot inspect {target}: {source}")]
    Inspect {
        /// The target, as it was named.
        target: String,
        /// What the system said.
        source: io::Error,
    },
    /// It is in use.
    #[error("{target} is in use: {}", .reasons.join("; "))]
    InUse {
        /// The target, as it was named.
        target: String,
        /// By whom.
        reasons: Vec<String>,
    },
    /// It is part of something larger.
    #[error("{target} holds a {what}: writing to it destroys data elsewhere")]
    Member {
        /// The target, as it was named.
        target: String,
        /// What was found on it.
        what: &'static str,
    },
    /// The kernel has it as read-only.
    #[error("{target} is read-only")]
    ReadOnly {
        /// The target, as it was named.
        target: String,
    },
    /// The typed text is not the requested one.
    #[error("{}", not_the_serial(.typed, .target, .what))]
    Serial {
        /// The target, as it was named.
        target: String,
        /// What was typed.
        typed: String,
        /// What would have been right.
        wanted: String,
        /// What that is: `serial number`.
        what: &'static str,
    },
    /// A file that holds somebody's data.
    #[error("{target} {}", not_a_scratch_file(*.stale))]
    Foreign {
        /// The target, as it was named.
        target: String,
        /// It is marked as a scratch file, but the mark does not fit: why.
        stale: Option<&'static str>,
    },
    /// The file system has too little free space for the file.
    #[error("{target} needs {}, but the file system has {} free", Bytes(*.size_bytes), .space)]
    Space {
        /// The target, as it was named.
        target: String,
        /// The size that was asked for.
        size_bytes: u64,
        /// What the file system has.
        space: Space,
    },
    /// The user stopped the program while it made the file, which is removed again.
    #[error("interrupted while creating {target}")]
    Stopped {
        /// The target, as it was named.
        target: String,
    },
    /// The file cannot be made.
    #[error("cannot create {target}: {source}")]
    Create {
        /// The target, as it was named.
        target: String,
        /// What the system said.
        source: io::Error,
    },
}

fn not_the_serial(typed: &str, target: &str, what: &str) -> String {
    match typed {
        "" => format!("writing to {target} needs its {what}"),
        typed => format!("`{typed}` is not the {what} of {target}"),
    }
}

fn not_a_scratch_file(stale: Option<&str>) -> String {
    match stale {
        None => "exists and was not made by ssdyno".to_owned(),
        Some(why) => format!("is marked as made by ssdyno, but may hold other data now: {why}"),
    }
}

impl SafetyError {
    /// What to do about it: one sentence without a full stop.
    pub fn help(&self) -> String {
        match self {
            SafetyError::Inspect { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    "looking at a device needs root or the group `disk`".to_owned()
                }
                io::ErrorKind::InvalidInput => {
                    "name a block device, such as /dev/nvme0n1, or a regular file".to_owned()
                }
                _ => "check the path".to_owned(),
            },
            SafetyError::InUse { .. } => {
                "unmount it, stop the program that uses it, or name another device; this cannot be \
                 overridden"
                    .to_owned()
            }
            SafetyError::Member { .. } => {
                "if it is no longer needed, take it out of its group and wipe it (`wipefs -a`)"
                    .to_owned()
            }
            SafetyError::ReadOnly { .. } => {
                "measure reads only, or make it writable (a device: `blockdev --setrw`; an export: in the \
                 server's configuration)"
                    .to_owned()
            }
            SafetyError::Serial { wanted, .. } => format!(
                "this destroys all data on it; if you mean that, use --destroy={wanted}"
            ),
            SafetyError::Foreign { stale: None, .. } => {
                "this destroys its contents; if you mean that, add --overwrite".to_owned()
            }
            SafetyError::Foreign { stale: Some(_), .. } => {
                "add --overwrite to destroy its contents in this run, or delete the file and create a new one with --size"
                    .to_owned()
            }
            SafetyError::Space { space, .. } => match space.most_bytes() {
                0 => "free some space, or choose another file system".to_owned(),
                most => {
                    let (most, kept) = (Bytes(most >> 20 << 20), Bytes(space.kept_bytes));
                    format!(
                        "use --size={most} at most ({kept} stay free for other programs), or choose another file system"
                    )
                }
            },
            SafetyError::Stopped { .. } => "the unfinished file was removed".to_owned(),
            SafetyError::Create { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "the unfinished file was removed; use a smaller --size, or choose another file system"
                }
                io::ErrorKind::FileTooLarge => {
                    "the file system or `ulimit -f` does not allow such a large file; use a smaller --size"
                }
                io::ErrorKind::AlreadyExists => "leave --size out, or name a file that does not exist",
                io::ErrorKind::NotFound => "create the directory first",
                _ => "choose a directory that you may write to",
            }
            .to_owned(),
        }
    }
}

/// The kind of a target and its contents.
#[derive(Debug)]
pub struct Inspection {
    target: String,
    size_bytes: u64,
    what: What,
    signatures: Vec<Signature>,
    /// A sample of it holds zeroes only, or ones only.
    blank: bool,
    /// Why nobody may write to it.
    users: Vec<String>,
}

#[derive(Debug)]
enum What {
    Device { device: Box<Device>, raw_number: u64 },
    File { mark: Mark, file_system: u64, inode: u64 },
    Export { name: String, read_only: bool },
}

/// The export of a server, as reported by the connected client.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    /// The target, as it was named.
    pub target: &'a str,
    /// What must be typed before it is written to.
    pub name: &'a str,
    /// Its size.
    pub size_bytes: u64,
    /// The server takes no writes.
    pub read_only: bool,
}

/// Looks at what lies on `export`, whose contents `contents` reads. Who else uses it is not to be found out.
///
/// # Errors
/// [`SafetyError::Inspect`].
pub fn inspect_export(
    export: &Export<'_>,
    contents: &impl FileExt,
) -> Result<Inspection, SafetyError> {
    let Export { target, name, size_bytes, read_only } = *export;
    let failed = |source| SafetyError::Inspect { target: target.to_owned(), source };
    Ok(Inspection {
        target: target.to_owned(),
        size_bytes,
        what: What::Export { name: name.to_owned(), read_only },
        signatures: signatures(contents, size_bytes).map_err(failed)?,
        blank: signature::looks_blank(contents, size_bytes).map_err(failed)?,
        users: Vec::new(),
    })
}

/// Looks at the block device or regular file `target`, reading only.
///
/// # Errors
/// [`SafetyError::Inspect`].
pub fn inspect(target: &str) -> Result<Inspection, SafetyError> {
    inspect_on(&System::default(), target)
        .map_err(|source| SafetyError::Inspect { target: target.to_owned(), source })
}

fn inspect_on(system: &System, target: &str) -> io::Result<Inspection> {
    let path: PathBuf = std::fs::canonicalize(target)?;
    let status = std::fs::metadata(&path)?;
    let kind = status.file_type();
    if !kind.is_block_device() && !kind.is_file() {
        let other = "it is neither a block device nor a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, other));
    }
    // A file of the kernel looks like a regular file. Reading it may consume something, and
    // writing to it changes a setting of the machine.
    if kind.is_file() && is_of_the_kernel(&path) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a file of the kernel"));
    }
    let file = File::open(&path)?;
    if kind.is_file() {
        let mark = mark::check(&file);
        return Ok(Inspection {
            target: target.to_owned(),
            size_bytes: status.len(),
            what: What::File { mark, file_system: status.dev(), inode: status.ino() },
            signatures: signatures(&file, status.len())?,
            blank: signature::looks_blank(&file, status.len())?,
            users: system.users_of_file((status.dev(), status.ino()), None),
        });
    }
    let raw_number = status.rdev();
    let number = (rustix::fs::major(raw_number), rustix::fs::minor(raw_number));
    let device = Box::new(system.device(number)?);
    let mut users = system.users(&device);
    users.extend(system.users_below(&device));
    users.extend(system.users_of_other_paths(&device));
    if !device.holders.is_empty() {
        let holders: Vec<&str> = device.holders.iter().map(String::as_str).collect();
        users.push(format!("{} is held by {}", device.itself.name, holders.join(", ")));
    }
    let size_bytes = device.itself.size_bytes;
    let mut signatures = signatures(&file, size_bytes)?;
    let blank = signature::looks_blank(&file, size_bytes)?;
    // A partition of the disk may be a member of an array that is not assembled now. Writing to
    // the whole disk would destroy the array.
    for part in &device.partitions {
        let node = File::open(Path::new("/dev").join(&part.name)).ok();
        signatures.extend(match node.filter(|node| part.is(node)) {
            Some(node) => signature::signatures(&node, part.size_bytes)?,
            // The node of the partition may be missing, or may be another device by now. The
            // partition is then read through the disk, at its offset.
            None => {
                let window = signature::Window { device: &file, start_bytes: part.start_bytes };
                signature::signatures(&window, part.size_bytes)?
            }
        });
    }
    let what = What::Device { device, raw_number };
    Ok(Inspection { target: target.to_owned(), size_bytes, what, signatures, blank, users })
}

impl Inspection {
    /// The text to type before a write: the serial number of a device, or its kernel name if it has
    /// none; the name of an export. `None` for a file.
    pub fn confirmation(&self) -> Option<&str> {
        match &self.what {
            What::Device { device, .. } => {
                Some(device.serial.as_ref().unwrap_or(&device.itself.name))
            }
            What::Export { name, .. } => Some(name),
            What::File { .. } => None,
        }
    }

    /// What [`confirmation`](Inspection::confirmation) is: `serial number`.
    pub fn confirmed_by(&self) -> &'static str {
        match &self.what {
            What::Export { .. } => "name",
            What::Device { .. } | What::File { .. } => "serial number",
        }
    }

    /// The serial number of a device that has one.
    pub fn serial(&self) -> Option<&str> {
        match &self.what {
            What::Device { device, .. } => device.serial.as_deref(),
            What::File { .. } | What::Export { .. } => None,
        }
    }

    /// Whether it is a file, not made by us, in which something was recognised: worth a look before it
    /// is overwritten.
    pub fn is_file_with_signatures(&self) -> bool {
        matches!(self.what, What::File { mark, .. } if mark != Mark::Valid)
            && !self.signatures.is_empty()
    }

    /// The permit to write, where nothing forbids it and `consent` is right.
    ///
    /// # Errors
    /// Why not.
    pub fn permit(&self, consent: Consent<'_>) -> Result<WritePermit, SafetyError> {
        let target = || self.target.clone();
        if !self.users.is_empty() {
            return Err(SafetyError::InUse { target: target(), reasons: self.users.clone() });
        }
        let read_only = match &self.what {
            What::Device { device, .. } => device.read_only,
            What::Export { read_only, .. } => *read_only,
            What::File { .. } => false,
        };
        if read_only {
            return Err(SafetyError::ReadOnly { target: target() });
        }
        // Files get the same check as devices: a ZFS pool may have files as members. No table
        // of the kernel lists them.
        if let Some(member) = self.signatures.iter().find(|found| found.member) {
            return Err(SafetyError::Member { target: target(), what: member.name });
        }
        match &self.what {
            What::Device { raw_number, .. } => {
                self.check_typed(consent)?;
                Ok(WritePermit::for_device(*raw_number))
            }
            What::Export { .. } => {
                self.check_typed(consent)?;
                Ok(WritePermit::for_export(&self.target))
            }
            What::File { mark, file_system, inode } => {
                let stale = match mark {
                    Mark::Valid => return Ok(WritePermit::for_scratch(*file_system, *inode)),
                    Mark::Stale(why) => Some(*why),
                    Mark::Missing => None,
                };
                if !consent.overwrite {
                    return Err(SafetyError::Foreign { target: target(), stale });
                }
                // The permit holds for this run only. A run seldom writes the whole file, and
                // the rest may be data of the user, so it becomes no scratch file.
                Ok(WritePermit::for_file(*file_system, *inode))
            }
        }
    }

    /// Whether what was typed is what must be.
    fn check_typed(&self, consent: Consent<'_>) -> Result<(), SafetyError> {
        let wanted = self.confirmation().unwrap_or_default();
        if consent.typed.map(str::trim) == Some(wanted) {
            return Ok(());
        }
        Err(SafetyError::Serial {
            target: self.target.clone(),
            typed: consent.typed.unwrap_or_default().to_owned(),
            wanted: wanted.to_owned(),
            what: self.confirmed_by(),
        })
    }

    /// What somebody must see before typing the serial number.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let size = ssdyno_block::units::Bytes(self.size_bytes);
        match &self.what {
            What::File { mark, .. } => {
                let whose = match mark {
                    Mark::Valid => "made by ssdyno",
                    Mark::Stale(_) => "marked as made by ssdyno, changed since",
                    Mark::Missing => "not made by ssdyno",
                };
                let _ = writeln!(out, "{}  regular file, {size}, {whose}", self.target);
            }
            What::Export { name, read_only } => {
                let writes = if *read_only { ", read-only" } else { "" };
                let _ = writeln!(out, "{}  network target, {size}{writes}", self.target);
                let _ = writeln!(out, "  name        {name}");
                out.push_str("  users       unknown here; only its server can list them\n");
            }
            What::Device { device, .. } => {
                let kind = match (&device.disk, &device.backing_file) {
                    (_, Some(file)) => format!("loop device over {file}"),
                    (Some(disk), _) => format!("partition of {disk}"),
                    (None, None) => "disk".to_owned(),
                };
                let _ = writeln!(out, "{}  {kind}, {size}", self.target);
                let or_unknown = |text: &Option<String>| text.clone().unwrap_or("unknown".into());
                let _ = writeln!(out, "  model       {}", or_unknown(&device.model));
                let _ = writeln!(out, "  serial      {}", or_unknown(&device.serial));
                for part in &device.partitions {
                    let size = ssdyno_block::units::Bytes(part.size_bytes);
                    let _ = writeln!(out, "  partition   {}, {size}", part.name);
                }
                for holder in &device.holders {
                    let _ = writeln!(out, "  held by     {holder}");
                }
            }
        }
        for found in &self.signatures {
            let _ = writeln!(out, "  holds       {}", found.name);
        }
        match (self.signatures.is_empty(), self.blank) {
            (true, true) => {
                out.push_str("  holds       nothing: a sample of its blocks is blank\n")
            }
            (true, false) => out.push_str("  holds       data of an unknown kind\n"),
            (false, _) => {}
        }
        for user in &self.users {
            let _ = writeln!(out, "  in use      {user}");
        }
        out
    }
}

/// The consent of a user who wants to write.
#[derive(Clone, Copy, Debug, Default)]
pub struct Consent<'a> {
    /// The serial number of a device, as typed.
    pub typed: Option<&'a str>,
    /// Whether a file that we did not make may be overwritten.
    pub overwrite: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::create;

    fn consent(typed: &str) -> Consent<'_> {
        Consent { typed: Some(typed), overwrite: false }
    }

    fn path(dir: &tempfile::TempDir, name: &str) -> String {
        dir.path().join(name).display().to_string()
    }

    #[test]
    fn files_of_others_need_consent_and_ours_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let theirs = path(&dir, "theirs");
        std::fs::write(&theirs, "precious").unwrap();
        let found = inspect(&theirs).unwrap();
        assert_eq!(found.confirmation(), None);
        let refused = found.permit(Consent::default()).unwrap_err();
        assert!(matches!(refused, SafetyError::Foreign { .. }));
        assert!(refused.help().contains("--overwrite"));
        assert!(found.permit(Consent { overwrite: true, typed: None }).is_ok());

        let ours = path(&dir, "ours");
        create(&ours, 3 << 20, &mut || true).unwrap();
        assert_eq!(std::fs::metadata(&ours).unwrap().len(), 3 << 20);
        let found = inspect(&ours).unwrap();
        let attributes = mark::check(&File::open(&ours).unwrap()) == Mark::Valid;
        assert_eq!(found.permit(Consent::default()).is_ok(), attributes);
        assert!(
            matches!(create(&ours, 1, &mut || true), Err(SafetyError::Create { .. })),
            "never touched"
        );
        assert_eq!(std::fs::metadata(&ours).unwrap().len(), 3 << 20);
    }

    #[test]
    fn what_is_no_target_is_refused_without_being_opened() {
        for wrong in ["/dev/null", "/", "/no/such/file", "/proc/version", "/sys/kernel/notes"] {
            assert!(matches!(inspect(wrong), Err(SafetyError::Inspect { .. })), "{wrong}");
        }
    }

    /// A pool may have files as its members, which nobody claims.
    #[test]
    fn a_file_that_is_a_member_is_refused_and_one_with_a_file_system_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let image = path(&dir, "image");
        let file = File::create(&image).unwrap();
        file.set_len(4 << 20).unwrap();
        let all = Consent { overwrite: true, typed: Some("image") };
        let permit = inspect(&image).unwrap().permit(all);
        assert!(permit.is_ok(), "{:?}", permit.err());
        assert!(!inspect(&image).unwrap().is_file_with_signatures());
        let put = |bytes: &[u8], at| std::os::unix::fs::FileExt::write_all_at(&file, bytes, at);
        put(&[0x53, 0xef], 0x438).unwrap();
        let found = inspect(&image).unwrap();
        assert!(found.is_file_with_signatures() && found.text().contains("ext2/3/4"));
        assert!(found.permit(all).is_ok());
        put(&[0xfc, 0x4e, 0x2b, 0xa9], 4096).unwrap();
        let refused = inspect(&image).unwrap().permit(all).unwrap_err();
        assert!(matches!(refused, SafetyError::Member { .. }), "{refused}");
    }

    /// The very disk this test runs from, where there is one.
    #[test]
    fn the_disk_of_the_system_is_refused() {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let source = mounts.lines().filter_map(|line| line.split(" - ").nth(1)?.split(' ').nth(1));
        let Some(disk) = source
            .filter(|source| source.starts_with("/dev/"))
            .find_map(|source| inspect(source).ok())
        else {
            eprintln!("skipped: no mounted disk that may be read");
            return;
        };
        let typed = disk.confirmation().unwrap_or_default().to_owned();
        let refused = disk.permit(consent(&typed)).unwrap_err();
        assert!(matches!(refused, SafetyError::InUse { .. }), "{refused}");
        assert!(disk.text().contains("is mounted at"), "{}", disk.text());
    }

    /// A loop device: nothing on it, then a RAID member, then typed wrong.
    #[test]
    fn a_device_needs_its_serial_and_a_member_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let image = path(&dir, "image");
        create(&image, 8 << 20, &mut || true).unwrap();
        let losetup = |arguments: &[&str]| {
            std::process::Command::new("losetup").args(arguments).output().ok()
        };
        let Some(made) = losetup(&["--find", "--show", &image]).filter(|o| o.status.success())
        else {
            eprintln!("skipped: no loop devices here");
            return;
        };
        let device = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        let name = device.rsplit('/').next().unwrap_or_default().to_owned();
        let found = inspect(&device);
        let detached = losetup(&["--detach", &device]);
        assert!(detached.is_some());
        let mut found = found.unwrap();
        assert_eq!(found.confirmation(), Some(name.as_str()));
        assert!(found.text().contains(&format!("loop device over {image}")), "{}", found.text());
        assert!(found.permit(consent(&name)).is_ok());
        let wrong = found.permit(consent("loop")).unwrap_err();
        assert!(wrong.help().contains(&format!("--destroy={name}")));
        assert!(found.permit(Consent::default()).is_err());
        found.signatures.push(Signature { name: "LVM physical volume", member: true });
        assert!(matches!(found.permit(consent(&name)), Err(SafetyError::Member { .. })));
    }
}
