//! Sense data: why a command was not done (SPC-4, clause 4.5).

use ssdyno_spec::scsi::{AdditionalSense, SenseKey};

/// Which field of the CDB or of the parameter list is wrong (SPC-4, 4.5.2.4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldPointer {
    /// It is in the CDB; otherwise in the parameter list.
    pub in_cdb: bool,
    /// First byte of the field.
    pub byte: u16,
    /// Leftmost bit of the field, where it is known.
    pub bit: Option<u8>,
}

/// What sense data say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sense {
    /// The kind of trouble.
    pub key: SenseKey,
    /// The trouble.
    pub additional: AdditionalSense,
    /// The field that is wrong.
    pub field: Option<FieldPointer>,
    /// INFORMATION field: a block, or the offset of the first byte that does not match.
    pub information: Option<u64>,
    /// How far what the unit is busy with is, in 65536ths.
    pub progress: Option<u16>,
}

impl Sense {
    /// `key` and `additional` alone.
    pub const fn new(key: SenseKey, additional: AdditionalSense) -> Sense {
        Sense { key, additional, field: None, information: None, progress: None }
    }
    /// ILLEGAL REQUEST.
    pub const fn illegal(additional: AdditionalSense) -> Sense {
        Sense::new(SenseKey::IllegalRequest, additional)
    }
    /// INVALID FIELD IN CDB at `byte`, with `bit` its leftmost.
    pub const fn cdb(byte: u16, bit: u8) -> Sense {
        let mut sense = Sense::illegal(AdditionalSense::INVALID_FIELD_IN_CDB);
        sense.field = Some(FieldPointer { in_cdb: true, byte, bit: Some(bit) });
        sense
    }
    /// INVALID FIELD IN PARAMETER LIST at `byte`.
    pub const fn parameter(byte: usize) -> Sense {
        let mut sense = Sense::illegal(AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST);
        sense.field = Some(FieldPointer { in_cdb: false, byte: byte as u16, bit: None });
        sense
    }
    /// The data that came do not fit the command.
    pub const fn information_unit() -> Sense {
        Sense::illegal(AdditionalSense::INVALID_FIELD_IN_INFORMATION_UNIT)
    }
    /// LOGICAL BLOCK ADDRESS OUT OF RANGE.
    pub const fn out_of_range() -> Sense {
        Sense::illegal(AdditionalSense::LBA_OUT_OF_RANGE)
    }
    /// The same with the INFORMATION field.
    #[must_use]
    pub const fn with_information(mut self, information: u64) -> Sense {
        self.information = Some(information);
        self
    }

    /// The same with a progress indication (SPC-4, 4.5.2.4.4).
    #[must_use]
    pub const fn with_progress(mut self, progress: u16) -> Sense {
        self.progress = Some(progress);
        self
    }

    /// The sense key specific field: what is wrong with the command, or how far the unit is.
    fn key_specific(&self) -> Option<[u8; 3]> {
        let progress = self.progress.map(|progress| {
            let [high, low] = progress.to_be_bytes();
            [0x80, high, low]
        });
        // Both use the same three bytes. No conflict is possible: a field pointer belongs to
        // ILLEGAL REQUEST, a progress indication to NO SENSE and NOT READY.
        self.field.map(field_pointer).or(progress)
    }

    /// As bytes: descriptor format (SPC-4, 4.5.2) or fixed format (4.5.3).
    pub fn encode(&self, descriptors: bool) -> SenseBytes {
        if descriptors { self.descriptor_format() } else { self.fixed_format() }
    }

    fn fixed_format(&self) -> SenseBytes {
        let mut bytes = [0; SenseBytes::BYTES_MAX];
        bytes[0] = 0x70;
        // The fixed format has four bytes of information. SPC-4 requires VALID = 0 if the value
        // does not fit; a truncated LBA would direct the repair of a medium error to a wrong block.
        if let Some(Ok(information)) = self.information.map(u32::try_from) {
            bytes[0] |= 0x80;
            bytes[3..7].copy_from_slice(&information.to_be_bytes());
        }
        bytes[2] = self.key as u8;
        bytes[7] = 10;
        bytes[12] = self.additional.code();
        bytes[13] = self.additional.qualifier();
        if let Some(specific) = self.key_specific() {
            bytes[15..18].copy_from_slice(&specific);
        }
        SenseBytes { bytes, length: 18 }
    }

