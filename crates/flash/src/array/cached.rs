//! Dies with a cache register for each plane, beside the page register that the array works with.
//!
//! **Reads** (ONFI: read cache random and end, 00h-address-31h and 3Fh). When a page is in the page register and
//! another read comes next on the die, 31h moves the page to the cache register, which takes tRCBSY; then
//! the array reads the next page while the first goes out. The command may come while the array still
//! reads (then tRCBSY counts from the end of tR), but not before the cache register is empty. The
//! last page of a chain is fetched with 3Fh. A read that nothing follows is an ordinary one.
//!
//! **Programs** (80h-address-data-15h). The data goes into the cache register. 15h moves it to the page register when
//! the array has finished the previous data, which takes tCBSY; then the array programs, and the cache register takes
//! the data of the next page. Where nothing follows when the data is in, 10h ends the chain: no tCBSY, and the cache
//! register stays closed until the array is done.
//!
//! A page that is moved by cleaning, and an erase, never follow in a chain.

use ssdyno_block::Time;
use ssdyno_engine::Event;
use ssdyno_engine::events::FlashCause;

use super::FlashArray;
use super::event::{FlashEvent, Other, PlanePort};
use super::line::{Step, Transfer};
use crate::OpKind;
use crate::die::{Group, NIL, Phase};

/// The contents of the cache registers of a die.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holds {
    Nothing,
    /// Pages that were read, on their way out.
    Out,
    /// Data of a program, on its way in.
    Loading,
    /// Data of a program that waits for the array.
    Loaded,
}

/// The state of the array of a die in a chain of reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    Nothing,
    /// It reads the die's group.
    Page,
    /// The die's group is in the page registers.
    Done,
}

/// The cache registers of one die, of all its planes together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registers {
    holds: Holds,
    /// The operations whose pages they hold.
    group: Group,
    reading: Reading,
    /// The read whose address came with 31h; without members after 3Fh.
    next: Group,
    /// 31h or 3Fh waits for the channel or for tRCBSY.
    commanded: bool,
    /// The data in the page registers came with 31h: only 31h or 3Fh brings it out.
    chained: bool,
    /// The program in the array was confirmed with 15h: the next page's data may come.
    open: bool,
    /// Their data was confirmed with 10h.
    last: bool,
}

fn nothing() -> Group {
    Group::new(OpKind::Read, FlashCause::None)
}

impl Registers {
    pub(super) fn new() -> Registers {
        Registers {
            holds: Holds::Nothing,
            group: nothing(),
            reading: Reading::Nothing,
            next: nothing(),
            commanded: false,
            chained: false,
            open: false,
            last: false,
        }
    }

    /// A read that suspends a program needs them.
    pub(super) fn are_free(&self) -> bool {
        self.holds == Holds::Nothing
    }
}

