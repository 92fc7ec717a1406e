//! A worker: one run at a time, for whoever prepared it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ssdyno_figures::Keep;
use ssdyno_prober::monotonic_ns;
use ssdyno_session::{
    BeginAt, Failure, ProgramIdentity, RunPhase, RunSnapshot, RunSpec, Runner, Unattended,
    WriteSpec, is_real, resolve,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::clocks::{unix_less_monotonic_ns, unix_ns};
use crate::current_run::{CurrentRun, Stage, Started};
use crate::probes::Probes;
use crate::protocol::{
    Begin, ClockReading, Collected, Done, FetchRows, Greeting, Hello, HostRecord, HostSnapshot,
    NO_RUN, OfProbe, OfRun, PROTOCOL, Prepare, Preparing, ProbeRecord, ProbeSample, ReadClock,
    RowsPart, StartProbe, Watch, Worker, status_of,
};
use crate::rows::KeptRows;

/// How often a run is looked at for a change of its phase: while it prepares, where others wait for it, and later. Of
/// many workers on one machine each look wakes a thread up.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const LOOK_EVERY_UNDER_WAY: Duration = Duration::from_millis(30);

/// The permissions of a machine's owner to controllers: targets for writing, and how. No request of a controller adds
/// to them.
#[derive(Clone, Debug, Default)]
pub struct WorkerConsent {
    /// By the name of the target, as specs name it.
    pub targets: BTreeMap<String, WriteSpec>,
}

impl WorkerConsent {
    /// `spec` with the permissions of this machine instead of the requested ones.
    ///
    /// # Errors
    /// It requests to write, and nothing is allowed.
    pub fn apply(&self, spec: RunSpec) -> Result<RunSpec, Failure> {
        if !is_real(&spec)? || spec.write == WriteSpec::default() {
            return Ok(spec);
        }
        let target = spec.target.clone().unwrap_or_default();
        let Some(write) = self.targets.get(&target) else {
            let message = format!("this worker does not allow writing to {target}");
            let help =
                "allow the write on the machine with the disk, when you start the worker there";
            return Err(Failure::usage(message).with_help(help).with_key("write.allowed"));
        };
        // Only `allowed` comes from the controller; it can ask for less than the owner allows, and never for more.
        // The serial numbers and other conditions come from this machine.
        Ok(RunSpec { write: WriteSpec { allowed: spec.write.allowed, ..write.clone() }, ..spec })
    }
}

/// Carries out runs for controllers, one at a time.
#[derive(Clone, Debug)]
pub struct WorkerService {
    consent: Arc<WorkerConsent>,
    /// The program, which is in the result of each run.
    program: ProgramIdentity,
    /// Whether it takes runs: a prober only samples.
    takes_runs: bool,
    /// Where rows lie until they are fetched.
    rows_in: Arc<PathBuf>,
    state: Arc<Mutex<State>>,
    probes: Probes,
    /// Who its controllers are; `None` without TLS.
    #[cfg(target_os = "linux")]
    tls: Option<crate::tls::ServerTls>,
}

#[derive(Debug, Default)]
struct State {
    runs: u64,
    run: Option<CurrentRun>,
}

impl State {
    /// The run of this number, of whose controller this is a sign of life.
    fn hear(&mut self, number: u64) -> Option<&mut CurrentRun> {
        let run = self.run.as_mut().filter(|run| run.number == number)?;
        run.heard = Instant::now();
        Some(run)
    }
}

/// The name of this machine.
pub(crate) fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "localhost".to_owned() } else { name.trim().to_owned() }
}

impl WorkerService {
    /// A worker of a program of `version`, which writes only where `consent` says so.
    pub fn new(consent: WorkerConsent, version: &str) -> WorkerService {
        WorkerService {
            consent: Arc::new(consent),
            program: ProgramIdentity { version: version.to_owned(), ..ProgramIdentity::default() },
            takes_runs: true,
            rows_in: Arc::new(std::env::temp_dir()),
            state: Arc::default(),
            probes: Probes::default(),
            #[cfg(target_os = "linux")]
            tls: None,
        }
    }

    /// Whose controllers bring the list of revoked certificates to `tls`.
    #[cfg(target_os = "linux")]
    pub(crate) fn told_by(self, tls: &crate::tls::ServerTls) -> WorkerService {
        WorkerService { tls: Some(tls.clone()), ..self }
    }

