//! The device's process: which device it serves, and how it is started and ended.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ssdyno_block::{Fault, FaultSite, FaultTrigger, Time};
use ssdyno_controller_nvme::NvmeController;
use ssdyno_controller_ring::{RingCard, RingConfig};
use ssdyno_pci::{BusMaster, FaultyDevice, Identity, PciDevice};
use ssdyno_ssd::{Config, Ssd};
use ssdyno_vfio::{ClientEnd, ClientError, VfioUserFunction, VfioUserServer};

pub(crate) const RING: &str = include_str!("../../../../presets/devices/zc706-ring.toml");
const NVME: &str = include_str!("../../../ssd/tests/small_nvme.toml");
/// Longest time until a process that was started listens: the machine may be busy.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Longest time that it may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is served, in words: `ring` or `nvme`, then what differs, as in `ring engines=2 msix=0`.
pub(crate) fn serve(what: &str, socket: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let number = |key: &str| {
        let word = what.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        word.map(str::parse::<u32>).transpose()
    };
    let (msix, msi) = (number("msix")?, number("msi")?);
    if what.starts_with("nvme") {
        let keys = "[nvme]\nready_time = \"1ms\"\ncontents = true\n";
        let config = Config::parse(&format!("{NVME}\n{keys}"))?;
        let controller = NvmeController::in_front_of(
            Ssd::new(&config, 1)?,
            config.nvme_setup().ok_or("the file has no [nvme]")?,
        )?;
        return serve_all(socket, Offers { device: controller, msix, msi });
    }
    let engines = number("engines")?.unwrap_or(1);
    let text = RING.replace("engines = 1 ", &format!("engines = {engines} "));
    let mut card = RingCard::new(&RingConfig::parse(&text)?, 1)?;
    card.keep_contents();
    if let Some(number) = number("sticks_at")? {
        let (hang, number) = (Fault::Hang(Time::MAX), FaultTrigger::Number(number.into()));
        card.fault_plan_mut().add(FaultSite::Command, hang, number);
    }
    serve_all(socket, Offers { device: card, msix, msi })
}

/// A parent that dies takes this process with it.
pub(crate) fn end_with_parent() -> std::io::Result<()> {
    let signal = rustix::process::Signal::KILL;
    Ok(rustix::process::set_parent_process_death_signal(Some(signal))?)
}

/// One client after another, forever.
fn serve_all<D: PciDevice>(socket: &Path, device: D) -> Result<(), Box<dyn std::error::Error>> {
    let mut server = VfioUserServer::bind(socket, device)?;
    loop {
        match server.serve_client()? {
            ClientEnd::Left => {}
            ClientEnd::Nonsense(error) => eprintln!("a client was sent away: {error}"),
        }
    }
}

/// A device that has fewer kinds of interrupts than it could have.
struct Offers<D> {
    device: D,
    msix: Option<u32>,
    msi: Option<u32>,
}

impl<D: PciDevice> PciDevice for Offers<D> {
    fn identity(&self) -> Identity {
        let identity = self.device.identity();
        Identity {
            msix_vectors: self.msix.map_or(identity.msix_vectors, |count| count as u16),
            msi_vectors: self.msi.map_or(identity.msi_vectors, |count| count as u16),
            ..identity
        }
    }
    fn bar_read(&mut self, now: Time, bar: u8, offset: u32) -> u32 {
        self.device.bar_read(now, bar, offset)
    }
    fn bar_write(&mut self, now: Time, bar: u8, offset: u32, value: u32) {
        self.device.bar_write(now, bar, offset, value);
    }
    fn reset(&mut self, now: Time) {
        self.device.reset(now);
    }
    fn advance(&mut self, now: Time, bus: &mut dyn BusMaster) {
        self.device.advance(now, bus);
    }
    fn next_event(&self) -> Option<Time> {
        self.device.next_event()
    }
    fn run(&mut self, from: Time, until: Time, bus: &mut dyn BusMaster) -> (Time, Time) {
        self.device.run(from, until, bus)
    }
}

/// A device in a process of its own, which ends with this.
pub(crate) struct DeviceProcess {
    child: Child,
    socket: PathBuf,
}

impl DeviceProcess {
    /// Starts `program`, which is to serve a device at `socket`.
    pub(crate) fn start(program: &mut Command, socket: &Path) -> std::io::Result<DeviceProcess> {
        let child = program.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        Ok(DeviceProcess { child, socket: socket.to_owned() })
    }

    /// Connects to it, as soon as it listens.
    pub(crate) fn connect(&mut self) -> Result<VfioUserFunction, ClientError> {
        self.connect_with(PATIENCE)
    }

    /// The same for a caller that waits for each reply with a limit.
    pub(crate) fn connect_with(
        &mut self,
        patience: Duration,
    ) -> Result<VfioUserFunction, ClientError> {
        let start = Instant::now();
        loop {
            match VfioUserFunction::connect_with(&self.socket, patience) {
                Err(ClientError::Connect { .. })
                    if start.elapsed() < START_LIMIT
                        && matches!(self.child.try_wait(), Ok(None)) =>
                {
                    std::thread::sleep(Duration::from_millis(2));
                }
                connected => return connected,
            }
        }
    }

    /// Lets it hang until it is killed; returns when it does.
    pub(crate) fn stop(&self) -> std::io::Result<()> {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::STOP)?;
        // One thread gets the signal and stops the others: that may take a while.
        rustix::process::waitpid(Some(id), rustix::process::WaitOptions::UNTRACED)?;
        Ok(())
    }

    /// Ends it at once, in the middle of whatever it does.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for DeviceProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