/// Reads.
impl FlashArray {
    /// The pages of `die`'s group are in its page registers.
    pub(super) fn page_registers_full<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        self.registers[die as usize].reading = Reading::Done;
        self.go_on_reading(die, port);
    }

    /// The array has read, or the cache registers fell empty: goes on with the chain of reads.
    fn go_on_reading<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        let registers = &self.registers[die as usize];
        let Registers { commanded, reading, chained, .. } = *registers;
        // A command that is on its way already decides what comes next. The cache register must
        // be empty before 31h or 3Fh, because the command overwrites it.
        if commanded || !registers.are_free() {
            return;
        }
        if reading == Reading::Nothing {
            return self.release(die, port);
        }
        // The following read is taken out of its queue together with the command that names it.
        // Its address is in the cycles of 31h, so the choice cannot change any more.
        if let Some(next) = self.following_read(die) {
            self.registers[die as usize].next = next;
            return self.ask_cache_command(die, (next.len, next.cause), port);
        }
        match (reading, chained) {
            // Something may follow when it is done.
            (Reading::Page, _) => {}
            (_, true) => {
                let cause = self.dies[die as usize].group.cause;
                self.ask_cache_command(die, (1, cause), port);
            }
            // With 30h the page is in both registers.
            (_, false) => self.registers_moved(die, port),
        }
    }

    /// 31h with the addresses of `count` pages, or 3Fh.
    fn ask_cache_command<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        (count, cause): (u8, FlashCause),
        port: &mut PlanePort<'_, E>,
    ) {
        self.registers[die as usize].commanded = true;
        let step = Step::CacheCommand;
        // 3Fh has no address cycles, but it is counted as one command. The error is some cycles
        // at the end of each chain.
        let length = self.timing.command * u64::from(count);
        if length == Time::ZERO {
            return self.go_on(step, die, port.now, port);
        }
        self.ask(Transfer { step, die, pages: 0, cause, length, array_to: Time::ZERO }, port);
    }

    /// The cycles of 31h or 3Fh end at `end`: then, or once the array has read, the registers move.
    pub(super) fn move_registers<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        end: Time,
        port: &mut PlanePort<'_, E>,
    ) {
        // 31h may come while the array still reads. The registers then move after the end of tR,
        // and tRCBSY counts from there.
        let ready = match self.registers[die as usize].reading {
            Reading::Page => end.max(self.dies[die as usize].array_to),
            _ => end,
        };
        let at = ready + self.timing.cache_read;
        port.queue.schedule(at, FlashEvent::other(Other::Moved, die).into());
    }

    /// The data of the page registers is now in the cache registers: it goes out while the array reads the next pages.
    pub(super) fn registers_moved<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        let registers = &mut self.registers[die as usize];
        let next = std::mem::replace(&mut registers.next, nothing());
        // The group of the die is what the array reads. The pages that are moved go to the group
        // of the registers, and both proceed independently from here.
        let group = std::mem::replace(&mut self.dies[die as usize].group, next);
        let follows = next.len > 0;
        *registers = Registers {
            holds: Holds::Out,
            group,
            reading: if follows { Reading::Page } else { Reading::Nothing },
            commanded: false,
            chained: follows,
            ..*registers
        };
        if follows {
            self.read_array(die, port.now, port);
        }
        let (cause, length) = (group.cause, self.timing.transfer);
        // While the array reads the next page, the die is busy in any case. The log must not
        // count the transfer as busy time of the die a second time.
        let array_to = if follows { self.dies[die as usize].array_to } else { Time::ZERO };
        for _ in 0..group.len {
            let step = Step::CacheOut;
            self.ask(Transfer { step, die, pages: 1, cause, length, array_to }, port);
        }
    }

    /// The next page in the cache registers is at the controller.
    pub(super) fn cached_page_out<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        let registers = &mut self.registers[die as usize];
        let Some(op) = self.slab.leave(&mut registers.group) else { return };
        let last = registers.group.len == 0;
        if last {
            registers.holds = Holds::Nothing;
        }
        self.complete(op, port);
        if last {
            self.go_on_reading(die, port);
        }
    }

    /// The die's next operation, taken out of its queues, if that is a read that may follow in a chain.
    fn following_read(&mut self, die: u16) -> Option<Group> {
        let suspended = self.dies[die as usize].suspended.as_ref();
        // The rest of a suspended program fills one of the two registers.
        if suspended.is_some_and(|suspended| suspended.group.kind != OpKind::Erase) {
            return None;
        }
        let is_suspended = suspended.is_some();
        if self.reads_have_turn(die)
            && let Some(group) = self.pick_reads(die)
        {
            self.dies[die as usize].reads_in_row += 1;
            return Some(group);
        }
        // A suspended erase has the right to go on before anything in the queues of the planes.
        // Only reads that may overtake come before it.
        if is_suspended || self.next_in_queue(die) != Some(OpKind::Read) {
            return None;
        }
        self.dies[die as usize].reads_in_row = 0;
        Some(self.pick_oldest(die, false))
    }

    /// The operation that waits longest in the queues of the planes of `die`.
    fn next_in_queue(&self, die: u16) -> Option<OpKind> {
        if self.dies[die as usize].waiting == 0 {
            return None;
        }
        self.oldest_plane(die).map(|plane| self.slab.get(self.planes[plane].head).kind)
    }
}

