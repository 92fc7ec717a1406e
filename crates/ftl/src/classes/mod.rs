//! Hot and cold apart: a page map for each class of logical pages, with blocks of its own.
//!
//! A class is a range of logical pages ([`FtlConfig::classes`]). Each has a [`PageMap`] over *its* blocks of every
//! plane: open blocks, cleaning, reserve and wear levelling are those of the page map, within the class. The spare
//! blocks of a plane are distributed (see [`Sharing`]); write amplification is then the classes' weighted by their
//! writes (form 5 of the [`closed_forms`](crate::closed_forms)).
//!
//! A page map numbers its blocks from 0 on. Which block of the device each number stands for is kept here, and numbers
//! are exchanged in what goes out. So free blocks can move from class to class. If blocks go bad, the classes keep
//! their shares of the remaining blocks. With wear levelling, all classes write into the least worn free block of the
//! plane.
//!
//! Not modelled: finding out which pages are hot. The classes are where the file says.

mod exchange;
mod sharing;

use ssdyno_block::ConfigError;
use ssdyno_flash::{FlashOp, Geometry, OpKind};

use crate::contract::FtlFacts;
use crate::map::NONE;
use crate::page_map::PageMap;
use crate::placement::Chooser;
use crate::{
    Blocks, Fill, Ftl, FtlConfig, FtlLimits, HotCold, Plane, Precondition, PrepareWatch, ReadOnly,
    WearLevelling, sample,
};
use ssdyno_engine::{Health, PlaneUse, Pool, PrepareError, Victims};

pub(crate) use sharing::check;
use sharing::{Sharing, of_plane};

/// The pages and blocks of one class.
#[derive(Clone, Debug)]
struct Member {
    /// Its page map, which counts pages and blocks from 0 on.
    map: PageMap,
    /// The block of the device for each of its block numbers.
    places: Vec<u32>,
}

/// Where a block of the device is.
#[derive(Clone, Copy, Debug)]
struct Holder {
    /// The class; [`NONE`] for a block that is bad from the factory and belongs to no class.
    class: u32,
    /// Its number there.
    number: u32,
}

/// The page map with pools for classes of pages.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    geometry: Geometry,
    sharing: Sharing,
    members: Vec<Member>,
    /// Holder of each block of the device.
    holders: Vec<Holder>,
    /// Blocks that each class should have, plane by plane: fewer as blocks go bad.
    targets: Vec<u32>,
    /// Blocks bad from the factory that belong to no class.
    bad_of_nobody: u32,
    /// Blocks can go bad.
    mortal: bool,
    wear_levelling: WearLevelling,
    read_only: bool,
}

impl Classes {
    pub(crate) fn new(facts: &FtlFacts<'_>) -> Result<Classes, ConfigError> {
        let geometry = facts.geometry;
        let chooser = Chooser::new(facts.config, facts.flash, &geometry)?;
        let endurance = facts.endurance();
        let mortal = endurance.matters();
        let lives = endurance.draw_all(geometry.blocks());
        let is_good = |block: &u32| lives.get(*block as usize).is_none_or(|erases| *erases > 0);
        let blocks = |plane| {
            let range = plane * geometry.blocks_per_plane..(plane + 1) * geometry.blocks_per_plane;
            range.partition::<Vec<u32>, _>(is_good)
        };
        let planes: Vec<(Vec<u32>, Vec<u32>)> = (0..geometry.planes()).map(blocks).collect();
        let bad = || planes.iter().map(|(_, bad)| bad.len() as u32);
        // The worst plane decides whether the classes fit. The best plane decides for how many
        // spare blocks the shares are worked out.
        let bad = (bad().min().unwrap_or(0), bad().max().unwrap_or(0));
        let sharing = Sharing::new(facts.config, &geometry, bad)?;
        let targets: Vec<u32> =
            planes.iter().flat_map(|(good, _)| sharing.deal(good.len() as u32)).collect();
        let dealt = deal_out(&planes, &targets, sharing.classes());
        let mut holders = vec![Holder { class: NONE, number: 0 }; geometry.blocks() as usize];
        let members = (0..).zip(dealt).map(|(class, places)| {
            for (number, place) in (0..).zip(&places) {
                holders[*place as usize] = Holder { class, number };
            }
            let own = |place: &u32| lives[*place as usize];
            let lives = if mortal { places.iter().map(own).collect() } else { Vec::new() };
            let first = sharing.first(class as usize);
            let blocks = (places.len() as u32, lives);
            // A class counts its pages from 0. Its chooser is turned by the number of the first
            // page, so that each page goes to the plane that it has without classes.
            let chooser = chooser.counted_from(first);
            let map = page_map(facts, &sharing, class as usize, blocks, chooser);
            Member { map, places }
        });
        let members: Vec<Member> = members.collect();
        Ok(Classes {
            geometry,
            members,
            bad_of_nobody: holders.iter().filter(|holder| holder.class == NONE).count() as u32,
            holders,
            targets,
            sharing,
            mortal,
            wear_levelling: facts.config.wear_levelling,
            read_only: false,
        })
    }

