//! The state behind the page: at most one run at a time, its series, and the folder of results.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use ssdyno_cluster::{
    ClusterProgress, HERE, HostAddress, Hosts, JobPlan, MetricsCache, ProberAddress, RunOutline,
    WorkerConsent, metrics_text,
};
use ssdyno_figures::Keep;
use ssdyno_prober::{Prober, ProberOptions};
use ssdyno_session::{
    Failure, FailureKind, ProgramIdentity, ResultFolder, RunPhase, RunSnapshot, Unattended,
    unwritable,
};
use ssdyno_task::{PreparedTask, Task, TaskOutcome, TaskResult, TaskRunner, TaskSnapshot};
use tokio::sync::watch;

use crate::current::{CurrentRun, State};
use crate::ended::EndOnPanic;
use crate::flash::{FlashView, LiveFlash};
use crate::permit::{is_real, permit, refuse_write};
use crate::series::{News, Seen};
use crate::sources::MetricsNews;
use crate::systems::SystemNews;
use crate::view::{HostView, RunView, unix_ms};

/// How often a run is asked how far it is.
pub(crate) const POLL_EVERY: Duration = Duration::from_millis(50);

/// The settings that decide how runs are carried out here, for every caller.
#[derive(Clone, Debug)]
pub struct DeskOptions {
    /// Where folders of results are, and are made.
    pub results: PathBuf,
    /// The targets on this machine that may be written to. No request of the page adds to them.
    pub consent: WorkerConsent,
    /// How other machines are reached; its addresses are not used.
    pub hosts: Hosts,
}

/// The requests of the page.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunRequest {
    /// A spec, or a task with the key `task`.
    pub(crate) toml: String,
    /// None: this machine.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
    /// Machines that are sampled beside the hosts, and programs whose metrics are read.
    #[serde(default)]
    pub(crate) probers: Vec<String>,
    /// Of the folder.
    #[serde(default)]
    pub(crate) name: Option<String>,
}

/// A run that could start.
#[derive(Debug, Serialize)]
pub(crate) struct Checked {
    pub(crate) name: String,
    pub(crate) target: String,
    pub(crate) load: String,
    pub(crate) is_real: bool,
    pub(crate) hosts: Vec<String>,
    /// Real targets that a task writes to.
    pub(crate) writes_to: Vec<String>,
}

/// The addresses in a list of the page, whose key is `key`.
fn read_all<T: FromStr<Err = String>>(key: &str, texts: &[String]) -> Result<Vec<T>, Failure> {
    let read =
        |text: &String| text.parse().map_err(|why: String| Failure::usage(why).with_key(key));
    texts.iter().map(read).collect()
}

/// Everything behind the page.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) options: DeskOptions,
    /// The start time of this server: another server does not know its runs.
    pub(crate) since_unix_ms: u64,
    state: Mutex<State>,
    /// Rises with every change.
    changes: watch::Sender<u64>,
    metrics: MetricsCache,
}

/// How far a viewer is with the series of machines, or of programs: of the run, and the step of a plan, of these numbers.
#[derive(Debug, Default)]
pub(crate) struct SeenBeside {
    key: (u64, u64),
    places: Vec<usize>,
}

impl SeenBeside {
    fn of(&mut self, key: (u64, u64)) -> &mut Vec<usize> {
        if self.key != key {
            *self = SeenBeside { key, places: Vec::new() };
        }
        &mut self.places
    }
}

/// A series that a viewer has not seen yet.
#[derive(Serialize)]
pub(crate) struct SeriesNews {
    pub(crate) run: u64,
    pub(crate) epoch: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
    points: Vec<crate::series::PointView>,
    /// Whether it takes the place of what the viewer has.
    #[serde(skip)]
    pub(crate) is_whole: bool,
}

impl Desk {
    pub(crate) fn new(options: DeskOptions) -> Desk {
        let (state, metrics) = (Mutex::default(), MetricsCache::default());
        let since_unix_ms = unix_ms(SystemTime::now());
        Desk { options, since_unix_ms, state, changes: watch::Sender::new(0), metrics }
    }

    pub(crate) fn results(&self) -> &std::path::Path {
        &self.options.results
    }

