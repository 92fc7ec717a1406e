//! The flash array by itself: times, order, joining planes, giving way to reads.

use ssdyno_block::Time;
use ssdyno_engine::EventQueue;
use ssdyno_engine::events::{Activity, Busy, EventLog, EventReader, FlashCause, PartKind};
use ssdyno_flash::{FlashArray, FlashConfig, FlashOp, PlanePort};

use crate::machine::Only;

/// One die of two planes with eight blocks of eight pages; 10 us a page on the bus.
struct Rig {
    array: FlashArray,
    queue: EventQueue<Only>,
    log: EventLog,
    /// Owner and time, in ns, of what completed.
    done: Vec<(u32, u64)>,
}

impl Rig {
    fn new(rules: &str) -> Rig {
        let text = format!(
            r#"{{"channels":1,"chips_per_channel":1,"dies_per_chip":1,"planes_per_die":2,
            "blocks_per_plane":8,"pages_per_block":8,"page_size":"4KiB","read_time":"50us",
            "program_time":"500us","erase_time":"3ms","bus":"409600000B/s"{rules}}}"#
        );
        let config: FlashConfig = serde_json::from_str(&text).unwrap();
        let mut array = FlashArray::new(&config).unwrap();
        // Block 0 of each plane is full.
        for block in [0, 8] {
            array.set_written(block, 8);
        }
        Rig { array, queue: EventQueue::new(), log: EventLog::default(), done: Vec::new() }
    }

    fn enqueue(&mut self, now: Time, owner: u32, op: FlashOp) {
        let mut done = Vec::new();
        let mut port =
            PlanePort { now, queue: &mut self.queue, log: &mut self.log, done: &mut done };
        self.array.enqueue(op, owner, &mut port);
        assert!(done.is_empty(), "nothing completes at once");
    }

    /// Runs to the end; gives owner and time in us of what completed.
    fn run(&mut self) -> Vec<(u32, f64)> {
        self.run_until(Time::MAX);
        std::mem::take(&mut self.done).into_iter().map(|(o, ns)| (o, ns as f64 / 1e3)).collect()
    }

    fn run_until(&mut self, end: Time) {
        while let Some((now, Only(event))) = self.queue.pop_due(end) {
            let mut done = Vec::new();
            let mut port =
                PlanePort { now, queue: &mut self.queue, log: &mut self.log, done: &mut done };
            self.array.handle(event, &mut port);
            self.done.extend(done.into_iter().map(|owner| (owner, now.as_ns())));
        }
    }
}

const HOST: FlashCause = FlashCause::Host;

/// First page of block `block` of plane `plane`.
fn page(plane: u32, block: u32) -> u32 {
    (plane * 8 + block) * 8
}

