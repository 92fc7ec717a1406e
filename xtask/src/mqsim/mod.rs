//! The speed of our simulator beside that of MQSim (Tavakkol et al., FAST 2018): the same machine and the
//! same load, whole processes, runs in turn.
//!
//! MQSim is not installed or built here: who compares brings it (`--mqsim FILE`). [`machine`] says which
//! machine, how equal the two are, and what is not.

mod machine;
mod run;

use std::path::Path;

use anyhow::{Result, bail};

use crate::workspace::Workspace;
use machine::Load;
use run::Figures;

/// How much is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Rounds with writes: one run of each, in turn.
    pub(crate) rounds: u64,
    /// Rounds with reads, which are short.
    pub(crate) read_rounds: u64,
    /// Reads of a run, of either.
    pub(crate) reads: u64,
    /// Writes of a run of ours.
    pub(crate) writes: u64,
    /// Writes of a run of MQSim's, which starts empty: as often as this the logical pages are written...
    pub(crate) warm_up: u64,
    /// ... before so many percent of the run, at its end, count.
    pub(crate) counted_percent: u64,
}

impl Plan {
    /// `rounds` of the lengths with which figures settle: of pages written at random, as often as there are
    /// pages, seven times over, one in 1100 was never written, which is 0.6 % of write amplification.
    pub(crate) fn new(rounds: u64) -> Plan {
        // MQSim takes minutes for the writes and half a minute for the reads.
        let read_rounds = 4 * rounds;
        Plan {
            rounds,
            read_rounds,
            reads: 8_000_000,
            writes: 4_000_000,
            warm_up: 7,
            counted_percent: 10,
        }
    }

    /// Requests of a run of MQSim's with writes; the warm-up is all but what counts.
    fn their_writes(&self) -> u64 {
        self.warm_up * machine::LOGICAL_PAGES * 100 / (100 - self.counted_percent)
    }
}

/// The goal: MQSim's CPU time by ours.
const READ_GOAL: f64 = 12.0;
const WRITE_GOAL: f64 = 20.0;

/// Write amplification may differ by this much; else the work is not the same.
const SAME_WORK: f64 = 0.01;

/// Compares `ours`, our program, with `theirs`, MQSim; files of the runs go to `directory`.
///
/// # Errors
/// A run failed, or the two are not the same machine.
pub(crate) fn compare(ours: &Path, theirs: &Path, directory: &Path, plan: &Plan) -> Result<bool> {
    std::fs::create_dir_all(directory)?;
    let theirs = std::path::absolute(theirs)?;
    println!(
        "{} rounds of each with reads, {} with writes; CPU time (user and system) of whole processes",
        plan.read_rounds, plan.rounds
    );
    println!("ours: sim:config-a --set {}", machine::OURS.join(" --set "));
    machine::DIFFERENCES.iter().for_each(|text| println!("note: {text}"));
    let mut met = compare_reads(ours, &theirs, directory, plan)?;
    met &= compare_writes(ours, &theirs, directory, plan)?;
    Ok(met)
}

/// A row of a table: the program, its CPU time per request in each round, and its last run.
struct Row {
    name: &'static str,
    cpu_us: Vec<f64>,
    last: Figures,
}

impl Row {
    fn new(name: &'static str) -> Row {
        Row { name, cpu_us: Vec::new(), last: Figures::default() }
    }

    fn add(&mut self, cpu_s: f64, requests: f64, figures: Figures) {
        self.cpu_us.push(cpu_s * 1e6 / requests);
        self.last = figures;
    }
}

const OURS_SUMMARY: &str = "ours, --keep summary";
const OURS_ALL: &str = "ours, every request kept";
const OURS_LOOP: &str = "  of it the loop alone";
const THEIRS: &str = "MQSim";
const THEIRS_STEADY: &str = "MQSim, the steady part";

fn compare_reads(ours: &Path, theirs: &Path, directory: &Path, plan: &Plan) -> Result<bool> {
    let load = &machine::READ;
    let mut rows = [THEIRS, OURS_SUMMARY, OURS_LOOP, OURS_ALL].map(Row::new);
    for seed in 0..plan.read_rounds {
        in_turn(seed, &mut [0, 1, 2], |which| {
            if which == 0 {
                let run = run::theirs(theirs, directory, load, (plan.reads, seed))?;
                rows[0].add(run.cpu_s, run.requests, run);
                return Ok(());
            }
            run_ours(ours, directory, load, (plan.reads, seed, which), &mut rows)
        })?;
    }
    print_table(load, &rows);
    Ok(verdict("random read, whole process", &rows[0], &rows[1], Some(READ_GOAL))
        & verdict("the same with every request kept", &rows[0], &rows[3], None))
}

