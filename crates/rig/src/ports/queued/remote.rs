//! The network between host and device: links, and the machine that serves the device.

use ssdyno_block::{Op, Request, Time};
use ssdyno_engine::FifoResource;
use ssdyno_figures::NetworkResult;

use super::link_faults::{Delivery, LinkFaults};
use crate::network::{Data, NetworkConfig};

/// Link and target machine.
#[derive(Debug)]
pub(super) struct Remote {
    config: NetworkConfig,
    to_target: FifoResource,
    to_host: FifoResource,
    cores: Vec<FifoResource>,
    /// Commands that the target has of each session.
    at_work: Vec<u32>,
    cpu: Time,
    wire: [Time; 2],
    /// The injected faults.
    pub(super) weather: Option<Box<LinkFaults>>,
}

impl Remote {
    /// With a session for each of `queues`. The faults are drawn with `seed`.
    pub(super) fn new(config: &NetworkConfig, queues: usize, seed: u64) -> Remote {
        Remote {
            config: config.clone(),
            to_target: FifoResource::default(),
            to_host: FifoResource::default(),
            cores: vec![FifoResource::default(); config.target.cores.into()],
            at_work: vec![0; queues],
            cpu: Time::ZERO,
            wire: [Time::ZERO; 2],
            weather: LinkFaults::new(&config.faults, queues, seed),
        }
    }

    /// Work of the host's protocol stack for a command before it goes, or (`done`) once its answer is
    /// there.
    pub(super) fn initiator_work(&self, op: Op, bytes: u32, done: bool) -> Time {
        let data = match (op, done) {
            // Data of a write leaves with the command, data of a read arrives with the answer. The
            // initiator pays for each byte once, in the direction in which it moves.
            (Op::Write, false) => Data::Sent(bytes.into()),
            (Op::Read, true) => Data::Received(bytes.into()),
            _ => Data::None,
        };
        self.config.initiator_work(data, done)
    }

    /// The target takes a command of the session of `queue`; gives when it has it ready for the device.
    pub(super) fn take(&mut self, at: Time, request: &Request, queue: u16) -> Time {
        self.at_work[usize::from(queue)] += 1;
        let data = match request.op {
            Op::Write => Data::Received(request.length_bytes.into()),
            Op::Read | Op::Trim | Op::Flush => Data::None,
        };
        let length = self.config.target_work(data, false, self.sessions());
        self.work(at, length)
    }

    /// The device is done with a command; gives when the target has its answer ready.
    pub(super) fn prepare_answer(&mut self, at: Time, request: &Request) -> Time {
        let data = match request.op {
            Op::Read => Data::Sent(request.length_bytes.into()),
            Op::Write | Op::Trim | Op::Flush => Data::None,
        };
        let length = self.config.target_work(data, true, self.sessions());
        self.work(at, length)
    }

    /// The target has no more to do with a command of the session of `queue`.
    pub(super) fn leave(&mut self, queue: u16) {
        self.at_work[usize::from(queue)] -= 1;
    }

    /// The command sets out to the target, with its data.
    pub(super) fn send_command(&mut self, now: Time, request: &Request) -> Delivery {
        let data = if request.op == Op::Write { request.length_bytes } else { 0 };
        self.transmit(now, 0, self.config.wire(data.into()))
    }

    /// The answer sets out to the host, with its data.
    pub(super) fn send_answer(&mut self, now: Time, request: &Request) -> Delivery {
        let data = if request.op == Op::Read { request.length_bytes } else { 0 };
        self.transmit(now, 1, self.config.wire(data.into()))
    }

    /// A core of the target works for `length`; gives its end.
    fn work(&mut self, at: Time, length: Time) -> Time {
        self.cpu += length;
        // The core that becomes free first takes the work, as an idle thread of a server would. A
        // fixed core per session would leave cores idle with one session.
        let core = self.cores.iter_mut().min_by_key(|core| core.free_at());
        core.map_or(at, |core| core.reserve(at, length).1)
    }

    /// A message of `length` on the wire sets out to the target (0) or to the host (1).
    fn transmit(&mut self, now: Time, to: usize, length: Time) -> Delivery {
        // A message that is lost or damaged still occupied the wire. Its time counts for the share
        // of the link, which can therefore exceed the useful data.
        self.wire[to] += length;
        let server = if to == 0 { &mut self.to_target } else { &mut self.to_host };
        let latency = self.config.link.latency.0;
        let arrives = server.reserve(now, length).1 + latency;
        match &mut self.weather {
            None => Delivery::Arrives(arrives),
            // The rejection is a header; it does not wait for others.
            Some(weather) => weather.fate(now, arrives, self.config.wire(0) + latency),
        }
    }

    fn sessions(&self) -> usize {
        // A session counts as active while it has a command at the target. Idle sessions cost no
        // switches, so the number of clients alone does not slow the server.
        self.at_work.iter().filter(|commands| **commands > 0).count()
    }

    /// Its work until `end`, for `answered` commands.
    pub(super) fn result(&self, end: Time, answered: u64) -> NetworkResult {
        let share = |busy: Time, of: usize| match end.as_s_f64() * of as f64 {
            0.0 => 0.0,
            all => busy.as_s_f64() / all,
        };
        let answered = answered.max(1) as f64;
        NetworkResult {
            target_cpu_share: share(self.cpu, self.cores.len()),
            target_cpu_ns_per_command: self.cpu.as_ns_f64() / answered,
            link_to_target_share: share(self.wire[0], 1),
            link_to_host_share: share(self.wire[1], 1),
            network_toml: self.config.to_toml(),
        }
    }
}
