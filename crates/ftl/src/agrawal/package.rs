//! One package: its map, its planes, its cleaning. Page, block and plane numbers are local.

use ssdyno_engine::events::FlashCause;
use ssdyno_flash::{Divisor, FlashOp};

use crate::map::NONE;
use crate::random_writes::RandomWrites;
use crate::ranks::Ranks;
use crate::reverse::Reverse;
use crate::{PrepareWatch, ReadOnly};
use ssdyno_engine::{PrepareError, Victims};

/// Overwrites of a package before its state counts as steady; greedy cleaning needs about three to
/// forget an ordered fill at a utilisation of 0.9.
pub(super) const WARM_UP: u64 = 4;

/// Sizes of a package.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) planes: u32,
    pub(super) blocks_per_plane: u32,
    pub(super) pages_per_block: Divisor,
    /// Pages of a block that hold data; the others hold its summary.
    pub(super) data_pages: u32,
    /// The number of free blocks at which a plane is cleaned.
    pub(super) free_low: u32,
}

impl Shape {
    pub(super) fn blocks(&self) -> u32 {
        self.planes * self.blocks_per_plane
    }
    fn plane_of_block(&self, block: u32) -> usize {
        (block / self.blocks_per_plane) as usize
    }
    fn first_page(&self, block: u32) -> u32 {
        block * self.pages_per_block.get()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    /// Being written; and forever the last block of the initial fill.
    Open,
    Sealed,
    Bad,
}

#[derive(Clone, Copy, Debug)]
struct PlaneState {
    /// The open block, sealed where `next` has reached its end; [`NONE`] before the first write.
    block: u32,
    /// Its next page.
    next: u32,
    /// Its number in the order of opening; 0 before the first write.
    sequence: u64,
    free: u32,
    /// Where the search for a free block goes on, as an index into the plane.
    cursor: u32,
    valid: u32,
    bad: u32,
}

/// The state of one package.
#[derive(Clone, Debug)]
pub(super) struct Package {
    shape: Shape,
    die: u32,
    /// Logical to physical page; [`NONE`] where there is no data.
    map: Vec<u32>,
    reverse: Reverse,
    planes: Vec<PlaneState>,
    state: Vec<State>,
    /// Valid pages of each block; closed are those that are sealed.
    ranks: Ranks,
    sequence: Vec<u64>,
    erases: Vec<u32>,
    /// Erases that a block survives; empty where blocks last forever.
    endures: Vec<u32>,
    last_sequence: u64,
    /// The last block of the initial fill, never sealed, and the pages in it.
    tail: (u32, u32),
    write_turn: u32,
    cleaning_turn: u32,
    /// False while preconditioning: wear is counted from the start of the run.
    wears: bool,
    gather: Vec<(u32, u32)>,
    /// The blocks that were cleaned, by what was valid in them.
    victims: Victims,
}

impl Package {
    /// An erased package in die `die` that holds `pages` logical pages.
    pub(super) fn new(shape: Shape, die: u32, pages: u32, endures: &[u32]) -> Package {
        let blocks = shape.blocks() as usize;
        let good = |block: usize| endures.get(block).is_none_or(|limit| *limit > 0);
        let state: Vec<State> =
            (0..blocks).map(|block| if good(block) { State::Free } else { State::Bad }).collect();
        let plane = |states: &[State]| {
            let bad = states.iter().filter(|state| **state == State::Bad).count() as u32;
            PlaneState {
                block: NONE,
                next: shape.data_pages,
                sequence: 0,
                free: shape.blocks_per_plane - bad,
                cursor: 0,
                valid: 0,
                bad,
            }
        };
        Package {
            shape,
            die,
            map: vec![NONE; pages as usize],
            reverse: Reverse::new(shape.first_page(shape.blocks())),
            planes: state.chunks(shape.blocks_per_plane as usize).map(plane).collect(),
            state,
            ranks: Ranks::new(shape.planes, shape.blocks_per_plane),
            sequence: vec![0; blocks],
            erases: vec![0; blocks],
            endures: endures.to_vec(),
            last_sequence: 0,
            tail: (NONE, 0),
            write_turn: 0,
            cleaning_turn: 0,
            wears: true,
            gather: Vec::with_capacity(shape.data_pages as usize),
            victims: Victims::default(),
        }
    }