/// A run of ours, with the summary (1) or all rows (2).
fn run_ours(
    ours: &Path,
    directory: &Path,
    load: &Load,
    (requests, seed, which): (u64, u64, usize),
    rows: &mut [Row],
) -> Result<()> {
    let keep = if which == 1 { "summary" } else { "all" };
    let run = run::ours(ours, directory, load, (requests, seed, keep))?;
    let (requests, in_loop) = (run.requests, run.cpu_s_parts.first().map_or(0.0, |part| part.1));
    let count = rows.len();
    let row = if which == 1 { count - 3 } else { count - 1 };
    rows[row].add(run.cpu_s, requests, run.clone());
    if which == 1 {
        rows[row + 1].add(in_loop, requests, run);
    }
    Ok(())
}

fn compare_writes(ours: &Path, theirs: &Path, directory: &Path, plan: &Plan) -> Result<bool> {
    let load = &machine::WRITE;
    let (all, warm) = (plan.their_writes(), plan.warm_up * machine::LOGICAL_PAGES);
    // The same seed gives the same run, up to its end: what a shorter one counted is the warm-up's.
    let before = run::theirs(theirs, directory, load, (warm, 0))?;
    let mut rows = [THEIRS_STEADY, THEIRS, OURS_SUMMARY, OURS_LOOP, OURS_ALL].map(Row::new);
    let mut programs = (0.0, 0.0);
    for seed in 0..plan.rounds {
        in_turn(seed, &mut [0, 1, 2], |which| {
            if which > 0 {
                return run_ours(ours, directory, load, (plan.writes, seed, which), &mut rows);
            }
            let run = run::theirs(theirs, directory, load, (all, seed))?;
            if seed == 0 {
                programs = (run.programs - before.programs, run.requests - before.requests);
            }
            let (cpu_s, requests) = counted(&run, plan)?;
            rows[0].add(cpu_s, requests, run.clone());
            rows[1].add(run.cpu_s, run.requests, run);
            Ok(())
        })?;
    }
    print_table(load, &rows);
    let amplification = (programs.0 / programs.1, rows[2].last.programs / rows[2].last.requests);
    let same = (amplification.1 / amplification.0 - 1.0).abs() <= SAME_WORK;
    println!(
        "write amplification in the part that counts: MQSim {:.3}, ours {:.3}: {}",
        amplification.0,
        amplification.1,
        if same { "the same work" } else { "NOT THE SAME WORK" }
    );
    let what = "steady random write, ours whole, MQSim's steady part";
    Ok(same
        & verdict(what, &rows[0], &rows[2], Some(WRITE_GOAL))
        & verdict("the same with every request kept", &rows[0], &rows[4], None)
        & verdict("whole by whole, MQSim's warm-up in it", &rows[1], &rows[2], None))
}

/// Runs each of `which`, in an order that turns round from one round to the next.
fn in_turn(
    round: u64,
    which: &mut [usize],
    mut run: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    if round % 2 == 1 {
        which.reverse();
    }
    which.iter().try_for_each(|one| run(*one))
}

/// CPU time and requests of the last percents of a run of MQSim's.
fn counted(run: &Figures, plan: &Plan) -> Result<(f64, f64)> {
    let from = (100 - plan.counted_percent) as f64;
    let Some((percent, cpu_s)) = run.cpu_s_parts.iter().find(|(percent, _)| *percent >= from)
    else {
        bail!("MQSim did not say when {from} % were done");
    };
    Ok((run.cpu_s - cpu_s, run.requests * (100.0 - percent) / 100.0))
}

fn print_table(load: &Load, rows: &[Row]) {
    println!(
        "\n{:28} {:>9} {:>9} {:>8} {:>11} {:>11} {:>11}",
        load.name, "CPU us", "spread", "requests", "latency us", "flash reads", "programs"
    );
    for Row { name, cpu_us, last } in rows {
        println!(
            "{name:28} {:9.3} {:>7.1} % {:7.1}M {:11.1} {:11.3} {:11.3}",
            median(cpu_us),
            100.0 * spread(cpu_us) / median(cpu_us),
            last.requests / 1e6,
            last.latency_us,
            last.reads / last.requests,
            last.programs / last.requests,
        );
    }
}

