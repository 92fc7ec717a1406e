//! The independent suite for iSCSI targets, `iscsi-test-cu` of libiscsi, against the whole path:
//! this crate, SCSI translation, NVMe driver, connector, controller, flash.

use std::collections::BTreeMap;
use std::process::Command;

use ssdyno_iscsi::{IscsiServer, Portal, UnitOptions};

use crate::device::{self, Blocks};
use crate::disk;

/// The suite's program, where it is not the one on the search path: `cargo xtask scsi-suite --suite`.
const PROGRAM: &str = "SSDYNO_ISCSI_TEST_CU";

/// Tests that ask for what the standards do not want, each with the proof: `docs/scsi_suite.md`. They are
/// counted apart, as neither passed nor failed nor skipped.
const FAULTS_OF_THE_SUITE: &[Fault] = &[
    Fault { later: false, ..Fault::new("CompareAndWrite.Simple", ZERO_BLOCKS) },
    Fault { later: false, ..Fault::new("CompareAndWrite.Miscompare", ZERO_BLOCKS) },
    Fault { later: false, ..Fault::new("iSCSITMF.LUNResetSimpleAsync", TOO_EARLY) },
    Fault { later: true, ..Fault::new("iSCSITMF.AbortTaskSimpleAsync", OWN_QUEUE) },
    Fault { later: true, ..Fault::new("iSCSITMF.LUNResetSimpleAsync", OWN_QUEUE) },
    Fault { later: true, ..Fault::new("iSCSISendTargets.Invalid", NOT_UNDERSTOOD) },
    Fault { later: true, ..Fault::new("CompareAndWrite.InvalidDataOutSize", NOT_CHANGED) },
    Fault { only_large: true, ..Fault::new("ProutReserve.AccessEA", HALF_A_BLOCK) },
    Fault { only_large: true, ..Fault::new("ProutReserve.AccessWE", HALF_A_BLOCK) },
    Fault { only_large: true, ..Fault::new("ProutReserve.AccessEARO", HALF_A_BLOCK) },
    Fault { only_large: true, ..Fault::new("ProutReserve.AccessWERO", HALF_A_BLOCK) },
    Fault { only_large: true, ..Fault::new("ProutReserve.AccessEAAR", HALF_A_BLOCK) },
    Fault { only_large: true, ..Fault::new("ProutReserve.AccessWEAR", HALF_A_BLOCK) },
];

/// A test that asks for what no standard wants.
struct Fault {
    test: &'static str,
    /// Only with blocks of 4 KiB.
    only_large: bool,
    /// In versions after 1.19, not in that.
    later: bool,
    why: &'static str,
}

impl Fault {
    /// With any block, in version 1.19.
    const fn new(test: &'static str, why: &'static str) -> Fault {
        Fault { test, only_large: false, later: false, why }
    }
}

const ZERO_BLOCKS: &str = "version 1.19 asks for 256 blocks in a field of 8 bits: the CDB says 0, \
                           which is no error (SBC-3, 5.2); mended in 1.20";

const HALF_A_BLOCK: &str = "version 1.19 sends 512 bytes for a WRITE of one block, whatever the block \
                            (SBC-3 moves whole logical blocks); mended in 1.20";

const TOO_EARLY: &str = "version 1.19 asserts what its own callback sets, before it has sent the request \
                         that is answered by it; mended in 1.20";

const OWN_QUEUE: &str = "version 1.20 asserts that a command still waits in the initiator's own queue, \
                         from which the library of the same version has sent it; the target answers as \
                         the rest of the test wants";

const NOT_CHANGED: &str = "version 1.20 means to change the number of blocks of its command, but its hook changes all \
                           PDUs except commands; what it sends is right, and is compared";

const NOT_UNDERSTOOD: &str = "version 1.20 takes the answer NotUnderstood to an unknown key, which RFC 7143, 6.2 \
                              demands, for a broken reply, reconnects, and waits for ever for an answer to \
                              the request that it dropped";

/// `Sanitize.Reset` looks four seconds after the beginning of an overwrite that is not to be over by then,
/// and resets in between; it takes 12 s of this drive.
const LARGER: (&str, &str) = ("blocks_per_plane = 64", "blocks_per_plane = 192");

