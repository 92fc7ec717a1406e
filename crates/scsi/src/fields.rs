//! Where the fields of a CDB begin that are not known, for the field pointer (SPC-4, 4.5.2.4.2): the
//! pointer names the first byte of a field and its leftmost bit; each byte of several reserved ones is a
//! field by itself.

use crate::commands::{Command, Operation};
use crate::sense::Sense;

/// Bits of the CONTROL byte at which a field begins: vendor specific, reserved, NACA, obsolete (SAM-5,
/// table 25).
const CONTROL: u8 = 0b1010_0110;

/// INVALID FIELD IN CDB for the field that `bit` of byte `index` lies in; `unknown` are the bits of that
/// byte that the command does not know.
pub(crate) fn unknown_field(command: &Command, index: usize, bit: u8, unknown: u8) -> Sense {
    if let Some(first) = first_byte(command, index) {
        return Sense::cdb(first, 7);
    }
    let begins = begins(command, index);
    let mut left = bit;
    while left < 7 && begins >> left & 1 == 0 && unknown >> (left + 1) & 1 == 1 {
        left += 1;
    }
    Sense::cdb(index as u16, left)
}

/// The first byte of a field of two that is not known: PARAMETER LIST LENGTH of SEND DIAGNOSTIC
/// (SPC-4, 6.42) and of RESERVE and RELEASE (10) (SPC-2, 7.17 and 7.20).
fn first_byte(command: &Command, index: usize) -> Option<u16> {
    match (command.operation, index) {
        (Operation::SendDiagnostic, 3 | 4) => Some(3),
        (Operation::Reserve | Operation::Release, 7 | 8) => Some(7),
        _ => None,
    }
}

/// Bits of a byte at which a field begins, where unknown fields stand side by side.
fn begins(command: &Command, index: usize) -> u8 {
    use Operation as O;
    let bytes = command.usage.len();
    match (command.operation, index) {
        _ if index + 1 == bytes => CONTROL,
        // ANCHOR, and three obsolete bits.
        (O::WriteSame, 1) => 0b0001_0111,
        // ANCHOR; RELADR.
        (O::Unmap | O::ReadCapacity10, 1) => 0b0000_0001,
        // PPC and SP.
        (O::LogSense, 1) => 0b0000_0011,
        // CMDDT.
        (O::Inquiry, 1) => 0b0000_0010,
        // 3RDPTY, the identification of the third party, EXTENT.
        (O::Reserve | O::Release, 1) if bytes == 6 => 0b0001_1001,
        // 3RDPTY, two reserved bits, LONGID, EXTENT.
        (O::Reserve | O::Release, 1) => 0b0001_1011,
        _ => 0,
    }
}
