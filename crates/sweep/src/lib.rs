//! Many designs as one table: which of ten thousand?
//!
//! Key types: [`SweepPlan`] (what all designs have in common, what is varied, what they are judged by), [`Axis`] (a key
//! and its values), [`Designs`] (all of a grid, or some that are drawn), [`Sweep`] (a plan that can start, or go on
//! after it was killed), [`SweepResult`] (a row a design, the front, the effects), [`SweepTable`] (the same as Parquet and
//! CSV), [`CostModel`] (what the parts of a device cost), [`Curve`] (figures against one number, with the knee), [`SearchOutcome`] (how a search for the front went),
//! [`Ceiling`] (the highest rate of arrivals within a bound of latency).
//!
//! All designs have the same seed, so that they see the same requests (common random numbers): a difference is due to
//! the designs. A design whose values do not go together, or whose run fails, has its row with the reason, and the rest
//! goes on.
//!
//! Errors are [`Failure`](ssdyno_session::Failure)s with the key of the plan that is wrong.
//!
//! Not here: what a run is (`session`); how progress is shown.

mod axis;
mod bisect;
mod ceiling;
mod constant;
mod cost;
mod curve;
mod curve_page;
mod designs;
mod effects;
mod execute;
mod explore;
mod front;
mod generations;
mod hopeless;
mod interactions;
mod journal;
mod latencies;
mod least_squares;
mod objective;
mod overloads;
mod page;
mod plan;
mod prepare;
mod row;
mod search;
mod shares;
mod spread;
mod swept;
mod table;
mod text;
mod warned;

pub use axis::Axis;
pub use ceiling::{Ceiling, FailedRequests};
pub use cost::CostModel;
pub use curve::{Curve, CurvePoint, Knee};
pub use designs::{DESIGNS_MAX, Designs, Sampling};
pub use execute::{Sweep, SweepProgress};
pub use generations::{SearchEnd, SearchGeneration, SearchOutcome};
pub use objective::{Objective, Requirement};
pub use page::{html, write};
pub use plan::SweepPlan;
pub use row::{
    DesignState, Effect, EffectLevel, Interaction, Interactions, SWEEP_VERSION, Standing,
    SweepFigure, SweepResult, SweepRow,
};
pub use spread::Workers;
pub use swept::RATE;
pub use table::{Cells, SweepTable};
pub use text::text;