/// `Sanitize.Reservations` has the second path reserve the unit and leaves it so: what comes behind it meets
/// a conflict where there are two paths, and runs by itself.
const BEHIND_A_RESERVATION: &[&str] = &["Sanitize.Reset"];

/// Units of another kind, by the suite's message when it skips a test because it needs one.
fn other_units(blocks: Blocks) -> [(&'static str, UnitOptions); 3] {
    let plain = UnitOptions::default();
    // As drives with 512-byte emulation have it.
    let physical_block_bytes = 8 * blocks.bytes();
    [
        ("not write-protected", UnitOptions { read_only: true, ..plain }),
        ("LBPPB < 2", UnitOptions { physical_block_bytes, ..plain }),
        ("does not support 0-blocks", UnitOptions { write_same_to_end: true, ..plain }),
    ]
}

/// Only later versions than 1.19 have this test.
const LATER_TEST: &str = "CompareAndWrite.MiscompareSense";

/// Disks, all of the device server, and every kind of unit.
const DISK: &[Kind] = &[Kind::Disk];
const BLOCK: &[Kind] = &[Kind::Disk, Kind::Ssd];
const ALL: &[Kind] = &[Kind::Drive, Kind::Disk, Kind::Ssd];

/// Tests that find nothing to do, by the suite's message, and the reason why that is right.
const EXPECTED_SKIPS: &[(&[Kind], &str, &str)] = &[
    (ALL, "is not removable", "no unit here is a removable medium"),
    (BLOCK, "SANITIZE", "the device server has none"),
    (DISK, "is fully provisioned", "a hard disk does not trim"),
    (DISK, "does not support 0-blocks", "a disk is busy for hours with a WRITE SAME to its end"),
    (DISK, "Read6.BeyondEol: it did nothing", "no CDB of 6 bytes names the end of the disk"),
    (ALL, "is not implemented", "there are no third-party copy and no atomic writes"),
    (ALL, "requires an iSCSI session with CHAP_A", "the target asks nobody for a password"),
];

/// How a test of the suite ended.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Ending {
    Passed,
    Skipped(String),
    Failed(String),
}

/// What the suite does not say of a test that finds its session closed, by the test before it.
const RAN_NOTHING: &str = "it did nothing";

impl Ending {
    /// The test before it had closed the session; alone it runs.
    fn wants_a_session(&self) -> bool {
        matches!(self, Ending::Skipped(why) if why == RAN_NOTHING || why.contains("Not an iSCSI device"))
    }
}

/// Every test with its end, from what the suite prints in verbose mode.
fn endings(output: &str) -> BTreeMap<String, Ending> {
    let mut endings = BTreeMap::new();
    let (mut suite, mut open) = (String::new(), None::<(String, String)>);
    for line in output.lines() {
        if let Some(name) = line.strip_prefix("Suite: ") {
            suite = name.trim().to_owned();
            continue;
        }
        let mut rest = line;
        if let Some((name, said)) = line.strip_prefix("  Test: ").and_then(|l| l.split_once(" ..."))
        {
            open = Some((format!("{suite}.{}", name.trim()), String::new()));
            rest = said;
        }
        let Some((name, said)) = &mut open else { continue };
        let said_before = said.clone();
        said.push_str(rest.trim());
        // What comes between two tests follows the word on its line.
        let ending = if rest.trim().starts_with("passed") {
            let skipped = said_before.split_once("[SKIPPED]");
            match skipped {
                Some((_, why)) => Ending::Skipped(why.trim().to_owned()),
                // A test that does something says what it does.
                None if said_before.is_empty() => Ending::Skipped(RAN_NOTHING.to_owned()),
                None => Ending::Passed,
            }
        } else if rest.trim().starts_with("FAILED") {
            let from = said_before.find("[FAILED]").unwrap_or(0);
            Ending::Failed(said_before[from..].chars().take(300).collect())
        } else {
            continue;
        };
        endings.insert(name.clone(), ending);
        open = None;
    }
    endings
}

#[test]
#[ignore = "some minutes, and needs iscsi-test-cu: cargo xtask scsi-suite"]
fn independent_suite_passes_with_blocks_of_512_bytes() {
    judge(Blocks::Small);
}

