//! A device that copies, and the effects of the connector on it.

use alloc::vec;
use alloc::vec::Vec;

use ssdyno_spec::pci as spec;

use super::*;

mod early;

/// Register 0: source, 4: destination, 8: bytes and go, 12: copies done, 16: releases the pin.
/// Addresses count from `BASE`; a copy takes 1 us and ends with interrupt 0 or 1 in turn.
struct Copier {
    registers: [u32; 3],
    arrivals: Vec<(Time, u32, u32)>,
    due: Option<Time>,
    done: u32,
    release: bool,
    identity: Identity,
}

const BASE: u64 = 0x1_2000_0000;
const COPY: Time = Time::from_us(1);
const TIMING: PciTiming = PciTiming {
    posted_write: Time::from_ns(200),
    read_round_trip: Time::from_ns(900),
    interrupt: Time::from_us(2),
};

impl PciDevice for Copier {
    fn identity(&self) -> Identity {
        self.identity
    }
    fn bar_read(&mut self, _now: Time, _bar: u8, _offset: u32) -> u32 {
        self.done
    }
    fn bar_write(&mut self, now: Time, _bar: u8, offset: u32, value: u32) {
        self.arrivals.push((now, offset, value));
        match offset {
            8 => {
                self.registers[2] = value;
                self.due = Some(now + COPY);
            }
            16 => self.release = true,
            _ => self.registers[offset as usize / 4] = value,
        }
    }
    fn reset(&mut self, _: Time) {
        (self.registers, self.due, self.release) = (Default::default(), None, false);
    }
    fn advance(&mut self, now: Time, bus: &mut dyn BusMaster) {
        if core::mem::take(&mut self.release) {
            bus.deassert(now);
        }
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            let mut data = vec![0; self.registers[2] as usize];
            let moved = bus.read(BASE + u64::from(self.registers[0]), &mut data);
            if moved.is_ok() {
                let _ = bus.write(BASE + u64::from(self.registers[1]), &data);
            }
            bus.interrupt(now, (self.done % 2) as u16);
            self.done += 1;
        }
    }
    fn next_event(&self) -> Option<Time> {
        self.due
    }
}

fn card() -> SimulatedPci<Copier> {
    let identity = Identity {
        vendor: 0x1234,
        device: 0x5678,
        class: 0x01_0802,
        revision: 7,
        bar_bytes: [16384, 0, 0],
        msix_vectors: 40,
        msi_vectors: 8,
        interrupt_pin: 2,
    };
    let device = Copier {
        registers: [0; 3],
        arrivals: Vec::new(),
        due: None,
        done: 0,
        release: false,
        identity,
    };
    let mut pci = SimulatedPci::new(device, TIMING);
    let command = spec::COMMAND_MEMORY | spec::COMMAND_BUS_MASTER;
    pci.config_write(spec::COMMAND, u32::from(command));
    pci
}

fn copy(pci: &mut SimulatedPci<Copier>, now: Time, from: &DmaRegion, to: &DmaRegion, bytes: u32) {
    pci.set_now(now);
    pci.bar_write32(0, 0, (from.address - BASE) as u32);
    pci.bar_write32(0, 4, (to.address - BASE) as u32);
    pci.bar_write32(0, 8, bytes);
}

/// Runs to the end and says when which interrupt came.
fn run(pci: &mut SimulatedPci<Copier>) -> Vec<(Time, u16)> {
    let (mut log, mut got) = (Vec::new(), Vec::new());
    while let Some(now) = pci.next_event() {
        pci.advance(now);
        pci.take_interrupts(now, &mut got);
        log.extend(got.drain(..).map(|vector| (now, vector)));
        if log.len() > 20 {
            break;
        }
    }
    log
}

#[test]
fn write_copy_and_interrupt_take_their_times() {
    let mut pci = card();
    assert_eq!(pci.enable_interrupts(InterruptMode::MsiX, 64), Ok(40));
    let from = pci.dma_allocate(5000).unwrap();
    let to = pci.dma_allocate(5000).unwrap();
    pci.dma_write(&from, 4990, b"tail");
    copy(&mut pci, Time::from_us(10), &from, &to, 5000);
    let seen = run(&mut pci);
    let end = Time::from_us(10) + TIMING.posted_write + COPY;
    assert_eq!(seen, [(end + TIMING.interrupt, 0)]);
    let mut out = [0; 4];
    pci.dma_read(&to, 4990, &mut out);
    assert_eq!(&out, b"tail");
    let counters = pci.counters();
    assert_eq!((counters.mmio_writes, counters.mmio_reads, counters.interrupts), (3, 0, 1));
    assert_eq!((counters.dma_bytes_from_host, counters.dma_bytes_to_host), (5000, 5000));
    assert!(pci.faults().is_empty());
}