    fn descriptor_format(&self) -> SenseBytes {
        let mut bytes = [0; SenseBytes::BYTES_MAX];
        bytes[0] = 0x72;
        bytes[1] = self.key as u8;
        bytes[2] = self.additional.code();
        bytes[3] = self.additional.qualifier();
        let mut at = 8;
        if let Some(information) = self.information {
            // Type, additional length, VALID (SPC-4, 4.5.2.2).
            bytes[at..at + 3].copy_from_slice(&[0x00, 0x0a, 0x80]);
            bytes[at + 4..at + 12].copy_from_slice(&information.to_be_bytes());
            at += 12;
        }
        if let Some(specific) = self.key_specific() {
            bytes[at..at + 2].copy_from_slice(&[0x02, 0x06]);
            bytes[at + 4..at + 7].copy_from_slice(&specific);
            at += 8;
        }
        bytes[7] = (at - 8) as u8;
        SenseBytes { bytes, length: at as u8 }
    }
}

/// SKSV, C/D, BPV, bit pointer and field pointer (SPC-4, table 38).
fn field_pointer(field: FieldPointer) -> [u8; 3] {
    let bit = field.bit.map_or(0, |bit| 0x08 | bit & 7);
    let [high, low] = field.byte.to_be_bytes();
    [0x80 | u8::from(field.in_cdb) << 6 | bit, high, low]
}

/// Sense data as they go to the initiator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenseBytes {
    bytes: [u8; SenseBytes::BYTES_MAX],
    length: u8,
}

impl SenseBytes {
    /// Most bytes of sense data that are made here.
    pub const BYTES_MAX: usize = 28;
    /// None.
    pub const NONE: SenseBytes = SenseBytes { bytes: [0; SenseBytes::BYTES_MAX], length: 0 };

    /// The bytes; empty if there are none.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Key and additional code, of either format; `None` where there are no sense data.
    pub fn summary(&self) -> Option<(u8, AdditionalSense)> {
        let bytes = self.as_bytes();
        let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
        match bytes.first()? & 0x7f {
            0x72 => Some((at(1) & 0xf, AdditionalSense(u16::from_be_bytes([at(2), at(3)])))),
            _ => Some((at(2) & 0xf, AdditionalSense(u16::from_be_bytes([at(12), at(13)])))),
        }
    }
}

/// Why a command ends without being done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// CHECK CONDITION with sense data.
    Sense(Sense),
    /// RESERVATION CONFLICT.
    Conflict,
}

/// What a command gives, or why it is refused.
pub(crate) type Checked<T = ()> = Result<T, Refusal>;

impl From<Sense> for Refusal {
    fn from(sense: Sense) -> Refusal {
        Refusal::Sense(sense)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPC-4, tables 27, 38 and 47.
    #[test]
    fn fixed_format_points_at_the_field() {
        let sense = Sense::cdb(1, 7).encode(false);
        let expected = [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0x00, 0, 0xcf, 0x00, 0x01];
        assert_eq!(sense.as_bytes(), expected);
        assert_eq!(sense.summary(), Some((5, AdditionalSense::INVALID_FIELD_IN_CDB)));
    }

    /// SPC-4, tables 28, 30, 36 and 38.
    #[test]
    fn descriptor_format_carries_64_bits() {
        let sense = Sense::parameter(0x102).with_information(0x1_0000_0002).encode(true);
        let expected = [
            0x72, 5, 0x26, 0, 0, 0, 0, 20, // header
            0x00, 0x0a, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 2, // information
            0x02, 0x06, 0, 0, 0x80, 0x01, 0x02, 0, // sense key specific
        ];
        assert_eq!(sense.as_bytes(), expected);
        assert_eq!(sense.summary(), Some((5, AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST)));
    }

    #[test]
    fn fixed_format_leaves_out_what_does_not_fit() {
        let sense = Sense::out_of_range().with_information(1 << 32).encode(false);
        assert_eq!(sense.as_bytes()[0], 0x70);
        let sense = Sense::out_of_range().with_information(u64::from(u32::MAX)).encode(false);
        assert_eq!(sense.as_bytes()[..7], [0xf0, 0, 5, 0xff, 0xff, 0xff, 0xff]);
    }
}
