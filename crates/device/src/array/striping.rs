//! Members and stripes: which of a request goes to which member, and what waits before it.

use std::collections::VecDeque;

use ssdyno_block::{
    BlockTarget, Completion, ConfigError, Op, Request, Status, SubmitError, Time, Token,
};
use ssdyno_engine::{Rng, SlotTable};

use super::config::{ArrayConfig, UNITS_MOST, key_of};
use crate::{Device, DeviceReport};

/// One of the devices.
pub(super) struct Member {
    pub(super) device: Box<dyn Device>,
    /// The number of its first unit among those of the array.
    pub(super) first_unit: u8,
    /// Pieces that it has had no room for.
    waiting: VecDeque<u32>,
    /// Pieces that it has taken and not completed.
    inside: u32,
}

/// The part of a request for one member.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The request that it is of.
    whole: u32,
    request: Request,
}

/// A request of which a piece is under way.
#[derive(Clone, Copy, Debug)]
struct Whole {
    token: Token,
    /// When the first piece was taken.
    accepted: Time,
    /// When the last of those that are done was.
    completed: Time,
    status: Status,
    left: u32,
}

/// The members, stripe by stripe in turns.
pub(super) struct Striping {
    pub(super) members: Vec<Member>,
    pub(super) stripe: u64,
    pub(super) capacity_bytes: u64,
    pub(super) sector_bytes: u32,
    /// Pieces that a member is given at a time; none: as many as it takes.
    member_depth: Option<u32>,
    pieces: SlotTable<Piece>,
    wholes: SlotTable<Whole>,
    /// The latest time that the members know.
    now: Time,
    batch: Vec<Completion>,
}

/// A member and the number of its units.
pub(super) fn build_members(config: &ArrayConfig, seed: u64) -> Result<Vec<Member>, ConfigError> {
    let mut members = Vec::with_capacity(config.array.members.len());
    // The array itself is a unit, too.
    let mut units = 1;
    for (index, member) in config.array.members.iter().enumerate() {
        let key = key_of(index);
        let own_seed = Rng::new(seed, &key).below(u64::MAX);
        let device = member
            .device(&key)?
            .build(own_seed)
            .map_err(|error| ConfigError { key: format!("{key}.{}", error.key), ..error })?;
        let first_unit = u8::try_from(units).unwrap_or(u8::MAX);
        units += DeviceReport::of(device.as_ref()).units().len();
        if units > UNITS_MOST {
            let problem = format!("more than {UNITS_MOST} devices, including their members");
            return Err(ConfigError::new("array.members", problem, "use fewer members"));
        }
        members.push(Member::new(device, first_unit));
    }
    Ok(members)
}

impl Member {
    pub(super) fn new(device: Box<dyn Device>, first_unit: u8) -> Member {
        Member { device, first_unit, waiting: VecDeque::new(), inside: 0 }
    }
}

impl Striping {
    pub(super) fn new(
        members: Vec<Member>,
        stripe: u64,
        member_depth: Option<u32>,
    ) -> Result<Striping, ConfigError> {
        let sectors = members.iter().map(|member| member.device.sector_bytes());
        let sector_bytes = sectors.max().unwrap_or(ssdyno_block::SECTOR_BYTES);
        if !stripe.is_multiple_of(u64::from(sector_bytes)) {
            let problem =
                format!("{stripe} B is not a multiple of the members' sector of {sector_bytes} B");
            let help = "use a multiple of this size, such as \"64KiB\"";
            return Err(ConfigError::new("array.stripe", problem, help));
        }
        let smallest = members.iter().map(|member| member.device.capacity_bytes()).min();
        let stripes = smallest.unwrap_or(0) / stripe;
        let number = members.len() as u64;
        let Some(capacity_bytes) = (stripes * stripe).checked_mul(number).filter(|all| *all > 0)
        else {
            let problem = "the smallest member has no room for one stripe";
            return Err(ConfigError::new("array.stripe", problem, "use a smaller stripe"));
        };
        Ok(Striping {
            members,
            stripe,
            capacity_bytes,
            sector_bytes,
            member_depth,
            pieces: SlotTable::default(),
            wholes: SlotTable::default(),
            now: Time::ZERO,
            batch: Vec::new(),
        })
    }

