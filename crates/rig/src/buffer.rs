//! Writes that a write buffer took all of.

use ssdyno_block::units::Bytes;
use ssdyno_figures::{Warning, WarningKind};

/// That all `written_bytes` of a run fit into the write buffer, so that no write waited for the medium.
pub(crate) fn warning(buffer_bytes: u64, written_bytes: u64) -> Option<Warning> {
    if written_bytes == 0 || written_bytes > buffer_bytes {
        return None;
    }
    let message = format!(
        "the write buffer never filled: it holds {}, and the run wrote {}; the figures of writes describe the buffer, not the medium",
        Bytes(buffer_bytes),
        Bytes(written_bytes)
    );
    let help = format!("write at least {}: run longer", Bytes(2 * buffer_bytes));
    Some(Warning::new(WarningKind::NotExhausted, message).with_help(help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_that_fit_into_the_buffer_are_told_with_both_sizes() {
        let told = warning(64 << 20, 3 << 20).unwrap();
        assert!(told.message.contains("holds 64MiB, and the run wrote 3MiB"), "{}", told.message);
        assert_eq!(told.help.as_deref(), Some("write at least 128MiB: run longer"));
        assert!(warning(4096, 4096).is_some());
        assert_eq!(warning(4096, 8192), None);
        // Reads alone, and a device without a buffer.
        assert_eq!(warning(4096, 0), None);
        assert_eq!(warning(0, 4096), None);
    }
}
