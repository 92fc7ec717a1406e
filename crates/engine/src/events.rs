//! The reports of devices: which part was busy with which work, from when to when.
//!
//! Devices append to an [`EventLog`]; energy, statistics and timelines are [`EventReader`]s of it.
//! So devices hold no joules and no counters for reports, and a new reader touches no device.

use ssdyno_block::Time;

ssdyno_block::named! {
    /// A part of a device.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum PartKind: name {
        /// A flash die.
        Die = "die",
        /// A flash channel (bus between controller and packages).
        Channel = "channel",
        /// The controller as a whole.
        Controller = "controller",
        /// A firmware core.
        Core = "core",
        /// The controller's DRAM.
        Dram = "dram",
        /// The link to the host.
        HostLink = "host_link",
        /// A core of the host: for timelines; its time is in the account of the host.
        HostCore = "host_core",
        /// A part that its device declares, with its name and its powers: a spindle, for example. The index is its
        /// number among those.
        Declared = "part",
    }
}

/// One part of the device: its kind and its number among its kind, in one of the units that the device is made of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PartEvent {
    /// Kind of the part.
    pub kind: PartKind,
    /// The device among those that this device consists of; 0 is the whole.
    pub unit: u8,
    /// Which one, from 0.
    pub index: u16,
}

impl PartEvent {
    /// A part of a device that is not made of others; one that is gives it its unit.
    #[inline]
    pub const fn new(kind: PartKind, index: u16) -> PartEvent {
        PartEvent { kind, unit: 0, index }
    }
}

/// The activity of a part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Activity {
    /// Flash array read (tR).
    Read,
    /// Flash array program (tPROG).
    Program,
    /// Flash array erase (tBERS).
    Erase,
    /// Data between two parts.
    Transfer,
    /// Data between a die's cache register and the channel while the die's array works: counts as
    /// [`Activity::Transfer`], but the die is busy anyway.
    CacheTransfer,
    /// A firmware core executes a command.
    Execute,
    /// At least one request is inside the device.
    InService,
    /// A low-power state; the detail is its number in the device's table.
    LowPower(u8),
    /// A core of the host works; the detail is the number of what on, in [`HOST_WORK`].
    Cpu(u8),
    /// Number so much of what a [declared](PartKind::Declared) part can do.
    Declared(u8),
}

impl Activity {
    /// Number of distinct [`index`](Activity::index) values.
    pub const COUNT: usize = 6 + LOW_POWER_STATES + 1;

    /// A small number for tables.
    pub const fn index(self) -> usize {
        match self {
            Activity::Read => 0,
            Activity::Program => 1,
            Activity::Erase => 2,
            Activity::Transfer | Activity::CacheTransfer => 3,
            Activity::Execute => 4,
            Activity::InService => 5,
            Activity::LowPower(state) => {
                6 + if (state as usize) < LOW_POWER_STATES {
                    state as usize
                } else {
                    LOW_POWER_STATES - 1
                }
            }
            Activity::Cpu(_) | Activity::Declared(_) => Activity::COUNT - 1,
        }
    }

    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Activity::Read => "read",
            Activity::Program => "program",
            Activity::Erase => "erase",
            Activity::Transfer | Activity::CacheTransfer => "transfer",
            Activity::Execute => "execute",
            Activity::InService => "in_service",
            Activity::LowPower(_) => "low_power",
            Activity::Declared(_) => "busy",
            Activity::Cpu(work) => {
                if (work as usize) < HOST_WORK.len() {
                    HOST_WORK[work as usize]
                } else {
                    "other"
                }
            }
        }
    }
}

/// What a core of the host works on, by the number in [`Activity::Cpu`]: the causes of CPU time of the
/// host model, and spinning for a lock.
pub const HOST_WORK: [&str; 15] = [
    "system_call",
    "block_layer",
    "scsi",
    "driver",
    "lock",
    "registers",
    "copy",
    "interrupt",
    "completion",
    "switch",
    "poll",
    "network",
    "cache",
    "file_system",
    "lock_wait",
];

/// NVMe allows 32 power states (NVM Express base 2.0, clause 8.15); tables hold that many.
const LOW_POWER_STATES: usize = 32;

ssdyno_block::named! {
    /// Why a flash operation was done.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum FlashCause: name {
        /// A request of the host, at once or out of the write buffer.
        Host = "host",
        /// The mapping table, fetched or written back.
        Mapping = "mapping",
        /// Cleaning, merging, wear levelling.
        Cleaning = "cleaning",
        /// Pages of the mapping table that cleaning made out of date. No request waits for them, as for
        /// cleaning, but a reader who asks where the work goes wants them with the mapping table: in a DFTL
        /// they can be most of all programs.
        MappingUpdate = "mapping update",
        /// Not a flash operation.
        None = "device",
    }
}

