//! Logical blocks, data blocks, and where every page is: the state under all FTLs that map blocks.

use ssdyno_block::ConfigError;
use ssdyno_engine::events::FlashCause;
use ssdyno_flash::{Divisor, FlashOp, Geometry};

use crate::blocks::Searches;
use crate::contract::FtlFacts;
use crate::map::NONE;
use crate::own_keys::LogBlockConfig;
use crate::placement::Chooser;
use crate::reverse::Reverse;
use crate::{Blocks, Cleaning, FtlConfig, HotCold, Placement, ReadOnly, WearLevelling};

/// Blocks of a plane beside data, log and bad ones, without which a merge cannot begin.
const EXTRA: u32 = 1;

/// A logical block: its plane, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) plane: u32,
    pub(crate) block: u32,
}

/// Which blocks of a plane are for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    /// Logical blocks in a plane.
    pub(crate) logical_blocks: u32,
    /// Most log blocks in a plane.
    pub(crate) log_blocks: u32,
    /// Good blocks of the worst plane that are not data blocks.
    pub(crate) spare: u32,
    /// Pages in a block.
    pub(crate) pages_per_block: u32,
}

/// The device as all policies see it.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) geometry: Geometry,
    pub(crate) shares: Shares,
    pub(crate) blocks: Blocks,
    pub(crate) config: FtlConfig,
    pub(crate) chooser: Chooser,
    pub(crate) planes: Divisor,
    /// Logical page of each plane's page 0.
    pub(crate) residues: Vec<u32>,
    pub(crate) logical_pages: u32,
    /// Logical to physical page; [`NONE`] where there is no data.
    pub(crate) map: Vec<u32>,
    pub(crate) reverse: Reverse,
    /// Pages of each block that are programmed or skipped.
    pub(crate) written: Vec<u16>,
    /// Data block of each logical block, plane by plane; [`NONE`] if there is none.
    pub(crate) data: Vec<u32>,
    pub(crate) read_only: bool,
}

impl Store {
    pub(crate) fn new(
        facts: &FtlFacts<'_>,
        logs: Option<&LogBlockConfig>,
    ) -> Result<Store, ConfigError> {
        let config = facts.config;
        refuse_what_cannot_be(config)?;
        let geometry = facts.geometry;
        let chooser = Chooser::new(config, facts.flash, &geometry)?;
        let b = geometry.pages_per_block.get();
        let n = geometry.blocks_per_plane;
        let searches = Searches { window: 0, wear: config.wear_levelling };
        let blocks = Blocks::new(geometry.planes(), n, b, searches, facts.endurance());
        let logical_pages = config.logical_pages(&geometry)?;
        let log_blocks = logs.map_or(Ok(0), |logs| log_blocks(&config.name, logs, n))?;
        let kept = log_blocks + EXTRA + blocks.bad_most();
        let logical_blocks = |pages: u32| pages.div_ceil(geometry.planes()).div_ceil(b);
        // Every logical block may need a data block of its own. Logs and merges come on top of
        // that, so what they keep is subtracted from the blocks of the plane with the most bad
        // blocks.
        let fits = |pages| logical_blocks(pages).saturating_add(kept) <= n;
        if !fits(logical_pages) {
            let problem = format!(
                "{} is too small: {} logical blocks must fit into each plane, which has {n} blocks, \
                 of which {kept} are for logs and merges or are bad",
                config.over_provisioning,
                logical_blocks(logical_pages)
            );
            let lower = |_| format!("lower ftl.{}.log_blocks, ", config.name);
            let or_else = logs.map(lower).unwrap_or_default();
            return Err(config.cannot_hold(&geometry, problem, &or_else, fits));
        }
        let logical_blocks = logical_blocks(logical_pages);
        let spare = n - blocks.bad_most() - logical_blocks;
        let shares = Shares { logical_blocks, log_blocks, spare, pages_per_block: b };
        Ok(Store::assemble(geometry, shares, config.clone(), blocks, chooser, logical_pages))
    }

    pub(crate) fn assemble(
        geometry: Geometry,
        shares: Shares,
        config: FtlConfig,
        blocks: Blocks,
        chooser: Chooser,
        logical_pages: u32,
    ) -> Store {
        let mut residues = vec![0; geometry.planes() as usize];
        for residue in 0..geometry.planes() {
            residues[chooser.home(residue) as usize] = residue;
        }
        Store {
            geometry,
            shares,
            blocks,
            config,
            chooser,
            planes: Divisor::new(geometry.planes()),
            residues,
            logical_pages,
            map: vec![NONE; logical_pages as usize],
            reverse: Reverse::new(geometry.pages()),
            // Two bytes suffice, because `flash.pages_per_block` is at most 2^14. The table has
            // one entry for each block of the device, and larger entries would only cost memory.
            written: vec![0; geometry.blocks() as usize],
            data: vec![NONE; (geometry.planes() * shares.logical_blocks) as usize],
            read_only: false,
        }
    }