    pub(super) fn die(&self) -> u32 {
        self.die
    }

    /// True if no block was bad from the start or ever will be.
    pub(super) fn is_flawless(&self) -> bool {
        self.endures.is_empty()
    }

    pub(super) fn bad_blocks(&self) -> u32 {
        self.planes.iter().map(|plane| plane.bad).sum()
    }

    /// Erases of the least worn good block and of the most worn block.
    pub(super) fn erases_range(&self) -> (u32, u32) {
        let good = self.state.iter().zip(&self.erases).filter(|(state, _)| **state != State::Bad);
        let least = good.map(|(_, erases)| *erases).min();
        (least.unwrap_or(0), self.erases.iter().copied().max().unwrap_or(0))
    }

    /// Erases that block `block` has seen.
    pub(super) fn erases(&self, block: u32) -> u32 {
        self.erases[block as usize]
    }

    /// Of an erased package: its blocks have been erased so often already; those that do not survive
    /// that are bad.
    pub(super) fn start_worn(&mut self, erases: &[u32]) {
        for (at, worn) in erases.iter().enumerate() {
            if self.state[at] != State::Free {
                continue;
            }
            self.erases[at] = *worn;
            if self.endures.get(at).is_some_and(|limit| worn >= limit) {
                self.state[at] = State::Bad;
                let plane = &mut self.planes[at / self.shape.blocks_per_plane as usize];
                (plane.bad, plane.free) = (plane.bad + 1, plane.free - 1);
            }
        }
    }

    pub(super) fn pages_written(&self, block: u32) -> u32 {
        match self.state[block as usize] {
            State::Free | State::Bad => 0,
            State::Sealed => self.shape.pages_per_block.get(),
            State::Open if block == self.tail.0 => self.tail.1,
            State::Open => self.planes[self.shape.plane_of_block(block)].next,
        }
    }

    /// Where logical page `page` lies, as a page number of the device.
    pub(super) fn locate(&self, page: u32) -> Option<u32> {
        let physical = self.map[page as usize];
        (physical != NONE).then(|| self.device_page(physical))
    }

    fn device_page(&self, physical: u32) -> u32 {
        self.die * self.shape.first_page(self.shape.blocks()) + physical
    }

    fn device_plane(&self, plane: u32) -> u32 {
        self.die * self.shape.planes + plane
    }

    /// Reads logical page `page`, after the cleaning that is due; false if it holds no data.
    pub(super) fn read(&mut self, page: u32, out: &mut Vec<FlashOp>) -> bool {
        if self.map[page as usize] == NONE {
            return false;
        }
        // Cleaning may move the page.
        self.clean_what_is_low(out);
        let physical = self.map[page as usize];
        let plane = self.shape.plane_of_block(self.shape.pages_per_block.quotient(physical)) as u32;
        let (plane, physical) = (self.device_plane(plane), self.device_page(physical));
        out.push(FlashOp::read(plane, physical, FlashCause::Host));
        true
    }

    /// Writes logical page `page`, after the cleaning that is due.
    pub(super) fn write(&mut self, page: u32, out: &mut Vec<FlashOp>) -> Result<(), ReadOnly> {
        self.clean_what_is_low(out);
        let plane = self.choose_plane(page).ok_or(ReadOnly)?;
        let to = self.append(plane, page).ok_or(ReadOnly)?;
        out.push(FlashOp::program(
            self.device_plane(plane),
            self.device_page(to),
            FlashCause::Host,
        ));
        self.seal_if_full(plane, FlashCause::Mapping, out);
        Ok(())
    }

