//! Cache registers: allowed sequences, interrupting reads, and the log for dies that do two things at a time.

use ssdyno_block::Time;
use ssdyno_engine::EventQueue;
use ssdyno_engine::events::{Activity, Busy, EventLog, EventReader, FlashCause, PartKind};
use ssdyno_flash::{FlashArray, FlashConfig, FlashOp, PlanePort};

use crate::machine::Only;

/// Dies of two planes with eight blocks of eight pages. A page crosses in 10 us, a read takes 50, a program 500, and the
/// registers move in 5 and 3 us.
struct Dies {
    array: FlashArray,
    queue: EventQueue<Only>,
    log: EventLog,
    done: Vec<(u32, f64)>,
}

impl Dies {
    fn new(rules: &str) -> Dies {
        let cached = r#","cache_read":true,"cache_program":true"#;
        Dies::with(1, &format!("{cached}{rules}"))
    }

    /// So many, without cache registers unless the rules say so.
    fn with(dies: u32, rules: &str) -> Dies {
        let text = format!(
            r#"{{"channels":1,"chips_per_channel":{dies},"dies_per_chip":1,"planes_per_die":2,
            "blocks_per_plane":8,"pages_per_block":8,"page_size":"4KiB","read_time":"50us",
            "program_time":"500us","erase_time":"3ms","bus":"409600000B/s","multi_plane":"off",
            "suspend_time":"20us","cache_read_busy":"5us","cache_program_busy":"3us"{rules}}}"#
        );
        let config: FlashConfig = serde_json::from_str(&text).unwrap();
        let mut array = FlashArray::new(&config).unwrap();
        for plane in 0..2 * dies {
            array.set_written(plane * 8, 8);
        }
        Dies { array, queue: EventQueue::new(), log: EventLog::default(), done: Vec::new() }
    }

    fn at(&mut self, us: u64, owner: u32, op: FlashOp) {
        self.run_until(Time::from_us(us));
        let mut done = Vec::new();
        let now = Time::from_us(us);
        let mut port =
            PlanePort { now, queue: &mut self.queue, log: &mut self.log, done: &mut done };
        self.array.enqueue(op, owner, &mut port);
        assert!(done.is_empty(), "nothing completes at once");
    }

    fn run_until(&mut self, end: Time) {
        while let Some((now, Only(event))) = self.queue.pop_due(end) {
            let mut done = Vec::new();
            let mut port =
                PlanePort { now, queue: &mut self.queue, log: &mut self.log, done: &mut done };
            self.array.handle(event, &mut port);
            self.done.extend(done.into_iter().map(|owner| (owner, now.as_ns() as f64 / 1e3)));
        }
    }

    fn run(&mut self) -> Vec<(u32, f64)> {
        self.run_until(Time::MAX);
        assert!(self.array.is_quiet(0), "nothing is left");
        std::mem::take(&mut self.done)
    }
}

/// First page of block `block` of plane `plane`.
fn page(plane: u32, block: u32) -> u32 {
    (plane * 8 + block) * 8
}

fn read(number: u32) -> FlashOp {
    FlashOp::read(0, page(0, 0) + number, FlashCause::Host)
}

fn program(number: u32) -> FlashOp {
    FlashOp::program(0, page(0, 1) + number, FlashCause::Host)
}

#[test]
fn reads_follow_one_another_and_the_last_is_fetched() {
    let mut die = Dies::new("");
    for owner in 0..3 {
        die.at(0, owner, read(owner));
    }
    // tR; then 5 to move and 50 to read the next, while the last one's 10 go out; at the end 5 and 10.
    assert_eq!(die.run(), [(0, 65.0), (1, 120.0), (2, 175.0)]);
    let mut alone = Dies::new("");
    alone.at(0, 0, read(0));
    assert_eq!(alone.run(), [(0, 60.0)], "nothing follows: no register is moved");
}

#[test]
fn a_read_of_another_plane_follows_too() {
    let mut die = Dies::new("");
    die.at(0, 0, read(0));
    die.at(0, 1, FlashOp::read(1, page(1, 0), FlashCause::Host));
    assert_eq!(die.run(), [(0, 65.0), (1, 120.0)]);
}

#[test]
fn programs_follow_one_another_and_the_last_closes() {
    let mut die = Dies::new("");
    for owner in 0..3 {
        die.at(0, owner, program(owner));
    }
    // In 10, moved 3; 500; the next is in and moves 3; 500; the last was confirmed with 10h: 500.
    assert_eq!(die.run(), [(0, 513.0), (1, 1016.0), (2, 1516.0)]);
    let mut late = Dies::new("");
    late.at(0, 0, program(0));
    late.at(200, 1, program(1));
    assert_eq!(late.run(), [(0, 510.0), (1, 1020.0)], "10h: closed until it is done");
}

