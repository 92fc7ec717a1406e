//! From a SCSI command to NVMe commands and back.

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use ssdyno_spec::nvme::NvmeStatus;

use crate::Nexus;
use crate::facts::{ControllerFacts, FactsError, NamespaceFacts, TranslatorConfig};
use crate::job::ScsiJob;
use crate::target::{JobProgress, ScsiTarget};
use crate::unit::{Attention, Unit};

/// The largest namespace identifier: LUNs of 14 bits (SAM-5, 4.7.7.3).
const NSID_MAX: u32 = 0x4000;

/// Translates the SCSI commands for the namespaces of one NVMe controller.
///
/// What it shares with every target, such as [`begin`](ScsiTarget::begin), is in [`ScsiTarget`]. The
/// caller submits the NVMe commands of each job ([`ScsiJob::next_command`]) and reports each completion.
#[derive(Debug)]
pub struct Translator(ScsiTarget);

impl Translator {
    /// A translator for `namespaces`; [`Nexus::LOCAL`] is there.
    ///
    /// # Errors
    /// [`FactsError`]: a namespace that cannot be shown, named with the reason.
    pub fn new(
        controller: ControllerFacts,
        namespaces: &[NamespaceFacts],
        config: TranslatorConfig,
    ) -> Result<Translator, FactsError> {
        let mut units = Vec::with_capacity(namespaces.len());
        for facts in namespaces {
            facts.check()?;
            if facts.nsid == 0 || facts.nsid > NSID_MAX {
                return Err(FactsError::Identifier { nsid: facts.nsid, most: NSID_MAX });
            }
            units.push(Unit::new(facts.clone()));
        }
        // An active namespace list is in ascending order, but tests and other callers pass any
        // order. The search for a LUN is a binary search and needs the order.
        units.sort_by_key(Unit::number);
        if let Some(pair) = units.windows(2).find(|pair| pair[0].number() == pair[1].number()) {
            return Err(FactsError::Identifier { nsid: pair[0].facts.nsid, most: NSID_MAX });
        }
        Ok(Translator(ScsiTarget::new(controller, None, units, config)))
    }

    /// One of the job's NVMe commands has completed with `status` and dword 0 of its completion.
    pub fn complete(&mut self, job: &mut ScsiJob, status: NvmeStatus, dword0: u32) -> JobProgress {
        self.0.complete_command(job, status, dword0)
    }

    /// New facts of a namespace, as after the FORMAT UNIT of `nexus`. If the number or size of its blocks has changed,
    /// all initiators except the one that caused it receive a unit attention (SBC-3, 4.7 and 5.3); without a nexus, all
    /// of them receive it. `false`: no unit has this namespace.
    ///
    /// # Errors
    /// [`FactsError`]: it can no longer be shown; the old facts stay.
    pub fn replace_namespace(
        &mut self,
        facts: NamespaceFacts,
        nexus: Option<Nexus>,
    ) -> Result<bool, FactsError> {
        facts.check()?;
        let unit = self.0.units.iter_mut().find(|unit| unit.facts.nsid == facts.nsid);
        Ok(unit.is_some_and(|unit| {
            let capacity = |facts: &NamespaceFacts| (facts.blocks, facts.block_bytes);
            let changed = capacity(&unit.facts) != capacity(&facts);
            unit.facts = facts;
            unit.next_format = None;
            // A format with the same block size keeps the geometry. An attention in this case would
            // make every initiator read the capacity again without a reason.
            if changed {
                unit.attend_others(nexus, Attention::CapacityChanged);
            }
            true
        }))
    }

    /// A sanitize operation may be in progress: one was begun here, or found, and its end was not seen.
    pub fn is_sanitizing(&self) -> bool {
        self.0.sanitizing
    }
}

impl Deref for Translator {
    type Target = ScsiTarget;

    fn deref(&self) -> &ScsiTarget {
        &self.0
    }
}

impl DerefMut for Translator {
    fn deref_mut(&mut self) -> &mut ScsiTarget {
        &mut self.0
    }
}
