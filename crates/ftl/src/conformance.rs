//! The suite that every FTL must pass.
//!
//! [`check_ftl`] drives an FTL with seeded writes, reads and trims over a [`StrictFlash`], which executes each
//! operation at once, keeps the data, and is stricter than real flash: it panics on a program into a page that is not
//! erased or below one already programmed, on a read of a page without data, on a copy across planes, and on an erase
//! that destroys the only copy of valid data. Beyond the checks of the flash, the suite checks that each request waits
//! for exactly one operation of its own, that flash and FTL agree on the programmed pages, and that flash that never
//! wears out never refuses a write.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use ssdyno_engine::Rng;
use ssdyno_engine::events::FlashCause;
use ssdyno_flash::{FlashConfig, FlashOp, Geometry, OpKind};

use crate::contract::FtlFacts;
use crate::{Fill, Ftl, FtlConfig, Plane, Precondition, PrepareWatch, build};

/// Content of a page: logical page and generation; summaries and mapping pages hold `u64::MAX`.
type Data = u64;

/// Flash that executes operations at once and checks everything.
#[derive(Debug)]
pub struct StrictFlash {
    geometry: Geometry,
    data: BTreeMap<u32, Data>,
    written: Vec<u32>,
    /// Pages that hold each content.
    copies: BTreeMap<Data, u32>,
    /// The pages whose last copy the latest erases destroyed.
    lost: Vec<Data>,
    /// Operations executed: reads, programs, copies, erases.
    pub counts: [u64; 4],
}

impl StrictFlash {
    /// Erased flash.
    pub fn new(geometry: Geometry) -> StrictFlash {
        let written = vec![0; geometry.blocks() as usize];
        StrictFlash {
            geometry,
            data: BTreeMap::new(),
            written,
            copies: BTreeMap::new(),
            lost: Vec::new(),
            counts: [0; 4],
        }
    }

    /// Executes `op`; host programs store `data`. Returns what a read found.
    ///
    /// # Panics
    /// When the operation breaks a rule of flash.
    pub fn execute(&mut self, op: &FlashOp, data: Data) -> Option<Data> {
        let planes = self.geometry.blocks_per_plane;
        let plane_of = |page| self.geometry.block_of_page(page) / planes;
        assert_eq!(plane_of(op.page), op.plane, "{op:?} names the wrong plane");
        match op.kind {
            OpKind::Read => {
                self.counts[0] += 1;
                let found = self.data.get(&op.page).copied();
                Some(found.unwrap_or_else(|| panic!("{op:?}: no data there")))
            }
            OpKind::Program => {
                self.counts[1] += 1;
                self.program(op.page, data);
                None
            }
            OpKind::Copy => {
                self.counts[2] += 1;
                assert_eq!(plane_of(op.to), op.plane, "{op:?} leaves its plane");
                let moved = self.data.get(&op.page).copied();
                let moved = moved.unwrap_or_else(|| panic!("{op:?}: no data there"));
                self.program(op.to, moved);
                None
            }
            OpKind::Erase => {
                self.counts[3] += 1;
                let block = self.geometry.block_of_page(op.page);
                let first = self.geometry.first_page(block);
                assert_eq!(first, op.page, "{op:?} does not name a first page");
                for page in first..first + self.geometry.pages_per_block.get() {
                    if let Some(gone) = self.data.remove(&page) {
                        self.drop_copy(gone);
                    }
                }
                self.written[block as usize] = 0;
                None
            }
        }
    }

    fn program(&mut self, page: u32, data: Data) {
        let block = self.geometry.block_of_page(page) as usize;
        let number = self.geometry.pages_per_block.remainder(page);
        assert!(
            number >= self.written[block],
            "page {number} of block {block} after page {}",
            self.written[block]
        );
        assert!(!self.data.contains_key(&page), "page {page} is not erased");
        self.written[block] = number + 1;
        self.store(page, data);
    }

    fn store(&mut self, page: u32, data: Data) {
        if let Some(old) = self.data.insert(page, data) {
            self.drop_copy(old);
        }
        *self.copies.entry(data).or_default() += 1;
    }

    fn drop_copy(&mut self, data: Data) {
        if let Some(left) = self.copies.get_mut(&data) {
            *left -= 1;
            if *left == 0 {
                self.copies.remove(&data);
                self.lost.push(data);
            }
        }
    }
}

