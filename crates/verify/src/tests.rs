//! Against memory that misbehaves, and real files.

use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use ssdyno_figures::KeepGoing;

use super::*;
use crate::journal::Journal;

/// What goes wrong with the n-th write.
#[derive(Clone, Copy)]
enum Trouble {
    None,
    /// Completed, never stored.
    Lose(u64),
    /// Only its first half is stored.
    Tear(u64),
    /// Stored one block further on.
    Misplace(u64),
    /// One bit differs.
    Flip(u64),
    /// An error instead of an answer.
    Fail(u64),
}

struct Memory {
    bytes: Mutex<Vec<u8>>,
    writes: AtomicU64,
    trouble: Trouble,
}

impl Memory {
    fn new(size: usize, trouble: Trouble) -> Memory {
        Memory { bytes: Mutex::new(vec![0; size]), writes: AtomicU64::new(0), trouble }
    }
}

impl Medium for Memory {
    fn read(&self, offset_bytes: u64, out: &mut [u8]) -> io::Result<()> {
        let at = offset_bytes as usize;
        out.copy_from_slice(&self.bytes.lock().unwrap()[at..at + out.len()]);
        Ok(())
    }
    fn write(&self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
        let number = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        let mut bytes = self.bytes.lock().unwrap();
        let mut data = data.to_vec();
        let mut at = offset_bytes as usize;
        match self.trouble {
            Trouble::Lose(n) if n == number => return Ok(()),
            Trouble::Tear(n) if n == number => data.truncate(data.len() / 2),
            Trouble::Misplace(n) if n == number => at = (at + data.len()) % bytes.len(),
            Trouble::Flip(n) if n == number => data[77] ^= 4,
            Trouble::Fail(n) if n == number => return Err(io::ErrorKind::StorageFull.into()),
            _ => {}
        }
        bytes[at..at + data.len()].copy_from_slice(&data);
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

fn plan(threads: u32) -> VerifyPlan {
    VerifyPlan {
        seed: 11,
        run: 4711,
        block_bytes: 4096,
        sector_bytes: 512,
        capacity_bytes: 64 * 4096,
        serial: Some("S3RIAL".to_owned()),
        range_bytes: 64 * 4096,
        threads,
        writes: 2000,
        read_percent: 30,
        flush_every: 50,
        journal: None,
    }
}

fn outcome(plan: &VerifyPlan, trouble: Trouble) -> Result<VerifyReport, VerifyError> {
    let memory = Memory::new(plan.capacity_bytes as usize, trouble);
    verify(plan, &memory, &mut |_| KeepGoing::Continue)
}

fn faults(trouble: Trouble) -> Vec<VerifyFault> {
    // One thread: which write is the n-th is certain then. It is the last one, so that no later
    // write mends it.
    let report = outcome(&plan(1), trouble).unwrap();
    assert_eq!(report.faults, report.findings.len() as u64);
    report.findings.into_iter().map(|finding| finding.fault).collect()
}

#[test]
fn a_sound_medium_has_no_faults_at_any_depth() {
    for threads in [1, 3, 16, 200] {
        let report = outcome(&plan(threads), Trouble::None).unwrap();
        assert_eq!(report.findings, []);
        assert!(report.writes == 2000 && report.reads > 500, "{report:?}");
        assert!(!report.partial);
    }
}

/// As many random writes as blocks would reach 64 % of them.
#[test]
fn as_many_writes_as_blocks_reach_each_block_once() {
    for threads in [1, 3, 16, 64] {
        let report = outcome(&VerifyPlan { writes: 64, ..plan(threads) }, Trouble::None).unwrap();
        assert_eq!((report.written_blocks, report.range_blocks), (64, 64), "{threads} threads");
    }
    let report = outcome(&VerifyPlan { writes: 20, ..plan(1) }, Trouble::None).unwrap();
    assert_eq!((report.written_blocks, report.range_blocks), (20, 64));
}

/// By hand: 6400 writes are 70 % of the requests before the final check, so 2743 reads are the rest; four standard deviations are 250.
#[test]
fn reads_have_their_share_while_blocks_are_still_unwritten() {
    let bytes = 6400 * 4096;
    let first_pass =
        VerifyPlan { writes: 6400, capacity_bytes: bytes, range_bytes: bytes, ..plan(4) };
    let report = outcome(&first_pass, Trouble::None).unwrap();
    assert_eq!((report.writes, report.written_blocks), (6400, 6400));
    assert!((report.reads - 6400).abs_diff(2743) < 250, "{report:?}");
}

#[test]
fn each_trouble_is_called_by_its_name() {
    assert_eq!(faults(Trouble::Lose(2000)), [VerifyFault::Lost]);
    assert_eq!(faults(Trouble::Tear(2000)), [VerifyFault::Torn]);
    assert_eq!(faults(Trouble::Flip(2000)), [VerifyFault::Damaged]);
    let misplaced = faults(Trouble::Misplace(2000));
    assert!(
        misplaced.contains(&VerifyFault::Misplaced) && misplaced.contains(&VerifyFault::Lost),
        "{misplaced:?}"
    );
}

#[test]
fn a_target_that_fails_ends_the_run_with_its_place() {
    for threads in [1, 7] {
        let error = outcome(&plan(threads), Trouble::Fail(500)).unwrap_err();
        let VerifyError::EndedEarly { report, cause } = error else { panic!("{error}") };
        assert!(matches!(*cause, VerifyError::Target { what: "write", .. }), "{cause}");
        assert!(report.partial && report.writes >= 499 && report.faults == 0, "{report:?}");
    }
}

/// By hand: the records of the first 50 writes are in memory until the first flush, which writes them.
#[test]
fn a_journal_that_is_full_ends_the_run_with_its_counts() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let memory = Memory::new(64 * 4096, Trouble::None);
    let go_on = &mut |_: &VerifyProgress| KeepGoing::Continue;
    let error = run::carry_out(&plan(1), 64, &memory, Some(Journal::on(full)), go_on).unwrap_err();
    let VerifyError::EndedEarly { report, cause } = error else { panic!("{error}") };
    assert_eq!((report.writes, report.flushes, report.partial), (50, 1, true));
    assert!(cause.help("").starts_with("free some space"), "{}", cause.help(""));
}

#[test]
fn each_trouble_with_a_journal_has_a_help_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("there");
    std::fs::write(&there, "x").unwrap();
    let help = |journal: std::path::PathBuf| {
        let plan = VerifyPlan { journal: Some(journal), ..plan(1) };
        outcome(&plan, Trouble::None).unwrap_err().help("")
    };
    assert!(help(there.clone()).contains("not overwritten"));
    assert!(help(dir.path().join("none/journal")).contains("make the directory"));
    let memory = Memory::new(64 * 4096, Trouble::None);
    for journal in [there, dir.path().join("none")] {
        let crashed = crashed(&journal, &plan(1));
        let error = resume(&crashed, &memory, &mut |_| KeepGoing::Continue).unwrap_err();
        assert!(error.help("").contains("name the journal"), "{error}");
    }
}

