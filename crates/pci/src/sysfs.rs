//! The machine that the program runs on, as Linux shows it: nothing is written, nothing probed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::string::{String, ToString};
use std::vec::Vec;

use crate::config::Snapshot;
use crate::mp::MpTable;
use crate::{MpError, PciAddress};

/// Where Linux lists PCI functions.
pub const DEVICES: &str = "/sys/bus/pci/devices";
/// Physical memory, where one may read it.
pub const MEMORY: &str = "/dev/mem";

/// What Linux tells.
#[derive(Clone, Default, Debug)]
pub struct System {
    /// The configuration spaces, as far as they may be read: without privileges 64 bytes.
    pub snapshot: Snapshot,
    /// The interrupt of the pin; functions that use messages are left out, as theirs is no pin's.
    pub interrupts: BTreeMap<PciAddress, u32>,
    /// The driver that has the function.
    pub drivers: BTreeMap<PciAddress, String>,
    /// The required size of a base address register in bytes, by its number.
    pub bar_bytes: BTreeMap<(PciAddress, u8), u64>,
}

/// Why the machine cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {source}", path.display())]
pub struct SysfsError {
    /// Which file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// Reads `devices`, which is [`DEVICES`] but in tests. A function that goes away meanwhile is left
/// out.
///
/// # Errors
/// The directory cannot be read, or a configuration space that is there.
pub fn read(devices: &Path) -> Result<System, SysfsError> {
    let error = |path: &Path, source| SysfsError { path: path.to_owned(), source };
    let mut system = System::default();
    for entry in fs::read_dir(devices).map_err(|e| error(devices, e))? {
        let entry = entry.map_err(|e| error(devices, e))?;
        let Ok(address) = entry.file_name().to_string_lossy().parse::<PciAddress>() else {
            continue;
        };
        let directory = entry.path();
        let config = directory.join("config");
        let image = match fs::read(&config) {
            Ok(image) => image,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(error(&config, e)),
        };
        system.snapshot.add(address, image);
        let irq = fs::read_to_string(directory.join("irq")).ok();
        let irq = irq.and_then(|irq| irq.trim().parse().ok()).filter(|&irq: &u32| irq != 0);
        let messages = directory.join("msi_irqs");
        if let Some(irq) = irq.filter(|irq| !messages.join(irq.to_string()).exists()) {
            system.interrupts.insert(address, irq);
        }
        if let Ok(driver) = fs::read_link(directory.join("driver")) {
            let name = driver.file_name().map(|name| name.to_string_lossy().into_owned());
            system.drivers.extend(name.map(|name| (address, name)));
        }
        let resources = fs::read_to_string(directory.join("resource")).unwrap_or_default();
        let sizes = (0..6).zip(resources.lines());
        let sizes = sizes.filter_map(|(bar, line)| Some(((address, bar), resource_bytes(line)?)));
        system.bar_bytes.extend(sizes);
    }
    Ok(system)
}

/// The size of `0x00000000fe800000 0x00000000fe803fff 0x0000000000140204`: first and last address, and
/// flags, which are 0 where there is nothing.
fn resource_bytes(line: &str) -> Option<u64> {
    let mut numbers = line.split_whitespace().map(|word| {
        word.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok())
    });
    let (first, last, flags) = (numbers.next()??, numbers.next()??, numbers.next()??);
    last.checked_sub(first)?.checked_add(1).filter(|_| flags != 0)
}

/// Why there is no MP table of the machine.
#[derive(Debug, thiserror::Error)]
pub enum NoMpTable {
    /// Memory cannot be read: not root, or a kernel that does not show it.
    #[error("physical memory cannot be read ({0})")]
    Memory(#[from] io::Error),
    /// There is no such file, or it is damaged.
    #[error(transparent)]
    Table(#[from] MpError),
}

/// The end of the first MiB, which is where firmware of PCs lives.
const LOW_END: u64 = 1 << 20;

/// Looks for the MP table in `memory`, which is [`MEMORY`] but in tests: in the first KiB of the
/// extended BIOS data area, the last KiB of base memory, and the BIOS (MP clause 4).
///
/// # Errors
/// Memory cannot be read, or there is no sound table.
pub fn mp_table(memory: &Path) -> Result<MpTable, NoMpTable> {
    let mut memory = File::open(memory)?;
    // Word 0x40e of the BIOS data area is the segment of the extended one.
    let segment = read_at(&mut memory, 0x40e, 2)?;
    let extended = segment.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)) << 4;
    let mut damage = MpError::Absent { bytes: 0x1_0000 };
    for (start, bytes) in [(extended, 1024), (639 << 10, 1024), (0xf_0000, 0x1_0000)] {
        let Ok(part) = read_at(&mut memory, start, bytes) else { continue };
        let found = match MpTable::address(&part) {
            // The table itself may be elsewhere. It has 64 KiB at most, and memory above the first
            // MiB may not be readable at all.
            Some(address) if address != 0 => {
                let end = if address < LOW_END { LOW_END } else { u64::MAX };
                let bytes = (end - address).min(0x1_0000);
                MpTable::parse(&read_at(&mut memory, address, bytes)?)
            }
            _ => MpTable::find(&part, start),
        };
        match found {
            Ok(table) => return Ok(table),
            Err(MpError::Absent { .. }) => {}
            Err(error) => damage = error,
        }
    }
    Err(damage.into())
}

/// As much of `bytes` as there are.
fn read_at(memory: &mut File, start: u64, bytes: u64) -> io::Result<Vec<u8>> {
    memory.seek(SeekFrom::Start(start))?;
    let mut part = Vec::new();
    memory.take(bytes).read_to_end(&mut part)?;
    Ok(part)
}
