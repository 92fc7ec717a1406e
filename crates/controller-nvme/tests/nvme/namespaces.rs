//! Namespaces: management, attachment, formats (base 2.0c, clauses 5.14, 5.22, 5.23; S1-43).

use ssdyno_block::Op;
use ssdyno_controller_nvme::NvmeController;
use ssdyno_spec::nvme::{
    AsynchronousEvent, IdentifyNamespace, NvmeStatus, SubmissionEntry, admin, cns, feature, nvm,
    page,
};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::support::{
    DATA, FixedTime, Host, LATENCY, config, entry, host, identify, ops, set_feature, transfer,
};

fn status(host: &mut Host<FixedTime>, command: SubmissionEntry) -> NvmeStatus {
    host.admin(command).status().kind()
}
fn create(host: &mut Host<FixedTime>, blocks: u64, format: u8) -> (NvmeStatus, u32) {
    let mut wanted = IdentifyNamespace::new_zeroed();
    (wanted.size, wanted.capacity, wanted.format) = (blocks.into(), blocks.into(), format);
    host.data(DATA, 4096).copy_from_slice(wanted.as_bytes());
    let completion = host.admin(entry(admin::NAMESPACE_MANAGEMENT, 0, [0; 3]));
    (completion.status().kind(), completion.dword0.get())
}
fn attach(host: &mut Host<FixedTime>, id: u32, what: u32, controllers: &[u16]) -> NvmeStatus {
    host.data(DATA, 4096).fill(0);
    let list: Vec<u8> = [&[controllers.len() as u16], controllers]
        .concat()
        .iter()
        .flat_map(|c| c.to_le_bytes())
        .collect();
    host.data(DATA, list.len()).copy_from_slice(&list);
    status(host, entry(admin::NAMESPACE_ATTACHMENT, id, [what, 0, 0]))
}
fn delete(host: &mut Host<FixedTime>, id: u32) -> NvmeStatus {
    status(host, entry(admin::NAMESPACE_MANAGEMENT, id, [1, 0, 0]))
}
fn size_of_blocks(host: &mut Host<FixedTime>, id: u32) -> Option<(u64, u32)> {
    assert!(host.admin(identify(cns::NAMESPACE, id)).status().is_success());
    let structure = IdentifyNamespace::read_from_bytes(host.data(DATA, 4096)).unwrap();
    Some((structure.size.get(), structure.block_bytes()?)).filter(|(size, _)| *size > 0)
}

