//! A device behind something that only queues and delays: a host bus adapter, or a network with
//! a target machine. One queue with its own vector for each core.
//!
//! Here are the queues and the device; `remote` has the network with its target machine, `sessions` the
//! way of commands and answers over it, and `link_faults` the faults that are injected there.

mod link_faults;
mod remote;
mod sessions;
mod slots;

use std::collections::VecDeque;

use ssdyno_block::{Completion, Op, Request, Status, SubmitError, Time, Token};
use ssdyno_device::{Device, DeviceReport};
use ssdyno_engine::events::EventLog;
use ssdyno_engine::{EventQueue, PrepareError, SlotTable};
use ssdyno_figures::{FaultsResult, Invariant};
use ssdyno_host::{Choice, HostPort, Registers, ResentCommand};

use self::remote::Remote;
use self::slots::{Event, Slot, Stage};
use super::{PathFigures, PathReport};
use crate::attach::{HostPlan, Stack};
use crate::faults;
use crate::network::NetworkConfig;

/// Commands that a queue takes.
const DEPTH: u32 = 1024;

/// The way between host and device.
#[derive(Debug)]
enum Way {
    /// An adapter: delays.
    Adapter,
    /// A network.
    Network(Box<Remote>),
}

/// See the module.
pub(crate) struct QueuedPort {
    device: Box<dyn Device>,
    way: Way,
    /// No driver is here to report one: it is the one that is wished for.
    stack: Stack,
    to_device: Time,
    to_host: Time,
    queue: EventQueue<Event>,
    slots: SlotTable<Slot>,
    in_queue: Vec<u32>,
    /// Told and not yet taken, by queue.
    done: Vec<Vec<Completion>>,
    /// Commands that found the device full.
    waiting: VecDeque<u32>,
    batch: Vec<Completion>,
    taken: u64,
    answered: u64,
    /// Commands that began again and are not yet paid for.
    resent: Vec<ResentCommand>,
}

impl QueuedPort {
    /// `device` behind an adapter of `host`, or behind `network`.
    /// Faults of the network are drawn with `seed`.
    pub(crate) fn new(
        host: &HostPlan,
        network: Option<&NetworkConfig>,
        device: Box<dyn Device>,
        seed: u64,
    ) -> Self {
        let queues = usize::from(host.plan.cores);
        QueuedPort {
            device,
            stack: host.stack.unwrap_or(Stack::Block),
            way: match network {
                None => Way::Adapter,
                Some(config) => Way::Network(Box::new(Remote::new(config, queues, seed))),
            },
            to_device: host.config.costs.register_delivery.0,
            to_host: host.config.costs.interrupt_delivery.0,
            queue: EventQueue::new(),
            slots: SlotTable::default(),
            in_queue: vec![0; queues],
            done: vec![Vec::new(); queues],
            waiting: VecDeque::new(),
            batch: Vec::new(),
            taken: 0,
            answered: 0,
            resent: Vec::new(),
        }
    }

    /// Sends the answer of a command that the device completed at `at`.
    fn answer(&mut self, at: Time, slot: u32) {
        let Slot { request, queue, tries, .. } = self.slots[slot];
        if tries == 0 {
            return self.forget(slot, queue);
        }
        match &mut self.way {
            // An adapter only delays: several answers can be on their way at once. Contention
            // occurs on the device and on the cores, and both are modelled.
            Way::Adapter => self.queue.schedule(at + self.to_host, Event::Told(slot)),
            Way::Network(remote) => {
                let end = remote.prepare_answer(at, &request);
                self.queue.schedule(end, Event::Sent(slot));
            }
        }
    }

