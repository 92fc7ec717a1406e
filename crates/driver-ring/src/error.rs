//! Why a driver cannot start.

use alloc::collections::TryReserveError;

use ssdyno_pci::FunctionError;

/// Why a driver cannot start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RingError {
    /// The function failed.
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// The heap has no room.
    #[error(
        "the driver cannot allocate the ring's tables; use a smaller ring or queue, or free some memory"
    )]
    NoMemory,
    /// The registers are not those of a ring card.
    #[error("identifier {identifier:#x}, version {version}: not a ring card of version 1")]
    NotARingCard {
        /// The value at the place of the identifier.
        identifier: u32,
        /// The value at the place of the version.
        version: u32,
    },
    /// A parameter of the card makes no sense.
    #[error("the card reports {value} for its {what}")]
    BadParameter {
        /// Which one.
        what: &'static str,
        /// What it says.
        value: u64,
    },
    /// An option that this card, or no card, can have.
    #[error("{what} is {value}, but must be {least} to {most}")]
    BadOption {
        /// Which one.
        what: &'static str,
        /// What was asked.
        value: u32,
        /// The least possible.
        least: u32,
        /// The most possible.
        most: u32,
    },
    /// The card was switched on and does not say that it is.
    #[error("the card does not start: its status is {status:#x}")]
    NotReady {
        /// The status register.
        status: u32,
    },
}

impl From<TryReserveError> for RingError {
    fn from(_: TryReserveError) -> RingError {
        RingError::NoMemory
    }
}
