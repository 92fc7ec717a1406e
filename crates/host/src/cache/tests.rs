//! The page cache against models and closed forms.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use ssdyno_block::conformance::check_target;
use ssdyno_block::{BlockTarget, Request, Time, Token};
use ssdyno_engine::Rng;

use super::pages::{Found, Pages};
use crate::tests::{FixedPort, HOST, Target, load, plan};
use crate::{CompletionWait, CpuCause, Host, HostConfig, ThreadMode};

/// The cache as lists: slow, and plainly right.
#[derive(Default)]
struct Model {
    clean: VecDeque<u64>,
    flags: BTreeMap<u64, [bool; 3]>,
}

impl Model {
    fn settle(&mut self, page: u64, capacity: usize) {
        if self.flags[&page] == [false; 3] {
            self.flags.remove(&page);
            self.clean.push_back(page);
        }
        self.shrink(capacity);
    }
    fn shrink(&mut self, capacity: usize) {
        while self.clean.len() + self.flags.len() > capacity && self.clean.pop_front().is_some() {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Any mix of uses, fills, changes and writes: the same pages are there as in the model.
    #[test]
    fn pages_are_those_of_the_model(
        capacity in 1usize..20, steps in prop::collection::vec((0u8..5, 0u64..30), 1..400),
    ) {
        let (mut pages, mut model) = (Pages::new(capacity), Model::default());
        for (n, (what, page)) in steps.into_iter().enumerate() {
            let known = model.flags.get(&page).copied();
            match (what, known) {
                (0, _) => {
                    let found = pages.use_page(page);
                    let clean = model.clean.iter().position(|p| *p == page);
                    if let Some(at) = clean {
                        model.clean.remove(at);
                        model.clean.push_back(page);
                    }
                    let expected = match (clean, known) {
                        (Some(_), _) => Found::Here,
                        (None, Some([true, ..])) => Found::Filling,
                        (None, Some(_)) => Found::Here,
                        (None, None) => Found::Missing,
                    };
                    prop_assert_eq!(found, expected);
                    if found == Found::Missing {
                        pages.fill(page);
                        model.flags.insert(page, [true, false, false]);
                        model.shrink(capacity);
                    }
                }
                (1, Some([true, ..])) => {
                    pages.filled(page);
                    if let Some(flags) = model.flags.get_mut(&page) {
                        flags[0] = false;
                    }
                    model.settle(page, capacity);
                }
                (2, _) => {
                    let fresh = pages.make_dirty(page, Time::from_ns(n as u64));
                    model.clean.retain(|p| *p != page);
                    let flags = model.flags.entry(page).or_default();
                    prop_assert_eq!(fresh, !std::mem::replace(&mut flags[1], true));
                    model.shrink(capacity);
                }
                (3, Some([_, true, writing])) => {
                    let count = pages.write_run(page, 1);
                    prop_assert_eq!(count, u64::from(!writing));
                    if let (1, Some(flags)) = (count, model.flags.get_mut(&page)) {
                        (flags[1], flags[2]) = (false, true);
                    }
                }
                (4, Some([.., true])) => {
                    pages.written(page);
                    if let Some(flags) = model.flags.get_mut(&page) {
                        flags[2] = false;
                    }
                    model.settle(page, capacity);
                }
                _ => {}
            }
            prop_assert_eq!(pages.len(), model.clean.len() + model.flags.len());
            let unwritten = model.flags.values().map(|f| usize::from(f[1]) + usize::from(f[2]));
            prop_assert_eq!(pages.unwritten(), unwritten.sum::<usize>());
        }
        // Every dirty page is found by its age, once its last write is over.
        for (page, flags) in &model.flags {
            if flags[2] {
                pages.written(*page);
            }
        }
        let dirty: BTreeSet<u64> =
            model.flags.iter().filter(|(_, f)| f[1]).map(|(page, _)| *page).collect();
        let found: BTreeSet<u64> = std::iter::from_fn(|| pages.take_old(Time::MAX)).collect();
        prop_assert_eq!(found, dirty);
    }
}

fn cached(more: &str) -> HostConfig {
    let text = HOST.replace("copy = \"1GB/s\"", "copy = \"1GB/s\"\n[cache]") + more;
    HostConfig::parse(&text).unwrap()
}

fn host(config: &HostConfig, mode: ThreadMode, servers: usize) -> Target {
    let port = FixedPort::new(1, 1, false, 4095, servers);
    Target(Host::new(config, plan(1, mode), port, 1).unwrap())
}

/// A closed loop of the requests that `next` gives, one at a time; the end of the last one.
fn one_by_one(host: &mut Target, total: u32, mut next: impl FnMut(u32) -> Request) -> Time {
    let (mut now, mut last, mut batch) = (Time::ZERO, Time::ZERO, Vec::new());
    host.submit(now, next(0), Token(0)).unwrap();
    let mut issued = 1;
    while let Some(at) = host.next_event() {
        now = at;
        host.reap(now, &mut batch);
        for done in batch.drain(..) {
            last = now;
            if issued < total {
                host.submit(now, next(issued), done.token).unwrap();
                issued += 1;
            }
        }
    }
    assert_eq!(host.0.account().delivered_by_core[0], u64::from(total));
    assert_eq!(host.0.cached_pages().unwrap().1, 0, "everything dirty is written in the end");
    last
}

#[test]
fn a_cached_host_keeps_the_contract_of_targets() {
    for more in [
        "size = \"1MiB\"\nread_ahead = \"32KiB\"",
        "size = \"64KiB\"\ncluster = \"16KiB\"\nsync = true\npage_cost = \"100ns\"\n[file_system]\njournal = \"ordered\"",
        "size = \"128KiB\"\ncluster = \"8KiB\"\npage = \"8KiB\"\nflush_interval = \"1ms\"\nexpire = \"2ms\"\n[file_system]\njournal = \"data\"\ncommit_interval = \"1ms\"",
        "size = \"256KiB\"\ncluster = \"4KiB\"\nread_ahead = \"64KiB\"\n[file_system]\nextent = \"64KiB\"",
    ] {
        let mut config = cached(more);
        config.stack.extra_switches = 0.4;
        for mode in [ThreadMode::Sync, ThreadMode::Async, ThreadMode::Batch] {
            let all = [CompletionWait::Interrupt, CompletionWait::Poll, CompletionWait::Hybrid];
            for waiting in if mode == ThreadMode::Sync { &all[..] } else { &all[..1] } {
                let waiting = *waiting;
                check_target(|| {
                    let port = FixedPort::new(2, 2, false, 8, 2);
                    let plan = crate::HostUse { waiting, ..plan(2, mode) };
                    Target(Host::new(&config, plan, port, 1).unwrap())
                });
            }
        }
    }
}

/// A page that is there costs system call, pages, copy and switches back and forth: no device.
#[test]
fn a_hit_costs_its_copy_and_no_device() {
    let config =
        cached("size = \"1MiB\"\npage_cost = \"70ns\"\n[file_system]\nrequest_cost = \"30ns\"");
    let mut host = host(&config, ThreadMode::Sync, 1);
    let (_, all) = load(&mut host, Request::read(0, 8192), 1, 100);
    let gap = all[50].completed - all[49].completed;
    // System call, two pages and one of metadata, file system, copy of 8 KiB at 1 GB/s.
    assert_eq!(gap, Time::from_ns(100 + 3 * 70 + 30 + 8192));
    let account = host.0.account();
    let cache = account.cache.unwrap();
    assert_eq!((cache.pages_read, cache.pages_hit, cache.metadata_reads), (200, 198, 1));
    assert_eq!(account.commands, 2, "the page of metadata, and the data");
    assert_eq!(account.cpu.of(CpuCause::Copy), Time::from_ns(8192 * 100));
}

/// Least recently used under uniform reads: in the long run a page is there with probability
/// cache / file.
#[test]
fn uniform_reads_hit_with_the_share_of_the_cache() {
    for (seed, share) in [(1, 0.25), (2, 0.5)] {
        let file = 512u64;
        let config = cached(&format!("size = \"{}KiB\"", file as f64 * share * 4.0));
        let mut host = host(&config, ThreadMode::Sync, 1);
        let mut rng = Rng::new(seed, "hits");
        let n = 40_000;
        one_by_one(&mut host, n, |_| Request::read(rng.below(file) * 4096, 4096));
        let cache = host.0.account().cache.unwrap();
        // The misses that fill the cache first, and five standard errors.
        let ratio = cache.pages_hit as f64 / (f64::from(n) - file as f64 * share);
        let error = 5.0 * (share * (1.0 - share) / f64::from(n)).sqrt() + 0.004;
        assert!((ratio - share).abs() < error, "seed {seed}: {ratio}, not {share}");
    }
}

/// Read-ahead turns one device access a request into one a window, and overlaps it with the copies.
#[test]
fn sequential_reads_are_fetched_ahead() {
    let run = |more: &str| {
        let mut host = host(&cached(more), ThreadMode::Sync, 1);
        let end = one_by_one(&mut host, 4_000, |n| Request::read(u64::from(n) * 4096, 4096));
        (end.as_ns_f64() / 1e3 / 4_000.0, host.0.account().clone())
    };
    let (alone, without) = run("size = \"1MiB\"");
    let (ahead, with) = run("size = \"1MiB\"\nread_ahead = \"64KiB\"");
    assert!(alone > 14.0, "device (10 us) and copy (4.1 us) one after another: {alone}");
    // 16 pages a command of 10 us: the copies are what is left.
    assert!(ahead < 6.0, "{ahead}");
    assert_eq!(without.commands, 4_000);
    assert!((with.commands as f64 / (4_000.0 / 16.0) - 1.0).abs() < 0.05, "{}", with.commands);
    let cache = with.cache.unwrap();
    assert!(cache.pages_hit > 3_990, "{cache:?}");
}

/// Small sequential writes leave as clusters; the device sees each byte once.
#[test]
fn small_writes_are_gathered() {
    let config =
        cached("size = \"4MiB\"\ncluster = \"64KiB\"\ndirty_background = 0.1\ndirty_limit = 0.2");
    let mut host = host(&config, ThreadMode::Sync, 1);
    one_by_one(&mut host, 8_192, |n| Request::write(u64::from(n) * 2048, 2048));
    let cache = host.0.account().cache.unwrap();
    assert_eq!(cache.pages_dirtied, cache.pages_written);
    // Half a page at a time: the first half of each page reads it. Few are written twice.
    assert!((4_096..4_200).contains(&cache.pages_written), "{cache:?}");
    assert_eq!(host.0.port().writes, cache.pages_written * 4096);
    assert!(cache.write_commands < 300, "{cache:?}");
}

/// Beyond the dirty limit writers go at the speed of the device, below it at that of their copies.
#[test]
fn writers_are_held_to_the_device_beyond_the_limit() {
    let config = cached(
        "size = \"4MiB\"\ncluster = \"4KiB\"\nwrite_depth = 4\ndirty_background = 0.25\ndirty_limit = 0.5",
    );
    let run = |total: u32| {
        let mut host = host(&config, ThreadMode::Sync, 1);
        let mut rng = Rng::new(3, "writes");
        let end = one_by_one(&mut host, total, |_| Request::write(rng.below(1 << 18) * 4096, 4096));
        (end.as_ns_f64() / 1e3, host.0.account().cache.unwrap())
    };
    let (end, cache) = run(250);
    assert!(end / 250.0 < 5.0, "copy of 4.1 us and system call: {end}");
    assert_eq!((cache.throttled, cache.pages_written), (0, cache.pages_dirtied));
    let (end, cache) = run(20_000);
    // 512 pages may be dirty; the others wait for 10 us each at one server.
    let device = (20_000.0 - 512.0) * 10.0;
    assert!(cache.throttled > 10_000 && (end / device - 1.0).abs() < 0.02, "{end} v. {device}");
    assert!(cache.dirty_pages_max <= 514, "{cache:?}");
}

/// Old pages leave by the timer alone: the first look after they have expired.
#[test]
fn old_pages_are_written_by_the_timer() {
    let config = cached("size = \"4MiB\"\nflush_interval = \"5s\"\nexpire = \"30s\"");
    let mut host = host(&config, ThreadMode::Sync, 1);
    host.submit(Time::from_s(1), Request::write(0, 4096), Token(0)).unwrap();
    let mut out = Vec::new();
    host.reap(Time::from_ms(34_999), &mut out);
    assert_eq!((out.len(), host.0.cached_pages()), (1, Some((1, 1))));
    host.reap(Time::from_ms(35_001), &mut out);
    assert_eq!(host.0.cached_pages(), Some((1, 0)));
    host.reap(Time::from_ms(40_001), &mut out);
    assert_eq!(host.next_event(), None, "nothing dirty: no timer");
}

/// A synchronous write of a page: its data, then its metadata or a transaction of three pages.
#[test]
fn synchronous_writes_wait_for_their_metadata() {
    let run = |journal: &str| {
        let more = format!("size = \"4MiB\"\nsync = true\n[file_system]\njournal = \"{journal}\"");
        let mut host = host(&cached(&more), ThreadMode::Sync, 1);
        let end = one_by_one(&mut host, 500, |n| Request::write(u64::from(n % 64) * 4096, 4096));
        (end.as_ns_f64() / 1e3 / 500.0, host.0.account().cache.unwrap(), host.0.port().writes)
    };
    let (none, cache, written) = run("none");
    assert!(none > 20.0 && cache.write_commands == 1_000, "two writes of 10 us: {none}");
    assert_eq!((written, cache.journal_pages), (2 * 500 * 4096, 0));
    let (ordered, cache, _) = run("ordered");
    assert!(ordered > 20.0 && cache.journal_pages == 1_500, "{ordered} {cache:?}");
    let (data, cache, written) = run("data");
    assert!(data > 10.0 && data < none, "data and metadata go together: {data}");
    assert_eq!(cache.journal_pages, 500 * 4);
    assert!(written > 500 * 4 * 4096, "and go to their place later");
}

/// Commits come with their interval; ordered ones push the data out before.
#[test]
fn transactions_are_committed_by_the_timer() {
    let more = "size = \"4MiB\"\n[file_system]\njournal = \"ordered\"\ncommit_interval = \"5s\"";
    let mut host = host(&cached(more), ThreadMode::Sync, 1);
    let mut out = Vec::new();
    for n in 0..10 {
        host.reap(Time::from_ms(n * 100), &mut out);
        host.submit(Time::from_ms(n * 100), Request::write(n << 20, 4096), Token(0)).unwrap();
    }
    host.reap(Time::from_ms(4_999), &mut out);
    let journal = |host: &Target| host.0.account().cache.unwrap().journal_pages;
    assert_eq!((out.len(), journal(&host)), (10, 0));
    host.reap(Time::from_ms(5_100), &mut out);
    // Three extents of 4 MiB changed, and the frame of two pages.
    assert_eq!(journal(&host), 3 + 2);
    assert_eq!(host.0.cached_pages().unwrap().1, 0, "data and metadata are out as well");
}

#[test]
fn a_flush_leaves_nothing_dirty() {
    let mut host = host(&cached("size = \"4MiB\""), ThreadMode::Sync, 1);
    let mut out = Vec::new();
    host.submit(Time::ZERO, Request::write(0, 65_536), Token(0)).unwrap();
    host.reap(Time::from_ms(1), &mut out);
    assert_eq!(host.0.cached_pages().unwrap().1, 16);
    host.submit(Time::from_ms(1), Request::flush(), Token(0)).unwrap();
    host.reap(Time::from_ms(2), &mut out);
    assert_eq!((out.len(), host.0.cached_pages().unwrap().1), (2, 0));
}

#[test]
fn impossible_tables_are_named() {
    for (more, key) in [
        ("size = \"4KiB\"", "cache.size"),
        ("size = \"1MiB\"\npage = \"3KiB\"", "cache.page"),
        ("size = \"1MiB\"\nread_ahead = \"1MiB\"", "cache.read_ahead"),
        ("size = \"1MiB\"\nwrite_depth = 0", "cache.write_depth"),
        ("size = \"1MiB\"\ndirty_limit = 1.5", "cache.dirty_limit"),
        ("size = \"1MiB\"\ndirty_background = 0.5", "cache.dirty_background"),
        ("size = \"1MiB\"\nflush_interval = \"0s\"", "cache.flush_interval"),
        ("size = \"1MiB\"\n[file_system]\nextent = \"1KiB\"", "file_system.extent"),
        ("size = \"1MiB\"\n[file_system]\nmetadata_share = 2", "file_system.metadata_share"),
        ("size = \"1MiB\"\n[file_system]\njournal_size = \"4KiB\"", "file_system.journal_size"),
    ] {
        let text = HOST.replace("copy = \"1GB/s\"", "copy = \"1GB/s\"\n[cache]") + more;
        let error = HostConfig::parse(&text).unwrap_err();
        assert!(error.to_string().starts_with(key), "{error}");
    }
    let alone = HOST.to_owned() + "[file_system]\n";
    assert!(HostConfig::parse(&alone).unwrap_err().to_string().starts_with("file_system"));
}

/// Threads that wait for all of their requests also wait for pages that another thread's command
/// brings. A cache without a request at the device and with one finished write used to loop forever
/// at one moment within a call, so the test waits for a thread, with a limit.
#[test]
fn a_batch_waits_for_pages_that_others_bring() {
    let (tell, told) = std::sync::mpsc::channel();
    let running = std::thread::spawn(move || {
        (1..=5).for_each(batches_end);
        // The receiver is gone if it took too long.
        let _ = tell.send(());
    });
    // A second as a rule. One that panicked has hung up: then its own words count.
    let waited = told.recv_timeout(std::time::Duration::from_secs(120));
    assert_ne!(waited, Err(std::sync::mpsc::RecvTimeoutError::Timeout), "it turns in circles");
    running.join().unwrap();
}

/// Two threads with two requests at a time each, on a cache of half the range.
fn batches_end(seed: u64) {
    let port = FixedPort::new(2, 2, false, 4095, 1);
    let config = cached("size = \"64KiB\"\ncluster = \"4KiB\"");
    let mut host = Target(Host::new(&config, plan(2, ThreadMode::Batch), port, 1).unwrap());
    let mut rng = Rng::new(seed, "batch");
    let mut next = || {
        let offset = rng.below(32) * 4096;
        match rng.below(2) {
            0 => Request::read(offset, 4096),
            _ => Request::write(offset, 4096),
        }
    };
    let (total, mut issued, mut done, mut batch) = (2_000, 0, 0, Vec::new());
    for token in 0..4 {
        host.submit(Time::ZERO, next(), Token(token)).unwrap();
        issued += 1;
    }
    let mut steps = 0;
    while let Some(at) = host.next_event() {
        host.reap(at, &mut batch);
        for completion in batch.drain(..) {
            done += 1;
            if issued < total {
                host.submit(at, next(), completion.token).unwrap();
                issued += 1;
            }
        }
        steps += 1;
        assert!(steps < 200_000, "seed {seed}: {done} of {total} done");
    }
    assert_eq!(done, total, "seed {seed}");
}
