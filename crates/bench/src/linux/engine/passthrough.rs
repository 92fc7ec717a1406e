//! NVMe commands that go to a drive as they are: io_uring's commands to a generic device, `/dev/ngXnY`
//! (io_uring_enter(2), IORING_OP_URING_CMD; linux/nvme_ioctl.h). The block layer, its splitting and its
//! scheduler are not in between.
//!
//! A generic device has no claims. So its block device, `/dev/nvmeXnY`, is opened beside it as every other is: with the
//! same consent, the same checks and, where it is written to, exclusively.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::{cqueue, opcode, squeue, types};
use rustix::fs::{FileType, Mode, OFlags};
use ssdyno_block::{Op, Request};
use ssdyno_spec::nvme::IdentifyNamespace;
use zerocopy::{FromZeros, IntoBytes};

use super::nvme_command::{self, BYTES, Namespace, RANGE_BYTES};
use super::uring::{Ring, Setup};
use super::{Engine, Outcome};
use crate::buffers::Buffers;
use crate::content::Content;
use crate::error::BenchError;
use crate::target::RealTarget;

/// `NVME_IOCTL_ID`: the namespace of an open device.
const NAMESPACE_ID: libc::Ioctl = 0x4E40;

/// `NVME_IOCTL_ADMIN_CMD`: `_IOWR('N', 0x41, struct nvme_admin_cmd)`.
// The number is unsigned in glibc and signed in musl: the same bits.
const ADMIN: libc::Ioctl = 0xC048_4E41_u32 as libc::Ioctl;

/// The block device of the generic NVMe device `name`: `/dev/nvme0n1` for `/dev/ng0n1`. `None` for other files.
pub fn block_device_of(name: &str) -> Option<String> {
    let is = |name: &str, wanted: FileType| {
        let status = rustix::fs::stat(name);
        status.is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == wanted)
    };
    let block = block_name(name)?;
    (is(name, FileType::CharacterDevice) && is(&block, FileType::BlockDevice)).then_some(block)
}

/// The kernel's name of the block device of the generic device called `name`.
fn block_name(name: &str) -> Option<String> {
    let (directory, file) = name.rsplit_once('/')?;
    let (controller, namespace) = file.strip_prefix("ng")?.split_once('n')?;
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (number(controller) && number(namespace))
        .then(|| format!("{directory}/nvme{controller}n{namespace}"))
}

/// An open generic device.
#[derive(Debug)]
pub(crate) struct Generic {
    file: OwnedFd,
    namespace: Namespace,
}

impl Generic {
    /// Opens the generic device `name` for the namespace behind `block`, whose blocks have `block_bytes`.
    pub(crate) fn open(
        name: &str,
        block: BorrowedFd<'_>,
        block_bytes: u32,
        writable: bool,
    ) -> Result<Generic, BenchError> {
        let failed = |source: io::Error| BenchError::Open { target: name.to_owned(), source };
        let mode = if writable { OFlags::RDWR } else { OFlags::RDONLY };
        let file = rustix::fs::open(name, mode | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| failed(error.into()))?;
        let nsid = namespace_id(&file).map_err(failed)?;
        let refuse = |why: String| Err(BenchError::option("passthrough", why));
        // The checks before a run looked at the block device. If the generic device were another
        // namespace, commands would destroy data that was not checked.
        if namespace_id(&block).map_err(failed)? != nsid {
            return refuse(format!("{name} and its block device are different namespaces"));
        }
        let identified = identify(&file, nsid).map_err(failed)?;
        let format = identified.format_in_use();
        // Commands would have to carry the metadata of each block, and this engine has no memory
        // for it. Refusing is better than figures of failed commands.
        if format.metadata_bytes != 0 {
            return refuse(format!(
                "the namespace has {} bytes of metadata per block, which ssdyno cannot send in \
                 passthrough commands",
                format.metadata_bytes
            ));
        }
        // Offsets are divided by the size of a block. With a wrong size every request would
        // reach another place of the drive.
        let of_drive = identified.block_bytes().unwrap_or(0);
        if of_drive != block_bytes {
            return refuse(format!(
                "the drive reports blocks of {of_drive} bytes, the kernel {block_bytes} bytes"
            ));
        }
        Ok(Generic { file, namespace: Namespace { nsid, block_bytes } })
    }

    /// Note that a reader of the figures needs.
    pub(crate) fn note(&self) -> String {
        format!(
            "NVMe passthrough: commands go unchanged to namespace {} and bypass the block layer; it does not split, merge or count them",
            self.namespace.nsid
        )
    }
}

#[expect(unsafe_code, reason = "ioctl(2)")]
fn namespace_id(file: &impl AsRawFd) -> io::Result<u32> {
    // SAFETY: the call has no argument, and answers with the identifier or -1.
    let id = unsafe { libc::ioctl(file.as_raw_fd(), NAMESPACE_ID) };
    u32::try_from(id).map_err(|_| io::Error::last_os_error())
}