impl FlashCause {
    /// Whether the work is done because of cleaning, so that no request waits for it.
    #[must_use]
    pub const fn follows_cleaning(self) -> bool {
        matches!(self, FlashCause::Cleaning | FlashCause::MappingUpdate)
    }
}

/// `part` was busy with `activity` from `from` to `to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy {
    /// Who.
    pub part: PartEvent,
    /// With what.
    pub activity: Activity,
    /// On whose behalf.
    pub cause: FlashCause,
    /// How many operations this stands for: planes that worked together; 0 for all parts but the
    /// last of an operation that was suspended.
    pub operations: u8,
    /// Start.
    pub from: Time,
    /// End; not before `from`. May lie after the time at which the event is reported.
    pub to: Time,
}

/// The flash of a device, for readers that show it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FlashUnit {
    /// Channels, which events number from 0.
    pub channels: u32,
    /// Dies, numbered channel by channel.
    pub dies: u32,
    /// What a die draws above idleness in watts, by the [index](Activity::index) of its activity: read, program, erase,
    /// transfer.
    pub activity_watts: [f64; 4],
    /// The power of the whole device while it is awake without work, in watts.
    pub idle_watts: f64,
}

/// The name of one of the devices that a device consists of, by its number in [`PartEvent::unit`], and the facts that
/// readers need about it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct UnitNames {
    /// Its path: `array.disk[1]`.
    pub path: String,
    /// Its flash; `None` without channels and dies.
    pub flash: Option<FlashUnit>,
    /// Its [declared](PartKind::Declared) parts: for each, its name and its activities.
    pub parts: Vec<(String, Vec<String>)>,
}

/// Something that draws conclusions from device events.
pub trait EventReader {
    /// Told before the first event of a run what the units of the device and their declared parts are called.
    fn name_units(&mut self, units: &[UnitNames]) {
        let _ = units;
    }
    /// Takes the next events, in the order of reporting. Every event arrives exactly once.
    fn read(&mut self, events: &[Busy]);
}

/// Events since the runner last took them.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    events: Vec<Busy>,
    /// The writer's time that readers call zero.
    origin: Time,
    /// How many were forgotten.
    forgotten: u64,
}

impl EventLog {
    /// Appends one event. Empty ones (`from == to`, no operation) are dropped.
    #[inline]
    pub fn push(&mut self, event: Busy) {
        debug_assert!(event.from <= event.to, "{event:?} ends before it begins");
        if event.from != event.to || event.operations != 0 {
            let from = event.from.saturating_sub(self.origin);
            let to = event.to.saturating_sub(self.origin);
            self.events.push(Busy { from, to, ..event });
        }
    }

    /// Appends one operation of a part, by its kind and number, that has no cause but its own.
    #[inline]
    pub fn busy(&mut self, part: (PartKind, u16), activity: Activity, (from, to): (Time, Time)) {
        let part = PartEvent::new(part.0, part.1);
        self.push(Busy { part, activity, cause: FlashCause::None, operations: 1, from, to });
    }

    /// Appends an event whose times are those of readers already.
    pub fn push_for_readers(&mut self, event: Busy) {
        self.events.push(event);
    }

    /// Forgets the waiting events, and lets the time of readers begin at `origin` of the writer's:
    /// for a device that was brought up by its driver before the run begins.
    pub fn begin_at(&mut self, origin: Time) {
        self.clear();
        self.origin = origin;
    }

    /// The writer's time that readers call zero.
    pub fn origin(&self) -> Time {
        self.origin
    }

    /// The waiting events but for the first `count`.
    pub fn skip(&self, count: usize) -> &[Busy] {
        self.events.get(count..).unwrap_or_default()
    }

    /// How many events wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// True when none waits.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Shows all waiting events to `reader`.
    pub fn show_to(&self, reader: &mut dyn EventReader) {
        reader.read(&self.events);
    }

    /// Of the waiting events those that came after the first `seen` of all, and how many there have
    /// been: for a reader inside the device, which does not see when the log is cleared.
    pub fn after(&self, seen: u64) -> (&[Busy], u64) {
        let new = seen.saturating_sub(self.forgotten).min(self.events.len() as u64);
        (&self.events[new as usize..], self.forgotten + self.events.len() as u64)
    }

    /// Forgets the waiting events, once everybody has seen them.
    pub fn clear(&mut self) {
        self.forgotten += self.events.len() as u64;
        self.events.clear();
    }
}
