//! A run, here or on several hosts, as whoever started it sees it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use ssdyno_block::counted;
use ssdyno_engine::events::EventReader;
use ssdyno_figures::{KeepGoing, Provenance};
use ssdyno_session::{
    BeginAt, DEFAULT_TARGET, Failure, Goal, Measured, Prepared, ProgramIdentity, Prompt, RunPhase,
    RunSnapshot, RunSpec, Runner, is_real, resolve,
};

use crate::controller::{check, run_on_hosts};
use crate::load::Hosts;
use crate::progress::ClusterProgress;

/// The name of this machine in the progress of a run that is here alone.
pub const HERE: &str = "here";

/// A run that can start.
#[derive(Debug)]
pub enum JobPlan {
    /// On this machine.
    Here(Box<Prepared>),
    /// On others. They look at the spec when it starts.
    OnHosts(Hosts, Box<RunSpec>),
}

impl JobPlan {
    /// The run of `spec`, on `hosts` if some are named. `prompt` is asked before a target of this machine is opened for
    /// writing.
    ///
    /// # Errors
    /// [`resolve`] refuses the spec, or a host is named twice.
    pub fn new(
        spec: &RunSpec,
        hosts: Option<Hosts>,
        prompt: &mut dyn Prompt,
    ) -> Result<JobPlan, Failure> {
        let Some(hosts) = hosts else {
            return Ok(JobPlan::Here(Box::new(resolve(spec, prompt)?)));
        };
        // The addresses are checked before the thread starts, so that a host that is named twice is
        // an error of the command and not a failed run.
        check(&hosts)?;
        Ok(JobPlan::OnHosts(hosts, Box::new(spec.clone())))
    }

    /// The load, in one line.
    pub fn name(&self) -> String {
        match self {
            JobPlan::Here(prepared) => prepared.name(),
            JobPlan::OnHosts(hosts, spec) => {
                let hosts = counted(hosts.addresses.len() as u64, "host", "hosts");
                format!("{} from {hosts}", target(spec))
            }
        }
    }

    /// The target, as the spec names it or as it was chosen.
    pub fn target(&self) -> String {
        match self {
            JobPlan::Here(prepared) => prepared.name(),
            JobPlan::OnHosts(_, spec) => target(spec).to_owned(),
        }
    }

    /// The name of the load.
    pub fn load(&self) -> &str {
        match self {
            JobPlan::Here(prepared) => prepared.load(),
            JobPlan::OnHosts(_, spec) => {
                spec.workload.as_deref().or(spec.fio.as_deref()).unwrap_or("default")
            }
        }
    }

    /// The names of its hosts.
    pub fn hosts(&self) -> Vec<String> {
        match self {
            JobPlan::Here(_) => vec![HERE.to_owned()],
            JobPlan::OnHosts(hosts, _) => hosts.addresses.iter().map(ToString::to_string).collect(),
        }
    }

    /// What it works towards.
    pub fn goal(&self) -> Goal {
        match self {
            JobPlan::Here(prepared) => prepared.goal(),
            JobPlan::OnHosts(hosts, spec) => Goal {
                requests: spec
                    .requests
                    .map(|requests| requests.saturating_mul(hosts.addresses.len() as u64)),
                duration: spec.duration.map(|span| span.0),
            },
        }
    }

    /// Whether a real target is loaded.
    ///
    /// # Errors
    /// The job file that names it cannot be read.
    pub fn is_real(&self) -> Result<bool, Failure> {
        match self {
            JobPlan::Here(prepared) => Ok(prepared.is_real()),
            JobPlan::OnHosts(_, spec) => is_real(spec),
        }
    }

    /// The spec that the client asked for.
    pub fn asked(&self) -> &RunSpec {
        match self {
            JobPlan::Here(prepared) => prepared.asked(),
            JobPlan::OnHosts(_, spec) => spec,
        }
    }

    /// Lets rows go to `directory`, that of the result: those of a real target of this machine as they come, those of
    /// other hosts after the run.
    pub fn keep_rows_in(&mut self, directory: PathBuf) {
        match self {
            JobPlan::Here(prepared) => prepared.keep_rows_in(directory),
            JobPlan::OnHosts(hosts, _) => hosts.rows_in = Some(directory),
        }
    }

    /// The provenance of the run if it starts now, by `program`. Other hosts tell theirs with their results.
    pub fn provenance(&self, program: &ProgramIdentity) -> Provenance {
        match self {
            JobPlan::Here(prepared) => prepared.provenance(program),
            JobPlan::OnHosts(..) => program.provenance(),
        }
    }

    /// Stores `provenance` beside the rows of a real target of this machine, for a run that is killed.
    pub fn keep_provenance(&mut self, provenance: &Provenance) {
        if let JobPlan::Here(prepared) = self {
            prepared.keep_provenance(provenance);
        }
    }

    /// Starts it. A `reader` receives every event of a simulated device of this machine, and no other events.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(self, reader: Option<Box<dyn EventReader + Send>>) -> Result<Job, Failure> {
        match self {
            JobPlan::Here(prepared) => {
                let runner = match reader {
                    Some(reader) => prepared.start_read_by(reader)?,
                    None => prepared.start()?,
                };
                // A run of one machine has nobody to wait for, so it
                // begins as soon as it is ready.
                runner.begin(BeginAt::Once);
                Ok(Job(Work::Here(runner)))
            }
            JobPlan::OnHosts(hosts, spec) => Ok(Job(Work::OnHosts(Remote::start(hosts, spec)?))),
        }
    }
}