    /// With the rows of runs below `directory` until they are fetched; by default below the system's directory of
    /// temporary files.
    #[must_use]
    pub fn keep_rows_in(self, directory: PathBuf) -> WorkerService {
        WorkerService { rows_in: Arc::new(directory), ..self }
    }

    /// With the commit of the program, if it was built from a repository, for the provenance of its runs.
    #[must_use]
    pub fn built_from(mut self, commit: Option<String>) -> WorkerService {
        self.program.commit = commit;
        self
    }

    /// A prober of a program of `version`: it samples its machine and takes no runs.
    pub fn prober(version: &str) -> WorkerService {
        WorkerService { takes_runs: false, ..WorkerService::new(WorkerConsent::default(), version) }
    }

    /// A panic elsewhere leaves the state whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a run is there.
    pub(crate) fn is_busy(&self) -> bool {
        self.state().run.is_some()
    }

    /// Stops the run in order, if there is one; what was measured is kept for its controller.
    pub(crate) fn stop_run(&self) {
        self.with_runner(None, Runner::stop);
    }

    /// The run in progress, for a viewer: the call is not a sign of life of its controller. With its number, target and
    /// load.
    pub(crate) fn run_under_way(&self) -> Option<(u64, RunSnapshot, String, String)> {
        let state = self.state();
        let run = state.run.as_ref()?;
        let runner = run.runner()?;
        let prepared = runner.prepared();
        Some((run.number, runner.poll(), prepared.name(), prepared.load().to_owned()))
    }

    /// Version of the program.
    pub(crate) fn version(&self) -> &str {
        &self.program.version
    }

    fn with_runner<T>(&self, number: Option<u64>, act: impl FnOnce(&Runner) -> T) -> Option<T> {
        let mut state = self.state();
        let number = number.or(state.run.as_ref().map(|run| run.number))?;
        state.hear(number)?.runner().map(act)
    }

    /// Ends a run whose controller is gone.
    pub(crate) fn end_abandoned(&self) {
        self.probes.end_abandoned();
        let mut state = self.state();
        let run = state.run.take_if(|run| run.is_abandoned(Instant::now()));
        drop(state);
        // The run is dropped after the lock is released: dropping waits for requests in
        // flight, and every other call needs the lock.
        drop(run);
    }

    /// Prepares run `number`, which has its place, for its controller.
    fn prepare_claimed(&self, number: u64, spec: &str) -> Result<Preparing, Status> {
        let started = self.start(number, spec);
        let mut state = self.state();
        match (started, state.run.as_mut().filter(|run| run.number == number)) {
            (Ok((started, told, rows)), Some(run)) => {
                (run.stage, run.rows) = (Stage::Started(started), rows);
                // The lease begins again: the controller could send nothing while the target was opened.
                run.heard = Instant::now();
                Ok(Preparing { run: number, ..told })
            }
            (started, None) => {
                // Dropping a run waits for its thread, and every other call needs the lock.
                drop(state);
                drop(started);
                Err(no_run())
            }
            (Err(failure), Some(_)) => {
                state.run = None;
                Err(status_of(&failure))
            }
        }
    }

    /// Resolves and starts what `prepare` asks for, as run `number`.
    fn start(
        &self,
        number: u64,
        spec: &str,
    ) -> Result<(Box<Started>, Preparing, Option<KeptRows>), Failure> {
        let wrong = |error| Failure::usage(format!("this is not a spec: {error}"));
        let spec: RunSpec = serde_json::from_str(spec).map_err(wrong)?;
        // `Unattended` refuses every question: a worker has no terminal. Consent was given
        // when the worker was started, or it is missing.
        let mut prepared = resolve(&self.consent.apply(spec)?, &mut Unattended)?;
        // Several workers of one machine may read the same target (docs/many_hosts.md). The exclusive
        // lock of a single run would refuse the second worker.
        prepared.share_target();
        let keeps = prepared.asked().keep == Keep::All;
        let rows = keeps.then(|| KeptRows::create(&self.rows_in, number)).transpose()?;
        if let Some(rows) = &rows {
            prepared.keep_rows_in(rows.path());
        }
        let told = Preparing { run: 0, target: prepared.name(), load: prepared.load().to_owned() };
        let provenance = prepared.provenance(&self.program);
        let runner = prepared.start()?;
        Ok((Box::new(Started { runner, provenance }), told, rows))
    }

