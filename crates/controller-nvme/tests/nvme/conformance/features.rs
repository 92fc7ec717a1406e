//! Get Features (clause 5.15) and Set Features (clause 5.27).

use ssdyno_spec::nvme::{NvmeStatus, admin};

use super::{Data, EVERY, FIELD, NAMESPACE, OK, Row, check, controller};
use crate::support::{get_feature, set_feature};

const NOT_SAVEABLE: NvmeStatus = NvmeStatus::FEATURE_NOT_SAVEABLE;
const OVERLAP: NvmeStatus = NvmeStatus::OVERLAPPING_RANGE;
const BEYOND: NvmeStatus = NvmeStatus::LBA_OUT_OF_RANGE;
const NOT_OF_NAMESPACE: NvmeStatus = NvmeStatus::FEATURE_NOT_NAMESPACE_SPECIFIC;

const fn set(id: u32, value: u32, nsid: u32, ends: NvmeStatus, clause: &'static str) -> Row {
    Row::admin(admin::SET_FEATURES, nsid, ends, clause).dword(10, id).dword(11, value)
}
const fn get(id: u32, what: u32, nsid: u32, ends: NvmeStatus, clause: &'static str) -> Row {
    Row::admin(admin::GET_FEATURES, nsid, ends, clause).dword(10, what << 8 | id)
}
/// With bit SV: keep it over a reset.
const fn save(id: u32, nsid: u32, ends: NvmeStatus) -> Row {
    set(1 << 31 | id, 0, nsid, ends, "5.27")
}
/// A feature that is not offered, asked for and set.
const fn absent(id: u32) -> [Row; 2] {
    [get(id, 0, 0, FIELD, "5.15"), set(id, 0, 0, FIELD, "5.27")]
}

/// As many ranges as the feature has, each beside the next.
const MANY: [(u64, u64); 64] = {
    let mut ranges = [(0, 4); 64];
    let mut at = 0;
    while at < 64 {
        ranges[at].0 = 4 * (63 - at as u64);
        at += 1;
    }
    ranges
};
/// The same, the last one block longer.
const MANY_AND_ONE: [(u64, u64); 64] = {
    let mut ranges = MANY;
    ranges[63].1 = 5;
    ranges
};

