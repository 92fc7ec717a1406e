//! The files of a job, and the part of each file that it uses (fio's `setup_files` in its `filesetup.c`, read for its
//! behaviour; the code is ours).

use super::FioJob;
use super::load::Load;
use super::values::Size;

/// Files that are made up begin at multiples of this: any device takes requests there.
const PAGE_BYTES: u64 = 4096;

/// One of the files that make up a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FioFile {
    /// As jobs name it.
    pub name: String,
    /// Where it begins in the target, in bytes.
    pub start_bytes: u64,
    /// Its size in bytes.
    pub length_bytes: u64,
}

/// The target of a runner: one file or device, or several, one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FioFiles(Vec<FioFile>);

impl FioFiles {
    /// One target of `length_bytes` for all jobs, whatever they name.
    pub fn one(length_bytes: u64) -> FioFiles {
        FioFiles(vec![FioFile { name: String::new(), start_bytes: 0, length_bytes }])
    }

    /// The files that jobs name, in the order of their addresses.
    pub fn several(files: Vec<FioFile>) -> FioFiles {
        FioFiles(files)
    }

    /// Where each lies, if there are several.
    pub fn note(&self) -> Option<String> {
        let each =
            self.0.iter().map(|file| format!("{} from byte {}", file.name, file.start_bytes));
        let each = || each.collect::<Vec<_>>().join(", ");
        self.are_several()
            .then(|| format!("job file: the address range consists of its files: {}", each()))
    }

    /// Where the last one ends.
    fn end_bytes(&self) -> u64 {
        self.0.last().map_or(0, |file| file.start_bytes + file.length_bytes)
    }

    /// Whether each has an address of its own to be flushed at.
    pub(super) fn are_several(&self) -> bool {
        self.0.len() > 1
    }

    /// Start and end of the one called `name`.
    fn find(&self, name: &str) -> Option<(u64, u64)> {
        let file = self.0.iter().find(|file| file.name == name)?;
        Some((file.start_bytes, file.start_bytes + file.length_bytes))
    }
}

/// The part of a file that a job uses; addresses are those of the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FioRange {
    /// First byte of the file.
    pub file_start_bytes: u64,
    /// Where the file ends.
    pub file_end_bytes: u64,
    /// First byte that is asked for.
    pub start_bytes: u64,
    /// Length from there on.
    pub length_bytes: u64,
    /// Holes are passed over again and again: the range is all of the file.
    pub(super) wraps: bool,
}

impl FioJob {
    /// The ranges of copy number `copy` in its files.
    pub(super) fn ranges(&self, copy: u32, files: &FioFiles) -> Vec<FioRange> {
        let extents = self.extents(files);
        let count = extents.len() as u64;
        let range = |(index, (start, end)): (usize, (u64, u64))| {
            let size = size_of_file(&self.load, index as u64, count);
            range(&self.load, copy, (start, end), size)
        };
        extents.into_iter().enumerate().map(range).collect()
    }

    /// The places of the files: the named files, or as many as the job wants on the one target.
    fn extents(&self, files: &FioFiles) -> Vec<(u64, u64)> {
        let named: Option<Vec<_>> = self.files.iter().map(|name| files.find(name)).collect();
        // Names are used only if the runner opened several files. With one target, its whole
        // address range belongs to every job, so that a job file works on another device without
        // changes.
        if let Some(named) = named.filter(|named| !named.is_empty() && files.are_several()) {
            return named;
        }
        let (all, count) = (files.end_bytes(), u64::from(self.file_count));
        if count == 1 {
            return vec![(0, all)];
        }
        let bytes = self.made_bytes().unwrap_or(all / count / PAGE_BYTES * PAGE_BYTES);
        let step = bytes.div_ceil(PAGE_BYTES) * PAGE_BYTES;
        let extent = |index: u64| {
            let start = step.saturating_mul(index);
            (start, start.saturating_add(bytes))
        };
        (0..count).map(extent).collect()
    }

    /// Size of each of several files, where the job says so; the longest one's, where they differ.
    pub(super) fn made_bytes(&self) -> Option<u64> {
        let load = &self.load;
        let count = u64::from(self.file_count);
        let start = match (load.start, load.increment) {
            (Some(Size::Percent(_)), _) | (_, Some(Size::Percent(_))) => return None,
            (start, increment) => {
                let bytes = |size| if let Some(Size::Bytes(bytes)) = size { bytes } else { 0 };
                let steps = bytes(increment).saturating_mul(u64::from(self.copies - 1));
                bytes(start).saturating_add(steps)
            }
        };
        match (load.file_bytes, size_of_file(load, 0, count)) {
            (Some(bytes), _) => Some(bytes),
            (None, size) => size.map(|size| size.saturating_add(start)),
        }
    }
}

/// The part of a job's `size` in file `index` of `count`: the same for each file, and one block more for the first
/// files if it does not divide evenly.
fn size_of_file(load: &Load, index: u64, count: u64) -> Option<u64> {
    let Some(Size::Bytes(size)) = load.length else { return None };
    let (each, block) = (size / count, load.map_unit());
    let more = (size - each * count) / block;
    Some(if index < more { each + block } else { each })
}

fn range(load: &Load, copy: u32, (start, end): (u64, u64), size: Option<u64>) -> FioRange {
    let file_bytes = load.file_bytes.unwrap_or(end - start);
    // The rest is cut to the shortest block, as fio cuts shares of a file.
    let step = load.block_min();
    let offset = load.start_bytes(file_bytes, copy);
    let rest = file_bytes.saturating_sub(offset) / step * step;
    let length_bytes = match (load.length, size) {
        (None, _) => rest,
        // With the size of the file told apart the range ends there.
        (Some(Size::Bytes(_)), _) if load.file_bytes.is_some() => rest,
        (Some(Size::Bytes(bytes)), size) => size.unwrap_or(bytes),
        // Shares are cut to whole blocks and to what is left, as fio does.
        (Some(Size::Percent(share)), _) => {
            let bytes = (file_bytes as f64 * share / 100.0) as u64;
            (bytes / step * step).min(rest)
        }
    };
    FioRange {
        file_start_bytes: start,
        file_end_bytes: end,
        start_bytes: start.saturating_add(offset),
        length_bytes,
        // fio wraps where a hole leads beyond the end of the file, and ends where it leads behind the range.
        wraps: load.modifier.gap > 0 && offset == 0 && length_bytes == file_bytes,
    }
}