/// Base 2.0c, clauses 5.22 and 5.23.
#[test]
fn namespaces_come_and_go() {
    let mut host = host("namespaces = [{ size = \"16MiB\" }]\nnamespaces_max = 3");
    host.create_pair(1, 8);
    host.admin(set_feature(feature::ASYNCHRONOUS_EVENTS, 1 << 8));
    host.push(0, entry(admin::ASYNCHRONOUS_EVENT_REQUEST, 0, [0; 3]));
    host.ring(0);
    assert_eq!(create(&mut host, 4096, 1), (NvmeStatus::SUCCESS, 2));
    assert_eq!(size_of_blocks(&mut host, 2), None, "not attached yet");
    let second =
        |first| SubmissionEntry { namespace_id: 2.into(), ..transfer(nvm::READ, first, 1) };
    assert_eq!(host.command(1, second(0)).status().kind(), NvmeStatus::INVALID_FIELD);
    assert_eq!(attach(&mut host, 2, 0, &[]), NvmeStatus::CONTROLLER_LIST_INVALID);
    assert_eq!(attach(&mut host, 2, 0, &[2]), NvmeStatus::CONTROLLER_LIST_INVALID);
    assert_eq!(attach(&mut host, 3, 0, &[1]), NvmeStatus::INVALID_FIELD);
    assert_eq!(attach(&mut host, 4, 0, &[1]), NvmeStatus::INVALID_NAMESPACE);
    // The attachment is an event; its page names the namespace, once.
    host.data(DATA, 4).copy_from_slice(&[1, 0, 1, 0]);
    host.push(0, entry(admin::NAMESPACE_ATTACHMENT, 2, [0; 3]));
    host.ring(0);
    host.settle();
    let dwords: Vec<u32> = host.reap(0).iter().map(|c| c.dword0.get()).collect();
    assert!(dwords.contains(&AsynchronousEvent::NAMESPACE_CHANGED.dword()), "{dwords:?}");
    let changed =
        entry(admin::GET_LOG_PAGE, 0, [1 << 16 | u32::from(page::CHANGED_NAMESPACES), 0, 0]);
    for expected in [2, 0] {
        assert_eq!(status(&mut host, changed), NvmeStatus::SUCCESS);
        assert_eq!(host.data(DATA, 4), [expected, 0, 0, 0]);
    }
    assert_eq!(size_of_blocks(&mut host, 2), Some((4096, 4096)));
    assert_eq!(attach(&mut host, 2, 0, &[1]), NvmeStatus::NAMESPACE_ALREADY_ATTACHED);
    // Its blocks lie behind those of the first, and end where it ends.
    assert!(host.command(1, second(1)).status().is_success());
    assert_eq!(host.command(1, second(4096)).status().kind(), NvmeStatus::LBA_OUT_OF_RANGE);
    let seen = host.controller.device().seen.last().unwrap();
    assert_eq!((seen.offset_bytes, seen.length_bytes), ((16 << 20) + 4096, 4096));
    assert_eq!(attach(&mut host, 2, 1, &[1]), NvmeStatus::SUCCESS);
    assert_eq!(attach(&mut host, 2, 1, &[1]), NvmeStatus::NAMESPACE_NOT_ATTACHED);
    // Deleting deallocates.
    host.controller.device_mut().seen.clear();
    assert_eq!(delete(&mut host, 2), NvmeStatus::SUCCESS);
    assert_eq!(ops(&host.controller.device().seen), [(Op::Trim, 16 << 20, 16 << 20)]);
    assert_eq!(delete(&mut host, 2), NvmeStatus::INVALID_FIELD);
    assert_eq!(delete(&mut host, 0), NvmeStatus::INVALID_NAMESPACE);
}

/// Base 2.0c, clause 5.23: the identifier of all namespaces deletes all of them.
#[test]
fn all_namespaces_are_deleted_at_once() {
    let mut host = host("namespaces = [{ size = \"16MiB\" }, { size = \"8MiB\" }, {}]");
    host.controller.device_mut().seen.clear();
    assert_eq!(delete(&mut host, u32::MAX), NvmeStatus::SUCCESS);
    assert_eq!(ops(&host.controller.device().seen), [(Op::Trim, 0, 64 << 20)]);
    for id in 1..=3 {
        assert_eq!(size_of_blocks(&mut host, id), None);
        assert_eq!(delete(&mut host, id), NvmeStatus::INVALID_FIELD);
    }
    host.controller.device_mut().seen.clear();
    assert_eq!(delete(&mut host, u32::MAX), NvmeStatus::SUCCESS, "there were none");
    assert_eq!(ops(&host.controller.device().seen), []);
    assert_eq!(create(&mut host, 8, 0), (NvmeStatus::SUCCESS, 1));
}

/// Base 2.0c, clause 5.23: what cannot be created.
#[test]
fn impossible_namespaces_are_refused() {
    let mut host = host("namespaces = []\nnamespaces_max = 2");
    assert_eq!(create(&mut host, 0, 0).0, NvmeStatus::INVALID_FIELD);
    assert_eq!(create(&mut host, 1 << 40, 0).0, NvmeStatus::NAMESPACE_INSUFFICIENT_CAPACITY);
    assert_eq!(create(&mut host, u64::MAX, 1).0, NvmeStatus::NAMESPACE_INSUFFICIENT_CAPACITY);
    assert_eq!(create(&mut host, 8, 2).0, NvmeStatus::FORMAT_INVALID);
    assert_eq!(create(&mut host, 8, 0x10).0, NvmeStatus::FORMAT_INVALID, "metadata, S1-46");
    assert_eq!(create(&mut host, 8, 0), (NvmeStatus::SUCCESS, 1));
    assert_eq!(create(&mut host, 8, 0), (NvmeStatus::SUCCESS, 2));
    assert_eq!(create(&mut host, 8, 0).0, NvmeStatus::NAMESPACE_ID_UNAVAILABLE);
    assert_eq!(
        status(&mut host, entry(admin::NAMESPACE_MANAGEMENT, 0, [5, 0, 0])),
        NvmeStatus::INVALID_FIELD
    );
}

