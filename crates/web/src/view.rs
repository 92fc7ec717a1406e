//! The run or task under way as the page shows it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use ssdyno_cluster::PlanResult;
use ssdyno_figures::LiveSnapshot;
use ssdyno_session::{ErrorBody, RunPhase, RunSnapshot};
use ssdyno_task::{Task, TaskSnapshot};

/// Steps of a plan that are shown while it goes on; the report has all.
const STEPS_SHOWN: usize = 50;

/// Three percentiles.
#[derive(Clone, Debug, Serialize)]
struct PercentilesView {
    p50: f64,
    p99: f64,
    p99_9: f64,
}

/// A host as the page shows it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct HostView {
    pub(crate) name: String,
    phase: RunPhase,
    /// The time since its last report.
    silent_s: Option<f64>,
    requests: u64,
    errors: u64,
    latency_ns: Option<PercentilesView>,
}

/// The run as the page shows it.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct RunView {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) target: String,
    pub(crate) load: String,
    pub(crate) phase: RunPhase,
    pub(crate) stopping: bool,
    started_unix_ms: u64,
    pub(crate) share_done: Option<f64>,
    pub(crate) now_s: f64,
    pub(crate) is_real: bool,
    pub(crate) requests: u64,
    errors: u64,
    latency_ns: Option<PercentilesView>,
    pub(crate) hosts: Vec<HostView>,
    /// For a task that is not a run.
    pub(crate) task: Option<TaskView>,
    /// Heading and the last steps of a plan that are over, as text.
    pub(crate) steps: Vec<Vec<String>>,
    /// Once its files are written.
    pub(crate) folder: Option<String>,
    pub(crate) partial: bool,
    pub(crate) error: Option<ErrorBody>,
}

impl RunView {
    /// Of one that begins now.
    pub(crate) fn begun(id: u64, name: String, target: String, load: String) -> RunView {
        let started_unix_ms = unix_ms(SystemTime::now());
        RunView { id, name, target, load, started_unix_ms, ..RunView::default() }
    }

    /// Takes in how far `task` is.
    pub(crate) fn take_in(&mut self, task: &Task, snapshot: &TaskSnapshot) {
        // The phase `Ended` is set only after the files are written. A script that
        // waits for it can open the results at once.
        self.phase = snapshot.phase.min(RunPhase::Loaded);
        self.requests = snapshot.progress.completed;
        self.now_s = snapshot.progress.now.as_s_f64();
        self.share_done = snapshot.share_done;
        if !matches!(task, Task::Run(_)) {
            self.task = Some(TaskView::of(task, snapshot));
        }
        if !matches!(task, Task::Run(_) | Task::Plan(_)) {
            return;
        }
        let hosts = snapshot.hosts.hosts.iter();
        self.hosts = hosts.map(|(name, one, silent)| HostView::of(name, one, *silent)).collect();
        self.errors = self.hosts.iter().map(|host| host.errors).sum();
        self.latency_ns = snapshot.progress.glance.as_deref().and_then(percentiles);
    }
}

impl RunView {
    /// Takes in the last report of the only host of a run.
    pub(crate) fn take_in_only_host(
        &mut self,
        name: &str,
        snapshot: &RunSnapshot,
        silent: Option<Duration>,
    ) {
        let host = HostView::of(name, snapshot, silent);
        self.now_s = snapshot.progress.now.as_s_f64();
        (self.requests, self.errors) = (host.requests, host.errors);
        self.latency_ns.clone_from(&host.latency_ns);
        self.hosts = vec![host];
    }

    /// Takes in the steps of a plan that are over.
    pub(crate) fn take_in_steps(&mut self, result: &PlanResult) {
        let mut rows = result.table();
        // The heading is always the first row. Of the steps only the last fifty are
        // shown, because a plan may have thousands.
        let first = rows.len().saturating_sub(STEPS_SHOWN).max(1);
        rows.drain(1..first);
        self.steps = rows;
    }
}

impl HostView {
    pub(crate) fn of(name: &str, snapshot: &RunSnapshot, silent: Option<Duration>) -> HostView {
        let glance = snapshot.progress.glance.as_deref();
        HostView {
            name: name.to_owned(),
            phase: snapshot.phase,
            silent_s: silent.map(|silent| silent.as_secs_f64()),
            requests: snapshot.progress.completed,
            errors: glance.map_or(0, |glance| glance.errors),
            latency_ns: glance.and_then(percentiles),
        }
    }
}

fn percentiles(glance: &LiveSnapshot) -> Option<PercentilesView> {
    let [p50, p99, p99_9] = glance.percentiles_ns()?;
    Some(PercentilesView { p50, p99, p99_9 })
}

/// How far a task is, as the page shows it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TaskView {
    /// The value of its key `task`.
    kind: &'static str,
    /// The step under way.
    step: String,
    /// Parts that are done.
    done: u64,
    /// Parts at most; 0 before it is known.
    of: u64,
    /// Blocks that are not what was written, in a verification.
    faults: Option<u64>,
    /// Of the load under way, where there is one.
    latency_ns_mean: Option<f64>,
}

impl TaskView {
    fn of(task: &Task, snapshot: &TaskSnapshot) -> TaskView {
        let progress = &snapshot.progress;
        TaskView {
            kind: task.kind(),
            step: snapshot.step.clone(),
            done: snapshot.done,
            of: snapshot.of,
            faults: snapshot.faults,
            latency_ns_mean: (progress.completed > 0).then_some(progress.latency_ns_mean),
        }
    }
}

pub(crate) fn unix_ms(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
