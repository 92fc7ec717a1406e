//! The target of a load: a block device, a file, a server's export, or nothing.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxFlags};
use ssdyno_block::SECTOR_BYTES;
use ssdyno_figures::{Warning, WarningKind};
use ssdyno_workload::{FioFile, FioFiles, FioSync, TargetFacts};

use crate::engine::passthrough::{Generic, block_device_of};
use crate::error::BenchError;
use crate::is_network;
use crate::lock::lock;
use crate::network::protocol::Trouble;
use crate::network::{Remote, RemoteFile};
use crate::options::{NULL, PageCache};
use ssdyno_safety::file_system::{self, is_of_the_kernel};
use ssdyno_safety::{Access, ScratchFile};

/// Size of `null:`; nothing is stored, so it may be anything.
const NULL_BYTES: u64 = 1 << 40;

/// How often, and how far apart, a busy device is tried again: for 5 s. On a busy machine a ring takes longer than half a
/// second to let go of the device.
const BUSY_TRIES: u32 = 100;
const BUSY_WAIT: std::time::Duration = std::time::Duration::from_millis(50);

/// Size of a page, to which everybody can be aligned.
const PAGE_BYTES: u32 = 4096;

/// How a target is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Opening {
    pub(crate) sync_writes: FioSync,
    pub(crate) page_cache: PageCache,
    pub(crate) shared: bool,
}

/// What a target is.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Completes everything at once.
    Null,
    /// A block device.
    Device(OwnedFd),
    /// A regular file.
    File(OwnedFd),
    /// What a server offers.
    Network(Arc<Remote>),
}

/// An open target.
#[derive(Debug)]
pub struct RealTarget {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) capacity_bytes: u64,
    /// Unit of offsets and lengths.
    pub(crate) sector_bytes: u32,
    /// Opened with O_DIRECT: nothing is cached between us and it.
    pub(crate) direct: bool,
    /// In a file system that keeps files in memory.
    pub(crate) in_memory: bool,
    /// Whether it may be written to; of several files, any.
    pub(crate) writable: bool,
    /// The first file may be written to.
    head_is_writable: bool,
    /// Files of its own that this program made and may write to.
    scratch: Vec<ScratchFile>,
    /// Why figures do not mean what they seem to.
    pub(crate) warnings: Vec<Warning>,
    /// Notes that a reader of the figures needs.
    pub(crate) notes: Vec<String>,
    /// Further files or devices, whose addresses follow.
    more: Vec<Part>,
    /// Keep other runs away that come by another node.
    locks: Vec<OwnedFd>,
    /// Where commands go as they are.
    pub(crate) generic: Option<Generic>,
    /// Writes to a network target are durable when they complete.
    pub(crate) durable_writes: bool,
}

/// A further file or device of a target.
#[derive(Debug)]
struct Part {
    name: String,
    file: OwnedFd,
    start_bytes: u64,
    /// Of requests to it.
    length_bytes: u64,
    writable: bool,
    /// See [`RealTarget::disk_name`].
    disk: Option<String>,
}

impl RealTarget {
    /// Opens what `name` names (`null:`, or the path of a block device or a regular file) with
    /// O_DIRECT, read-only unless `access` permits more.
    ///
    /// # Errors
    /// It is not there or not allowed, of another kind, or smaller than one of its blocks.
    pub fn open(name: &str, access: &Access) -> Result<RealTarget, BenchError> {
        RealTarget::open_for(name, access, Opening::default())
    }

