//! PCI: configuration space, capabilities, class codes, and the MP table.
//!
//! PCI Local Bus 3.0 ("PCI"), PCI-to-PCI Bridge Architecture 1.2 ("Bridge"), PCI Express Base 6.0
//! ("PCIe"), PCI Code and ID Assignment 1.11 ("ID"), Intel MultiProcessor Specification 1.4 ("MP").

mod capability;
mod header;
pub mod mp;
mod names;

pub use capability::*;
pub use header::*;
pub use names::{capability_name, extended_capability_name, subclass_name};
