//! The SCSI stack between the block layer and the NVMe driver (S1-47): each command becomes a CDB,
//! the translator makes an NVMe command of it, and its status becomes SCSI status.

use std::collections::BTreeMap;

use ssdyno_block::{Op, Request, Token};
use ssdyno_driver_nvme::Namespace;
use ssdyno_figures::Invariant;
use ssdyno_scsi::{
    ControllerFacts, FactsError, JobProgress, NamespaceFacts, NvmeCommand, ScsiJob, Translator,
    TranslatorConfig, cdb, unmap_list,
};
use ssdyno_spec::nvme::NvmeStatus;

/// The translator with a job for each command.
#[derive(Debug)]
pub(super) struct ScsiLayer {
    translator: Translator,
    /// Of the namespaces: the logical unit and the size of a block.
    luns: Vec<u32>,
    block_bytes: Vec<u32>,
    /// By token of the command.
    jobs: Vec<ScsiJob>,
    /// Commands that did not end as SCSI says they should.
    odd: u64,
    /// Sense data of commands that failed.
    sense: BTreeMap<String, u64>,
}

impl ScsiLayer {
    pub(super) fn new(namespaces: &[Namespace]) -> Result<ScsiLayer, FactsError> {
        let mut controller = ControllerFacts::named("SSDyno", "1", "1");
        // The simulated controller has it; without, UNMAP would be refused.
        controller.optional.dataset_management = true;
        let unit = |n: &Namespace| NamespaceFacts::plain(n.id, n.blocks, n.block_bytes);
        // One may be there for several threads.
        // The translator takes each logical unit once. Two units with one number would answer
        // REPORT LUNS with a duplicate.
        let each: BTreeMap<u32, &Namespace> = namespaces.iter().map(|n| (n.id, n)).collect();
        let units: Vec<_> = each.into_values().map(unit).collect();
        // Namespace n is LUN n - 1.
        let luns = namespaces.iter().map(|namespace| namespace.id - 1).collect();
        let block_bytes = namespaces.iter().map(|namespace| namespace.block_bytes).collect();
        // Requests come cut to what the driver takes.
        let config = TranslatorConfig {
            transfer_blocks_max: 1 << 16,
            // A unit attention after power-on would fail the first command of each run. A real
            // initiator clears it during discovery, before any load.
            power_on_attention: false,
            ..TranslatorConfig::default()
        };
        let translator = Translator::new(controller, &units, config)?;
        Ok(ScsiLayer {
            translator,
            luns,
            block_bytes,
            jobs: Vec::new(),
            odd: 0,
            sense: BTreeMap::new(),
        })
    }

    /// The NVMe command for `request` to the namespace at `index`; `None` where SCSI needs none (a flush without a cache).
    pub(super) fn begin(
        &mut self,
        unit: usize,
        request: &Request,
        token: Token,
    ) -> Option<NvmeCommand> {
        let index = token.0 as usize;
        if index >= self.jobs.len() {
            self.jobs.resize_with(index + 1, ScsiJob::new);
        }
        let lba = request.offset_bytes / u64::from(self.block_bytes[unit]);
        let blocks = request.length_bytes / self.block_bytes[unit];
        // UNMAP carries its ranges as data and not in the CDB, so the translator can only know them
        // if the data is present.
        let list = unmap_list(lba, blocks);
        let cdb = match request.op {
            Op::Read => cdb::read16(lba, blocks),
            Op::Write => cdb::write16(lba, blocks, false),
            Op::Trim => cdb::unmap(list.len() as u16),
            Op::Flush => cdb::synchronize_cache16(),
        };
        let mut command = ssdyno_scsi::ScsiRequest::local(self.luns[unit], cdb.as_bytes());
        match request.op {
            Op::Trim => command = command.with_data(&list),
            // The data is not used, but a WRITE without any is refused.
            Op::Write => command.data_out_bytes = request.length_bytes.into(),
            Op::Read | Op::Flush => {}
        }
        let job = &mut self.jobs[index];
        let pending = self.translator.begin(job, &command) == JobProgress::Pending;
        let first = job.next_command().filter(|_| pending);
        debug_assert!(job.next_command().is_none(), "one command for each piece");
        // Refused, where NVMe is about to do it.
        self.odd += u64::from(!pending && job.status() != 0);
        first
    }

    /// The driver had no room: the command is begun again later.
    pub(super) fn withdraw(&mut self, token: Token) {
        let job = &mut self.jobs[token.0 as usize];
        if job.outstanding() > 0 {
            // The command has not reached the drive, so its status does not matter. The abort only
            // frees the job for the next command of this token.
            job.abort();
            let _aborted = self.translator.complete(job, NvmeStatus::SUCCESS, 0);
        }
    }

    /// The command of `token` ended with `status`; true if that is well in SCSI too.
    pub(super) fn end(&mut self, token: Token, status: NvmeStatus) -> bool {
        let job = &mut self.jobs[token.0 as usize];
        if job.outstanding() == 0 {
            return status.is_success();
        }
        let done = self.translator.complete(job, status, 0) == JobProgress::Done;
        let good = done && job.status() == 0;
        // SCSI must neither hide an NVMe error nor invent one (S1-50). Both directions count, so a
        // wrong entry in the table of status codes breaks the invariant.
        self.odd += u64::from(good != status.is_success());
        if !good {
            self.note_sense(token);
        }
        good
    }

    #[cold]
    fn note_sense(&mut self, token: Token) {
        let job = &self.jobs[token.0 as usize];
        let name = job.sense_bytes().summary().map_or_else(
            || format!("status {:02X}h", job.status()),
            |(key, more)| {
                format!("{} {:02X}h/{:02X}h", key_name(key), more.code(), more.qualifier())
            },
        );
        *self.sense.entry(name).or_default() += 1;
    }

    /// How often commands failed with which sense data.
    pub(super) fn sense(&self) -> &BTreeMap<String, u64> {
        &self.sense
    }

    pub(super) fn invariant(&self) -> Invariant {
        let counts = self.translator.counts();
        Invariant {
            name: "scsi".into(),
            holds: self.odd == 0,
            detail: format!(
                "{} CDBs became {} NVMe commands; {} ended with a different status than in NVMe",
                counts.cdbs, counts.nvme_commands, self.odd
            ),
        }
    }
}

/// Names of sense keys (SPC-4, table 48).
fn key_name(key: u8) -> &'static str {
    match key {
        0x3 => "MEDIUM ERROR",
        0x4 => "HARDWARE ERROR",
        0x5 => "ILLEGAL REQUEST",
        0x7 => "DATA PROTECT",
        0xb => "ABORTED COMMAND",
        _ => "sense",
    }
}