#[test]
fn erases_and_copies_do_not_follow() {
    for (rules, copied) in [(r#","copy":"copy-back""#, 550.0), (r#","copy":"controller""#, 570.0)] {
        let mut die = Dies::new(rules);
        die.at(0, 0, program(0));
        die.at(0, 1, FlashOp::copy(0, page(0, 0), page(0, 2), FlashCause::Cleaning));
        die.at(0, 2, read(1));
        die.at(0, 3, FlashOp::erase(0, page(0, 3), FlashCause::Cleaning));
        die.at(0, 4, program(1));
        let copied = 510.0 + copied;
        let expected = [
            (0, 510.0),
            (1, copied),
            (2, copied + 60.0),
            (3, copied + 3060.0),
            (4, copied + 3570.0),
        ];
        assert_eq!(die.run(), expected, "{rules}");
    }
}

/// With the data of the next page in the cache register, the register has no room for the data of a
/// read.
#[test]
fn a_program_is_suspended_only_while_the_cache_register_is_empty() {
    let rules = r#","read_priority":true,"program_suspend":true"#;
    let mut die = Dies::new(rules);
    die.at(0, 0, program(0));
    die.at(0, 1, program(1));
    die.at(100, 2, read(0));
    // The second is in: the read waits until the first ends, and suspends the second as it begins.
    assert_eq!(die.run(), [(0, 513.0), (2, 593.0), (1, 1113.0)]);
    // A read that comes before the first is in stops the chain, and suspends it.
    let mut die = Dies::new(rules);
    die.at(0, 0, program(0));
    die.at(0, 1, program(1));
    die.at(5, 2, read(0));
    assert_eq!(die.run(), [(2, 90.0), (0, 610.0), (1, 1120.0)]);
}

/// A suspended program keeps its data in one of the two registers: reads do not follow one another then.
#[test]
fn reads_do_not_follow_while_a_program_is_suspended() {
    let rules = r#","read_priority":true,"program_suspend":true,"erase_suspend":true"#;
    let mut die = Dies::new(rules);
    die.at(0, 0, program(0));
    die.at(100, 1, read(0));
    die.at(100, 2, read(1));
    assert_eq!(die.run(), [(1, 180.0), (2, 240.0), (0, 240.0 + 20.0 + 410.0)]);
    // An erase has no data.
    let mut die = Dies::new(rules);
    die.at(0, 0, FlashOp::erase(0, page(0, 3), FlashCause::Cleaning));
    die.at(100, 1, read(0));
    die.at(100, 2, read(1));
    assert_eq!(die.run(), [(1, 185.0), (2, 240.0), (0, 240.0 + 20.0 + 2900.0)]);
}

#[test]
fn a_burst_of_reads_lets_others_have_their_turn() {
    let mut die = Dies::new(r#","read_priority":true,"read_burst":2"#);
    die.at(0, 0, read(0));
    die.at(1, 9, program(0));
    for owner in 1..4 {
        die.at(1, owner, read(owner));
    }
    // Two reads in a row; the program; two more.
    let expected = [(0, 65.0), (1, 120.0), (9, 630.0), (2, 695.0), (3, 750.0)];
    assert_eq!(die.run(), expected);
}

/// The program waits for the channel when the read comes, and gives way as soon as its array phase begins,
/// whether it has its place on the channel since it was ready or waits in line.
#[test]
fn a_read_interrupts_a_program_that_waited_for_the_channel() {
    for order in ["fcfs", "commands-first", "data-out-first", "commands-then-data-out"] {
        let rules =
            format!(r#","read_priority":true,"program_suspend":true,"channel_order":"{order}""#);
        let mut dies = Dies::with(2, &rules);
        dies.at(0, 0, program(0));
        dies.at(0, 1, FlashOp::program(2, page(2, 1), FlashCause::Host));
        dies.at(5, 2, FlashOp::read(2, page(2, 0), FlashCause::Host));
        // In from 10 to 20; suspended by 40, read by 90, out by 100; resumed by 120.
        assert_eq!(dies.run(), [(2, 100.0), (0, 510.0), (1, 620.0)], "{order}");
    }
}

#[derive(Default)]
struct Sums {
    /// Die: array, bus; channel.
    us: [f64; 3],
    pages: [u32; 3],
    begun: Vec<Time>,
}

impl EventReader for Sums {
    fn read(&mut self, events: &[Busy]) {
        for busy in events {
            let at = match (busy.part.kind, busy.activity) {
                (PartKind::Channel, _) => 2,
                (_, Activity::Transfer | Activity::CacheTransfer) => 1,
                _ => 0,
            };
            self.us[at] += (busy.to - busy.from).as_ns() as f64 / 1e3;
            self.pages[at] += u32::from(busy.operations);
            if at == 2 {
                self.begun.push(busy.from);
            }
        }
    }
}

#[test]
fn the_log_has_every_operation_once() {
    let mut die = Dies::new("");
    for owner in 0..4 {
        die.at(0, owner, read(owner));
    }
    for owner in 4..7 {
        die.at(0, owner, program(owner - 4));
    }
    die.run();
    let mut sums = Sums::default();
    die.log.show_to(&mut sums);
    assert_eq!(sums.us, [4.0 * 50.0 + 3.0 * 500.0, 70.0, 70.0]);
    assert_eq!(sums.pages, [7, 7, 7]);
    assert!(sums.begun.is_sorted());
}
