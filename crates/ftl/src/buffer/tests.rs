//! One suite for every policy, then what is special about each.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ssdyno_block::units::Bytes;
use ssdyno_engine::Rng;

use super::*;

const PAGE: u32 = 4096;
const PAGES_PER_BLOCK: u32 = 4;
/// Not a multiple of the block: the last one is short.
const LOGICAL: u32 = 42;

fn config(policy: BufferPolicy, pages: u32) -> BufferConfig {
    BufferConfig {
        policy,
        size: Bytes(u64::from(pages * PAGE)),
        write_back_high: 1.0,
        ..BufferConfig::default()
    }
}

fn make(config: &BufferConfig) -> WriteBuffer {
    WriteBuffer::new(config, PAGE, PAGES_PER_BLOCK, LOGICAL).unwrap().unwrap()
}

fn cached(policy: BufferPolicy, pages: u32) -> WriteBuffer {
    make(&BufferConfig { cache_reads: true, ..config(policy, pages) })
}

/// The pages that one call hands out.
fn next(buffer: &mut WriteBuffer, force: bool) -> Vec<u32> {
    let mut out = Vec::new();
    let some = buffer.next_write_back(force, &mut out);
    assert_eq!(some, !out.is_empty());
    out.into_iter().map(|write_back| write_back.page).collect()
}

/// Writes `page`, with write-backs that take no time where there is no room; gives their pages.
fn write(buffer: &mut WriteBuffer, page: u32) -> Vec<u32> {
    let mut out = Vec::new();
    while buffer.write(page) == Admit::Full {
        let pages = next(buffer, false);
        assert!(!pages.is_empty(), "full, and nothing wants to go");
        pages.iter().for_each(|page| buffer.written(*page));
        out.extend(pages);
    }
    out
}

/// True on a hit; a miss fetches the page.
fn read(buffer: &mut WriteBuffer, page: u32) -> bool {
    let hit = buffer.read(page);
    if !hit {
        buffer.fill(page);
    }
    hit
}

#[test]
fn no_policy_no_buffer() {
    let config = BufferConfig::default();
    assert!(WriteBuffer::new(&config, PAGE, 64, 100).unwrap().is_none());
}

#[test]
fn refuses_what_cannot_be() {
    let key = |config: &BufferConfig| WriteBuffer::new(config, PAGE, 64, 100).unwrap_err().key;
    let good = config(BufferPolicy::Lru, 1);
    assert_eq!(key(&BufferConfig { size: Bytes(4095), ..good.clone() }), "buffer.size");
    let high = BufferConfig { write_back_high: 1.1, ..good.clone() };
    assert_eq!(key(&high), "buffer.write_back_high");
    let nan = BufferConfig { write_back_high: f64::NAN, ..good.clone() };
    assert_eq!(key(&nan), "buffer.write_back_high");
    let low = BufferConfig { write_back_high: 0.5, write_back_low: Some(0.6), ..good };
    assert_eq!(key(&low), "buffer.write_back_low");
}

#[test]
fn no_larger_than_the_device() {
    assert_eq!(make(&config(BufferPolicy::Fifo, 1000)).capacity(), LOGICAL);
}

#[test]
fn write_back_between_the_marks() {
    let config = BufferConfig {
        write_back_high: 0.8,
        write_back_low: Some(0.5),
        ..config(BufferPolicy::Fifo, 10)
    };
    let mut buffer = make(&config);
    for page in 0..7 {
        assert_eq!(buffer.write(page), Admit::Taken);
        assert!(next(&mut buffer, false).is_empty());
    }
    buffer.write(7);
    let mut pages = Vec::new();
    while buffer.next_write_back(false, &mut pages) {}
    assert_eq!(pages.len(), 3, "from 8 down to 5");
    assert_eq!((buffer.dirty(), buffer.in_write_back(), buffer.len()), (5, 3, 8));
    let mut rest = Vec::new();
    while buffer.next_write_back(true, &mut rest) {}
    assert_eq!(rest.len(), 5, "force takes all");
}

