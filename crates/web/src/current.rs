//! The run or task that goes on, or the last one, with its series.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Instant;

use ssdyno_cluster::ClusterProgress;
use ssdyno_figures::LiveSnapshot;
use ssdyno_record::Recording;
use ssdyno_session::{Failure, Measured, ResultFolder, RunPhase};
use ssdyno_task::TaskSnapshot;

use crate::flash::LiveFlash;
use crate::series::LiveSeries;
use crate::sources::LiveSources;
use crate::systems::LiveSystems;
use crate::view::{HostView, RunView};

/// The key of the failure to start a run while another goes on.
pub(crate) const BUSY: &str = "run";

/// The run that goes on, or the last one.
#[derive(Debug)]
pub(crate) struct CurrentRun {
    pub(crate) view: RunView,
    /// Number of the step of a plan that the series are of, from 1; 0 of anything else.
    stage: u64,
    /// Name of the folder that waits for its files.
    pub(crate) place: Option<String>,
    pub(crate) series: LiveSeries,
    pub(crate) systems: LiveSystems,
    pub(crate) sources: LiveSources,
    pub(crate) flash: LiveFlash,
    /// The last reports of the hosts.
    pub(crate) told: ClusterProgress,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) thread: Option<JoinHandle<()>>,
}

/// The run that the page starts and shows.
#[derive(Debug, Default)]
pub(crate) struct State {
    runs: u64,
    pub(crate) run: Option<CurrentRun>,
}

impl State {
    /// Refuses a run while another goes on.
    pub(crate) fn refuse_second(&self) -> Result<(), Failure> {
        // The page runs one task at a time. A second run would share processors and drives with
        // the first, and the figures would be of neither.
        if self.run.as_ref().is_some_and(|run| run.view.phase != RunPhase::Ended) {
            let message = "a run is active: two runs at once would disturb each other's figures";
            return Err(Failure::failed(message)
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
    pub(crate) fn new(view: RunView, flash: LiveFlash) -> CurrentRun {
        let series = LiveSeries::new(view.hosts.len());
        let (systems, sources) = (LiveSystems::default(), LiveSources::default());
        let told = ClusterProgress::default();
        let (place, stop) = (None, Arc::default());
        let stage = 0;
        CurrentRun { view, stage, place, series, systems, sources, flash, told, stop, thread: None }
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
            Failure::failed(message).with_help("raise `ulimit -u`")
        })?;
        self.thread = Some(thread);
        Ok(())
    }

    /// The origin of the series of machines and programs: a viewer begins again when it changes.
    pub(crate) fn key(&self) -> (u64, u64) {
        (self.view.id, self.stage)
    }

    /// Begins the series anew at the next step of a plan, which has hosts and a clock of its own.
    pub(crate) fn follow_step(&mut self, snapshot: &TaskSnapshot) {
        let stage = snapshot.done + 1;
        // At the end of the last step there is no next one, and between two steps there are no hosts. The series of
        // the step before stays visible until the next one really begins.
        if stage == self.stage || snapshot.hosts.hosts.is_empty() || snapshot.done == snapshot.of {
            return;
        }
        self.stage = stage;
        let hosts = &snapshot.hosts.hosts;
        self.view.hosts =
            hosts.iter().map(|(name, one, silent)| HostView::of(name, one, *silent)).collect();
        // The epoch rises with the new series, so every viewer replaces the points of
        // the last step instead of appending to them.
        self.series = self.series.anew(hosts.len());
        (self.systems, self.sources) = (LiveSystems::default(), LiveSources::default());
    }

    /// Takes in how far the hosts of a run are; the view has it already.
    pub(crate) fn take_in_hosts(&mut self, hosts: ClusterProgress, phase: RunPhase) {
        self.series.add(&hosts, Instant::now());
        let newest = hosts.systems.iter();
        let newest = newest.filter_map(|(name, sample)| Some((name.as_str(), sample.as_ref()?)));
        // A simulation has its own clock, which runs faster or slower than the wall.
        // Samples of the machine cannot be drawn on it.
        let is_wall = self.view.is_real && self.view.phase == RunPhase::Loaded;
        let run_s = is_wall.then_some(self.view.now_s);
        self.systems.add(newest, run_s);
        self.sources.add(&hosts.metrics, run_s);
        self.flash.look(self.view.id, Instant::now(), phase == RunPhase::Ended);
        self.told = hosts;
    }

    /// Brings a run up to its result: the last snapshot was before the last request, and the result has all of them,
    /// without the ramp-up.
    pub(crate) fn complete(&mut self, measured: &mut Measured) {
        if self.view.hosts.len() == 1 {
            self.series.complete(&mut measured.recording);
            complete(&mut self.told, &mut measured.recording);
        }
        // The result is without the ramp-up, and the live count is with it. The larger number
        // stays, so that the counter never falls at the end.
        self.view.requests = self.view.requests.max(measured.result.requests);
        // The only host did the whole run, so both show the same record.
        if let [(name, snapshot, silent)] = &mut self.told.hosts[..] {
            let progress = &mut snapshot.progress;
            progress.completed = progress.completed.max(self.view.requests);
            self.view.take_in_only_host(name, snapshot, *silent);
        }
    }
}

/// Brings what the only host told last up to what it recorded: a simulation can end before anybody looks twice.
fn complete(told: &mut ClusterProgress, recording: &mut Recording) {
    let mut last = LiveSnapshot::default();
    recording.snapshots(&mut |snapshot| last = snapshot.clone());
    if let Some((_, snapshot, _)) = told.hosts.first_mut() {
        let known = snapshot.progress.glance.as_ref().map_or(0, |glance| glance.completed);
        // Only a recording that knows more replaces the last report. The recording of a run without
        // a series would otherwise erase what was seen.
        if last.completed > known {
            snapshot.progress.now = last.now;
            snapshot.progress.completed = snapshot.progress.completed.max(last.completed);
            snapshot.progress.glance = Some(Arc::new(last));
        }
    }
}