#[test]
fn read_waits_for_the_writes_before_it() {
    let mut pci = card();
    pci.set_now(Time::from_us(1));
    for value in 0..3 {
        pci.bar_write32(0, 4, value);
    }
    assert_eq!(pci.bar_read32(0, 12), 0);
    assert_eq!(pci.take_stall(), TIMING.read_round_trip);
    assert_eq!(pci.take_stall(), Time::ZERO);
    let arrived: Vec<u32> = pci.device().arrivals.iter().map(|a| a.2).collect();
    assert_eq!(arrived, [0, 1, 2]);
    // Slow writes hold a read up.
    let mut slow =
        SimulatedPci::new(card().device, PciTiming { posted_write: Time::from_us(5), ..TIMING });
    slow.config_write(spec::COMMAND, 0b110);
    slow.bar_write32(0, 4, 1);
    slow.bar_read32(0, 12);
    assert_eq!(slow.take_stall(), Time::from_us(5) + TIMING.read_round_trip / 2);
}

#[test]
fn writes_stay_in_order_when_cores_disagree_about_the_time() {
    let mut pci = card();
    pci.set_now(Time::from_us(3));
    pci.bar_write32(0, 0, 1);
    pci.set_now(Time::from_us(2));
    pci.bar_write32(0, 4, 2);
    run(&mut pci);
    let at = Time::from_us(3) + TIMING.posted_write;
    assert_eq!(pci.device().arrivals, [(at, 0, 1), (at, 4, 2)]);
}

#[test]
fn what_is_not_the_devices_is_recorded() {
    let mut pci = card();
    let from = pci.dma_allocate(4096).unwrap();
    let to = pci.dma_allocate(4096).unwrap();
    assert!(from.address.is_multiple_of(4096) && to.address.is_multiple_of(4096));
    // One byte past the end of the source.
    copy(&mut pci, Time::ZERO, &from, &to, 4097);
    run(&mut pci);
    assert_eq!(pci.faults()[0].fault, DmaFault { address: from.address, bytes: 4097 });
    assert!(!pci.faults()[0].freed);
    // Freed while the device uses it.
    copy(&mut pci, Time::from_us(50), &from, &to, 64);
    pci.dma_free(to);
    let another = pci.dma_allocate(4096).unwrap();
    assert_ne!(another.address, to.address, "addresses are not used again");
    run(&mut pci);
    let fault = pci.faults()[1];
    assert_eq!((fault.fault.address, fault.freed), (to.address, true));
    assert_eq!(fault.direction, DmaDirection::ToHost);
    assert_eq!(pci.memory_bytes(), 8192);
    // A function that was shut out is not a fault; one that was never let in is.
    pci.config_write(spec::COMMAND, u32::from(spec::COMMAND_MEMORY));
    copy(&mut pci, Time::from_us(100), &from, &another, 64);
    run(&mut pci);
    assert_eq!((pci.faults().len(), pci.counters().dma_bytes_to_host), (2, 0));
    let mut forgotten = SimulatedPci::new(card().device, TIMING);
    forgotten.config_write(spec::COMMAND, u32::from(spec::COMMAND_MEMORY));
    let region = forgotten.dma_allocate(4096).unwrap();
    copy(&mut forgotten, Time::ZERO, &region, &region, 64);
    run(&mut forgotten);
    assert_eq!(forgotten.faults().len(), 1);
}

#[test]
#[should_panic(expected = "was freed")]
fn driver_may_not_use_what_it_freed() {
    let mut pci = card();
    let region = pci.dma_allocate(64).unwrap();
    pci.dma_free(region);
    pci.dma_load32(&region, 0);
}

#[test]
#[should_panic(expected = "leave")]
fn driver_may_not_leave_its_region() {
    let mut pci = card();
    let region = pci.dma_allocate(64).unwrap();
    pci.dma_write(&region, 60, &[0; 5]);
}

#[test]
#[should_panic(expected = "does not decode memory")]
fn driver_must_switch_memory_decoding_on() {
    let mut pci = card();
    pci.config_write(spec::COMMAND, 0);
    pci.bar_read32(0, 0);
}

#[test]
fn memory_has_a_limit() {
    let mut pci = card();
    pci.set_memory_limit(8192);
    assert!(pci.dma_allocate(4097).is_ok());
    assert_eq!(pci.dma_allocate(1), Err(FunctionError::NoMemory { bytes: 1 }));
}

