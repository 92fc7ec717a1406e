//! Which steps `check` and `test` consist of.
//!
//! All builds use the dev profile and no RUSTFLAGS, so that steps share what they compile: lints
//! and documentation share checked dependencies; tests, examples and the commands of documents share
//! built ones. Cheap steps come first.

use crate::artifacts;
use crate::circles;
use crate::command::{Cmd, ci};
use crate::layers;
use crate::python;
use crate::report::{Outcome, Step};
use crate::schemas;
use crate::setup;
use crate::shown;
use crate::tidy;
use crate::workspace::Workspace;

/// Systems other than the host that the simulator must compile for.
const CROSS_TARGETS: &[&str] = &["x86_64-apple-darwin", "x86_64-pc-windows-gnu"];

/// Crates that run where there is no operating system, and a target that has none.
const BARE: &[&str] = &[
    "ssdyno-spec",
    "ssdyno-block",
    "ssdyno-pci",
    "ssdyno-driver-nvme",
    "ssdyno-driver-ring",
    "ssdyno-scsi",
];
const BARE_TARGET: &str = "x86_64-unknown-none";

/// Crates that talk to real devices through Linux interfaces and are left out elsewhere.
const LINUX_ONLY: &[&str] = &["ssdyno-bench"];

/// Packages are made for it: its C library declares some calls of Linux in another way than that of the machines that
/// we test on.
const PACKAGED_TARGET: &str = "x86_64-unknown-linux-musl";

/// The steps of `cargo xtask check`.
pub(crate) fn check(workspace: &Workspace) -> Vec<Step> {
    let mut steps = rules(workspace);
    steps.push(cargo_tests("quick-tests", workspace, &["--lib", "--bins"]));
    steps
}

/// The steps of `cargo xtask test`: those of [`check`], with all tests instead of the quick ones.
pub(crate) fn test(workspace: &Workspace) -> Vec<Step> {
    let mut steps = rules(workspace);
    steps.push(Step::new("browser", |_| Ok(browser())));
    // Without target flags cargo runs unit, integration and documentation tests and builds examples.
    steps.push(cargo_tests("tests", workspace, &[]));
    steps.push(Step::new("examples", examples));
    steps.push(Step::new("python", python::test));
    steps.push(Step::new("commands", shown::exist::check));
    steps.push(Step::new("commands-run", shown::trial::check));
    steps.push(Step::new("schemas", schemas::verify).rerun_by("cargo xtask schemas --check"));
    steps.extend(CROSS_TARGETS.iter().map(|target| cross(workspace, target)));
    let bare = BARE.iter().flat_map(|package| ["-p", package]);
    let cmd = Cmd::cargo(&workspace.root, ["check", "--no-default-features"]).args(bare);
    steps.push(check_for(BARE_TARGET, cmd));
    let linux_only = LINUX_ONLY.iter().flat_map(|package| ["-p", package]);
    steps.push(check_for(PACKAGED_TARGET, Cmd::cargo(&workspace.root, ["check"]).args(linux_only)));
    steps
}

/// The steps without a test to run.
fn rules(workspace: &Workspace) -> Vec<Step> {
    let root = &workspace.root;
    let fmt = Cmd::cargo(root, ["fmt", "--all", "--check"]);
    let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let docs = Cmd::cargo(root, ["doc", "--workspace", "--no-deps"]);
    vec![
        Step::new("tools", |_| setup::tools()),
        cargo_step("format", fmt),
        Step::new("layers", |w| Ok(listed(&layers::breaches(w)))),
        Step::new("circles", |w| Ok(listed(&circles::breaches(w)?))),
        Step::new("tidy", |w| tidy::check(&w.root)),
        cargo_step("lints", Cmd::cargo(root, lints)),
        cargo_step("docs", docs.env("RUSTDOCFLAGS", "-D warnings")),
    ]
}

/// Makes sure that there is a browser, without which the tests of the page skip themselves.
fn browser() -> Outcome {
    match setup::program("chromedriver", "chromium-driver") {
        Ok(()) => Outcome::Passed,
        Err(missing) if ci() => Outcome::Failed(format!("{missing:#}")),
        Err(missing) => {
            eprintln!("WARNING: the page is not tested in a browser: {missing:#}");
            Outcome::Skipped(format!("{missing:#}"))
        }
    }
}

