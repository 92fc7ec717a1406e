//! What is measured, and how it is printed.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ssdyno_block::{Request, Status, Time, Token};
use ssdyno_controller_ring::{RingCard, RingConfig};
use ssdyno_driver_nvme::{DataBuffer, IoCommand, IoResult, NvmeConfig};
use ssdyno_driver_ring::{RingDriver, RingDriverOptions, SimulatedRing, Submission};
use ssdyno_pci::{DmaRegion, PciFunction, PciTiming, SimulatedPci};
use ssdyno_vfio::VfioUserFunction;

use crate::device::{self, DeviceProcess};
use crate::nvme::Nvme;
use crate::ring::Ring;

type Failure = Box<dyn std::error::Error>;

/// Bytes of a request.
const BYTES: u32 = 4096;
/// Pages that are written, and read again and again.
const PAGES: u32 = 1024;
/// How long each load lasts.
const LENGTH: Duration = Duration::from_secs(2);
/// Something that lasts so long hangs.
const HANGS: Duration = Duration::from_secs(30);

/// A driver that reads and writes pages, one for each token.
trait Pages {
    fn function(&mut self) -> &mut VfioUserFunction;
    fn submit(&mut self, write: bool, page: u32, address: u64, token: u32) -> Result<(), Failure>;
    /// Waits for what happens next; appends the tokens of what succeeded.
    fn step(&mut self, done: &mut Vec<u32>) -> Result<(), Failure>;
}

impl Pages for Ring {
    fn function(&mut self) -> &mut VfioUserFunction {
        self.driver.function_mut()
    }
    fn submit(&mut self, write: bool, page: u32, address: u64, token: u32) -> Result<(), Failure> {
        let make = if write { Request::write } else { Request::read };
        Ok(Ring::submit(self, make(u64::from(page * BYTES), BYTES), token, address)?)
    }
    fn step(&mut self, done: &mut Vec<u32>) -> Result<(), Failure> {
        Ring::step(self, HANGS);
        for completion in self.done.drain(..) {
            if completion.status != Status::Ok {
                return Err(format!("{completion:?}").into());
            }
            done.push(completion.token.0);
        }
        Ok(())
    }
}

impl Pages for Nvme {
    fn function(&mut self) -> &mut VfioUserFunction {
        &mut self.function
    }
    fn submit(&mut self, write: bool, page: u32, address: u64, token: u32) -> Result<(), Failure> {
        let (block, data) = (u64::from(page * BYTES / 512), DataBuffer::Contiguous(address));
        let make = if write { IoCommand::write } else { IoCommand::read };
        Ok(Nvme::submit(self, 1, &make(1, block, BYTES / 512, data), token)?)
    }
    fn step(&mut self, done: &mut Vec<u32>) -> Result<(), Failure> {
        Nvme::step(self, HANGS);
        for completion in self.done.drain(..) {
            if !matches!(completion.result, IoResult::Completed(status) if status.is_success()) {
                return Err(format!("{completion:?}").into());
            }
            done.push(completion.token.0);
        }
        Ok(())
    }
}

/// What is written to a page.
fn pattern(page: u32) -> Vec<u8> {
    (0..BYTES / 4).flat_map(|at| (page << 10 | at).to_le_bytes()).collect()
}

