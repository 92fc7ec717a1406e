//! A complete kind of device in one file: a magnetic drum, which has a head over each track and waits for nothing
//! but its rotation. `docs/add_a_device.md` walks through it; running it loads two drums, compares them, writes a
//! report, has one of them fail, and runs the conformance suite.

use std::collections::VecDeque;
use std::error::Error;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::conformance::check_target;
use ssdyno_block::units::{Bytes, Span, Watts};
use ssdyno_block::{
    BlockTarget, Completion, ConfigError, Op, Request, Status, SubmitError, Time, Token,
};
use ssdyno_device::faults::FaultConfig;
use ssdyno_device::{Device, DeviceConfig, DeviceFacts, DeviceReport, DeviceSpec};
use ssdyno_energy::{PartPower, PowerModel};
use ssdyno_engine::events::{Activity, Busy, EventLog, FlashCause, PartEvent, PartKind};
use ssdyno_rig::{Attach, KeepGoing, RunLimits, SimRun, Source};

/// The `[drum]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DrumTable {
    /// Size of the drum, a multiple of `track`.
    capacity: Bytes,
    /// Bytes that pass a head in one turn, a multiple of 512 B.
    track: Bytes,
    /// Time of one turn.
    turn: Span,
    /// What the motor draws.
    motor: Watts,
    /// What the heads draw while they read or write; 0 otherwise.
    heads: Watts,
}

/// The file of a drum.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DrumConfig {
    /// One line about the device, and where its numbers come from.
    #[serde(default)]
    description: String,
    /// Size, times and powers.
    drum: DrumTable,
    /// Injected faults; if omitted, none.
    #[serde(default, skip_serializing_if = "FaultConfig::is_none")]
    faults: FaultConfig,
}

impl DeviceConfig for DrumConfig {
    const NAME: &'static str = "drum";
    const TABLE: &'static str = "drum";
    const WHAT: &'static str = "a drum";

    fn build(&self, _seed: u64) -> Result<Box<dyn Device>, ConfigError> {
        Ok(Box::new(Drum::new(self)?))
    }

    fn faults(&self) -> &FaultConfig {
        &self.faults
    }
}

/// Requests inside the drum at most.
const DEPTH: usize = 32;
/// The numbers of the parts and of their activities, in the order of their declaration.
const HEADS: u16 = 1;
const READ: u8 = 0;
const WRITE: u8 = 1;

/// The drum: requests one after another, each when its first byte comes by.
#[derive(Debug)]
pub(crate) struct Drum {
    config: DrumTable,
    /// When the heads are free.
    free_at: Time,
    /// What is inside, in order of completion.
    inside: VecDeque<Completion>,
    events: EventLog,
}

impl Drum {
    /// Checks the numbers and makes a drum.
    pub(crate) fn new(config: &DrumConfig) -> Result<Drum, ConfigError> {
        let drum = &config.drum;
        let error = |key: &str, problem: &str, help: &str| {
            Err(ConfigError::new(format!("drum.{key}"), problem, help))
        };
        if drum.track.0 == 0 || !drum.track.0.is_multiple_of(512) {
            return error("track", "is not a multiple of 512 B", "use a size such as \"8KiB\"");
        }
        if drum.capacity.0 == 0 || !drum.capacity.0.is_multiple_of(drum.track.0) {
            return error(
                "capacity",
                "is not a multiple of drum.track",
                "use a whole number of tracks",
            );
        }
        if !(Time::from_us(1)..=Time::from_s(1)).contains(&drum.turn.0) {
            return error("turn", "is outside 1 us to 1 s", "use a time such as \"17ms\"");
        }
        let (config, events) = (drum.clone(), EventLog::default());
        Ok(Drum { config, free_at: Time::ZERO, inside: VecDeque::new(), events })
    }

    /// The time in which `bytes` pass a head.
    fn passes(&self, bytes: u64) -> Time {
        let turns = bytes as f64 / self.config.track.0 as f64;
        Time::from_ps((turns * self.config.turn.0.as_ps() as f64).round() as u64)
    }

    /// When what is at `offset_bytes` is under its head, from `ready` on.
    fn comes_by(&self, ready: Time, offset_bytes: u64) -> Time {
        let turn = self.config.turn.0.as_ps();
        let place = self.passes(offset_bytes % self.config.track.0).as_ps() % turn;
        let wait = (place + turn - ready.as_ps() % turn) % turn;
        ready + Time::from_ps(wait)
    }
}

