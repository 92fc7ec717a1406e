//! Tasks that are no runs: a SNIA test, a profile, a verification, samples of this machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use serde::Serialize;
use ssdyno_cluster::WorkerConsent;
use ssdyno_report::RunDirectory;
use ssdyno_session::{
    Failure, FailureKind, ResultFolder, RunPhase, RunSpec, Unattended, WriteSpec, named, unwritable,
};
use ssdyno_task::{CompareTask, PreparedTask, Task, TaskOutcome, TaskRunner, TaskSnapshot};

use crate::desk::{Checked, CurrentRun, Desk, POLL_EVERY, RunRequest, RunView};
use crate::flash::LiveFlash;

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

impl Desk {
    pub(crate) fn check_task(&self, request: &RunRequest) -> Result<Checked, Failure> {
        let (task, prepared) = self.prepare_task(request)?;
        let target = task.target().unwrap_or_default().to_owned();
        Ok(Checked {
            name: prepared.name().to_owned(),
            load: task.kind().to_owned(),
            is_real: is_real(&task),
            hosts: Vec::new(),
            writes_to: prepared.writes_to().to_vec(),
            target,
        })
    }

    fn prepare_task(&self, request: &RunRequest) -> Result<(Task, PreparedTask), Failure> {
        if !request.hosts.is_empty() {
            return Err(Failure::usage("only runs are started on other hosts")
                .with_help("leave `hosts` empty, or start a page on that host")
                .with_key("hosts"));
        }
        let task = permit(&self.options.consent, Task::from_toml("the task", &request.toml)?)?;
        let prepared = task.prepare(&mut Unattended)?;
        // Whatever a task understands by its target: it writes nowhere else than allowed.
        let targets = &self.options.consent.targets;
        match prepared.writes_to().iter().find(|target| !targets.contains_key(*target)) {
            Some(target) => Err(refuse_write(target)),
            None => Ok((task, prepared)),
        }
    }

    pub(crate) fn start_task(self: &Arc<Desk>, request: &RunRequest) -> Result<u64, Failure> {
        // Before anything is opened: a target under load is locked.
        self.state().refuse_second()?;
        let (task, mut prepared) = self.prepare_task(request)?;
        let mut state = self.state();
        state.refuse_second()?;
        let target = task.target().unwrap_or_default().to_owned();
        let default = || {
            let of = if target.is_empty() { "machine" } else { &target };
            RunDirectory::default_name(of, task.kind(), task.seed(), SystemTime::now())
        };
        let name = request.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(default);
        let folder = ResultFolder::create(&self.options.results, &name)?;
        prepared.keep_in(folder.path().to_owned());
        let runner = prepared.start().inspect_err(|_| folder.remove())?;
        let id = state.next_number();
        let mut view = RunView::begun(id, name, target, task.kind().to_owned());
        view.is_real = is_real(&task);
        view.task = Some(TaskView::of(&task, &runner.poll()));
        let mut run = CurrentRun::new(view, None, LiveFlash::new().0).in_folder(Some(&folder));
        let desk = Arc::clone(self);
        run.follow(move |stop| desk.follow_task(&task, runner, &folder, stop))?;
        state.run = Some(run);
        drop(state);
        self.changed();
        Ok(id)
    }

    /// Watches a task to its end and writes its files.
    fn follow_task(
        &self,
        task: &Task,
        runner: TaskRunner,
        folder: &ResultFolder,
        stop: &AtomicBool,
    ) {
        let mut snapshot = runner.poll();
        let mut hung = None;
        while snapshot.phase != RunPhase::Ended && hung.is_none() {
            if stop.load(Ordering::Relaxed) {
                runner.stop();
            }
            self.take_in_task(task, &snapshot);
            snapshot = runner.wait(snapshot.phase, POLL_EVERY);
            hung = runner.hung();
            // Samples that are taken are not in the result.
            let partial = match task {
                Task::Pts(_) | Task::Profile(_) => runner.take_partial(),
                _ => None,
            };
            if let Some(partial) = partial {
                // Only a safety net: what cannot be written is said at the end.
                let _ = partial.write(task, folder);
            }
        }
        self.take_in_task(task, &snapshot);
        let ended = match hung {
            // Its result would never come.
            Some(failure) => Err(failure),
            None => runner.result(),
        };
        let (written, failure) = match ended {
            Ok(TaskOutcome { result, failure }) => {
                let written = result.write(task, folder);
                // Lost files are worse than the rest.
                (written.is_ok(), written.as_ref().err().map(unwritable).or(failure))
            }
            Err(failure) => {
                folder.remove();
                (false, Some(failure))
            }
        };
        if let Some(run) = &mut self.state().run {
            run.view.phase = RunPhase::Ended;
            let name = folder.path().file_name().filter(|_| written);
            run.view.folder = name.map(|name| name.to_string_lossy().into_owned());
            let cut = |failure: &Failure| failure.kind == FailureKind::Interrupted;
            run.view.partial = written && failure.as_ref().is_some_and(cut);
            run.view.error = failure.as_ref().map(Failure::body);
            if failure.is_none() {
                run.view.share_done = Some(1.0);
            }
        }
        self.changed();
    }

