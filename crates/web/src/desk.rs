//! What the page shows and starts: at most one run at a time, its series, and the folder of results.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use ssdyno_cluster::{
    ClusterProgress, HERE, HostAddress, Hosts, Job, JobPlan, MetricsCache, RunOutline,
    WorkerConsent, metrics_text,
};
use ssdyno_figures::{Keep, LiveSnapshot};
use ssdyno_prober::{Prober, ProberOptions};
use ssdyno_record::Recording;
use ssdyno_report::RunDirectory;
use ssdyno_session::{
    ErrorBody, Failure, FailureKind, Goal, Measured, ResultFolder, RunPhase, RunSnapshot, RunSpec,
    Unattended, lost_rows, unwritable,
};
use ssdyno_task::Task;
use tokio::sync::watch;

use crate::flash::{FlashView, LiveFlash};
use crate::series::{LiveSeries, News, Seen};
use crate::systems::{LiveSystems, SystemNews};
use crate::tasks::TaskView;

/// How often a run is asked how far it is.
pub(crate) const POLL_EVERY: Duration = Duration::from_millis(50);

/// What decides how runs are carried out here, whoever asks for them.
#[derive(Clone, Debug)]
pub struct DeskOptions {
    /// Where folders of results are, and are made.
    pub results: PathBuf,
    /// What may be written to on this machine. Nothing that the page says adds to it.
    pub consent: WorkerConsent,
    /// How other machines are reached; its addresses are not used.
    pub hosts: Hosts,
}

/// What the page asks for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunRequest {
    /// A spec, or a task with the key `task`.
    pub(crate) toml: String,
    /// None: this machine.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
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

/// Three percentiles.
#[derive(Clone, Debug, Serialize)]
struct PercentilesView {
    p50: f64,
    p99: f64,
    p99_9: f64,
}

/// A host as the page shows it.
#[derive(Clone, Debug, Serialize)]
struct HostView {
    name: String,
    phase: RunPhase,
    /// Since when nothing was heard of it.
    silent_s: Option<f64>,
    requests: u64,
    errors: u64,
    latency_ns: Option<PercentilesView>,
}

/// The run as the page shows it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunView {
    pub(crate) id: u64,
    name: String,
    target: String,
    load: String,
    pub(crate) phase: RunPhase,
    stopping: bool,
    started_unix_ms: u64,
    pub(crate) share_done: Option<f64>,
    pub(crate) now_s: f64,
    pub(crate) is_real: bool,
    pub(crate) requests: u64,
    errors: u64,
    latency_ns: Option<PercentilesView>,
    hosts: Vec<HostView>,
    /// Of a task that is no run.
    pub(crate) task: Option<TaskView>,
    /// Once its files are written.
    pub(crate) folder: Option<String>,
    pub(crate) partial: bool,
    pub(crate) error: Option<ErrorBody>,
}

impl RunView {
    /// Of one that begins now.
    pub(crate) fn begun(id: u64, name: String, target: String, load: String) -> RunView {
        RunView {
            id,
            name,
            target,
            load,
            phase: RunPhase::Preparing,
            stopping: false,
            started_unix_ms: unix_ms(SystemTime::now()),
            share_done: None,
            now_s: 0.0,
            is_real: false,
            requests: 0,
            errors: 0,
            latency_ns: None,
            hosts: Vec::new(),
            task: None,
            folder: None,
            partial: false,
            error: None,
        }
    }
}

/// The run that goes on, or the last one.
#[derive(Debug)]
pub(crate) struct CurrentRun {
    pub(crate) view: RunView,
    /// Name of the folder that waits for its files.
    place: Option<String>,
    /// None of a task that is no run.
    goal: Option<Goal>,
    series: LiveSeries,
    systems: LiveSystems,
    flash: LiveFlash,
    /// What the hosts told last.
    told: ClusterProgress,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    runs: u64,
    pub(crate) run: Option<CurrentRun>,
}

impl State {
    /// Refuses a run while another goes on.
    pub(crate) fn refuse_second(&self) -> Result<(), Failure> {
        if self.run.as_ref().is_some_and(|run| run.view.phase != RunPhase::Ended) {
            let message = "a run goes on: figures of two at once would be of neither";
            return Err(Failure::new(FailureKind::Failed, message)
                .with_help("wait for its end, or stop it")
                .with_key(BUSY));
        }
        Ok(())
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.runs += 1;
        self.runs
    }
}

impl CurrentRun {
    pub(crate) fn new(view: RunView, goal: Option<Goal>, flash: LiveFlash) -> CurrentRun {
        let series = LiveSeries::new(view.hosts.len());
        let (systems, told) = (LiveSystems::default(), ClusterProgress::default());
        let (place, stop) = (None, Arc::default());
        CurrentRun { view, place, goal, series, systems, flash, told, stop, thread: None }
    }

    /// Its files will be in `folder`.
    pub(crate) fn in_folder(mut self, folder: Option<&ResultFolder>) -> CurrentRun {
        let name = folder.and_then(|folder| folder.path().file_name());
        self.place = name.map(|name| name.to_string_lossy().into_owned());
        self
    }