/// Prints how many times the CPU time of `ours` is that of `theirs`, round by round; false where that is below
/// the `goal` for sure.
fn verdict(what: &str, theirs: &Row, ours: &Row, goal: Option<f64>) -> bool {
    let ratios: Vec<f64> = theirs.cpu_us.iter().zip(&ours.cpu_us).map(|(t, o)| t / o).collect();
    let (mean, half) = interval(&ratios);
    let (low, high) = (mean - half, mean + half);
    let said = match goal {
        None => String::new(),
        Some(goal) if low >= goal => format!("goal {goal}: met"),
        Some(goal) if high < goal => format!("goal {goal}: NOT MET"),
        Some(goal) => format!("goal {goal}: cannot tell"),
    };
    println!("{what:54} {mean:6.2} times ({low:.2} to {high:.2})  {said}");
    goal.is_none_or(|goal| high.is_nan() || high >= goal)
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Half of the distance from the lowest to the highest.
fn spread(values: &[f64]) -> f64 {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (high - low) / 2.0
}

/// Mean of `values` and half of its 95 % interval; unknown for a single value.
fn interval(values: &[f64]) -> (f64, f64) {
    /// Two-sided 95 % points of Student's t with 1, 2, ... degrees of freedom.
    const STUDENT: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, f64::NAN);
    }
    // With more digits the last column is a little too wide.
    let student = STUDENT[(values.len() - 2).min(STUDENT.len() - 1)];
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, student * (squares / (count - 1.0) / count).sqrt())
}

/// Where the files of the runs go.
pub(crate) fn directory(workspace: &Workspace) -> std::path::PathBuf {
    workspace.target_directory.join("mqsim")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_counts_is_the_last() {
        let plan = Plan { counted_percent: 10, ..Plan::new(1) };
        let run = Figures {
            requests: 1000.0,
            cpu_s: 9.0,
            cpu_s_parts: vec![(0.0, 0.1), (85.0, 5.0), (90.0, 7.0), (95.0, 8.0)],
            ..Figures::default()
        };
        assert_eq!(counted(&run, &plan).unwrap(), (2.0, 100.0));
        let none = Figures { cpu_s_parts: vec![(0.0, 0.1)], ..run };
        assert!(counted(&none, &plan).is_err());
        // All but the part that counts is warm-up.
        let warm = plan.their_writes() * 9 / 10;
        assert!(warm.abs_diff(7 * machine::LOGICAL_PAGES) <= 1);
    }

    /// 1, 2, 3, 4: mean 2.5, standard error sqrt(5/3)/2, 3.182 of them (a table's figure).
    #[test]
    fn intervals_are_those_of_the_table() {
        let (mean, half) = interval(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(mean, 2.5);
        assert!((half - 3.182 * (5.0_f64 / 3.0).sqrt() / 2.0).abs() < 1e-12);
        assert!(interval(&[1.0]).1.is_nan());
        assert_eq!((median(&[3.0, 1.0, 2.0]), spread(&[3.0, 1.0, 2.0])), (2.0, 1.0));
    }

    #[test]
    fn a_goal_that_is_missed_for_sure_fails() {
        let row = |cpu_us: &[f64]| Row { cpu_us: cpu_us.to_vec(), ..Row::new("") };
        let (theirs, ours) = (row(&[10.0, 10.1, 9.9]), row(&[1.0, 1.0, 1.0]));
        assert!(verdict("", &theirs, &ours, Some(9.0)));
        assert!(verdict("", &theirs, &ours, Some(10.0)));
        assert!(!verdict("", &theirs, &ours, Some(12.0)));
        assert!(verdict("", &theirs, &ours, None));
        // A single round gives no interval.
        assert!(verdict("", &row(&[10.0]), &row(&[1.0]), Some(12.0)));
    }

    #[test]
    fn the_order_turns_round() {
        let mut seen = Vec::new();
        for round in 0..2 {
            in_turn(round, &mut [0, 1, 2], |which| {
                seen.push(which);
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(seen, [0, 1, 2, 2, 1, 0]);
    }
}