    /// Forgets logical page `page`.
    pub(super) fn forget(&mut self, page: u32) {
        let old = std::mem::replace(&mut self.map[page as usize], NONE);
        if old != NONE {
            let block = self.shape.pages_per_block.quotient(old);
            self.ranks.remove_one(block);
            self.planes[self.shape.plane_of_block(block)].valid -= 1;
        }
    }

    /// The plane with the most free pages among those whose next page is newer than the old data;
    /// the first of equals in turn (S3-39).
    fn choose_plane(&mut self, page: u32) -> Option<u32> {
        let old = self.map[page as usize];
        // The order of copies is the block's sequence number, then the page within the block.
        // After a loss of power the newest copy of a page is the one with the higher pair.
        let age = (old != NONE)
            .then(|| (self.sequence[self.shape.pages_per_block.quotient(old) as usize], old));
        // The plane that holds the old data is always newer; where it has no room left, as on a
        // device at the end of its life, the order of copies must yield.
        let chosen = self.most_free(age).or_else(|| self.most_free(None))?;
        self.write_turn = (chosen + 1) % self.shape.planes;
        Some(chosen)
    }

    fn most_free(&self, age: Option<(u64, u32)>) -> Option<u32> {
        let mut best: Option<(u32, u32)> = None;
        let pages_per_block = self.shape.pages_per_block.get();
        let mut number = self.write_turn;
        for _ in 0..self.shape.planes {
            let plane = &self.planes[number as usize];
            let newer = age.is_none_or(|(sequence, old)| {
                plane.sequence > sequence
                    || (plane.sequence == sequence
                        && self.shape.first_page(plane.block) + plane.next > old)
            });
            if newer && self.has_room(plane) {
                let pages = plane.free * pages_per_block + pages_per_block - plane.next;
                if best.is_none_or(|(_, most)| pages > most) {
                    best = Some((number, pages));
                }
            }
            number = if number + 1 == self.shape.planes { 0 } else { number + 1 };
        }
        best.map(|(plane, _)| plane)
    }

    /// True if `plane` can take another valid page and remain one that cleaning can free.
    fn has_room(&self, plane: &PlaneState) -> bool {
        // Kept: the reserve, the open block, the tail of the initial fill.
        let kept = self.shape.free_low + 3 + plane.bad;
        let most = self.shape.blocks_per_plane.saturating_sub(kept) * self.shape.data_pages;
        // One free block is left to cleaning.
        plane.valid < most && (plane.next < self.shape.data_pages || plane.free >= 2)
    }

    /// Maps logical page `page` to the next page of `plane`, opening a block where the last is full.
    fn append(&mut self, plane: u32, page: u32) -> Option<u32> {
        if self.planes[plane as usize].next == self.shape.data_pages {
            self.open_block(plane)?;
        }
        self.forget(page);
        let state = &mut self.planes[plane as usize];
        let physical = self.shape.first_page(state.block) + state.next;
        state.next += 1;
        state.valid += 1;
        self.ranks.add(state.block, 1);
        self.map[page as usize] = physical;
        self.reverse.set(physical, page);
        Some(physical)
    }

    /// Opens the next free block of `plane`, counted round from the one opened last.
    fn open_block(&mut self, plane: u32) -> Option<()> {
        let n = self.shape.blocks_per_plane;
        let state = &mut self.planes[plane as usize];
        let from = state.cursor;
        let mut candidates = (from..n).chain(0..from);
        let index =
            candidates.find(|index| self.state[(plane * n + index) as usize] == State::Free)?;
        state.cursor = (index + 1) % n;
        self.open_this(plane, plane * n + index);
        Some(())
    }

    fn open_this(&mut self, plane: u32, block: u32) {
        self.last_sequence += 1;
        self.state[block as usize] = State::Open;
        self.sequence[block as usize] = self.last_sequence;
        let state = &mut self.planes[plane as usize];
        state.free -= 1;
        state.block = block;
        state.next = 0;
        state.sequence = self.last_sequence;
    }

