//! The capacity of a device at saturation, for the configuration of I/O schedulers.
//!
//! Six figures (reads and writes: sequential bandwidth, sequential and random requests of the small size) are those of
//! the kernel's linear cost model (`tools/cgroup/iocost_coef_gen.py`). Loads that are not fitted are predicted and
//! measured beside them.

mod file;
mod levels;
mod linear;
mod load;
mod merge;
mod plausible;
mod report;
mod result;
mod run;
mod slice;
mod state;

pub use file::{SchedulerFile, scheduler_file};
pub(crate) use levels::still_falls;
pub use linear::{LinearModel, SeastarModel};
pub use load::{CapacityTest, Figure};
pub(crate) use merge::merge;
pub(crate) use report::{capacity_html, capacity_text};
pub use result::{
    CapacityFigure, CapacityResult, CheckedLoad, CpuLimit, DepthRate, DiskFacts, MediaKind,
    ModerateLatency, RateBurst,
};
pub(crate) use run::execute;
pub(crate) use slice::Slice as LoadSlice;
pub(crate) use state::{DEPTH_MAX, NextDepth};
