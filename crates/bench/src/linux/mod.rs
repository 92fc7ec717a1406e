//! Everything that needs Linux: targets, engines, jobs, the state of the machine.

pub(crate) mod believable;
pub(crate) mod buffers;
pub(crate) mod clock;
pub(crate) mod content;
pub(crate) mod cost;
pub(crate) mod delays;
pub(crate) mod engine;
pub(crate) mod execute;
pub(crate) mod extents;
pub(crate) mod faults;
pub(crate) mod job;
pub(crate) mod job_set;
pub(crate) mod limits;
pub(crate) mod lock;
pub(crate) mod machine;
pub(crate) mod measure;
pub(crate) mod member;
pub(crate) mod neighbours;
pub(crate) mod network;
pub(crate) mod overhead;
pub(crate) mod pinning;
pub(crate) mod plan;
pub mod probe;
pub(crate) mod pulse;
pub(crate) mod ramp;
pub(crate) mod ranges;
pub(crate) mod report;
pub(crate) mod reread;
pub(crate) mod share;
pub(crate) mod spool;
pub(crate) mod start;
pub(crate) mod target;
#[cfg(test)]
mod tests;
pub(crate) mod tuning;
pub(crate) mod worker;

pub use engine::passthrough::block_device_of;
pub(crate) use execute::execute;
pub use limits::outlive_file_size_limit;
pub use neighbours::Neighbours;
pub use network::{RemoteFile, inspect_export};
pub use target::RealTarget;
