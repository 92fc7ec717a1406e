//! Random CDBs, random controllers, random failures: always an answer that SAM-5 allows.

use proptest::prelude::*;
use ssdyno_scsi::{CommandSet, Nexus, Optional, TranslatorConfig, UnmapBy, lun_field};
use ssdyno_spec::nvme::NvmeStatus;

use crate::common::{Answer, Host, able, cdb10, cdb16, namespace};

/// A CDB: any bytes, or those of a command that is there with a few bits changed.
fn any_cdb() -> impl Strategy<Value = Vec<u8>> {
    const OPCODES: &[u8] = &[
        0x00, 0x03, 0x04, 0x08, 0x0a, 0x12, 0x15, 0x16, 0x17, 0x1a, 0x1b, 0x1d, 0x25, 0x28, 0x2a,
        0x2e, 0x2f, 0x34, 0x35, 0x37, 0x41, 0x42, 0x4d, 0x55, 0x5a, 0x5e, 0x5f, 0x88, 0x89, 0x8a,
        0x8b, 0x8e, 0x8f, 0x90, 0x91, 0x93, 0x9e, 0xa0, 0xa3, 0xa8, 0xaa, 0xae, 0xaf, 0xb7,
    ];
    let sparse =
        prop::collection::vec(prop_oneof![6 => Just(0), 2 => 0..=32_u8, 1 => any::<u8>()], 0..17);
    let known = (prop::sample::select(OPCODES), sparse).prop_map(|(opcode, mut bytes)| {
        bytes.insert(0, opcode);
        bytes.resize(bytes.len().min(16), 0);
        bytes
    });
    prop_oneof![1 => prop::collection::vec(any::<u8>(), 0..20), 8 => known]
}

fn any_data() -> impl Strategy<Value = Vec<u8>> {
    let blocks = (0..20_usize, any::<u8>()).prop_map(|(blocks, byte)| vec![byte; blocks * 512]);
    let list = prop::collection::vec(prop_oneof![3 => Just(0), 1 => any::<u8>()], 0..64);
    prop_oneof![blocks, list]
}

fn any_optional() -> impl Strategy<Value = Optional> {
    any::<[bool; 10]>().prop_map(|bit| Optional {
        compare: bit[0],
        dataset_management: bit[1],
        write_zeroes: bit[2],
        feature_select: bit[3],
        saveable_cache: bit[3],
        verify: bit[4],
        fused_compare_write: bit[5],
        format: bit[6],
        sanitize_overwrite: bit[7],
        sanitize_block_erase: bit[8],
        sanitize_crypto_erase: bit[9],
    })
}

fn any_config() -> impl Strategy<Value = TranslatorConfig> {
    (any::<[bool; 3]>(), 0..300_u32, 0..2000_u32).prop_map(|(bit, transfer, same)| {
        TranslatorConfig {
            commands: if bit[0] { CommandSet::Thesis } else { CommandSet::Full },
            transfer_blocks_max: transfer,
            write_same_blocks_max: same,
            physical_block_bytes: if bit[1] { 4096 } else { 0 },
            unmap_by: if bit[1] { UnmapBy::WriteZeroes } else { UnmapBy::DatasetManagement },
            power_on_attention: bit[2],
            transport_version: 0x0960,
            ordered_tasks: false,
        }
    })
}

/// The allocation length of a command that has one (SPC-4, 4.2.5.6).
fn allocation(cdb: &[u8]) -> Option<usize> {
    let two = |at: usize| usize::from(u16::from_be_bytes([cdb[at], cdb[at + 1]]));
    let four = |at: usize| two(at) << 16 | two(at + 2);
    Some(match *cdb.first()? {
        0x03 | 0x1a => usize::from(cdb[4]),
        0x12 => two(3),
        0x37 | 0x4d | 0x5a | 0x5e => two(7),
        0x9e => four(10),
        0xa0 | 0xa3 | 0xb7 => four(6),
        0x25 => 8,
        _ => return None,
    })
}

