//! `/proc/meminfo` (proc_meminfo(5)) and `/proc/vmstat` (proc_vmstat(5)).

use crate::sources::{SourceError, SourceText, Sources};

/// In the order of the figures of `MemoryLevels`.
const LEVELS: [&str; 8] =
    ["MemTotal", "MemFree", "MemAvailable", "Shmem", "Buffers", "Cached", "SwapTotal", "SwapFree"];

/// In bytes.
pub(super) fn read(sources: &Sources) -> Result<[u64; LEVELS.len()], SourceError> {
    let source = SourceText::read(sources.proc.join("meminfo"))?;
    let mut levels = [None; LEVELS.len()];
    for line in source.lines() {
        let Some((name, rest)) = line.text.split_once(':') else {
            return Err(line.error("there is no `:` after the name"));
        };
        // `/proc/meminfo` has some fifty lines, and their order differs between
        // kernels. The lines are therefore found by name.
        let Some(index) = LEVELS.iter().position(|level| *level == name) else { continue };
        let mut words = rest.split_ascii_whitespace();
        let kib = line.number(words.next(), name)?;
        // All lines have been in kB for decades. If a kernel ever changes the unit, an error is better
        // than figures that are wrong by a factor of 1024.
        if words.next() != Some("kB") {
            return Err(line.error(format!("{name} is not in kB")));
        }
        let bytes = kib.checked_mul(1024);
        levels[index] = Some(bytes.ok_or_else(|| line.error(format!("{name} is too large")))?);
    }
    let mut bytes = [0; LEVELS.len()];
    for (index, level) in levels.into_iter().enumerate() {
        bytes[index] = level.ok_or_else(|| source.ends_before(LEVELS[index]))?;
    }
    Ok(bytes)
}

/// Pages in and out; `None` where the kernel was built without swap.
pub(super) fn read_swap(sources: &Sources) -> Result<Option<[u64; 2]>, SourceError> {
    let source = SourceText::read(sources.proc.join("vmstat"))?;
    let (mut pages_in, mut pages_out) = (None, None);
    for line in source.lines() {
        let mut words = line.text.split_ascii_whitespace();
        let wanted = match words.next() {
            Some("pswpin") => &mut pages_in,
            Some("pswpout") => &mut pages_out,
            _ => continue,
        };
        *wanted = Some(line.number(words.next(), "the number of pages")?);
    }
    // A kernel without swap has neither line. One line alone would be half of a
    // figure, and the group is missing then.
    Ok(pages_in.zip(pages_out).map(<[u64; 2]>::from))
}