#[test]
fn zero_mark_writes_back_at_once() {
    let mut buffer = make(&BufferConfig { write_back_high: 0.0, ..config(BufferPolicy::Lru, 10) });
    buffer.write(3);
    assert_eq!(next(&mut buffer, false), [3]);
}

#[test]
fn a_page_written_again_on_its_way_goes_twice_in_order() {
    for policy in BufferPolicy::ALL {
        let mut buffer = make(&config(policy, 8));
        buffer.write(0);
        let first = next(&mut buffer, true);
        assert_eq!(buffer.write(0), Admit::Taken);
        assert_eq!(buffer.write(0), Admit::Absorbed);
        assert!(buffer.read(0));
        assert!(next(&mut buffer, true).is_empty(), "{policy:?}: two versions on their way");
        first.iter().for_each(|page| buffer.written(*page));
        assert_eq!(buffer.dirty(), 1);
        let second = next(&mut buffer, true);
        assert_eq!(second[0], 0);
        second.iter().for_each(|page| buffer.written(*page));
        assert!(buffer.is_empty(), "{policy:?}");
    }
}

#[test]
fn padding_keeps_newer_data_waiting() {
    let mut buffer = make(&config(BufferPolicy::Bplru, 8));
    buffer.write(1);
    let mut out = Vec::new();
    buffer.next_write_back(true, &mut out);
    let padding: Vec<bool> = out.iter().map(|write_back| write_back.padding).collect();
    assert_eq!(padding, [true, false, true, true]);
    assert_eq!(buffer.write(2), Admit::Taken, "its padding is on its way");
    for page in [1, 2, 0] {
        assert!(next(&mut buffer, true).is_empty());
        buffer.written(page);
    }
    assert!(next(&mut buffer, true).is_empty());
    buffer.written(3);
    assert_eq!(next(&mut buffer, true), [0, 1, 2, 3]);
}

#[test]
fn fifo_forgets_use() {
    let mut buffer = make(&config(BufferPolicy::Fifo, 3));
    for page in [1, 2, 3, 1] {
        write(&mut buffer, page);
    }
    assert_eq!(write(&mut buffer, 4), [1]);
    assert_eq!(write(&mut buffer, 5), [2]);
}

#[test]
fn lru_keeps_what_was_used() {
    let mut buffer = make(&config(BufferPolicy::Lru, 3));
    for page in [1, 2, 3, 1] {
        write(&mut buffer, page);
    }
    assert!(buffer.read(2));
    assert_eq!(write(&mut buffer, 4), [3]);
    assert_eq!(write(&mut buffer, 5), [1]);
}

#[test]
fn clock_gives_a_second_chance_once() {
    let mut buffer = make(&config(BufferPolicy::Clock, 3));
    for page in [1, 2, 3, 1, 1, 1] {
        write(&mut buffer, page);
    }
    assert_eq!(write(&mut buffer, 4), [2], "1 was used, the hand passes it");
    assert_eq!(write(&mut buffer, 5), [3]);
    assert_eq!(write(&mut buffer, 6), [1], "used often, but not since");
    for page in [4, 5, 6] {
        assert!(buffer.read(page));
    }
    assert_eq!(write(&mut buffer, 7), [4], "all used: the oldest after a full round");
}

#[test]
fn bplru_moves_whole_blocks() {
    let mut buffer = make(&config(BufferPolicy::Bplru, 6));
    for page in [1, 5, 9, 2, 6] {
        write(&mut buffer, page);
    }
    // Blocks 0 (1, 2), 1 (5, 6), 2 (9): 2 was not written for longest. Reads do not count.
    buffer.read(9);
    assert_eq!(next(&mut buffer, true), [8, 9, 10, 11]);
    assert_eq!(next(&mut buffer, true), [0, 1, 2, 3]);
    assert_eq!(next(&mut buffer, true), [4, 5, 6, 7]);
}

