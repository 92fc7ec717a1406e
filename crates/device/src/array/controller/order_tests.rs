//! The commands that reach the members: every member records its commands and completions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use ssdyno_block::BlockTarget;
use ssdyno_engine::PrepareError;

use super::tests::parse;
use super::*;
use crate::array::StripedArray;
use crate::array::striping::Member;
use crate::delay::{DelayConfig, DelayDevice};
use crate::{Device, DeviceReport};

const STRIPE: u64 = 2048;
const MEMBERS: u64 = 2;
const SECTORS: usize = 128;

/// What happens, in order.
#[derive(Clone, Copy, Debug)]
enum Step {
    Submitted(Token, Request),
    Completed(Token),
    /// A member was given a request, or completed it.
    Given(u64, Token, Request),
    Ended(u64, Token),
}

type Steps = Arc<Mutex<Vec<Step>>>;

struct Spy {
    number: u64,
    inner: DelayDevice,
    steps: Steps,
}

impl BlockTarget for Spy {
    fn capacity_bytes(&self) -> u64 {
        self.inner.capacity_bytes()
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.inner.submit(now, request, token)?;
        self.steps.lock().unwrap().push(Step::Given(self.number, token, request));
        Ok(())
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        let before = out.len();
        self.inner.reap(now, out);
        let ended = out[before..].iter().map(|done| Step::Ended(self.number, done.token));
        self.steps.lock().unwrap().extend(ended);
    }

    fn next_event(&self) -> Option<Time> {
        self.inner.next_event()
    }
}

impl Device for Spy {
    fn events(&mut self) -> &mut EventLog {
        self.inner.events()
    }

    fn report(&self, report: &mut DeviceReport) {
        self.inner.report(report);
    }

