//! Tests for as long as one likes: every test, the ignored ones too, with more random cases each
//! round, until the time is used up.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::artifacts::{self, Artifact};
use crate::command::Cmd;
use crate::workspace::Workspace;

/// Random cases per property in the first round; doubled in each one after it.
const FIRST_CASES: u32 = 1024;

/// How often a running test binary is asked whether it is done.
const POLL: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    OutOfTime,
}

/// Soaks for `minutes`; `Ok(true)` when no test failed.
///
/// # Errors
/// When the tests do not build.
pub(crate) fn run(workspace: &Workspace, minutes: u64, filter: Option<&str>) -> Result<bool> {
    let binaries = artifacts::tests(workspace)?;
    let deadline = Instant::now() + Duration::from_secs(minutes * 60);
    let (mut passed, mut failed, mut cut) = (0_u32, Vec::new(), 0_u32);
    let mut cases = FIRST_CASES;
    while Instant::now() < deadline && failed.is_empty() {
        println!("\n── soak: {cases} cases per property");
        for (index, binary) in binaries.iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // A fair share each, so that one slow binary does not starve those behind it.
            let share = left / u32::try_from(binaries.len() - index).unwrap_or(u32::MAX);
            let cmd = command(binary, cases, filter);
            println!("{} ({:.0} s at most)", selector(binary), share.as_secs_f64());
            match within(&cmd, share)? {
                Verdict::Passed => passed += 1,
                Verdict::OutOfTime => cut += 1,
                Verdict::Failed => failed.push(rerun(binary, cases, filter)),
            }
        }
        cases = cases.saturating_mul(2);
    }
    for line in &failed {
        println!("to run it again: {line}");
    }
    println!("{passed} passed, {} failed, {cut} skipped", failed.len());
    if cut > 0 {
        println!("(skipped: stopped when their share of the time was used up)");
    }
    Ok(failed.is_empty())
}

fn command(binary: &Artifact, cases: u32, filter: Option<&str>) -> Cmd {
    Cmd::new(binary.executable.to_string_lossy())
        .args(["--include-ignored", "--quiet"])
        .args(filter)
        .dir(&binary.directory)
        .env("CARGO_MANIFEST_DIR", binary.directory.to_string_lossy())
        .env("PROPTEST_CASES", cases.to_string())
        .env("INSTA_UPDATE", "no")
}

fn rerun(binary: &Artifact, cases: u32, filter: Option<&str>) -> String {
    let filter = filter.map(|f| format!(" {f}")).unwrap_or_default();
    let selector = selector(binary);
    format!("PROPTEST_CASES={cases} cargo test {selector} -- --include-ignored{filter}")
}

/// Runs to the end or to the limit, whichever is first.
fn within(cmd: &Cmd, limit: Duration) -> Result<Verdict> {
    let until = Instant::now() + limit;
    let mut child = cmd.build().spawn().with_context(|| format!("cannot start `{cmd}`"))?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { Verdict::Passed } else { Verdict::Failed });
        }
        if Instant::now() >= until {
            child.kill()?;
            child.wait()?;
            return Ok(Verdict::OutOfTime);
        }
        std::thread::sleep(POLL);
    }
}

/// How cargo names this binary: `-p PACKAGE --test NAME`.
fn selector(binary: &Artifact) -> String {
    let Artifact { package, kind, name, .. } = binary;
    match kind.as_str() {
        "test" | "bin" | "example" | "bench" => format!("-p {package} --{kind} {name}"),
        _ => format!("-p {package} --lib"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rerun_names_the_binary_the_cases_and_the_filter() {
        let mut binary = Artifact {
            executable: "x".into(),
            directory: ".".into(),
            package: "ssdyno-ftl".to_owned(),
            kind: "test".to_owned(),
            name: "suite".to_owned(),
            is_test: true,
        };
        assert_eq!(
            rerun(&binary, 8, Some("gc")),
            "PROPTEST_CASES=8 cargo test -p ssdyno-ftl --test suite -- --include-ignored gc"
        );
        binary.kind = "lib".to_owned();
        assert!(rerun(&binary, 8, None).ends_with("-p ssdyno-ftl --lib -- --include-ignored"));
    }

    #[cfg(unix)]
    #[test]
    fn time_limit_ends_a_child_that_would_go_on() {
        let limit = Duration::from_millis(100);
        assert_eq!(within(&Cmd::new("sleep").args(["60"]), limit).unwrap(), Verdict::OutOfTime);
        let limit = Duration::from_secs(60);
        assert_eq!(within(&Cmd::new("true"), limit).unwrap(), Verdict::Passed);
        assert_eq!(within(&Cmd::new("false"), limit).unwrap(), Verdict::Failed);
    }
}