    /// The part of `request` for member `member`, at its own addresses.
    pub(super) fn part_of(&self, request: &Request, member: usize) -> Option<Request> {
        if request.op == Op::Flush {
            return Some(*request);
        }
        let (count, member) = (self.members.len() as u64, member as u64);
        let last_byte = (request.offset_bytes + u64::from(request.length_bytes)).checked_sub(1)?;
        let (first, last) = (request.offset_bytes / self.stripe, last_byte / self.stripe);
        // The first and the last stripe of it that are the member's.
        let own_first = first + (member + count - first % count) % count;
        let own_last = last.checked_sub((last % count + count - member) % count)?;
        if own_first > own_last {
            return None;
        }
        let inside = |own: bool, inside: u64, other: u64| if own { inside } else { other };
        let from = own_first / count * self.stripe
            + inside(own_first == first, request.offset_bytes % self.stripe, 0);
        let to = own_last / count * self.stripe
            + inside(own_last == last, last_byte % self.stripe + 1, self.stripe);
        Some(Request { offset_bytes: from, length_bytes: (to - from) as u32, ..*request })
    }

    /// Gives member `index` what waits before it, as far as it takes it.
    fn feed(&mut self, now: Time, index: usize) {
        let member = &mut self.members[index];
        let most = self.member_depth.unwrap_or(u32::MAX);
        while let Some(piece) = member.waiting.front().copied().filter(|_| member.inside < most) {
            let request = self.pieces[piece].request;
            match member.device.submit(now, request, Token(piece)) {
                Ok(()) => member.waiting.pop_front(),
                Err(SubmitError::Full) => return,
                Err(error) => unreachable!("member {index} refuses a checked request: {error}"),
            };
            member.inside += 1;
        }
    }

    /// A member was removed.
    pub(super) fn has_lost_member(&self) -> bool {
        self.members.iter().any(|member| member.device.is_gone())
    }

    /// The member at which something happens first, and when.
    fn next(&self) -> Option<(Time, usize)> {
        let times = self.members.iter().enumerate();
        times.filter_map(|(index, member)| Some((member.device.next_event()?, index))).min()
    }

    /// A piece is done; with the last, its request.
    fn piece_done(&mut self, done: &Completion, out: &mut Vec<Completion>) {
        let number = self.pieces.take(done.token.0).whole;
        let whole = &mut self.wholes[number];
        whole.accepted = whole.accepted.min(done.accepted);
        whole.completed = whole.completed.max(done.completed);
        if whole.status == Status::Ok {
            whole.status = done.status;
        }
        whole.left -= 1;
        if whole.left == 0 {
            let Whole { token, accepted, completed, status, .. } = self.wholes.take(number);
            out.push(Completion { token, status, accepted, completed });
        }
    }

    /// Takes `request`, which was checked.
    pub(super) fn submit(&mut self, now: Time, request: Request, token: Token) {
        self.now = self.now.max(now);
        let (accepted, status) = (Time::MAX, Status::Ok);
        let whole = self.wholes.insert(Whole { token, accepted, completed: now, status, left: 0 });
        let count = self.members.len();
        let first = (request.offset_bytes / self.stripe % count as u64) as usize;
        for index in (first..count).chain(0..first) {
            let Some(request) = self.part_of(&request, index) else { continue };
            self.wholes[whole].left += 1;
            let piece = self.pieces.insert(Piece { whole, request });
            self.members[index].waiting.push_back(piece);
            self.feed(self.now, index);
        }
    }

    /// Brings the members to `now` and appends what has completed.
    pub(super) fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        let mut batch = std::mem::take(&mut self.batch);
        while let Some((at, index)) = self.next().filter(|(at, _)| *at <= now) {
            // A request may have ended as it was submitted.
            self.now = self.now.max(at);
            let member = &mut self.members[index];
            member.device.reap(self.now, &mut batch);
            member.inside -= batch.len() as u32;
            for done in batch.drain(..) {
                self.piece_done(&done, out);
            }
            self.feed(self.now, index);
        }
        self.now = self.now.max(now);
        self.batch = batch;
    }

    pub(super) fn next_event(&self) -> Option<Time> {
        self.next().map(|(at, _)| at)
    }
}
