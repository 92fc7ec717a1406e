//! Dies with their queues, and the channels between them and the controller.
//!
//! Each plane has one queue, served in order; with read priority each die has a second one for
//! reads. A die that falls idle takes, in this order: reads that may overtake, what it suspended,
//! the oldest head of its planes' queues together with the heads that may join it. Which transfer of a
//! channel goes next is in [`channel`] and [`line`], what dies with cache registers do in [`cached`].

mod cached;
mod channel;
mod choose;
mod event;
mod line;
mod operate;
mod shadow;
mod suspend;
mod written;

use ssdyno_block::ConfigError;
use ssdyno_engine::{Event, FifoResource};

pub use event::{FlashEvent, PlanePort};

use cached::Registers;
use event::{Kind, Other};
use line::Line;
use written::Written;

use crate::die::{Die, Fifo, NIL, Phase, Queued, Slab};
use crate::{ChannelOrder, FlashConfig, FlashOp, FlashTiming, Geometry, NO_OWNER, OpKind};

/// The number of erases of a block distinguishes its contents. An FTL may give out a block again as soon as its erase
/// is queued; a read that overtakes must not find what lies there until then.
///
/// Counted modulo 2^16: so many erases of one block never wait at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Epochs {
    /// Erases queued.
    queued: u16,
    /// Erases done: what can be read now.
    now: u16,
}

/// All the flash of a device.
#[derive(Clone, Debug)]
pub struct FlashArray {
    geometry: Geometry,
    timing: FlashTiming,
    /// What the array may do, and in which order.
    rules: FlashConfig,
    dies: Vec<Die>,
    planes: Vec<Fifo>,
    channels: Vec<FifoResource>,
    /// The queue of each channel; empty for a channel with the order first come, first served,
    /// which needs none.
    lines: Vec<Line>,
    /// The cache registers of each die; empty where they are not used.
    registers: Vec<Registers>,
    slab: Slab,
    /// Programs go upwards, reads stay below.
    written: Written,
    /// With read priority, of each block; else empty, because then nothing overtakes an erase.
    epochs: Vec<Epochs>,
    channel_of_die: Vec<u16>,
    die_of_plane: Vec<u16>,
    sequence: u32,
    /// Only in tests.
    shadow: Option<Box<shadow::Shadow>>,
}

impl FlashArray {
    /// An erased array.
    pub fn new(config: &FlashConfig) -> Result<FlashArray, ConfigError> {
        let geometry = config.geometry()?;
        let timing = config.timing()?;
        // Events name a die in 16 bits: an event of the flash packs into 26 bits with its kind
        // and its generation.
        if geometry.dies() > u32::from(u16::MAX) {
            return Err(ConfigError::new(
                "flash.chips_per_channel",
                format!("the device would have {} dies", geometry.dies()),
                "65535 dies are supported",
            ));
        }
        let channel_of_die = |die| geometry.channel_of_die(die) as u16;
        let die_of_plane = |plane| geometry.die_of_plane(plane) as u16;
        Ok(FlashArray {
            geometry,
            timing,
            rules: config.clone(),
            dies: vec![Die::new(); geometry.dies() as usize],
            planes: vec![Fifo::default(); geometry.planes() as usize],
            channels: vec![FifoResource::default(); geometry.channels as usize],
            lines: match config.channel_order {
                ChannelOrder::Fcfs => Vec::new(),
                _ => vec![Line::default(); geometry.channels as usize],
            },
            registers: match config.cache_read || config.cache_program {
                true => vec![Registers::new(); geometry.dies() as usize],
                false => Vec::new(),
            },
            slab: Slab::default(),
            written: Written::new(geometry.blocks(), geometry.pages_per_block.get()),
            epochs: match config.read_priority {
                true => vec![Epochs::default(); geometry.blocks() as usize],
                false => Vec::new(),
            },
            channel_of_die: (0..geometry.dies()).map(channel_of_die).collect(),
            die_of_plane: (0..geometry.planes()).map(die_of_plane).collect(),
            sequence: 0,
            shadow: None,
        })
    }