    /// Takes the place of the run; an error where somebody else has it.
    fn claim(&self, controller: String) -> Result<u64, Failure> {
        if !self.takes_runs {
            return Err(Failure::usage(
                "this is a prober: it samples its machine and accepts no runs",
            )
            .with_help("name it among the probers, or start a worker there"));
        }
        // The place is taken before the target is opened, under one lock. Two controllers at the
        // same moment would otherwise both open the target.
        let mut state = self.state();
        if let Some(run) = &state.run {
            let message = format!("this worker already has a run of {}", run.controller);
            return Err(Failure::failed(message)
                .with_help("wait until it has ended, or use another worker"));
        }
        state.runs += 1;
        let number = state.runs;
        state.run = Some(CurrentRun {
            number,
            controller,
            stage: Stage::Preparing,
            unix_less_monotonic_ns: unix_less_monotonic_ns(),
            rows: None,
            heard: Instant::now(),
        });
        Ok(number)
    }

    /// The record of run `number`, which has ended.
    fn record(&self, number: u64) -> Result<Arc<HostRecord>, Status> {
        let collecting = {
            let mut state = self.state();
            state.hear(number).and_then(CurrentRun::collect).ok_or_else(no_run)?
        };
        let record = collecting.outcome().map_err(|failure| status_of(&failure));
        self.state().hear(number);
        record
    }
}

fn no_run() -> Status {
    let message = "this worker does not have this run: the worker was restarted, or it ended the run because its controller was silent";
    status_of(&Failure::failed(message).with_key(NO_RUN))
}

fn no_probe() -> Status {
    let message = "this machine does not have this probe: its program was restarted, or its controller was silent";
    status_of(&Failure::failed(message).with_key(NO_RUN))
}

/// Does what may wait away from the threads that carry the connections.
async fn away<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Status> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Status::internal(format!("the worker failed: {error}")))
}

#[tonic::async_trait]
impl Worker for WorkerService {
    type WatchStream =
        Pin<Box<dyn tokio_stream::Stream<Item = Result<HostSnapshot, Status>> + Send + 'static>>;

    type RowsStream =
        Pin<Box<dyn tokio_stream::Stream<Item = Result<RowsPart, Status>> + Send + 'static>>;

    type WatchProbeStream =
        Pin<Box<dyn tokio_stream::Stream<Item = Result<ProbeSample, Status>> + Send + 'static>>;

    async fn hello(&self, hello: Request<Hello>) -> Result<Response<Greeting>, Status> {
        #[cfg(target_os = "linux")]
        if let (Some(tls), Some(list)) = (&self.tls, &hello.get_ref().revoked) {
            // If the list cannot be stored, the controller must know it. It would otherwise believe that this
            // worker refuses the stolen certificate from now on.
            tls.learn(list).map_err(|failure| status_of(&failure))?;
        }
        #[cfg(not(target_os = "linux"))]
        drop(hello);
        let (version, machine) = (self.program.version.clone(), machine());
        Ok(Response::new(Greeting { protocol: PROTOCOL, version, machine }))
    }

    async fn read_clock(&self, _: Request<ReadClock>) -> Result<Response<ClockReading>, Status> {
        Ok(Response::new(ClockReading { monotonic_ns: monotonic_ns(), unix_ns: unix_ns() }))
    }

    async fn prepare(&self, request: Request<Prepare>) -> Result<Response<Preparing>, Status> {
        let Prepare { spec, controller } = request.into_inner();
        let number = self.claim(controller).map_err(|failure| status_of(&failure))?;
        let service = self.clone();
        // Tonic drops this future if the connection breaks. The thread that opens the target therefore also puts the
        // run into its place, where the lease ends it.
        let prepared = away(move || service.prepare_claimed(number, &spec)).await;
        if prepared.is_err() {
            self.state().run.take_if(|run| run.number == number);
        }
        prepared?.map(Response::new)
    }

    async fn begin(&self, request: Request<Begin>) -> Result<Response<Done>, Status> {
        let Begin { run: number, at_monotonic_ns } = request.into_inner();
        let now = monotonic_ns();
        let here = Instant::now();
        let moment = match at_monotonic_ns.checked_sub(now) {
            Some(to_come) => here.checked_add(Duration::from_nanos(to_come)),
            None => here.checked_sub(Duration::from_nanos(now - at_monotonic_ns)),
        };
        let begun = self.with_runner(Some(number), |runner| {
            runner.begin(BeginAt::Instant(moment.unwrap_or(here)));
        });
        begun.ok_or_else(no_run)?;
        if let Some(run) = self.state().run.as_mut() {
            run.unix_less_monotonic_ns = unix_less_monotonic_ns();
        }
        Ok(Response::new(Done {}))
    }