#[test]
#[ignore = "some minutes, and needs iscsi-test-cu: cargo xtask scsi-suite"]
fn independent_suite_passes_with_blocks_of_4_kib() {
    judge(Blocks::Large);
}

#[test]
#[ignore = "some minutes, and needs iscsi-test-cu: cargo xtask scsi-suite"]
fn independent_suite_passes_over_a_disk_with_blocks_of_512_bytes() {
    judge_units(Blocks::Small, Kind::Disk, |unit| disk::serve(Blocks::Small, unit));
}

#[test]
#[ignore = "some minutes, and needs iscsi-test-cu: cargo xtask scsi-suite"]
fn independent_suite_passes_over_a_disk_with_blocks_of_4_kib() {
    judge_units(Blocks::Large, Kind::Disk, |unit| disk::serve(Blocks::Large, unit));
}

#[test]
#[ignore = "some minutes, and needs iscsi-test-cu: cargo xtask scsi-suite"]
fn independent_suite_passes_over_an_ssd_without_nvme() {
    judge_units(Blocks::Small, Kind::Ssd, disk::serve_ssd);
}

/// What is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A namespace.
    Drive,
    /// A disk, by the device server.
    Disk,
    /// An SSD without an NVMe controller, by the device server.
    Ssd,
}

/// What became of the tests of a run.
#[derive(Debug, Default)]
struct Verdict {
    passed: usize,
    skipped: usize,
    /// Failed, and the suite is at fault.
    refuted: usize,
    /// What should not be.
    wrong: Vec<String>,
}

/// Holds the endings against what is expected of the suite's version.
fn verdict(endings: &BTreeMap<String, Ending>, blocks: Blocks, kind: Kind) -> Verdict {
    let later = endings.contains_key(LATER_TEST);
    let fault = |name: &str| {
        let of_version = FAULTS_OF_THE_SUITE.iter().filter(|fault| fault.later == later);
        let mut applies = of_version.filter(|f| !f.only_large || blocks == Blocks::Large);
        applies.find(|fault| fault.test == name)
    };
    let mut verdict = Verdict::default();
    for (name, ending) in endings {
        match (ending, fault(name)) {
            (Ending::Failed(_), Some(fault)) => {
                verdict.refuted += 1;
                println!("{blocks}: fault of the suite: {name}: {}", fault.why);
            }
            (Ending::Failed(said), None) => verdict.wrong.push(format!("{name} failed: {said}")),
            (_, Some(_)) => verdict.wrong.push(format!("{name} passes: take it off the list")),
            (Ending::Skipped(said), None) => {
                verdict.skipped += 1;
                let told = format!("{name}: {said}");
                let skips = EXPECTED_SKIPS.iter().filter(|(kinds, ..)| kinds.contains(&kind));
                match skips.map(|(_, text, why)| (text, why)).find(|(text, _)| told.contains(*text))
                {
                    Some((_, why)) => println!("{blocks}: skipped: {name}: {why}"),
                    None => verdict.wrong.push(format!("{name} was skipped: {said}")),
                }
            }
            (Ending::Passed, None) => verdict.passed += 1,
        }
    }
    verdict
}

/// The names of all tests, with their suites.
fn all_tests(program: &str) -> Vec<String> {
    let list = Command::new(program).arg("--list").output().unwrap();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    let tests = list.lines().filter_map(|line| line.trim().strip_prefix("ALL."));
    tests.filter(|name| name.contains('.')).map(str::to_owned).collect()
}

/// Runs the suite at a drive.
fn judge(blocks: Blocks) {
    judge_units(blocks, Kind::Drive, |options| {
        let units = device::units_changed(blocks.keys(), LARGER, options);
        device::served(units, Portal::OfConnection)
    });
}