#[test]
fn masked_vector_waits_in_the_pending_bits() {
    let mut pci = card();
    pci.enable_interrupts(InterruptMode::MsiX, 2).unwrap();
    let msix = pci.msix.unwrap();
    pci.set_now(Time::ZERO);
    pci.bar_write32(msix.bar, 12, 1);
    let region = pci.dma_allocate(4096).unwrap();
    copy(&mut pci, Time::ZERO, &region, &region, 64);
    assert_eq!(run(&mut pci), []);
    assert_eq!(pci.bar_read32(msix.bar, msix.pending_offset), 1);
    pci.set_now(Time::from_us(100));
    pci.bar_write32(msix.bar, 12, 0);
    let unmasked = Time::from_us(100) + TIMING.posted_write;
    assert_eq!(run(&mut pci), [(unmasked + TIMING.interrupt, 0)]);
    assert_eq!(pci.bar_read32(msix.bar, msix.pending_offset), 0);
    // The same with the mask of the whole function.
    let control = pci.config_read(0x70);
    pci.config_write(0x70, control | 1 << 30);
    copy(&mut pci, Time::from_us(200), &region, &region, 64);
    assert_eq!(run(&mut pci), []);
    pci.set_now(Time::from_us(300));
    pci.config_write(0x70, control);
    assert_eq!(run(&mut pci), [(Time::from_us(300) + TIMING.interrupt, 1)]);
}

#[test]
fn pin_comes_again_until_released() {
    let mut pci = card();
    pci.enable_interrupts(InterruptMode::Pin, 9).unwrap();
    let region = pci.dma_allocate(4096).unwrap();
    copy(&mut pci, Time::ZERO, &region, &region, 64);
    let seen = run(&mut pci);
    assert!(seen.len() > 20, "a pin that nobody releases interrupts for ever");
    assert_eq!(seen[1].0 - seen[0].0, TIMING.interrupt);
    pci.set_now(seen[20].0);
    pci.bar_write32(0, 16, 0);
    assert!(run(&mut pci).len() <= 1);
    assert_eq!(pci.counters().interrupts, 1);
    // Switched off in the command register it stays where it is, until it is let through.
    let command = pci.config_read(spec::COMMAND);
    let off = u32::from(spec::COMMAND_INTERRUPT_DISABLE);
    pci.config_write(spec::COMMAND, command | off);
    copy(&mut pci, Time::from_ms(1), &region, &region, 64);
    assert_eq!(run(&mut pci), []);
    pci.set_now(Time::from_ms(2));
    pci.config_write(spec::COMMAND, command);
    assert_eq!(run(&mut pci)[0].0, Time::from_ms(2) + TIMING.interrupt);
    assert_eq!(pci.counters().interrupts, 2);
}

#[test]
fn interrupts_get_lost_and_late() {
    let mut pci = card();
    pci.enable_interrupts(InterruptMode::MsiX, 2).unwrap();
    pci.inject_interrupt(0, Fault::Drop);
    pci.inject_interrupt(1, Fault::Delay(Time::from_ms(1)));
    let region = pci.dma_allocate(4096).unwrap();
    for us in [0, 10, 20] {
        copy(&mut pci, Time::from_us(us), &region, &region, 64);
        while pci.next_event().is_some_and(|t| t < Time::from_us(us + 10)) {
            let now = pci.next_event().unwrap();
            pci.advance(now);
            if pci.bus.interrupts.next() <= now {
                break;
            }
        }
    }
    let end = TIMING.posted_write + COPY + TIMING.interrupt;
    assert_eq!(run(&mut pci), [(Time::from_us(20) + end, 0), (Time::from_us(1010) + end, 1)]);
}

#[test]
fn stuck_device_goes_on_later() {
    let mut pci = card();
    pci.enable_interrupts(InterruptMode::Msi, 5).unwrap();
    pci.inject(Time::from_us(1), Fault::Hang(Time::from_ms(1) - Time::from_us(1)));
    let region = pci.dma_allocate(4096).unwrap();
    copy(&mut pci, Time::from_us(2), &region, &region, 64);
    assert_eq!(pci.bar_read32(0, 12), 0, "registers can be read");
    assert_eq!(run(&mut pci), [(Time::from_ms(1) + COPY + TIMING.interrupt, 0)]);
}

