//! Why a device cannot be put into the used state that its file asks for.

use ssdyno_block::ConfigError;

/// Why a device could not be prepared.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PrepareError {
    /// The configuration is impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The watcher asked for an end.
    #[error("interrupted while the device was prepared")]
    Interrupted,
}
