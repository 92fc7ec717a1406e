//! Admin commands but for queues and namespaces (base 2.0c, clause 5).

use ssdyno_block::{Status as DeviceStatus, Time};
use ssdyno_controller_nvme::NvmeController;
use ssdyno_spec::nvme::{
    AutonomousTransition, ErrorLogEntry, FirmwareSlotLog, IdentifyController, IdentifyNamespace,
    NvmeStatus, SmartLog, SubmissionEntry, admin, cns, feature, nvm, oacs, oncs, page, registers,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::support::{
    DATA, FixedTime, Host, LATENCY, config, entry, get_feature, host, host_with, identify, read,
    set_feature, transfer,
};

pub(crate) fn structure<T: FromBytes + zerocopy::KnownLayout + zerocopy::Immutable>(
    host: &mut Host<FixedTime>,
    command: SubmissionEntry,
) -> T {
    host.data(DATA, 4096).fill(0xee);
    let completion = host.admin(command);
    assert!(completion.status().is_success(), "{completion:?}");
    T::read_from_bytes(host.data(DATA, size_of::<T>())).unwrap()
}
fn status(host: &mut Host<FixedTime>, command: SubmissionEntry) -> NvmeStatus {
    host.admin(command).status().kind()
}
pub(crate) fn log(id: u8, bytes: u32) -> SubmissionEntry {
    entry(admin::GET_LOG_PAGE, u32::MAX, [u32::from(id) | (bytes / 4 - 1) << 16, 0, 0])
}

/// Power states of a drive in the file of power states: two operational, two that are not.
const STATES: &str = "[[nvme.operational_states]]\npower = \"8.49W\"\n\
    [[nvme.operational_states]]\npower = \"4.48W\"\nexit_latency = \"200us\"\n\
    [[power.states]]\npower = \"40mW\"\nidle_after = \"100ms\"\nentry_latency = \"2ms\"\nexit_latency = \"1.2ms\"\n\
    [[power.states]]\npower = \"5mW\"\nidle_after = \"2s\"\nentry_latency = \"500us\"\nexit_latency = \"9.5ms\"\n";

/// Base 2.0c, figure 275; S1-28.
#[test]
fn identify_controller_says_what_the_device_file_says() {
    let keys = "model = \"A model\"\nserial = \"S1\"\nfirmware = \"F\"\nmax_transfer = \"128KiB\"\n\
                arbitration_burst = 1\npci_vendor = 0x8086\nversion = \"1.3\"\nnamespaces_max = 7\n";
    let mut host = host(&format!("{keys}{STATES}"));
    let id: IdentifyController = structure(&mut host, identify(cns::CONTROLLER, 0));
    assert_eq!(id.vendor.get(), 0x8086);
    assert!(id.model.starts_with(b"A model  ") && id.serial.ends_with(b" "));
    assert_eq!(&id.firmware, b"F       ");
    assert_eq!((id.max_transfer, id.arbitration_burst), (5, 0), "128 KiB is 2^5 pages");
    assert_eq!((id.version.get(), id.namespaces.get()), (0x1_0300, 7));
    assert_eq!(id.admin_commands.get(), oacs::FORMAT_NVM | oacs::NAMESPACE_MANAGEMENT);
    assert_eq!(id.nvm_commands.get() & oncs::COMPARE, 0, "nothing to compare with");
    assert_eq!((id.submission_entry_size, id.completion_entry_size), (0x66, 0x44));
    assert_eq!((id.total_capacity.get(), id.unallocated_capacity.get()), (64 << 20, 0));
    assert_eq!((id.abort_limit, id.event_request_limit, id.power_states), (3, 3, 3));
    assert_eq!((id.scatter_gather.get(), id.fused_operations.get()), (0, 0));
    assert_eq!(id.volatile_write_cache & 1, 0);
    assert!(id.subsystem_name.starts_with(b"nqn.2014-08.org.nvmexpress:uuid:"));
    let watts: Vec<f64> = id.power_state[..4].iter().map(|s| s.max_power_watts()).collect();
    assert_eq!(watts, [8.49, 4.48, 0.04, 0.005]);
    let exits: Vec<u32> = id.power_state[..4].iter().map(|s| s.exit_latency_us.get()).collect();
    assert_eq!(exits, [0, 200, 1200, 9500]);
    assert_eq!(id.power_state.map(|s| s.flags >> 1 & 1)[..5], [0, 0, 1, 1, 0]);
    assert_eq!(id.autonomous_power, 1);
}

/// Base 2.0c, clause 5.17.2 and NVM 1.0c, figure 97.
#[test]
fn identify_namespaces() {
    let mut host = host("namespaces = [{ size = \"8MiB\" }, { block_size = \"4KiB\" }]");
    let one: IdentifyNamespace = structure(&mut host, identify(cns::NAMESPACE, 1));
    assert_eq!((one.size.get(), one.block_bytes(), one.format_index()), (16384, Some(512), 0));
    let two: IdentifyNamespace = structure(&mut host, identify(cns::NAMESPACE, 2));
    assert_eq!((two.size.get(), two.block_bytes()), (56 * 256, Some(4096)));
    assert_ne!(one.guid, two.guid);
    assert_ne!(one.eui64, [0; 8]);
    assert_eq!((two.deallocate & 7, two.formats, two.protection_capabilities), (1, 1, 0));
    let common: IdentifyNamespace = structure(&mut host, identify(cns::NAMESPACE, u32::MAX));
    assert_eq!((common.size.get(), common.lba_format[1].data_shift), (0, 12));
    let absent: IdentifyNamespace = structure(&mut host, identify(cns::NAMESPACE, 9));
    assert!(absent.as_bytes().iter().all(|byte| *byte == 0));
    let list: [u32; 1024] = structure(&mut host, identify(cns::ACTIVE_NAMESPACES, 0));
    assert_eq!(list[..3], [1, 2, 0]);
    let list: [u32; 1024] = structure(&mut host, identify(cns::ACTIVE_NAMESPACES, 1));
    assert_eq!(list[..2], [2, 0]);
    let list: [u8; 64] = structure(&mut host, identify(cns::NAMESPACE_DESCRIPTORS, 1));
    assert_eq!((list[0], list[1], &list[4..12]), (1, 8, &one.eui64[..]));
    assert_eq!((list[12], list[13], list[32], list[33], list[36]), (2, 16, 4, 1, 0));
    let controllers: [u16; 3] = structure(&mut host, identify(cns::CONTROLLERS, 0));
    assert_eq!(controllers, [1, 1, 0]);
    let attached: [u16; 3] = structure(&mut host, identify(cns::ATTACHED_CONTROLLERS, 2));
    assert_eq!(attached, [1, 1, 0]);
    for (what, namespace, expected) in [
        (cns::NAMESPACE, 0, NvmeStatus::INVALID_NAMESPACE),
        (cns::NAMESPACE, 33, NvmeStatus::INVALID_NAMESPACE),
        (cns::ACTIVE_NAMESPACES, 0xffff_fffe, NvmeStatus::INVALID_NAMESPACE),
        (cns::NAMESPACE_DESCRIPTORS, 3, NvmeStatus::INVALID_FIELD),
        (cns::NAMESPACE_DESCRIPTORS, u32::MAX, NvmeStatus::INVALID_FIELD),
        (0x77, 0, NvmeStatus::INVALID_FIELD),
        (cns::CONTROLLER_OF_COMMAND_SET, 0, NvmeStatus::SUCCESS),
        (cns::NAMESPACE_OF_COMMAND_SET, 1, NvmeStatus::SUCCESS),
        (cns::NAMESPACE_OF_COMMAND_SET, 9, NvmeStatus::SUCCESS),
        (cns::NAMESPACE_OF_COMMAND_SET, 0, NvmeStatus::INVALID_NAMESPACE),
    ] {
        assert_eq!(status(&mut host, identify(what, namespace)), expected, "CNS {what:#x}");
    }
    // The structure may start anywhere in a page, on a whole dword.
    let apart = SubmissionEntry {
        prp1: (DATA + 4000).into(),
        prp2: (DATA + 0x4000).into(),
        ..identify(cns::NAMESPACE, 1)
    };
    assert_eq!(status(&mut host, apart), NvmeStatus::SUCCESS);
    // 96 bytes fit into the first page; NGUID is at 104.
    assert_eq!(host.data(DATA + 0x4008, 16), &one.guid);
}

/// Base 2.0c, clauses 5.15 and 5.27.
#[test]
fn features_are_set_and_got() {
    let mut host = host(STATES);
    for (id, value, shown) in [
        (feature::ARBITRATION, 0x0302_0104, 0x0302_0104),
        (feature::TEMPERATURE_THRESHOLD, 350, 350),
        (feature::INTERRUPT_COALESCING, 0x0507, 0x0507),
        (feature::WRITE_ATOMICITY, 1, 1),
        (feature::ASYNCHRONOUS_EVENTS, 0x101, 0x101),
        (feature::POWER_MANAGEMENT, 1, 1),
        (feature::POWER_MANAGEMENT, 3, 3),
    ] {
        assert_eq!(status(&mut host, set_feature(id, value)), NvmeStatus::SUCCESS, "{id:#x}");
        assert_eq!(host.admin(get_feature(id)).dword0.get(), shown, "{id:#x}");
        let default =
            SubmissionEntry { dword10: (u32::from(id) | 1 << 8).into(), ..get_feature(id) };
        assert_ne!(host.admin(default).dword0.get(), shown, "{id:#x}");
    }
    // Capabilities: changeable, not saveable; of a namespace or not.
    let capabilities = |id: u8| entry(admin::GET_FEATURES, 1, [u32::from(id) | 3 << 8, 0, 0]);
    assert_eq!(host.admin(capabilities(feature::ARBITRATION)).dword0.get(), 4);
    assert_eq!(host.admin(capabilities(feature::ERROR_RECOVERY)).dword0.get(), 6);
    let of_one = |id, value| SubmissionEntry { namespace_id: 1.into(), ..set_feature(id, value) };
    let saved = |id: u8| entry(admin::SET_FEATURES, 0, [u32::from(id) | 1 << 31, 0, 0]);
    for (command, expected) in [
        (set_feature(feature::POWER_MANAGEMENT, 4), NvmeStatus::INVALID_FIELD),
        (set_feature(0x55, 0), NvmeStatus::INVALID_FIELD),
        (get_feature(0x55), NvmeStatus::INVALID_FIELD),
        (get_feature(feature::VOLATILE_WRITE_CACHE), NvmeStatus::INVALID_FIELD),
        (saved(feature::ARBITRATION), NvmeStatus::FEATURE_NOT_SAVEABLE),
        (of_one(feature::ARBITRATION, 0), NvmeStatus::FEATURE_NOT_NAMESPACE_SPECIFIC),
        (set_feature(feature::ERROR_RECOVERY, 5), NvmeStatus::INVALID_NAMESPACE),
        (of_one(feature::ERROR_RECOVERY, 4), NvmeStatus::SUCCESS),
        // The identifier of all namespaces sets it for each of them.
        (
            SubmissionEntry { namespace_id: u32::MAX.into(), ..of_one(feature::ERROR_RECOVERY, 5) },
            NvmeStatus::SUCCESS,
        ),
        (set_feature(feature::TEMPERATURE_THRESHOLD, 3 << 16), NvmeStatus::INVALID_FIELD),
    ] {
        assert_eq!(status(&mut host, command), expected, "{command:?}");
    }
    let recovery = entry(admin::GET_FEATURES, 1, [u32::from(feature::ERROR_RECOVERY), 0, 0]);
    assert_eq!(host.admin(recovery).dword0.get(), 5);
    // Ranges of blocks: 64 bytes each, of blocks 7 and 8.
    host.data(DATA, 128).fill(7);
    for (range, block) in [(0, 7_u64), (1, 8)] {
        let place = &mut host.data(DATA, 128)[range * 64 + 16..][..16];
        place[..8].copy_from_slice(&block.to_le_bytes());
        place[8..].fill(0);
    }
    assert_eq!(status(&mut host, of_one(feature::LBA_RANGE_TYPE, 1)), NvmeStatus::SUCCESS);
    host.data(DATA, 4096).fill(1);
    let ranges = entry(admin::GET_FEATURES, 1, [u32::from(feature::LBA_RANGE_TYPE), 0, 0]);
    assert_eq!(host.admin(ranges).dword0.get(), 1);
    assert_eq!(host.data(DATA, 130)[126..], [7, 7, 0, 0]);
}

/// Base 2.0c, clauses 5.27.1.2, 5.27.1.10 and 8.15; S1-45.
#[test]
fn power_states_reach_the_device() {
    let mut host = host_with(&config(STATES, &[]));
    let ms = Time::from_ms;
    let policy = |host: &Host<FixedTime>| host.controller.device().sleep.clone();
    // At first as the device file says, and the table tells the same.
    assert_eq!(policy(&host), [(0, ms(100)), (1, ms(2000))]);
    let table: [AutonomousTransition; 32] =
        structure(&mut host, get_feature(feature::AUTONOMOUS_POWER));
    let told = |state: usize| (table[state].target(), table[state].idle_ms());
    assert_eq!([0, 1, 2, 3].map(told), [(2, 100), (2, 100), (3, 1900), (0, 0)]);
    // The host's own table, then none.
    let mut own = [AutonomousTransition::default(); 32];
    own[0] = AutonomousTransition::new(3, 50);
    host.data(DATA, 256).copy_from_slice(own.as_bytes());
    assert_eq!(status(&mut host, set_feature(feature::AUTONOMOUS_POWER, 1)), NvmeStatus::SUCCESS);
    assert_eq!(policy(&host), [(1, ms(50))]);
    // A state on order lasts until the next I/O command.
    host.create_pair(1, 8);
    assert_eq!(status(&mut host, set_feature(feature::POWER_MANAGEMENT, 2)), NvmeStatus::SUCCESS);
    assert_eq!(policy(&host), [(0, Time::ZERO)]);
    host.command(1, read(0));
    assert_eq!(policy(&host), [(1, ms(50))]);
    assert_eq!(host.admin(get_feature(feature::POWER_MANAGEMENT)).dword0.get(), 0);
    assert_eq!(status(&mut host, set_feature(feature::AUTONOMOUS_POWER, 0)), NvmeStatus::SUCCESS);
    assert_eq!(policy(&host), []);
}

/// Base 2.0c, clauses 5.27.1.2 and 8.15: operational states limit the device's power, once the state
/// before is left and the new one entered; those below what it draws anyway are refused; S1-45.
#[test]
fn operational_states_limit_the_power() {
    let states = "[[nvme.operational_states]]\npower = \"9W\"\nexit_latency = \"100us\"\n\
        [[nvme.operational_states]]\npower = \"5W\"\nentry_latency = \"20us\"\nexit_latency = \"300us\"\n\
        [[nvme.operational_states]]\npower = \"500mW\"\n\
        [[nvme.operational_states]]\npower = \"0W\"\n\
        [[power.states]]\npower = \"40mW\"\nidle_after = \"100ms\"\n\
        entry_latency = \"2ms\"\nexit_latency = \"1.2ms\"\n";
    let mut host = host_with(&config(states, &[]));
    host.controller.device_mut().least_watts = 1.0;
    let set = |host: &mut Host<FixedTime>, state: u32| {
        host.controller.device_mut().limit = None;
        let before = host.now;
        let status = status(host, set_feature(feature::POWER_MANAGEMENT, state));
        let limit = host.controller.device().limit;
        (status, limit.map(|(from, watts)| ((from - before).as_ps() / 10_000_000, watts)))
    };
    // Times in 10 us: one for the command itself.
    assert_eq!(set(&mut host, 1), (NvmeStatus::SUCCESS, Some((12, Some(5.0)))));
    assert_eq!(set(&mut host, 1), (NvmeStatus::SUCCESS, None), "it is there already");
    let refused = (NvmeStatus::INVALID_FIELD, None);
    assert_eq!(set(&mut host, 2), refused);
    assert_eq!(host.admin(get_feature(feature::POWER_MANAGEMENT)).dword0.get(), 1, "as before");
    assert_eq!(set(&mut host, 4), (NvmeStatus::SUCCESS, None), "asleep; then in state 1 again");
    assert_eq!(set(&mut host, 3), (NvmeStatus::SUCCESS, Some((30, None))), "0 W is not said");
    assert_eq!(set(&mut host, 0), (NvmeStatus::SUCCESS, Some((0, None))));
    assert_eq!(set(&mut host, 1), (NvmeStatus::SUCCESS, Some((12, Some(5.0)))));
    host.controller.device_mut().limit = None;
    host.write(registers::CC, 0);
    assert_eq!(host.controller.device().limit.map(|(_, watts)| watts), Some(None), "state 0 again");
}

/// Base 2.0c, clause 5.16.1: true counters, errors, slots.
#[test]
fn log_pages() {
    let mut host = host("firmware = \"FW 1.5\"");
    host.create_pair(1, 64);
    for block in 0..5 {
        host.command(1, read(block * 8));
    }
    assert_eq!(host.command(1, transfer(nvm::WRITE, 0, 256)).status(), NvmeStatus::SUCCESS);
    host.command(1, transfer(nvm::VERIFY, 0, 961));
    let first = host.command(1, read(u64::MAX));
    host.controller.device_mut().status = Some(DeviceStatus::Error);
    let second = host.command(1, read(800));
    let smart: SmartLog = structure(&mut host, log(page::SMART, 512));
    assert_eq!((smart.host_reads.get(), smart.host_writes.get()), (6, 1));
    // 5 x 8 + 961 = 1001 units of 512 bytes read, 256 written: thousands, rounded up.
    assert_eq!((smart.data_units_read.get(), smart.data_units_written.get()), (2, 1));
    assert_eq!((smart.media_errors.get(), smart.error_log_entries.get()), (1, 2));
    assert_eq!(
        (smart.available_spare, smart.critical_warning, smart.power_cycles.get()),
        (100, 0, 1)
    );
    let errors: [ErrorLogEntry; 4] = structure(&mut host, log(page::ERROR, 256));
    assert_eq!(errors.map(|e| e.count.get()), [2, 1, 0, 0], "the newest first");
    assert_eq!(errors[0].command, second.command_id);
    assert_eq!(
        (errors[0].queue.get(), errors[0].lba.get(), errors[0].namespace.get()),
        (1, 800, 1)
    );
    assert_eq!(errors[0].status.get() >> 1, second.status().bits());
    assert_eq!(errors[1].status.get() >> 1, first.status().bits());
    let slots: FirmwareSlotLog = structure(&mut host, log(page::FIRMWARE_SLOT, 512));
    assert_eq!((slots.active, &slots.revision[0]), (1, b"FW 1.5  "));
    // A part of a page, and behind its end.
    let part = SubmissionEntry { dword12: 32.into(), ..log(page::SMART, 16) };
    let units: u128 = structure(&mut host, part);
    assert_eq!(units, 2);
    let behind = SubmissionEntry { dword12: 516.into(), ..log(page::SMART, 16) };
    assert_eq!(status(&mut host, behind), NvmeStatus::INVALID_FIELD);
    let by_index = SubmissionEntry { dword14: (1 << 23).into(), ..log(page::SMART, 16) };
    assert_eq!(status(&mut host, by_index), NvmeStatus::INVALID_FIELD);
    assert_eq!(status(&mut host, log(0x7f, 16)), NvmeStatus::LOG_PAGE_INVALID);
}

/// Base 2.0c, clause 5.1; S1-33.
#[test]
fn abort_ends_what_has_not_begun() {
    let mut host = host("");
    host.create_pair(1, 16);
    let abort = |queue: u32, id: u16| entry(admin::ABORT, 0, [u32::from(id) << 16 | queue, 0, 0]);
    let id = host.push(1, read(0));
    host.ring(1);
    host.run_until(host.now + LATENCY / 2);
    assert_eq!(host.admin(abort(1, id)).dword0.get(), 1, "the device is at it");
    assert!(host.reap(1)[0].status().is_success());
    assert_eq!(host.admin(abort(1, 999)).dword0.get(), 1, "no such command");
    assert_eq!(host.admin(abort(9, 1)).dword0.get(), 1, "no such queue");
    // An asynchronous event request can always be taken back.
    let request = host.push(0, entry(admin::ASYNCHRONOUS_EVENT_REQUEST, 0, [0; 3]));
    host.push(0, abort(0, request));
    host.ring(0);
    host.settle();
    let ends: Vec<_> = host.reap(0).iter().map(|c| (c.status(), c.dword0.get())).collect();
    assert!(
        ends.contains(&(NvmeStatus::ABORT_REQUESTED, 0))
            && ends.contains(&(NvmeStatus::SUCCESS, 0))
    );
    // Four at a time.
    for _ in 0..6 {
        host.push(0, abort(1, 7));
    }
    host.ring(0);
    host.settle();
    let limited =
        host.reap(0).iter().filter(|c| c.status() == NvmeStatus::ABORT_LIMIT_EXCEEDED).count();
    assert_eq!(limited, 2);
}

/// Base 2.0c, clause 5.2: one event a request, kinds masked until their page is read.
/// Base 2.0c, clauses 3.9, 5.18 and 5.27.1.12: a host that gives no sign for too long is gone.
#[test]
fn a_host_that_is_not_alive_is_not_served() {
    let mut host = host("");
    let id: IdentifyController = structure(&mut host, identify(cns::CONTROLLER, 0));
    assert_eq!(id.keep_alive.get(), 10, "seconds");
    assert_eq!(host.admin(get_feature(feature::KEEP_ALIVE)).dword0.get(), 0);
    let command = |host: &mut Host<FixedTime>, command| {
        host.push(0, command);
        host.ring(0);
        host.run_until(host.now + Time::from_ms(1));
        assert!(host.reap(0).iter().all(|c| c.status().is_success()));
    };
    let sign = entry(admin::KEEP_ALIVE, 0, [0; 3]);
    command(&mut host, set_feature(feature::KEEP_ALIVE, 1500));
    for _ in 0..5 {
        host.run_until(host.now + Time::from_ms(1900));
        command(&mut host, sign);
    }
    assert_eq!(host.read(registers::CSTS), registers::CSTS_READY);
    host.run_until(host.now + Time::from_ms(2001));
    assert_eq!(host.read(registers::CSTS), registers::CSTS_READY | registers::CSTS_FATAL);
    host.write(registers::CC, 0);
    host.enable();
    assert_eq!(host.admin(get_feature(feature::KEEP_ALIVE)).dword0.get(), 0);
    let last: ErrorLogEntry = structure(&mut host, log(page::ERROR, 64));
    let status = NvmeStatus::KEEP_ALIVE_EXPIRED.bits() << 1;
    assert_eq!((last.queue.get(), last.status.get()), (0xffff, status));
    // The longest time, and none.
    for (ms, shown) in [(u32::MAX, 4_294_967_000), (1, 1000), (0, 0)] {
        command(&mut host, set_feature(feature::KEEP_ALIVE, ms));
        host.push(0, get_feature(feature::KEEP_ALIVE));
        host.ring(0);
        host.run_until(host.now + Time::from_ms(1));
        assert_eq!(host.reap(0)[0].dword0.get(), shown);
    }
    host.settle();
    assert_eq!(host.read(registers::CSTS), registers::CSTS_READY);
}

/// Base 2.0c, clause 5.27.1.18.
#[test]
fn the_host_says_what_it_understands() {
    let mut host = host("");
    let set = set_feature(feature::HOST_BEHAVIOR, 0);
    let get = get_feature(feature::HOST_BEHAVIOR);
    for (byte, value, expected) in [
        (0, 1, NvmeStatus::SUCCESS),
        (0, 2, NvmeStatus::INVALID_FIELD),
        (2, 1, NvmeStatus::INVALID_FIELD),
        (511, 1, NvmeStatus::INVALID_FIELD),
    ] {
        host.data(DATA, 512).fill(0);
        host.data(DATA, 512)[byte] = value;
        assert_eq!(status(&mut host, set), expected, "byte {byte}");
    }
    let said: [u8; 512] = structure(&mut host, get);
    assert_eq!((said[0], said[1..].iter().max()), (1, Some(&0)));
    for (version, expected) in [("1.3", NvmeStatus::INVALID_FIELD), ("1.4", NvmeStatus::SUCCESS)] {
        let mut old = super::support::host(&format!("version = \"{version}\""));
        assert_eq!(status(&mut old, get), expected);
        assert_eq!(status(&mut old, get_feature(feature::KEEP_ALIVE)), NvmeStatus::SUCCESS);
    }
    let mut oldest = super::support::host("version = \"1.1\"");
    assert_eq!(status(&mut oldest, get_feature(feature::KEEP_ALIVE)), NvmeStatus::INVALID_FIELD);
    let sign = entry(admin::KEEP_ALIVE, 0, [0; 3]);
    assert_eq!(status(&mut oldest, sign), NvmeStatus::INVALID_OPCODE);
}

/// Base 2.0c, clause 5.16: pages are those of the controller.
#[test]
fn logs_of_a_namespace_are_refused() {
    let mut host = host("");
    for id in [page::ERROR, page::SMART, page::FIRMWARE_SLOT, page::COMMAND_EFFECTS] {
        for (namespace, expected) in [
            (0, NvmeStatus::SUCCESS),
            (u32::MAX, NvmeStatus::SUCCESS),
            (1, NvmeStatus::INVALID_FIELD),
            (99, NvmeStatus::INVALID_FIELD),
        ] {
            let command = SubmissionEntry { namespace_id: namespace.into(), ..log(id, 64) };
            assert_eq!(status(&mut host, command), expected, "page {id:#x} of {namespace:#x}");
        }
    }
}

/// Base 2.0c, clause 3.4: opcodes that are not offered.
#[test]
fn unknown_admin_commands_are_refused() {
    let mut host = host("");
    for opcode in [0x10, 0x14, 0x7f, 0x86, 0xc0] {
        let status = host.admin(entry(opcode, 0, [0; 3])).status();
        assert_eq!(status, NvmeStatus::INVALID_OPCODE.with_do_not_retry());
    }
    let sgl = SubmissionEntry { flags: 0x40, ..identify(1, 0) };
    assert_eq!(status(&mut host, sgl), NvmeStatus::INVALID_FIELD);
    let nowhere = SubmissionEntry { prp1: 0xdead_0000.into(), ..identify(1, 0) };
    assert_eq!(status(&mut host, nowhere), NvmeStatus::DATA_TRANSFER_ERROR);
    assert!(
        NvmeController::in_front_of(FixedTime::default(), config("", &[]).nvme_setup().unwrap())
            .is_ok()
    );
}

/// LPA bit 5 (base 2.0c, figure 275) promises a scope for each command, in the bits 31:20 of its dword.
fn check_scopes(offered: &[[u32; 256]; 2], told: bool) {
    for (set, dwords) in offered.iter().enumerate() {
        for (opcode, dword) in dwords.iter().enumerate() {
            let scopes = if told { dword & 1 } else { 0 };
            assert_eq!((dword >> 20).count_ones(), scopes, "set {set}, {opcode:#x}: {dword:#x}");
        }
    }
    if told {
        let admin = |opcode: u8| offered[0][usize::from(opcode)] >> 20;
        assert_eq!(admin(admin::IDENTIFY), 1 << 1, "of the controller");
        assert_eq!(admin(admin::FORMAT_NVM), 1, "of a namespace");
        assert_eq!(admin(admin::SANITIZE), 1 << 5, "of the subsystem");
        assert!(offered[1].iter().all(|dword| dword >> 20 <= 1), "of a namespace");
    }
}

/// Base 2.0c, clauses 5.16.1.1, 5.16.1.6 and 5.16.1.18: what the controller says of pages, commands and
/// features is what it does, for each of the 256 numbers.
#[test]
fn what_is_offered_is_what_is_done() {
    for (version, contents) in [("2.0", "contents = true"), ("1.4", ""), ("1.0", "")] {
        let mut host = host(&format!("version = \"{version}\"\n{contents}\n{STATES}"));
        host.create_pair(1, 8);
        let id: IdentifyController = structure(&mut host, identify(cns::CONTROLLER, 0));
        let new = version == "2.0";
        let effects = version != "1.0";
        assert_eq!(id.log_attributes, (u8::from(effects) * 6) | u8::from(new) << 5);
        if effects {
            let offered: [[u32; 256]; 2] = structure(&mut host, log(page::COMMAND_EFFECTS, 2048));
            for opcode in 0..=255u8 {
                // Events complete later, if at all.
                if opcode != admin::ASYNCHRONOUS_EVENT_REQUEST {
                    let refused = host.admin(entry(opcode, 0, [0; 3])).status().kind();
                    let is_there = offered[0][usize::from(opcode)] & 1 == 1;
                    assert_eq!(
                        refused != NvmeStatus::INVALID_OPCODE,
                        is_there,
                        "admin {opcode:#x}"
                    );
                }
                let refused = host.command(1, entry(opcode, 1, [0; 3])).status().kind();
                let is_there = offered[1][usize::from(opcode)] & 1 == 1;
                assert_eq!(refused != NvmeStatus::INVALID_OPCODE, is_there, "I/O {opcode:#x}");
            }
            check_scopes(&offered, new);
        } else {
            let refused = status(&mut host, log(page::COMMAND_EFFECTS, 4096));
            assert_eq!(refused, NvmeStatus::LOG_PAGE_INVALID);
        }
        if !new {
            assert_eq!(status(&mut host, log(page::SUPPORTED, 1024)), NvmeStatus::LOG_PAGE_INVALID);
            continue;
        }
        let pages: [u32; 256] = structure(&mut host, log(page::SUPPORTED, 1024));
        let features: [u32; 256] = structure(&mut host, log(page::FEATURE_EFFECTS, 1024));
        for number in 0..=255u8 {
            let is_there = status(&mut host, log(number, 4)) != NvmeStatus::LOG_PAGE_INVALID;
            assert_eq!(pages[usize::from(number)] & 1 == 1, is_there, "page {number:#x}");
            let got = SubmissionEntry { namespace_id: 1.into(), ..get_feature(number) };
            let is_there = status(&mut host, got) == NvmeStatus::SUCCESS;
            assert_eq!(features[usize::from(number)] & 1 == 1, is_there, "feature {number:#x}");
        }
        // There is no NVMe-MI Send or Receive, so that none of its commands is there.
        let mi: [u32; 1024] = structure(&mut host, log(page::MI_COMMAND_EFFECTS, 4096));
        assert_eq!(mi, [0; 1024]);
        // Error recovery is one of a namespace, arbitration one of the controller.
        assert_eq!(features[usize::from(feature::ERROR_RECOVERY)] >> 20, 1);
        assert_eq!(features[usize::from(feature::ARBITRATION)] >> 20, 2);
    }
}
