//! One channel with its dies, run through the array: the base of the tests of transfers.

use ssdyno_block::Time;
use ssdyno_engine::events::{EventLog, FlashCause};
use ssdyno_engine::{Event, EventQueue};
use ssdyno_flash::{ChannelOrder, FlashArray, FlashConfig, FlashEvent, FlashOp, OpKind, PlanePort};

const PAGES: u32 = 64;

/// One channel.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) dies: u32,
    pub(crate) planes: u32,
    pub(crate) order: ChannelOrder,
    pub(crate) burst: u32,
    pub(crate) cache_read: bool,
    pub(crate) cache_program: bool,
    /// Picoseconds: command, page over the bus, tR, tPROG, tBERS, tRCBSY, tCBSY.
    pub(crate) times: [u64; 7],
}

impl Machine {
    fn name(order: ChannelOrder) -> String {
        serde_json::to_string(&order).unwrap()
    }

    /// The device: a page of 4 KiB without spare bytes in a time that such a page can take.
    fn array(&self) -> FlashArray {
        let [command, page, read, program, erase, read_busy, program_busy] = self.times;
        let Machine { dies, planes, burst, cache_read, cache_program, .. } = self;
        let order = Machine::name(self.order);
        assert!(page.is_multiple_of(4096));
        let byte = page / 4096;
        let text = format!(
            r#"{{"channels":1,"chips_per_channel":{dies},"dies_per_chip":1,"planes_per_die":{planes},
            "blocks_per_plane":8,"pages_per_block":{PAGES},"page_size":"4KiB","read_time":"{read}ps",
            "program_time":"{program}ps","erase_time":"{erase}ps","bus":"{byte}ps/B",
            "command_time":"{command}ps","channel_order":{order},"channel_burst":{burst},
            "cache_read":{cache_read},"cache_read_busy":"{read_busy}ps",
            "cache_program":{cache_program},"cache_program_busy":"{program_busy}ps"}}"#
        );
        let config: FlashConfig = serde_json::from_str(&text).unwrap();
        FlashArray::new(&config).unwrap()
    }
}

/// An operation for a plane of a die, from `at` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) at: u64,
    pub(crate) die: u32,
    pub(crate) plane: u32,
    pub(crate) kind: OpKind,
}

/// The events of a queue that has those of the flash alone.
#[derive(Clone, Copy)]
pub(crate) struct Only(pub(crate) FlashEvent);

impl From<FlashEvent> for Only {
    fn from(event: FlashEvent) -> Only {
        Only(event)
    }
}

impl Event for Only {
    fn pack(self) -> u32 {
        self.0.pack()
    }
    fn unpack(code: u32) -> Only {
        Only(FlashEvent::unpack(code))
    }
}

/// When each of `jobs` is complete, by the array. Reads go to a full block, programs fill others.
pub(crate) fn simulate(machine: &Machine, jobs: &[Job]) -> Vec<u64> {
    let mut array = machine.array();
    let mut queue = EventQueue::<Only>::new();
    let mut log = EventLog::default();
    let mut done = Vec::new();
    let mut ended = vec![0; jobs.len()];
    let mut programs = vec![0; (machine.dies * machine.planes) as usize];
    for plane in 0..machine.dies * machine.planes {
        array.set_written(plane * 8, PAGES);
    }
    let mut jobs: Vec<(usize, &Job)> = jobs.iter().enumerate().collect();
    jobs.sort_by_key(|(_, job)| job.at);
    let mut jobs = jobs.into_iter().peekable();
    loop {
        let at = jobs.peek().map_or(Time::MAX, |(_, job)| Time::from_ps(job.at));
        while let Some((now, Only(event))) = queue.pop_due(at) {
            let mut port = PlanePort { now, queue: &mut queue, log: &mut log, done: &mut done };
            array.handle(event, &mut port);
            for owner in done.drain(..) {
                ended[owner as usize] = now.as_ps();
            }
        }
        let Some((number, job)) = jobs.next() else { break };
        let plane = job.die * machine.planes + job.plane;
        let first = plane * 8 * PAGES;
        let op = match job.kind {
            OpKind::Read => FlashOp::read(plane, first + number as u32 % PAGES, FlashCause::Host),
            OpKind::Erase => FlashOp::erase(plane, first + 7 * PAGES, FlashCause::Host),
            _ => {
                // Six blocks in turn; the test ignores the contents of their pages.
                let page = programs[plane as usize] % (6 * PAGES);
                programs[plane as usize] += 1;
                if page.is_multiple_of(PAGES) {
                    array.set_written(plane * 8 + 1 + page / PAGES, 0);
                }
                FlashOp::program(plane, first + PAGES + page, FlashCause::Host)
            }
        };
        let mut port = PlanePort { now: at, queue: &mut queue, log: &mut log, done: &mut done };
        array.enqueue(op, number as u32, &mut port);
    }
    ended
}
