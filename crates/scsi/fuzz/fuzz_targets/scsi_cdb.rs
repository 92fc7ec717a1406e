//! Any bytes as a conversation: CDBs with data from two initiators, and statuses of NVMe commands.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ssdyno_scsi::{
    TranslatorConfig, ControllerFacts, ScsiJob, NamespaceFacts, Nexus, Optional, DataPlace, JobProgress, ScsiRequest,
    Translator, lun_field,
};
use ssdyno_spec::nvme::NvmeStatus;

/// Takes up to `count` bytes.
fn take<'a>(data: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (head, tail) = data.split_at(count.min(data.len()));
    *data = tail;
    head
}

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let &[able, mdts, ref rest @ ..] = data else { return };
    data = rest;
    let bit = |bit: u8| able >> bit & 1 == 1;
    let mut controller = ControllerFacts::named("model", "serial", "1.0");
    controller.volatile_write_cache = bit(7);
    controller.transfer_bytes_max = u32::from(mdts) << 9;
    controller.optional = Optional {
        compare: bit(0),
        dataset_management: bit(1),
        write_zeroes: bit(2),
        feature_select: bit(3),
        saveable_cache: bit(3),
        verify: bit(4),
        fused_compare_write: bit(5),
        format: bit(6),
        sanitize_overwrite: bit(6),
        sanitize_block_erase: bit(6),
        sanitize_crypto_erase: bit(5),
    };
    let namespaces = [NamespaceFacts::plain(1, 300, 512)];
    let Ok(mut translator) = Translator::new(controller, &namespaces, TranslatorConfig::default()) else {
        unreachable!("plain facts are good")
    };
    let second = translator.attach(b"second").unwrap_or(Nexus::LOCAL);
    let mut job = ScsiJob::new();
    while let [head, cdb_length, data_length, status, status_type, rest @ ..] = data {
        data = rest;
        let cdb = take(&mut data, usize::from(cdb_length % 20));
        let mut data_out = take(&mut data, usize::from(*data_length)).to_vec();
        if head & 8 != 0 {
            // Whole blocks.
            data_out = data_out.repeat(512);
        }
        let request = ScsiRequest {
            nexus: if head & 1 == 0 { Nexus::LOCAL } else { second },
            lun: lun_field(u32::from(head >> 1 & 1)),
            cdb,
            data_out_bytes: data_out.len() as u64,
            data_out: &data_out,
            deleted: head & 4 != 0,
        };
        let mut progress = translator.begin(&mut job, &request);
        let buffer_bytes = data_out.len().max(job.data_in_bytes() as usize);
        while progress == JobProgress::Pending {
            let mut commands = 0_u32;
            while let Some(command) = job.next_command() {
                let end = command.data.offset as usize + command.data.bytes as usize;
                match command.data.place {
                    DataPlace::Nothing => assert_eq!(end, 0),
                    DataPlace::Buffer => assert!(end <= buffer_bytes),
                    DataPlace::Scratch => assert!(end <= job.scratch().len()),
                }
                commands += 1;
            }
            assert!(commands > 0, "pending without a command");
            for _ in 0..commands {
                assert_eq!(progress, JobProgress::Pending);
                let status = NvmeStatus::from_bits(u16::from_le_bytes([*status, status_type & 7]));
                progress = translator.complete(&mut job, status, u32::from(*head));
            }
        }
        assert_eq!(progress, JobProgress::Done);
        assert_eq!(job.status() == 2, job.status() != 0x40 && !job.sense().is_empty());
        assert!(job.status() == 0 || job.data_in_bytes() == 0);
    }
});
