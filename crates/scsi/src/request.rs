//! A SCSI command as it arrives, and the numbers of logical units.

use crate::Nexus;

/// One SCSI command as the transport received it.
#[derive(Clone, Copy, Debug)]
pub struct ScsiRequest<'a> {
    /// Who sent it.
    pub nexus: Nexus,
    /// The LUN field, eight bytes (SAM-5, 4.7).
    pub lun: u64,
    /// The command descriptor block; bytes behind its length are not looked at.
    pub cdb: &'a [u8],
    /// Bytes that the initiator sends. Less than the CDB asks for is a short write: see
    /// [`ScsiTarget::begin`](crate::ScsiTarget::begin).
    pub data_out_bytes: u64,
    /// The bytes, if [`ScsiTarget::needs_data_out`](crate::ScsiTarget::needs_data_out) asks for them; otherwise they
    /// may be empty.
    pub data_out: &'a [u8],
    /// Its buffer is being deleted: it is answered at once, and nothing is done (S1-53).
    pub deleted: bool,
}

/// A command for a unit that there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    /// Index of the unit.
    pub(crate) unit: usize,
    pub(crate) request: &'a ScsiRequest<'a>,
    /// Its CDB, as long as the operation code says.
    pub(crate) cdb: &'a [u8],
}

impl<'a> ScsiRequest<'a> {
    /// A command of [`Nexus::LOCAL`] without data-out.
    pub fn local(lun: u32, cdb: &'a [u8]) -> ScsiRequest<'a> {
        ScsiRequest {
            nexus: Nexus::LOCAL,
            lun: lun_field(lun),
            cdb,
            data_out_bytes: 0,
            data_out: &[],
            deleted: false,
        }
    }
    /// The same with data-out that the translator may see.
    #[must_use]
    pub fn with_data(mut self, data: &'a [u8]) -> ScsiRequest<'a> {
        self.data_out = data;
        self.data_out_bytes = data.len() as u64;
        self
    }
}

/// The LUN field of logical unit `number` (SAM-5, 4.7.7): peripheral device addressing up to 255,
/// flat space above.
pub const fn lun_field(number: u32) -> u64 {
    let number = number as u64 & 0x3fff;
    if number < 256 { number << 48 } else { (0x4000 | number) << 48 }
}

/// The number in a LUN field of one level, where it has one.
pub(crate) fn lun_number(field: u64) -> Option<u32> {
    let (first, rest) = ((field >> 48) as u32, field << 16);
    match first >> 14 {
        _ if rest != 0 => None,
        // Bus identifier 0 only.
        0 if first < 256 => Some(first),
        1 => Some(first & 0x3fff),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lun_fields() {
        assert_eq!(lun_field(5), 0x0005_0000_0000_0000);
        assert_eq!(lun_field(256), 0x4100_0000_0000_0000);
        for number in [0, 1, 255, 256, 0x3fff] {
            assert_eq!(lun_number(lun_field(number)), Some(number));
        }
        assert_eq!(lun_number(0xc101_0000_0000_0000), None, "well known REPORT LUNS");
        assert_eq!(lun_number(0x0100_0000_0000_0000), None, "another bus");
        assert_eq!(lun_number(1), None, "another level");
    }
}
