//! A small device that executes the NVMe commands, and a host that sends CDBs to it.

use std::collections::VecDeque;

use ssdyno_scsi::{
    ControllerFacts, DataPlace, DeallocatedReads, Fused, JobProgress, NamespaceFacts, Nexus,
    NvmeCommand, Optional, ScsiData, ScsiJob, ScsiRequest, Translator, TranslatorConfig, lun_field,
};
use ssdyno_spec::nvme::{NvmeStatus, SanitizeLog, admin, nvm, sanitize};
use zerocopy::{FromZeros, IntoBytes};

/// One namespace in memory, with the commands that it has seen.
pub(crate) struct Device {
    pub(crate) bytes: Vec<u8>,
    pub(crate) block_bytes: usize,
    pub(crate) cache_on: bool,
    pub(crate) power_state: u32,
    pub(crate) smart: [u8; 512],
    pub(crate) seen: Vec<NvmeCommand>,
    /// Statuses of the next commands, where they shall fail.
    pub(crate) faults: VecDeque<NvmeStatus>,
    compared: Option<NvmeStatus>,
    pub(crate) sanitize: Sanitize,
}

/// The sanitize operation of the device, and its clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sanitize {
    pub(crate) now_ms: u64,
    began_ms: u64,
    ends_ms: u64,
    /// What an operation takes.
    pub(crate) takes_ms: u64,
    /// Operations fail.
    pub(crate) fails: bool,
    /// One was begun.
    begun: bool,
    /// Its failure mode was left.
    left: bool,
    written: bool,
    dword10: u32,
}

impl Sanitize {
    fn status(&self) -> u16 {
        match self.begun {
            false => SanitizeLog::NEVER,
            true if self.now_ms < self.ends_ms => SanitizeLog::IN_PROGRESS,
            true if self.fails => SanitizeLog::FAILED,
            true if self.written => SanitizeLog::SANITIZED,
            true => SanitizeLog::SANITIZED | SanitizeLog::ERASED,
        }
    }

    /// The status with which commands end because of it.
    fn refusal(&self) -> Option<NvmeStatus> {
        match self.status() {
            SanitizeLog::IN_PROGRESS => Some(NvmeStatus::SANITIZE_IN_PROGRESS),
            SanitizeLog::FAILED if !self.left => Some(NvmeStatus::SANITIZE_FAILED),
            _ => None,
        }
    }

    fn begin(&mut self, dword10: u32) -> NvmeStatus {
        let action = dword10 & 7;
        let (exits, free) = (action == sanitize::EXIT_FAILURE_MODE, 1 << 3);
        match self.refusal() {
            Some(NvmeStatus::SANITIZE_FAILED)
                if self.dword10 & free == 0 && (exits || dword10 & free != 0) =>
            {
                return NvmeStatus::SANITIZE_FAILED;
            }
            Some(NvmeStatus::SANITIZE_IN_PROGRESS) => return NvmeStatus::SANITIZE_IN_PROGRESS,
            _ => {}
        }
        if exits {
            self.left = true;
        } else {
            let (began_ms, ends_ms) = (self.now_ms, self.now_ms + self.takes_ms);
            let (begun, left, written) = (true, false, false);
            *self = Sanitize { began_ms, ends_ms, begun, left, written, dword10, ..*self };
        }
        NvmeStatus::SUCCESS
    }

    fn log(&self) -> SanitizeLog {
        let mut log = SanitizeLog::new_zeroed();
        log.status = self.status().into();
        log.dword10 = self.dword10.into();
        log.progress = SanitizeLog::NO_PROGRESS.into();
        if self.status() == SanitizeLog::IN_PROGRESS {
            let done = (self.now_ms - self.began_ms) << 16;
            log.progress = ((done / (self.ends_ms - self.began_ms)) as u16).into();
        }
        log
    }
}

impl Device {
    pub(crate) fn new(blocks: usize, block_bytes: usize) -> Device {
        Device {
            bytes: vec![0; blocks * block_bytes],
            block_bytes,
            cache_on: true,
            power_state: 0,
            smart: [0; 512],
            seen: Vec::new(),
            faults: VecDeque::new(),
            compared: None,
            sanitize: Sanitize { takes_ms: 1000, ..Sanitize::default() },
        }
    }