#[test]
fn it_can_be_stopped_and_says_so() {
    let memory = Memory::new(64 * 4096, Trouble::None);
    let endless = VerifyPlan { writes: u64::MAX / 2, ..plan(4) };
    let report = verify(&endless, &memory, &mut |_| KeepGoing::Stop).unwrap();
    assert!(report.partial && report.faults == 0);
}

#[test]
fn impossible_plans_are_refused_by_key() {
    let keys: Vec<&str> = [
        VerifyPlan { block_bytes: 1000, ..plan(1) },
        VerifyPlan { range_bytes: 1 << 40, ..plan(1) },
        VerifyPlan { range_bytes: 100, ..plan(1) },
        VerifyPlan { threads: 0, ..plan(1) },
    ]
    .iter()
    .map(|wrong| match outcome(wrong, Trouble::None) {
        Err(VerifyError::Plan { key, .. }) => key,
        other => panic!("{other:?}"),
    })
    .collect();
    assert_eq!(keys, ["block_bytes", "range_bytes", "range_bytes", "threads"]);
}

/// After a crash: everything flushed is there, or it is found missing.
#[test]
fn the_journal_finds_what_a_crash_lost() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let path = dir.path().join("disk");
    let mut options = std::fs::File::options();
    let file = options.read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    let plan = VerifyPlan { journal: Some(journal.clone()), ..plan(4) };
    file.set_len(plan.capacity_bytes).unwrap();
    assert_eq!(verify(&plan, &file, &mut |_| KeepGoing::Continue).unwrap().faults, 0);

    let crashed = crashed(&journal, &plan);
    let check =
        |file: &std::fs::File| resume(&crashed, file, &mut |_| KeepGoing::Continue).unwrap();
    assert_eq!(check(&file).faults, 0);
    // Read past the page cache as well, where the file system can.
    let direct = std::fs::File::options().read(true).custom_flags(libc::O_DIRECT).open(&path);
    if let Ok(direct) = direct {
        assert_eq!(check(&direct).faults, 0);
    }
    Medium::write(&file, 5 * 4096, &[0; 4096]).unwrap();
    let report = check(&file);
    assert_eq!(report.findings.len(), 1);
    assert_eq!(
        (report.findings[0].fault, report.findings[0].offset_bytes),
        (VerifyFault::Unwritten, 5 * 4096)
    );

    let told = report.journal.unwrap();
    assert_eq!((told.flushes, told.unused_bytes), (10, 0));
    assert_eq!((report.written_blocks, report.range_blocks), (64, 64));
    assert!(told.promised_blocks > 50 && told.writes == 2000, "{told:?}");

    let refused = |crashed: &Crashed<'_>, file: &std::fs::File| {
        resume(crashed, file, &mut |_| KeepGoing::Continue).unwrap_err()
    };
    let size = Crashed { capacity_bytes: 1 << 30, ..crashed.clone() };
    assert!(matches!(refused(&size, &file), VerifyError::OtherTarget { .. }));
    let serial = Crashed { serial: Some("0TH3R".to_owned()), ..crashed.clone() };
    assert!(matches!(refused(&serial, &file), VerifyError::OtherSerial { .. }));
    let again = verify(&plan, &file, &mut |_| KeepGoing::Continue).unwrap_err();
    assert!(matches!(again, VerifyError::Journal(_)), "a journal is never overwritten");
}

