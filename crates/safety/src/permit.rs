//! The permission to write.

/// What a target may be used for.
#[derive(Debug, Default)]
pub enum Access {
    /// Reads only; the target is opened read-only, so that the system refuses writes too.
    #[default]
    ReadOnly,
    /// Reads, writes and trims.
    Write(WritePermit),
}

/// The permission to write to one file or device.
///
/// Only the checks of this crate give one out, after they have looked at what is on the
/// target; it names the very file that they looked at, so that a path that has come to mean
/// another one since is refused.
#[derive(Debug)]
pub struct WritePermit {
    /// For a block device its number, otherwise the file system's.
    device: u64,
    /// The file; 0 for a block device, whose node may be made anew.
    inode: u64,
    /// A file that this program made and nobody else wrote to, which is marked anew after a run.
    scratch: bool,
    /// The name of a network target, which has no number.
    export: Option<String>,
}

impl WritePermit {
    /// A permit for a block device by its number.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing is opened elsewhere"))]
    pub(crate) fn for_device(number: u64) -> WritePermit {
        WritePermit { device: number, inode: 0, scratch: false, export: None }
    }

    /// A permit for a regular file.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing is opened elsewhere"))]
    pub(crate) fn for_file(file_system: u64, inode: u64) -> WritePermit {
        WritePermit { device: file_system, inode, scratch: false, export: None }
    }

    /// A permit for a file that this program made.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing is opened elsewhere"))]
    pub(crate) fn for_scratch(file_system: u64, inode: u64) -> WritePermit {
        WritePermit { device: file_system, inode, scratch: true, export: None }
    }

    /// A permit for the network target called `name`.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing is opened elsewhere"))]
    pub(crate) fn for_export(name: &str) -> WritePermit {
        WritePermit { device: 0, inode: 0, scratch: false, export: Some(name.to_owned()) }
    }

    /// Whether it is for a file that this program made.
    pub fn is_for_scratch(&self) -> bool {
        self.scratch
    }

    /// Whether it is for this one; the arguments are as in the constructors.
    pub fn covers(&self, device: u64, inode: u64) -> bool {
        self.export.is_none() && (self.device, self.inode) == (device, inode)
    }

    /// Whether it is for the network target called `name`.
    pub fn covers_export(&self, name: &str) -> bool {
        self.export.as_deref() == Some(name)
    }
}
