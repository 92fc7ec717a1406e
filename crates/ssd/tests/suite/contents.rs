//! Reads find what was written last, in time: over cleaning, suspension, priority, joined planes,
//! buffers and mapping tables in flash. The FTL suite shows the same without time.

#![cfg(debug_assertions)]
use proptest::prelude::*;
use ssdyno_block::{BlockTarget, Op, Request, Time, Token};
use ssdyno_engine::Rng;
use ssdyno_ssd::{Config, Ssd};

/// A device of one or more small dies, in JSON so that its parts can be put together.
#[derive(Clone, Debug)]
struct Parts {
    geometry: (u32, u32, u32, u32, u32),
    spare: f64,
    ftl: (&'static str, &'static str),
    flash: String,
    buffer: String,
}

fn config(parts: &Parts) -> Config {
    let Parts { geometry: (channels, ways, planes, blocks, pages), spare, ftl, flash, buffer } =
        parts;
    let (name, more) = ftl;
    let text = format!(
        r#"
[flash]
channels = {channels}
chips_per_channel = {ways}
dies_per_chip = 1
planes_per_die = {planes}
blocks_per_plane = {blocks}
pages_per_block = {pages}
page_size = "4KiB"
cell = "mlc"
read_time = ["40us", "60us"]
program_time = ["200us", "700us"]
erase_time = "2ms"
bus = "333MB/s"
{flash}
[ftl]
name = "{name}"
over_provisioning = {spare}
{more}
[host_link]
kind = "ideal"
{buffer}
[energy.flash]
voltage = "3.3V"
read_current = "15mA"
program_current = "15mA"
erase_current = "15mA"
transfer_current = "5mA"
idle_current = "1mA"
[energy.cpu]
rule = "in-service"
normal_power = "259mW"
idle_power = "124mW"
[energy.dram]
active_power = "878mW"
idle_power = "80mW"
[energy.bus]
voltage = "3.3V"
channel_current = "5mA"
host_link_current = "5mA"
"#
    );
    Config::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Keeps `depth` requests in flight until `requests` complete; half of them go to a few pages.
/// Gives how many reads were compared.
fn run(config: &Config, seed: u64, depth: u32, requests: u32) -> u64 {
    let mut ssd = Ssd::new(config, seed).unwrap();
    ssd.check_contents();
    let sectors = ssd.capacity_bytes() / 512;
    let mut rng = Rng::new(seed, "contents");
    let mut free: Vec<u32> = (0..depth).collect();
    let (mut now, mut left, mut out) = (Time::ZERO, requests, Vec::new());
    loop {
        while left > 0
            && let Some(token) = free.pop()
        {
            left -= 1;
            let op = match rng.below(20) {
                0..9 => Op::Read,
                9..18 => Op::Write,
                18 => Op::Trim,
                _ => Op::Flush,
            };
            let range = if rng.below(2) == 0 { sectors.min(64) } else { sectors };
            // Often a whole page, now and then a part of some.
            let (from, length) = match rng.below(4) {
                0 => (rng.below(range), 1 + rng.below(20)),
                _ => (rng.below(range) / 8 * 8, 8),
            };
            let length = length.min(sectors - from);
            let request = match op {
                Op::Flush => Request::flush(),
                _ => Request { op, ..Request::read(from * 512, (length * 512) as u32) },
            };
            ssd.submit(now, request, Token(token)).unwrap();
        }
        let Some(at) = ssd.next_event() else { break };
        now = at;
        ssd.reap(now, &mut out);
        free.extend(out.drain(..).map(|completion| completion.token.0));
    }
    assert_eq!((left, free.len()), (0, depth as usize));
    ssd.contents_compared()
}

const FTLS: [(&str, &str); 10] = [
    ("page", ""),
    ("page", "cleaning = \"random\"\nhot_cold = \"survivors\""),
    ("page", "cleaning = \"fifo\"\nplacement = \"least-busy\""),
    ("page", "wear_levelling = \"static\"\nwear_threshold = 1\nfree_blocks_background = 0.4"),
    (
        "page",
        "hot_cold = \"classes\"\nwear_levelling = \"dynamic\"\nfree_blocks_background = 0.3\n\
         page.classes = [{ space = 0.3, writes = 0.8 }, { space = 0.7, writes = 0.2 }]",
    ),
    ("dftl", "dftl.mapping_cache = \"512B\""),
    ("block", ""),
    ("bast", ""),
    ("fast", ""),
    ("agrawal", ""),
];

fn flash_rules() -> impl Strategy<Value = String> {
    let priority = prop::sample::select(vec![
        "",
        "read_priority = true",
        "read_priority = true\nprogram_suspend = true\nsuspend_time = \"5us\"",
        "read_priority = true\nread_burst = 3\nprogram_suspend = true\nerase_suspend = true",
    ]);
    let multi_plane = prop::sample::select(vec!["off", "same-page", "any"]);
    let copy = prop::sample::select(vec!["copy-back", "controller"]);
    let order = prop::sample::select(vec![
        "fcfs",
        "fcfs",
        "commands-first",
        "data-out-first",
        "commands-then-data-out",
    ]);
    let channel = (order, 0u32..4, prop::sample::select(vec!["0ns", "200ns"]));
    (priority, multi_plane, copy, channel, any::<[bool; 2]>()).prop_map(
        |(priority, multi_plane, copy, (order, burst, command), [cache_read, cache_program])| {
            format!(
                "multi_plane = \"{multi_plane}\"\ncopy = \"{copy}\"\ncommand_time = \"{command}\"\n\
                 channel_order = \"{order}\"\nchannel_burst = {burst}\ncache_read = {cache_read}\n\
                 cache_program = {cache_program}\n{priority}"
            )
        },
    )
}

fn buffers() -> impl Strategy<Value = String> {
    let policy = prop::sample::select(vec!["none", "none", "fifo", "lru", "clock", "bplru"]);
    (policy, any::<bool>(), prop::sample::select(vec!["read-modify-write", "whole-page"])).prop_map(
        |(policy, reads, partial)| {
            format!(
                "[buffer]\npolicy = \"{policy}\"\nsize = \"32KiB\"\ncache_reads = {reads}\n\
                 [controller]\npartial_page = \"{partial}\""
            )
        },
    )
}

proptest! {
    #[test]
    fn reads_find_the_last_write(
        geometry in (1u32..3, 1u32..3, 1u32..4, 8u32..16, 2u32..10),
        spare in 0.6f64..2.0,
        ftl in prop::sample::select(FTLS.to_vec()),
        flash in flash_rules(),
        buffer in buffers(),
        depth in 1u32..40,
        seed: u64,
    ) {
        let parts = Parts { geometry, spare, ftl, flash, buffer };
        let config = config(&parts);
        // What cannot hold is refused; that is another test's matter.
        if Ssd::new(&config, seed).is_ok() {
            run(&config, seed, depth, 600);
        }
    }
}

/// The check itself sees something: every FTL has reads compared while it cleans.
#[test]
fn every_ftl_has_reads_compared() {
    for ftl in FTLS {
        let parts = Parts {
            geometry: (2, 1, 2, 16, 8),
            spare: 1.0,
            ftl,
            flash: "read_priority = true\nprogram_suspend = true\nerase_suspend = true".to_owned(),
            buffer: String::new(),
        };
        let compared = run(&config(&parts), 1, 16, 2000);
        assert!(compared > 500, "{ftl:?}: only {compared} reads compared");
    }
}
