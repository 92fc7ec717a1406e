//! The drive against closed forms.

mod layout;

use ssdyno_block::conformance::check_target;
use ssdyno_block::{BlockTarget, Completion, Request, Rng, Time, Token};
use ssdyno_device::DeviceReport;

use crate::{Disk, DiskConfig};

/// A drive of one zone whose every seek takes 5 ms, with 100 sectors on a track and 10 ms a turn, and
/// keys of its own.
pub(crate) fn plain(keys: &str) -> DiskConfig {
    let text = format!(
        "[disk]\nrpm = 6000\nsurfaces = 2\nhead_switch = \"1ms\"\nbus = \"1000GB/s\"\n{keys}\n\
         [disk.seek]\npoints = [[1, \"5ms\"], [1000, \"5ms\"]]\n\
         [[disk.zones]]\ncylinders = 1000\nsectors_per_track = 100\n"
    );
    DiskConfig::parse(&text).unwrap()
}

const CACHE: &str = "[disk.cache]\nsegments = 4\nsegment = \"128KiB\"\nread_ahead = \"128KiB\"\n\
                     write_back = \"1MiB\"\nwrite_extents = 64\n";

fn disk(keys: &str) -> Disk {
    Disk::new(&plain(keys), 1).unwrap()
}

/// Keeps `depth` of `requests` outstanding; gives the completions.
pub(crate) fn drive(
    disk: &mut Disk,
    depth: usize,
    requests: impl IntoIterator<Item = Request>,
) -> Vec<Completion> {
    let (mut now, mut out, mut inside, mut seen) = (Time::ZERO, Vec::new(), 0, 0);
    for (number, request) in requests.into_iter().enumerate() {
        while inside >= depth {
            now = disk.next_event().unwrap();
            disk.reap(now, &mut out);
            inside -= out.len() - seen;
            seen = out.len();
        }
        disk.submit(now, request, Token(number as u32)).unwrap();
        inside += 1;
    }
    while let Some(at) = disk.next_event() {
        disk.reap(at, &mut out);
    }
    out
}

fn random(disk: &Disk, seed: u64, count: u64, read: bool) -> Vec<Request> {
    let mut rng = Rng::new(seed, "requests");
    let sectors = disk.capacity_bytes() / 512;
    let request = |at: u64| if read { Request::read(at, 512) } else { Request::write(at, 512) };
    (0..count).map(|_| request(rng.below(sectors) * 512)).collect()
}

fn mean_ms(completions: &[Completion]) -> f64 {
    completions.last().unwrap().completed.as_s_f64() * 1e3 / completions.len() as f64
}

#[test]
fn keeps_the_contract_of_a_target() {
    for keys in
        ["", CACHE, "scheduler = \"elevator\"\n", "zero_latency = true\nscheduler = \"fcfs\"\n"]
    {
        check_target(|| {
            let mut config = plain(keys);
            config.disk.depth = 64;
            Disk::new(&config, 1).unwrap()
        });
    }
}

/// Random reads one at a time wait half a turn on average: 5 ms of seek but in one of a thousand, 5 ms
/// of rotation, 0.1 ms of transfer. 20 000 requests: five standard deviations of the mean of a
/// uniform wait are 0.1 ms.
#[test]
fn a_random_read_takes_seek_and_half_a_turn() {
    let mut disk = disk("");
    let requests = random(&disk, 7, 20_000, true);
    let mean = mean_ms(&drive(&mut disk, 1, requests));
    let expected = 5.0 * 0.999 + 5.0 + 0.1;
    assert!((mean - expected).abs() < 0.11, "{mean} ms, {expected} expected");
}

/// Write-through takes the same, and a settle of 1 ms more.
#[test]
fn a_write_through_settles_first() {
    let mut disk = disk("write_settle = \"1ms\"\n");
    let requests = random(&disk, 7, 20_000, false);
    let mean = mean_ms(&drive(&mut disk, 1, requests));
    assert!((mean - 11.1).abs() < 0.11, "{mean} ms");
}

/// Sequential reads run at the rate of the medium, less the skews: with 11 sectors for a head (1 ms and
/// one more) and 51 for a cylinder, two tracks take 262 sectors of time.
#[test]
fn sequential_reads_run_at_the_rate_of_the_medium() {
    for (depth, size) in [(1, 100 * 512), (1, 8 * 512), (8, 8 * 512)] {
        let mut disk = disk(CACHE);
        let count = 200 * 200 * 512 / size;
        let requests = (0..count).map(|i| Request::read(i * size, size as u32));
        let out = drive(&mut disk, depth, requests);
        let end = out.last().unwrap().completed.as_s_f64();
        let expected = 200.0 * 0.0262;
        assert!((end / expected - 1.0).abs() < 0.01, "{end} s of {expected} at {depth} x {size}");
    }
}

