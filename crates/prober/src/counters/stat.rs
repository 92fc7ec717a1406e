//! `/proc/stat` (proc_stat(5)).

use std::collections::BTreeMap;

use crate::sources::{SourceError, SourceLine, SourceText, Sources};

/// Kinds of CPU time, in the order of the kernel: user, nice, system, idle, iowait, irq, softirq, steal. Two more
/// follow (guest, guest_nice) that are parts of the first two.
pub(crate) const CPU_KINDS: usize = 8;

/// Ticks by kind.
pub(crate) type CpuTicks = [u64; CPU_KINDS];

#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct StatCounters {
    pub(crate) cpu: CpuTicks,
    /// Cores that are online.
    pub(crate) cores: BTreeMap<u32, CpuTicks>,
    /// Interrupts, context switches, forks.
    pub(crate) events: [u64; 3],
    /// Processes that run, and that are blocked: now.
    pub(crate) processes: [u64; 2],
}

/// Lines with one number that is wanted; of the line `intr` it is the sum over all interrupts.
const SINGLE: [&str; 5] = ["intr", "ctxt", "processes", "procs_running", "procs_blocked"];

pub(super) fn read(sources: &Sources) -> Result<StatCounters, SourceError> {
    let source = SourceText::read(sources.proc.join("stat"))?;
    let mut cpu = None;
    let mut cores = BTreeMap::new();
    let mut single = [None; SINGLE.len()];
    // The lines `cpu0`, `cpu1`, … list only the cores that are online, so their numbers may have
    // gaps. The line `cpu` is the sum of all of them.
    for line in source.lines() {
        let mut words = line.text.split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        if let Some(index) = SINGLE.iter().position(|single| *single == name) {
            single[index] = Some(line.number(words.next(), name)?);
        } else if let Some(core) = name.strip_prefix("cpu") {
            // Kernels append columns (guest, guest_nice). They are parts of user and nice, so adding them
            // would count the time of virtual machines twice.
            let ticks: CpuTicks = line.numbers(&mut words, "time")?;
            if core.is_empty() {
                cpu = Some(ticks);
            } else {
                cores.insert(core_number(&line, core)?, ticks);
            }
        }
    }
    let cpu = cpu.ok_or_else(|| source.ends_before("cpu"))?;
    // All five lines are in every kernel that this program supports. A missing line means that the
    // file was cut off, and the whole source is refused.
    let known = |index: usize| single[index].ok_or_else(|| source.ends_before(SINGLE[index]));
    Ok(StatCounters {
        cpu,
        cores,
        events: [known(0)?, known(1)?, known(2)?],
        processes: [known(3)?, known(4)?],
    })
}

fn core_number(line: &SourceLine<'_>, core: &str) -> Result<u32, SourceError> {
    let number = line.number(Some(core), "the number of a core")?;
    // A number above `u32` can only come from a damaged file. It must not become
    // the number of another core by truncation.
    u32::try_from(number).map_err(|_| line.error(format!("there is no core {number}")))
}