#[test]
fn planes_join_as_the_rules_allow() {
    let programs = |rules: &str, second: u32| {
        let mut rig = Rig::new(rules);
        rig.array.set_written(9, second);
        // The first keeps the die busy until both others wait.
        rig.enqueue(Time::ZERO, 0, FlashOp::read(0, page(0, 0), HOST));
        rig.enqueue(Time::ZERO, 1, FlashOp::program(0, page(0, 1), HOST));
        rig.enqueue(Time::ZERO, 2, FlashOp::program(1, page(1, 1) + second, HOST));
        rig.run()
    };
    // Read 50 + 10; then both pages cross, and one program.
    let joined = vec![(0, 60.0), (1, 580.0), (2, 580.0)];
    let apart = vec![(0, 60.0), (1, 570.0), (2, 1080.0)];
    assert_eq!(programs(r#","multi_plane":"any""#, 3), joined);
    assert_eq!(programs(r#","multi_plane":"same-page""#, 0), joined);
    assert_eq!(programs(r#","multi_plane":"same-page""#, 3), apart);
    assert_eq!(programs(r#","multi_plane":"off""#, 0), apart);
}

#[test]
fn copies_go_inside_the_plane_or_through_the_controller() {
    let copy = |rules: &str| {
        let mut rig = Rig::new(rules);
        rig.enqueue(Time::ZERO, 1, FlashOp::copy(0, page(0, 0), page(0, 1), FlashCause::Cleaning));
        rig.run()
    };
    assert_eq!(copy(r#","copy":"copy-back""#), [(1, 550.0)]);
    assert_eq!(copy(r#","copy":"controller""#), [(1, 570.0)]);
}

/// Pages that a die has read, sent or taken, and programmed.
#[derive(Default)]
struct Pages([u8; 3]);

impl EventReader for Pages {
    fn read(&mut self, events: &[Busy]) {
        for busy in events.iter().filter(|busy| busy.part.kind == PartKind::Die) {
            match busy.activity {
                Activity::Read => self.0[0] += busy.operations,
                Activity::Transfer => self.0[1] += busy.operations,
                Activity::Program => self.0[2] += busy.operations,
                _ => {}
            }
        }
    }
}

/// A copy through the controller and a program of another plane end in one program; inside the plane
/// nothing can join.
#[test]
fn programs_join_copies_that_pass_the_controller() {
    let both = |rules: &str| {
        let mut rig = Rig::new(rules);
        // The first keeps the die busy until both others wait.
        rig.enqueue(Time::ZERO, 0, FlashOp::read(0, page(0, 0), HOST));
        rig.enqueue(Time::ZERO, 1, FlashOp::program(1, page(1, 1), HOST));
        let copy = FlashOp::copy(0, page(0, 0), page(0, 1), FlashCause::Cleaning);
        rig.enqueue(Time::ZERO, 2, copy);
        let ended = rig.run();
        let mut pages = Pages::default();
        rig.log.show_to(&mut pages);
        // For any joins, two reads or two programs: every page crosses the bus as often.
        (ended, pages.0)
    };
    // Read 50 + 10; read 50, out 10, in 2 x 10, program 500.
    let joined = vec![(0, 60.0), (1, 640.0), (2, 640.0)];
    assert_eq!(both(r#","copy":"controller""#), (joined, [2, 4, 2]));
    let apart = vec![(0, 60.0), (1, 570.0), (2, 1120.0)];
    assert_eq!(both(r#","copy":"copy-back""#), (apart, [2, 2, 2]));
}

#[test]
fn page_types_take_their_own_times() {
    let text = r#"{"channels":1,"chips_per_channel":1,"dies_per_chip":1,"planes_per_die":1,
        "blocks_per_plane":2,"pages_per_block":8,"page_size":"4KiB","cell":"tlc",
        "read_time":["10us","20us","30us"],"program_time":"100us","erase_time":"1ms",
        "bus":"409600000B/s"}"#;
    let config: FlashConfig = serde_json::from_str(text).unwrap();
    let timing = config.timing().unwrap();
    let times: Vec<u64> = (0..4).map(|page| timing.read(page).as_ns()).collect();
    assert_eq!(times, [10_000, 20_000, 30_000, 10_000]);
    let wrong = text.replace(r#","30us""#, "");
    let config: FlashConfig = serde_json::from_str(&wrong).unwrap();
    assert_eq!(config.timing().unwrap_err().key, "flash.read_time");
}

#[test]
fn a_read_takes_the_old_place_of_a_page_that_waits_to_be_copied() {
    let mut rig = Rig::new(r#","read_priority":true,"copy":"copy-back""#);
    for number in 0..8 {
        let copy = FlashOp::copy(0, page(0, 0) + number, page(0, 1) + number, FlashCause::Cleaning);
        rig.enqueue(Time::ZERO, 100, copy);
    }
    rig.enqueue(Time::ZERO, 101, FlashOp::erase(0, page(0, 0), FlashCause::Cleaning));
    // The host already sees the last page at its new place.
    rig.enqueue(Time::ZERO, 1, FlashOp::read(0, page(0, 1) + 7, HOST));
    let done = rig.run();
    assert_eq!(done[..2], [(100, 550.0), (1, 610.0)], "after the copy under way, not after all");
    assert_eq!(done.last(), Some(&(101, 8.0 * 550.0 + 60.0 + 3000.0)));
}

#[test]
fn a_read_waits_for_the_new_data_of_a_block_that_is_used_again() {
    for rules in [r#","read_priority":true"#, r#","read_priority":true,"erase_suspend":true"#] {
        let mut rig = Rig::new(rules);
        rig.enqueue(Time::ZERO, 1, FlashOp::read(0, page(0, 0), HOST));
        rig.enqueue(Time::ZERO, 2, FlashOp::erase(0, page(0, 0), FlashCause::Cleaning));
        // Old data: before the erase.
        rig.enqueue(Time::ZERO, 3, FlashOp::read(0, page(0, 0) + 7, HOST));
        rig.enqueue(Time::ZERO, 4, FlashOp::program(0, page(0, 0), HOST));
        // New data: until it is there, the pages of the last epoch must not be taken for it.
        rig.enqueue(Time::ZERO, 5, FlashOp::read(0, page(0, 0), HOST));
        let done: Vec<u32> = rig.run().into_iter().map(|(owner, _)| owner).collect();
        // The third read came after the erase was queued, so it waits for a program that never
        // comes: only a defective FTL asks for it, and the array does not stop for it.
        assert_eq!(done, [1, 2, 4, 5], "{rules}");
    }
}

#[test]
fn a_read_follows_the_copies_of_its_own_epoch() {
    let mut rig = Rig::new(r#","read_priority":true,"copy":"copy-back""#);
    let (a, b, c) = (page(0, 0), page(0, 1), page(0, 2));
    rig.enqueue(Time::ZERO, 1, FlashOp::copy(0, a, b, FlashCause::Cleaning));
    rig.enqueue(Time::ZERO, 2, FlashOp::erase(0, a, FlashCause::Cleaning));
    rig.enqueue(Time::ZERO, 3, FlashOp::copy(0, b, a, FlashCause::Cleaning));
    rig.enqueue(Time::ZERO, 4, FlashOp::copy(0, a, c, FlashCause::Cleaning));
    // Its data lies at `a` now, and at `a` again when it is copied to `c`: both are the same data.
    rig.enqueue(Time::ZERO, 5, FlashOp::read(0, c, HOST));
    let done: Vec<u32> = rig.run().into_iter().map(|(owner, _)| owner).collect();
    assert_eq!(done, [1, 5, 2, 3, 4], "at its first place, before the erase");
}

#[test]
fn reads_suspend_an_erase_but_a_burst_lets_it_end() {
    let rules = r#","read_priority":true,"erase_suspend":true,"read_burst":2"#;
    let mut rig = Rig::new(rules);
    rig.enqueue(Time::ZERO, 9, FlashOp::erase(0, page(0, 0), HOST));
    rig.run_until(Time::from_us(1000));
    for owner in 0..3 {
        let read = FlashOp::read(1, page(1, 0) + owner, HOST);
        rig.enqueue(Time::from_us(1000), owner, read);
    }
    // Two reads of 60 us; then the erase has its turn; then the third.
    assert_eq!(rig.run(), [(0, 1060.0), (1, 1120.0), (9, 3120.0), (2, 3180.0)]);
}

#[test]
#[should_panic(expected = "out of order")]
fn programs_go_upwards() {
    let mut rig = Rig::new("");
    rig.enqueue(Time::ZERO, 1, FlashOp::program(0, page(0, 1) + 3, HOST));
    rig.enqueue(Time::ZERO, 2, FlashOp::program(0, page(0, 1) + 2, HOST));
    rig.run();
}

#[test]
#[should_panic(expected = "not programmed")]
fn only_programmed_pages_are_read() {
    let mut rig = Rig::new("");
    rig.enqueue(Time::ZERO, 1, FlashOp::read(0, page(0, 1), HOST));
    rig.run();
}