    /// Sizes and addresses.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Times.
    pub fn timing(&self) -> &FlashTiming {
        &self.timing
    }

    /// States that block `block` holds `pages` programmed pages, as after preconditioning.
    pub fn set_written(&mut self, block: u32, pages: u32) {
        self.written.set(block, pages as u16);
    }

    /// False where [`prefetch`](FlashArray::prefetch) is not worth its time.
    #[inline]
    pub fn is_worth_a_prefetch(&self) -> bool {
        /// Their bits no longer fit into the first cache.
        // 2^17 blocks need 16 KiB of bits. Below that the record of full blocks is in the first
        // cache anyway, and a prefetch only costs instructions.
        const MANY_BLOCKS: u32 = 1 << 17;
        !self.epochs.is_empty() || self.geometry.blocks() > MANY_BLOCKS
    }

    /// `page` will be read or overwritten soon: prefetches the array's data on its block.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        let block = self.geometry.block_of_page(page);
        self.written.prefetch(block);
        if let Some(epochs) = self.epochs.get(block as usize) {
            ssdyno_engine::prefetch(epochs);
        }
    }

    /// True when die `die` does nothing and nothing waits for it.
    pub fn is_quiet(&self, die: u32) -> bool {
        let die = &self.dies[die as usize];
        die.phase == Phase::Idle && die.waiting == 0 && die.reads.head == NIL
    }

    /// How much waits for die `die`: operations queued, plus one if it is busy.
    pub fn load(&self, die: u32) -> u32 {
        let die = &self.dies[die as usize];
        die.waiting + u32::from(die.phase != Phase::Idle)
    }

    /// Queues `op`; `owner` appears in [`PlanePort::done`] when it completes, unless [`NO_OWNER`].
    #[inline(always)]
    pub fn enqueue<E: From<FlashEvent> + Event>(
        &mut self,
        op: FlashOp,
        owner: u32,
        port: &mut PlanePort<'_, E>,
    ) {
        // The number orders the heads of the queues by age. It may wrap, because only distances
        // from the newest are compared.
        self.sequence = self.sequence.wrapping_add(1);
        let die = self.die_of_plane[op.plane as usize];
        // Reads of cleaning stay in the queue of their plane. They are part of a sequence with the
        // erase of their block, and no request waits for them.
        let overtakes =
            self.rules.read_priority && op.kind == OpKind::Read && !op.cause.follows_cleaning();
        let (mut page, mut epoch, mut to_epoch) = (op.page, 0, 0);
        if self.rules.read_priority {
            epoch = self.epoch(op.page);
            to_epoch = if op.kind == OpKind::Copy { self.epoch(op.to) } else { epoch };
            if overtakes {
                (page, epoch) = self.readable(die, op.plane, op.page, epoch);
            // The epochs of the operation itself are taken before the erase is counted: the
            // erase ends the epoch that it sees.
            } else if op.kind == OpKind::Erase {
                self.queue_erase(op.page);
            }
        }
        let queued = Queued::new(&op, owner, self.sequence);
        let at = self.slab.insert(Queued { page, epoch, to_epoch, ..queued });
        if cfg!(debug_assertions)
            && let Some(shadow) = &mut self.shadow
        {
            shadow.queued(at);
        }
        if overtakes {
            self.slab.push_back(&mut self.dies[die as usize].reads, at);
        } else {
            self.slab.push_back(&mut self.planes[op.plane as usize], at);
            self.dies[die as usize].waiting += 1;
        }
        match self.dies[die as usize].phase {
            Phase::Idle => self.start(die, port),
            // Only the phases `Array` and `Asked` can give way. In phase `Busy` a read or a
            // suspension is under way, and the read waits for its end.
            Phase::Array if overtakes => self.want_suspension(die, port),
            Phase::Asked if overtakes => self.dies[die as usize].called = true,
            _ => {}
        }
    }

    /// Queues `ops`, all in one plane, for which no request waits: a block that is cleaned.
    pub fn enqueue_all<E: From<FlashEvent> + Event>(
        &mut self,
        ops: &[FlashOp],
        port: &mut PlanePort<'_, E>,
    ) {
        let Some((first, rest)) = ops.split_first() else { return };
        self.enqueue(*first, NO_OWNER, port);
        // With read priority each operation needs its epochs, and a read of the host may wait
        // for it. The short way below knows neither.
        if self.rules.read_priority {
            return rest.iter().for_each(|op| self.enqueue(*op, NO_OWNER, port));
        }
        // The die has begun something, and no other operation can change what.
        let mut list = self.planes[first.plane as usize];
        for op in rest {
            self.sequence = self.sequence.wrapping_add(1);
            let at = self.slab.insert(Queued::new(op, NO_OWNER, self.sequence));
            if cfg!(debug_assertions)
                && let Some(shadow) = &mut self.shadow
            {
                shadow.queued(at);
            }
            self.slab.push_back(&mut list, at);
        }
        self.planes[first.plane as usize] = list;
        // The count of the die changes once for the whole block. Queueing a cleaned block took
        // 747 instructions a request before operations were queued together and groups were
        // linked, 469 after.
        let die = self.die_of_plane[first.plane as usize];
        self.dies[die as usize].waiting += rest.len() as u32;
    }

    /// Handles one event; returns the die it concerned, or one of those that it concerned.
    #[inline(always)]
    pub fn handle<E: From<FlashEvent> + Event>(
        &mut self,
        event: FlashEvent,
        port: &mut PlanePort<'_, E>,
    ) -> u32 {
        let FlashEvent { kind, generation, die } = event;
        let current = self.dies[die as usize].generation == generation;
        match kind {
            Kind::ArrayDone if current => self.array_done(die, port),
            Kind::Suspend if current => {
                if self.dies[die as usize].phase == Phase::Array {
                    self.want_suspension(die, port);
                }
            }
            Kind::ArrayDone | Kind::Suspend => {}
            Kind::PageOut => self.page_out(die, port),
            Kind::Other => return self.handle_other(event, port),
        }
        u32::from(die)
    }

    /// The same for what only some devices have. Out of line: registers to save would cost all others.
    #[inline(never)]
    fn handle_other<E: From<FlashEvent> + Event>(
        &mut self,
        event: FlashEvent,
        port: &mut PlanePort<'_, E>,
    ) -> u32 {
        let number = event.die;
        match Other::ALL.get(event.generation as usize) {
            Some(Other::Suspended) => self.release(number, port),
            Some(Other::Free) => return self.channel_free(number, port).into(),
            Some(Other::Choose) => return self.choose_transfer(number, port).into(),
            Some(Other::Moved) => self.registers_moved(number, port),
            Some(Other::CachedPageOut) => self.cached_page_out(number, port),
            Some(Other::Loaded) => self.registers_loaded(number, port),
            Some(Other::RegistersFree) => self.registers_free(number, port),
            None => unreachable!("{event:?} is not one that the array schedules"),
        }
        number.into()
    }

    /// The next page of a read is at the controller; with the last the die is free.
    #[inline(always)]
    pub(super) fn page_out<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        let group = &mut self.dies[die as usize].group;
        let Some(op) = self.slab.leave(group) else { return };
        let last = group.len == 0;
        self.complete(op, port);
        // The register of a plane is free when its page is out, but the die takes its next
        // operation only after the last page: it has one group at a time.
        if last {
            self.release(die, port);
        }
    }

    pub(super) fn release<E: From<FlashEvent> + Event>(
        &mut self,
        die: u16,
        port: &mut PlanePort<'_, E>,
    ) {
        self.dies[die as usize].phase = Phase::Idle;
        self.start(die, port);
    }

    #[inline(always)]
    pub(super) fn complete<E>(&mut self, op: u32, port: &mut PlanePort<'_, E>) {
        let owner = self.slab.get(op).owner;
        // The owner is read before the place is given back, because the next operation may take
        // the same place at once.
        self.slab.remove(op);
        if owner != NO_OWNER {
            port.done.push(owner);
        }
    }
}