/// A step that is one cargo call.
fn cargo_step(name: &str, cmd: Cmd) -> Step {
    let rerun = cmd.to_string();
    Step::new(name, move |_| Ok(Outcome::of_command(cmd.clone().announced().stream()?)))
        .rerun_by(rerun)
}

/// Where the random cases of property tests begin, if [`PROPTEST_SEED`] says nothing else. The same
/// each time, so that a change passes or fails for what it changes; new cases are the business of
/// [`crate::soak`] and of plain `cargo test`.
const FIRST_SEED: &str = "1";

/// The variable from which `proptest` reads its seed.
const PROPTEST_SEED: &str = "PROPTEST_RNG_SEED";

/// A step that is one `cargo test` call; stored outputs are compared, never rewritten.
fn cargo_tests(name: &str, workspace: &Workspace, flags: &[&str]) -> Step {
    let cmd = Cmd::cargo(&workspace.root, ["test", "--workspace", "--no-fail-fast"])
        .args(flags.iter().copied())
        .env(PROPTEST_SEED, std::env::var(PROPTEST_SEED).unwrap_or_else(|_| FIRST_SEED.to_owned()))
        .env("INSTA_UPDATE", "no");
    let rerun = cmd.to_string();
    Step::new(name, move |_| {
        let (ok, counts) = cmd.clone().announced().stream_tests()?;
        Ok(Outcome::Tests { ok, counts })
    })
    .rerun_by(rerun)
}

/// Runs every example: one that no longer works misleads its reader.
fn examples(workspace: &Workspace) -> anyhow::Result<Outcome> {
    if workspace.targets_of_kind("example").is_empty() {
        return Ok(Outcome::Skipped("there are no examples".to_owned()));
    }
    let mut broken = Vec::new();
    for example in artifacts::programs(workspace)?.iter().filter(|a| a.kind == "example") {
        println!("example {} of {}", example.name, example.package);
        if !Cmd::new(example.executable.to_string_lossy()).dir(&workspace.root).stream()? {
            broken.push(format!("cargo run -p {} --example {}", example.package, example.name));
        }
    }
    Ok(listed(&broken))
}

/// `cargo check` of everything but real-device code for another system. A check runs no linker,
/// but build scripts do run, so a dependency that compiles C fails here: choose one that does not.
fn cross(workspace: &Workspace, target: &'static str) -> Step {
    let mut cmd = Cmd::cargo(&workspace.root, ["check", "--workspace", "--exclude", "xtask"]);
    for package in LINUX_ONLY.iter().filter(|package| workspace.has(package)) {
        cmd = cmd.args(["--exclude", package]);
    }
    check_for(target, cmd)
}

/// `cmd` for `target`, whose standard library is fetched where it is missing.
fn check_for(target: &'static str, cmd: Cmd) -> Step {
    let cmd = cmd.args(["--target", target]);
    let rerun = cmd.to_string();
    Step::new(format!("check-{target}"), move |_| match setup::cross_target(target) {
        Ok(()) => Ok(Outcome::of_command(cmd.clone().announced().stream()?)),
        Err(missing) if ci() => Ok(Outcome::Failed(format!("{missing:#}"))),
        Err(missing) => {
            eprintln!("WARNING: not checked for {target}: {missing:#}");
            Ok(Outcome::Skipped(format!("{missing:#}")))
        }
    })
    .rerun_by(rerun)
}

/// Prints findings; the step passed when there are none.
fn listed(findings: &[String]) -> Outcome {
    for finding in findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Outcome::Passed,
        1 => Outcome::Failed("1 finding, listed above".to_owned()),
        n => Outcome::Failed(format!("{n} findings, listed above")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_names_are_unique_and_test_contains_the_rules_of_check() {
        let workspace = Workspace::load().unwrap();
        let names = |steps: Vec<Step>| steps.into_iter().map(|s| s.name).collect::<Vec<_>>();
        let (check, test) = (names(check(&workspace)), names(test(&workspace)));
        for plan in [&check, &test] {
            let mut sorted = plan.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), plan.len());
        }
        for name in check.iter().filter(|name| *name != "quick-tests") {
            assert!(test.contains(name), "`test` lacks the step `{name}` of `check`");
        }
    }
}
