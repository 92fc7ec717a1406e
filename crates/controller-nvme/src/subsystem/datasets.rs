//! Dataset management (NVM 1.0c, clause 3.2.3): hints, and ranges that are deallocated piece by piece.

use std::ops::Range;

use ssdyno_block::Request;
use ssdyno_spec::nvme::{DatasetRange, NvmeStatus, SubmissionEntry, dataset};
use zerocopy::{FromZeros, IntoBytes};

use super::io::{Force, Kind, NvmCommand, NvmStep};
use super::ranges::{DATASET_RANGES_MAX, NO_DATASET};
use super::{HostData, NvmeSubsystem};
use crate::answer::Answer;
use ssdyno_device::Device;

/// Longest range that the device deallocates in one piece.
// A request has its length in 32 bits, and a range may have 2^32 blocks. Pieces of 1 GiB fit and
// are still few for a whole device.
const DEALLOCATE_BYTES_MAX: u64 = 1 << 30;

impl<D: Device> NvmeSubsystem<D> {
    pub(crate) fn decode_dataset(
        &mut self,
        command: &mut NvmCommand,
        entry: &SubmissionEntry,
        data: &mut impl HostData,
    ) -> Answer<NvmStep> {
        let id = entry.namespace_id.get();
        let namespace = self.namespaces.addressed(id)?;
        let (start, shift, blocks) = (namespace.start_bytes, namespace.shift, namespace.blocks);
        let mut ranges = [DatasetRange::new_zeroed(); DATASET_RANGES_MAX];
        let ranges = &mut ranges[..(entry.dword10.get() & 0xff) as usize + 1];
        data.receive(ranges.as_mut_bytes())?;
        let end =
            |range: &DatasetRange| range.first.get().checked_add(u64::from(range.blocks.get()));
        // All ranges are checked before the first one is deallocated. A command that fails must
        // not have lost data of its valid ranges.
        if ranges.iter().any(|range| end(range).is_none_or(|end| end > blocks)) {
            return Err(NvmeStatus::LBA_OUT_OF_RANGE.with_do_not_retry());
        }
        self.namespaces.keep_hints(id, ranges);
        if entry.dword11.get() & dataset::DEALLOCATE == 0 {
            return Ok(NvmStep::End(NvmeStatus::SUCCESS));
        }
        let list = self.datasets.take();
        // `pop` takes from the end, so the ranges go in backwards and are deallocated in the
        // order of the host.
        for range in ranges.iter().rev().filter(|range| range.blocks.get() > 0) {
            let offset = start + (range.first.get() << shift);
            let bytes = u64::from(range.blocks.get()) << shift;
            self.datasets.all[list as usize].push((offset, bytes));
            self.media.forget(offset, bytes);
        }
        command.kind = Kind::Deallocate;
        command.bytes = 0;
        command.dataset = list;
        Ok(NvmStep::Begin)
    }

    /// The next piece of what the command deallocates, or its end.
    pub(crate) fn deallocate_next(&mut self, command: &mut NvmCommand) -> NvmStep {
        if command.bytes == 0 {
            let Some((offset, bytes)) = self.datasets.pop(command.dataset) else {
                return match std::mem::replace(&mut command.force, Force::No) {
                    Force::After => NvmStep::Submit(Request::flush()),
                    _ => NvmStep::End(NvmeStatus::SUCCESS),
                };
            };
            (command.offset_bytes, command.bytes) = (offset, bytes);
        }
        let offset = command.offset_bytes;
        let bytes = command.bytes.min(DEALLOCATE_BYTES_MAX);
        command.offset_bytes += bytes;
        command.bytes -= bytes;
        NvmStep::Submit(Request::trim(offset, bytes as u32))
    }

    /// Makes an admin command deallocate `range` of the device before it completes; gives its first step.
    pub fn deallocate_for_admin(&mut self, command: &mut NvmCommand, range: Range<u64>) -> NvmStep {
        let (offset, bytes) =
            if range.is_empty() { (0, 0) } else { (range.start, range.end - range.start) };
        self.media.forget(offset, bytes);
        command.kind = Kind::Deallocate;
        (command.offset_bytes, command.bytes, command.dataset) = (offset, bytes, NO_DATASET);
        self.deallocate_next(command)
    }
}