/// A small device for tests.
pub fn small_flash(channels: u32, planes: u32, blocks: u32, pages: u32) -> FlashConfig {
    let text = format!(
        r#"{{"channels":{channels},"chips_per_channel":1,"dies_per_chip":1,"planes_per_die":{planes},
        "blocks_per_plane":{blocks},"pages_per_block":{pages},"page_size":"4KiB",
        "read_time":"50us","program_time":"500us","erase_time":"3.5ms","bus":"333MB/s"}}"#
    );
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// An `[ftl]` table for tests: `name`, over-provisioning and further keys as JSON members, such as
/// `,"cleaning":"fifo","page.cleaning_pace":"paced"`.
pub fn ftl_config(name: &str, over_provisioning: f64, more: &str) -> FtlConfig {
    let text = format!(r#"{{"name":"{name}","over_provisioning":{over_provisioning}{more}}}"#);
    let keys: Map<String, Value> =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let mut tables = Value::Object(Map::new());
    for (key, value) in keys {
        match key.split_once('.') {
            Some((table, key)) => tables[table][key] = value,
            None => tables[key] = value,
        }
    }
    serde_json::from_value(tables).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Runs the suite: `requests` operations of `seed` on a device made of `flash` and `config`.
///
/// # Panics
/// With the broken promise; the same arguments replay it.
pub fn check_ftl(flash: &FlashConfig, config: &FtlConfig, fill: Fill, seed: u64, requests: u32) {
    let geometry = flash.geometry().unwrap_or_else(|error| panic!("{error}"));
    let facts = FtlFacts { geometry, flash, config, seed };
    let mut ftl = build(&facts).unwrap_or_else(|error| panic!("{error}"));
    check_built(ftl.as_mut(), flash, fill, seed, requests);
}

/// As [`check_ftl`] for an FTL that is not registered; `ftl` must be fresh and made for `flash`.
///
/// # Panics
/// With the broken promise; the same arguments replay it.
pub fn check_built(ftl: &mut dyn Ftl, flash: &FlashConfig, fill: Fill, seed: u64, requests: u32) {
    let geometry = flash.geometry().unwrap_or_else(|error| panic!("{error}"));
    let mut host = Host::new(ftl, geometry, fill, seed);
    for _ in 0..requests {
        if !host.step(ftl) {
            let mortal = flash.endurance_cycles.is_some() || flash.factory_bad > 0.0;
            assert!(mortal, "flash that lasts for ever became read-only");
            break;
        }
    }
    host.read_all(ftl);
}

/// As [`check_ftl`], for a device that is erased as a whole in the middle of its life
/// ([`start_worn`](Ftl::start_worn)): wear goes on from where it was.
///
/// # Panics
/// With the broken promise; the same arguments replay it.
pub fn check_erased(flash: &FlashConfig, config: &FtlConfig, seed: u64, requests: u32) {
    let geometry = flash.geometry().unwrap_or_else(|error| panic!("{error}"));
    let facts = FtlFacts { geometry, flash, config, seed };
    let make = || build(&facts).unwrap_or_else(|error| panic!("{error}"));
    let mut ftl = make();
    check_built(ftl.as_mut(), flash, Fill::Empty, seed, requests);
    let before = ftl.health();
    let worn: Vec<u32> = (0..geometry.blocks()).map(|block| ftl.erases(block) + 1).collect();
    assert_eq!(worn.iter().max(), Some(&(before.erases_max + 1)), "erases are those of the blocks");
    let mut ftl = make();
    let good = geometry.blocks() - ftl.health().bad_blocks;
    ftl.start_worn(&worn);
    let after = ftl.health();
    assert_eq!(after.erases_max, before.erases_max + 1, "the most worn block");
    assert!(after.bad_blocks >= before.bad_blocks, "a bad block stays bad");
    assert!(geometry.blocks() - after.bad_blocks <= good);
    check_built(ftl.as_mut(), flash, Fill::Empty, seed + 1, requests);
    assert!(ftl.health().erases_max >= after.erases_max, "wear goes on");
}

/// The host's side of the suite: what each logical page must hold.
struct Host {
    flash: StrictFlash,
    expected: Vec<Option<Data>>,
    generation: u64,
    rng: Rng,
    ops: Vec<FlashOp>,
}

impl Host {
    fn new(ftl: &mut dyn Ftl, geometry: Geometry, fill: Fill, seed: u64) -> Host {
        let how = Precondition { fill, ..Precondition::default() };
        ftl.precondition(&how, seed, &mut PrepareWatch::new(&mut |_| true))
            .unwrap_or_else(|error| panic!("{error}"));
        let mut host = Host {
            flash: StrictFlash::new(geometry),
            expected: vec![None; ftl.logical_pages() as usize],
            generation: 0,
            rng: Rng::new(seed, "conformance"),
            ops: Vec::new(),
        };
        // The state after preconditioning must be consistent: blocks are filled to the reported
        // page, each valid page is in the filled part, and no page has two owners.
        for block in 0..geometry.blocks() {
            let written = ftl.pages_written(block);
            assert!(written <= geometry.pages_per_block.get());
            host.flash.written[block as usize] = written;
            // Stale and mapping pages hold something, too.
            let first = geometry.first_page(block);
            (first..first + written).for_each(|page| host.flash.store(page, u64::MAX));
        }
        let mut owned = BTreeMap::new();
        for page in 0..ftl.logical_pages() {
            if let Some(at) = ftl.locate(page) {
                let twice = owned.insert(at, page);
                assert!(twice.is_none(), "physical page {at} belongs to {page} and {twice:?}");
                assert!(host.flash.data.contains_key(&at), "page {page} lies in an erased page");
                host.flash.store(at, u64::from(page));
                host.expected[page as usize] = Some(u64::from(page));
            } else {
                assert!(fill == Fill::Empty, "page {page} is missing after preconditioning");
            }
        }
        host.flash.lost.clear();
        host
    }

    /// One random request; false once the device is read-only.
    fn step(&mut self, ftl: &mut dyn Ftl) -> bool {
        let pages = u64::from(ftl.logical_pages());
        // Half of the requests to a tenth of the pages, so that blocks differ.
        let range = if self.rng.below(2) == 0 { pages.div_ceil(10) } else { pages };
        let page = self.rng.below(range) as u32;
        self.ops.clear();
        match self.rng.below(16) {
            0..10 => return self.write(ftl, page),
            10..13 => self.read(ftl, page),
            13 => {
                ftl.trim(page, &mut self.ops);
                self.expected[page as usize] = None;
                self.run(u64::MAX, None);
            }
            14 => {
                ftl.flush(&mut self.ops);
                self.run(u64::MAX, None);
            }
            _ => {
                let planes = u64::from(self.flash.geometry.planes());
                let plane = self.rng.below(planes) as u32;
                ftl.background(plane, &mut self.ops);
                assert!(self.ops.iter().all(|op| op.plane == plane), "background work elsewhere");
                self.run(u64::MAX, None);
            }
        }
        true
    }

    /// Executes the operations that the FTL requested; the operation of the host itself must be an
    /// `own`.
    fn run(&mut self, data: Data, own: Option<OpKind>) -> Option<Data> {
        let ops = std::mem::take(&mut self.ops);
        let host = |op: &&FlashOp| op.cause == FlashCause::Host;
        let kinds: Vec<OpKind> = ops.iter().filter(host).map(|op| op.kind).collect();
        assert_eq!(kinds, own.as_slice(), "operations that the request itself is made of");
        let mut found = None;
        let mut mapped = false;
        for op in &ops {
            mapped |= op.cause == FlashCause::Mapping;
            if op.cause == FlashCause::Host && op.kind == OpKind::Read {
                assert_eq!(op.after_mapping, mapped, "{op:?} must wait for the mapping");
            }
            let host = op.cause == FlashCause::Host;
            let read = self.flash.execute(op, if host { data } else { u64::MAX });
            if host && op.kind == OpKind::Read {
                found = read;
            }
            for lost in std::mem::take(&mut self.flash.lost) {
                let page = (lost as u32) as usize;
                let needed = self.expected.get(page).copied().flatten() == Some(lost);
                let replaced = data as u32 == page as u32 && own == Some(OpKind::Program);
                assert!(!needed || replaced, "{op:?} destroys the data of page {page}");
            }
        }
        found
    }

    fn write(&mut self, ftl: &mut dyn Ftl, page: u32) -> bool {
        self.generation += 1;
        let data = (self.generation << 32) | u64::from(page);
        let planes = u64::from(self.flash.geometry.planes());
        let hint = Plane::Preferred(self.rng.below(planes) as u32);
        let wrote = ftl.write(page, hint, &mut self.ops);
        self.run(data, wrote.is_ok().then_some(OpKind::Program));
        match wrote {
            Ok(()) => self.expected[page as usize] = Some(data),
            Err(_) => assert!(ftl.health().read_only, "refused, but not read-only"),
        }
        wrote.is_ok()
    }

    fn read(&mut self, ftl: &mut dyn Ftl, page: u32) {
        self.ops.clear();
        let holds = ftl.read(page, &mut self.ops);
        let expected = self.expected[page as usize];
        assert_eq!(holds, expected.is_some(), "page {page} holds data or not");
        let found = self.run(u64::MAX, holds.then_some(OpKind::Read));
        if let Some(expected) = expected {
            assert_eq!(found, Some(expected), "page {page} has other data than was written");
        }
        assert_eq!(ftl.locate(page).is_some(), holds);
    }

    fn read_all(&mut self, ftl: &mut dyn Ftl) {
        for page in 0..ftl.logical_pages() {
            self.read(ftl, page);
        }
        for (block, written) in self.flash.written.iter().enumerate() {
            let claimed = ftl.pages_written(block as u32);
            assert_eq!(claimed, *written, "pages programmed in block {block}");
        }
    }
}