    fn precondition(&mut self, _: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError> {
        Ok(())
    }
}

fn spied(controller: &str) -> (StripedArray, Steps) {
    let steps = Steps::default();
    let text = "[delay]\ncapacity = \"32KiB\"\nread = \"70us\"\nwrite = \"40us\"\nservers = 3\n\
                depth = 64\nspread = \"exponential\"";
    let config = DelayConfig::parse(text).unwrap();
    let members = (0..MEMBERS).map(|number| {
        let inner = DelayDevice::new(&config, number).unwrap();
        Member::new(Box::new(Spy { number, inner, steps: steps.clone() }), 1 + number as u8)
    });
    let text = "{ delay = { capacity = \"32KiB\", read = \"1us\", write = \"1us\" } }";
    let config = parse("2KiB", &vec![text.to_owned(); 2], controller);
    (StripedArray::of(&config, members.collect()).unwrap(), steps)
}

/// Sends `requests`, `depth` at a time, and lets everything end.
fn send(array: &mut StripedArray, steps: &Steps, requests: &[Request], depth: usize) {
    let (mut now, mut out, mut inside) = (Time::ZERO, Vec::new(), 0);
    let mut left = requests.iter().enumerate().peekable();
    loop {
        while inside < depth
            && let Some((number, request)) = left.next()
        {
            let token = Token(number as u32);
            steps.lock().unwrap().push(Step::Submitted(token, *request));
            array.submit(now, *request, token).unwrap();
            inside += 1;
        }
        let Some(next) = array.next_event() else { break };
        now = next;
        array.reap(now, &mut out);
        inside -= out.len();
        steps.lock().unwrap().extend(out.drain(..).map(|done| Step::Completed(done.token)));
    }
    assert_eq!((inside, left.len()), (0, 0), "something hangs");
}

/// Sectors of a request, or at a member, as sectors of the array.
fn sectors(request: &Request, member: Option<u64>) -> impl Iterator<Item = usize> + use<> {
    let end = request.offset_bytes + u64::from(request.length_bytes);
    (request.offset_bytes..end).step_by(512).map(move |at| {
        let at =
            member.map_or(at, |member| (at / STRIPE * MEMBERS + member) * STRIPE + at % STRIPE);
        (at / 512) as usize
    })
}

/// What is known of a sector.
#[derive(Clone, Copy, Default)]
struct Sector {
    /// The host's newest data, which no member was given.
    unwritten: bool,
    /// A member was given a change while the host's newest was under way: that one, or an older one.
    unknown: bool,
    /// Changes that members work on.
    changing: u32,
    /// Changes of the host that are under way, and how many there were.
    host: u32,
    host_changes: u32,
    /// Changes and reads that members were given.
    changes: u32,
    reads: u32,
    /// A member was given a read since the newest data were there.
    read_since: bool,
}

/// The rules, over all steps.
fn judge(steps: &[Step], write_back: bool) {
    let mut all = [Sector::default(); SECTORS];
    // Of each request of the host, and of the members', what its sectors were when it began.
    let mut begun: BTreeMap<u32, (Request, Vec<Sector>)> = BTreeMap::new();
    let mut given: BTreeMap<(u64, u32), Request> = BTreeMap::new();
    for step in steps {
        match *step {
            Step::Submitted(token, request) => {
                if matches!(request.op, Op::Write | Op::Trim) {
                    for at in sectors(&request, None) {
                        all[at].host += 1;
                        all[at].host_changes += 1;
                    }
                }
                let then = sectors(&request, None).map(|at| as_of_now(&all, at)).collect();
                assert!(begun.insert(token.0, (request, then)).is_none());
            }
            Step::Given(member, token, request) => {
                for at in sectors(&request, Some(member)) {
                    let sector = &mut all[at];
                    if request.op == Op::Read {
                        let stale = write_back && (sector.unwritten || sector.changing > 0);
                        assert!(!stale || sector.host > 0, "sector {at} is newer in the cache");
                        sector.reads += 1;
                        sector.read_since = sector.changing == 0;
                    } else {
                        assert_eq!(sector.changing, 0, "changes of sector {at} overlap");
                        sector.changing += 1;
                        sector.read_since = false;
                        sector.changes += 1;
                        let left = sector.unwritten || sector.unknown;
                        sector.unknown = left && request.op == Op::Trim;
                        sector.unwritten = false;
                    }
                }
                assert!(given.insert((member, token.0), request).is_none());
            }
            Step::Ended(member, token) => {
                let request = given.remove(&(member, token.0)).unwrap();
                if matches!(request.op, Op::Write | Op::Trim) {
                    sectors(&request, Some(member)).for_each(|at| all[at].changing -= 1);
                }
            }
            Step::Completed(token) => {
                let (request, then) = begun.remove(&token.0).unwrap();
                for (at, then) in sectors(&request, None).zip(then) {
                    host_done(&mut all[at], &then, request.op, at);
                }
            }
        }
    }
    assert!(begun.is_empty() && given.is_empty());
    assert!(all.iter().all(|sector| !sector.unwritten), "dirty data stay in the cache");
}

/// Sector `at`, in the cache for as long as a part of its destage is under way, which may go to the other members, too.
fn as_of_now(all: &[Sector; SECTORS], at: usize) -> Sector {
    let stripes = (STRIPE * MEMBERS / 512) as usize;
    let first = at / stripes * stripes;
    let changing = all[first..first + stripes].iter().map(|sector| sector.changing).sum();
    Sector { changing, ..all[at] }
}

/// The host's request of `sector` is done, which was as `then` when it began.
fn host_done(sector: &mut Sector, then: &Sector, op: Op, at: usize) {
    match op {
        Op::Read => {
            let concurrent = then.host > 0 || sector.host_changes > then.host_changes;
            let hit = then.unwritten || then.unknown || then.changing > 0;
            let fresh = then.read_since || sector.reads > then.reads;
            assert!(concurrent || hit || fresh, "nobody has read sector {at}");
        }
        Op::Write => {
            sector.host -= 1;
            let given = sector.changes > then.changes;
            (sector.unwritten, sector.unknown) = (!given, given);
            sector.read_since &= given;
        }
        Op::Trim => {
            sector.host -= 1;
            // What was dirty is dropped, unless it was written while the trim waited for its turn.
            sector.unknown |= sector.unwritten;
            sector.unwritten = false;
        }
        Op::Flush => {}
    }
}

/// Reads and writes all over the array, and sequential ones.
fn requests() -> impl Strategy<Value = Vec<Request>> {
    let one = (0..24u32, 0..SECTORS as u64, 1..12u64);
    prop::collection::vec(one, 1..200).prop_map(|all| {
        let mut next = 0;
        let make = |(kind, at, length): (u32, u64, u64)| {
            // Half of them continue at the end of the last one.
            let at = if kind % 2 == 0 && next < SECTORS as u64 { next } else { at };
            let length = length.min(SECTORS as u64 - at);
            next = at + length;
            let op = match kind {
                0..10 => Op::Read,
                10..20 => Op::Write,
                20..23 => Op::Trim,
                _ => return Request::flush(),
            };
            Request { op, offset_bytes: at * 512, length_bytes: length as u32 * 512 }
        };
        all.into_iter().map(make).collect()
    })
}

proptest! {
    /// Every request completes once; no read returns data older than the host's last write; changes of a sector reach
    /// the members one after another; dirty data finally reaches them.
    #[test]
    fn order_is_kept(
        requests in requests(),
        depth in 1usize..12,
        write_back in any::<bool>(),
        policy in prop::sample::select(vec!["none", "adaptive", "always"]),
        order in prop::sample::select(vec!["age", "address"]),
        flush in prop::sample::select(vec!["complete", "pass-on"]),
        (cores, destage_depth, latency) in (1u32..4, 1u32..5, 0u32..60),
    ) {
        let controller = format!(
            "cache = \"20KiB\"\nread_ahead_size = \"4KiB\"\nstreams = 3\nwrite_back = {write_back}\n\
             read_ahead = \"{policy}\"\ndestage = \"{order}\"\nflush = \"{flush}\"\ncores = {cores}\n\
             destage_depth = {destage_depth}\nlatency = \"{latency}us\"\n\
             link = {{ kind = \"pcie\", generation = 1, lanes = 1 }}"
        );
        let (mut array, steps) = spied(&controller);
        send(&mut array, &steps, &requests, depth);
        judge(&steps.lock().unwrap(), write_back);
    }
}

/// Reads at depth 1 from the first byte to the last: what is on the way is not read twice.
#[test]
fn nothing_is_read_twice() {
    let controller =
        "cache = \"32KiB\"\nread_ahead = \"adaptive\"\nread_ahead_size = \"8KiB\"\nstreams = 2";
    let (mut array, steps) = spied(controller);
    let requests: Vec<_> = (0..SECTORS as u64).map(|n| Request::read(n * 512, 512)).collect();
    send(&mut array, &steps, &requests, 1);
    let mut times = [0; SECTORS];
    for step in steps.lock().unwrap().iter() {
        if let Step::Given(member, _, request) = step {
            sectors(request, Some(*member)).for_each(|at| times[at] += 1);
        }
    }
    assert_eq!(times, [1; SECTORS]);
}
