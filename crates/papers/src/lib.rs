//! The papers' tables and figures: what is printed, what the printed parameters give, what a
//! corrected model gives, and where the paper cannot be right.
//!
//! Key types: [`run`] takes a [`Selector`] such as `S3/table5` and [`PapersOptions`] and gives a
//! [`PapersReport`]: [`FigureCell`]s, [`Claim`]s, [`Figure`]s and the [`RunSummary`] of every simulation behind
//! them. The report serialises to the published shape and prints itself ([`PapersReport::text`]).
//!
//! The numbers live in `papers/<paper>/printed.toml`, the runs in `plan.toml`, remarks for people
//! in `notes.md`; this crate holds formulas, checks and drawing.
//!
//! Errors: a [`Failure`] says what cannot be selected or run and what to do. A trace that is not
//! there is no error: its cells stay empty and say which option supplies it.
//!
//! Not here: measurements on real devices, but for S4's table of what system calls and switches cost
//! on the machine at hand, and its experiments over a network ([`HostsOptions`]).

mod answer;
mod assumptions;
mod cache;
mod chart;
mod claims;
mod disks;
mod error;
mod mean;
mod measured;
mod options;
mod presets;
mod printed;
mod report;
mod s0;
mod s1;
mod s2;
mod s3;
mod s4;
mod selector;
mod series;
#[cfg(test)]
mod tests;
mod text;
mod traces;
mod vary;

pub use cache::{CacheCounts, RunCache, RunsProgress};
pub use options::{HostsOptions, PapersOptions, PapersProgress, Vary};
pub use report::{
    Assumption, Claim, ClaimState, Figure, FigureCell, FigureTable, PapersReport, RunSummary, Trial,
};
pub use selector::Selector;
pub use ssdyno_figures::KeepGoing;
use ssdyno_session::Failure;

/// Re-runs a part of a paper.
type Rerun = fn(
    &Selector,
    &PapersOptions,
    &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<PapersReport, Failure>;

/// Identifiers, with a title each.
type Titles = Vec<(String, String)>;

/// A paper that can be re-run: one folder here, one in `papers/`, one line in [`PAPERS`].
struct Paper {
    /// First part of everything's identifier.
    id: &'static str,
    run: Rerun,
    selectable: fn() -> Result<Titles, Failure>,
}

/// All of them, by number.
const PAPERS: &[Paper] = &[
    Paper { id: "disks", run: disks::run, selectable: disks::selectable },
    Paper { id: "S0", run: s0::run, selectable: s0::selectable },
    Paper { id: "S1", run: s1::run, selectable: s1::selectable },
    Paper { id: "S2", run: s2::run, selectable: s2::selectable },
    Paper { id: "S3", run: s3::run, selectable: s3::selectable },
    Paper { id: "S4", run: s4::run, selectable: s4::selectable },
];

/// Re-runs what `selector` names.
///
/// `progress` is called every few milliseconds; when it says [`KeepGoing::Stop`], the simulations end
/// early and the report is marked partial.
///
/// # Errors
/// A selector that names nothing, a trace that cannot be read, a preset that is broken.
pub fn run(
    selector: &str,
    options: &PapersOptions,
    progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<PapersReport, Failure> {
    let selector: Selector = selector.parse().unwrap_or_else(|never| match never {});
    let Some(paper) = PAPERS.iter().find(|paper| selector.is_about(paper.id)) else {
        return Err(error::nothing(&selector, selectable()?));
    };
    // Only S4 has experiments over a network. For another paper the option would be ignored, and
    // the user would take simulated figures for measured ones.
    if options.hosts.is_some() && paper.id != "S4" {
        return Err(Failure::usage(format!("`{selector}` is not measured over a network"))
            .with_help("only S4 can be measured over a network: `ssdyno papers S4 --hosts`"));
    }
    let cache = &options.cache;
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    cache.begin(options.label(&selector), options.threads.unwrap_or_else(cores));
    let report = (paper.run)(&selector, options, &mut |p| {
        progress(&PapersProgress { runs: cache.progress(), running: p.running.clone(), ..*p })
    });
    // An interrupted report does not know all of its runs. Its list of times is marked as
    // incomplete, so the next estimate says that more runs may come.
    cache.end(report.as_ref().is_ok_and(|report| !report.partial));
    report
}

/// What can be selected, with a title each.
pub fn selectable() -> Result<Vec<(String, String)>, Failure> {
    let all: Result<Vec<_>, _> = PAPERS.iter().map(|paper| (paper.selectable)()).collect();
    Ok(all?.concat())
}