    fn take_in_task(&self, task: &Task, snapshot: &TaskSnapshot) {
        let mut state = self.state();
        let Some(run) = &mut state.run else { return };
        let told = TaskView::of(task, snapshot);
        run.view.share_done =
            (told.of > 0).then(|| (told.done as f64 / told.of as f64).clamp(0.0, 1.0));
        // Its files are written first.
        run.view.phase = snapshot.phase.min(RunPhase::Loaded);
        run.view.requests = snapshot.progress.completed;
        run.view.now_s = snapshot.progress.now.as_s_f64();
        run.view.task = Some(told);
        drop(state);
        self.changed();
    }
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

/// Whether a task loads a real device or file. A verification always does, whatever its target is called.
fn is_real(task: &Task) -> bool {
    match task {
        Task::Pts(pts) => named::is_real(&pts.target),
        Task::Profile(profile) => named::is_real(&profile.target),
        Task::Compare(compare) => compare.sides.iter().any(|side| CompareTask::is_real(side)),
        Task::Sweep(sweep) => ssdyno_session::is_real(&sweep.run).unwrap_or(false),
        #[cfg(target_os = "linux")]
        Task::Verify(_) => true,
        #[cfg(target_os = "linux")]
        Task::Probe(_) => false,
    }
}

/// `task` with what was allowed where the server was started in place of what it asks for: the same as of runs.
fn permit(consent: &WorkerConsent, mut task: Task) -> Result<Task, Failure> {
    match &mut task {
        Task::Pts(pts) => pts.write = permitted(consent, &pts.target, pts.write.clone())?,
        Task::Profile(profile) => {
            profile.write = permitted(consent, &profile.target, profile.write.clone())?;
        }
        Task::Compare(compare) => {
            // One consent has many targets here: those that are not allowed are refused below.
            for side in compare.sides.iter().filter(|side| CompareTask::is_real(side)) {
                compare.run.write = permitted(consent, side, compare.run.write.clone())?;
            }
        }
        // Its plan refuses to vary what may be written to.
        Task::Sweep(sweep) => sweep.run = consent.apply(sweep.run.clone())?,
        #[cfg(target_os = "linux")]
        Task::Verify(verify) => {
            if verify.journal.is_some() {
                return Err(Failure::usage("the page writes files of results only")
                    .with_help("leave `journal` out, or verify with `ssdyno verify`")
                    .with_key("journal"));
            }
            if verify.write != WriteSpec::default() {
                // Not by the name alone: a verification takes a file of any name for its target.
                let Some(write) = consent.targets.get(&verify.target) else {
                    return Err(refuse_write(&verify.target));
                };
                verify.write = WriteSpec { allowed: verify.write.allowed, ..write.clone() };
            }
        }
        #[cfg(target_os = "linux")]
        Task::Probe(_) => {}
    }
    Ok(task)
}

fn permitted(
    consent: &WorkerConsent,
    target: &str,
    write: WriteSpec,
) -> Result<WriteSpec, Failure> {
    let spec = RunSpec { target: Some(target.to_owned()), write, ..RunSpec::default() };
    Ok(consent.apply(spec)?.write)
}

fn refuse_write(target: &str) -> Failure {
    Failure::usage(format!("writing to {target} is not allowed"))
        .with_help("allow it where the page is served: `ssdyno ui --write TARGET`")
        .with_key("write.allowed")
}
