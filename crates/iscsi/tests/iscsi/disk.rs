//! A simulated hard disk, and a device with sectors of 4 KiB, served as what they are.

use ssdyno_block::Time;
use ssdyno_device::array::ArrayConfig;
use ssdyno_device::{Device, DeviceKind, DeviceKinds};
use ssdyno_disk::{Disk, DiskConfig};
use ssdyno_iscsi::{
    BlockUnits, DiskOptions, IscsiServer, LogicalUnits, Portal, TaskResponse, UnitOptions,
};
use ssdyno_scsi::{Nexus, cdb};
use ssdyno_ssd::{Config, Ssd};

use crate::device::{self, Blocks, execute};

/// 512-byte sectors, 7200 rpm, a write cache of 4 MiB.
const HDS722525: &str = include_str!("../../../../presets/devices/hds722525.toml");
/// 15 000 rpm, no write cache.
const ST3300657SS: &str = include_str!("../../../../presets/devices/st3300657ss.toml");
/// 4 KiB sectors, 7200 rpm, a write cache of 64 MiB.
const EXOS_X20: &str = include_str!("../../../../presets/devices/exos-x20.toml");
const GOOD: u8 = 0;
const CHECK_CONDITION: u8 = 2;
const RESERVATION_CONFLICT: u8 = 0x18;

fn options() -> DiskOptions {
    DiskOptions {
        product: "HDS722525VLAT80".to_owned(),
        serial: "VNR40EC4".to_owned(),
        ..DiskOptions::default()
    }
}

/// A disk and an initiator that has heard of the power on.
struct Bench<D: Device> {
    units: BlockUnits<D>,
    nexus: Nexus,
}

fn simulated(file: &str) -> Disk {
    let config: DiskConfig = toml::from_str(file).unwrap();
    Disk::new(&config, 7).unwrap()
}

fn disk(file: &str) -> Bench<Disk> {
    Bench::new(simulated(file), &options())
}

/// A disk with such blocks at a free port of the loopback address.
pub(crate) fn serve(blocks: Blocks, unit: UnitOptions) -> IscsiServer {
    let file = match blocks {
        Blocks::Small => HDS722525.to_owned(),
        // The suite takes LBA FFFFFFFFh for one behind the end.
        Blocks::Large => EXOS_X20.replace("blocks = 4882956288", "blocks = 488295628"),
    };
    let options = DiskOptions { unit, ..options() };
    device::served(BlockUnits::over(simulated(&file), &options).unwrap(), Portal::OfConnection)
}

/// A small SSD without an NVMe controller, which trims.
fn ssd() -> Ssd {
    Ssd::new(&Config::parse(include_str!("../../../ssd/tests/small_nvme.toml")).unwrap(), 7)
        .unwrap()
}

/// Such an SSD there.
pub(crate) fn serve_ssd(unit: UnitOptions) -> IscsiServer {
    let options = DiskOptions { unit, ..options() };
    device::served(BlockUnits::over(ssd(), &options).unwrap(), Portal::OfConnection)
}

const KINDS: DeviceKinds = DeviceKinds::new(&[
    DeviceKind::of::<ArrayConfig>(&[]),
    DeviceKind::of::<DiskConfig>(ssdyno_disk::presets::DISKS),
]);

/// Two disks of 512-byte sectors, 64 KiB each in turns.
fn array() -> Bench<Box<dyn Device>> {
    let text = "[array]\nstripe = \"64KiB\"\nmembers = [\"hds722525\", \"hds722525\"]";
    Bench::new(KINDS.parse(text).unwrap().build(7).unwrap(), &options())
}

impl<D: Device> Bench<D> {
    fn new(device: D, options: &DiskOptions) -> Bench<D> {
        let mut units = BlockUnits::over(device, options).unwrap();
        let nexus = units.attach(b"initiator").unwrap();
        let mut bench = Bench { units, nexus };
        assert_eq!(bench.refused(&[0; 6], &[]), (6, 0x2900), "POWER ON");
        bench
    }

    fn run(&mut self, cdb: &[u8], out: &[u8]) -> (TaskResponse, Vec<u8>) {
        execute(&mut self.units, self.nexus, cdb, out)
    }

    /// What a command that succeeds returns.
    fn good(&mut self, cdb: &[u8], out: &[u8]) -> Vec<u8> {
        let (answer, data) = self.run(cdb, out);
        assert_eq!((answer.status, answer.sense.summary()), (GOOD, None), "{cdb:02x?}");
        data
    }