    fn happen(&mut self, at: Time, event: Event, vectors: &mut Vec<u16>) {
        match event {
            Event::AtTarget(slot) => self.arrive(at, slot),
            Event::AtDevice(slot) => {
                self.waiting.push_back(slot);
                self.feed(at);
            }
            Event::Sent(slot) => {
                let queue = self.slots[slot].queue;
                let Way::Network(remote) = &mut self.way else { return };
                remote.leave(queue);
                self.send_answer(at, slot);
            }
            Event::Again(slot) => self.send_command(at, slot),
            Event::AnswerAgain(slot) => self.send_answer(at, slot),
            Event::Told(slot) => {
                let Slot { token, queue, status, in_device, tries, .. } = self.slots[slot];
                // Zero marks the slot as free. Events of a broken session can still name it, and
                // they find this mark instead of a request that no longer exists.
                self.slots[slot].tries = 0;
                self.slots.free(slot);
                if tries == 0 {
                    return;
                }
                let (accepted, completed) = in_device;
                let told = Completion { token, status, accepted, completed };
                self.done[usize::from(queue)].push(told);
                vectors.push(queue);
            }
        }
    }

    /// Gives the device what waits, as far as it takes it.
    fn feed(&mut self, at: Time) {
        while let Some(slot) = self.waiting.front().copied() {
            let Slot { request, queue, tries, .. } = self.slots[slot];
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

impl HostPort for QueuedPort {
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
        match &self.way {
            Way::Adapter => Time::ZERO,
            Way::Network(remote) => remote.initiator_work(op, bytes, done),
        }
    }

    fn submit(
        &mut self,
        now: Time,
        queue: u16,
        request: Request,
        token: Token,
        _more: bool,
    ) -> Result<Registers, SubmitError> {
        // The queue has an end, as every adapter has. An open loop above the limit of the device
        // would otherwise grow without bound in memory.
        if self.in_queue[usize::from(queue)] == DEPTH {
            return Err(SubmitError::Full);
        }
        // A break that is due comes before the new command. The command would otherwise be lost
        // with a session that it never used.
        self.break_all(now);
        self.in_queue[usize::from(queue)] += 1;
        self.taken += 1;
        let (status, stage) = (Status::Ok, Stage::Waiting);
        let in_device = (Time::ZERO, Time::ZERO);
        let command = Slot { request, token, queue, status, in_device, stage, tries: 1 };
        let slot = self.slots.insert(command);
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
            // All events of one moment are processed before the host is told. Otherwise two
            // completions at the same time would call the host twice.
            if next > until || next == Time::MAX || (!vectors.is_empty() && next > last) {
                return last;
            }
            last = next;
            if fault <= next {
                self.break_all(next);
            // The device goes first at equal times: its completion makes room for a command that
            // arrives at the same moment.
            } else if device <= own {
                let mut batch = std::mem::take(&mut self.batch);
                self.device.reap(device, &mut batch);
                for done in batch.drain(..) {
                    let slot = &mut self.slots[done.token.0];
                    slot.status = done.status;
                    slot.in_device = (done.accepted, done.completed);
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

    fn take_resent(&mut self) -> Vec<ResentCommand> {
        std::mem::take(&mut self.resent)
    }
}

impl PathReport for QueuedPort {
    fn events(&mut self) -> &mut EventLog {
        self.device.events()
    }

    fn report(&self, report: &mut DeviceReport) {
        self.device.report(report);
    }

    fn precondition(&mut self, watcher: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError> {
        self.device.precondition(watcher)
    }

    fn expect(&self, upcoming: &[Request]) {
        self.device.expect(upcoming);
    }

    fn explaining(&mut self) -> Option<&mut dyn Device> {
        Some(&mut *self.device)
    }

    fn is_gone(&self) -> bool {
        self.device.is_gone()
    }

    fn path(&self, end: Time, report: &mut PathFigures) {
        report.stack = self.stack;
        let injected = DeviceReport::of(self.device.as_ref()).injected();
        let device = faults::of_device(injected, Time::ZERO);
        let mut network = None;
        if let Way::Network(remote) = &self.way {
            report.network = Some(remote.result(end, self.answered));
            network = remote.weather.as_ref().map(|weather| weather.counts());
        }
        let any = device.is_some() || network.is_some();
        report.faults = any.then(|| FaultsResult { device, network, ..FaultsResult::default() });
        let invariants = &mut report.invariants;
        invariants.push(Invariant {
            name: "commands".into(),
            holds: self.taken == self.answered && self.waiting.is_empty(),
            detail: format!("{} issued, {} completed", self.taken, self.answered),
        });
    }
}
