//! What stores the data of a ring card (S0-44).

use ssdyno_block::{BlockTarget, Completion, ConfigError, Op, Request, SubmitError, Time, Token};
use ssdyno_energy::Facts;
use ssdyno_engine::FifoResource;
use ssdyno_engine::PrepareError;
use ssdyno_engine::events::{
    Activity, Busy, EventLog, EventReader, FlashCause, PartEvent, PartKind,
};
use ssdyno_flash::PerLevel;
use ssdyno_spec::ring::{PAGE_BYTES, Technology};

use super::config::{MediaConfig, RingConfig};
use ssdyno_device::faults::FaultConfig;
use ssdyno_device::{Device, DeviceReport, FlashReport, LinkConfig};
use ssdyno_ssd::{Config, ControllerConfig, PowerConfig, QueueConfig, Ssd};

/// When the medium has done its part of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    /// It takes no time of its own: the transfer alone does.
    Now,
    /// At that time.
    At(Time),
    /// [`Media::reap`] will say.
    Later,
}

/// Dealing of pages to the banks of phase-change memory.
#[derive(Clone, Debug)]
pub(super) struct Pcm {
    banks: Vec<FifoResource>,
    read: Time,
    write: Time,
}

impl Pcm {
    /// Consecutive pages are in consecutive banks, hence in different channels first.
    fn access(&mut self, now: Time, page: u64, activity: Activity, log: &mut EventLog) -> Time {
        let bank = (page % self.banks.len() as u64) as usize;
        let length = if activity == Activity::Read { self.read } else { self.write };
        let (from, to) = self.banks[bank].reserve(now, length);
        let part = PartEvent::new(PartKind::Die, bank as u16);
        log.push(Busy { part, activity, cause: FlashCause::Host, operations: 1, from, to });
        to
    }
}

#[derive(Debug)]
enum Kind {
    Dram { controller: FifoResource, ps_per_byte: f64 },
    Pcm(Pcm),
    Flash(Box<Ssd>),
}

/// The medium.
#[derive(Debug)]
pub(super) struct Media {
    kind: Kind,
    pub(super) pages: u64,
    pub(super) technology: Technology,
    pub(super) channels: u32,
    pub(super) read_time: Time,
    pub(super) write_time: Time,
}

/// The device file of the SSD behind flash media: no link, no firmware, no waiting of its own.
fn inner(config: &RingConfig) -> Option<Config> {
    Some(Config {
        description: String::new(),
        flash: config.flash.clone()?,
        ftl: config.ftl.clone()?,
        buffer: config.buffer.clone().unwrap_or_default(),
        controller: ControllerConfig::default(),
        host_link: LinkConfig::Ideal,
        // The card itself limits what is outstanding. The queue of the inner device must never
        // refuse a command.
        queue: QueueConfig { depth: 1 << 16, ..QueueConfig::default() },
        energy: config.energy.clone(),
        nvme: None,
        power: PowerConfig::default(),
        precondition: config.precondition.clone().unwrap_or_default(),
        // They are the card's.
        faults: FaultConfig::default(),
    })
}

/// The time of the fastest pages of a block.
fn fastest(times: &PerLevel) -> Time {
    match times {
        PerLevel::One(time) => time.0,
        PerLevel::Each(times) => times.iter().map(|time| time.0).min().unwrap_or_default(),
    }
}

impl Media {
    /// As it leaves the factory; `seed` decides about everything random in its flash.
    pub(super) fn fresh(config: &RingConfig, seed: u64) -> Result<Media, ConfigError> {
        let page = u64::from(PAGE_BYTES);
        match &config.media {
            MediaConfig::Dram { capacity, bandwidth } => {
                let ps_per_byte = 1e12 / bandwidth.0;
                let time = Time::from_ps((page as f64 * ps_per_byte) as u64);
                Ok(Media {
                    kind: Kind::Dram { controller: FifoResource::default(), ps_per_byte },
                    pages: capacity.0 / page,
                    technology: Technology::Dram,
                    channels: 1,
                    read_time: time,
                    write_time: time,
                })
            }
            MediaConfig::Pcm { capacity, channels, banks_per_channel, read_time, write_time } => {
                let banks = vec![FifoResource::default(); (channels * banks_per_channel) as usize];
                let (read, write) = (read_time.0, write_time.0);
                Ok(Media {
                    kind: Kind::Pcm(Pcm { banks, read, write }),
                    pages: capacity.0 / page,
                    technology: Technology::Pcm,
                    channels: *channels,
                    read_time: read,
                    write_time: write,
                })
            }
            MediaConfig::Flash => {
                let missing =
                    || ConfigError::new("flash", "missing", "give the tables [flash] and [ftl]");
                let inner = inner(config).ok_or_else(missing)?;
                let ssd = Ssd::fresh(&inner, seed)?;
                Ok(Media {
                    pages: ssd.capacity_bytes() / page,
                    technology: Technology::Flash,
                    channels: ssd.energy_facts().channels,
                    read_time: fastest(&inner.flash.read_time),
                    write_time: fastest(&inner.flash.program_time),
                    kind: Kind::Flash(Box::new(ssd)),
                })
            }
        }
    }

