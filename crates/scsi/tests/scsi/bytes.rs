//! CDBs and the bytes that must come back, written by hand from the standards.

use crate::common::{self, Host, INVALID_FIELD, able, cdb10, namespace, plain};
use ssdyno_scsi::{CommandSet, ControllerFacts, NamespaceFacts, TranslatorConfig, lun_field};

fn inquiry(page: Option<u8>, allocation: u16) -> [u8; 6] {
    let [high, low] = allocation.to_be_bytes();
    [0x12, u8::from(page.is_some()), page.unwrap_or(0), high, low, 0]
}

/// SPC-4, table 174; translation reference, 6.1.1.
#[test]
fn standard_inquiry() {
    let mut host = Host::small(able());
    let data = host.send(&inquiry(None, 255), &[]).good();
    let mut expected = vec![0x00, 0x00, 0x06, 0x02, 91, 0x00, 0x00, 0x02];
    expected.extend_from_slice(b"NVMe    SSDyno simulated1.02");
    expected.resize(58, 0);
    expected.extend_from_slice(&[0x00, 0xa0, 0x04, 0x60, 0x04, 0xc0]);
    expected.resize(96, 0);
    assert_eq!(data, expected);
    for allocation in 0..=96 {
        let cut = host.send(&inquiry(None, allocation), &[]).good();
        assert_eq!(cut, expected[..usize::from(allocation)]);
    }
    let (key, additional) = INVALID_FIELD;
    host.send(&[0x12, 0, 0x83, 0, 255, 0], &[]).check(key, additional);
    host.send(&[0x12, 1, 0xc7, 0, 255, 0], &[]).check(key, additional);
}

/// SBC-3, 6.6.4: a granularity comes with the longest transfer of whole granules that is not split, or
/// not at all: mkfs.xfs finds one without the other invalid.
#[test]
fn preferred_sizes_come_in_pairs() {
    for (transfer_bytes, most, granule, expected) in [
        (128 << 10, 0, 8, [8, 256]),
        (128 << 10, 0, 24, [24, 240]),
        (128 << 10, 100, 8, [8, 96]),
        (4096, 0, 8, [8, 8]),
        (4096, 0, 32, [0, 0]),
        // No more than a block: nothing to prefer.
        (128 << 10, 0, 1, [1, 0]),
        (128 << 10, 0, 0, [0, 0]),
        (0, 0, 8, [8, 65536]),
        // Too large for the field.
        (0, 0, 65536, [0, 0]),
    ] {
        let mut facts = namespace(1 << 20, 512);
        (facts.write_granularity_blocks, facts.deallocate_granularity_blocks) = (granule, 48);
        let config = TranslatorConfig {
            power_on_attention: false,
            transfer_blocks_max: most,
            ..TranslatorConfig::default()
        };
        let controller = ControllerFacts { transfer_bytes_max: transfer_bytes, ..able() };
        let page = Host::new(controller, facts, config).send(&inquiry(Some(0xb0), 64), &[]).good();
        let granularity = u32::from(u16::from_be_bytes([page[6], page[7]]));
        let optimal = u32::from_be_bytes([page[12], page[13], page[14], page[15]]);
        assert_eq!([granularity, optimal], expected, "{granule} blocks of {transfer_bytes} bytes");
        assert_eq!(page[28..32], [0, 0, 0, 48], "to unmap, NPDG says what is best");
    }
}