    /// The bytes of some blocks.
    pub(crate) fn range(&mut self, lba: u64, blocks: u64) -> Option<&mut [u8]> {
        let start = usize::try_from(lba).ok()?.checked_mul(self.block_bytes)?;
        let length = usize::try_from(blocks).ok()?.checked_mul(self.block_bytes)?;
        self.bytes.get_mut(start..start.checked_add(length)?)
    }

    /// Does one command; `memory` is the data that it names.
    pub(crate) fn execute(
        &mut self,
        command: &NvmeCommand,
        memory: &mut [u8],
    ) -> (NvmeStatus, u32) {
        self.seen.push(*command);
        if let Some(fault) = self.faults.pop_front() {
            return (fault, 0);
        }
        self.sanitize.now_ms += u64::from(command.wait_ms);
        let refused = self.sanitize.refusal().filter(|_| !command.admin);
        if let Some(status) = refused.filter(|_| command.opcode != nvm::FLUSH) {
            return (status, 0);
        }
        self.sanitize.written |= !command.admin && command.opcode == nvm::WRITE;
        if command.admin { self.admin(command, memory) } else { (self.io(command, memory), 0) }
    }

    fn io(&mut self, command: &NvmeCommand, memory: &mut [u8]) -> NvmeStatus {
        // Namespace 3 has a cache, and no other feature.
        if command.opcode == nvm::FLUSH && matches!(command.nsid, 3 | u32::MAX) {
            return NvmeStatus::SUCCESS;
        }
        if command.nsid != 1 {
            return NvmeStatus::INVALID_NAMESPACE;
        }
        let failed_fused = NvmeStatus::from_bits(0x09);
        if command.fused == Fused::Second && self.compared.take() != Some(NvmeStatus::SUCCESS) {
            return failed_fused;
        }
        match command.opcode {
            nvm::FLUSH => return NvmeStatus::SUCCESS,
            nvm::DATASET_MANAGEMENT => return self.deallocate(command, memory),
            _ => {}
        }
        let blocks = u64::from(command.blocks());
        let block_bytes = self.block_bytes as u64;
        let Some(range) = self.range(command.lba(), blocks) else {
            return NvmeStatus::LBA_OUT_OF_RANGE;
        };
        let moves = matches!(command.opcode, nvm::READ | nvm::WRITE | nvm::COMPARE);
        let expected = if moves { blocks * block_bytes } else { 0 };
        assert_eq!(memory.len() as u64, expected, "{command:?}");
        let status = match command.opcode {
            nvm::READ => {
                memory.copy_from_slice(range);
                NvmeStatus::SUCCESS
            }
            nvm::WRITE => {
                range.copy_from_slice(memory);
                NvmeStatus::SUCCESS
            }
            nvm::COMPARE if range == memory => NvmeStatus::SUCCESS,
            nvm::COMPARE => NvmeStatus::COMPARE_FAILURE,
            nvm::WRITE_ZEROES => {
                range.fill(0);
                NvmeStatus::SUCCESS
            }
            nvm::VERIFY => NvmeStatus::SUCCESS,
            _ => NvmeStatus::INVALID_OPCODE,
        };
        if command.fused == Fused::First {
            self.compared = Some(status);
        }
        status
    }

    fn deallocate(&mut self, command: &NvmeCommand, memory: &[u8]) -> NvmeStatus {
        assert_eq!(memory.len(), 16 * (command.dwords[0] as usize + 1));
        assert_eq!(command.dwords[1..], [4, 0, 0, 0, 0], "attribute deallocate, else reserved");
        for range in memory.chunks_exact(16) {
            let blocks = u32::from_le_bytes(range[4..8].try_into().expect("four bytes"));
            let lba = u64::from_le_bytes(range[8..16].try_into().expect("eight bytes"));
            let Some(bytes) = self.range(lba, u64::from(blocks)) else {
                return NvmeStatus::LBA_OUT_OF_RANGE;
            };
            bytes.fill(0);
        }
        NvmeStatus::SUCCESS
    }