#[test]
fn bplru_lets_sequential_blocks_go_first() {
    let mut buffer = make(&config(BufferPolicy::Bplru, 10));
    for page in [1, 9, 4, 5, 6, 7] {
        write(&mut buffer, page);
    }
    assert_eq!(next(&mut buffer, true), [4, 5, 6, 7], "written last, from end to end");
    for page in 4..8 {
        buffer.written(page);
        buffer.write(page);
    }
    // Written again in its middle, it is no longer sequential.
    buffer.write(5);
    assert_eq!(next(&mut buffer, true), [0, 1, 2, 3]);
}

#[test]
fn bplru_ends_with_the_device() {
    let mut buffer = make(&config(BufferPolicy::Bplru, 10));
    buffer.write(41);
    assert_eq!(next(&mut buffer, true), [40, 41]);
}

#[test]
fn flush_waits_for_what_was_dirty_only() {
    for policy in BufferPolicy::ALL {
        let mut buffer = make(&config(policy, 20));
        for page in [0, 4, 8, 12] {
            buffer.write(page);
        }
        let on_its_way = next(&mut buffer, true);
        buffer.write(on_its_way[0]);
        buffer.begin_flush();
        assert_eq!(buffer.flush_left(), 4);
        buffer.write(16);
        buffer.trim(12);
        assert_eq!(buffer.flush_left(), 3, "{policy:?}: given up");
        on_its_way.iter().for_each(|page| buffer.written(*page));
        assert_eq!(buffer.flush_left(), 3, "the newer version counts too");
        let mut out = Vec::new();
        while buffer.next_write_back(true, &mut out) {}
        for WriteBack { page, .. } in out {
            // Written after the flush: not waited for.
            buffer.write(page);
            buffer.written(page);
        }
        assert_eq!(buffer.flush_left(), 0, "{policy:?}");
        assert!(buffer.dirty() > 0);
    }
}

/// Uniform random reads hit with probability size / space, whatever the policy. 200 000 reads,
/// seed 7: standard deviation 0.0011; tolerance four of them.
#[test]
fn uniform_reads_hit_with_the_share_that_fits() {
    for policy in BufferPolicy::ALL {
        let config = BufferConfig { cache_reads: true, ..config(policy, 250) };
        let mut buffer = WriteBuffer::new(&config, PAGE, 64, 1000).unwrap().unwrap();
        let mut rng = Rng::new(7, "buffer");
        let mut hits = 0;
        for round in 0..210_000 {
            let hit = read(&mut buffer, rng.below(1000) as u32);
            hits += u32::from(hit && round >= 10_000);
        }
        let ratio = f64::from(hits) / 200_000.0;
        assert!((ratio - 0.25).abs() < 0.0045, "{policy:?}: {ratio}");
    }
}

/// The same for writes that are absorbed, page policies only: a block policy keeps pages by the
/// company they are in.
#[test]
fn uniform_writes_are_absorbed_with_the_share_that_fits() {
    for policy in [BufferPolicy::Fifo, BufferPolicy::Lru, BufferPolicy::Clock] {
        let mut buffer = WriteBuffer::new(&config(policy, 250), PAGE, 64, 1000).unwrap().unwrap();
        let mut rng = Rng::new(7, "buffer");
        let mut hits = 0;
        for round in 0..210_000 {
            let page = rng.below(1000) as u32;
            let held = buffer.read(page);
            write(&mut buffer, page);
            hits += u32::from(held && round >= 10_000);
        }
        let ratio = f64::from(hits) / 200_000.0;
        assert!((ratio - 0.25).abs() < 0.0045, "{policy:?}: {ratio}");
    }
}