/// Keeps `depth` requests under way while `goes_on`, page after page; `before` and `after` see each
/// with the place of its data. Gives the latencies.
fn load(
    driver: &mut dyn Pages,
    memory: &DmaRegion,
    depth: u32,
    write: bool,
    mut goes_on: impl FnMut(u32) -> bool,
) -> Result<Vec<Duration>, Failure> {
    let mut latencies = Vec::new();
    let mut started = vec![(Instant::now(), 0); depth as usize];
    let mut free: Vec<u32> = (0..depth).collect();
    let (mut next, mut done) = (0, Vec::new());
    loop {
        while let Some(slot) = free.pop_if(|_| goes_on(next)) {
            let page = next % PAGES;
            if write {
                driver.function().dma_write(memory, slot * BYTES, &pattern(page));
            }
            started[slot as usize] = (Instant::now(), page);
            driver.submit(write, page, memory.address + u64::from(slot * BYTES), slot)?;
            next += 1;
        }
        if free.len() == depth as usize {
            return Ok(latencies);
        }
        driver.step(&mut done)?;
        for slot in done.drain(..) {
            let (start, page) = started[slot as usize];
            latencies.push(start.elapsed());
            let mut data = vec![0; BYTES as usize];
            driver.function().dma_read(memory, slot * BYTES, &mut data);
            if data != pattern(page) {
                return Err(format!("page {page} holds something else").into());
            }
            free.push(slot);
        }
    }
}

fn measure(name: &str, driver: &mut dyn Pages) -> Result<(), Failure> {
    let memory = driver.function().dma_allocate(32 * BYTES)?;
    load(driver, &memory, 32, true, |written| written < PAGES)?;
    for depth in [1, 32] {
        let start = Instant::now();
        let mut latencies = load(driver, &memory, depth, false, |_| start.elapsed() < LENGTH)?;
        let rate = latencies.len() as f64 / start.elapsed().as_secs_f64();
        latencies.sort_unstable();
        let quantile = |per_cent: usize| {
            let at = latencies.len() * per_cent / 100;
            latencies.get(at).map_or(0.0, |latency: &Duration| latency.as_secs_f64() * 1e6)
        };
        let (p50, p99) = (quantile(50), quantile(99));
        println!("{name:<6}{depth:>6}{:>10}{p50:>10.1}{p99:>10.1}{rate:>12.0}", latencies.len());
    }
    Ok(())
}

/// The same driver over the same card on the simulated connector, which costs nothing here: how long
/// the card itself takes for one read.
fn card_alone() -> Result<Time, Failure> {
    let zero = Time::ZERO;
    let timing = PciTiming { posted_write: zero, read_round_trip: zero, interrupt: zero };
    let card = RingCard::new(&RingConfig::parse(device::RING)?, 1)?;
    let driver = RingDriver::new(SimulatedPci::new(card, timing), RingDriverOptions::default())?;
    let mut ring = SimulatedRing::new(driver);
    let request = Request::read(0, BYTES);
    ring.submit(zero, Submission { request, token: Token(0), address: None, urgent: false })?;
    let mut done = Vec::new();
    while done.is_empty() && ring.step(&mut done) {}
    done.pop().map(|done| done.completed.time()).ok_or_else(|| "the read is not answered".into())
}

/// A device in a process of its own: this program again.
fn start(what: &str, socket: &Path) -> Result<(DeviceProcess, VfioUserFunction), Failure> {
    let mut program = Command::new(std::env::current_exe()?);
    program.arg("part").arg(what).arg(socket);
    let mut process = DeviceProcess::start(&mut program, socket)?;
    let function = process.connect()?;
    Ok((process, function))
}

/// Both drivers, one after the other.
pub(crate) fn both() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let alone = card_alone()?.as_ns_f64() / 1000.0;
    println!("simulated, a connector without cost: the ring card takes {alone:.1} us for a read");
    println!("reads of 4 KiB, each compared with what was written before; times in us");
    println!("{:<6}{:>6}{:>10}{:>10}{:>10}{:>12}", "", "depth", "reads", "p50", "p99", "reads/s");
    let (process, function) = start("ring", &folder.path().join("ring"))?;
    let options = RingDriverOptions { own_pages: false, ..RingDriverOptions::default() };
    measure("ring", &mut Ring::new(function, options)?)?;
    drop(process);
    let (process, function) = start("nvme", &folder.path().join("nvme"))?;
    measure("nvme", &mut Nvme::start(function, NvmeConfig::default())?)?;
    drop(process);
    Ok(())
}