    fn admin(&mut self, command: &NvmeCommand, memory: &mut [u8]) -> (NvmeStatus, u32) {
        let [d10, d11, ..] = command.dwords;
        match (command.opcode, d10 & 0xff) {
            (admin::GET_FEATURES, 0x06) => (NvmeStatus::SUCCESS, u32::from(self.cache_on)),
            (admin::SET_FEATURES, 0x06) => {
                self.cache_on = d11 & 1 == 1;
                (NvmeStatus::SUCCESS, 0)
            }
            (admin::SET_FEATURES, 0x02) => {
                self.power_state = d11 & 0x1f;
                (NvmeStatus::SUCCESS, 0)
            }
            (admin::GET_LOG_PAGE, 0x02) => {
                memory.copy_from_slice(&self.smart);
                (NvmeStatus::SUCCESS, 0)
            }
            (admin::GET_LOG_PAGE, 0x81) => {
                memory.copy_from_slice(self.sanitize.log().as_bytes());
                (NvmeStatus::SUCCESS, 0)
            }
            (admin::SANITIZE, _) => {
                assert_eq!((command.nsid, &command.dwords[2..]), (0, &[0; 4][..]), "reserved");
                let status = self.sanitize.begin(d10);
                if status.is_success() && d10 & 7 != sanitize::EXIT_FAILURE_MODE {
                    self.bytes.fill(0);
                }
                (status, 0)
            }
            (admin::FORMAT_NVM, _) => {
                assert_eq!(command.dwords[1..], [0; 5], "reserved");
                self.bytes.fill(0);
                (NvmeStatus::SUCCESS, 0)
            }
            _ => (NvmeStatus::INVALID_OPCODE, 0),
        }
    }
}

/// What came back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u8,
    /// Key and additional sense.
    pub(crate) sense: Option<(u8, u16)>,
    pub(crate) sense_bytes: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub(crate) fn good(self) -> Vec<u8> {
        assert_eq!((self.status, self.sense), (0, None));
        self.data
    }
    #[track_caller]
    pub(crate) fn check(self, key: u8, additional: u16) {
        assert_eq!(
            (self.status, self.sense.map(|(k, a)| (k, format!("{a:04x}")))),
            (2, Some((key, format!("{additional:04x}"))))
        );
        assert!(self.data.is_empty(), "no data with CHECK CONDITION");
    }
    #[track_caller]
    pub(crate) fn conflict(self) {
        assert_eq!((self.status, self.sense), (0x18, None));
    }
}

/// The invalid field in the CDB.
pub(crate) const INVALID_FIELD: (u8, u16) = (5, 0x2400);
/// The block is out of range.
pub(crate) const OUT_OF_RANGE: (u8, u16) = (5, 0x2100);

/// A translator and its device.
pub(crate) struct Host {
    pub(crate) translator: Translator,
    pub(crate) device: Device,
    pub(crate) job: ScsiJob,
}

/// A controller that can do everything.
pub(crate) fn able() -> ControllerFacts {
    let mut facts = ControllerFacts::named("SSDyno simulated drive", "S0123456789", "1.02");
    facts.transfer_bytes_max = 128 << 10;
    facts.power_state_max = 4;
    facts.compare_write_blocks_max = 64;
    facts.volatile_write_cache = true;
    facts.optional = Optional {
        compare: true,
        dataset_management: true,
        write_zeroes: true,
        feature_select: true,
        saveable_cache: true,
        verify: true,
        fused_compare_write: true,
        format: true,
        sanitize_overwrite: true,
        sanitize_block_erase: true,
        sanitize_crypto_erase: true,
    };
    facts
}

/// A controller that can do only what it must.
pub(crate) fn plain() -> ControllerFacts {
    let mut facts = able();
    facts.optional = Optional::default();
    facts.volatile_write_cache = false;
    facts
}

pub(crate) fn namespace(blocks: u64, block_bytes: u32) -> NamespaceFacts {
    let mut facts = NamespaceFacts::plain(1, blocks, block_bytes);
    facts.deallocated_reads = DeallocatedReads::Zeroes;
    facts.write_zeroes_deallocates = true;
    facts
}

impl Host {
    pub(crate) fn new(
        controller: ControllerFacts,
        namespace: NamespaceFacts,
        config: TranslatorConfig,
    ) -> Host {
        let device = Device::new(namespace.blocks as usize, namespace.block_bytes as usize);
        let translator = Translator::new(controller, &[namespace], config).expect("good facts");
        Host { translator, device, job: ScsiJob::new() }
    }