const LISTED: &[Row] = &[
    set(0x01, 0x0102_0307, 0, OK, "5.27.1.1"),
    set(0x01, 0, EVERY, OK, "5.27.1.1"),
    set(0x01, 0, 1, NOT_OF_NAMESPACE, "5.27"),
    get(0x01, 0, 0, OK, "5.27.1.1"),
    get(0x01, 1, 0, OK, "5.15"),
    get(0x01, 2, 0, OK, "5.15"),
    get(0x01, 3, 0, OK, "5.15"),
    get(0x01, 4, 0, FIELD, "5.15"),
    get(0x01, 7, 0, FIELD, "5.15"),
    save(0x01, 0, NOT_SAVEABLE),
    // Power: states 0 and 1 process commands, 2 and 3 do not; WH announces the host's next load.
    set(0x02, 1, 0, OK, "5.27.1.2"),
    set(0x02, 3, 0, OK, "5.27.1.2"),
    set(0x02, 1 << 5, 0, OK, "5.27.1.2"),
    set(0x02, 4, 0, FIELD, "5.27.1.2"),
    set(0x02, 31, 0, FIELD, "5.27.1.2"),
    get(0x02, 0, 0, OK, "5.27.1.2"),
    save(0x02, 0, NOT_SAVEABLE),
    set(0x03, 0, 1, OK, "NVM 4.1.3.1"),
    set(0x03, 63, 1, OK, "NVM 4.1.3.1").with(Data::RangeTypes(&MANY)),
    set(0x03, 63, 1, OVERLAP, "NVM 4.1.3.1").with(Data::RangeTypes(&MANY_AND_ONE)),
    // Ranges that touch, in any order; the same twice; one within another; those after NUM do not count.
    set(0x03, 2, 1, OK, "NVM 4.1.3.1").with(Data::RangeTypes(&[(16, 8), (0, 8), (8, 8)])),
    set(0x03, 1, 1, OVERLAP, "NVM 4.1.3.1").with(Data::RangeTypes(&[(8, 8), (0, 9)])),
    set(0x03, 1, 1, OVERLAP, "NVM 4.1.3.1").with(Data::RangeTypes(&[(8, 8), (8, 8)])),
    set(0x03, 1, 1, OVERLAP, "NVM 4.1.3.1").with(Data::RangeTypes(&[(0, 99), (8, 1)])),
    set(0x03, 0, 1, OK, "NVM 4.1.3.1").with(Data::RangeTypes(&[(0, 99), (8, 1)])),
    // The namespaces have 32768 blocks and 4096.
    set(0x03, 0, 1, OK, "NVM 4.1.3.1").with(Data::RangeTypes(&[(32767, 1)])),
    set(0x03, 0, 1, BEYOND, "NVM 4.1.3.1").with(Data::RangeTypes(&[(32767, 2)])),
    set(0x03, 0, 2, OK, "NVM 4.1.3.1").with(Data::RangeTypes(&[(0, 4096)])),
    set(0x03, 0, 2, BEYOND, "NVM 4.1.3.1").with(Data::RangeTypes(&[(4096, 1)])),
    set(0x03, 1, 1, BEYOND, "NVM 4.1.3.1").with(Data::RangeTypes(&[(0, 1), (u64::MAX, 2)])),
    set(0x03, 0, 1, BEYOND, "NVM 4.1.3.1").with(Data::RangeTypes(&[(1, u64::MAX)])),
    set(0x03, 0, 3, FIELD, "figure 87"),
    set(0x03, 0, 0, NAMESPACE, "figure 87"),
    set(0x03, 0, 9, NAMESPACE, "figure 87"),
    get(0x03, 0, 2, OK, "NVM 4.1.3.1"),
    get(0x03, 0, 4, FIELD, "figure 87"),
    get(0x03, 0, 0, NAMESPACE, "figure 87"),
    // Temperature: thresholds over (0) and under (1), of the composite (0) or all (15) sensors.
    set(0x04, 350, 0, OK, "5.27.1.3"),
    set(0x04, 1 << 20 | 300, 0, OK, "5.27.1.3"),
    set(0x04, 15 << 16 | 350, 0, OK, "5.27.1.3"),
    set(0x04, 1 << 16 | 350, 0, FIELD, "5.27.1.3"),
    set(0x04, 8 << 16 | 350, 0, FIELD, "5.27.1.3"),
    set(0x04, 2 << 20 | 350, 0, FIELD, "5.27.1.3"),
    set(0x04, 350, 1, NOT_OF_NAMESPACE, "5.27"),
    get(0x04, 0, 0, OK, "5.27.1.3"),
    get(0x04, 0, 0, OK, "5.27.1.3").dword(11, 1 << 20),
    get(0x04, 0, 0, FIELD, "5.27.1.3").dword(11, 1 << 16),
    get(0x04, 0, 0, FIELD, "5.27.1.3").dword(11, 15 << 16),
    // Error recovery is each namespace's.
    set(0x05, 10, 1, OK, "NVM 4.1.3.2"),
    set(0x05, 10, EVERY, OK, "NVM 4.1.3.2"),
    set(0x05, 10, 3, FIELD, "figure 87"),
    set(0x05, 10, 0, NAMESPACE, "figure 87"),
    set(0x05, 10, 9, NAMESPACE, "figure 87"),
    get(0x05, 0, 1, OK, "NVM 4.1.3.2"),
    get(0x05, 0, 0, NAMESPACE, "figure 87"),
    get(0x05, 0, 9, NAMESPACE, "figure 87"),
    get(0x05, 0, EVERY, NAMESPACE, "5.15"),
    get(0x05, 3, 1, OK, "5.15"),
    save(0x05, 1, NOT_SAVEABLE),
    // This drive has no volatile write cache.
    set(0x06, 1, 0, FIELD, "5.27.1.4"),
    get(0x06, 0, 0, FIELD, "5.27.1.4"),
    // There are queues already.
    set(0x07, 3 << 16 | 3, 0, NvmeStatus::SEQUENCE_ERROR, "5.27.1.5"),
    set(0x07, 0xffff, 0, FIELD, "5.27.1.5"),
    set(0x07, 0xffff << 16, 0, FIELD, "5.27.1.5"),
    get(0x07, 0, 0, OK, "5.27.1.5"),
    set(0x08, 0x0107, 0, OK, "5.27.1.6"),
    set(0x08, 0x0107, 1, NOT_OF_NAMESPACE, "5.27"),
    get(0x08, 0, 0, OK, "5.27.1.6"),
    set(0x09, 1 << 16 | 1, 0, OK, "5.27.1.7"),
    set(0x09, 99, 0, FIELD, "5.27.1.7"),
    get(0x09, 0, 0, OK, "5.27.1.7").dword(11, 1),
    get(0x09, 0, 0, FIELD, "5.27.1.7").dword(11, 99),
    set(0x0a, 1, 0, OK, "NVM 4.1.3.3"),
    get(0x0a, 0, 0, OK, "NVM 4.1.3.3"),
    set(0x0b, 0x1ff, 0, OK, "5.27.1.8"),
    get(0x0b, 0, 0, OK, "5.27.1.8"),
    set(0x0c, 1, 0, OK, "5.27.1.9"),
    get(0x0c, 0, 0, OK, "5.27.1.9"),
    // To a state that processes no commands; without a time there is no transition; states that there are
    // not have no entry.
    set(0x0c, 1, 0, OK, "5.27.1.9").with(Data::Transitions(&[(0, 2, 9), (1, 3, 9), (2, 3, 9)])),
    set(0x0c, 1, 0, OK, "5.27.1.9").with(Data::Transitions(&[(0, 1, 0), (1, 31, 0), (4, 0, 9)])),
    set(0x0c, 1, 0, FIELD, "5.27.1.9").with(Data::Transitions(&[(1, 0, 9)])),
    set(0x0c, 1, 0, FIELD, "5.27.1.9").with(Data::Transitions(&[(0, 2, 9), (1, 1, 9)])),
    set(0x0c, 1, 0, FIELD, "5.27.1.9").with(Data::Transitions(&[(0, 4, 9)])),
    set(0x0c, 1, 0, FIELD, "5.27.1.9").with(Data::Transitions(&[(3, 31, 1)])),
    set(0x0c, 0, 0, FIELD, "5.27.1.9").with(Data::Transitions(&[(0, 4, 9)])),
    set(0x0f, 0, 0, OK, "5.27.1.12"),
    get(0x0f, 0, 0, OK, "5.27.1.12"),
    set(0x16, 0, 0, OK, "5.27.1.18").with(Data::Byte(0, 1)),
    set(0x16, 0, 0, FIELD, "5.27.1.18").with(Data::Byte(0, 2)),
    set(0x16, 0, 0, FIELD, "5.27.1.18").with(Data::Byte(1, 1)),
    set(0x16, 0, 0, FIELD, "5.27.1.18").with(Data::Byte(2, 1)),
    get(0x16, 0, 0, OK, "5.27.1.18"),
];

