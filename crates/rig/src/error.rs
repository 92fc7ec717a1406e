//! Why a run could not start, or ended early.

use ssdyno_block::{ConfigError, Request, SubmitError, Time};
use ssdyno_driver_nvme::NvmeError;
use ssdyno_driver_ring::RingError;
use ssdyno_engine::PrepareError;
use ssdyno_workload::WorkloadError;

use crate::attach::Stack;

/// Why a run could not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The device file is impossible.
    #[error(transparent)]
    Device(#[from] ConfigError),
    /// The workload is impossible, or its trace is damaged.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The host file is impossible, or cannot be used as asked.
    #[error(transparent)]
    Host(ConfigError),
    /// The NVMe driver could not start its controller.
    #[error("the NVMe driver cannot start: {0}")]
    Nvme(#[from] NvmeError),
    /// The SCSI translation cannot show the namespace.
    #[error("the SCSI stack cannot show the device: {0}")]
    Scsi(#[from] ssdyno_scsi::FactsError),
    /// The driver is made for another stack than was wished for (S1-47).
    #[error(
        "the driver `{driver}` reports the stack `{}`, but `{}` is requested",
        .reported.name(), .wished.name()
    )]
    Stack {
        /// The driver.
        driver: &'static str,
        /// What it reports.
        reported: Stack,
        /// What was wished for.
        wished: Stack,
    },
    /// The namespaces that were asked for cannot be loaded so (S1-43).
    #[error("{problem}")]
    Namespaces {
        /// The problem.
        problem: String,
        /// The remedy.
        help: String,
    },
    /// The ring driver could not start its card.
    #[error("the ring driver cannot start: {0}")]
    Ring(#[from] RingError),
    /// The device refused a request.
    #[error("request {request:?} was refused: {error}")]
    Refused {
        /// The request.
        request: Request,
        /// Why.
        error: SubmitError,
    },
    /// The device was removed.
    #[error("the device is gone: from time {at} of the run, every request ends in an error")]
    Gone {
        /// When a request found it gone, from the start of the run.
        at: Time,
    },
    /// The driver gave the device up.
    #[error("the NVMe driver gave up on the device {at} after the start: {error}")]
    GivenUp {
        /// When a request found it given up, from the start of the run.
        at: Time,
        /// Why.
        error: NvmeError,
    },
    /// There is no memory for the rows of more requests.
    #[error("memory ran out: the rows of all requests are kept in memory, 16 bytes each")]
    Memory,
    /// The run was stopped.
    #[error("interrupted")]
    Interrupted,
    /// The run was stopped before it began.
    #[error("interrupted while the device was being prepared")]
    Unprepared,
}

impl From<PrepareError> for RunError {
    fn from(error: PrepareError) -> RunError {
        match error {
            PrepareError::Config(error) => RunError::Device(error),
            // An interruption during the preparation has no results. It is a separate error, so
            // that the caller does not write an empty result.
            PrepareError::Interrupted => RunError::Unprepared,
        }
    }
}
