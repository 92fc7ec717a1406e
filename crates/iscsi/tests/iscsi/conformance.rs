//! The independent suite for iSCSI targets, `iscsi-test-cu` of libiscsi, against the whole path:
//! this crate, SCSI translation, NVMe driver, connector, controller, flash.

use std::collections::BTreeMap;
use std::process::Command;

use crate::device::{self, Blocks};

/// Tests that fail whatever the block, each with the reason: none of them is a fault of ours, or it
/// would be mended.
const EXPECTED_FAILURES: &[(&str, &str)] =
    &[("CompareAndWrite.Simple", ZERO_BLOCKS), ("CompareAndWrite.Miscompare", ZERO_BLOCKS)];

const ZERO_BLOCKS: &str = "version 1.19 asks for 256 blocks in a field of 8 bits: the CDB says 0, \
                           which is no error (SBC-3, 5.2); mended in 1.20, which passes";

/// Those that fail at 4 KiB beside them.
const EXPECTED_FAILURES_AT_4_KIB: &[(&str, &str)] = &[
    ("ProutReserve.AccessEA", HALF_A_BLOCK),
    ("ProutReserve.AccessWE", HALF_A_BLOCK),
    ("ProutReserve.AccessEARO", HALF_A_BLOCK),
    ("ProutReserve.AccessWERO", HALF_A_BLOCK),
    ("ProutReserve.AccessEAAR", HALF_A_BLOCK),
    ("ProutReserve.AccessWEAR", HALF_A_BLOCK),
];

const HALF_A_BLOCK: &str = "version 1.19 sends 512 bytes for a WRITE of one block, whatever the block \
                            (verify_write_works): data that end within a block are refused with \
                            INVALID FIELD IN COMMAND INFORMATION UNIT; mended in 1.20, which passes";

/// Tests that find nothing to do, by what the suite says, and why that is right.
const EXPECTED_SKIPS: &[(&str, &str)] = &[
    ("is not removable", "a namespace is no removable medium"),
    ("is not implemented", "third-party copy and atomic writes are not translated"),
    ("LBPPB < 2", "one logical block in a physical one"),
    ("not write-protected", "the namespace can be written"),
    ("--allow-sanitize", "SANITIZE is not translated"),
    ("does not support 0-blocks", "WSNZ: WRITE SAME of no blocks is refused"),
];

/// How a test of the suite ended.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Ending {
    Passed,
    Skipped(String),
    Failed(String),
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
            skipped.map_or(Ending::Passed, |(_, why)| Ending::Skipped(why.trim().to_owned()))
        } else if rest.trim().starts_with("FAILED") {
            Ending::Failed(said_before)
        } else {
            continue;
        };
        endings.insert(name.clone(), ending);
        open = None;
    }
    endings
}

#[test]
#[ignore = "half a minute, and needs iscsi-test-cu: cargo xtask scsi-suite"]
fn independent_suite_passes_with_blocks_of_512_bytes() {
    judge(Blocks::Small, EXPECTED_FAILURES);
}

#[test]
#[ignore = "half a minute, and needs iscsi-test-cu: cargo xtask scsi-suite"]
fn independent_suite_passes_with_blocks_of_4_kib() {
    judge(Blocks::Large, &[EXPECTED_FAILURES, EXPECTED_FAILURES_AT_4_KIB].concat());
}

/// Runs the suite; what fails without being expected to is wrong.
fn judge(blocks: Blocks, expected_failures: &[(&str, &str)]) {
    if Command::new("iscsi-test-cu").arg("--help").output().is_err() {
        println!("skipped: iscsi-test-cu is missing; type: sudo apt-get install libiscsi-bin");
        return;
    }
    let server = device::serve(blocks.keys());
    let url = format!("iscsi://{}/{}/0", server.address(), device::NAME);
    // The address twice: the tests for several paths run, too.
    let suite = Command::new("timeout")
        .args(["300", "iscsi-test-cu", "--dataloss", "--verbose", "--test=ALL", &url, &url])
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&suite.stdout);
    let endings = endings(&output);
    let mut wrong = Vec::new();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (name, ending) in &endings {
        let expected = expected_failures.iter().find(|(test, _)| test == name);
        match (ending, expected) {
            (Ending::Failed(_), Some((_, why))) => {
                println!("{blocks}: failed as expected: {name}: {why}")
            }
            (Ending::Failed(said), None) => wrong.push(format!("{name} failed: {said}")),
            (_, Some(_)) => wrong.push(format!("{name} no longer fails: take it off the list")),
            (Ending::Skipped(said), None) => {
                let known = EXPECTED_SKIPS.iter().find(|(text, _)| said.contains(text));
                match known {
                    Some((_, why)) => println!("{blocks}: skipped: {name}: {why}"),
                    None => wrong.push(format!("{name} was skipped: {said}")),
                }
            }
            (Ending::Passed, None) => {}
        }
        match ending {
            Ending::Passed => passed += 1,
            Ending::Skipped(_) => skipped += 1,
            Ending::Failed(_) => failed += 1,
        }
    }
    println!("iscsi-test-cu, {blocks}: {passed} passed, {failed} failed, {skipped} skipped");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let begun = output.lines().filter(|line| line.starts_with("  Test: ")).count();
    assert!(begun >= 200 && endings.len() == begun, "the suite broke off:\n{output}");
}

#[test]
fn endings_are_read_from_the_text() {
    let text = "Suite: A\n  Test: One ...passed\n  Test: Two ...    [SKIPPED] no such thing.\n\
                passed\n  Test: Three ...    [FAILED] oh\nFAILED\n    1. x.c:71\nSuite: B\n  Test: \
                One ...    [FAILED] told, but expected\npassed    [FAILED] between\n";
    let ends = endings(text);
    assert_eq!(ends.len(), 4);
    assert_eq!(ends["A.One"], Ending::Passed);
    assert_eq!(ends["A.Two"], Ending::Skipped("no such thing.".to_owned()));
    assert_eq!(ends["A.Three"], Ending::Failed("[FAILED] oh".to_owned()));
    assert_eq!(ends["B.One"], Ending::Passed);
}
