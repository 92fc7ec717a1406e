//! FORMAT UNIT (SBC-3, 5.3; translation reference, 6.10).

use ssdyno_spec::nvme::admin;
use ssdyno_spec::scsi::AdditionalSense;

use crate::job::{NvmeCommand, ScsiJob, Work};
use crate::request::Call;
use crate::sense::{Checked, Sense};
use crate::target::ScsiTarget;

impl ScsiTarget {
    /// FORMAT UNIT: Format NVM with the block size that MODE SELECT chose last, or the present one.
    ///
    /// After it the caller identifies the namespace again and hands the facts to
    /// [`replace_namespace`](crate::Translator::replace_namespace).
    pub(crate) fn format_unit(&mut self, job: &mut ScsiJob, call: Call<'_>) -> Checked {
        let Call { unit, request, cdb } = call;
        // LONGLIST and CMPLST say something of the list that FMTDATA announces; without, they are
        // ignored.
        if cdb[1] & 0x10 != 0 {
            check_parameters(request.data_out, cdb[1] & 0x20 != 0)?;
        }
        let target = &self.units[unit];
        let present = |format: &&(u8, u32)| format.1 == target.facts.block_bytes;
        let present = target.facts.formats.iter().flatten().find(present).map(|format| format.0);
        let Some(format) = target.next_format.or(present) else {
            return Err(Sense::illegal(AdditionalSense::FORMAT_FAILED).into());
        };
        // LBAFL and LBAFU; no protection information, no secure erase (base 2.0c, clause 5.14).
        let dword10 = u32::from(format & 0xf) | u32::from(format >> 4) << 12;
        let nsid = target.facts.nsid;
        job.work = Work::Single(NvmeCommand::admin(admin::FORMAT_NVM, nsid, dword10, 0));
        Ok(())
    }
}

/// The parameter list header: no defects, no pattern, no protection information.
fn check_parameters(list: &[u8], long: bool) -> Checked {
    let bytes = if long { 8 } else { 4 };
    if list.len() < bytes {
        return Err(Sense::illegal(AdditionalSense::PARAMETER_LIST_LENGTH).into());
    }
    // PROTECTION FIELDS USAGE.
    if list[0] & 7 != 0 {
        return Err(Sense::parameter(0).into());
    }
    // DPRY, DCRT and STPF may be set where FOV says that they count; IP (an initialization pattern
    // follows) may not. IMMED may end the command early; it ends when the format has.
    let options = list[1] & 0x78;
    if options & 0x08 != 0 || list[1] & 0x80 == 0 && options != 0 {
        return Err(Sense::parameter(1).into());
    }
    // P_I_INFORMATION and the exponent of the protection interval, then the length of the defect list.
    let length = if long { 4 } else { 2 };
    match list[2..bytes].iter().position(|&byte| byte != 0) {
        Some(at) => Err(Sense::parameter((2 + at).min(length)).into()),
        None => Ok(()),
    }
}
