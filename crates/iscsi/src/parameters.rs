//! Operational parameters and how they are agreed on (RFC 7143, clauses 6.2 and 13).

use crate::pdu::Framing;
use crate::text::{self, number};

/// The largest data segment that we accept.
pub(crate) const RECEIVE_BYTES_MAX: u32 = 256 * 1024;

/// The negotiated parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parameters {
    pub(crate) header_digest: bool,
    pub(crate) data_digest: bool,
    /// Most bytes of a data segment that the initiator takes.
    pub(crate) send_bytes_max: u32,
    pub(crate) burst_bytes_max: u32,
    pub(crate) first_burst_bytes_max: u32,
    /// No unsolicited data but immediate ones.
    pub(crate) initial_r2t: bool,
    pub(crate) immediate_data: bool,
    /// We said what we take in one data segment.
    pub(crate) declared: bool,
}

impl Default for Parameters {
    /// The defaults without negotiation.
    fn default() -> Parameters {
        Parameters {
            header_digest: false,
            data_digest: false,
            send_bytes_max: 8192,
            burst_bytes_max: 262_144,
            first_burst_bytes_max: 65_536,
            initial_r2t: true,
            immediate_data: true,
            declared: false,
        }
    }
}

impl Parameters {
    /// The layout of PDUs in the full-feature phase.
    pub(crate) fn framing(&self) -> Framing {
        Framing {
            header_digest: self.header_digest,
            data_digest: self.data_digest,
            data_bytes_max: RECEIVE_BYTES_MAX,
        }
    }

    /// Hears `key` with `value` and appends our answer.
    pub(crate) fn hear(&mut self, key: &str, value: &str, out: &mut Vec<u8>) {
        let answer = match key {
            "HeaderDigest" => digest(value, &mut self.header_digest),
            "DataDigest" => digest(value, &mut self.data_digest),
            "MaxRecvDataSegmentLength" => {
                // Declared, not agreed on: each side says its own.
                match number(value).filter(|bytes| (512..1 << 24).contains(bytes)) {
                    Some(bytes) => self.send_bytes_max = bytes,
                    None => return text::push(out, key, "Reject"),
                }
                return;
            }
            "MaxBurstLength" => least(value, 512, 1 << 20, &mut self.burst_bytes_max),
            "FirstBurstLength" => least(value, 512, 1 << 18, &mut self.first_burst_bytes_max),
            "InitialR2T" => boolean(value, |theirs| theirs, &mut self.initial_r2t),
            "ImmediateData" => boolean(value, |theirs| theirs, &mut self.immediate_data),
            "DataPDUInOrder" | "DataSequenceInOrder" => boolean(value, |_| true, &mut true),
            "IFMarker" | "OFMarker" => boolean(value, |_| false, &mut false),
            "MaxConnections" | "MaxOutstandingR2T" => least(value, 1, 1, &mut 1),
            "ErrorRecoveryLevel" => least(value, 0, 0, &mut 0),
            "DefaultTime2Wait" => number(value).filter(|s| *s <= 3600).map(|s| s.to_string()),
            "DefaultTime2Retain" => least(value, 0, 0, &mut 0),
            "iSCSIProtocolLevel" => least(value, 0, 1, &mut 1),
            "TaskReporting" => Some("RFC3720".to_owned()),
            "AuthMethod" => value.split(',').any(|v| v == "None").then(|| "None".to_owned()),
            // Said, not asked.
            "InitiatorName" | "InitiatorAlias" | "TargetName" | "SessionType" => return,
            _ => Some("NotUnderstood".to_owned()),
        };
        text::push(out, key, answer.as_deref().unwrap_or("Reject"));
    }

    /// Says what we take in one data segment, once.
    pub(crate) fn declare(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.declared, true) {
            text::push(out, "MaxRecvDataSegmentLength", &RECEIVE_BYTES_MAX.to_string());
        }
    }

    /// What could not be both is made so (clause 13.14: the first burst is no longer than a burst).
    pub(crate) fn settle(&mut self) {
        self.first_burst_bytes_max = self.first_burst_bytes_max.min(self.burst_bytes_max);
    }
}

/// The first of the initiator's digests that we know.
fn digest(value: &str, on: &mut bool) -> Option<String> {
    let choice = value.split(',').find(|choice| matches!(*choice, "None" | "CRC32C"))?;
    *on = choice == "CRC32C";
    Some(choice.to_owned())
}

/// The lesser of both numbers; below `low` it is not a value.
fn least(value: &str, low: u32, ours: u32, result: &mut u32) -> Option<String> {
    let theirs = number(value).filter(|theirs| (low..1 << 24).contains(theirs))?;
    *result = theirs.min(ours);
    Some(result.to_string())
}

fn boolean(value: &str, ours: impl Fn(bool) -> bool, result: &mut bool) -> Option<String> {
    let theirs = match value {
        "Yes" => true,
        "No" => false,
        _ => return None,
    };
    *result = ours(theirs);
    Some(if *result { "Yes" } else { "No" }.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(text: &[(&str, &str)]) -> (Parameters, String) {
        let (mut parameters, mut out) = (Parameters::default(), Vec::new());
        text.iter().for_each(|(key, value)| parameters.hear(key, value, &mut out));
        parameters.settle();
        (parameters, String::from_utf8(out).unwrap().replace('\0', " "))
    }

    #[test]
    fn keys_are_agreed_on() {
        let (parameters, said) = answers(&[
            ("HeaderDigest", "None,CRC32C"),
            ("DataDigest", "CRC32C,None"),
            ("MaxRecvDataSegmentLength", "65536"),
            ("MaxBurstLength", "0x1000"),
            ("FirstBurstLength", "16777215"),
            ("InitialR2T", "No"),
            ("ImmediateData", "No"),
            ("MaxOutstandingR2T", "16"),
            ("ErrorRecoveryLevel", "2"),
            ("OFMarker", "Yes"),
            ("X-com.example", "1"),
        ]);
        assert_eq!(
            said,
            "HeaderDigest=None DataDigest=CRC32C MaxBurstLength=4096 FirstBurstLength=262144 \
             InitialR2T=No ImmediateData=No MaxOutstandingR2T=1 ErrorRecoveryLevel=0 OFMarker=No \
             X-com.example=NotUnderstood "
        );
        let agreed = Parameters {
            data_digest: true,
            send_bytes_max: 65536,
            burst_bytes_max: 4096,
            first_burst_bytes_max: 4096,
            initial_r2t: false,
            immediate_data: false,
            ..Parameters::default()
        };
        assert_eq!(parameters, agreed);
    }

    #[test]
    fn what_is_no_value_is_rejected_and_changes_nothing() {
        let (parameters, said) = answers(&[
            ("HeaderDigest", "MD5"),
            ("MaxRecvDataSegmentLength", "511"),
            ("MaxBurstLength", "many"),
            ("InitialR2T", "yes"),
            ("AuthMethod", "CHAP"),
        ]);
        assert_eq!(parameters, Parameters::default());
        assert_eq!(said.matches("=Reject ").count(), 5, "{said}");
    }
}
