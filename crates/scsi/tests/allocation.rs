//! READ and WRITE never allocate.
#![expect(unsafe_code, reason = "an allocator that counts has unsafe functions")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ssdyno_scsi::{
    ControllerFacts, JobProgress, NamespaceFacts, ScsiJob, ScsiRequest, Translator,
    TranslatorConfig, cdb,
};
use ssdyno_spec::nvme::NvmeStatus;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator; the counter does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn reads_and_writes_do_not_allocate() {
    let mut controller = ControllerFacts::named("model", "serial", "1.0");
    controller.transfer_bytes_max = 16 << 10;
    let config = TranslatorConfig { power_on_attention: false, ..TranslatorConfig::default() };
    let facts = NamespaceFacts::plain(1, 1 << 20, 4096);
    let mut translator = Translator::new(controller, &[facts], config).unwrap();
    let mut job = ScsiJob::new();
    let before = ALLOCATIONS.get();
    assert!(before > 0, "the counter counts");
    for lba in 0..1000 {
        for cdb in [cdb::write16(lba, 32, true), cdb::read16(lba, 32)] {
            let mut request = ScsiRequest::local(0, cdb.as_bytes());
            request.data_out_bytes = 32 * 4096;
            let mut progress = translator.begin(&mut job, &request);
            while progress == JobProgress::Pending {
                while job.next_command().is_some() {}
                progress = translator.complete(&mut job, NvmeStatus::SUCCESS, 0);
            }
            assert_eq!((progress, job.status()), (JobProgress::Done, 0));
        }
        // Refusals neither.
        let beyond = cdb::read16(u64::MAX, 1);
        let progress = translator.begin(&mut job, &ScsiRequest::local(0, beyond.as_bytes()));
        assert_eq!((progress, job.status()), (JobProgress::Done, 2));
    }
    assert_eq!(ALLOCATIONS.get(), before);
    assert_eq!(translator.counts().nvme_commands, 2 * 1000 * 8);
}
