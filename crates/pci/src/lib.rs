//! The connector: PCI as drivers see it from above and devices from below.
//!
//! Key types: [`PciFunction`] (what a driver uses), [`PciDevice`] and [`BusMaster`] (what a simulated
//! device offers and uses), [`SlotConfig`] (the configuration space around a device), [`DmaPool`] (memory for DMA on
//! demand). Of a whole machine: [`ConfigAccess`], [`scan`] to the [`Tree`] of its
//! functions, [`assign()`] for addresses, [`Route`] for interrupt pins with the [`MpTable`],
//! [`topology`] simulates one, [`dump`] reads a saved one,
//! [`PciIds`] names functions.
//!
//! Errors: [`FunctionError`], [`DmaFault`]; [`MpError`], [`NoEntry`](routing::NoEntry),
//! [`NoRoom`](assign::NoRoom), [`DumpError`](dump::DumpError).
//! What is odd in configuration space is not an error but a [`Note`](tree::Note): the rest of the machine
//! is of use.
//!
//! Not modelled: I/O space BARs behind the connector, peer-to-peer DMA, ATS and PASID. Not set up
//! when firmware did not: expansion ROMs that are off, windows of CardBus bridges, virtual functions, functions 8
//! to 255 of a device; no bus numbers are kept free for devices to come.

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod address;
pub mod assign;
pub mod bars;
pub mod capability;
pub mod config;
mod device;
pub mod driver;
pub mod dump;
mod function;
mod header;
mod ids;
pub mod interrupts;
pub mod mp;
mod numbers;
mod pool;
pub mod routing;
mod scan;
mod simulated;
mod slot;
#[cfg(all(feature = "std", target_os = "linux"))]
pub mod sysfs;
pub mod topology;
pub mod tree;
pub mod window;

pub use address::{AddressError, PciAddress};
pub use assign::assign;
pub use config::{ConfigAccess, ConfigSpace};

pub use device::{BusMaster, DmaDirection, DmaFault, FaultyDevice, Identity, MsixPlace, PciDevice};
pub use function::{DmaRegion, FunctionError, InterruptMode, PciFunction};
pub use header::{BusNumbers, ConfigHeader, DeviceClass, Pin};
pub use ids::PciIds;
pub use mp::{MpError, MpTable};
pub use pool::{DmaPiece, DmaPool};
pub use routing::Route;
pub use scan::{RootBus, scan};
pub use simulated::{PciCounters, PciTiming, RecordedFault, SimulatedPci};
pub use slot::SlotConfig;
pub use tree::{Function, Tree};