fn crashed<'a>(journal: &'a std::path::Path, plan: &VerifyPlan) -> Crashed<'a> {
    let (capacity_bytes, serial) = (plan.capacity_bytes, plan.serial.clone());
    Crashed { journal, capacity_bytes, serial, sector_bytes: plan.sector_bytes, threads: 4 }
}

/// The default seed twice: a target that drops all that the second run writes keeps blocks of the
/// first, with the same addresses and generations.
#[test]
fn what_an_earlier_run_with_the_same_seed_left_is_not_taken_for_this_one() {
    struct Deaf<'a>(&'a Memory);
    impl Medium for Deaf<'_> {
        fn read(&self, offset_bytes: u64, out: &mut [u8]) -> io::Result<()> {
            self.0.read(offset_bytes, out)
        }
        fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    let memory = Memory::new(64 * 4096, Trouble::None);
    assert_eq!(verify(&plan(1), &memory, &mut |_| KeepGoing::Continue).unwrap().faults, 0);
    let second = VerifyPlan { run: 4712, journal: Some(journal.clone()), ..plan(1) };
    let report = verify(&second, &Deaf(&memory), &mut |_| KeepGoing::Continue).unwrap();
    assert!(report.findings.iter().all(|finding| finding.fault == VerifyFault::Unwritten));
    assert!(report.faults >= 60, "{report:?}");
    // And after a crash: nothing of the run is there, so it is the wrong target or a hopeless one.
    let checked = resume(&crashed(&journal, &second), &memory, &mut |_| KeepGoing::Continue);
    assert!(matches!(checked, Err(VerifyError::NothingOfRun { blocks }) if blocks >= 60));
    assert_ne!(fresh_run().unwrap(), fresh_run().unwrap());
}