fn here(snapshot: RunSnapshot) -> ClusterProgress {
    let hosts = vec![(HERE.to_owned(), snapshot, None)];
    ClusterProgress { hosts, ..ClusterProgress::default() }
}

fn target(spec: &RunSpec) -> &str {
    spec.target.as_deref().or(spec.fio.as_deref()).unwrap_or(DEFAULT_TARGET)
}

/// A run under way. Dropped, it is stopped and waited for.
#[derive(Debug)]
pub struct Job(Work);

#[derive(Debug)]
enum Work {
    Here(Runner),
    OnHosts(Remote),
}

impl Job {
    /// How far each host is. It never waits.
    pub fn progress(&self) -> ClusterProgress {
        match &self.0 {
            Work::Here(runner) => here(runner.poll()),
            Work::OnHosts(remote) => remote.told().clone(),
        }
    }

    /// How far each host is, as soon as a run of this machine is in another phase than `seen`, the run is over, or
    /// after `timeout`.
    pub fn wait(&self, seen: RunPhase, timeout: Duration) -> ClusterProgress {
        match &self.0 {
            Work::Here(runner) => here(runner.wait(seen, timeout)),
            Work::OnHosts(remote) => remote.wait(timeout).clone(),
        }
    }

    /// Asks for the distributions so far, which some later progress has. Other hosts tell theirs by themselves.
    pub fn look(&self) {
        if let Work::Here(runner) = &self.0 {
            runner.look();
        }
    }

    /// Stops it in order: what was measured is kept.
    pub fn stop(&self) {
        match &self.0 {
            Work::Here(runner) => runner.stop(),
            Work::OnHosts(remote) => remote.control.stop.store(true, Ordering::Relaxed),
        }
    }

    /// Whether [`result`](Job::result) does not wait.
    pub fn is_over(&self) -> bool {
        match &self.0 {
            Work::Here(runner) => runner.poll().phase == RunPhase::Ended,
            Work::OnHosts(remote) => remote.control.is_over.load(Ordering::Relaxed),
        }
    }

    /// Waits for the end and gives what was measured.
    ///
    /// # Errors
    /// The run could not start, or was stopped before it began. A later error is in [`Measured::failure`].
    pub fn result(self) -> Result<Measured, Failure> {
        match self.0 {
            Work::Here(runner) => runner.result(),
            Work::OnHosts(mut remote) => remote.join(),
        }
    }
}

/// A controller on a thread of its own.
#[derive(Debug)]
struct Remote {
    control: Arc<RemoteControl>,
    /// `None` once its result was taken.
    thread: Option<JoinHandle<Result<Measured, Failure>>>,
}

#[derive(Debug, Default)]
struct RemoteControl {
    told: Mutex<ClusterProgress>,
    /// Rings when the controller is over.
    bell: Condvar,
    stop: AtomicBool,
    is_over: AtomicBool,
}

/// Says that the controller is over, however it ended.
struct OverOnDrop<'a>(&'a RemoteControl);

impl Drop for OverOnDrop<'_> {
    fn drop(&mut self) {
        // The flag changes under the lock of the condition variable. Otherwise `wait` could read the old flag,
        // miss the notification, and sleep for its whole timeout.
        let told = self.0.told.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.is_over.store(true, Ordering::Relaxed);
        drop(told);
        self.0.bell.notify_all();
    }
}

impl Remote {
    fn start(hosts: Hosts, spec: Box<RunSpec>) -> Result<Remote, Failure> {
        let control = Arc::new(RemoteControl::default());
        let mine = Arc::clone(&control);
        let carry_out = move || {
            // The guard also runs when `run_on_hosts` panics. Without it `is_over` would stay
            // false, and a page would wait for this run forever.
            let _over = OverOnDrop(&mine);
            run_on_hosts(&hosts, &spec, &mut |progress| {
                mine.told.lock().unwrap_or_else(PoisonError::into_inner).clone_from(progress);
                // The flag is read on each call of `watch`, some 40 times a second. `Relaxed` is
                // enough: nothing else is published with it.
                match mine.stop.load(Ordering::Relaxed) {
                    true => KeepGoing::Stop,
                    false => KeepGoing::Continue,
                }
            })
        };
        let thread = std::thread::Builder::new().name("controller".to_owned()).spawn(carry_out);
        let thread = thread.map_err(|error| {
            let message = format!("cannot start a thread for the controller: {error}");
            Failure::failed(message).with_help("raise `ulimit -u`")
        })?;
        Ok(Remote { control, thread: Some(thread) })
    }

    fn told(&self) -> MutexGuard<'_, ClusterProgress> {
        self.control.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As soon as it is over, or after `timeout`.
    fn wait(&self, timeout: Duration) -> MutexGuard<'_, ClusterProgress> {
        let going = |_: &mut ClusterProgress| !self.control.is_over.load(Ordering::Relaxed);
        let waited = self.control.bell.wait_timeout_while(self.told(), timeout, going);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn join(&mut self) -> Result<Measured, Failure> {
        let lost = || Failure::failed("the result of the run was taken");
        let ended = self.thread.take().map(JoinHandle::join).ok_or_else(lost)?;
        // A panic of the controller is a bug in this program. It is raised again in the thread that asks for the
        // result, so that the front end reports it in the usual way.
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.control.stop.store(true, Ordering::Relaxed);
            // The result of a dropped run is not needed, and the panic hook has already printed a panic. Waiting here
            // makes sure that the hosts have been stopped before the program goes on.
            let _ = thread.join();
        }
    }
}