    /// Sense key and additional sense of one that does not.
    fn refused(&mut self, cdb: &[u8], out: &[u8]) -> (u8, u16) {
        let (answer, _) = self.run(cdb, out);
        assert_eq!(answer.status, CHECK_CONDITION, "{cdb:02x?}");
        let (key, additional) = answer.sense.summary().unwrap();
        (key, additional.0)
    }

    /// How long a command takes the device.
    fn time_of(&mut self, cdb: &[u8], out: &[u8]) -> Time {
        let before = self.units.now();
        self.good(cdb, out);
        self.units.now() - before
    }

    fn page(&mut self, page: u8) -> Vec<u8> {
        let data = self.good(&[0x12, 1, page, 1, 0, 0], &[]);
        assert_eq!(data[1], page);
        assert_eq!(usize::from(u16::from_be_bytes([data[2], data[3]])) + 4, data.len());
        data
    }
}

fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(data[at..at + 4].try_into().unwrap())
}

fn u64_at(data: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(data[at..at + 8].try_into().unwrap())
}

/// A CDB of 10 bytes with a range.
fn ten(opcode: u8, flags: u8, lba: u32, blocks: u16) -> [u8; 10] {
    let mut cdb = [opcode, flags, 0, 0, 0, 0, 0, 0, 0, 0];
    cdb[2..6].copy_from_slice(&lba.to_be_bytes());
    cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

/// `blocks` blocks of `block_bytes`, no two alike.
fn pattern(seed: u8, blocks: usize, block_bytes: usize) -> Vec<u8> {
    (0..blocks * block_bytes).map(|at| seed ^ (at / block_bytes) as u8 ^ (at % 251) as u8).collect()
}

/// SPC-4, 6.6 and 7.8; SBC-3, 6.6.
#[test]
fn a_disk_says_what_a_disk_is() {
    let mut bench = disk(HDS722525);
    let inquiry = bench.good(&[0x12, 0, 0, 0, 96, 0], &[]);
    assert_eq!((inquiry[0], inquiry[1]), (0, 0), "a direct access block device, not removable");
    assert_eq!(&inquiry[8..32], b"SSDyno  HDS722525VLAT80 ");
    assert_eq!(bench.page(0x00)[4..], [0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2]);
    assert_eq!(&bench.page(0x80)[4..], b"VNR40EC4");
    let names = bench.page(0x83);
    assert_eq!((names[4], names[5], names[7]), (1, 3, 8), "binary, NAA, eight bytes");
    assert_eq!(names[8] >> 4, 3, "locally assigned");
    assert_eq!(bench.page(0x86)[5], 0x07, "simple, ordered and head-of-queue tasks");
    let rpm = bench.page(0xb1);
    assert_eq!(u16::from_be_bytes([rpm[4], rpm[5]]), 7200);
    assert_eq!(bench.page(0xb2)[4..8], [0; 4], "no provisioning");
    let limits = bench.page(0xb0);
    assert_eq!((u32_at(&limits, 20), u32_at(&limits, 24)), (0, 0), "no UNMAP");
    assert_eq!(bench.refused(&[0x12, 1, 0xb7, 1, 0, 0], &[]), (5, 0x2400));
    // READ CAPACITY (10) and (16).
    let capacity = bench.good(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[]);
    assert_eq!((u32_at(&capacity, 0), u32_at(&capacity, 4)), (488_397_167, 512));
    let long = bench.good(&[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0], &[]);
    assert_eq!((u64_at(&long, 0), u32_at(&long, 8)), (488_397_167, 512));
    assert_eq!((long[13], long[14]), (0, 0), "physical as logical blocks; LBPME is clear");
}

#[test]
fn a_large_disk_has_blocks_of_4_kib_and_more_than_32_bits() {
    let mut bench = disk(EXOS_X20);
    let capacity = bench.good(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[]);
    assert_eq!((u32_at(&capacity, 0), u32_at(&capacity, 4)), (u32::MAX, 4096));
    let last = 4_882_956_287_u64;
    let long = bench.good(&[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0], &[]);
    assert_eq!((u64_at(&long, 0), u32_at(&long, 8)), (last, 4096));
    let block = pattern(3, 1, 4096);
    bench.good(cdb::write16(last, 1, false).as_bytes(), &block);
    assert_eq!(bench.good(cdb::read16(last, 1).as_bytes(), &[]), block);
    assert_eq!(bench.refused(cdb::read16(last, 2).as_bytes(), &[]), (5, 0x2100));
}

/// What one length of CDB writes the others read, over three kinds of devices.
#[test]
fn all_lengths_of_read_and_write_meet() {
    fn check<D: Device>(mut bench: Bench<D>, block_bytes: usize) {
        let six = |opcode: u8| [opcode, 0, 0, 40, 3, 0];
        let twelve = |opcode: u8, flags: u8| [opcode, flags, 0, 0, 0, 40, 0, 0, 0, 3, 0, 0];
        let sixteen =
            |opcode: u8, flags: u8| [opcode, flags, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0, 3, 0, 0];
        let (read6, write6) = (six(0x08), six(0x0a));
        let (read10, write10) = (ten(0x28, 8, 40, 3), ten(0x2a, 8, 40, 3));
        let (read12, write12) = (twelve(0xa8, 8), twelve(0xaa, 8));
        let (read16, write16) = (sixteen(0x88, 8), sixteen(0x8a, 8));
        let writes: [&[u8]; 4] = [&write6, &write10, &write12, &write16];
        let reads: [&[u8]; 4] = [&read6, &read10, &read12, &read16];
        for (number, write) in (1..).zip(writes) {
            let data = pattern(number, 3, block_bytes);
            bench.good(write, &data);
            for read in reads {
                assert!(bench.good(read, &[]) == data, "{write:02x?} {read:02x?}");
            }
        }
        // One that was never written reads as zeroes; one that goes across commands of 1 MiB.
        assert!(bench.good(&ten(0x28, 0, 50, 1), &[]).iter().all(|byte| *byte == 0));
        let blocks = (3 << 20) / block_bytes;
        let data = pattern(9, blocks, block_bytes);
        bench.good(&ten(0x2a, 0, 1000, blocks as u16), &data);
        assert!(bench.good(&ten(0x28, 0, 1000, blocks as u16), &[]) == data);
    }
    check(disk(HDS722525), 512);
    check(disk(EXOS_X20), 4096);
    check(Bench::new(ssd(), &options()), 512);
    check(array(), 512);
}

/// A 15 000 rpm disk turns in 4 ms and seeks 3.4 ms on average; so 200 random reads take 3.4 + 2 ms and the
/// electronics on average (tolerance 10 %).
#[test]
fn time_passes_as_the_disk_says() {
    let mut bench = disk(ST3300657SS);
    let mut random = ssdyno_block::Rng::new(11, "reads");
    let mut total = Time::ZERO;
    for _ in 0..200 {
        let lba = random.below(585_937_500);
        total += bench.time_of(&ten(0x28, 0, lba as u32, 1), &[]);
    }
    let mean_ms = total.as_ps() as f64 / 200.0 / 1e9;
    assert!((5.0..6.2).contains(&mean_ms), "{mean_ms} ms");
}

/// WCE of the caching mode page: on by default where there is a cache; off, a write ends on the medium.
#[test]
fn the_write_cache_is_switched_by_mode_select() {
    let mut bench = disk(HDS722525);
    let caching = |bench: &mut Bench<Disk>, control: u8| {
        bench.good(&[0x1a, 8, control << 6 | 8, 0, 255, 0], &[])[4 + 2]
    };
    assert_eq!([0, 1, 2].map(|control| caching(&mut bench, control)), [4, 4, 4]);
    assert_eq!(bench.refused(&[0x1a, 8, 0xc8, 0, 255, 0], &[]), (5, 0x3900), "nothing is saved");
    let block = pattern(1, 1, 512);
    let write = |lba| ten(0x2a, 0, lba, 1);
    let cached = bench.time_of(&write(400_000_000), &block);
    assert!(cached < Time::from_ms(1), "{cached:?}");
    bench.good(&ten(0x35, 0, 0, 0), &[]);
    // Forced, it takes the medium though the cache is on.
    let forced = bench.time_of(&ten(0x2a, 8, 100_000_000, 1), &block);
    assert!(forced > Time::from_ms(2), "{forced:?}");

    let mut page = vec![0; 4 + 20];
    (page[4], page[5]) = (8, 18);
    bench.good(&[0x15, 0x10, 0, 0, 24, 0], &page);
    assert_eq!([0, 1, 2].map(|control| caching(&mut bench, control)), [0, 4, 4]);
    let through = bench.time_of(&write(300_000_000), &block);
    assert!(through > Time::from_ms(2), "{through:?}");
    // Another bit of the page cannot be changed.
    page[6] = 1;
    assert_eq!(bench.refused(&[0x15, 0x10, 0, 0, 24, 0], &page), (5, 0x2600));
    // Another initiator hears of the change.
    let other = bench.units.attach(b"other").unwrap();
    let first = std::mem::replace(&mut bench.nexus, other);
    assert_eq!(bench.refused(&[0; 6], &[]), (6, 0x2900));
    bench.good(&[0; 6], &[]);
    bench.nexus = first;
    page[6] = 4;
    bench.good(&[0x15, 0x10, 0, 0, 24, 0], &page);
    bench.nexus = other;
    assert_eq!(bench.refused(&[0; 6], &[]), (6, 0x2a01), "MODE PARAMETERS CHANGED");
}

#[test]
fn a_disk_without_a_cache_has_no_wce() {
    let mut bench = disk(ST3300657SS);
    for control in [0, 1, 2] {
        assert_eq!(bench.good(&[0x1a, 8, control << 6 | 8, 0, 255, 0], &[])[6], 0);
    }
    // There is nothing to flush, which takes no time.
    assert_eq!(bench.time_of(&ten(0x35, 0, 0, 0), &[]), Time::ZERO);
}

#[test]
fn verify_reads_the_medium_and_compares() {
    let mut bench = disk(ST3300657SS);
    let data = pattern(5, 4, 512);
    bench.good(&ten(0x2e, 0, 80, 4), &data);
    let alone = bench.time_of(&ten(0x2f, 0, 500_000_000, 1), &[]);
    assert!(alone > Time::from_us(200), "{alone:?}");
    bench.good(&ten(0x2f, 2, 80, 4), &data);
    let mut other = data.clone();
    other[513] ^= 1;
    assert_eq!(bench.refused(&ten(0x2f, 2, 80, 4), &other), (0xe, 0x1d00));
    bench.good(&ten(0x41, 0, 100, 3), &data[..512]);
    assert_eq!(bench.good(&ten(0x28, 0, 102, 1), &[]), data[..512]);
}

/// SBC-3, 4.20 and 5.25.
#[test]
fn a_stopped_disk_wants_to_be_started() {
    let mut bench = disk(HDS722525);
    bench.good(&[0x1b, 0, 0, 0, 0, 0], &[]);
    assert_eq!(bench.refused(&[0; 6], &[]), (2, 0x0402));
    assert_eq!(bench.refused(&ten(0x28, 0, 0, 1), &[]), (2, 0x0402));
    bench.good(&[0x12, 0, 0, 0, 96, 0], &[]);
    bench.good(&[0x1b, 0, 0, 0, 1, 0], &[]);
    bench.good(&[0; 6], &[]);
    // Standby: REQUEST SENSE says so, and a read ends it.
    bench.good(&[0x1b, 0, 0, 0, 0x30, 0], &[]);
    assert_eq!(bench.good(&[0x03, 0, 0, 0, 18, 0], &[])[12..14], [0x5e, 0x04]);
    bench.good(&ten(0x28, 0, 0, 1), &[]);
    assert_eq!(bench.good(&[0x03, 0, 0, 0, 18, 0], &[])[12..14], [0, 0]);
}

#[test]
fn unmap_is_for_devices_that_trim() {
    // Blocks 8 to 23, and 100.
    let mut list = vec![0, 38, 0, 32, 0, 0, 0, 0];
    for (lba, blocks) in [(8_u64, 16_u32), (100, 1)] {
        list.extend(lba.to_be_bytes());
        list.extend(blocks.to_be_bytes());
        list.extend([0; 4]);
    }
    let unmap = |length: usize| [0x42, 0, 0, 0, 0, 0, 0, 0, length as u8, 0];
    let mut bench = disk(HDS722525);
    assert_eq!(bench.refused(&unmap(list.len()), &list), (5, 0x2000), "there is no UNMAP");
    let unit = UnitOptions { physical_block_bytes: 4096, ..UnitOptions::default() };
    let mut bench = Bench::new(ssd(), &DiskOptions { unit, ..options() });
    assert!(u32_at(&bench.page(0xb0), 20) > 0, "UNMAP");
    let capacity = bench.good(&[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0], &[]);
    assert_eq!((capacity[13], capacity[14] >> 6), (3, 3), "4 KiB physical blocks; LBPME, LBPRZ");
    assert_eq!(bench.page(0xb1)[4..6], [0, 1], "nothing turns");
    assert_eq!(bench.page(0xb2)[5] >> 5, 7, "UNMAP and WRITE SAME");
    let data = pattern(7, 32, 512);
    bench.good(&ten(0x2a, 0, 0, 32), &data);
    bench.good(&ten(0x2a, 0, 100, 1), &data[..512]);
    bench.good(&unmap(list.len()), &list);
    let after = bench.good(&ten(0x28, 0, 0, 32), &[]);
    assert!(after[..8 * 512] == data[..8 * 512] && after[24 * 512..] == data[24 * 512..]);
    assert!(after[8 * 512..24 * 512].iter().all(|byte| *byte == 0));
    assert!(bench.good(&ten(0x28, 0, 100, 1), &[]).iter().all(|byte| *byte == 0));
}

/// An array says which transfers suit it, and turns as its members do.
#[test]
fn an_array_tells_its_stripe() {
    let mut bench = array();
    let limits = bench.page(0xb0);
    assert_eq!(u16::from_be_bytes([limits[6], limits[7]]), 128, "64 KiB of a member");
    assert_eq!(u32_at(&limits, 12), 256, "of two members");
    let rpm = bench.page(0xb1);
    assert_eq!(u16::from_be_bytes([rpm[4], rpm[5]]), 7200);
    assert_eq!(bench.page(0xb2)[4..8], [0; 4], "no provisioning");
}

#[test]
fn reservations_and_bad_commands() {
    let mut bench = disk(ST3300657SS);
    let other = bench.units.attach(b"other").unwrap();
    let first = bench.nexus;
    bench.good(&[0x16, 0, 0, 0, 0, 0], &[]);
    bench.nexus = other;
    assert_eq!(bench.refused(&[0; 6], &[]), (6, 0x2900));
    let (answer, _) = bench.run(&ten(0x28, 0, 0, 1), &[]);
    assert_eq!(answer.status, RESERVATION_CONFLICT);
    bench.nexus = first;
    bench.good(&[0x17, 0, 0, 0, 0, 0], &[]);
    bench.nexus = other;
    bench.good(&ten(0x28, 0, 0, 1), &[]);
    // Protection, a range beyond the end, an invalid operation code, and drive commands.
    assert_eq!(bench.refused(&ten(0x28, 0x20, 0, 1), &[]), (5, 0x2400));
    assert_eq!(bench.refused(&ten(0x28, 0, 585_937_500, 1), &[]), (5, 0x2100));
    assert_eq!(bench.refused(&ten(0x2a, 0, 585_937_499, 2), &pattern(1, 2, 512)), (5, 0x2100));
    assert_eq!(bench.refused(&[0xc1, 0, 0, 0, 0, 0], &[]), (5, 0x2000));
    assert_eq!(bench.refused(&[0x04, 0, 0, 0, 0, 0], &[]), (5, 0x2000), "no FORMAT UNIT");
    assert_eq!(bench.refused(&[0x48, 2, 0, 0, 0, 0, 0, 0, 0, 0], &[]), (5, 0x2000), "no SANITIZE");
    // The data of REPORT SUPPORTED OPERATION CODES for both.
    let support = |opcode| [0xa3, 0x0c, 1, opcode, 0, 0, 0, 0, 0, 64, 0, 0];
    assert_eq!(bench.good(&support(0x28), &[])[1] & 7, 3);
    assert_eq!(bench.good(&support(0x04), &[])[1] & 7, 1);
}

#[test]
fn logs_are_those_of_a_device_that_tells_nothing() {
    let mut bench = disk(ST3300657SS);
    let sense = |page: u8| [0x4d, 0, 0x40 | page, 0, 0, 0, 0, 0, 64, 0];
    assert_eq!(bench.good(&sense(0), &[])[4..], [0x00, 0x0d, 0x2f]);
    assert_eq!(bench.good(&sense(0x0d), &[])[9], 0xff, "no temperature");
    assert_eq!(bench.good(&sense(0x2f), &[])[8..11], [0, 0, 0xff], "no failure");
    assert_eq!(bench.refused(&sense(0x11), &[]), (5, 0x2400), "no solid state media");
}
