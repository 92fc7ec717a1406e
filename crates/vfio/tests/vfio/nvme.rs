//! The NVMe driver, unchanged, over a controller in another process.

use std::time::{Duration, Instant};

use ssdyno_block::Time;
use ssdyno_driver_nvme::{DataBuffer, InterruptChoice, IoCommand, IoResult, NvmeConfig};
use ssdyno_pci::{DmaRegion, InterruptMode, PciFunction};
use ssdyno_spec::nvme::NvmeStatus;

use crate::device;
use crate::wall_nvme::Nvme;

const HANGS: Duration = Duration::from_secs(60);
const DEPTH: u32 = 16;
/// Bytes of a command's data: more than two pages, so that it needs a list.
const BYTES: u32 = 12 << 10;
const BLOCKS: u32 = BYTES / 512;

fn config() -> NvmeConfig {
    NvmeConfig {
        // More vectors than descriptors fit into a message.
        cores: 20,
        io_timeout: Time::from_s(30),
        admin_timeout: Time::from_s(30),
        ..NvmeConfig::default()
    }
}

/// What command `number` writes.
fn pattern(number: u32) -> Vec<u8> {
    (0..BYTES / 4).flat_map(|at| (number << 12 ^ at).to_le_bytes()).collect()
}

/// A load that keeps [`DEPTH`] commands under way on both queues; `command` makes them, `check` sees
/// each that is done with the place of its data.
fn load(
    nvme: &mut Nvme,
    memory: &DmaRegion,
    count: u32,
    mut before: impl FnMut(&mut Nvme, u32, u32),
    command: impl Fn(u32, u64) -> IoCommand<'static>,
    mut check: impl FnMut(&mut Nvme, u32, u32, IoResult),
) {
    let start = Instant::now();
    let mut free: Vec<u32> = (0..DEPTH).collect();
    let mut under_way = std::collections::BTreeMap::new();
    let mut next = 0;
    while next < count || !under_way.is_empty() {
        assert!(start.elapsed() < HANGS, "{} are not answered", under_way.len());
        while next < count
            && let Some(slot) = free.pop()
        {
            before(nvme, next, slot * BYTES);
            let address = memory.address + u64::from(slot * BYTES);
            let queue = 1 + (next % u32::from(nvme.driver.queues())) as u16;
            nvme.submit(queue, &command(next, address), next).unwrap();
            under_way.insert(next, slot);
            next += 1;
        }
        nvme.step(Duration::from_millis(100));
        for done in std::mem::take(&mut nvme.done) {
            let slot = under_way.remove(&done.token.0).expect("each is answered once");
            check(nvme, done.token.0, slot * BYTES, done.result);
            free.push(slot);
        }
    }
}

fn fine(result: IoResult) {
    assert_eq!(result, IoResult::Completed(NvmeStatus::SUCCESS));
}

fn write_flush_and_read(mode: InterruptMode, what: &str, count: u32) {
    let (mut process, _folder) = device(what);
    let mut nvme = Nvme::start(process.connect().unwrap(), config()).unwrap();
    assert_eq!(nvme.driver.interrupt_mode(), Some(mode));
    assert!(nvme.driver.identity().is_some_and(|identity| identity.model[..6] == *b"SSDyno"));
    assert_eq!(nvme.driver.queues(), 20);
    let namespace = nvme.driver.namespaces()[0].id;
    let memory = nvme.function.dma_allocate(DEPTH * BYTES).unwrap();
    let place = |number: u32| u64::from(number) * u64::from(BLOCKS);
    let data = |address| DataBuffer::Contiguous(address);
    load(
        &mut nvme,
        &memory,
        count,
        |nvme, number, at| nvme.function.dma_write(&memory, at, &pattern(number)),
        |number, address| IoCommand::write(namespace, place(number), BLOCKS, data(address)),
        |_, _, _, result| fine(result),
    );
    load(
        &mut nvme,
        &memory,
        1,
        |_, _, _| (),
        |_, _| IoCommand::flush(namespace),
        |_, _, _, result| fine(result),
    );
    load(
        &mut nvme,
        &memory,
        count,
        |nvme, _, at| nvme.function.dma_write(&memory, at, &[0x99; BYTES as usize]),
        |number, address| IoCommand::read(namespace, place(number), BLOCKS, data(address)),
        |nvme, number, at, result| {
            fine(result);
            let mut read = vec![0; BYTES as usize];
            nvme.function.dma_read(&memory, at, &mut read);
            assert!(read == pattern(number), "command {number}");
        },
    );
    let counters = nvme.driver.counters();
    assert_eq!((counters.resets, counters.strays), (0, 0));
}

#[test]
fn thousands_of_commands_with_msix() {
    write_flush_and_read(InterruptMode::MsiX, "nvme", 1000);
}

#[test]
fn commands_with_msi() {
    write_flush_and_read(InterruptMode::Msi, "nvme msix=0", 200);
}

#[test]
fn commands_with_the_pin() {
    write_flush_and_read(InterruptMode::Pin, "nvme msix=0 msi=0", 200);
}

/// Without interrupts, and the controller is killed: everything is answered once.
#[test]
fn a_controller_that_dies_answers_every_command() {
    let (mut process, _folder) = device("nvme");
    let choice = NvmeConfig { interrupts: InterruptChoice::Only(InterruptMode::MsiX), ..config() };
    let mut nvme = Nvme::start(process.connect().unwrap(), choice).unwrap();
    let memory = nvme.function.dma_allocate(DEPTH * BYTES).unwrap();
    let mut failed = 0;
    load(
        &mut nvme,
        &memory,
        DEPTH,
        |_, number, _| {
            if number == DEPTH - 1 {
                process.kill();
            }
        },
        |number, address| {
            let data = DataBuffer::Contiguous(address);
            IoCommand::write(1, u64::from(number * BLOCKS), BLOCKS, data)
        },
        |_, _, _, result| failed += u32::from(result == IoResult::Abandoned),
    );
    assert!(failed > 0);
    assert_eq!(nvme.submit(1, &IoCommand::flush(1), 0), Err(ssdyno_driver_nvme::IoError::Gone));
}
