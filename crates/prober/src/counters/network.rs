//! `/proc/net/dev` (proc_pid_net(5)): of the network namespace of this process.

use std::collections::BTreeMap;

use crate::sources::{SourceError, SourceText, Sources};

/// Lines before the first interface.
const HEADER_LINES: usize = 2;

/// Counters by interface, in the order of the figures of `NetworkRates`.
pub(super) fn read(sources: &Sources) -> Result<BTreeMap<String, [u64; 8]>, SourceError> {
    let source = SourceText::read(sources.proc.join("net/dev"))?;
    let mut interfaces = BTreeMap::new();
    let mut lines = 0;
    for line in source.lines() {
        lines += 1;
        // The header is checked because it is the only sign of the format. Without it a file of another
        // kind would give figures under the names of interfaces.
        if lines <= HEADER_LINES {
            if !line.text.contains('|') {
                return Err(line.error("this is not the header of the file"));
            }
            continue;
        }
        // The last colon ends the name: an alias such as `eth0:1` has a colon itself, and a large
        // first counter follows the colon without a blank.
        let Some((name, counters)) = line.text.rsplit_once(':') else {
            return Err(line.error("there is no `:` after the name of the interface"));
        };
        // Received: bytes, packets, errs, drop, fifo, frame, compressed, multicast. Sent: the same first four, then
        // fifo, colls, carrier, compressed. All 16 are parsed, so that a line with fewer columns is an error.
        let mut words = counters.split_ascii_whitespace();
        let all: [u64; 16] = line.numbers(&mut words, "counter")?;
        let [a, b, c, d, _, _, _, _, e, f, g, h, ..] = all;
        interfaces.insert(name.trim().to_owned(), [a, b, c, d, e, f, g, h]);
    }
    if lines < HEADER_LINES {
        return Err(source.ends_before("Inter-|"));
    }
    Ok(interfaces)
}