    /// Writes the summary of `plane`'s open block if it is full of data, and lets it be cleaned.
    fn seal_if_full(&mut self, plane: u32, cause: FlashCause, out: &mut Vec<FlashOp>) {
        let PlaneState { block, next, .. } = self.planes[plane as usize];
        if next < self.shape.data_pages {
            return;
        }
        let first = self.device_page(self.shape.first_page(block));
        for page in next..self.shape.pages_per_block.get() {
            let mut op = FlashOp::program(self.device_plane(plane), first + page, cause);
            op.sector_only = true;
            out.push(op);
        }
        self.state[block as usize] = State::Sealed;
        self.ranks.close(block);
    }

    /// The blocks that were cleaned.
    pub(super) fn victims(&self) -> Victims {
        self.victims
    }

    /// Cleans until no plane is low: one block of one plane at a time, the planes in turn.
    ///
    /// Ends because every step frees at least one invalid page for good.
    fn clean_what_is_low(&mut self, out: &mut Vec<FlashOp>) {
        while let Some((plane, victim)) = self.next_cleaning() {
            self.cleaning_turn = (plane + 1) % self.shape.planes;
            self.clean(plane, victim, out);
        }
    }

    fn next_cleaning(&self) -> Option<(u32, u32)> {
        let n = self.shape.planes;
        let low = self.shape.free_low;
        let planes = (0..n).map(|i| (self.cleaning_turn + i) % n);
        let mut low = planes.filter(|plane| self.planes[*plane as usize].free <= low);
        low.find_map(|plane| Some((plane, self.victim(plane)?)))
    }

    /// The sealed block of `plane` with the fewest valid pages, the last of equals; `None` where
    /// cleaning would gain nothing or has no room to move pages to.
    fn victim(&self, plane: u32) -> Option<u32> {
        let victim = self.ranks.last_of_least(plane)?;
        let least = self.ranks.valid(victim);
        let state = &self.planes[plane as usize];
        let room = self.shape.data_pages - state.next;
        // A victim is taken only if its pages fit. A cleaning that stopped halfway would leave a
        // block that is neither sealed nor free.
        let fits = least <= room || state.free > 0;
        (least < self.shape.data_pages && fits).then_some(victim)
    }

    /// Moves the valid pages of `victim` within its plane and erases it.
    fn clean(&mut self, plane: u32, victim: u32, out: &mut Vec<FlashOp>) {
        let first = self.shape.first_page(victim);
        let mut gather = std::mem::take(&mut self.gather);
        gather.clear();
        // In sequential workloads most victims have no valid page (S3-34: 0 moved). The search
        // through the reverse map is left out for them.
        if self.ranks.valid(victim) > 0 {
            gather.extend((first..first + self.shape.data_pages).filter_map(|page| {
                self.reverse.owner(page, &self.map).map(|logical| (page, logical))
            }));
        }
        debug_assert_eq!(gather.len() as u32, self.ranks.valid(victim));
        let device_plane = self.device_plane(plane);
        for (from, logical) in &gather {
            let Some(to) = self.append(plane, *logical) else { break };
            let (from, to) = (self.device_page(*from), self.device_page(to));
            out.push(FlashOp::copy(device_plane, from, to, FlashCause::Cleaning));
            self.seal_if_full(plane, FlashCause::Cleaning, out);
        }
        self.victims.count(gather.len() as u32, self.shape.data_pages);
        self.gather = gather;
        out.push(FlashOp::erase(device_plane, self.device_page(first), FlashCause::Cleaning));
        self.erased(plane, victim);
    }

    fn erased(&mut self, plane: u32, block: u32) {
        let at = block as usize;
        self.ranks.clear(block);
        self.state[at] = State::Free;
        // Preconditioning overwrites a package several times over. Its wear would make blocks
        // bad before the run begins, so it is not counted.
        if self.wears {
            self.erases[at] += 1;
            if self.endures.get(at).is_some_and(|limit| self.erases[at] >= *limit) {
                self.state[at] = State::Bad;
                self.planes[plane as usize].bad += 1;
                return;
            }
        }
        self.planes[plane as usize].free += 1;
    }