    /// Where logical page `page` belongs: its logical block and the offset there.
    #[inline]
    pub(crate) fn place(&self, page: u32) -> (Place, u32) {
        let local = self.planes.quotient(page);
        let block = self.geometry.pages_per_block.quotient(local);
        let offset = self.geometry.pages_per_block.remainder(local);
        (Place { plane: self.chooser.home(page), block }, offset)
    }

    /// The logical page at `offset` of `place`, if the device is that large.
    #[inline]
    fn page(&self, place: Place, offset: u32) -> Option<u32> {
        // The last logical block of a plane may end beyond the device. Its pages are computed in
        // 64 bits and compared with the size, so that an offset that does not exist is left out
        // and not wrapped.
        let local = u64::from(place.block) * u64::from(self.geometry.pages_per_block.get())
            + u64::from(offset);
        let page =
            local * u64::from(self.planes.get()) + u64::from(self.residues[place.plane as usize]);
        (page < u64::from(self.logical_pages)).then_some(page as u32)
    }

    pub(crate) fn pages_per_block(&self) -> u32 {
        self.geometry.pages_per_block.get()
    }

    fn data_index(&self, place: Place) -> usize {
        (place.plane * self.shares.logical_blocks + place.block) as usize
    }

    /// The data block of `place`; [`NONE`] if it has none.
    #[inline]
    pub(crate) fn data(&self, place: Place) -> u32 {
        self.data[self.data_index(place)]
    }

    pub(crate) fn set_data(&mut self, place: Place, block: u32) {
        let index = self.data_index(place);
        self.data[index] = block;
    }

    /// Makes `block` the data block of `place`. The one before, which must hold nothing valid, is
    /// erased.
    pub(crate) fn replace_data(&mut self, place: Place, block: u32, out: &mut Vec<FlashOp>) {
        let before = self.data(place);
        self.set_data(place, block);
        if before != NONE {
            self.erase(before, out);
        }
    }

    /// Pages of `block` that are programmed or skipped; what follows can be programmed.
    #[inline]
    pub(crate) fn written(&self, block: u32) -> u32 {
        u32::from(self.written[block as usize])
    }

    /// The block that holds `offset` of `place`, if it has data.
    #[inline]
    pub(crate) fn holder(&self, place: Place, offset: u32) -> Option<u32> {
        let at = self.map[self.page(place, offset)? as usize];
        (at != NONE).then(|| self.geometry.block_of_page(at))
    }

    /// The logical block of the valid page at `number` of `block`.
    pub(crate) fn owner(&self, block: u32, number: u32) -> Option<Place> {
        let page = self.reverse.owner(self.geometry.first_page(block) + number, &self.map)?;
        Some(self.place(page).0)
    }

    /// Most log blocks of `plane` now: bad blocks are paid for with log blocks.
    pub(crate) fn log_blocks_most(&self, plane: u32) -> u32 {
        let good = self.geometry.blocks_per_plane - self.blocks.bad_count(plane);
        good.saturating_sub(self.shares.logical_blocks + EXTRA).min(self.shares.log_blocks)
    }

    /// Takes a free block of `plane`.
    pub(crate) fn open(&mut self, plane: u32) -> Result<u32, ReadOnly> {
        self.blocks.open(plane).ok_or(ReadOnly)
    }

    /// Erases `block`, which must hold nothing valid.
    pub(crate) fn erase(&mut self, block: u32, out: &mut Vec<FlashOp>) {
        debug_assert_eq!(self.blocks.valid(block), 0);
        let plane = block / self.geometry.blocks_per_plane;
        self.written[block as usize] = 0;
        self.blocks.erased(block);
        out.push(FlashOp::erase(plane, self.geometry.first_page(block), FlashCause::Cleaning));
    }

    /// Takes over page `number` of `block` for logical page `page`; where it was before.
    #[inline]
    fn put(&mut self, page: u32, block: u32, number: u32) -> (u32, u32) {
        // Flash cannot program a page below one that was programmed. A policy that broke this
        // rule would be caught here and not in the flash, where the cause is hard to find.
        debug_assert!(number >= self.written(block));
        let to = self.geometry.first_page(block) + number;
        let from = std::mem::replace(&mut self.map[page as usize], to);
        if from != NONE {
            self.blocks.invalidate(self.geometry.block_of_page(from));
        }
        self.reverse.set(to, page);
        self.blocks.add_valid(block, 1);
        self.written[block as usize] = number as u16 + 1;
        (from, to)
    }

