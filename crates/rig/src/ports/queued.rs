//! A device behind something that only queues and delays: a host bus adapter, or a network with
//! a target machine. One queue with its own vector for each core.

use std::collections::VecDeque;

use ssdyno_block::{Completion, Op, Request, Status, SubmitError, Time, Token};
use ssdyno_device::{Device, DeviceFacts, PrepareError};
use ssdyno_engine::events::EventLog;
use ssdyno_engine::{EventQueue, Server};
use ssdyno_ftl::Health;
use ssdyno_host::{Choice, Port, Registers};
use ssdyno_result::{FaultsResult, Invariant, NetworkResult};

use super::Behind;
use super::weather::{Fate, Weather};
use crate::attach::{HostPlan, Stack};
use crate::faults;
use crate::network::{Data, NetworkConfig};

/// Commands that a queue takes.
const DEPTH: u32 = 1024;

/// What can happen to the command of a slot.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// It has reached the target machine.
    AtTarget(u32),
    /// It has reached the device.
    AtDevice(u32),
    /// The target machine has sent its answer.
    Sent(u32),
    /// The host is told.
    Told(u32),
    /// It is sent to the target machine again.
    Again(u32),
    /// Its answer is sent to the host again.
    AnswerAgain(u32),
}

/// Three bits for the kind, 29 for the slot.
impl ssdyno_engine::Event for Event {
    #[inline]
    fn pack(self) -> u32 {
        match self {
            Event::AtTarget(slot) => slot,
            Event::AtDevice(slot) => slot | 1 << 29,
            Event::Sent(slot) => slot | 2 << 29,
            Event::Told(slot) => slot | 3 << 29,
            Event::Again(slot) => slot | 4 << 29,
            Event::AnswerAgain(slot) => slot | 5 << 29,
        }
    }
    #[inline]
    fn unpack(code: u32) -> Event {
        let slot = code & !(7 << 29);
        match code >> 29 {
            0 => Event::AtTarget(slot),
            1 => Event::AtDevice(slot),
            2 => Event::Sent(slot),
            3 => Event::Told(slot),
            4 => Event::Again(slot),
            _ => Event::AnswerAgain(slot),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    request: Request,
    token: Token,
    queue: u16,
    status: Status,
    /// How often it was begun; 0: the slot is free, or its session broke and what still happens is for
    /// nobody.
    tries: u32,
}

/// The way between host and device.
#[derive(Debug)]
enum Way {
    /// An adapter: delays.
    Adapter,
    /// A network.
    Network(Box<Remote>),
}

/// Link and target machine.
#[derive(Debug)]
struct Remote {
    config: NetworkConfig,
    to_target: Server,
    to_host: Server,
    cores: Vec<Server>,
    /// Commands that the target has of each session.
    at_work: Vec<u32>,
    cpu: Time,
    wire: [Time; 2],
    /// What goes wrong on order.
    weather: Option<Box<Weather>>,
}

impl Remote {
    /// A core of the target works for `length`; gives its end.
    fn work(&mut self, at: Time, length: Time) -> Time {
        self.cpu += length;
        let core = self.cores.iter_mut().min_by_key(|core| core.free_at());
        core.map_or(at, |core| core.reserve(at, length).1)
    }

    /// A message of `length` on the wire sets out to the target (0) or to the host (1).
    fn transmit(&mut self, now: Time, to: usize, length: Time) -> Fate {
        self.wire[to] += length;
        let server = if to == 0 { &mut self.to_target } else { &mut self.to_host };
        let latency = self.config.link.latency.0;
        let arrives = server.reserve(now, length).1 + latency;
        match &mut self.weather {
            None => Fate::Arrives(arrives),
            // The rejection is a header; it does not wait for others.
            Some(weather) => weather.fate(now, arrives, self.config.wire(0) + latency),
        }
    }

    fn sessions(&self) -> usize {
        self.at_work.iter().filter(|commands| **commands > 0).count()
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct QueuedPort<D> {
    device: D,
    way: Way,
    /// No driver is here to report one: it is the one that is wished for.
    stack: Stack,
    to_device: Time,
    to_host: Time,
    queue: EventQueue<Event>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    in_queue: Vec<u32>,
    /// Told and not yet taken, by queue.
    done: Vec<Vec<Completion>>,
    /// Commands that found the device full.
    waiting: VecDeque<u32>,
    batch: Vec<Completion>,
    taken: u64,
    answered: u64,
}

impl<D: Device> QueuedPort<D> {
    /// `device` behind an adapter of `host`, or behind `network`.
    /// What goes wrong on the network is drawn with `seed`.
    pub(crate) fn new(
        host: &HostPlan,
        network: Option<&NetworkConfig>,
        device: D,
        seed: u64,
    ) -> Self {
        let queues = usize::from(host.plan.cores);
        let remote = |config: &NetworkConfig| Remote {
            config: config.clone(),
            to_target: Server::default(),
            to_host: Server::default(),
            cores: vec![Server::default(); config.target.cores.into()],
            at_work: vec![0; queues],
            cpu: Time::ZERO,
            wire: [Time::ZERO; 2],
            weather: Weather::new(&config.faults, queues, seed),
        };
        QueuedPort {
            device,
            stack: host.stack.unwrap_or(Stack::Block),
            way: network.map_or(Way::Adapter, |config| Way::Network(Box::new(remote(config)))),
            to_device: host.config.costs.register_delivery.0,
            to_host: host.config.costs.interrupt_delivery.0,
            queue: EventQueue::new(),
            slots: Vec::new(),
            free: Vec::new(),
            in_queue: vec![0; queues],
            done: vec![Vec::new(); queues],
            waiting: VecDeque::new(),
            batch: Vec::new(),
            taken: 0,
            answered: 0,
        }
    }

    fn insert(&mut self, slot: Slot) -> u32 {
        let at = self.free.pop().unwrap_or(self.slots.len() as u32);
        match self.slots.get_mut(at as usize) {
            Some(place) => *place = slot,
            None => self.slots.push(slot),
        }
        at
    }

    /// What the target has of a broken session is for nobody.
    fn forget(&mut self, slot: u32, queue: u16) {
        self.free.push(slot);
        if let Way::Network(remote) = &mut self.way {
            remote.at_work[usize::from(queue)] -= 1;
        }
    }

    /// Sends the answer of a command that the device completed at `at`.
    fn answer(&mut self, at: Time, slot: u32) {
        let Slot { request, queue, tries, .. } = self.slots[slot as usize];
        if tries == 0 {
            return self.forget(slot, queue);
        }
        match &mut self.way {
            Way::Adapter => self.queue.schedule(at + self.to_host, Event::Told(slot)),
            Way::Network(remote) => {
                let data = match request.op {
                    Op::Read => Data::Sent(request.length_bytes.into()),
                    Op::Write | Op::Trim | Op::Flush => Data::None,
                };
                let length = remote.config.target_work(data, true, remote.sessions());
                let end = remote.work(at, length);
                self.queue.schedule(end, Event::Sent(slot));
            }
        }
    }

    fn happen(&mut self, at: Time, event: Event, vectors: &mut Vec<u16>) {
        match event {
            Event::AtTarget(slot) => {
                let Slot { request, queue, tries, .. } = self.slots[slot as usize];
                let Way::Network(remote) = &mut self.way else { return };
                if tries == 0 {
                    return self.free.push(slot);
                }
                remote.at_work[usize::from(queue)] += 1;
                let data = match request.op {
                    Op::Write => Data::Received(request.length_bytes.into()),
                    Op::Read | Op::Trim | Op::Flush => Data::None,
                };
                let length = remote.config.target_work(data, false, remote.sessions());
                let end = remote.work(at, length);
                self.queue.schedule(end, Event::AtDevice(slot));
            }
            Event::AtDevice(slot) => {
                self.waiting.push_back(slot);
                self.feed(at);
            }
            Event::Sent(slot) => {
                let queue = self.slots[slot as usize].queue;
                let Way::Network(remote) = &mut self.way else { return };
                remote.at_work[usize::from(queue)] -= 1;
                self.send_answer(at, slot);
            }
            Event::Again(slot) => self.send_command(at, slot),
            Event::AnswerAgain(slot) => self.send_answer(at, slot),
            Event::Told(slot) => {
                let Slot { token, queue, status, tries, .. } = self.slots[slot as usize];
                self.slots[slot as usize].tries = 0;
                self.free.push(slot);
                if tries == 0 {
                    return;
                }
                let told = Completion { token, status, accepted: at, completed: at };
                self.done[usize::from(queue)].push(told);
                vectors.push(queue);
            }
        }
    }

    /// A command sets out over the network, or waits for its session.
    fn send_command(&mut self, now: Time, slot: u32) {
        let Slot { request, queue, tries, .. } = self.slots[slot as usize];
        let Way::Network(remote) = &mut self.way else { return };
        if tries == 0 {
            return self.free.push(slot);
        }
        let down = remote.weather.as_ref().and_then(|w| w.down(now, queue.into()));
        if let Some(until) = down {
            return self.queue.schedule(until, Event::Again(slot));
        }
        let data = if request.op == Op::Write { request.length_bytes } else { 0 };
        match remote.transmit(now, 0, remote.config.wire(data.into())) {
            Fate::Arrives(at) => self.queue.schedule(at, Event::AtTarget(slot)),
            Fate::Again(at) => self.queue.schedule(at, Event::Again(slot)),
            Fate::Breaks => {
                self.queue.schedule(now, Event::Again(slot));
                self.break_session(now, queue);
            }
        }
    }

    /// An answer sets out over the network.
    fn send_answer(&mut self, now: Time, slot: u32) {
        let Slot { request, queue, tries, .. } = self.slots[slot as usize];
        let Way::Network(remote) = &mut self.way else { return };
        if tries == 0 {
            return self.free.push(slot);
        }
        let data = if request.op == Op::Read { request.length_bytes } else { 0 };
        match remote.transmit(now, 1, remote.config.wire(data.into())) {
            Fate::Arrives(at) => self.queue.schedule(at, Event::Told(slot)),
            Fate::Again(at) => self.queue.schedule(at, Event::AnswerAgain(slot)),
            Fate::Breaks => {
                self.queue.schedule(now, Event::AnswerAgain(slot));
                self.break_session(now, queue);
            }
        }
    }

    /// The session of `queue` breaks: what of it is on its way is for nobody, and begins again in slots
    /// of its own; the device may do it twice.
    #[cold]
    fn break_session(&mut self, now: Time, queue: u16) {
        let Way::Network(remote) = &mut self.way else { return };
        let Some(weather) = &mut remote.weather else { return };
        let back = weather.break_session(now, queue.into());
        let of_session = |slot: &Slot| slot.queue == queue && slot.tries > 0;
        let broken = (0..self.slots.len()).filter(|at| of_session(&self.slots[*at]));
        for old in broken.collect::<Vec<_>>() {
            let slot = self.slots[old];
            let begins = weather.may_begin_again(slot.tries);
            self.slots[old].tries = 0;
            let status = if begins { slot.status } else { Status::Error };
            let again = Slot { tries: slot.tries + u32::from(begins), status, ..slot };
            let at = self.free.pop().unwrap_or(self.slots.len() as u32);
            match self.slots.get_mut(at as usize) {
                Some(place) => *place = again,
                None => self.slots.push(again),
            }
            let event = if begins { Event::Again(at) } else { Event::Told(at) };
            self.queue.schedule(back, event);
        }
    }

    /// When all sessions break; while nothing is on its way that hits nobody.
    fn break_at(&self) -> Time {
        match &self.way {
            Way::Network(remote) if self.taken > self.answered => {
                remote.weather.as_ref().map_or(Time::MAX, |weather| weather.break_at)
            }
            _ => Time::MAX,
        }
    }

    /// All sessions break, if it is time.
    fn break_all(&mut self, now: Time) {
        let Way::Network(remote) = &mut self.way else { return };
        let Some(weather) = remote.weather.as_mut().filter(|w| w.break_at <= now) else { return };
        let at = std::mem::replace(&mut weather.break_at, Time::MAX);
        (0..self.in_queue.len()).for_each(|queue| self.break_session(at, queue as u16));
    }

    /// Gives the device what waits, as far as it takes it.
    fn feed(&mut self, at: Time) {
        while let Some(slot) = self.waiting.front().copied() {
            let Slot { request, queue, tries, .. } = self.slots[slot as usize];
            if tries == 0 {
                self.waiting.pop_front();
                self.forget(slot, queue);
                continue;
            }
            match self.device.submit(at, request, Token(slot)) {
                Ok(()) => {
                    self.waiting.pop_front();
                }
                Err(SubmitError::Full) => return,
                Err(error) => unreachable!("the device refuses a checked request: {error}"),
            }
        }
    }
}

impl<D: Device> Port for QueuedPort<D> {
    fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }

    fn sector_bytes(&self) -> u32 {
        self.device.sector_bytes()
    }

    fn transfer_bytes_max(&self) -> u32 {
        1 << 20
    }

    fn locks(&self) -> u16 {
        self.in_queue.len() as u16
    }

    fn shared(&self) -> bool {
        false
    }

    fn choose(&mut self, core: u16, _class: u8) -> Choice {
        Choice { queue: core, lock: None }
    }

    fn core_of(&self, vector: u16) -> u16 {
        vector
    }

    fn protocol_work(&self, op: Op, bytes: u32, done: bool) -> Time {
        let Way::Network(remote) = &self.way else { return Time::ZERO };
        let data = match (op, done) {
            (Op::Write, false) => Data::Sent(bytes.into()),
            (Op::Read, true) => Data::Received(bytes.into()),
            _ => Data::None,
        };
        remote.config.initiator_work(data, done)
    }

    fn submit(
        &mut self,
        now: Time,
        queue: u16,
        request: Request,
        token: Token,
        _more: bool,
    ) -> Result<Registers, SubmitError> {
        if self.in_queue[usize::from(queue)] == DEPTH {
            return Err(SubmitError::Full);
        }
        self.break_all(now);
        self.in_queue[usize::from(queue)] += 1;
        self.taken += 1;
        let slot = self.insert(Slot { request, token, queue, status: Status::Ok, tries: 1 });
        match &mut self.way {
            Way::Adapter => self.queue.schedule(now + self.to_device, Event::AtDevice(slot)),
            Way::Network(_) => self.send_command(now, slot),
        }
        Ok(Registers { writes: 1, reads: 0 })
    }

    fn ring(&mut self, _now: Time, _queue: u16) -> Registers {
        Registers::default()
    }

    fn next_event(&self) -> Option<Time> {
        let fault = Some(self.break_at()).filter(|at| *at < Time::MAX);
        [self.queue.next_time(), self.device.next_event(), fault].into_iter().flatten().min()
    }

    fn advance(&mut self, until: Time, vectors: &mut Vec<u16>) -> Time {
        let mut last = Time::ZERO;
        loop {
            let device = self.device.next_event().unwrap_or(Time::MAX);
            let own = self.queue.next_time().unwrap_or(Time::MAX);
            let fault = self.break_at();
            let next = device.min(own).min(fault);
            if next > until || next == Time::MAX || (!vectors.is_empty() && next > last) {
                return last;
            }
            last = next;
            if fault <= next {
                self.break_all(next);
            } else if device <= own {
                let mut batch = std::mem::take(&mut self.batch);
                self.device.reap(device, &mut batch);
                for done in batch.drain(..) {
                    self.slots[done.token.0 as usize].status = done.status;
                    self.answer(device, done.token.0);
                }
                self.batch = batch;
                self.feed(device);
            } else if let Some((at, event)) = self.queue.pop_due(own) {
                self.happen(at, event, vectors);
            }
        }
    }

    fn complete(&mut self, _now: Time, vector: u16, done: &mut Vec<Completion>) -> Registers {
        let ready = &mut self.done[usize::from(vector)];
        self.in_queue[usize::from(vector)] -= ready.len() as u32;
        self.answered += ready.len() as u64;
        done.append(ready);
        Registers::default()
    }
}

impl<D: Device + std::fmt::Debug> Behind for QueuedPort<D> {
    fn events(&mut self) -> &mut EventLog {
        self.device.events()
    }

    fn facts(&self) -> DeviceFacts {
        self.device.facts()
    }

    fn stack(&self) -> Stack {
        self.stack
    }

    fn health(&self) -> Health {
        self.device.health()
    }

    fn precondition(&mut self, watcher: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError> {
        self.device.precondition(watcher)
    }

    fn expect(&self, upcoming: &[Request]) {
        self.device.expect(upcoming);
    }

    fn is_gone(&self) -> bool {
        self.device.is_gone()
    }

    fn faults(&self) -> Option<FaultsResult> {
        let device = faults::of_device(self.device.injected());
        let network = match &self.way {
            Way::Network(remote) => remote.weather.as_ref().map(|weather| weather.counts),
            Way::Adapter => None,
        };
        let any = device.is_some() || network.is_some();
        any.then(|| FaultsResult { device, network, ..FaultsResult::default() })
    }

    fn network(&self, end: Time) -> Option<NetworkResult> {
        let Way::Network(remote) = &self.way else { return None };
        let share = |busy: Time, of: usize| match end.as_s_f64() * of as f64 {
            0.0 => 0.0,
            all => busy.as_s_f64() / all,
        };
        let answered = self.answered.max(1) as f64;
        Some(NetworkResult {
            target_cpu_share: share(remote.cpu, remote.cores.len()),
            target_cpu_ns_per_command: remote.cpu.as_ns_f64() / answered,
            link_to_target_share: share(remote.wire[0], 1),
            link_to_host_share: share(remote.wire[1], 1),
            network_toml: remote.config.to_toml(),
        })
    }

    fn laws(&self, laws: &mut Vec<Invariant>) {
        laws.push(Invariant {
            name: "commands".into(),
            holds: self.taken == self.answered && self.waiting.is_empty(),
            detail: format!("{} given, {} answered", self.taken, self.answered),
        });
    }
}