/// Runs the suite; what fails and is not the suite's fault is wrong.
fn judge_units(blocks: Blocks, kind: Kind, serve: impl Fn(UnitOptions) -> IscsiServer) {
    let program = std::env::var(PROGRAM).unwrap_or_else(|_| "iscsi-test-cu".to_owned());
    if Command::new(&program).arg("--help").output().is_err() {
        println!("skipped: {program} is missing; type: sudo apt-get install libiscsi-bin");
        return;
    }
    let server = serve(UnitOptions::default());
    // The address twice: the tests for several paths run, too.
    let run = |server: &IscsiServer, tests: &str, seconds: &str| {
        let url = format!("iscsi://{}/{}/0", server.address(), device::NAME);
        let suite = Command::new("timeout")
            .args([seconds, &program, "--dataloss", "--allow-sanitize", "--verbose"])
            .args(["--Verbose-scsi", &format!("--test={tests}"), &url, &url])
            .output()
            .unwrap();
        endings(&String::from_utf8_lossy(&suite.stdout))
    };
    let mut endings = run(&server, "ALL", "300");
    let alone = |server: &IscsiServer, name: &str| {
        // One of them sleeps for a minute.
        let seconds = if BEHIND_A_RESERVATION.contains(&name) { "120" } else { "20" };
        let ending = run(server, &format!("ALL.{name}"), seconds).remove(name);
        ending.unwrap_or_else(|| Ending::Failed("it hangs".to_owned()))
    };
    // A test that closes the session leaves those behind it without; one that hangs is the last.
    for name in all_tests(&program) {
        let behind = BEHIND_A_RESERVATION.contains(&&*name);
        if behind || endings.get(&name).is_none_or(Ending::wants_a_session) {
            endings.insert(name.clone(), alone(&server, &name));
        }
    }
    // What a plain unit gives no occasion for.
    for (reason, options) in other_units(blocks) {
        if kind == Kind::Disk && options.write_same_to_end {
            continue;
        }
        let skipped =
            |ending: &Ending| matches!(ending, Ending::Skipped(said) if said.contains(reason));
        let server = serve(options);
        for (name, ending) in endings.iter_mut().filter(|(_, ending)| skipped(ending)) {
            println!("{blocks}: {name}: with {options:?}");
            *ending = alone(&server, name);
        }
    }
    assert!(endings.len() >= 200, "the suite has {} tests", endings.len());
    let Verdict { passed, skipped, refuted, wrong } = verdict(&endings, blocks, kind);
    let failed = endings.len() - passed - skipped - refuted;
    println!(
        "{program}, {kind:?}, {blocks}: {passed} passed, {failed} failed, {skipped} skipped, {refuted} where \
         the suite is at fault (docs/scsi_suite.md)"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the suite skips or gets wrong is not passed.
#[test]
fn verdicts_count_apart() {
    let skipped = Ending::Skipped("WRITE ATOMIC is not implemented".to_owned());
    let failed = || Ending::Failed("[FAILED] oh".to_owned());
    let mut endings = BTreeMap::from([
        ("Read10.Simple".to_owned(), Ending::Passed),
        ("WriteAtomic16.Simple".to_owned(), skipped),
        ("CompareAndWrite.Simple".to_owned(), failed()),
        ("ProutReserve.AccessEA".to_owned(), failed()),
    ]);
    let large = verdict(&endings, Blocks::Large, Kind::Drive);
    assert_eq!((large.passed, large.skipped, large.refuted, large.wrong.len()), (1, 1, 2, 0));
    let small = verdict(&endings, Blocks::Small, Kind::Drive);
    assert_eq!((small.refuted, small.wrong.len()), (1, 1), "512 bytes are a block here");
    // A version without these faults has no excuse.
    endings.insert(LATER_TEST.to_owned(), Ending::Passed);
    assert_eq!(verdict(&endings, Blocks::Large, Kind::Drive).wrong.len(), 2);
}

#[test]
fn endings_are_read_from_the_text() {
    let text = "Suite: A\n  Test: One ...    Send READ\npassed\n  Test: Two ...    [SKIPPED] no such thing.\n\
                passed\n  Test: Three ...    [FAILED] oh\nFAILED\n    1. x.c:71\nSuite: B\n  Test: \
                One ...    [FAILED] told, but expected\npassed    [FAILED] between\n  Test: Two \
                ...passed\n";
    let ends = endings(text);
    assert_eq!(ends.len(), 5);
    assert!(ends["B.Two"].wants_a_session() && !ends["A.Two"].wants_a_session());
    assert_eq!(ends["A.One"], Ending::Passed);
    assert_eq!(ends["A.Two"], Ending::Skipped("no such thing.".to_owned()));
    assert_eq!(ends["A.Three"], Ending::Failed("[FAILED] oh".to_owned()));
    assert_eq!(ends["B.One"], Ending::Passed);
}
