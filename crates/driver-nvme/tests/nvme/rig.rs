//! Driver, connector and controller on one clock, with a check that every request completes once.

use std::collections::BTreeSet;

use ssdyno_block::{MonotonicTime, Time, Token};
use ssdyno_driver_nvme::{
    DataBuffer, DriverState, IoCommand, IoCompletion, IoError, NvmeConfig, SimulatedNvme,
};
use ssdyno_pci::{DmaRegion, PciDevice, PciFunction, PciTiming, SimulatedPci};

use crate::double::{Double, Nature};

pub(crate) const TIMING: PciTiming = PciTiming {
    posted_write: Time::from_ns(200),
    read_round_trip: Time::from_ns(800),
    interrupt: Time::from_us(2),
};

pub(crate) struct Rig<D> {
    pub(crate) nvme: SimulatedNvme<D>,
    /// Memory for data, as large as it has to be.
    pub(crate) buffer: DmaRegion,
    /// Everything that completed, in order.
    pub(crate) done: Vec<IoCompletion>,
    outstanding: BTreeSet<u32>,
    next_token: u32,
}

/// Timeouts that tests can wait for.
pub(crate) fn config() -> NvmeConfig {
    NvmeConfig {
        entries: 16,
        io_timeout: Time::from_ms(20),
        admin_timeout: Time::from_ms(10),
        owner_timeout: Time::from_ms(5),
        ..NvmeConfig::default()
    }
}

pub(crate) fn double(nature: Nature) -> SimulatedPci<Double> {
    SimulatedPci::new(Double::new(nature), TIMING)
}

/// Ready, with a log of what the controller gets.
pub(crate) fn logging(nature: Nature, wanted: NvmeConfig) -> Rig<Double> {
    let mut rig = Rig::ready(double(nature), wanted);
    rig.device().keep_log = true;
    rig
}

impl<D: PciDevice> Rig<D> {
    pub(crate) fn new(pci: SimulatedPci<D>, config: NvmeConfig) -> Rig<D> {
        Rig::at_origin(MonotonicTime::ZERO, pci, config)
    }

    /// With a driver whose clock says `origin` when the simulated one begins.
    pub(crate) fn at_origin(
        origin: MonotonicTime,
        mut pci: SimulatedPci<D>,
        config: NvmeConfig,
    ) -> Rig<D> {
        let buffer = pci.dma_allocate(8 << 20).unwrap();
        let mut nvme = SimulatedNvme::new(pci, config).with_driver_clock(origin);
        nvme.now = Time::from_us(1);
        Rig { nvme, buffer, done: Vec::new(), outstanding: BTreeSet::new(), next_token: 0 }
    }

    /// Started and ready.
    pub(crate) fn ready(pci: SimulatedPci<D>, config: NvmeConfig) -> Rig<D> {
        Rig::new(pci, config).started()
    }

    pub(crate) fn started(self) -> Rig<D> {
        let mut rig = self;
        let at = rig.at();
        rig.nvme.driver.start(&mut rig.nvme.pci, at).unwrap();
        rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Starting);
        assert_eq!(rig.nvme.driver.state(), DriverState::Ready);
        // The requests for events arrive.
        let arrived = rig.nvme.now + TIMING.posted_write * 50;
        rig.run_while(|rig| rig.nvme.pci.next_event().is_some_and(|at| at < arrived));
        rig
    }

    /// The time of the driver's clock.
    pub(crate) fn at(&self) -> MonotonicTime {
        self.nvme.driver_now()
    }

    /// Goes to the next thing that happens; false where that is nothing.
    pub(crate) fn step(&mut self) -> bool {
        let before = self.done.len();
        let more = self.nvme.step(&mut self.done);
        self.settle(before);
        more
    }

    /// Strikes off what completed since `before`.
    pub(crate) fn settle(&mut self, before: usize) {
        for done in &self.done[before..] {
            assert!(self.outstanding.remove(&done.token.0), "{done:?} was answered twice");
        }
    }

    pub(crate) fn run_while(&mut self, mut going: impl FnMut(&Rig<D>) -> bool) {
        let mut still = 0;
        while going(self) {
            let before = self.nvme.now;
            assert!(self.nvme.now < Time::from_s(1000), "still {:?}", self.nvme.driver.state());
            if !self.step() {
                break;
            }
            still = if self.nvme.now == before { still + 1 } else { 0 };
            assert!(
                still < 10_000,
                "{:?} for ever, at {:?}",
                self.nvme.driver.state(),
                self.nvme.now
            );
        }
    }

    /// Until all requests complete.
    pub(crate) fn drain(&mut self) {
        self.run_while(|rig| !rig.outstanding.is_empty());
        assert!(self.outstanding.is_empty(), "{} lost", self.outstanding.len());
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    pub(crate) fn submit(&mut self, queue: u16, command: &IoCommand<'_>) -> Result<Token, IoError> {
        let token = Token(self.next_token);
        self.nvme.submit(queue, command, token)?;
        self.next_token += 1;
        self.outstanding.insert(token.0);
        Ok(token)
    }

    /// A read of `blocks` blocks into the buffer.
    pub(crate) fn read(&mut self, queue: u16, block: u64, blocks: u32) -> Result<Token, IoError> {
        let data = DataBuffer::Contiguous(self.buffer.address);
        self.submit(queue, &IoCommand::read(1, block, blocks, data))
    }

    /// No side touched memory of the other.
    pub(crate) fn check(&self) {
        assert_eq!(self.nvme.pci.faults(), []);
    }
}

impl Rig<Double> {
    pub(crate) fn device(&mut self) -> &mut Double {
        self.nvme.pci.device_mut()
    }

    /// The controller has nothing to complain of.
    pub(crate) fn check_double(&mut self) {
        self.check();
        assert_eq!(self.device().violations, Vec::<String>::new());
        assert_eq!(self.nvme.driver.counters().strays, 0);
    }
}
