//! The ratio of sequential to random throughput of a target, by request size, for reads and for writes
//! (paper S2, *Towards fast profiling of storage devices regarding access sequentiality*).
//!
//! Key types: [`ProfilePlan`] (which target, sizes and method) [opens](ProfilePlan::open) its target, simulated or
//! real, [measures](ProfilePlan::execute) it, reports its progress to an [`Observer`](ssdyno_session::Observer), and
//! returns a [`ProfileResult`].
//! A [`Strategy`] decides which test is next and estimates the sizes that were not tested: [`Adaptive`] measures slices
//! where they narrow the ratios most, [`Serra`] is the paper's tool, [`Full`] its complete profile.
//! [`Method::Capacity`] measures rates at saturation instead ([`CapacityResult`]), of which [`scheduler_file`] makes
//! configuration files, and [`Method::Map`] the latency of reads over the rates of reads and writes ([`MapResult`]).
//! [`text`] and [`html`] show a result; [`pays_from`] is the break-even of an optimisation (S2-18).
//!
//! Errors: [`Failure`](ssdyno_session::Failure) describes the problem and the remedy. What ends a profile partway leaves everything
//! measured until then in its result.
//!
//! Not here: other access patterns than the paper's four; energy; the state of the device before the first test,
//! which stays as it is.

mod adaptive;
mod apart;
mod capacity;
mod columns;
mod credits;
mod error;
mod estimate;
mod filling;
mod findings;
mod first;
mod fit;
mod full;
mod history;
mod kriging;
mod lane;
mod length;
mod loads;
mod map;
mod measure;
mod merge;
mod method;
mod model;
mod page;
mod plan;
mod pool;
mod recency;
mod result;
mod resume;
mod run;
mod serra;
mod session;
mod settle;
mod sizes;
mod solution;
mod stopped;
mod strategy;
mod text;
mod verdict;

pub use adaptive::Adaptive;
pub use capacity::{
    CapacityFigure, CapacityResult, CapacityTest, CheckedLoad, CpuLimit, DepthRate, DiskFacts,
    Figure, LinearModel, MediaKind, ModerateLatency, RateBurst, SchedulerFile, SeastarModel,
    scheduler_file,
};
pub use estimate::{CurvePoint, Estimate, LEVEL, estimate_of};
pub use findings::{Breakpoint, DeviceState, Findings, LackOfFit, Verdict};
pub use fit::Line;
pub use full::{Full, REPETITIONS_MAX, REPETITIONS_MIN};
pub use map::{MapHeldOut, MapPoint, MapResult};
pub use measure::{Burst, Measurement, Measurements, ProfileOp, ProfileTest};
pub use merge::merge;
pub use method::{Method, MethodName};
pub use page::html;
pub use plan::{DEFAULT_SPAN, ProfilePlan};
pub use result::{
    Advice, ByTest, ProfileResult, ProfileSummary, Ratio, RatioSummary, pays_from, ratios, schema,
};
pub use resume::SessionStart;
pub use serra::Serra;
pub use session::{DeviceRecord, PlanRecord, ProfileSession, Setup};
pub use sizes::{SizeInterval, Sizes, default_sizes};
pub use stopped::StoppedBecause;
pub use strategy::{NextTest, Slice, Strategy};
pub use text::text;