/// SPC-4, 7.8; SBC-3, 6.6.
#[test]
fn vital_product_data() {
    let mut facts = namespace(1024, 512);
    facts.eui64 = [0x00, 0x25, 0x38, 0x01, 0x02, 0x03, 0x04, 0xab];
    let config = TranslatorConfig { power_on_attention: false, ..TranslatorConfig::default() };
    let mut host = Host::new(able(), facts, config);
    let mut page = |code| host.send(&inquiry(Some(code), 1024), &[]).good();
    assert_eq!(page(0x00), [0, 0, 0, 7, 0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2]);
    assert_eq!(page(0x80), b"\x00\x80\x00\x140025_3801_0203_04AB.".as_slice());

    let mut expected = vec![0, 0x83, 0, 0];
    expected.extend_from_slice(&[1, 2, 0, 8, 0x00, 0x25, 0x38, 0x01, 0x02, 0x03, 0x04, 0xab]);
    let vendor = b"NVMe    SSDyno simulated drive_0025_3801_0203_04AB.";
    expected.extend_from_slice(&[2, 1, 0, vendor.len() as u8]);
    expected.extend_from_slice(vendor);
    expected.extend_from_slice(&[3, 8, 0, 24]);
    expected.extend_from_slice(b"eui.00253801020304AB\0\0\0\0");
    expected[3] = (expected.len() - 4) as u8;
    assert_eq!(page(0x83), expected);

    let mut expected = vec![0, 0xb0, 0, 60, 1, 64, 0, 0];
    expected.extend_from_slice(&4096_u32.to_be_bytes());
    expected.extend_from_slice(&[0; 8]);
    expected.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0]);
    expected.resize(36, 0);
    expected.extend_from_slice(&32768_u64.to_be_bytes());
    expected.resize(64, 0);
    assert_eq!(page(0xb0), expected);

    // No rotation; WABEREQ and WACEREQ 01b.
    let mut expected = vec![0, 0xb1, 0, 60, 0, 1, 0, 0x50];
    expected.resize(64, 0);
    assert_eq!(page(0xb1), expected);
    // LBPU, LBPWS, LBPWS10, LBPRZ; resource provisioned.
    assert_eq!(page(0xb2), [0, 0xb2, 0, 4, 0, 0xe4, 1, 0]);
    let extended = page(0x86);
    assert_eq!((extended.len(), extended[..8].to_vec()), (64, vec![0, 0x86, 0, 60, 0, 1, 1, 0]));
}

#[test]
fn a_namespace_without_identifier_is_named_by_its_controller() {
    let mut host = Host::small(plain());
    let serial = host.send(&inquiry(Some(0x80), 255), &[]).good();
    assert_eq!(serial[4..], *b"S0123456789_00000001.");
    let page = host.send(&inquiry(Some(0x83), 1024), &[]).good();
    let name = page.windows(9).any(|window| window == b"00000001S");
    assert!(name, "SCSI name string with namespace and serial number");
    assert_eq!(host.send(&inquiry(Some(0xb2), 255), &[]).good(), [0, 0xb2, 0, 4, 0, 0, 0, 0]);
}

/// SBC-3, tables 64 and 66.
#[test]
fn capacities() {
    let mut host = Host::small(able());
    let ten = host.send(&cdb10(0x25, 0, 0, 0), &[]).good();
    assert_eq!(ten, [0, 0, 3, 0xff, 0, 0, 2, 0]);
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[13]) = (0x9e, 0x10, 32);
    let mut expected = vec![0, 0, 0, 0, 0, 0, 3, 0xff, 0, 0, 2, 0, 0, 0, 0xc0, 0];
    expected.resize(32, 0);
    assert_eq!(host.send(&cdb, &[]).good(), expected);
    for length in 0..16 {
        cdb[13] = length;
        assert_eq!(host.send(&cdb, &[]).good(), expected[..usize::from(length)]);
    }
}

#[test]
fn a_capacity_of_more_than_32_bits() {
    let controller = ControllerFacts::named("m", "s", "f");
    let facts = NamespaceFacts::plain(1, 1 << 33, 4096);
    let translator =
        ssdyno_scsi::Translator::new(controller, &[facts], TranslatorConfig::default()).unwrap();
    let mut host =
        Host { translator, device: common::Device::new(1, 4096), job: Default::default() };
    host.send(&[0; 6], &[]).check(6, 0x2900);
    let ten = host.send(&cdb10(0x25, 0, 0, 0), &[]).good();
    assert_eq!(ten, [0xff, 0xff, 0xff, 0xff, 0, 0, 0x10, 0]);
    let sense = host.send(&[0x1a, 0, 0x3f, 0, 255, 0], &[]).good();
    assert_eq!(sense[4..12], [0xff, 0xff, 0xff, 0xff, 0, 0, 0x10, 0]);
    // MODE SENSE (10) with LLBAA.
    let sense = host.send(&[0x5a, 0x10, 0x0a, 0, 0, 0, 0, 0, 255, 0], &[]).good();
    assert_eq!(sense[..8], [0, 34, 0, 0x10, 1, 0, 0, 16]);
    assert_eq!(sense[8..24], [0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0]);
}

