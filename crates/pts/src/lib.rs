//! The SNIA *Solid State Storage Performance Test Specification* (PTS) 2.0.2: IOPS, throughput and
//! latency of a device that is in steady state, measured in rounds.
//!
//! Key types: [`PtsPlan`] (which test, how long, where), which [opens](PtsPlan::open) its target, simulated or
//! real, and [drives](PtsPlan::execute) it through purge, preconditioning and rounds, tells an
//! [`Observer`](ssdyno_session::Observer) how far it is, and gives a [`PtsResult`]; [`Window`], the rule that says when
//! a device is steady. [`text`] and [`html`] show a result.
//!
//! Errors: [`Failure`](ssdyno_session::Failure) says what is wrong and what to do. What ends a test under way leaves all
//! rounds measured until then in its result, marked partial.
//!
//! Not here: write saturation and the optional tests of the specification; power. A write cache
//! that the drive may switch is left as it is.

mod doubt;
mod flow;
mod page;
mod plan;
mod result;
mod rule;
mod target;
mod text;

pub use page::html;
pub use plan::{PtsPlan, Test};
pub use result::{
    Average, PtsCell, PtsHistogram, PtsPart, PtsResult, PtsStep, Round, Settings, Tracked, schema,
};
pub use rule::{RANGE_MOST, SLOPE_MOST, WINDOW_ROUNDS, Window};
pub use text::text;
