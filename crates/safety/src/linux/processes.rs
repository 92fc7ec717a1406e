//! Programs that have a file or a device open: a database or a virtual machine claims nothing, and would
//! find other data than it wrote.

use std::fs;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, StatxFlags};

use crate::backing::Identity;
use crate::device::{Number, System, names};

/// What somebody may have open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Used {
    /// A regular file.
    File(Identity),
    /// One of these block devices, by whatever node.
    Devices(Vec<Number>),
}

impl Used {
    /// Whether `path` leads to it. The known facts about it are enough: the check does not ask a file server that
    /// hangs.
    fn is(&self, path: &Path) -> bool {
        let (how, what) = (AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS);
        let Ok(status) = rustix::fs::statx(rustix::fs::CWD, path, how, what) else { return false };
        match self {
            Used::File((device, inode)) => {
                let on = rustix::fs::makedev(status.stx_dev_major, status.stx_dev_minor);
                (on, status.stx_ino) == (*device, *inode)
            }
            Used::Devices(wanted) => {
                FileType::from_raw_mode(status.stx_mode.into()) == FileType::BlockDevice
                    && wanted.contains(&(status.stx_rdev_major, status.stx_rdev_minor))
            }
        }
    }

    /// Whether a descriptor with this text in /proc/PID/fdinfo (proc_pid_fdinfo(5)) writes, and may be of it.
    fn may_be_written(&self, info: &str) -> bool {
        let value = |key| info.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let flags = value("flags:").and_then(|flags| u32::from_str_radix(flags, 8).ok());
        let inode = value("ino:").and_then(|inode| inode.parse::<u64>().ok());
        let other = match (self, inode) {
            (Used::File((_, wanted)), Some(inode)) => *wanted != inode,
            _ => false,
        };
        // O_RDONLY is 0, and both other values of O_ACCMODE write. A program that only reads
        // loses nothing that it could keep.
        !other && flags.is_some_and(|flags| flags & 0o3 != 0)
    }

    /// Whether a line of /proc/PID/maps (proc_pid_maps(5)) is a mapping of it.
    fn is_mapped(&self, line: &str) -> bool {
        // A mapping of a block device shows the inode of its node and not its number. Such a
        // program has the device open as well, unless it closed the descriptor.
        let Used::File((device, inode)) = *self else { return false };
        let mut fields = line.split_ascii_whitespace().skip(3);
        let (Some(number), Some(node)) = (fields.next(), fields.next()) else { return false };
        let Some((major, minor)) = number.split_once(':') else { return false };
        let hex = |text| u32::from_str_radix(text, 16).ok();
        let wanted = (Some(rustix::fs::major(device)), Some(rustix::fs::minor(device)));
        node.parse() == Ok(inode) && (hex(major), hex(minor)) == wanted
    }
}

impl System {
    /// The programs, other than this one, that have `used` open for writing or mapped: "open for
    /// writing in postgres (process 4321)". Processes that only read lose nothing. Of others'
    /// processes only root sees all.
    pub(crate) fn processes_using(&self, used: &Used) -> impl Iterator<Item = String> {
        let me = std::process::id().to_string();
        let all = names(&self.proc).into_iter();
        let others =
            all.filter(move |name| *name != me && name.bytes().all(|byte| byte.is_ascii_digit()));
        others.filter_map(|process| self.how_process_uses(&process, used))
    }

    fn how_process_uses(&self, process: &str, used: &Used) -> Option<String> {
        let folder = self.proc.join(process);
        let descriptors = names(&folder.join("fd")).into_iter();
        let info = |number: &str| {
            fs::read_to_string(folder.join("fdinfo").join(number)).unwrap_or_default()
        };
        let mut writing = descriptors
            .filter(|number| used.may_be_written(&info(number)))
            .filter(|number| used.is(&folder.join("fd").join(number)));
        let how = if writing.next().is_some() {
            "open for writing in"
        } else {
            let maps = fs::read(folder.join("maps")).unwrap_or_default();
            let maps = String::from_utf8_lossy(&maps);
            maps.lines().any(|line| used.is_mapped(line)).then_some("mapped into the memory of")?
        };
        let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
        Some(format!("{how} {} (process {process})", name.trim()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::symlink;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::backing::identity;

    #[test]
    fn who_writes_or_maps_is_named_and_who_reads_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        fs::write(at("data"), "precious").unwrap();
        let file = identity(&at("data")).unwrap();
        let (major, minor) = (rustix::fs::major(file.0), rustix::fs::minor(file.0));
        let mapped = format!("7f00-7f01 rw-s 00000000 {major:02x}:{minor:02x} {} /x\n", file.1);
        let other = format!("7f00-7f01 rw-s 00000000 {major:02x}:{minor:02x} {} /x\n", file.1 + 1);
        let cases = [("11", "02100002", ""), ("12", "0100000", &mapped), ("13", "00", &other)];
        for (process, flags, maps) in cases {
            for folder in ["fd", "fdinfo"] {
                fs::create_dir_all(at("proc").join(process).join(folder)).unwrap();
            }
            symlink(at("data"), at("proc").join(process).join("fd/5")).unwrap();
            let info = format!("pos:\t0\nflags:\t{flags}\n");
            fs::write(at("proc").join(process).join("fdinfo/5"), info).unwrap();
            fs::write(at("proc").join(process).join("maps"), maps).unwrap();
            fs::write(at("proc").join(process).join("comm"), format!("db{process}\n")).unwrap();
        }
        let system = System { sys: at("sys"), proc: at("proc") };
        let found: Vec<String> = system.processes_using(&Used::File(file)).collect();
        assert_eq!(
            found,
            [
                "open for writing in db11 (process 11)",
                "mapped into the memory of db12 (process 12)"
            ]
        );
        assert_eq!(system.processes_using(&Used::File((file.0, file.1 + 7))).count(), 0);
        assert_eq!(system.processes_using(&Used::Devices(vec![(7, 0)])).count(), 0);
    }

    /// A program of this very system.
    #[test]
    fn a_program_that_writes_to_a_file_is_seen() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let wanted = Used::File(identity(file.path()).unwrap());
        let system = System::default();
        // Ours has it open for writing, too.
        assert_eq!(system.processes_using(&wanted).count(), 0);
        for (redirect, seen) in [("exec 7<>", 1), ("exec 7<", 0)] {
            let script = format!("{redirect}\"$0\"; echo ready; read gone");
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]).arg(file.path());
            let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let mut ready = String::new();
            BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
            let found: Vec<String> = system.processes_using(&wanted).collect();
            drop(shell.stdin.take());
            shell.wait().unwrap();
            assert_eq!(found.len(), seen, "{redirect}: {found:?}");
        }
    }
}