    /// The state of a fresh device whose first `pages` logical pages were written in order: block
    /// after block densely, consecutive blocks in consecutive planes.
    pub(super) fn fill_dense(&mut self, pages: u32) {
        let (n, data_pages) = (self.shape.planes, self.shape.data_pages);
        let blocks = pages.div_ceil(data_pages);
        let mut first_good = vec![0; n as usize];
        // The last n: one empty open block in each plane.
        for number in 0..blocks + n {
            let plane = number % n;
            let Some(block) = self.good_from(plane, &mut first_good[plane as usize]) else {
                return;
            };
            self.open_this(plane, block);
            if number >= blocks {
                continue;
            }
            let from = number * data_pages;
            let to = (from + data_pages).min(pages);
            for page in from..to {
                let physical = self.shape.first_page(block) + page - from;
                self.map[page as usize] = physical;
                self.reverse.set(physical, page);
            }
            self.ranks.add(block, to - from);
            self.planes[plane as usize].valid += to - from;
            if number + 1 == blocks {
                // The last block of the fill is partly written. It stays open forever, as in
                // the simulator behind S3, and `has_room` keeps a block for it.
                self.tail = (block, to - from);
            } else {
                self.state[block as usize] = State::Sealed;
                self.ranks.close(block);
            }
        }
    }

    /// The first good block of `plane` whose index is at least `from`, which moves behind it.
    fn good_from(&self, plane: u32, from: &mut u32) -> Option<u32> {
        let n = self.shape.blocks_per_plane;
        let good = |index: &u32| self.state[(plane * n + index) as usize] == State::Free;
        let index = (*from..n).find(good)?;
        *from = index + 1;
        Some(plane * n + index)
    }

    /// Takes over the state of `other`, which was preconditioned, with only the first `pages`
    /// logical pages of it.
    pub(super) fn become_copy(&mut self, other: &Package, pages: u32) {
        let (die, own_pages) = (self.die, self.map.len());
        self.clone_from(other);
        self.die = die;
        self.wears = true;
        // Shares of packages differ by one page. The source may hold a page that this package
        // does not have; its place becomes stale data.
        for page in pages..self.map.len() as u32 {
            self.forget(page);
        }
        self.map.resize(own_pages, NONE);
    }
}

/// A package that is being overwritten at random, without flash or clock.
pub(super) struct Overwriter {
    package: Package,
    pages: u32,
    random: RandomWrites,
    out: Vec<FlashOp>,
}

/// Steps of [`Overwriter::advance`] with this number of `pages`.
pub(super) fn advance_steps(pages: u32) -> u64 {
    (u64::from(pages) / 10).max(1)
}

impl Overwriter {
    /// Brings `package`, with data in its first `pages` pages, into balance under `random`.
    pub(super) fn new(
        mut package: Package,
        (pages, random): (u32, RandomWrites),
        watch: &mut PrepareWatch<'_>,
    ) -> Result<Overwriter, PrepareError> {
        package.wears = false;
        let mut overwriter = Overwriter { package, pages, random, out: Vec::new() };
        overwriter.overwrite(u64::from(pages) * WARM_UP, watch)?;
        Ok(overwriter)
    }

    /// Goes on far enough that the state is another one.
    pub(super) fn advance(&mut self, watch: &mut PrepareWatch<'_>) -> Result<(), PrepareError> {
        self.overwrite(advance_steps(self.pages), watch)
    }

    fn overwrite(&mut self, writes: u64, watch: &mut PrepareWatch<'_>) -> Result<(), PrepareError> {
        if self.pages == 0 {
            return Ok(());
        }
        for _ in 0..writes {
            watch.step_of(self.out.len())?;
            let page = self.random.next();
            self.out.clear();
            if self.package.write(page, &mut self.out).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// The package as it is now.
    pub(super) fn package(&self) -> &Package {
        &self.package
    }
}