/// What every answer owes.
fn check(cdb: &[u8], answer: &Answer) -> Result<(), TestCaseError> {
    match answer.status {
        0x00 => prop_assert!(answer.sense.is_none()),
        0x18 => prop_assert!(answer.sense.is_none() && answer.data.is_empty()),
        0x02 | 0x40 => {
            prop_assert!(answer.data.is_empty());
            let bytes = &answer.sense_bytes;
            let (key, _) = answer.sense.expect("sense data");
            prop_assert!(matches!(key, 1..=7 | 0xb | 0xe));
            let length = match bytes[0] & 0x7f {
                0x70 => bytes[7],
                0x72 => bytes[7],
                other => panic!("response code {other:#x}"),
            };
            prop_assert_eq!(bytes.len(), 8 + usize::from(length));
        }
        other => prop_assert!(false, "status {:#x}", other),
    }
    if answer.status == 0
        && let Some(most) = allocation(cdb)
    {
        prop_assert!(answer.data.len() <= most, "{} > {most}", answer.data.len());
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_command_ends_with_a_valid_answer(
        optional in any_optional(),
        config in any_config(),
        mdts in prop_oneof![Just(0_u32), 512..20_000_u32],
        faults in prop::collection::vec(prop_oneof![9 => Just(0_u16), 1 => 0..0x800_u16], 0..40),
        commands in prop::collection::vec((0..3_usize, 0..3_u64, any_cdb(), any_data()), 1..40),
    ) {
        let mut controller = able();
        controller.optional = optional;
        controller.transfer_bytes_max = mdts;
        let mut host = Host::new(controller, namespace(300, 512), config);
        let nexuses = [
            Nexus::LOCAL,
            host.translator.attach(b"one").unwrap(),
            host.translator.attach(b"another").unwrap(),
        ];
        host.device.faults = faults.into_iter().map(NvmeStatus::from_bits).collect();
        for (nexus, lun, cdb, data) in commands {
            let lun = if lun == 2 { lun_field(1) } else { lun_field(0) };
            let answer = host.send_as(nexuses[nexus], lun, &cdb, &data);
            check(&cdb, &answer)?;
        }
    }

    /// Writes of all kinds against a model that is a vector.
    #[test]
    fn data_are_as_in_a_model(
        optional in any_optional(),
        mdts in prop_oneof![Just(0_u32), 512..20_000_u32],
        commands in prop::collection::vec((0..7_u8, 0..64_u64, 1..32_usize, any::<u8>()), 1..60),
    ) {
        let mut controller = able();
        controller.optional = optional;
        controller.transfer_bytes_max = mdts;
        controller.compare_write_blocks_max = 255;
        let mut host = Host::small(controller);
        let mut model = vec![0_u8; 128 * 512];
        for (kind, lba, blocks, byte) in commands {
            let range = lba as usize * 512..(lba as usize + blocks) * 512;
            let data: Vec<u8> = (0..blocks * 512).map(|i| byte ^ (i / 100) as u8).collect();
            let wide = |opcode, flags| cdb16(opcode, flags, lba, blocks as u32);
            match kind {
                0 => {
                    host.send(&wide(0x8a, 0), &data).good();
                    model[range.clone()].copy_from_slice(&data);
                }
                1 => {
                    host.send(&cdb10(0x2e, byte & 2, lba as u32, blocks as u16), &data).good();
                    model[range.clone()].copy_from_slice(&data);
                }
                2 => {
                    host.send(&wide(0x8b, 0), &data).good();
                    for (old, new) in model[range.clone()].iter_mut().zip(&data) {
                        *old |= new;
                    }
                }
                3 => {
                    let block = [byte & 1; 512];
                    host.send(&wide(0x93, 0), &block).good();
                    model[range.clone()].fill(byte & 1);
                }
                4 => {
                    // Sometimes right, sometimes not; a small MDTS bounds fused commands.
                    let mut expected = model[range.clone()].to_vec();
                    expected[blocks * 511] ^= byte & 1;
                    let mut cdb = cdb16(0x89, 0, lba, 0);
                    cdb[13] = blocks as u8;
                    let answer = host.send(&cdb, &[expected, data.clone()].concat());
                    match answer.sense {
                        None => {
                            prop_assert_eq!(byte & 1, 0);
                            model[range.clone()].copy_from_slice(&data);
                        }
                        Some((0xe, _)) => prop_assert_eq!(byte & 1, 1),
                        other => prop_assert_eq!(other, Some((5, 0x2400))),
                    }
                }
                5 => {
                    let answer = host.send(&wide(0x8f, 2), &model[range.clone()]);
                    answer.good();
                    host.send(&wide(0x8f, 0), &[]).good();
                }
                _ => {}
            }
            prop_assert_eq!(host.send(&wide(0x88, 0), &[]).good(), &model[range]);
        }
        prop_assert_eq!(&host.device.bytes[..model.len()], &model[..]);
    }
}