/// Reserved, host memory, time, temperatures, sets and windows, sanitize, endurance, command sets,
/// software progress, host identifier, reservations, write protection; vendors'.
const ABSENT: [u32; 24] = [
    0x00, 0x0d, 0x0e, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x77, 0x7d,
    0x7e, 0x7f, 0x80, 0x81, 0x82, 0x83, 0x84, 0xc0,
];

#[test]
fn features_end_as_specified() {
    check(LISTED, 91);
    let rows: Vec<Row> = ABSENT.iter().flat_map(|id| absent(*id)).collect();
    check(&rows, 48);
}

/// Base 2.0c, figure 319: Get Features gives the workload hint back, with the state.
#[test]
fn workload_hints_are_kept() {
    let mut host = controller("2.0");
    for value in [1 << 5, 2 << 5 | 1, 7 << 5 | 1, 1, 5 << 5 | 3, 0] {
        assert_eq!(host.admin(set_feature(0x02, value)).status(), OK);
        assert_eq!(host.admin(get_feature(0x02)).dword0.get(), value);
    }
    // A state that there is not changes nothing.
    host.admin(set_feature(0x02, 1 << 5 | 1));
    assert_eq!(host.admin(set_feature(0x02, 2 << 5 | 4)).status().kind(), FIELD);
    assert_eq!(host.admin(get_feature(0x02)).dword0.get(), 1 << 5 | 1);
}
