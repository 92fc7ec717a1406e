//! Runs steps one after the other, times them, and closes with a table and one line of figures.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::workspace::Workspace;

/// How many checks went which way. A test counts as one check, and so does a step without tests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Checks that passed.
    pub(crate) passed: u64,
    /// Checks that failed.
    pub(crate) failed: u64,
    /// Checks that did not run: ignored tests, steps whose tools are missing.
    pub(crate) skipped: u64,
}

impl Counts {
    /// One passed check.
    pub(crate) const ONE_PASSED: Self = Self { passed: 1, failed: 0, skipped: 0 };
    /// One failed check.
    pub(crate) const ONE_FAILED: Self = Self { passed: 0, failed: 1, skipped: 0 };
    /// One skipped check.
    pub(crate) const ONE_SKIPPED: Self = Self { passed: 0, failed: 0, skipped: 1 };

    /// Reads the line with which each test binary closes; any other line counts nothing.
    ///
    /// The form is `test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; …`.
    pub(crate) fn of_result_line(line: &str) -> Self {
        let Some(figures) = line.trim_start().strip_prefix("test result: ") else {
            return Self::default();
        };
        let figure = |label: &str| {
            let before = figures.split(label).next().unwrap_or_default().trim_end();
            let number = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            number.parse().unwrap_or(0)
        };
        Self {
            passed: figure(" passed;"),
            failed: figure(" failed;"),
            skipped: figure(" ignored;"),
        }
    }

    fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All well.
    Passed,
    /// Ran tests; the step passed when none of them failed and the command said so too.
    Tests {
        /// Whether the command exited with 0.
        ok: bool,
        /// Tests by result.
        counts: Counts,
    },
    /// Found something wrong; the text says what, in one line.
    Failed(String),
    /// Could not run; the text says what is missing and what to type.
    Skipped(String),
}

impl Outcome {
    /// [`Outcome::Passed`] when `ok`, else [`Outcome::Failed`] with a pointer to the output.
    pub(crate) fn of_command(ok: bool) -> Self {
        if ok { Self::Passed } else { Self::Failed("see its output above".to_owned()) }
    }

    fn counts(&self) -> Counts {
        match self {
            Self::Passed => Counts::ONE_PASSED,
            Self::Failed(_) => Counts::ONE_FAILED,
            Self::Skipped(_) => Counts::ONE_SKIPPED,
            // A binary that aborts (or does not compile) prints no result line: count the step.
            Self::Tests { ok: false, counts } if counts.failed == 0 => {
                Counts { failed: 1, ..*counts }
            }
            Self::Tests { ok: true, counts } if counts.is_empty() => Counts::ONE_PASSED,
            Self::Tests { counts, .. } => *counts,
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Skipped(_) => "skipped",
            _ if self.counts().failed > 0 => "FAILED",
            _ => "ok",
        }
    }

    fn note(&self) -> String {
        match self {
            Self::Passed => String::new(),
            Self::Failed(text) | Self::Skipped(text) => text.clone(),
            Self::Tests { counts: c, ok } => {
                let mut text = format!("{} passed", c.passed);
                if c.failed > 0 {
                    text += &format!(", {} failed", c.failed);
                }
                if c.skipped > 0 {
                    text += &format!(", {} ignored", c.skipped);
                }
                if !ok && c.failed == 0 {
                    text += ", then the build or a test binary broke";
                }
                text
            }
        }
    }
}

/// The action of a step.
pub(crate) type Action = Box<dyn Fn(&Workspace) -> Result<Outcome>>;

/// One named check.
pub(crate) struct Step {
    /// Short, unique in its plan; what `--only` takes.
    pub(crate) name: String,
    /// The command that runs this check alone; empty means `cargo xtask PLAN --only NAME`.
    pub(crate) rerun: String,
    /// The check.
    pub(crate) action: Action,
}

impl Step {
    /// A step that is rerun through `--only`.
    pub(crate) fn new(
        name: impl Into<String>,
        action: impl Fn(&Workspace) -> Result<Outcome> + 'static,
    ) -> Self {
        Self { name: name.into(), rerun: String::new(), action: Box::new(action) }
    }

    /// Names a command of its own for running this step again.
    pub(crate) fn rerun_by(mut self, command: impl ToString) -> Self {
        self.rerun = command.to_string();
        self
    }
}

struct Done {
    name: String,
    took: Duration,
    outcome: Outcome,
    rerun: String,
}