/// A loop one page longer than the buffer never hits FIFO or LRU: the textbook's worst case.
#[test]
fn a_loop_that_does_not_fit_never_hits() {
    for policy in [BufferPolicy::Fifo, BufferPolicy::Lru] {
        let mut buffer = cached(policy, 10);
        let hits = (0..1100).filter(|n| read(&mut buffer, n % 11)).count();
        assert_eq!(hits, 0, "{policy:?}");
        let hits = (0..100).filter(|n| read(&mut buffer, n % 10)).count();
        assert_eq!(hits, 90, "{policy:?}: every page once more, then all are there");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Read(u32),
    Write(u32),
    Trim(u32),
    Next(bool),
    /// The write-back with this number (modulo those on their way) arrives.
    Arrive(usize),
    Flush,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0..LOGICAL).prop_map(Step::Read),
        6 => (0..LOGICAL).prop_map(Step::Write),
        1 => (0..LOGICAL).prop_map(Step::Trim),
        3 => any::<bool>().prop_map(Step::Next),
        6 => any::<usize>().prop_map(Step::Arrive),
        1 => Just(Step::Flush),
    ];
    prop::collection::vec(step, 1..200)
}

/// What a buffer must do, without any policy: versions of each page.
#[derive(Default)]
struct Model {
    /// Newest version that the host wrote, pages that it did not trim.
    host: BTreeMap<u32, u64>,
    flash: BTreeMap<u32, u64>,
    /// Pages on their way: version, none for padding.
    on_way: Vec<(u32, Option<u64>)>,
    /// Pages that a flush waits for, with the version that must arrive.
    flush: BTreeMap<u32, u64>,
    version: u64,
}

impl Model {
    fn is_safe(&self, page: u32, version: u64) -> bool {
        self.flash.get(&page).is_some_and(|on_flash| *on_flash >= version)
    }

    fn arrive(&mut self, buffer: &mut WriteBuffer, which: usize) {
        if self.on_way.is_empty() {
            return;
        }
        let which = which % self.on_way.len();
        let (page, version) = self.on_way.swap_remove(which);
        if let Some(version) = version {
            let before = self.flash.insert(page, version);
            assert!(before.is_none_or(|before| before <= version), "versions overtook each other");
        }
        buffer.written(page);
    }

    fn hand_out(&mut self, out: Vec<WriteBack>) {
        for WriteBack { page, padding } in out {
            assert!(self.on_way.iter().all(|(other, _)| *other != page), "handed out twice");
            let version = self.host.get(&page).copied();
            assert!(!padding || version.is_none_or(|version| self.is_safe(page, version)));
            self.on_way.push((page, version.filter(|_| !padding)));
        }
    }

    /// Nothing that the host wrote is lost, and the counts are right.
    fn check(&mut self, buffer: &mut WriteBuffer) {
        let on_way = |page: u32, version: u64| self.on_way.contains(&(page, Some(version)));
        let mut dirty = 0;
        for (page, version) in &self.host {
            let safe = self.is_safe(*page, *version);
            assert!(safe || buffer.clone().read(*page), "page {page} is lost");
            dirty += u32::from(!safe && !on_way(*page, *version));
        }
        assert_eq!(buffer.dirty(), dirty);
        assert_eq!(buffer.in_write_back() as usize, self.on_way.len());
        assert!(buffer.len() <= buffer.capacity());
        let flash = &self.flash;
        self.flush.retain(|page, version| flash.get(page).is_none_or(|f| f < version));
        assert_eq!(buffer.flush_left() as usize, self.flush.len());
    }
}

