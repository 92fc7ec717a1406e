//! The papers' tables and figures: what is printed, what the printed parameters give, what a
//! corrected model gives, and where the paper cannot be right.
//!
//! Key types: [`run`] takes a [`Selector`] such as `S3/table5` and [`Options`] and gives a
//! [`Report`]: [`Cell`]s, [`Claim`]s, [`Figure`]s and the [`RunSummary`] of every simulation behind
//! them. The report serialises to the published shape and prints itself ([`Report::text`]).
//!
//! The numbers live in `papers/<paper>/printed.toml`, the runs in `plan.toml`, remarks for people
//! in `notes.md`; this crate holds formulas, checks and drawing.
//!
//! Errors: [`PaperError`] says what cannot be selected or run and what to do. A trace that is not
//! there is no error: its cells stay empty and say which option supplies it.
//!
//! Not here: papers other than S3, measurements on real devices.

mod chart;
mod error;
mod options;
mod report;
mod s3;
mod selector;
mod text;

pub use error::PaperError;
pub use options::{Options, Progress};
pub use report::{Cell, Claim, Figure, Report, RunSummary};
pub use selector::Selector;
pub use ssdyno_rig::Flow;

/// Re-runs what `selector` names.
///
/// `progress` is called every few milliseconds; when it says [`Flow::Stop`], the simulations end
/// early and the report is marked partial.
///
/// # Errors
/// A selector that names nothing, a trace that cannot be read, a preset that is broken.
pub fn run(
    selector: &str,
    options: &Options,
    progress: &mut dyn FnMut(&Progress) -> Flow,
) -> Result<Report, PaperError> {
    let selector = selector.parse().unwrap_or_else(|never| match never {});
    s3::run(&selector, options, progress)
}

/// What can be selected, with a title each.
pub fn selectable() -> Result<Vec<(String, String)>, PaperError> {
    s3::selectable()
}
