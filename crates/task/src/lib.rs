//! Everything that a front end can start, as one value with one runner.
//!
//! Key types: [`Task`] (what is asked for, as a value that can be written down), [`PreparedTask`] (a task that can
//! start; it names the targets that it would write to), [`TaskRunner`] (a task under way: poll, stop, result),
//! [`TaskSnapshot`] (how far it is, the same for all tasks), [`TaskResult`] (what it measured).
//!
//! [`Task::prepare`] is the only place where a front end is asked for consent to write. A task that is stopped
//! keeps what it measured.
//!
//! Errors are [`Failure`](ssdyno_session::Failure)s that name keys of the task, such as `write.allowed`. A front end
//! shows them in its own words.
//!
//! Not here: how progress is shown, and where results are stored.

mod compare;
mod gate;
mod plan;
#[cfg(target_os = "linux")]
mod probe;
mod profile;
mod pts;
mod repeat;
mod run;
mod runner;
mod stored;
mod sweep;
mod task;
mod text;
#[cfg(target_os = "linux")]
mod verify;

pub use compare::{CompareResult, CompareTask};
pub use gate::{
    Gate, GateVerdict, SlowerLimit, gate_failure, junit, not_slower, repeated_requirements,
    requirements,
};
#[cfg(target_os = "linux")]
pub use probe::ProbeTask;
pub use profile::{ProfileOutline, ProfileTask, stored_profile};
pub use pts::PtsTask;
pub use runner::{PreparedTask, TaskOutcome, TaskResult, TaskRunner, TaskSnapshot};
pub use task::Task;
#[cfg(target_os = "linux")]
pub use verify::VerifyTask;