    /// The class of `page`, and the page's number there.
    #[inline]
    fn find(&self, page: u32) -> (usize, u32) {
        let class = self.sharing.class_of(page);
        (class, page - self.sharing.first(class))
    }

    fn free(&self, class: usize, plane: u32) -> u32 {
        self.members[class].map.blocks.free_count(plane)
    }

    /// The page of the device that is `page` of `class`.
    #[inline]
    fn place(&self, class: usize, page: u32) -> u32 {
        let place = self.members[class].places[self.geometry.block_of_page(page) as usize];
        self.geometry.first_page(place) + self.geometry.pages_per_block.remainder(page)
    }

    /// From number `from` on operations name pages of `class`: now pages of the device. True if
    /// there was an erase among them.
    fn place_all(&self, class: usize, from: usize, out: &mut [FlashOp]) -> bool {
        let mut erased = false;
        for op in &mut out[from..] {
            op.page = self.place(class, op.page);
            // A copy names two pages, and both are numbers of the class. The other operations
            // name one. The erase is reported because only an erase can change wear or free
            // blocks.
            match op.kind {
                OpKind::Copy => op.to = self.place(class, op.to),
                OpKind::Erase => erased = true,
                OpKind::Read | OpKind::Program => {}
            }
        }
        erased
    }
}

/// The blocks of the device that each class begins with, plane by plane; bad ones in places that it
/// has only in better planes.
fn deal_out(planes: &[(Vec<u32>, Vec<u32>)], targets: &[u32], classes: usize) -> Vec<Vec<u32>> {
    let most = |class: usize| targets.iter().skip(class).step_by(classes).max().copied();
    let most: Vec<u32> = (0..classes).map(|class| most(class).unwrap_or(0)).collect();
    let mut dealt = vec![Vec::new(); classes];
    for ((good, bad), targets) in planes.iter().zip(targets.chunks(classes)) {
        let (mut good, mut bad) = (good.iter(), bad.iter());
        for ((places, target), most) in dealt.iter_mut().zip(targets).zip(&most) {
            places.extend(good.by_ref().take(*target as usize));
            places.extend(bad.by_ref().take((most - target) as usize));
        }
    }
    dealt
}

/// The page map of `class` with `places` blocks, of which each survives `lives` erases.
fn page_map(
    facts: &FtlFacts<'_>,
    sharing: &Sharing,
    class: usize,
    (places, lives): (u32, Vec<u32>),
    chooser: Chooser,
) -> PageMap {
    let planes = facts.geometry.planes();
    let geometry = Geometry { blocks_per_plane: places / planes, ..facts.geometry };
    // In a class all pages are alike, those that survived a cleaning, too.
    let mut config = FtlConfig { hot_cold: HotCold::Off, ..facts.config.clone() };
    config.page.classes.clear();
    let searches = config.searches(geometry.blocks_per_plane);
    let data_pages = sharing.data_pages();
    let blocks = Blocks::with_lives(planes, geometry.blocks_per_plane, data_pages, searches, lives);
    let reserve = sharing.reserve(class);
    // One block beside the reserve is open.
    let closed = geometry.blocks_per_plane - blocks.bad_most() - reserve - 1;
    let limits = FtlLimits {
        logical_pages: sharing.pages(class),
        mapping_pages: 0,
        data_pages,
        free_low: reserve,
        free_background: of_plane(
            config.free_blocks_background,
            &facts.config.page.classes[class],
            &facts.geometry,
        ),
        frontiers: 1,
        valid_most: closed * data_pages - 1,
    };
    // Classes with the same seed would draw the same victims at random. Each class has its own
    // stream.
    let seed = facts.seed.wrapping_add(class as u64);
    PageMap::assemble(geometry, limits, config, blocks, chooser, seed)
}

impl Ftl for Classes {
    fn logical_pages(&self) -> u32 {
        self.sharing.logical_pages()
    }

    fn read(&mut self, page: u32, out: &mut Vec<FlashOp>) -> bool {
        let from = out.len();
        let (class, page) = self.find(page);
        let holds = self.members[class].map.read(page, out);
        self.place_all(class, from, out);
        holds
    }

    fn write(&mut self, page: u32, plane: Plane, out: &mut Vec<FlashOp>) -> Result<(), ReadOnly> {
        if self.read_only {
            return Err(ReadOnly);
        }
        let (class, page) = self.find(page);
        let plane = self.members[class].map.choose_plane(page, plane);
        loop {
            let from = out.len();
            let wrote = self.members[class].map.write_in(plane, page, out);
            let free = self.free(class, plane);
            self.settle(class, plane, from, out);
            // Where the last spare block of the class went bad, another class gives one, as long as
            // there is one to give.
            let given = self.free(class, plane) > free;
            if wrote.is_ok() || !(given || self.beg(class, plane, out)) {
                self.read_only = wrote.is_err();
                return wrote;
            }
        }
    }

    fn trim(&mut self, page: u32, out: &mut Vec<FlashOp>) {
        let (class, page) = self.find(page);
        self.members[class].map.trim(page, out);
    }