    /// As [`open`](RealTarget::open), with writes that are durable when they complete, or through the
    /// page cache, as `opening` says.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn open_for(
        name: &str,
        access: &Access,
        opening: Opening,
    ) -> Result<RealTarget, BenchError> {
        if name == NULL {
            return Ok(RealTarget::null());
        }
        if is_network(name) {
            return RealTarget::open_network(name, access, opening);
        }
        // Commands go to a generic device; all else is known of its block device, and asked of that.
        let block = block_device_of(name);
        let (file, direct) = open(block.as_deref().unwrap_or(name), access, opening)?;
        let shared = opening.shared && matches!(access, Access::ReadOnly);
        let locks = lock(name, &file, shared)?;
        let failed = |what| move |e: rustix::io::Errno| geometry(name, what, e.into());
        let status = rustix::fs::fstat(&file).map_err(failed("kind"))?;
        let file_type = FileType::from_raw_mode(status.st_mode);
        let is_device = file_type == FileType::BlockDevice;
        if let Access::Write(permit) = access {
            let (device, inode) =
                if is_device { (status.st_rdev, 0) } else { (status.st_dev, status.st_ino) };
            if !permit.covers(device, inode) {
                return Err(BenchError::Permit { target: name.to_owned() });
            }
        }
        let writable = matches!(access, Access::Write(_));
        let mut target = RealTarget::closed(name, writable);
        (target.direct, target.locks) = (direct, locks);
        if is_device {
            // Where a device ends is where seeking to its end leads.
            target.capacity_bytes =
                rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0)).map_err(failed("size"))?;
            target.sector_bytes =
                rustix::fs::ioctl_blksszget(&file).map_err(failed("sector size"))?;
            target.kind = Kind::Device(file);
            if block.is_some() {
                target.open_generic()?;
            }
        } else {
            target.capacity_bytes = status.st_size as u64;
            // Not every file system reports it (some FUSE file systems do not); those in memory do.
            target.in_memory =
                rustix::fs::fstatfs(&file).is_ok_and(|found| file_system::is_in_memory(&found));
            if direct && !target.in_memory {
                target.sector_bytes = file_alignment(&file);
            }
            if matches!(access, Access::Write(permit) if permit.is_for_scratch()) {
                target.scratch.extend(ScratchFile::watch(&file));
            }
            target.kind = Kind::File(file);
        }
        target.sector_bytes = target.sector_bytes.clamp(SECTOR_BYTES, 1 << 20).next_power_of_two();
        target.describe(opening.page_cache);
        target.notes.extend(durable(opening.sync_writes));
        target.checked()
    }

    /// Connects to a network target. Its server is not asked to keep others away: it may serve them meanwhile.
    fn open_network(
        name: &str,
        access: &Access,
        opening: Opening,
    ) -> Result<RealTarget, BenchError> {
        let refuse = |option, why: &str| Err(BenchError::option(option, why));
        if opening.page_cache != PageCache::Bypassed {
            return refuse("buffered", "a network target has no page cache");
        }
        let writable = matches!(access, Access::Write(_));
        if matches!(access, Access::Write(permit) if !permit.covers_export(name)) {
            return Err(BenchError::Permit { target: name.to_owned() });
        }
        let remote = Remote::open(name)?;
        let facts = remote.facts().clone();
        if writable && facts.read_only {
            let what = "the export is read-only".to_owned();
            let help = "measure reads only, or make the export writable on the server";
            return Err(Trouble::new(what, help).of(name));
        }
        let durable = opening.sync_writes != FioSync::None;
        if durable && writable && !facts.fua {
            return refuse(
                "sync",
                "the server does not support writes that are durable when they complete (FUA)",
            );
        }
        let mut target = RealTarget::closed(name, writable);
        target.capacity_bytes = facts.size_bytes;
        target.sector_bytes = facts.sector_bytes;
        target.notes = facts.notes;
        if durable && writable {
            let note = "a write is durable when it completes (FUA): its latency includes the flush";
            target.notes.push(note.to_owned());
            target.durable_writes = true;
        }
        target.kind = Kind::Network(Arc::new(remote));
        target.checked()
    }

    /// Itself, where it holds at least one block.
    fn checked(self) -> Result<RealTarget, BenchError> {
        if self.capacity_bytes < u64::from(self.sector_bytes) {
            return Err(BenchError::TooSmall {
                target: self.name.clone(),
                size_bytes: self.capacity_bytes,
                block_bytes: self.sector_bytes,
            });
        }
        Ok(self)
    }

    /// A network target for callers that read and write it in another way; `None` for others.
    pub fn to_remote_file(&self) -> Option<RemoteFile> {
        match &self.kind {
            Kind::Network(remote) => Some(RemoteFile::of(remote)),
            Kind::Null | Kind::Device(_) | Kind::File(_) => None,
        }
    }

    /// A target that nothing was found out about yet.
    fn closed(name: &str, writable: bool) -> RealTarget {
        RealTarget {
            name: name.to_owned(),
            kind: Kind::Null,
            capacity_bytes: 0,
            sector_bytes: SECTOR_BYTES,
            direct: true,
            in_memory: false,
            writable,
            head_is_writable: writable,
            scratch: Vec::new(),
            warnings: Vec::new(),
            notes: Vec::new(),
            more: Vec::new(),
            locks: Vec::new(),
            generic: None,
            durable_writes: false,
        }
    }

    /// Opens the generic device that the target is named by, beside its block device.
    fn open_generic(&mut self) -> Result<(), BenchError> {
        let Kind::Device(block) = &self.kind else { return Ok(()) };
        let generic = Generic::open(&self.name, block.as_fd(), self.sector_bytes, self.writable)?;
        self.notes.push(generic.note());
        self.generic = Some(generic);
        Ok(())
    }

    /// Puts `others` behind this one: their addresses follow, each from a whole sector on. The properties of the whole
    /// follow from all of them: it has the largest sector, and is direct if all are direct.
    pub(crate) fn followed_by(mut self, others: Vec<RealTarget>) -> RealTarget {
        self.sector_bytes =
            others.iter().fold(self.sector_bytes, |most, other| most.max(other.sector_bytes));
        self.capacity_bytes = self.facts().capacity_bytes;
        for mut other in others {
            other.sector_bytes = self.sector_bytes;
            let (length_bytes, disk) = (other.facts().capacity_bytes, other.disk_name());
            self.direct &= other.direct;
            self.in_memory |= other.in_memory;
            self.writable |= other.writable;
            for warning in std::mem::take(&mut other.warnings) {
                if !self.warnings.contains(&warning) {
                    self.warnings.push(warning);
                }
            }
            for note in std::mem::take(&mut other.notes) {
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
            self.locks.append(&mut other.locks);
            self.scratch.append(&mut other.scratch);
            if let Kind::Device(file) | Kind::File(file) =
                std::mem::replace(&mut other.kind, Kind::Null)
            {
                let (name, start_bytes) = (std::mem::take(&mut other.name), self.capacity_bytes);
                let writable = other.writable;
                self.more.push(Part { name, file, start_bytes, length_bytes, writable, disk });
                self.capacity_bytes += length_bytes;
            }
        }
        self
    }

    /// Its files, in the order of their addresses; of `null:` one without end.
    pub(crate) fn files(&self) -> FioFiles {
        let Some(first) = self.more.first() else {
            return FioFiles::one(self.facts().capacity_bytes);
        };
        let head =
            FioFile { name: self.name.clone(), start_bytes: 0, length_bytes: first.start_bytes };
        let rest = self.more.iter().map(|part| FioFile {
            name: part.name.clone(),
            start_bytes: part.start_bytes,
            length_bytes: part.length_bytes,
        });
        FioFiles::several(std::iter::once(head).chain(rest).collect())
    }

    /// First byte and name of each of its files or devices, in the order of their addresses.
    pub(crate) fn devices(&self) -> Vec<(u64, String)> {
        let more = self.more.iter().map(|part| (part.start_bytes, part.name.clone()));
        std::iter::once((0, self.name.clone())).chain(more).collect()
    }

    /// Whether the files in `names` may be written to; if the target is one file, this file.
    pub(crate) fn may_write(&self, names: &[String]) -> bool {
        let may = |name: &String| match self.more.iter().find(|part| part.name == *name) {
            Some(part) => part.writable,
            None => self.head_is_writable,
        };
        if self.more.is_empty() { self.writable } else { names.iter().all(may) }
    }

    /// The name of the file that `offset_bytes` lies in.
    pub(crate) fn name_at(&self, offset_bytes: u64) -> &str {
        let (index, _) = self.locate(offset_bytes);
        index.checked_sub(1).map_or(&self.name, |part| &self.more[part].name)
    }

    /// The open files, in the order of their addresses; none for `null:`.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.file().into_iter().chain(self.more.iter().map(|part| part.file.as_fd())).collect()
    }

    /// The open file number `index` in that order.
    pub(crate) fn descriptor(&self, index: usize) -> Option<BorrowedFd<'_>> {
        match index.checked_sub(1) {
            None => self.file(),
            Some(part) => self.more.get(part).map(|part| part.file.as_fd()),
        }
    }

    /// Which of the files `offset_bytes` lies in, and where in it.
    #[inline]
    pub(crate) fn locate(&self, offset_bytes: u64) -> (usize, u64) {
        // Nearly all targets are one file. The search for the part is left out for them on each
        // request.
        if self.more.is_empty() {
            return (0, offset_bytes);
        }
        let index = self.more.partition_point(|part| part.start_bytes <= offset_bytes);
        let start = index.checked_sub(1).map_or(0, |part| self.more[part].start_bytes);
        (index, offset_bytes - start)
    }

    fn null() -> RealTarget {
        let mut target = RealTarget::closed(NULL, true);
        (target.capacity_bytes, target.in_memory) = (NULL_BYTES, true);
        let note = "null: completes every request at once; these figures are the overhead of the tool itself";
        target.notes.push(note.to_owned());
        target
    }

    fn describe(&mut self, page_cache: PageCache) {
        if self.in_memory {
            let message =
                "the file is in memory (tmpfs): the figures describe memory, not a device";
            let warning = Warning::new(WarningKind::Memory, message);
            self.warnings.push(warning.with_help("choose a file on the drive"));
        } else if page_cache != PageCache::Bypassed {
            let warning = Warning::new(WarningKind::Memory, self.empty_cache(page_cache));
            self.warnings.push(warning.with_help("use direct I/O to measure the target"));
        } else if !self.direct {
            let message = "the file system refuses O_DIRECT: requests go through the page cache";
            self.warnings.push(Warning::new(WarningKind::Memory, message));
        }
    }

    /// Drops the target's pages from the page cache, if it is to be emptied; describes the path of
    /// requests.
    fn empty_cache(&self, page_cache: PageCache) -> String {
        let dropped = self.file().filter(|_| page_cache == PageCache::Emptied).map(|file| {
            // Dirty pages stay: they belong to other programs, which may be asked to sync them.
            rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)
        });
        let before = match dropped {
            Some(Ok(())) => "clean pages of the target were dropped first",
            Some(Err(_)) => "it could not be emptied first",
            None => "with the target's pages that it already contained",
        };
        format!(
            "buffered I/O: requests go through this machine's page cache ({before}); reads may \
             never reach the target, and a write completes when its data is in memory"
        )
    }

    /// Size, and unit of address and length.
    pub fn facts(&self) -> TargetFacts {
        let sector = u64::from(self.sector_bytes);
        TargetFacts {
            capacity_bytes: self.capacity_bytes / sector * sector,
            sector_bytes: self.sector_bytes,
        }
    }

    /// The open file once more, for who reads and writes it otherwise while the target lives; `None`
    /// for `null:` and network targets.
    ///
    /// # Errors
    /// Too many files are open.
    pub fn to_file(&self) -> io::Result<Option<std::fs::File>> {
        let file = self.file().map(|file| file.try_clone_to_owned()).transpose()?;
        Ok(file.map(std::fs::File::from))
    }

    /// Marks the scratch files among its files anew, so that the next run may write to them, too. Call it
    /// when everything that was written is completed; it reads a few blocks of each.
    pub fn remember_scratch(&self) {
        self.scratch.iter().for_each(ScratchFile::remember);
    }

    /// The device whose counters describe this target, by its kernel name; for several files, the device that all lie
    /// on.
    pub(crate) fn disk_name(&self) -> Option<String> {
        let status = rustix::fs::fstat(self.file()?).ok()?;
        let disk = crate::probe::disk_of(&status);
        disk.filter(|disk| self.more.iter().all(|part| part.disk.as_ref() == Some(disk)))
    }

    /// Gives up the lock at once: a ring that is being torn down holds the file for a while.
    fn unlock(&self) {
        for file in self.descriptors() {
            // It goes with the file in any case.
            let _ = rustix::fs::flock(file, rustix::fs::FlockOperation::Unlock);
        }
    }

    /// The open file; `None` for `null:` and network targets.
    pub(crate) fn file(&self) -> Option<BorrowedFd<'_>> {
        match &self.kind {
            Kind::Null | Kind::Network(_) => None,
            Kind::Device(file) | Kind::File(file) => Some(file.as_fd()),
        }
    }
}

