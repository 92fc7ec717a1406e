//! Data of a command in the host's memory, where its PRP entries point (base 2.0c, clause 4.1.1).

use ssdyno_pci::BusMaster;
use ssdyno_spec::nvme::{NvmeStatus, SubmissionEntry};
use zerocopy::little_endian::U64;

use super::prp::{self, Rest};
use super::registers::Registers;
use super::subsystem::HostData;
use crate::answer::Answer;

/// The data of the command `entry`.
pub(super) struct HostPages<'a> {
    pub(super) entry: &'a SubmissionEntry,
    pub(super) registers: &'a Registers,
    pub(super) bus: &'a mut dyn BusMaster,
}

impl HostPages<'_> {
    fn walk(
        &mut self,
        bytes: usize,
        mut each: impl FnMut(&mut dyn BusMaster, u64, usize) -> Answer,
    ) -> Answer {
        let HostPages { entry, registers, bus } = self;
        let page_bytes = registers.page_bytes();
        let (prp1, prp2, bytes) = (entry.prp1.get(), entry.prp2.get(), bytes as u64);
        let rest = match prp::classify(page_bytes, prp1, prp2, bytes)? {
            Rest::Nothing => Vec::new(),
            Rest::Second => vec![entry.prp2],
            Rest::List(entries) => {
                let mut list = vec![U64::ZERO; entries as usize];
                prp::read_list(*bus, page_bytes, prp2, &mut list)?;
                list
            }
        };
        let piece = |address, bytes| each(*bus, address, bytes as usize);
        prp::pieces(page_bytes, prp1, &rest, bytes, piece)
    }
}

impl HostData for HostPages<'_> {
    fn send(&mut self, data: &[u8]) -> Answer {
        let mut done = 0;
        self.walk(data.len(), |bus, address, bytes| {
            let part = &data[done..done + bytes];
            done += bytes;
            bus.write(address, part).map_err(|_| NvmeStatus::DATA_TRANSFER_ERROR)
        })
    }

    fn receive(&mut self, data: &mut [u8]) -> Answer {
        let mut done = 0;
        self.walk(data.len(), |bus, address, bytes| {
            let part = &mut data[done..done + bytes];
            done += bytes;
            bus.read(address, part).map_err(|_| NvmeStatus::DATA_TRANSFER_ERROR)
        })
    }
}