    async fn watch(&self, request: Request<Watch>) -> Result<Response<Self::WatchStream>, Status> {
        let Watch { run: number, every_ms } = request.into_inner();
        let every = Duration::from_millis(u64::from(every_ms.clamp(10, 10_000)));
        self.with_runner(Some(number), Runner::look).ok_or_else(no_run)?;
        // At most one snapshot waits for a slow controller. When it has been taken, the controller
        // gets the newest one, and memory does not grow.
        let (send, receive) = mpsc::channel(1);
        let service = self.clone();
        tokio::spawn(async move {
            let mut told: Option<(RunPhase, Instant)> = None;
            loop {
                let poll = |runner: &Runner| runner.poll();
                let Some(snapshot) = service.with_runner(Some(number), poll) else { return };
                let phase = snapshot.phase;
                // A new phase is reported at once: the other hosts wait for the last one that becomes ready,
                // and `every` would add up to 100 ms to the start.
                let is_due = told.is_none_or(|(last, at)| last != phase || at.elapsed() >= every);
                if is_due {
                    if send.send(Ok(HostSnapshot { snapshot })).await.is_err()
                        || phase == RunPhase::Ended
                    {
                        return;
                    }
                    told = Some((phase, Instant::now()));
                    service.with_runner(Some(number), Runner::look);
                }
                let under_way = phase >= RunPhase::Ready;
                let pause = if under_way { LOOK_EVERY_UNDER_WAY } else { LOOK_EVERY };
                tokio::time::sleep(pause).await;
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receive))))
    }

    async fn stop(&self, request: Request<OfRun>) -> Result<Response<Done>, Status> {
        self.with_runner(Some(request.into_inner().run), Runner::stop).ok_or_else(no_run)?;
        Ok(Response::new(Done {}))
    }

    async fn collect(&self, request: Request<OfRun>) -> Result<Response<Collected>, Status> {
        let (number, service) = (request.into_inner().run, self.clone());
        let record = away(move || service.record(number)).await??;
        Ok(Response::new(Collected(record)))
    }

    async fn rows(
        &self,
        request: Request<FetchRows>,
    ) -> Result<Response<Self::RowsStream>, Status> {
        let FetchRows { run: number, offset } = request.into_inner();
        let (record, rows) = {
            let mut state = self.state();
            let run = state.hear(number).ok_or_else(no_run)?;
            (run.record().ok_or_else(no_run)?, run.rows.clone().ok_or_else(no_run)?)
        };
        let (send, receive) = mpsc::channel(2);
        let service = self.clone();
        tokio::task::spawn_blocking(move || {
            let hear = || {
                service.state().hear(number);
            };
            rows.send(&record.recording, offset, &send, hear);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receive))))
    }

    async fn start_probe(&self, request: Request<StartProbe>) -> Result<Response<OfProbe>, Status> {
        let every = Duration::from_millis(u64::from(request.into_inner().every_ms));
        let probe = self.probes.start(every).map_err(|failure| status_of(&failure))?;
        Ok(Response::new(OfProbe { probe }))
    }

    async fn watch_probe(
        &self,
        request: Request<OfProbe>,
    ) -> Result<Response<Self::WatchProbeStream>, Status> {
        let OfProbe { probe } = request.into_inner();
        let samples = self.probes.follow(probe, LOOK_EVERY * 4).ok_or_else(no_probe)?;
        Ok(Response::new(Box::pin(samples)))
    }

    async fn end_probe(&self, request: Request<OfProbe>) -> Result<Response<ProbeRecord>, Status> {
        let (OfProbe { probe }, probes) = (request.into_inner(), self.probes.clone());
        let series = away(move || probes.end(probe)).await?.ok_or_else(no_probe)?;
        Ok(Response::new(ProbeRecord { series }))
    }

    async fn release(&self, request: Request<OfRun>) -> Result<Response<Done>, Status> {
        let number = request.into_inner().run;
        let run = self.state().run.take_if(|run| run.number == number);
        away(move || drop(run)).await?;
        Ok(Response::new(Done {}))
    }
}
