//! Which binary format the beginning of a trace is in: none has a magic number, so many records must
//! agree.

use super::Format;
use super::formats::{ORACLE_BYTES, OracleAccess, VscsiCommand, VscsiVersion};

/// Fewer whole records give no information.
const RECORDS_LEAST: usize = 8;

/// Larger requests are not believed: 1 GiB.
const LENGTH_MOST: u32 = 1 << 30;

/// No trace has more records: 24 TB of them.
const NEXT_MOST: usize = 1_000_000_000_000;

/// The format, if all whole records at the beginning `head` of a trace fit one and only one.
pub(crate) fn detect_records(head: &[u8]) -> Option<Format> {
    let versions = [VscsiVersion::One, VscsiVersion::Two];
    let vscsi = versions.into_iter().any(|version| is_vscsi(head, version));
    let accesses: Vec<OracleAccess> =
        head.chunks_exact(ORACLE_BYTES).filter_map(OracleAccess::parse).collect();
    let oracle = are_accesses(&accesses);
    match (vscsi, oracle) {
        (true, false) => Some(Format::Vscsi),
        (false, true) => Some(Format::OracleGeneral),
        _ => None,
    }
}

/// Whether these are libCacheSim's accesses from the first on: times never go back, the next use of
/// an object lies ahead and is a use of that object, as far as it can be seen here, and one at least
/// was seen or is known not to come.
pub(crate) fn are_accesses(all: &[OracleAccess]) -> bool {
    let mut proofs = 0;
    for (at, access) in all.iter().enumerate() {
        let Some(next) = access.next else {
            proofs += 1;
            continue;
        };
        // Positions count from 1.
        let Some(next) = usize::try_from(next).ok().filter(|&next| next > at + 1) else {
            return false;
        };
        match all.get(next - 1) {
            Some(other) if other.object != access.object => return false,
            Some(_) => proofs += 1,
            None if next > NEXT_MOST => return false,
            None => {}
        }
    }
    let ordered = all.windows(2).all(|two| two[0].seconds <= two[1].seconds);
    // Without any size there is no request.
    let sized = all.iter().any(|access| access.length_bytes > 0)
        && all.iter().all(|access| access.length_bytes <= LENGTH_MOST);
    all.len() >= RECORDS_LEAST && proofs > 0 && ordered && sized
}

/// Whether every record says that it is of `version`, and most ask for whole blocks.
fn is_vscsi(head: &[u8], version: VscsiVersion) -> bool {
    let records = head.chunks_exact(version.record_bytes());
    let commands: Vec<VscsiCommand> =
        records.filter_map(|record| VscsiCommand::parse(record, version)).collect();
    let moves = commands.iter().filter(|command| command.op().is_some()).count();
    let fits = |command: &VscsiCommand| {
        // Operation codes have one byte.
        command.is_of(version)
            && command.code <= 0xFF
            && command.length_bytes <= LENGTH_MOST
            && (command.op().is_none() || command.length_bytes.is_multiple_of(512))
    };
    commands.len() >= RECORDS_LEAST && 2 * moves > commands.len() && commands.iter().all(fits)
}