    /// Number of the last change, and the news of later ones.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// A panic elsewhere leaves the state whole.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn changed(&self) {
        self.changes.send_modify(|number| *number += 1);
    }

    /// The run that goes on, or the last one.
    pub(crate) fn view(&self) -> Option<RunView> {
        self.state().run.as_ref().map(|run| run.view.clone())
    }

    /// Name of the folder of the run that goes on.
    pub(crate) fn folder_under_way(&self) -> Option<String> {
        let state = self.state();
        let run = state.run.as_ref().filter(|run| run.view.phase != RunPhase::Ended)?;
        run.place.clone()
    }

    /// The state of the run and of its machines, as OpenMetrics text.
    pub(crate) fn metrics(&self) -> Arc<str> {
        self.metrics.text(|| {
            let state = self.state();
            let outline = state.run.as_ref().map(|run| {
                let RunView { id, name, target, load, phase, .. } = run.view.clone();
                (id, name, target, load, phase, run.told.clone())
            });
            // The state is copied, and the text is made without the lock: formatting takes
            // longer than the run should wait to report.
            drop(state);
            let version = env!("CARGO_PKG_VERSION");
            match &outline {
                None => metrics_text(version, None, &ClusterProgress::default()),
                Some((number, name, target, load, phase, told)) => {
                    let (number, phase) = (*number, *phase);
                    metrics_text(
                        version,
                        Some(RunOutline { number, name, target, load, phase }),
                        told,
                    )
                }
            }
        })
    }

    /// The part of the series that a viewer at position `seen` of the run with that number has not seen.
    pub(crate) fn news(&self, seen: &mut Option<(u64, Seen)>) -> Option<SeriesNews> {
        let state = self.state();
        let run = state.run.as_ref()?;
        let id = run.view.id;
        // A viewer that saw another run starts from nothing. The number of points alone
        // would hide the beginning of the new run.
        let mut place = seen.filter(|(run, _)| *run == id).map(|(_, seen)| seen);
        let news = run.series.news(&mut place);
        *seen = place.map(|place| (id, place));
        let epoch = run.series.epoch();
        let names = || run.view.hosts.iter().map(|host| host.name.clone()).collect();
        match news {
            News::More(points) if points.is_empty() => None,
            News::More(points) => {
                Some(SeriesNews { run: id, epoch, hosts: Vec::new(), points, is_whole: false })
            }
            News::Whole(points) => {
                Some(SeriesNews { run: id, epoch, hosts: names(), points, is_whole: true })
            }
        }
    }

    /// The samples of the machines that a viewer at position `seen` has not seen.
    pub(crate) fn system_news(&self, seen: &mut SeenBeside) -> Vec<SystemNews> {
        let state = self.state();
        let Some(run) = state.run.as_ref() else { return Vec::new() };
        run.systems.news(Some(run.view.id), seen.of(run.key()))
    }

    /// The metrics of programs that a viewer at position `seen` has not seen.
    pub(crate) fn source_news(&self, seen: &mut SeenBeside) -> Vec<MetricsNews> {
        let state = self.state();
        let Some(run) = state.run.as_ref() else { return Vec::new() };
        run.sources.news(run.view.id, seen.of(run.key()))
    }

    /// The last view of the flash, for a viewer who is as far as `seen` - of the run of that number.
    pub(crate) fn flash_news(&self, seen: &mut Option<(u64, u64)>) -> Option<FlashView> {
        let state = self.state();
        let run = state.run.as_ref()?;
        let id = run.view.id;
        let mut place = seen.filter(|(run, _)| *run == id).map_or(0, |(_, seen)| seen);
        let news = run.flash.news(&mut place);
        *seen = Some((id, place));
        news
    }

    /// Checks whether the requested run could start.
    pub(crate) fn check(&self, request: &RunRequest) -> Result<Checked, Failure> {
        let (task, prepared) = self.prepare(request)?;
        let (target, load) = task.outline(&prepared);
        Ok(Checked {
            name: prepared.name().to_owned(),
            target,
            load,
            is_real: is_real(&task),
            hosts: prepared.run().map_or_else(Vec::new, JobPlan::hosts),
            writes_to: prepared.writes_to().to_vec(),
        })
    }

    fn prepare(&self, request: &RunRequest) -> Result<(Task, PreparedTask), Failure> {
        let task = Task::from_toml("the spec", &request.toml)?;
        let addresses: Vec<HostAddress> = read_all("hosts", &request.hosts)?;
        let probers: Vec<ProberAddress> = read_all("probers", &request.probers)?;
        let is_plan = matches!(task, Task::Plan(_));
        // A run on this machine is sampled here anyway. Probers are connected by the
        // controller of several hosts, and there is none.
        if addresses.is_empty() && !is_plan && !probers.is_empty() {
            return Err(Failure::usage("probers need a run on hosts, but no host is given")
                .with_help("name hosts, or leave the probers out: a run here samples this machine")
                .with_key("probers"));
        }
        if addresses.is_empty() && !is_plan {
            let task = permit(&self.options.consent, task)?;
            let prepared = task.prepare(&mut Unattended)?;
            // Compare and sweep have several targets. This test looks at what the prepared task would
            // really write to, whatever its keys are called.
            let allowed = &self.options.consent.targets;
            return match prepared.writes_to().iter().find(|target| !allowed.contains_key(*target)) {
                Some(target) => Err(refuse_write(target)),
                None => Ok((task, prepared)),
            };
        }
        let mut task = task;
        if let Task::Run(spec) = &mut task
            && spec.keep == Keep::All
        {
            // The rows of many hosts would fill the disk of the machine that serves the page. A
            // summary has all figures that the page shows.
            spec.keep = Keep::Summary;
        }
        let mut hosts = Hosts { addresses, probers, ..self.options.hosts.clone() };
        match &task {
            Task::Run(spec) => hosts.sample_as(&spec.real)?,
            Task::Plan(plan) => hosts.sample_as(&plan.load.real)?,
            _ => {}
        }
        let prepared = task.prepare_on(hosts, &mut Unattended)?;
        Ok((task, prepared))
    }

    /// Starts the requested run; returns its number.
    pub(crate) fn start(self: &Arc<Desk>, request: &RunRequest) -> Result<u64, Failure> {
        // The test comes before anything is opened: a target under load is locked, and the
        // message about the lock would hide the true reason.
        self.state().refuse_second()?;
        let (task, mut prepared) = self.prepare(request)?;
        let mut state = self.state();
        // The test is repeated under the lock. Preparing takes seconds without the lock, and
        // another viewer may have started a run meanwhile.
        state.refuse_second()?;
        let (target, load) = task.outline(&prepared);
        let name = request.name.clone().filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| task.folder_name(&prepared));
        // A run that keeps nothing needs no folder. An empty one would appear
        // in the list as a run that was killed.
        let folder = match &task {
            Task::Run(spec) if spec.keep == Keep::None => None,
            _ => Some(ResultFolder::create(&self.options.results, &name)?),
        };
        if let Some(folder) = &folder {
            prepared.keep_in(folder.path().to_owned());
        }
        prepared.record_provenance(ProgramIdentity {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..ProgramIdentity::default()
        });
        let (flash, reader) = LiveFlash::new();
        prepared.read_by(Box::new(reader));
        let hosts = prepared.run().map_or_else(Vec::new, JobPlan::hosts);
        let runner = prepared.start();
        let runner = runner.inspect_err(|_| folder.iter().for_each(ResultFolder::remove))?;
        let id = state.next_number();
        let mut view = RunView::begun(id, name, target, load);
        view.is_real = is_real(&task);
        view.take_in(&task, &runner.poll());
        let unseen = |name: &String| HostView::of(name, &RunSnapshot::default(), None);
        view.hosts = hosts.iter().map(unseen).collect();
        // The thread reports into the state, which is still locked here. It therefore waits until
        // the run is in its place, and no report is lost.
        let desk = Arc::clone(self);
        let mut run = CurrentRun::new(view, flash).in_folder(folder.as_ref());
        run.follow(move |stop| desk.follow(&task, runner, folder.as_ref(), stop))?;
        state.run = Some(run);
        drop(state);
        self.changed();
        Ok(id)
    }

    /// Stops the run in order, if one goes on.
    pub(crate) fn stop(&self) {
        if let Some(run) = &mut self.state().run {
            run.stop.store(true, Ordering::Relaxed);
            run.view.stopping = run.view.phase != RunPhase::Ended;
        }
        self.changed();
    }

    /// Stops the run and waits until its files are written.
    pub(crate) fn end(&self) {
        self.stop();
        // The handle is taken out under the lock, and the wait happens without it: the
        // thread needs the lock to write its result.
        let thread = self.state().run.as_mut().and_then(|run| run.thread.take());
        // A panic was already printed by the panic hook. Ending the server
        // is more important than repeating it.
        let _ = thread.map(JoinHandle::join);
    }

    /// Watches a task to its end and writes its files.
    pub(crate) fn follow(
        &self,
        task: &Task,
        runner: TaskRunner,
        folder: Option<&ResultFolder>,
        stop: &AtomicBool,
    ) {
        let _guard = EndOnPanic(self);
        let mut snapshot = runner.poll();
        let is_here = |(name, ..): &(String, RunSnapshot, Option<Duration>)| name == HERE;
        // A run on other hosts brings their samples. If the system has no thread for a
        // prober, the run goes on without samples.
        let here = snapshot.hosts.hosts.first().is_some_and(is_here);
        let prober = here.then(|| Prober::start(ProberOptions::default()).ok()).flatten();
        let mut hung = None;
        while snapshot.phase != RunPhase::Ended && hung.is_none() {
            if stop.load(Ordering::Relaxed) {
                runner.stop();
            }
            let phase = snapshot.phase;
            let sample = prober.as_ref().map(|prober| (HERE.to_owned(), prober.latest()));
            snapshot.hosts.systems.extend(sample);
            self.take_in(task, snapshot);
            runner.look();
            snapshot = runner.wait(phase, POLL_EVERY);
            hung = runner.hung();
            // The partial result of a probe is taken out of the final one. Only for the tasks named here
            // does the final result contain everything again.
            let partial = match task {
                Task::Pts(_) | Task::Profile(_) | Task::Plan(_) => runner.take_partial(),
                _ => None,
            };
            if let Some(TaskResult::Plan(result)) = &partial {
                // The plan has written the files of its steps itself. Only the table of
                // the page is brought up to date here.
                self.state().run.iter_mut().for_each(|run| run.view.take_in_steps(result));
                continue;
            }
            if let (Some(partial), Some(folder)) = (partial, folder) {
                // This file is a safety net against a crash of the server. An error shows again at
                // the end, when the final files are written.
                let _ = partial.write(task, folder, false);
            }
        }
        self.take_in(task, snapshot);
        // The thread of a hung task never ends, so its result is not waited for. The
        // reason why it hangs becomes its failure.
        self.conclude(task, hung.map_or_else(|| runner.result(), Err), folder);
    }

    /// Takes in how far the task is.
    fn take_in(&self, task: &Task, snapshot: TaskSnapshot) {
        let mut state = self.state();
        let Some(run) = &mut state.run else { return };
        if matches!(task, Task::Plan(_)) {
            run.follow_step(&snapshot);
        }
        // While hosts are being connected, the report has none. Taking it in would remove
        // the list of hosts from the page for a moment.
        if snapshot.hosts.hosts.len() == run.view.hosts.len() {
            run.view.take_in(task, &snapshot);
            if !run.view.hosts.is_empty() {
                run.take_in_hosts(snapshot.hosts, snapshot.phase);
            }
        }
        drop(state);
        self.changed();
    }

    /// Writes the results and reports how the run ended.
    fn conclude(
        &self,
        task: &Task,
        mut ended: Result<TaskOutcome, Failure>,
        folder: Option<&ResultFolder>,
    ) {
        let (written, failure) = match &ended {
            Ok(TaskOutcome { result, failure }) => {
                let written = folder.map(|folder| result.write(task, folder, false)).transpose();
                // Files that could not be written come before the failure of the task: the user
                // must act on them before the result is gone.
                let lost = written.as_ref().err().map(unwritable);
                (written.is_ok(), lost.or_else(|| failure.clone()))
            }
            Err(failure) => {
                folder.iter().for_each(|folder| folder.remove());
                (false, Some(failure.clone()))
            }
        };
        let cut = |failure: &Failure| failure.kind == FailureKind::Interrupted;
        let partial = match &ended {
            Ok(TaskOutcome { result: TaskResult::Run(measured), .. }) => measured.result.partial,
            Ok(TaskOutcome { result: TaskResult::Plan(plan), .. }) => plan.partial,
            _ => written && failure.as_ref().is_some_and(cut),
        };
        if let Some(run) = &mut self.state().run {
            run.view.phase = RunPhase::Ended;
            let name = folder.filter(|_| written).and_then(|folder| folder.path().file_name());
            run.view.folder = name.map(|name| name.to_string_lossy().into_owned());
            run.view.partial = partial;
            run.view.error = failure.as_ref().map(Failure::body);
            // Samples that were taken before the end are old. Prometheus would otherwise receive
            // the last value repeatedly as if it were new.
            run.told.systems.clear();
            if let Ok(TaskOutcome { result: TaskResult::Run(measured), .. }) = &mut ended {
                run.complete(measured);
            }
            if let Ok(TaskOutcome { result: TaskResult::Plan(plan), .. }) = &ended {
                run.view.take_in_steps(plan);
            }
            if !partial && ended.is_ok() && written {
                run.view.share_done = Some(1.0);
            }
        }
        self.changed();
    }
}
