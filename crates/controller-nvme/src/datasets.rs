//! Dataset management (NVM 1.0c, clause 3.2.3): hints, and ranges that are deallocated piece by piece.

use std::ops::Range;

use ssdyno_block::{Request, Time};
use ssdyno_pci::BusMaster;
use ssdyno_spec::nvme::{DatasetRange, NvmeStatus, SubmissionEntry, dataset};
use zerocopy::{FromZeros, IntoBytes};

use super::NvmeController;
use super::commands::{Force, Kind};
use super::io::Next;
use super::pages::HostPages;
use super::subsystem::HostData;
use ssdyno_device::Device;

/// Longest range that the device deallocates in one piece.
const DEALLOCATE_BYTES_MAX: u64 = 1 << 30;
/// No dataset.
pub(super) const NO_DATASET: u64 = u64::MAX;
/// Ranges of a dataset command at most.
const DATASET_RANGES_MAX: usize = 256;

/// Ranges of bytes that deallocating commands still have before them.
#[derive(Debug, Default)]
pub(super) struct Datasets {
    all: Vec<Vec<(u64, u64)>>,
    free: Vec<usize>,
}

impl Datasets {
    /// An empty list.
    fn take(&mut self) -> u64 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.all.push(Vec::with_capacity(DATASET_RANGES_MAX));
            self.all.len() - 1
        });
        at as u64
    }
    pub(super) fn give_back(&mut self, at: u64) {
        if at != NO_DATASET {
            self.all[at as usize].clear();
            self.free.push(at as usize);
        }
    }
    fn pop(&mut self, at: u64) -> Option<(u64, u64)> {
        self.all.get_mut(at as usize)?.pop()
    }
}

impl<D: Device> NvmeController<D> {
    pub(super) fn prepare_dataset(
        &mut self,
        slot: u32,
        entry: &SubmissionEntry,
        bus: &mut dyn BusMaster,
    ) -> Result<Next, NvmeStatus> {
        let id = entry.namespace_id.get();
        let namespace = self.subsystem.namespaces.addressed(id)?;
        let (start, shift, blocks) = (namespace.start_bytes, namespace.shift, namespace.blocks);
        let mut ranges = [DatasetRange::new_zeroed(); DATASET_RANGES_MAX];
        let ranges = &mut ranges[..(entry.dword10.get() & 0xff) as usize + 1];
        HostPages { entry, registers: &self.registers, bus }.receive(ranges.as_mut_bytes())?;
        let end =
            |range: &DatasetRange| range.first.get().checked_add(u64::from(range.blocks.get()));
        if ranges.iter().any(|range| end(range).is_none_or(|end| end > blocks)) {
            return Err(NvmeStatus::LBA_OUT_OF_RANGE.with_do_not_retry());
        }
        self.subsystem.namespaces.keep_hints(id, ranges);
        if entry.dword11.get() & dataset::DEALLOCATE == 0 {
            return Ok(Next::Done);
        }
        let list = self.datasets.take();
        for range in ranges.iter().rev().filter(|range| range.blocks.get() > 0) {
            let offset = start + (range.first.get() << shift);
            let bytes = u64::from(range.blocks.get()) << shift;
            self.datasets.all[list as usize].push((offset, bytes));
            self.subsystem.media.forget(offset, bytes);
        }
        let command = self.commands.get_mut(slot);
        command.kind = Kind::Deallocate;
        command.bytes = 0;
        command.prp2 = list;
        Ok(Next::Begin)
    }

    /// The next piece of what the command deallocates, or its end.
    pub(super) fn deallocate_next(&mut self, at: Time, slot: u32) {
        let dataset = self.commands.get(slot).prp2;
        if self.commands.get(slot).bytes == 0 {
            let Some((offset, bytes)) = self.datasets.pop(dataset) else {
                let force = &mut self.commands.get_mut(slot).force;
                return match std::mem::replace(force, Force::No) {
                    Force::After => self.submit(at, slot, Request::flush()),
                    _ => self.finish(at, slot, NvmeStatus::SUCCESS),
                };
            };
            let command = self.commands.get_mut(slot);
            (command.offset_bytes, command.bytes) = (offset, bytes);
        }
        let command = self.commands.get_mut(slot);
        let offset = command.offset_bytes;
        let bytes = command.bytes.min(DEALLOCATE_BYTES_MAX);
        command.offset_bytes += bytes;
        command.bytes -= bytes;
        self.submit(at, slot, Request::trim(offset, bytes as u32));
    }

    /// Makes an admin command deallocate what lies between two bytes before it completes.
    pub(super) fn deallocate_for_admin(&mut self, at: Time, slot: u32, range: Range<u64>) {
        let (offset, bytes) =
            if range.is_empty() { (0, 0) } else { (range.start, range.end - range.start) };
        self.subsystem.media.forget(offset, bytes);
        let command = self.commands.get_mut(slot);
        command.kind = Kind::Deallocate;
        (command.offset_bytes, command.bytes, command.prp2) = (offset, bytes, NO_DATASET);
        self.deallocate_next(at, slot);
    }
}