    /// 1024 blocks of 512 bytes; without a pending report at power on.
    pub(crate) fn small(controller: ControllerFacts) -> Host {
        let config = TranslatorConfig { power_on_attention: false, ..TranslatorConfig::default() };
        Host::new(controller, namespace(1024, 512), config)
    }

    /// Sends a CDB from the host itself to LUN 0.
    #[track_caller]
    pub(crate) fn send(&mut self, cdb: &[u8], data_out: &[u8]) -> Answer {
        self.send_as(Nexus::LOCAL, lun_field(0), cdb, data_out)
    }

    #[track_caller]
    pub(crate) fn send_as(
        &mut self,
        nexus: Nexus,
        lun: u64,
        cdb: &[u8],
        data_out: &[u8],
    ) -> Answer {
        let mut request = ScsiRequest::local(0, cdb);
        request.nexus = nexus;
        request.lun = lun;
        request.data_out_bytes = data_out.len() as u64;
        if self.translator.needs_data_out(cdb) {
            request.data_out = data_out;
        }
        let mut job = std::mem::take(&mut self.job);
        let mut progress = self.translator.begin(&mut job, &request);
        let mut buffer = data_out.to_vec();
        let needed = job.data_in_bytes() as usize;
        buffer.resize(buffer.len().max(needed), 0xee);
        let mut rounds = 0;
        while progress == JobProgress::Pending {
            progress = self.round(&mut job, &mut buffer);
            rounds += 1;
            assert!(rounds < 2000, "it never ends: {cdb:x?}");
        }
        assert_eq!(progress, JobProgress::Done, "{cdb:x?}");
        let answer = answer(&job, &buffer);
        self.job = job;
        answer
    }

    /// Submits what there is, then completes it in order.
    pub(crate) fn round(&mut self, job: &mut ScsiJob, buffer: &mut [u8]) -> JobProgress {
        let mut completions = Vec::new();
        while let Some(command) = job.next_command() {
            let ScsiData { place, offset, bytes } = command.data;
            let range = offset as usize..offset as usize + bytes as usize;
            let memory = match place {
                DataPlace::Nothing => &mut [][..],
                DataPlace::Buffer => &mut buffer[range],
                DataPlace::Scratch => &mut job.scratch_mut()[range],
            };
            completions.push(self.device.execute(&command, memory));
        }
        let mut progress = JobProgress::Pending;
        assert!(!completions.is_empty(), "pending without a command");
        for (status, dword0) in completions {
            assert_eq!(progress, JobProgress::Pending);
            progress = self.translator.complete(job, status, dword0);
        }
        progress
    }
}

/// The answer of a job that is done.
pub(crate) fn answer(job: &ScsiJob, buffer: &[u8]) -> Answer {
    let data = if job.data_in().is_empty() {
        buffer[..job.data_in_bytes() as usize].to_vec()
    } else {
        job.data_in().to_vec()
    };
    let bytes = job.sense();
    let sense = match bytes.first().map(|first| first & 0x7f) {
        None => None,
        Some(0x72) => Some((bytes[1] & 0xf, u16::from_be_bytes([bytes[2], bytes[3]]))),
        Some(_) => Some((bytes[2] & 0xf, u16::from_be_bytes([bytes[12], bytes[13]]))),
    };
    Answer { status: job.status(), sense, sense_bytes: bytes.to_vec(), data }
}

/// CDB of 10 bytes with a range.
pub(crate) fn cdb10(opcode: u8, flags: u8, lba: u32, blocks: u16) -> [u8; 10] {
    let (l, b) = (lba.to_be_bytes(), blocks.to_be_bytes());
    [opcode, flags, l[0], l[1], l[2], l[3], 0, b[0], b[1], 0]
}

/// CDB of 12 bytes with a range.
pub(crate) fn cdb12(opcode: u8, flags: u8, lba: u32, blocks: u32) -> [u8; 12] {
    let (l, b) = (lba.to_be_bytes(), blocks.to_be_bytes());
    [opcode, flags, l[0], l[1], l[2], l[3], b[0], b[1], b[2], b[3], 0, 0]
}

/// CDB of 16 bytes with a range.
pub(crate) fn cdb16(opcode: u8, flags: u8, lba: u64, blocks: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    cdb[1] = flags;
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}