impl Drop for RealTarget {
    fn drop(&mut self) {
        self.unlock();
    }
}

/// Gives the lock of a target back when dropped. Closing the file is not enough: the kernel keeps
/// it open until it has taken down the ring it was registered with, some time after.
#[derive(Debug)]
pub(crate) struct Unlock(pub(crate) Arc<RealTarget>);

impl Drop for Unlock {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

fn geometry(name: &str, what: &'static str, source: io::Error) -> BenchError {
    BenchError::Geometry { target: name.to_owned(), what, source }
}

/// The note about durable writes for a reader of the figures.
fn durable(sync_writes: FioSync) -> Option<String> {
    let flag = match sync_writes {
        FioSync::None => return None,
        FioSync::Data => "O_DSYNC",
        FioSync::Whole => "O_SYNC",
    };
    Some(format!("a write is durable when it completes ({flag}): its latency includes the flush"))
}

/// Opens with O_DIRECT, or without where the file system does not know it or requests are to go through
/// the page cache. The second value says which.
fn open(name: &str, access: &Access, opening: Opening) -> Result<(OwnedFd, bool), BenchError> {
    let failed =
        |e: rustix::io::Errno| BenchError::Open { target: name.to_owned(), source: e.into() };
    // Its kind comes first: to open a pipe would wait, and to open a tape rewinds it.
    let kind = rustix::fs::stat(name).map_err(failed)?;
    let is_device = FileType::from_raw_mode(kind.st_mode) == FileType::BlockDevice;
    let kind = match FileType::from_raw_mode(kind.st_mode) {
        FileType::RegularFile if is_of_the_kernel(name.as_ref()) => {
            Some("a file of the kernel (proc, sysfs or the like)")
        }
        FileType::BlockDevice | FileType::RegularFile => None,
        FileType::Directory => Some("a directory"),
        FileType::CharacterDevice => Some("a character device"),
        FileType::Fifo => Some("a pipe"),
        FileType::Socket => Some("a socket"),
        _ => Some("of an unknown kind"),
    };
    if let Some(kind) = kind {
        return Err(BenchError::Kind { target: name.to_owned(), kind });
    }
    let mode = match access {
        Access::ReadOnly => OFlags::RDONLY,
        Access::Write(_) => OFlags::RDWR,
    };
    let mut flags = mode | OFlags::CLOEXEC | OFlags::NOCTTY;
    if is_device && mode == OFlags::RDWR {
        // Fails while anybody has claimed the device: a mount, an array, another name space.
        // O_EXCL on a block device is a claim. It protects a mounted file system even if a check
        // before this call has missed it.
        flags |= OFlags::EXCL;
    }
    flags |= match opening.sync_writes {
        FioSync::None => OFlags::empty(),
        FioSync::Data => OFlags::DSYNC,
        FioSync::Whole => OFlags::SYNC,
    };
    let past_cache = opening.page_cache == PageCache::Bypassed;
    let direct = if past_cache { flags | OFlags::DIRECT } else { flags };
    // Reading shall not write: neither a time of access nor the check whether one is due. Only the owner may
    // ask for that.
    let mut opened = match rustix::fs::open(name, direct | OFlags::NOATIME, Mode::empty()) {
        Err(rustix::io::Errno::PERM) => rustix::fs::open(name, direct, Mode::empty()),
        opened => opened,
    };
    for _ in 0..BUSY_TRIES {
        if !matches!(opened, Err(rustix::io::Errno::BUSY)) {
            break;
        }
        // A program that closed it a moment ago may still hold it: a ring goes down in the
        // background.
        std::thread::sleep(BUSY_WAIT);
        opened = rustix::fs::open(name, direct, Mode::empty());
    }
    match opened {
        Ok(file) => Ok((file, past_cache)),
        Err(rustix::io::Errno::INVAL) => {
            Ok((rustix::fs::open(name, flags, Mode::empty()).map_err(failed)?, false))
        }
        Err(error) => Err(failed(error)),
    }
}

/// The unit of direct requests to a file: what the file system says (statx(2), STATX_DIOALIGN,
/// since Linux 6.1), otherwise a page, which every file system takes.
fn file_alignment(file: &OwnedFd) -> u32 {
    let stated = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    match stated {
        Ok(Statx { stx_dio_offset_align: 0, .. }) | Err(_) => PAGE_BYTES,
        Ok(stated) => stated.stx_dio_offset_align.max(stated.stx_dio_mem_align.min(PAGE_BYTES)),
    }
}
