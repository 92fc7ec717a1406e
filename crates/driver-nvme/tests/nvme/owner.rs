//! The owner of a queue pair, who checks that each of his commands completes once.

use std::collections::BTreeSet;

use ssdyno_block::{Time, Token};
use ssdyno_driver_nvme::{DataBuffer, IoCommand, IoCompletion, IoError, IoResult, QueuePair};
use ssdyno_pci::{DmaRegion, PciFunction};

/// A pair with its owner's memory of what it submitted.
pub(crate) struct Owner {
    pub(crate) pair: QueuePair,
    pub(crate) outstanding: BTreeSet<u32>,
    pub(crate) done: Vec<IoCompletion>,
    next_token: u32,
}

impl Owner {
    pub(crate) fn new(pair: QueuePair) -> Owner {
        let next_token = u32::from(pair.id()) << 24;
        Owner { pair, outstanding: BTreeSet::new(), done: Vec::new(), next_token }
    }

    pub(crate) fn read<F: PciFunction>(
        &mut self,
        f: &mut F,
        now: Time,
        buffer: &DmaRegion,
        blocks: u32,
    ) -> Result<(), IoError> {
        let token = Token(self.next_token);
        let data = DataBuffer::Contiguous(buffer.address);
        self.pair.submit(f, now, &IoCommand::read(1, 0, blocks, data), token)?;
        self.next_token += 1;
        self.outstanding.insert(token.0);
        Ok(())
    }

    pub(crate) fn poll<F: PciFunction>(&mut self, f: &mut F) {
        let before = self.done.len();
        self.pair.poll(f, &mut self.done);
        self.strike(before);
    }

    pub(crate) fn attend<F: PciFunction>(&mut self, f: &mut F, now: Time) -> bool {
        let before = self.done.len();
        let wants = self.pair.attend(f, now, &mut self.done);
        self.strike(before);
        wants
    }

    fn strike(&mut self, before: usize) {
        for done in &self.done[before..] {
            assert_eq!(done.queue, self.pair.id());
            assert!(self.outstanding.remove(&done.token.0), "{done:?} was answered twice");
        }
    }

    pub(crate) fn results(&self) -> Vec<IoResult> {
        self.done.iter().map(|done| done.result).collect()
    }
}