    /// See [`Device::precondition`].
    pub(super) fn precondition(
        &mut self,
        watcher: &mut dyn FnMut(f64) -> bool,
    ) -> Result<(), PrepareError> {
        match &mut self.kind {
            Kind::Flash(ssd) => ssd.precondition(watcher),
            Kind::Dram { .. } | Kind::Pcm(_) => Ok(()),
        }
    }

    /// Keeps the memory controller busy with `bytes` from `ready` on; gives when they are through.
    pub(super) fn stream(&mut self, ready: Time, bytes: u64, log: &mut EventLog) -> Time {
        // DRAM has no access time beside the transfer: its only limit is the memory controller
        // (S0-44). The other media take their time in `access`.
        let Kind::Dram { controller, ps_per_byte } = &mut self.kind else { return ready };
        let length = Time::from_ps((bytes as f64 * *ps_per_byte).round() as u64);
        let (from, to) = controller.reserve(ready, length);
        log.busy((PartKind::Dram, 0), Activity::Transfer, (from, to));
        to
    }

    /// Begins the medium's part of a command. `request` lies inside it.
    ///
    /// # Errors
    /// The medium refuses it.
    pub(super) fn access(
        &mut self,
        now: Time,
        request: Request,
        token: Token,
        log: &mut EventLog,
    ) -> Result<Access, SubmitError> {
        match &mut self.kind {
            Kind::Dram { .. } => Ok(Access::Now),
            Kind::Pcm(pcm) => {
                let activity = match request.op {
                    Op::Read => Activity::Read,
                    Op::Write => Activity::Program,
                    Op::Trim | Op::Flush => return Ok(Access::Now),
                };
                let page = request.offset_bytes / u64::from(PAGE_BYTES);
                Ok(Access::At(pcm.access(now, page, activity, log)))
            }
            Kind::Flash(ssd) => ssd.submit(now, request, token).map(|()| Access::Later),
        }
    }

    /// Brings the flash to `now`.
    pub(super) fn reap(&mut self, now: Time, out: &mut Vec<Completion>, log: &mut EventLog) {
        if let Kind::Flash(ssd) = &mut self.kind {
            ssd.reap(now, out);
            // The inner device reports its own controller and link, too. They do not exist in
            // this card, and their energy would be counted twice.
            ssd.events().show_to(&mut Dies(log));
            ssd.events().clear();
        }
    }

    /// When [`reap`](Media::reap) may find something.
    pub(super) fn next_event(&self) -> Option<Time> {
        match &self.kind {
            Kind::Flash(ssd) => ssd.next_event(),
            Kind::Dram { .. } | Kind::Pcm(_) => None,
        }
    }

    /// Dies or banks.
    pub(super) fn dies(&self) -> u32 {
        match &self.kind {
            Kind::Dram { .. } => 0,
            Kind::Pcm(pcm) => pcm.banks.len() as u32,
            Kind::Flash(ssd) => ssd.energy_facts().dies,
        }
    }

    /// The flash, if there is any.
    pub(super) fn ssd(&self) -> Option<&Ssd> {
        match &self.kind {
            Kind::Flash(ssd) => Some(ssd),
            Kind::Dram { .. } | Kind::Pcm(_) => None,
        }
    }

    /// The facts that a meter needs.
    pub(super) fn energy_facts(&self) -> Facts {
        let alone = Facts { dies: self.dies(), dies_per_package: 1, ..Facts::default() };
        self.ssd().map_or(alone, Ssd::energy_facts)
    }

    /// What it takes before writes are as slow as the flash.
    pub(super) fn write_buffer_bytes(&self) -> u64 {
        self.ssd().map_or(0, |ssd| DeviceReport::of(ssd).write_buffer_bytes())
    }

    /// The facts that reports need. Banks of phase-change memory count as dies.
    pub(super) fn report(&self) -> Option<FlashReport> {
        match &self.kind {
            Kind::Dram { .. } => None,
            Kind::Pcm(pcm) => Some(FlashReport {
                dies: pcm.banks.len() as u32,
                page_bytes: PAGE_BYTES,
                pages_per_block: 1,
                ..FlashReport::default()
            }),
            Kind::Flash(ssd) => DeviceReport::of(&**ssd).flash().cloned(),
        }
    }
}

/// Passes on what dies and channels report; controller and link are the card's own.
struct Dies<'a>(&'a mut EventLog);

impl EventReader for Dies<'_> {
    fn read(&mut self, events: &[Busy]) {
        let below = |kind| matches!(kind, PartKind::Die | PartKind::Channel);
        events.iter().filter(|event| below(event.part.kind)).for_each(|event| self.0.push(*event));
    }
}
