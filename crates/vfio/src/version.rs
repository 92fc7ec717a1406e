//! The capabilities that both sides exchange in their first message.

use serde::{Deserialize, Serialize};

use crate::ProtocolError;
use crate::message::{DATA_BYTES_MAX, DESCRIPTORS_MAX};

/// The version that we speak: 0 and this.
pub(crate) const MINOR: u16 = 1;

/// The capabilities of one side in JSON.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct VersionData {
    pub(crate) capabilities: Capabilities,
}

impl VersionData {
    /// The other side can be talked to.
    pub(crate) fn check(&self) -> Result<(), ProtocolError> {
        if self.capabilities.max_data_xfer_size == 0 { Err(ProtocolError::NoData) } else { Ok(()) }
    }
}

/// The capabilities that matter here; the defaults are the protocol's.
#[derive(Debug, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Capabilities {
    /// Most descriptors that the sender takes in a message.
    pub(crate) max_msg_fds: u32,
    /// Most bytes in a read or a write; at least 1.
    pub(crate) max_data_xfer_size: u32,
}

impl Default for Capabilities {
    fn default() -> Capabilities {
        Capabilities { max_msg_fds: 1, max_data_xfer_size: DATA_BYTES_MAX }
    }
}

/// Our capabilities, with a terminating zero byte.
pub(crate) fn our_version_data() -> Vec<u8> {
    let max_msg_fds = DESCRIPTORS_MAX as u32;
    let capabilities = Capabilities { max_msg_fds, ..Capabilities::default() };
    // Two numbers always have a JSON form.
    let mut text = serde_json::to_vec(&VersionData { capabilities }).unwrap_or_default();
    text.push(0);
    text
}
