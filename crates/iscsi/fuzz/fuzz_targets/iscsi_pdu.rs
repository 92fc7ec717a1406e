//! Any bytes as a stream of PDUs, with and without digests.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssdyno_iscsi::{BHS_BYTES, Framing, Pdu};

fuzz_target!(|data: &[u8]| {
    let Some((&[flags], mut stream)) = data.split_first_chunk() else { return };
    let framing = Framing {
        header_digest: flags & 1 != 0,
        data_digest: flags & 2 != 0,
        data_bytes_max: u32::from(flags) << 8,
    };
    while let Some((header, rest)) = stream.split_first_chunk::<BHS_BYTES>() {
        let Ok(length) = Pdu::rest_bytes(header, framing) else { return };
        let Ok(pdu) = Pdu::parse(header, rest, framing) else { return };
        assert!(pdu.data.len() <= framing.data_bytes_max as usize);
        if !pdu.damaged {
            let mut bytes = Vec::new();
            pdu.write(framing, &mut bytes);
            assert_eq!(bytes.len(), BHS_BYTES + length);
        }
        stream = &rest[length..];
    }
});
