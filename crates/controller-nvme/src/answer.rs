//! What a part of a command gives.

use ssdyno_spec::nvme::NvmeStatus;

/// What a part of a command gives, or the status with which the command ends.
pub(crate) type Answer<T = ()> = Result<T, NvmeStatus>;