    fn locate(&self, page: u32) -> Option<u32> {
        let (class, page) = self.find(page);
        self.members[class].map.locate(page).map(|at| self.place(class, at))
    }

    fn prefetch(&self, page: u32) {
        let (class, page) = self.find(page);
        self.members[class].map.prefetch(page);
    }

    fn prefetch_place(&self, physical: u32) {
        let Holder { class, number } = self.holders[self.geometry.block_of_page(physical) as usize];
        if let Some(member) = self.members.get(class as usize) {
            member.map.prefetch_place(self.geometry.first_page(number));
        }
    }

    /// One class after another, so that each call ends soon.
    fn background(&mut self, plane: u32, out: &mut Vec<FlashOp>) -> bool {
        let from = out.len();
        (0..self.members.len()).any(|class| {
            let worked = self.members[class].map.background(plane, out);
            self.settle(class, plane, from, out);
            worked
        })
    }

    fn precondition(
        &mut self,
        how: &Precondition,
        seed: u64,
        watch: &mut PrepareWatch<'_>,
    ) -> Result<(), PrepareError> {
        let pages = how.pages(self.logical_pages())?;
        let planes = self.geometry.planes();
        // Data are in the first pages of the device.
        let of_class = |class| {
            let behind = pages.saturating_sub(self.sharing.first(class));
            behind.min(self.sharing.pages(class))
        };
        let pages: Vec<u32> = (0..self.members.len()).map(of_class).collect();
        watch.expect(match how.fill {
            Fill::Empty => 0,
            Fill::Sequential => pages.iter().map(|pages| u64::from(*pages)).sum(),
            Fill::Random => pages.iter().map(|pages| sample::steady_steps(planes, *pages)).sum(),
        });
        for ((class, pages), member) in (0..).zip(pages).zip(&mut self.members) {
            match how.fill {
                Fill::Empty => {}
                Fill::Sequential => sample::fill_in_order(&mut member.map, pages, watch)?,
                Fill::Random => {
                    let seed = seed.wrapping_add(class);
                    let written = sample::Written { pages, table_pages: 0, together: how.together };
                    sample::fill_steady(&mut member.map, written, seed, watch)?;
                }
            }
        }
        Ok(())
    }

    fn pages_written(&self, block: u32) -> u32 {
        let Holder { class, number } = self.holders[block as usize];
        self.members.get(class as usize).map_or(0, |member| member.map.pages_written(number))
    }

    fn map_ram_bytes(&self) -> u64 {
        4 * u64::from(self.logical_pages())
    }

    fn health(&self) -> Health {
        let mut all = Health { read_only: self.read_only, ..Health::default() };
        // The default of 0 would win every comparison. The maximum lets the first class set the
        // value.
        all.erases_min = u32::MAX;
        for member in &self.members {
            let health = member.map.health();
            all.bad_blocks += health.bad_blocks;
            all.erases_min = all.erases_min.min(health.erases_min);
            all.erases_max = all.erases_max.max(health.erases_max);
        }
        all.bad_blocks += self.bad_of_nobody;
        all
    }

    fn erases(&self, block: u32) -> u32 {
        let Holder { class, number } = self.holders[block as usize];
        self.members.get(class as usize).map_or(0, |member| member.map.blocks.erases(number))
    }

    fn start_worn(&mut self, erases: &[u32]) {
        for Member { map, places } in &mut self.members {
            map.blocks.start_worn(|number| erases[places[number as usize] as usize]);
        }
        if self.mortal {
            let mut out = Vec::new();
            (0..self.geometry.planes()).for_each(|plane| self.keep_shares(plane, &mut out));
            debug_assert!(out.is_empty(), "there is nothing to clean in a fresh device");
        }
    }

    fn planes(&self) -> Vec<PlaneUse> {
        let mut all = vec![PlaneUse::default(); self.geometry.planes() as usize];
        for member in &self.members {
            for (all, own) in all.iter_mut().zip(member.map.planes()) {
                all.host_pages += own.host_pages;
                all.erases += own.erases;
                all.valid += own.valid;
                all.share += own.share;
            }
        }
        all
    }

    fn victims(&self) -> Option<Victims> {
        self.members.iter().filter_map(|member| member.map.victims()).reduce(Victims::with)
    }

    fn pools(&self) -> Vec<Pool> {
        let planes = self.geometry.planes();
        let pool = |(class, member): (usize, &Member)| {
            let blocks = &member.map.blocks;
            let reserve = self.sharing.reserve(class);
            let closed = |plane| blocks.blocks_per_plane() - blocks.bad_count(plane) - reserve;
            let all: u32 = (0..planes).map(closed).sum();
            let logical_pages = self.sharing.pages(class);
            let held = f64::from(all) * f64::from(self.sharing.data_pages());
            Pool {
                logical_pages,
                utilisation: f64::from(logical_pages) / held,
                blocks_least: (0..planes).map(closed).min().unwrap_or(0) + reserve,
            }
        };
        self.members.iter().enumerate().map(pool).collect()
    }
}