/// Base 2.0c, clause 5.14.
#[test]
fn a_format_changes_the_block_size_and_drops_the_data() {
    let mut host = host("namespaces = [{ size = \"16MiB\" }, {}]");
    host.create_pair(1, 8);
    let format = |id, dword10| entry(admin::FORMAT_NVM, id, [dword10, 0, 0]);
    assert_eq!(status(&mut host, format(1, 1)), NvmeStatus::SUCCESS);
    assert_eq!(ops(&host.controller.device().seen), [(Op::Trim, 0, 16 << 20)]);
    assert_eq!(size_of_blocks(&mut host, 1), Some((4096, 4096)));
    assert!(host.command(1, transfer(nvm::WRITE, 4095, 1)).status().is_success());
    let last = host.controller.device().seen.last().unwrap();
    assert_eq!((last.offset_bytes, last.length_bytes), ((16 << 20) - 4096, 4096));
    for (command, expected) in [
        (format(1, 2), NvmeStatus::FORMAT_INVALID),
        (format(1, 1 << 5), NvmeStatus::FORMAT_INVALID),
        (format(1, 1 << 4), NvmeStatus::FORMAT_INVALID),
        // LBAFU: format 16.
        (format(1, 1 << 12), NvmeStatus::FORMAT_INVALID),
        // Erasing by keys, and an invalid setting.
        (format(1, 2 << 9), NvmeStatus::INVALID_FIELD),
        (format(1, 7 << 9), NvmeStatus::INVALID_FIELD),
        (format(9, 0), NvmeStatus::INVALID_FIELD),
        (format(0, 0), NvmeStatus::INVALID_NAMESPACE),
        (format(u32::MAX, 1 << 9), NvmeStatus::SUCCESS),
    ] {
        assert_eq!(status(&mut host, command), expected, "{command:?}");
    }
    assert_eq!(size_of_blocks(&mut host, 1), Some((32768, 512)));
    assert_eq!(ops(&host.controller.device().seen).last(), Some(&(Op::Trim, 0, 64 << 20)));
}

/// A device with sectors of 4 KiB offers no smaller block: its place among the formats stays, without a size
/// (NVM 1.0c, figure 98), and neither the file nor the host can choose it.
#[test]
fn no_block_is_smaller_than_the_sector() {
    let device =
        || FixedTime { latency: LATENCY, sector_bytes: Some(4096), ..FixedTime::default() };
    let error = NvmeController::in_front_of(
        device(),
        config("namespaces = [{}]", &[]).nvme_setup().unwrap(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("sector of 4096 B"), "{error}");

    let large = config("namespaces = [{ block_size = \"4KiB\", size = \"16MiB\" }]", &[]);
    let mut host =
        Host::new(NvmeController::in_front_of(device(), large.nvme_setup().unwrap()).unwrap());
    host.enable();
    host.create_pair(1, 8);
    assert_eq!(size_of_blocks(&mut host, 1), Some((4096, 4096)));
    let structure = IdentifyNamespace::read_from_bytes(host.data(DATA, 4096)).unwrap();
    assert_eq!(structure.lba_format.map(|format| format.data_shift)[..3], [0, 12, 0]);
    let format = |index| entry(admin::FORMAT_NVM, 1, [index, 0, 0]);
    assert_eq!(status(&mut host, format(0)), NvmeStatus::FORMAT_INVALID);
    assert_eq!(status(&mut host, format(1)), NvmeStatus::SUCCESS);
    assert_eq!(create(&mut host, 4096, 0).0, NvmeStatus::FORMAT_INVALID);
    assert_eq!(create(&mut host, 512, 1), (NvmeStatus::SUCCESS, 2));
    assert!(host.command(1, transfer(nvm::READ, 4095, 1)).status().is_success());
}