fn run(config: &BufferConfig, steps: &[Step]) -> WriteBuffer {
    let mut buffer = make(config);
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Read(page) => {
                read(&mut buffer, *page);
            }
            Step::Write(page) => {
                let dirty = buffer.dirty();
                let admit = buffer.write(*page);
                if admit != Admit::Full {
                    model.version += 1;
                    model.host.insert(*page, model.version);
                } else if model.on_way.is_empty() {
                    let mut out = Vec::new();
                    assert!(buffer.next_write_back(false, &mut out), "stuck");
                    model.hand_out(out);
                }
                assert!(admit != Admit::Taken || buffer.dirty() == dirty + 1);
            }
            Step::Trim(page) => {
                buffer.trim(*page);
                model.host.remove(page);
                model.flush.remove(page);
                assert!(!buffer.read(*page));
            }
            Step::Next(force) => {
                let mut out = Vec::new();
                buffer.next_write_back(*force, &mut out);
                model.hand_out(out);
            }
            Step::Arrive(which) => model.arrive(&mut buffer, *which),
            Step::Flush => {
                buffer.begin_flush();
                let unsafe_ones = model.host.iter().filter(|(p, v)| !model.is_safe(**p, **v));
                model.flush = unsafe_ones.map(|(page, version)| (*page, *version)).collect();
            }
        }
        model.check(&mut buffer);
    }
    // Everything gets to flash in the end.
    loop {
        let mut out = Vec::new();
        while buffer.next_write_back(true, &mut out) {}
        model.hand_out(out);
        if model.on_way.is_empty() {
            break;
        }
        while !model.on_way.is_empty() {
            model.arrive(&mut buffer, 0);
        }
        model.check(&mut buffer);
    }
    assert_eq!((buffer.dirty(), buffer.flush_left()), (0, 0));
    assert!(model.host.iter().all(|(page, version)| model.is_safe(*page, *version)));
    buffer
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Every policy, any order of host and flash: no data is lost, no version overtakes another,
    /// nothing gets stuck, flushes wait for the necessary pages only, and counts are right.
    #[test]
    fn loses_nothing(
        steps in steps(),
        policy in prop::sample::select(&BufferPolicy::ALL[..]),
        pages in 1u32..20,
        marks in (0.0f64..=1.0, prop::option::of(0.0f64..=1.0)),
        cache_reads in any::<bool>(),
    ) {
        let config = BufferConfig {
            write_back_high: marks.0,
            write_back_low: marks.1.map(|share| share * marks.0),
            cache_reads,
            ..config(policy, pages)
        };
        let buffer = run(&config, &steps);
        prop_assert!(cache_reads || buffer.is_empty());
    }

    /// LRU is a stack algorithm (Mattson et al. 1970): what a small one holds, a larger one holds.
    #[test]
    fn lru_is_a_stack(pages in prop::collection::vec(0..LOGICAL, 1..300), small in 1u32..20) {
        let mut buffers = [cached(BufferPolicy::Lru, small), cached(BufferPolicy::Lru, small + 3)];
        for page in pages {
            let [in_small, in_large] = buffers.each_mut().map(|buffer| read(buffer, page));
            prop_assert!(in_large || !in_small);
        }
    }

    /// LRU holds the pages used last, for reads and for writes.
    #[test]
    fn lru_holds_the_latest(
        pages in prop::collection::vec(0..LOGICAL, 1..200),
        size in 1usize..20,
        writes in any::<bool>(),
    ) {
        let mut buffer = cached(BufferPolicy::Lru, size as u32);
        for page in &pages {
            if writes { write(&mut buffer, *page); } else { read(&mut buffer, *page); }
        }
        let mut latest = BTreeSet::new();
        for page in pages.iter().rev() {
            if latest.len() < size { latest.insert(*page); }
        }
        for page in 0..LOGICAL {
            prop_assert_eq!(buffer.read(page), latest.contains(&page), "{}", page);
        }
    }

    /// CLOCK against a list that is searched for the victim, as in the textbook.
    #[test]
    fn clock_as_in_the_textbook(pages in prop::collection::vec(0..LOGICAL, 1..200), size in 1usize..20) {
        let mut buffer = cached(BufferPolicy::Clock, size as u32);
        let (mut frames, mut hand): (Vec<(u32, bool)>, usize) = (Vec::new(), 0);
        for page in pages {
            let hit = frames.iter_mut().find(|frame| frame.0 == page);
            prop_assert_eq!(read(&mut buffer, page), hit.is_some());
            if let Some(frame) = hit {
                frame.1 = true;
            } else if frames.len() < size {
                frames.push((page, false));
            } else {
                while std::mem::take(&mut frames[hand].1) {
                    hand = (hand + 1) % size;
                }
                frames[hand] = (page, false);
                hand = (hand + 1) % size;
            }
        }
    }
}