/// Work that a standstill postponed happens when the next standstill replaces it: never in the past, and not before the
/// end of the new one.
#[test]
fn a_standstill_replaced_by_another_puts_nothing_into_the_past() {
    for (next, resumed) in [
        ((Time::MAX, Time::MAX), Time::from_us(40)),
        ((Time::from_us(50), Time::from_us(60)), Time::from_us(40)),
        ((Time::from_us(3), Time::from_us(5)), Time::from_us(40)),
        ((Time::from_us(30), Time::from_us(70)), Time::from_us(70)),
    ] {
        for told in [false, true] {
            let mut pci = card();
            pci.enable_interrupts(InterruptMode::Msi, 5).unwrap();
            let region = pci.dma_allocate(4096).unwrap();
            // One copy is under way, the next one's registers are written, when it begins to hang.
            copy(&mut pci, Time::ZERO, &region, &region, 64);
            pci.inject(Time::from_us(1), Fault::Hang(Time::MAX));
            copy(&mut pci, Time::from_us(2), &region, &region, 64);
            pci.advance(Time::from_us(40));
            assert_eq!(pci.next_event(), None);
            if told {
                pci.set_now(Time::from_us(40));
            }
            pci.inject(next.0, Fault::Hang(next.1 - next.0));
            assert_eq!(pci.next_event(), Some(resumed), "{next:?}");
            let messages = run(&mut pci);
            let first = resumed + TIMING.interrupt;
            assert_eq!(messages.first(), Some(&(first, 0)), "{next:?}");
            assert!(messages.iter().all(|(at, _)| *at >= first), "{messages:?}");
        }
    }
}

#[test]
fn pulled_device_reads_as_ones() {
    let mut pci = card();
    pci.enable_interrupts(InterruptMode::MsiX, 2).unwrap();
    let region = pci.dma_allocate(4096).unwrap();
    pci.inject(Time::from_ns(700), Fault::Remove);
    copy(&mut pci, Time::ZERO, &region, &region, 64);
    assert_eq!(run(&mut pci), []);
    assert!(pci.is_gone());
    assert_eq!(pci.bar_read32(0, 12), !0);
    assert_eq!(pci.config_read(spec::VENDOR_ID), !0);
    pci.bar_write32(0, 8, 64);
    assert_eq!(pci.next_event(), None);
    assert_eq!(pci.enable_interrupts(InterruptMode::MsiX, 1), Err(FunctionError::Gone));
}

#[test]
fn configuration_space_says_what_the_device_is() {
    let mut pci = card();
    assert_eq!(pci.config_read(spec::VENDOR_ID), 0x5678_1234);
    assert_eq!(pci.config_read(spec::CLASS_REVISION), 0x0108_0207);
    assert_eq!(pci.config_read(spec::INTERRUPT_LINE) >> 8, 2);
    // Sizing: ones are written, the size comes back; the table got a BAR of its own.
    for (bar, bytes) in [(0, 16384_u64), (2, 4096)] {
        let offset = spec::BAR0 + 4 * bar;
        pci.config_write(offset, !0);
        pci.config_write(offset + 4, !0);
        let low = pci.config_read(offset);
        let size = u64::from(pci.config_read(offset + 4)) << 32 | u64::from(low & !0xf);
        assert_eq!(!size + 1, bytes);
        assert_eq!(low & 0xf, 0b100);
        assert_eq!(pci.bar_bytes(bar as u8), bytes);
    }
    let mut found = Vec::new();
    let mut at = pci.config_read(spec::CAPABILITIES) as u16;
    while at != 0 {
        let head = pci.config_read(at);
        found.push(head as u8);
        at = (head >> 8) as u16 & 0xff;
    }
    assert_eq!(
        found,
        [
            spec::CAPABILITY_POWER_MANAGEMENT,
            spec::CAPABILITY_MSI,
            spec::CAPABILITY_MSIX,
            spec::CAPABILITY_PCIE
        ]
    );
    assert_eq!(pci.config_read(0x70) >> 16 & 0x7ff, 39, "size of the MSI-X table, less one");
    assert_eq!(pci.config_read(0x104), 0, "no extended capabilities");
}

/// For any limit, it stops where the host sees something, and never reports a time beyond the events that happened.
#[test]
fn running_on_stops_where_the_host_sees_something() {
    let mut pci = card();
    pci.enable_interrupts(InterruptMode::MsiX, 2).unwrap();
    let region = pci.dma_allocate(4096).unwrap();
    copy(&mut pci, Time::from_us(1), &region, &region, 64);
    let end = Time::from_us(1) + TIMING.posted_write + COPY;
    let (mut reached, mut got) = (Vec::new(), Vec::new());
    while pci.next_event().is_some() {
        let at = pci.run(Time::MAX);
        pci.take_interrupts(at, &mut got);
        reached.push((at, got.len()));
    }
    // The copy is done and its message sent, then that arrives.
    assert_eq!(reached, [(end, 0), (end + TIMING.interrupt, 1)]);
    assert_eq!(pci.run(Time::MAX), end, "nothing more happens");
    // Where nobody looks into memory before the message it stops for that alone.
    pci.watch_memory(false);
    let now = Time::from_us(9);
    copy(&mut pci, now, &region, &region, 64);
    assert_eq!(pci.run(Time::MAX), now + TIMING.posted_write + COPY + TIMING.interrupt);
}
