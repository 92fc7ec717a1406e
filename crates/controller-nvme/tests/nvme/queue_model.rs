//! Creating and deleting queues in any order and with any fields (base 2.0c, clauses 5.4 to 5.7), against
//! a model: which of the errors apply, and which queues there are.

use std::collections::BTreeMap;

use proptest::prelude::*;
use ssdyno_spec::nvme::{NvmeStatus, SubmissionEntry, admin};

use crate::support::{BASE, FixedTime, Host, entry, host};

const QUEUES: u16 = 4;
const ENTRIES: u32 = 64;
const VECTORS: u32 = 3;
const PLACE: u64 = BASE + 0x9_0000;

/// One admin command: opcode, identifier, size less one, dword 11, offset of the queue in its page.
type Step = (u8, u16, u32, u32, u64);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let opcode = prop_oneof![
        3 => Just(admin::CREATE_COMPLETION_QUEUE),
        4 => Just(admin::CREATE_SUBMISSION_QUEUE),
        2 => Just(admin::DELETE_SUBMISSION_QUEUE),
        2 => Just(admin::DELETE_COMPLETION_QUEUE),
    ];
    let id = prop_oneof![12 => 1..=QUEUES, 1 => Just(0), 1 => any::<u16>()];
    let size = prop_oneof![8 => 1..ENTRIES, 1 => Just(0), 1 => ENTRIES..=0xffff];
    // PC, then IEN or priority; vector or completion queue in the upper half.
    let low = prop_oneof![8 => (0..4_u32).prop_map(|bits| bits << 1 | 1), 1 => (0..4_u32).prop_map(|bits| bits << 1)];
    let high = prop_oneof![8 => 0..=u32::from(QUEUES), 1 => 0..=0xffff_u32];
    let dword11 = (low, high).prop_map(|(low, high)| high << 16 | low);
    let offset = prop_oneof![12 => Just(0_u64), 1 => 1..4096_u64];
    prop::collection::vec((opcode, id, size, dword11, offset), 1..60)
}

/// The queues that there are: completion queues, and the completion queue of each submission queue.
#[derive(Default)]
struct Model {
    completion: Vec<u16>,
    submission: BTreeMap<u16, u16>,
}

impl Model {
    /// The error of a command, or nothing if it has none.
    fn errors(&self, (opcode, id, size, dword11, offset): Step) -> Vec<NvmeStatus> {
        let (mut all, high) = (Vec::new(), dword11 >> 16);
        let mut wrong = |is, status| {
            if is {
                all.push(status);
            }
        };
        let in_range = |id: u32| (1..=u32::from(QUEUES)).contains(&id);
        let creates =
            [admin::CREATE_COMPLETION_QUEUE, admin::CREATE_SUBMISSION_QUEUE].contains(&opcode);
        if creates {
            wrong(!in_range(id.into()), NvmeStatus::QUEUE_ID_INVALID);
            wrong(!(1..ENTRIES).contains(&size), NvmeStatus::QUEUE_SIZE_INVALID);
            wrong(dword11 & 1 == 0, NvmeStatus::INVALID_FIELD);
            wrong(offset != 0, NvmeStatus::PRP_OFFSET_INVALID);
        }
        match opcode {
            admin::CREATE_COMPLETION_QUEUE => {
                wrong(self.completion.contains(&id), NvmeStatus::QUEUE_ID_INVALID);
                let interrupts = dword11 & 2 != 0;
                wrong(interrupts && high >= VECTORS, NvmeStatus::INTERRUPT_VECTOR_INVALID);
            }
            admin::CREATE_SUBMISSION_QUEUE => {
                wrong(self.submission.contains_key(&id), NvmeStatus::QUEUE_ID_INVALID);
                wrong(!in_range(high), NvmeStatus::QUEUE_ID_INVALID);
                let missing = in_range(high) && !self.completion.contains(&(high as u16));
                wrong(missing, NvmeStatus::COMPLETION_QUEUE_INVALID);
            }
            admin::DELETE_SUBMISSION_QUEUE => {
                wrong(!self.submission.contains_key(&id), NvmeStatus::QUEUE_ID_INVALID);
            }
            _ => {
                wrong(!self.completion.contains(&id), NvmeStatus::QUEUE_ID_INVALID);
                let used = self.submission.values().any(|completion| *completion == id);
                wrong(used, NvmeStatus::QUEUE_DELETION_INVALID);
            }
        }
        all
    }

    fn take(&mut self, (opcode, id, _, dword11, _): Step) {
        match opcode {
            admin::CREATE_COMPLETION_QUEUE => self.completion.push(id),
            admin::CREATE_SUBMISSION_QUEUE => {
                self.submission.insert(id, (dword11 >> 16) as u16);
            }
            admin::DELETE_SUBMISSION_QUEUE => _ = self.submission.remove(&id),
            _ => self.completion.retain(|other| *other != id),
        }
    }
}

fn send(host: &mut Host<FixedTime>, (opcode, id, size, dword11, offset): Step) -> NvmeStatus {
    let creates =
        [admin::CREATE_COMPLETION_QUEUE, admin::CREATE_SUBMISSION_QUEUE].contains(&opcode);
    let command = match creates {
        true => entry(opcode, 0, [size << 16 | u32::from(id), dword11, 0]),
        false => entry(opcode, 0, [id.into(), 0, 0]),
    };
    let place = PLACE + u64::from(id % 8) * 0x2000 + offset;
    host.admin(SubmissionEntry { prp1: place.into(), ..command }).status()
}

proptest! {
    #[test]
    fn queues_come_and_go_as_the_model_says(steps in steps(), weighted: bool) {
        let setup = format!(
            "io_queues = {QUEUES}\nqueue_entries = {ENTRIES}\nmsix_vectors = {VECTORS}\n\
             weighted_round_robin = {weighted}"
        );
        let mut host = host(&setup);
        let mut model = Model::default();
        for step in steps {
            let errors = model.errors(step);
            let status = send(&mut host, step);
            if errors.is_empty() {
                prop_assert!(status.is_success(), "{:?} for {:?}", status, step);
                model.take(step);
            } else {
                let told = errors.contains(&status.kind()) && status.do_not_retry();
                prop_assert!(told, "{:?}, not {:?}, for {:?}", status, errors, step);
            }
        }
    }
}