    /// Programs `offset` of `place` for the host into page `number` of `block`.
    pub(crate) fn program(
        &mut self,
        place: Place,
        offset: u32,
        (block, number): (u32, u32),
        out: &mut Vec<FlashOp>,
    ) {
        let Some(page) = self.page(place, offset) else { return };
        let (_, to) = self.put(page, block, number);
        out.push(FlashOp::program(place.plane, to, FlashCause::Host));
    }

    /// Copies what is valid among `offsets` of `place` to its own offset in `block`, upwards: wherever it is, or `from` one
    /// block only.
    pub(crate) fn gather(
        &mut self,
        place: Place,
        offsets: std::ops::Range<u32>,
        from: Option<u32>,
        block: u32,
        out: &mut Vec<FlashOp>,
    ) {
        for offset in offsets {
            let found = self.page(place, offset).zip(self.holder(place, offset));
            // A page that is in the target already has its place. Copying it would program the page
            // a second time without an erase.
            let moves = |holder| holder != block && from.is_none_or(|from| from == holder);
            if let Some((page, _)) = found.filter(|(_, holder)| moves(*holder)) {
                let (from, to) = self.put(page, block, offset);
                out.push(FlashOp::copy(place.plane, from, to, FlashCause::Cleaning));
            }
        }
    }

    /// Programs `offset` in place if the data block allows it, opening one if there is none; false
    /// if the page was passed already.
    pub(crate) fn write_in_place(
        &mut self,
        place: Place,
        offset: u32,
        out: &mut Vec<FlashOp>,
    ) -> Result<bool, ReadOnly> {
        let mut data = self.data(place);
        if data == NONE {
            data = self.open(place.plane)?;
            self.set_data(place, data);
        }
        // Offsets that were left out stay erased and are lost until the next erase: flash is
        // programmed upwards within a block.
        let fits = offset >= self.written(data);
        if fits {
            self.program(place, offset, (data, offset), out);
        }
        Ok(fits)
    }

    /// Erases the data block of `place` if nothing in it is valid.
    pub(crate) fn drop_dead_data(&mut self, place: Place, out: &mut Vec<FlashOp>) {
        let data = self.data(place);
        if data != NONE && self.blocks.valid(data) == 0 {
            self.set_data(place, NONE);
            self.erase(data, out);
        }
    }
}

/// Options that only make sense where any page can be anywhere.
fn refuse_what_cannot_be(config: &FtlConfig) -> Result<(), ConfigError> {
    let name = &config.name;
    let refuse = |key: &str, help: &str| {
        let problem = format!("`{name}` maps blocks, which leaves no choice here");
        Err(ConfigError::new(key, problem, help))
    };
    if config.cleaning != Cleaning::Greedy {
        return refuse("ftl.cleaning", "leave \"greedy\", or use the `page` or `dftl` FTL");
    }
    if config.placement != Placement::Static {
        return refuse("ftl.placement", "use \"static\", or use the `page` FTL");
    }
    if config.hot_cold != HotCold::Off {
        return refuse("ftl.hot_cold", "use \"off\", or use the `page` FTL");
    }
    // Static levelling moves a closed block within its plane. The block maps do not close
    // blocks, so there is no list of laggards to choose from.
    if config.wear_levelling == WearLevelling::Static {
        return refuse("ftl.wear_levelling", "use \"off\" or \"dynamic\"");
    }
    if config.summary_pages > 0 {
        return refuse("ftl.summary_pages", "use 0: the mapping needs no summaries");
    }
    Ok(())
}

/// Log blocks of a plane with `blocks`, of the FTL `name`: at least two.
fn log_blocks(name: &str, keys: &LogBlockConfig, blocks: u32) -> Result<u32, ConfigError> {
    if !(0.0..1.0).contains(&keys.log_blocks) {
        return Err(ConfigError::new(
            format!("ftl.{name}.log_blocks"),
            format!("{} is outside 0 to 1", keys.log_blocks),
            "use a share of a plane's blocks, such as 0.05",
        ));
    }
    let share = if keys.log_blocks == 0.0 { 0.05 } else { keys.log_blocks };
    Ok(((share * f64::from(blocks)).round() as u32).max(2))
}