/// Runs the steps of a plan and prints the table; `Ok(true)` when none failed.
///
/// # Errors
/// When `only` names a step that the plan does not have.
pub(crate) fn run(
    workspace: &Workspace,
    plan: &str,
    mut steps: Vec<Step>,
    only: &[String],
) -> Result<bool> {
    select(&mut steps, only)?;
    let (total, start) = (steps.len(), Instant::now());
    let mut done = Vec::with_capacity(total);
    for (index, step) in steps.into_iter().enumerate() {
        println!("\n── {} ({}/{total})", step.name, index + 1);
        let began = Instant::now();
        let outcome =
            (step.action)(workspace).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        let took = began.elapsed();
        println!("── {}: {} in {}", step.name, outcome.label(), seconds(took));
        let rerun = if step.rerun.is_empty() {
            format!("cargo xtask {plan} --only {}", step.name)
        } else {
            step.rerun
        };
        if outcome.counts().failed > 0 {
            println!("   {}\n   run it again: {rerun}", outcome.note());
        }
        done.push(Done { name: step.name, took, outcome, rerun });
    }
    let (text, sum) = table(&done, start.elapsed());
    println!("\n{text}");
    Ok(sum.failed == 0)
}

fn select(steps: &mut Vec<Step>, only: &[String]) -> Result<()> {
    for name in only {
        if !steps.iter().any(|step| step.name == *name) {
            let names: Vec<_> = steps.iter().map(|step| step.name.as_str()).collect();
            bail!("no step is called `{name}`; the steps are: {}", names.join(", "));
        }
    }
    steps.retain(|step| only.is_empty() || only.contains(&step.name));
    Ok(())
}

fn table(done: &[Done], total: Duration) -> (String, Counts) {
    let width = done.iter().map(|d| d.name.len()).max().unwrap_or(0).max("total".len());
    let mut text = String::new();
    let mut sum = Counts::default();
    for d in done {
        let line = format!(
            "{:width$}  {:>8}  {:7}  {}",
            d.name,
            seconds(d.took),
            d.outcome.label(),
            d.outcome.note()
        );
        text += line.trim_end();
        text.push('\n');
        sum += d.outcome.counts();
    }
    text += &format!("{:width$}  {:>8}\n", "total", seconds(total));
    for d in done.iter().filter(|d| d.outcome.counts().failed > 0) {
        text += &format!("to run `{}` again: {}\n", d.name, d.rerun);
    }
    text += &format!("{} passed, {} failed, {} skipped", sum.passed, sum.failed, sum.skipped);
    (text, sum)
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(name: &str, outcome: Outcome) -> Done {
        let rerun = format!("again {name}");
        Done { name: name.to_owned(), took: Duration::from_millis(1500), outcome, rerun }
    }

    #[test]
    fn result_line_is_counted_and_others_are_not() {
        let line =
            "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(Counts::of_result_line(line), Counts { passed: 12, failed: 3, skipped: 1 });
        assert!(Counts::of_result_line("test a ... ok").is_empty());
        assert!(Counts::of_result_line("7 passed; 1 failed;").is_empty());
    }

    #[test]
    fn table_closes_with_the_sum_and_names_reruns() {
        let counts = Counts { passed: 5, failed: 0, skipped: 2 };
        let (text, sum) = table(
            &[
                done("fmt", Outcome::Failed("bad".into())),
                done("tests", Outcome::Tests { ok: true, counts }),
                done("cross", Outcome::Skipped("no target".into())),
            ],
            Duration::from_secs(3),
        );
        assert_eq!(sum, Counts { passed: 5, failed: 1, skipped: 3 });
        assert!(text.ends_with("\n5 passed, 1 failed, 3 skipped"), "{text}");
        assert!(text.contains("to run `fmt` again: again fmt"), "{text}");
        assert!(!text.contains("again: again tests"), "{text}");
    }

    #[test]
    fn broken_build_fails_even_without_failed_tests() {
        let outcome = Outcome::Tests { ok: false, counts: Counts::ONE_PASSED };
        assert_eq!(outcome.label(), "FAILED");
        assert_eq!(outcome.counts().failed, 1);
    }

    #[test]
    fn unknown_step_is_refused_with_the_known_ones() {
        let mut steps = vec![Step::new("fmt", |_| Ok(Outcome::Passed))];
        let error = select(&mut steps, &["fnt".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("`fnt`") && error.contains("fmt"), "{error}");
    }
}