/// SPC-4, tables 254 to 256; SAM-5, 4.7.
#[test]
fn report_luns() {
    let facts = [1, 3, 300].map(|nsid| NamespaceFacts::plain(nsid, 8, 512));
    let config = TranslatorConfig { power_on_attention: false, ..TranslatorConfig::default() };
    let translator = ssdyno_scsi::Translator::new(plain(), &facts, config).unwrap();
    let mut host =
        Host { translator, device: common::Device::new(8, 512), job: Default::default() };
    let mut cdb = [0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    let mut expected = vec![0, 0, 0, 24, 0, 0, 0, 0];
    expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend_from_slice(&[0, 2, 0, 0, 0, 0, 0, 0]);
    expected.extend_from_slice(&[0x41, 0x2b, 0, 0, 0, 0, 0, 0]);
    assert_eq!(host.send(&cdb, &[]).good(), expected);
    cdb[2] = 1;
    assert_eq!(host.send(&cdb, &[]).good(), [0; 8]);
    // A LUN without unit: INQUIRY says so, REQUEST SENSE too, all else is refused.
    let nobody = lun_field(1);
    let nexus = ssdyno_scsi::Nexus::LOCAL;
    let data = host.send_as(nexus, nobody, &inquiry(None, 5), &[]).good();
    assert_eq!(data[0], 0x7f);
    // It has no pages, of whatever number.
    let (key, additional) = INVALID_FIELD;
    for page in [0x00, 0x80, 0x83] {
        host.send_as(nexus, nobody, &[0x12, 1, page, 0, 255, 0], &[]).check(key, additional);
    }
    host.send_as(nexus, nobody, &[0x12, 0, 1, 0, 255, 0], &[]).check(key, additional);
    host.send_as(nexus, nobody, &[0x12, 0, 0, 0, 5, 0], &[]).good();
    let data = host.send_as(nexus, nobody, &[3, 0, 0, 0, 252, 0], &[]).good();
    assert_eq!((data[2], data[12], data[13]), (5, 0x25, 0));
    host.send_as(nexus, nobody, &[0; 6], &[]).check(5, 0x2500);
}

/// SPC-4, tables 149, 150 and 7.5; SBC-3, 6.4.
#[test]
fn mode_pages() {
    let mut host = Host::small(able());
    let data = host.send(&[0x1a, 0, 0x3f, 0, 255, 0], &[]).good();
    let mut expected = vec![107, 0, 0x10, 8];
    expected.extend_from_slice(&[0, 0, 4, 0, 0, 0, 2, 0]);
    let mut page = |head: &[u8], length: usize| {
        let start = expected.len();
        expected.extend_from_slice(head);
        expected.resize(start + length, 0);
    };
    page(&[0x01, 10, 0x80], 12);
    page(&[0x88, 18, 0x04], 20);
    page(&[0x0a, 10, 0x02, 0x10, 0, 0, 0, 0, 0xff, 0xff], 12);
    page(&[0x1a, 38], 40);
    page(&[0x1c, 10, 0, 6], 12);
    assert_eq!(data, expected);

    let changeable = host.send(&[0x1a, 8, 0x48, 0, 255, 0], &[]).good();
    assert_eq!(changeable[4..7], [0x88, 18, 0x04]);
    let changeable = host.send(&[0x1a, 8, 0x4a, 0, 255, 0], &[]).good();
    assert_eq!(changeable[4..9], [0x0a, 10, 0x04, 0, 0x08]);
    let (key, additional) = INVALID_FIELD;
    host.send(&[0x1a, 8, 0x02, 0, 255, 0], &[]).check(key, additional);
    host.send(&[0x1a, 8, 0x0a, 1, 255, 0], &[]).check(key, additional);

    // The cache is the controller's.
    host.device.cache_on = false;
    assert_eq!(host.send(&[0x1a, 8, 0x08, 0, 255, 0], &[]).good()[6], 0);
    let saved = Host::small(plain()).send(&[0x1a, 8, 0xc8, 0, 255, 0], &[]);
    saved.check(5, 0x3900);
}

#[test]
fn mode_select_changes_what_may_be_changed() {
    let mut host = Host::small(able());
    let mut list = vec![0, 0, 0, 0, 0x08, 18];
    list.resize(24, 0);
    host.send(&[0x15, 0x10, 0, 0, 24, 0], &list).good();
    assert!(!host.device.cache_on);
    list[4 + 2] = 0x04;
    host.send(&[0x15, 0x10, 0, 0, 24, 0], &list).good();
    assert!(host.device.cache_on, "on again");
    list[4 + 2] = 0;
    list[4 + 3] = 1;
    host.send(&[0x15, 0x10, 0, 0, 24, 0], &list).check(5, 0x2600);
    list[4 + 3] = 0;
    host.send(&[0x15, 0x10, 0, 0, 23, 0], &list).check(5, 0x1a00);
    host.send(&[0x15, 0, 0, 0, 24, 0], &list).check(5, 0x2400);

    // D_SENSE and SWP, with MODE SELECT (10).
    let mut list = vec![0, 0, 0, 0, 0, 0, 0, 0];
    list.extend_from_slice(&[0x0a, 10, 0x06, 0x10, 0x08, 0, 0, 0, 0xff, 0xff, 0, 0]);
    host.send(&[0x55, 0x10, 0, 0, 0, 0, 0, 0, 20, 0], &list).good();
    let answer = host.send(&cdb10(0x2a, 0, 0, 1), &[1; 512]);
    assert_eq!(answer.sense_bytes[..8], [0x72, 7, 0x27, 0x02, 0, 0, 0, 0]);
    assert_eq!(host.send(&[0x1a, 8, 0x0a, 0, 255, 0], &[]).good()[2], 0x90, "WP and DPOFUA");
    let answer = host.send(&[0x12, 0, 5, 0, 5, 0], &[]);
    // SPC-4, table 35: sense key specific descriptor; field pointer 2, bit 7.
    assert_eq!(answer.sense_bytes[8..], [2, 6, 0, 0, 0xcf, 0, 2, 0]);
}

/// SBC-3, 6.4.2.2: more blocks than 32 bits count are told as all ones, and may be sent back so.
#[test]
fn mode_select_takes_back_the_number_of_blocks() {
    let blocks = 5_u64 << 32;
    let config = TranslatorConfig { power_on_attention: false, ..TranslatorConfig::default() };
    let translator = ssdyno_scsi::Translator::new(able(), &[namespace(blocks, 512)], config);
    let device = common::Device::new(8, 512);
    let mut host = Host { translator: translator.unwrap(), device, job: Default::default() };
    let list = |told: [u8; 4]| {
        let mut list = vec![0, 0, 0, 8];
        list.extend_from_slice(&told);
        list.extend_from_slice(&[0, 0, 2, 0]);
        list
    };
    let mut select = |told| host.send(&[0x15, 0x10, 0, 0, 12, 0], &list(told));
    select([0xff; 4]).good();
    select([0; 4]).good();
    select([0, 0, 0, 5]).check(5, 0x2600);
    select([0xff, 0xff, 0xff, 0xfe]).check(5, 0x2600);
    // With LONGLBA the whole number.
    let mut long = vec![0, 0, 0, 0, 1, 0, 0, 16];
    long.extend_from_slice(&blocks.to_be_bytes());
    long.extend_from_slice(&[0, 0, 0, 0, 0, 0, 2, 0]);
    let mut select = |list: &[u8]| host.send(&[0x55, 0x10, 0, 0, 0, 0, 0, 0, 24, 0], list);
    select(&long).good();
    long[15] = 1;
    select(&long).check(5, 0x2600);
}

/// SPC-4, 7.3; the SMART log of base 2.0c, figure 208.
#[test]
fn log_pages() {
    let mut host = Host::small(able());
    let mut log = |page: u8, subpage: u8| {
        host.device.smart[0] = 0x04;
        host.device.smart[1..3].copy_from_slice(&(273_u16 + 41).to_le_bytes());
        host.device.smart[5] = 17;
        host.device.smart[112..114].copy_from_slice(&[0x34, 0x12]);
        host.send(&[0x4d, 0, 0x40 | page, subpage, 0, 0, 0, 1, 0, 0], &[])
    };
    assert_eq!(log(0, 0).good(), [0, 0, 0, 5, 0x00, 0x0d, 0x0e, 0x11, 0x2f]);
    assert_eq!(
        log(0, 0xff).good(),
        [0x40, 0xff, 0, 12, 0, 0, 0, 0xff, 0x0d, 0, 0x0e, 0, 0x11, 0, 0x2f, 0]
    );
    assert_eq!(log(0x0d, 0).good(), [0x0d, 0, 0, 12, 0, 0, 3, 2, 0, 41, 0, 1, 3, 2, 0, 0xff]);
    assert_eq!(log(0x11, 0).good(), [0x11, 0, 0, 8, 0, 1, 3, 4, 0, 0, 0, 17]);
    assert_eq!(log(0x2f, 0).good(), [0x2f, 0, 0, 8, 0, 0, 3, 4, 0x5d, 0, 41, 0]);
    let start_stop = log(0x0e, 0).good();
    assert_eq!(start_stop[..4], [0x0e, 0, 0, 36]);
    assert_eq!(start_stop[32..], [0, 4, 3, 4, 0, 0, 0x12, 0x34]);
    log(0x02, 0).check(5, 0x2400);
    log(0x0d, 1).check(5, 0x2400);
    // From parameter 1 on.
    let one = host.send(&[0x4d, 0, 0x4d, 0, 0, 0, 1, 1, 0, 0], &[]).good();
    assert_eq!(one, [0x0d, 0, 0, 6, 0, 1, 3, 2, 0, 0xff]);
    // From the last one on, and behind it (SPC-4, 6.8).
    for (page, last) in [(0x0d, 1), (0x0e, 4), (0x11, 1), (0x2f, 0)] {
        let from = |code: u8| [0x4d, 0, 0x40 | page, 0, 0, 0, code, 1, 0, 0];
        assert_eq!(host.send(&from(last), &[]).good()[4..6], [0, last]);
        host.send(&from(last + 1), &[]).check(5, 0x2400);
    }
}

/// SPC-4, tables 302 to 305.
#[test]
fn operation_codes() {
    let mut host = Host::small(able());
    let mut ask = |options: u8, opcode: u8, action: u16| {
        let [high, low] = action.to_be_bytes();
        host.send(&[0xa3, 0x0c, options, opcode, high, low, 0, 0, 0xff, 0xff, 0, 0], &[])
    };
    let expected = [0, 3, 0, 10, 0x28, 0x1a, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0];
    assert_eq!(ask(1, 0x28, 0).good(), expected);
    assert_eq!(ask(3, 0x28, 0).good(), expected);
    assert_eq!(ask(1, 0xff, 0).good(), [0, 1, 0, 0]);
    let timed = ask(0x81, 0x00, 0).good();
    assert_eq!(timed[..10], [0, 0x83, 0, 6, 0, 0, 0, 0, 0, 0]);
    assert_eq!(timed[10..], [0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(ask(2, 0x9e, 0x10).good()[4..6], [0x9e, 0x10]);
    assert_eq!(ask(2, 0x9e, 0x11).good(), [0, 1, 0, 0]);
    ask(1, 0x9e, 0x10).check(5, 0x2400);
    ask(2, 0x28, 0).check(5, 0x2400);
    ask(4, 0, 0).check(5, 0x2400);
    let all = ask(0, 0, 0).good();
    assert_eq!(all.len() - 4, u32::from_be_bytes(all[..4].try_into().unwrap()) as usize);
    for row in all[4..].chunks_exact(8) {
        assert_eq!(row[5] & 2, 0, "no timeouts were asked for");
        let options = if row[5] & 1 == 1 { 2 } else { 1 };
        let one = ask(options, row[0], u16::from(row[3])).good();
        assert_eq!((one[1] & 7, one[4]), (3, row[0]));
        assert_eq!(one[2..4], row[6..8]);
    }
    let timed = ask(0x80, 0, 0).good();
    assert!(timed[4..].chunks_exact(20).all(|row| row[5] & 2 == 2 && row[8..10] == [0, 10]));
}

/// SPC-4, table 307.
#[test]
fn task_management_functions() {
    let mut host = Host::small(able());
    let mut cdb = [0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0];
    assert_eq!(host.send(&cdb, &[]).good(), [0xca, 0, 0, 0]);
    cdb[2] = 0x80;
    assert_eq!(host.send(&cdb, &[]).good().len(), 16);
}

/// S1-48, S1-49: the commands of the thesis, and unknown commands.
#[test]
fn the_set_of_the_thesis() {
    let config = TranslatorConfig {
        commands: CommandSet::Thesis,
        power_on_attention: false,
        ..TranslatorConfig::default()
    };
    let mut host = Host::new(able(), namespace(1024, 512), config);
    let pages = host.send(&inquiry(Some(0), 255), &[]).good();
    assert_eq!(pages, [0, 0, 0, 5, 0x00, 0x80, 0x83, 0xb0, 0xb1]);
    host.send(&common::cdb16(0x8a, 0, 5, 1), &[7; 512]).good();
    assert_eq!(host.send(&common::cdb16(0x88, 0, 5, 1), &[]).good(), [7; 512]);
    assert_eq!(host.translator.counts().unknown_opcodes, 0);
    for opcode in [0x00, 0x28, 0x2a, 0x35, 0x42, 0x1a] {
        let mut cdb = [0; 10];
        cdb[0] = opcode;
        host.send(&cdb, &[]).check(5, 0x2000);
    }
    assert_eq!(host.translator.counts().unknown_opcodes, 6);
}

/// S1-53: a request whose buffer is being deleted is answered at once.
#[test]
fn a_deleted_buffer_is_answered_at_once() {
    let mut host = Host::small(able());
    let cdb = common::cdb16(0x8a, 0, 0, 1);
    let mut request = ssdyno_scsi::ScsiRequest::local(0, &cdb);
    request.deleted = true;
    let progress = host.translator.begin(&mut host.job, &request);
    assert_eq!(progress, ssdyno_scsi::JobProgress::Done);
    assert_eq!((host.job.status(), host.job.next_command()), (0, None));
    assert!(host.device.bytes.iter().all(|&byte| byte == 0));
}

/// Power states (translation reference, 6.11) and the stopped state (SBC-3, 4.20).
#[test]
fn start_stop_unit() {
    let mut host = Host::small(able());
    for (modifier, condition, state) in
        [(0, 0x20, 1), (1, 0x20, 2), (2, 0x20, 3), (0, 0x30, 3), (1, 0x30, 4), (0, 0x10, 0)]
    {
        host.send(&[0x1b, 0, 0, modifier, condition, 0], &[]).good();
        assert_eq!(host.device.power_state, state, "{condition:#x} {modifier}");
        host.send(&[0; 6], &[]).good();
    }
    host.send(&[0x1b, 0, 0, 0, 0, 0], &[]).good();
    assert_eq!(host.device.power_state, 4);
    host.send(&[0; 6], &[]).check(2, 0x0402);
    host.send(&cdb10(0x28, 0, 0, 1), &[]).check(2, 0x0402);
    let sense = host.send(&[3, 0, 0, 0, 18, 0], &[]).good();
    assert_eq!((sense[2], sense[12], sense[13]), (2, 4, 2));
    host.send(&[0x1b, 0, 0, 0, 1, 0], &[]).good();
    host.send(&cdb10(0x28, 0, 0, 1), &[]).good();
    host.send(&[0x1b, 0, 0, 0, 0x50, 0], &[]).check(5, 0x2400);
    host.send(&[0x1b, 0, 0, 0, 2, 0], &[]).check(5, 0x2400);
}

/// SBC-3, 5.25: a cache is written back before less power, unless NO_FLUSH says not to.
#[test]
fn less_power_comes_after_a_flush() {
    let flushes = |mut host: Host, condition: u8, control: u8| {
        host.send(&[0x1b, 0, 0, 0, condition, control], &[]).good();
        let seen = &host.device.seen;
        let count = seen.iter().filter(|command| !command.admin).count();
        assert_eq!(seen.len(), count + 1, "and the power state: {seen:?}");
        // Set Features, Power Management, with nothing but the state.
        let power = seen.last().unwrap();
        assert_eq!((power.opcode, power.dwords[0], &power.dwords[2..]), (0x09, 2, &[0; 4][..]));
        count
    };
    for (condition, count) in [(0x00, 1), (0x20, 1), (0x30, 1), (0x10, 0), (0x01, 0)] {
        assert_eq!(flushes(Host::small(able()), condition, 0), count, "{condition:#x}");
        assert_eq!(flushes(Host::small(able()), condition | 4, 0), 0, "NO_FLUSH {condition:#x}");
        assert_eq!(flushes(Host::small(plain_with_states()), condition, 0), 0, "no cache");
    }
}

/// Base 2.0c, figure 275: with VWC bits 2:1 at 2 a Flush of all namespaces is refused.
#[test]
fn a_controller_without_flush_of_all_is_flushed_namespace_by_namespace() {
    let controller = ControllerFacts { flush_of_all: false, ..able() };
    let second = ssdyno_scsi::NamespaceFacts { nsid: 3, ..namespace(8, 512) };
    let config = TranslatorConfig { power_on_attention: false, ..TranslatorConfig::default() };
    let all = [namespace(1024, 512), second];
    let mut host = Host::small(able());
    host.translator = ssdyno_scsi::Translator::new(controller, &all, config).unwrap();
    host.send(&[0x1b, 0, 0, 0, 0x30, 0], &[]).good();
    let seen: Vec<_> = host.device.seen.iter().map(|c| (c.admin, c.opcode, c.nsid)).collect();
    assert_eq!(seen, [(false, 0, 1), (false, 0, 3), (true, 0x09, 0)]);
    assert_eq!(host.device.power_state, 3);
}

fn plain_with_states() -> ControllerFacts {
    ControllerFacts { volatile_write_cache: false, ..able() }
}

/// SBC-3, 5.3: the block size of the last MODE SELECT.
#[test]
fn format_unit() {
    let mut facts = namespace(1024, 512);
    facts.formats[1] = Some((1, 4096));
    facts.formats[33] = Some((33, 8192));
    let config = TranslatorConfig { power_on_attention: false, ..TranslatorConfig::default() };
    let mut host = Host::new(able(), facts, config);
    host.send(&[0x04, 0, 0, 0, 0, 0], &[]).good();
    assert_eq!(host.device.seen.pop().unwrap().dwords[0], 0);
    let list = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0x10, 0];
    host.send(&[0x15, 0x10, 0, 0, 12, 0], &list).good();
    host.send(&[0x04, 0x10, 0, 0, 0, 0], &[0, 0x80, 0, 0]).good();
    assert_eq!(host.device.seen.pop().unwrap().dwords[0], 1);
    host.send(&[0x04, 0x10, 0, 0, 0, 0], &[3, 0, 0, 0]).check(5, 0x2600);
    let list = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0x20, 0];
    host.send(&[0x15, 0x10, 0, 0, 12, 0], &list).good();
    host.send(&[0x04, 0, 0, 0, 0, 0], &[]).good();
    assert_eq!(host.device.seen.pop().unwrap().dwords[0], 0x2001, "LBAFU and LBAFL");
    let wrong = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0x08, 0];
    host.send(&[0x15, 0x10, 0, 0, 12, 0], &wrong).check(5, 0x2600);
    assert!(host.translator.replace_namespace(namespace(128, 4096), None).unwrap());
    host.send(&[0; 6], &[]).check(6, 0x2a09);
    assert_eq!(host.send(&cdb10(0x25, 0, 0, 0), &[]).good(), [0, 0, 0, 127, 0, 0, 0x10, 0]);
}

/// Facts that cannot be shown are refused by name (S1-46).
#[test]
fn metadata_is_refused_cleanly() {
    let mut facts = namespace(8, 512);
    facts.metadata_bytes = 8;
    let error =
        ssdyno_scsi::Translator::new(plain(), &[facts], TranslatorConfig::default()).unwrap_err();
    assert!(error.to_string().contains("format it without metadata"), "{error}");
    let twice = [namespace(8, 512), namespace(8, 512)];
    assert!(ssdyno_scsi::Translator::new(plain(), &twice, TranslatorConfig::default()).is_err());
}