#[expect(unsafe_code, reason = "ioctl(2)")]
fn identify(file: &OwnedFd, nsid: u32) -> io::Result<Box<IdentifyNamespace>> {
    let mut data = Box::new(IdentifyNamespace::new_zeroed());
    // Identify (06h) with CNS 0: the namespace.
    let mut command = [0_u8; BYTES];
    command[0] = 0x06;
    command[4..8].copy_from_slice(&nsid.to_le_bytes());
    command[24..32].copy_from_slice(&(data.as_mut_bytes().as_mut_ptr() as u64).to_le_bytes());
    command[36..40].copy_from_slice(&(size_of::<IdentifyNamespace>() as u32).to_le_bytes());
    // SAFETY: `command` has the length that the number of the call tells, and names `data` with its length; both
    // live until the call, which waits for the drive, returns.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), ADMIN, command.as_mut_ptr()) };
    match answer {
        0 => Ok(data),
        1.. => Err(io::Error::other(format!("Identify Namespace: status {answer:#x}"))),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A ring of its own for one job, with entries large enough for commands. It must be made and used by one thread.
pub(crate) struct Passthrough {
    // The ring comes first: it is dropped before the file and the memory that requests use.
    // A command has 80 bytes of payload: entries of 128 bytes carry it, and completions of
    // 32 bytes bring its result.
    ring: Ring<squeue::Entry128, cqueue::Entry32>,
    buffers: Buffers,
    /// The range of each slot's trim.
    ranges: Vec<[u8; RANGE_BYTES]>,
    /// The length of each slot's request: the answer does not have it.
    lengths: Vec<u32>,
    namespace: Namespace,
    _target: Arc<RealTarget>,
}

impl Passthrough {
    /// For `slots` requests of up to `length_bytes` to `target`, which has a generic device.
    pub(crate) fn new(
        target: Arc<RealTarget>,
        slots: u32,
        length_bytes: u32,
        content: Option<Content>,
        setup: Setup,
    ) -> io::Result<Passthrough> {
        let Some(generic) = &target.generic else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        Ok(Passthrough {
            ring: Ring::new(slots, &[generic.file.as_raw_fd()], setup)?,
            buffers: Buffers::new(slots, length_bytes, content),
            ranges: vec![[0; RANGE_BYTES]; slots as usize],
            lengths: vec![0; slots as usize],
            namespace: generic.namespace,
            _target: target,
        })
    }

    fn command(&mut self, slot: u32, request: &Request) -> Option<[u8; 80]> {
        let address = match request.op {
            Op::Trim => {
                // The drive reads the range while the command is outstanding. Each slot has its
                // own place, which stays until the slot is used again.
                let range = &mut self.ranges[slot as usize];
                *range = nvme_command::range(request, self.namespace)?;
                range.as_ptr() as u64
            }
            Op::Flush => 0,
            Op::Read | Op::Write => self.buffers.place(slot, request).0.as_ptr() as u64,
        };
        nvme_command::encode(request, address, self.namespace)
    }
}

impl Engine for Passthrough {
    #[expect(unsafe_code, reason = "the kernel is told the address of memory")]
    fn push(&mut self, slot: u32, request: &Request) {
        self.lengths[slot as usize] = request.length_bytes;
        let Some(command) = self.command(slot, request) else {
            // No command can carry the request.
            self.ring.ended.push((slot, -libc::EINVAL));
            return;
        };
        let entry =
            opcode::UringCmd80::new(types::Fixed(0), nvme_command::SEND).cmd(command).build();
        let entry = entry.user_data(u64::from(slot));
        // SAFETY: the entry names a registered file, which stays open until the ring is dropped. The command names
        // memory of `buffers` or `ranges` with its length; neither is moved or given back before the ring is
        // dropped, and a slot's is not used again before its completion.
        let pushed = unsafe { self.ring.kernel.submission().push(&entry) };
        // A ring has an entry for each slot, and `turn` empties it.
        debug_assert!(pushed.is_ok(), "more requests than slots");
    }

    fn turn(&mut self, want: u32, wait: Option<Duration>) -> io::Result<()> {
        self.ring.turn(want, wait)
    }

    fn ready(&mut self, want: u32) -> io::Result<bool> {
        self.ring.ready(want)
    }

    fn reap(&mut self, mut each: impl FnMut(u32, Outcome)) {
        for entry in self.ring.kernel.completion() {
            let slot = entry.user_data() as u32;
            let length = self.lengths[slot as usize];
            each(slot, nvme_command::outcome(entry.result(), length));
        }
        self.ring.ended.drain(..).for_each(|(slot, outcome)| each(slot, outcome));
    }

    fn system_calls(&self) -> u64 {
        self.ring.system_calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_devices_have_block_devices() {
        assert_eq!(block_name("/dev/ng0n1").as_deref(), Some("/dev/nvme0n1"));
        assert_eq!(block_name("/dev/ng12n34").as_deref(), Some("/dev/nvme12n34"));
        for other in ["/dev/nvme0n1", "/dev/ngn1", "/dev/ng0n", "/dev/ng0n1p2", "ng0n1", "/dev/ng0"]
        {
            assert_eq!(block_name(other), None, "{other}");
        }
        // A device with this name must be a character device, too.
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ng0n1");
        std::fs::write(&file, "").unwrap();
        assert_eq!(block_device_of(file.to_str().unwrap()), None);
    }

    /// Every other file refuses the call by name, and no memory of ours is touched.
    #[test]
    fn other_files_are_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let owned = OwnedFd::from(file.reopen().unwrap());
        assert_eq!(namespace_id(&owned).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(identify(&owned, 1).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }
}