impl BlockTarget for Drum {
    fn capacity_bytes(&self) -> u64 {
        self.config.capacity.0
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.check(&request)?;
        if self.inside.len() == DEPTH {
            return Err(SubmitError::Full);
        }
        let accepted = self.free_at.max(now);
        let mut completed = accepted;
        if let Op::Read | Op::Write = request.op {
            let from = self.comes_by(accepted, request.offset_bytes);
            completed = from + self.passes(request.length_bytes.into());
            self.events.push(Busy {
                part: PartEvent::new(PartKind::Declared, HEADS),
                activity: Activity::Declared(if request.op == Op::Read { READ } else { WRITE }),
                cause: FlashCause::None,
                operations: 1,
                from,
                to: completed,
            });
        }
        self.free_at = completed;
        self.inside.push_back(Completion { token, status: Status::Ok, accepted, completed });
        Ok(())
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        while let Some(first) = self.inside.front().filter(|first| first.completed <= now) {
            out.push(*first);
            self.inside.pop_front();
        }
    }

    fn next_event(&self) -> Option<Time> {
        self.inside.front().map(|first| first.completed)
    }
}

impl Device for Drum {
    fn events(&mut self) -> &mut EventLog {
        &mut self.events
    }

    fn report(&self, report: &mut DeviceReport) {
        let DrumTable { motor, heads, .. } = self.config;
        let part = |name: &str, idle, activities: &[&str]| PartPower {
            name: name.to_owned(),
            idle,
            activities: activities.iter().map(|name| ((*name).to_owned(), heads)).collect(),
            is_resource: true,
        };
        let facts = DeviceFacts {
            capacity_bytes: self.capacity_bytes(),
            sector_bytes: self.sector_bytes(),
            queue_depth: DEPTH as u32,
            write_buffer_bytes: 0,
            link_ways: 1,
        };
        let parts = vec![part("motor", motor, &[]), part("heads", Watts(0.0), &["read", "write"])];
        report.unit(DrumConfig::NAME, facts, PowerModel::Parts(parts));
    }
}

// The rest of this file uses the drum; a device of the program does not need it.

/// A drum of 4 MiB with tracks of 8 KiB that turns in `turn`.
pub(crate) fn drum(turn: &str, more: &str) -> DrumConfig {
    let text = format!(
        "[drum]\ncapacity = \"4MiB\"\ntrack = \"8KiB\"\nturn = \"{turn}\"\nmotor = \"300W\"\n\
         heads = \"20W\"\n{more}"
    );
    toml::from_str(&text).unwrap_or_else(|error| unreachable!("the text above is right: {error}"))
}

/// 2000 random reads of 512 B of a drum, one at a time.
pub(crate) fn run(config: DrumConfig) -> Result<ssdyno_rig::SimMeasured, Box<dyn Error>> {
    let load = "read_percent = 100\nblock_size = \"512B\"\ndepth = 1\nrequests = 2000";
    let run = SimRun {
        target: "drum".into(),
        device: Attach::from(DeviceSpec::new(config)),
        workload: "random reads".into(),
        source: Source::Generator(ssdyno_workload::WorkloadConfig::from_toml(load)?),
        seed: 1,
        limits: RunLimits::default(),
        keep: ssdyno_figures::Keep::Summary,
        interval: None,
        why: false,
    };
    Ok(run.execute(&mut |_| KeepGoing::Continue)?)
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    check_target(|| {
        DrumConfig::build(&drum("17ms", ""), 1).unwrap_or_else(|e| unreachable!("{e}"))
    });
    let (slow, fast) = (run(drum("17ms", ""))?.result, run(drum("10ms", ""))?.result);
    for figure in ssdyno_report::compare(&slow, &fast).figures {
        println!("{:<24} {}", figure.figure, figure.text);
    }
    let report = std::env::temp_dir().join("drum.html");
    std::fs::write(&report, ssdyno_report::report_html(&fast))?;
    println!("report: {}", report.display());
    let failing = run(drum("10ms", "[faults]\nerror = 0.1"))?.result;
    let failed = failing.faults.and_then(|faults| faults.device).map_or(0, |device| device.errors);
    println!("{failed} of 2000 reads failed as injected");
    Ok(())
}