/// Programs.
impl FlashArray {
    /// The data of `group` goes into the cache registers.
    pub(super) fn load_registers<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        group: Group,
        port: &mut PlanePort<'_, E>,
    ) {
        let registers = &mut self.registers[die as usize];
        registers.holds = Holds::Loading;
        registers.group = group;
        let d = &mut self.dies[die as usize];
        // If the array still programs, the data comes in beside it and the phase of the die
        // stays `Array`. Otherwise the die waits for the data, and no array time overlaps the
        // transfer.
        let mut array_to = d.array_to;
        if d.phase != Phase::Array {
            d.phase = Phase::Asked;
            d.group = nothing();
            array_to = Time::ZERO;
        }
        self.ask_data_in(Step::Load, die, (&group, array_to), port);
    }

    /// The data in the cache registers is complete.
    pub(super) fn registers_loaded<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        // The decision between 15h and 10h falls when the data is in, as on a real bus: the
        // confirming command is the last cycle. Later operations cannot change it.
        let last = !self.program_follows(die);
        let registers = &mut self.registers[die as usize];
        registers.holds = Holds::Loaded;
        registers.last = last;
        if self.dies[die as usize].phase != Phase::Array {
            self.program_loaded(die, port);
        }
    }

    /// The array is free and programs what is in the cache registers.
    fn program_loaded<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        let registers = &mut self.registers[die as usize];
        // The data moves to the page register. The cache register is empty, but after 10h it
        // stays closed until the array is done.
        registers.holds = Holds::Nothing;
        registers.open = !registers.last;
        let group = registers.group;
        let d = &mut self.dies[die as usize];
        d.group = group;
        let called = std::mem::take(&mut d.called);
        let mut from = port.now;
        if !self.registers[die as usize].last {
            from += self.timing.cache_program;
            port.queue.schedule(from, FlashEvent::other(Other::RegistersFree, die).into());
        }
        self.enter_array(die, from, self.program_time(&group), port);
        // A read that came while the cache registers were full could not suspend: its page would
        // have had no register to leave through. Now they are free.
        if called {
            self.want_suspension(die, port);
        }
    }

    /// The cache registers may take the data of the program that follows.
    pub(super) fn registers_free<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        let (d, registers) = (&self.dies[die as usize], &self.registers[die as usize]);
        // The event may come late. The program may have been suspended meanwhile, or the chain
        // may have ended; both are tested before new data is asked for.
        let programming = d.phase == Phase::Array && port.now >= d.array_from;
        if programming && registers.open && registers.are_free() && self.program_follows(die) {
            let group = self.pick_oldest(die, false);
            self.load_registers(die, group, port);
        }
    }

    /// The array of `die` has done what was in its page registers.
    pub(super) fn array_free<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        match self.registers[die as usize].holds {
            Holds::Loaded => self.program_loaded(die, port),
            Holds::Loading => {
                let d = &mut self.dies[die as usize];
                // The data for the next program is still on the channel. The array waits for it,
                // and `Loaded` starts the program.
                d.phase = Phase::Asked;
                d.group = nothing();
            }
            Holds::Nothing | Holds::Out => {
                self.registers[die as usize].open = false;
                self.release(die, port);
            }
        }
    }

    /// A program comes next on `die`. While a read waits that could go before it, none does: with data in the
    /// cache registers the read would have to wait for that program, too.
    fn program_follows(&self, die: u16) -> bool {
        let read = self.dies[die as usize].reads.head != NIL && self.read_is_ready(die);
        !read && self.next_in_queue(die) == Some(OpKind::Program)
    }
}