/// What was read stays in its segment, and comes at once.
#[test]
fn a_hit_takes_no_turn() {
    let mut disk = disk(CACHE);
    let again = [0, 0, 4096, 0].map(|at| Request::read(at, 512));
    let out = drive(&mut disk, 1, again);
    assert!(out[0].completed > Time::ZERO);
    assert!(out[3].completed - out[0].completed < Time::from_us(850), "{out:?}");
}

#[test]
fn written_data_complete_in_the_cache_and_flush_waits_for_the_medium() {
    let mut disk = disk(CACHE);
    let write = Request::write(512 * 1000, 512);
    let out = drive(&mut disk, 1, [write, Request::flush(), Request::flush()]);
    assert!(out[0].completed < Time::from_us(1));
    // The seek, up to a turn, and the sector; the second flush finds nothing to do.
    assert!(out[1].completed > Time::from_ms(5) && out[1].completed < Time::from_us(15_101));
    assert_eq!(out[1].completed, out[2].completed);
}

/// The cache has room for 2048 sectors, but for 64 extents only. From the 65th on, a write of one sector waits for the arm.
#[test]
fn a_write_waits_when_all_extents_are_used() {
    let waits = |count: u64| {
        let mut disk = disk(CACHE);
        drive(&mut disk, 1, (0..count).map(|n| Request::write(n * 512_000, 512)));
        DeviceReport::of(&disk).buffer_waits()
    };
    assert_eq!((waits(64), waits(100)), (0, 36));
}

/// Each policy must be better than the one before it at depth 32 (Worthington, Ganger and Patt,
/// SIGMETRICS 1994): SPTF sees the rotation, which is most of the time here.
#[test]
fn policies_are_in_their_order() {
    let time = |policy: &str| {
        let keys = format!("scheduler = \"{policy}\"\n");
        let mut config = plain(&keys);
        config.disk.seek = toml::from_str("points = [[1, \"1ms\"], [1000, \"9ms\"]]").unwrap();
        let mut disk = Disk::new(&config, 3).unwrap();
        let requests = random(&disk, 5, 4_000, true);
        mean_ms(&drive(&mut disk, 32, requests))
    };
    let [fcfs, elevator, sstf, sptf] = ["fcfs", "elevator", "sstf", "sptf"].map(time);
    assert!(
        sptf < 0.8 * sstf && sstf < 1.02 * elevator && elevator < 0.9 * fcfs,
        "{fcfs} {elevator} {sstf} {sptf} ms"
    );
}

#[test]
fn a_spindle_at_rest_comes_to_speed_first() {
    let keys = "[disk.power]\nstandby_after = \"1s\"\nspin_up_time = \"10s\"\n";
    let mut disk = disk(keys);
    let mut out = Vec::new();
    disk.submit(Time::from_s(5), Request::read(0, 512), Token(1)).unwrap();
    while let Some(at) = disk.next_event() {
        disk.reap(at, &mut out);
    }
    assert!(out[0].completed > Time::from_s(15) && out[0].completed < Time::from_ms(15_100));
}

#[test]
fn what_cannot_be_is_refused_by_its_key() {
    let wrong = |change: &dyn Fn(&mut DiskConfig)| {
        let mut config = plain(CACHE);
        change(&mut config);
        Disk::new(&config, 1).unwrap_err().key
    };
    assert_eq!(wrong(&|c| c.disk.rpm = 0.0), "disk.rpm");
    assert_eq!(wrong(&|c| c.disk.blocks = Some(200_001)), "disk.blocks");
    assert_eq!(wrong(&|c| c.disk.zones[0].slips = vec![5, 5]), "disk.zones[0].slips");
    assert_eq!(wrong(&|c| c.disk.zones[0].spares = 200_000), "disk.zones[0].spares");
    assert_eq!(wrong(&|c| c.disk.zones[0].unused = 200_000), "disk.zones[0].unused");
    assert_eq!(
        wrong(&|c| c.disk.zones[0].spare_cylinders = Some(0)),
        "disk.zones[0].spare_cylinders"
    );
    assert_eq!(wrong(&|c| c.disk.seek.points.clear()), "disk.seek");
    assert_eq!(wrong(&|c| c.disk.seek.points.reverse()), "disk.seek.points");
    assert_eq!(wrong(&|c| c.disk.sector.0 = 520), "disk.sector");
    assert_eq!(wrong(&|c| c.disk.zones.clear()), "disk.zones");
}
