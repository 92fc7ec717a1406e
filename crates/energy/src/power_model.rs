//! The description of a device's parts from which a meter is made.

use crate::{EnergyConfig, Facts, PartPower};

/// The powers of the parts of one device.
#[derive(Clone, PartialEq, Debug)]
pub enum PowerModel {
    /// A controller with flash, CPU, DRAM and buses, or with some of them: the `[energy]` table of its file.
    Controller {
        /// Currents and powers.
        config: Box<EnergyConfig>,
        /// How many parts there are, and the low-power states.
        facts: Facts,
    },
    /// Parts of other kinds, with names of their own; none where the device itself draws nothing.
    Parts(Vec<PartPower>),
}