    /// Follows it with `follow`, which is given what says that it must stop.
    pub(crate) fn follow(
        &mut self,
        follow: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> Result<(), Failure> {
        let told = Arc::clone(&self.stop);
        let thread = std::thread::Builder::new().name("desk".to_owned());
        let thread = thread.spawn(move || follow(&told)).map_err(|error| {
            let message = format!("cannot start a thread for the run: {error}");
            Failure::new(FailureKind::Failed, message).with_help("raise `ulimit -u`")
        })?;
        self.thread = Some(thread);
        Ok(())
    }
}

/// Everything behind the page.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) options: DeskOptions,
    /// When this server was started: another one knows nothing of its runs.
    pub(crate) since_unix_ms: u64,
    state: Mutex<State>,
    /// Rises with every change.
    changes: watch::Sender<u64>,
    metrics: MetricsCache,
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
            // The text is made without the lock, which the run needs.
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

    /// What a viewer who is as far as `seen` - of the run of that number - has not seen of the series.
    pub(crate) fn news(&self, seen: &mut Option<(u64, Seen)>) -> Option<SeriesNews> {
        let state = self.state();
        let run = state.run.as_ref()?;
        let id = run.view.id;
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

    /// What a viewer who is as far as `seen` - of the run of that number - has not seen of the machines.
    pub(crate) fn system_news(&self, seen: &mut Option<(u64, Vec<usize>)>) -> Vec<SystemNews> {
        let state = self.state();
        let Some(run) = state.run.as_ref() else { return Vec::new() };
        let id = run.view.id;
        let mut place =
            seen.take().filter(|(run, _)| *run == id).map_or(Vec::new(), |(_, seen)| seen);
        let news = run.systems.news(Some(id), &mut place);
        *seen = Some((id, place));
        news
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

    /// Looks whether what is asked for could start.
    pub(crate) fn check(&self, request: &RunRequest) -> Result<Checked, Failure> {
        if Task::is_task(&request.toml) {
            return self.check_task(request);
        }
        let plan = self.plan(request)?;
        Ok(Checked {
            name: plan.name(),
            target: plan.target(),
            load: plan.load().to_owned(),
            is_real: plan.is_real()?,
            hosts: plan.hosts(),
            writes_to: Vec::new(),
        })
    }

    fn plan(&self, request: &RunRequest) -> Result<JobPlan, Failure> {
        let spec = RunSpec::from_toml("the spec", &request.toml)?;
        let addresses: Vec<HostAddress> = request
            .hosts
            .iter()
            .map(|host| host.parse().map_err(|e: String| Failure::usage(e).with_key("hosts")))
            .collect::<Result<_, _>>()?;
        if addresses.is_empty() {
            return JobPlan::new(&self.options.consent.apply(spec)?, None, &mut Unattended);
        }
        // Rows of many hosts would fill the disk of this one.
        let keep = if spec.keep == Keep::All { Keep::Summary } else { spec.keep };
        let spec = RunSpec { keep, ..spec };
        let hosts = Hosts { addresses, ..self.options.hosts.clone() };
        JobPlan::new(&spec, Some(hosts), &mut Unattended)
    }

    /// Starts what is asked for; gives the number of the run.
    pub(crate) fn start(self: &Arc<Desk>, request: &RunRequest) -> Result<u64, Failure> {
        if Task::is_task(&request.toml) {
            return self.start_task(request);
        }
        let mut plan = self.plan(request)?;
        let is_real = plan.is_real()?;
        let mut state = self.state();
        state.refuse_second()?;
        let (asked, goal, hosts) = (plan.asked().clone(), plan.goal(), plan.hosts());
        let (target, load) = (plan.target(), plan.load().to_owned());
        let now = SystemTime::now();
        let default = || RunDirectory::default_name(&target, &load, Some(asked.seed), now);
        let name = request.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(default);
        let folder = match asked.keep {
            Keep::None => None,
            _ => Some(ResultFolder::create(&self.options.results, &name)?),
        };
        if let Some(folder) = &folder {
            plan.keep_rows_in(folder.path().to_owned());
        }
        let (flash, reader) = LiveFlash::new();
        let job = plan.start(Some(Box::new(reader)));
        let job = job.inspect_err(|_| folder.iter().for_each(ResultFolder::remove))?;
        let id = state.next_number();
        let unseen = |name: &String| HostView::of(name, &RunSnapshot::default(), None);
        let hosts = hosts.iter().map(unseen).collect();
        let view = RunView { hosts, is_real, ..RunView::begun(id, name, target, load) };
        let desk = Arc::clone(self);
        let mut run = CurrentRun::new(view, Some(goal), flash).in_folder(folder.as_ref());
        run.follow(move |stop| desk.follow(job, folder.as_ref(), stop))?;
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
        let thread = self.state().run.as_mut().and_then(|run| run.thread.take());
        // A panic has been told of.
        let _ = thread.map(JoinHandle::join);
    }

    /// Watches `job` to its end and writes its files.
    fn follow(&self, job: Job, folder: Option<&ResultFolder>, stop: &AtomicBool) {
        // A run on other hosts has their samples. Without a thread for it the run goes on without.
        let here = job.progress().hosts.first().is_some_and(|(name, ..)| name == HERE);
        let prober = here.then(|| Prober::start(ProberOptions::default()).ok()).flatten();
        while !job.is_over() {
            if stop.load(Ordering::Relaxed) {
                job.stop();
            }
            let mut progress = job.progress();
            let sample = prober.as_ref().map(|prober| (HERE.to_owned(), prober.latest()));
            progress.systems.extend(sample);
            self.take_in(progress);
            std::thread::sleep(POLL_EVERY);
        }
        self.take_in(job.progress());
        let mut ended = job.result();
        let (partial, failure, folder) = match &ended {
            Ok(measured) => conclude(measured, folder),
            Err(failure) => {
                folder.iter().for_each(|folder| folder.remove());
                (false, Some(failure.clone()), None)
            }
        };
        if let Some(run) = &mut self.state().run {
            run.view.phase = RunPhase::Ended;
            // Samples of machines are not news any more.
            run.told.systems.clear();
            (run.view.partial, run.view.folder) = (partial, folder);
            run.view.error = failure.as_ref().map(Failure::body);
            // The last snapshot was before the last request; the result has all of them, without the ramp-up.
            if let Ok(measured) = &mut ended {
                if run.view.hosts.len() == 1 {
                    run.series.complete(&mut measured.recording);
                    complete(&mut run.told, &mut measured.recording);
                }
                run.view.requests = run.view.requests.max(measured.result.requests);
                run.view.share_done =
                    run.view.share_done.map(|share| if partial { share } else { 1.0 });
            }
        }
        self.changed();
    }

    /// Takes in how far the hosts are.
    fn take_in(&self, progress: ClusterProgress) {
        let mut state = self.state();
        let Some(run) = &mut state.run else { return };
        // Hosts are still being reached.
        if progress.hosts.len() == run.view.hosts.len() {
            run.series.add(&progress, Instant::now());
            let host = |(name, snapshot, silent): &(String, RunSnapshot, Option<Duration>)| {
                HostView::of(name, snapshot, *silent)
            };
            run.view.hosts = progress.hosts.iter().map(host).collect();
            let merged = progress.merged();
            let least = progress.hosts.iter().map(|(_, snapshot, _)| snapshot.phase).min();
            // Its files are written first.
            run.view.phase = least.unwrap_or_default().min(RunPhase::Loaded);
            run.view.requests = merged.completed;
            run.view.now_s = merged.now.as_s_f64();
            run.view.share_done = run.goal.as_ref().and_then(|goal| goal.share(&merged));
            run.view.errors = run.view.hosts.iter().map(|host| host.errors).sum();
            run.view.latency_ns = merged.glance.as_deref().and_then(percentiles);
            let newest = progress.systems.iter();
            let newest =
                newest.filter_map(|(name, sample)| Some((name.as_str(), sample.as_ref()?)));
            let is_wall = run.view.is_real && run.view.phase == RunPhase::Loaded;
            run.systems.add(newest, is_wall.then_some(run.view.now_s));
            run.flash.look(run.view.id, Instant::now(), least == Some(RunPhase::Ended));
            run.told = progress;
        }
        drop(state);
        self.changed();
    }
}

/// The key of the failure to start a run while another goes on.
pub(crate) const BUSY: &str = "run";

impl HostView {
    fn of(name: &str, snapshot: &RunSnapshot, silent: Option<Duration>) -> HostView {
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

/// Writes what was measured: whether it is partial, what is wrong with it, and the name of its folder.
fn conclude(
    measured: &Measured,
    folder: Option<&ResultFolder>,
) -> (bool, Option<Failure>, Option<String>) {
    let Measured { result, recording, failure, .. } = measured;
    let written = folder.map(|folder| folder.write_run(result, recording, false)).transpose();
    // Lost files are worse than the rest.
    let lost = written.as_ref().err().map(unwritable);
    let failure = lost.or_else(|| lost_rows(recording)).or_else(|| failure.clone());
    let name = folder.filter(|_| written.is_ok()).and_then(|folder| folder.path().file_name());
    (result.partial, failure, name.map(|name| name.to_string_lossy().into_owned()))
}

/// Brings what the only host told last up to what it recorded: a simulation can end before anybody looks twice.
fn complete(told: &mut ClusterProgress, recording: &mut Recording) {
    let mut last = LiveSnapshot::default();
    recording.snapshots(&mut |snapshot| last = snapshot.clone());
    if let Some((_, snapshot, _)) = told.hosts.first_mut() {
        let known = snapshot.progress.glance.as_ref().map_or(0, |glance| glance.completed);
        if last.completed > known {
            snapshot.progress.now = last.now;
            snapshot.progress.glance = Some(Arc::new(last));
        }
    }
}

fn unix_ms(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
