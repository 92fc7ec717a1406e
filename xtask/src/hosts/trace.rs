//! When each client of nbd-server began, as the kernel saw it: a trace of packets that knows nothing of our clocks.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

/// First bytes of a file of packets with times in nanoseconds, in the order of bytes of this machine (pcap, `PCAP_NSEC_MAGIC`).
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;
/// Loopback has the header of Ethernet.
const ETHERNET_HEADER: usize = 14;
/// First bytes of a request of NBD (protocol of NBD, "Request message").
const NBD_REQUEST: [u8; 4] = [0x25, 0x60, 0x95, 0x13];

/// The time of the first request of each connection to `port`, in nanoseconds since 1970, by the port of the client.
pub(super) fn first_requests(file: &[u8], port: u16) -> Result<BTreeMap<u16, u64>> {
    let word = |at: usize| {
        let bytes = file.get(at..at + 4)?;
        bytes.try_into().ok().map(u32::from_ne_bytes)
    };
    if word(0) != Some(NANOSECONDS) {
        bail!("tcpdump has written no packets with times in nanoseconds");
    }
    let mut first = BTreeMap::new();
    let mut at = FILE_HEADER;
    while let (Some(seconds), Some(nanoseconds), Some(length)) =
        (word(at), word(at + 4), word(at + 8))
    {
        let start = at + PACKET_HEADER;
        at = start + length as usize;
        let Some(packet) = file.get(start..at) else { break };
        if let Some(client) = request_to(packet, port) {
            let time = u64::from(seconds) * 1_000_000_000 + u64::from(nanoseconds);
            first.entry(client).or_insert(time);
        }
    }
    Ok(first)
}

/// The port of the client where `packet` begins with a request of NBD to `port`.
fn request_to(packet: &[u8], port: u16) -> Option<u16> {
    let ip = packet.get(ETHERNET_HEADER..)?;
    // IPv4 with TCP (RFC 791, 3.1).
    if ip.first()? >> 4 != 4 || *ip.get(9)? != 6 {
        return None;
    }
    let tcp = ip.get(usize::from(ip[0] & 0xf) * 4..)?;
    let number = |at: usize| Some(u16::from_be_bytes(tcp.get(at..at + 2)?.try_into().ok()?));
    let payload = tcp.get(usize::from(tcp.get(12)? >> 4) * 4..)?;
    (number(2)? == port && payload.starts_with(&NBD_REQUEST)).then(|| number(0)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(file: &mut Vec<u8>, time: (u32, u32), ports: (u16, u16), payload: &[u8]) {
        let mut packet = vec![0; ETHERNET_HEADER];
        packet.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        packet.extend(ports.0.to_be_bytes());
        packet.extend(ports.1.to_be_bytes());
        packet.extend([0; 8]);
        packet.extend([0x80, 0x18, 0, 0, 0, 0, 0, 0]);
        // Options: the payload begins where the header says.
        packet.extend([1; 12]);
        packet.extend(payload);
        let length = u32::try_from(packet.len()).unwrap();
        for word in [time.0, time.1, length, length] {
            file.extend(word.to_ne_bytes());
        }
        file.extend(packet);
    }

    #[test]
    fn the_first_request_of_each_connection_counts() {
        let mut file = NANOSECONDS.to_ne_bytes().to_vec();
        file.resize(FILE_HEADER, 0);
        packet(&mut file, (5, 1), (4001, 10_809), b"IHAVEOPT");
        packet(&mut file, (5, 7), (4001, 10_809), &NBD_REQUEST);
        packet(&mut file, (5, 8), (10_809, 4001), &NBD_REQUEST);
        packet(&mut file, (5, 9), (4002, 10_809), &NBD_REQUEST);
        packet(&mut file, (6, 0), (4001, 10_809), &NBD_REQUEST);
        let whole = file.len();
        packet(&mut file, (7, 0), (4003, 10_809), &NBD_REQUEST);
        let expected = BTreeMap::from([(4001, 5_000_000_007), (4002, 5_000_000_009)]);
        // A file that ends in the middle of a packet gives what is before it.
        for end in [whole, whole + 3, file.len() - 1] {
            assert_eq!(first_requests(&file[..end], 10_809).unwrap(), expected);
        }
        assert!(first_requests(b"no pcap", 10_809).is_err());
    }
}
