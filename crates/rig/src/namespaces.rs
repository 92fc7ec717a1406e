//! Namespaces of an NVMe device (S1-43): one that is chosen, or one for each thread.
//!
//! The addresses of the port are those of its namespaces, one after another, each as long as the smallest
//! is. A thread sees the part of its own: its requests are moved there on their way to the host, and
//! nothing below needs to know of threads.

use ssdyno_block::{BlockTarget, Completion, Request, SubmitError, Time, Token};
use ssdyno_device::{Device, DeviceReport};
use ssdyno_driver_nvme::{Namespace, NvmeDriver};
use ssdyno_engine::PrepareError;
use ssdyno_engine::events::EventLog;
use ssdyno_figures::{Invariant, Keep, NamespaceResult};
use ssdyno_host::{Account, ThreadMode};
use ssdyno_record::{Recorder, Recording};

use crate::attach::HostPlan;
use crate::error::RunError;
use crate::ports::PathFigures;
use crate::sim_target::SimTarget;

fn error<T>(problem: String, help: &str) -> Result<T, RunError> {
    Err(RunError::Namespaces { problem, help: help.to_owned() })
}

/// Whether as many namespaces are named as there are threads.
pub(crate) fn check(host: &HostPlan) -> Result<(), RunError> {
    let named = host.namespaces.len();
    // With one namespace all threads share it, as in S1-71 (fixed single namespace). The number of
    // threads then does not matter.
    if named < 2 {
        return Ok(());
    }
    let help = "name one namespace for each thread, such as 1,2,1,2, or a single one for all";
    match host.processes {
        None => error(
            format!(
                "{named} namespaces, but the number of threads is not fixed: each request is a thread"
            ),
            "use `host.threads=async`, or a single namespace",
        ),
        Some(threads) if threads as usize != named => {
            error(format!("{named} namespaces for {threads} threads"), help)
        }
        Some(_) => Ok(()),
    }
}

/// The namespaces with these numbers, or the first; all of them can be used.
pub(crate) fn chosen(driver: &NvmeDriver, wanted: &[u32]) -> Result<Vec<Namespace>, RunError> {
    let wanted = if wanted.is_empty() { &[1] } else { wanted };
    let all = driver.namespaces();
    let find = |id: &u32| match all.iter().find(|namespace| namespace.id == *id) {
        Some(namespace) => match namespace.unusable {
            None => Ok(*namespace),
            Some(why) => error(
                format!("namespace {id} cannot be used: {why:?}"),
                "choose another with `host.namespaces`",
            ),
        },
        None => {
            let ids: Vec<String> = all.iter().map(|namespace| namespace.id.to_string()).collect();
            let there = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
            error(
                format!("the device has no namespace {id}; it has: {there}"),
                "choose with `host.namespaces`, or add it to nvme.namespaces of the device file",
            )
        }
    };
    wanted.iter().map(find).collect()
}

/// The size of a block that fits all of them: the largest, for all are powers of two.
pub(crate) fn block_bytes(namespaces: &[Namespace]) -> u32 {
    namespaces.iter().map(|namespace| namespace.block_bytes).max().unwrap_or(1)
}

/// What each of them has of the addresses: what the smallest has, in whole blocks of any of them.
pub(crate) fn span(namespaces: &[Namespace]) -> u64 {
    let smallest = namespaces.iter().map(Namespace::capacity_bytes).min().unwrap_or(0);
    // All namespaces have the same length for the workload, which knows only one capacity. A longer
    // one is used in part, so that each thread has the same range.
    let block = u64::from(block_bytes(namespaces));
    smallest / block * block
}

/// A request on its way, by token.
#[derive(Clone, Copy, Debug)]
struct Sent {
    request: Request,
    at: Time,
}

/// A machine whose threads have namespaces of their own, and figures for each of those.
pub(crate) struct PerNamespaceRecorder {
    machine: Box<dyn SimTarget>,
    span: u64,
    /// Of the threads in turn: which of `loaded` it has.
    of_thread: Vec<usize>,
    /// Tokens are dealt out to so many threads; none: each is a thread.
    threads: Option<u32>,
    loaded: Vec<Namespace>,
    recorders: Vec<Option<Recorder>>,
    sent: Vec<Option<Sent>>,
}

impl PerNamespaceRecorder {
    /// `machine` with the namespaces that `host` names, in the order of their addresses.
    pub(crate) fn new(
        machine: Box<dyn SimTarget>,
        host: &HostPlan,
        loaded: &[Namespace],
    ) -> PerNamespaceRecorder {
        let first = |id: u32| loaded.iter().position(|other| other.id == id);
        PerNamespaceRecorder {
            machine,
            span: span(loaded),
            of_thread: loaded.iter().filter_map(|namespace| first(namespace.id)).collect(),
            threads: (host.plan.mode != ThreadMode::Sync).then_some(host.plan.threads.max(1)),
            loaded: loaded.to_vec(),
            recorders: loaded.iter().map(|_| Some(Recorder::new(Keep::Summary, None))).collect(),
            sent: Vec::new(),
        }
    }

    /// Which namespace the thread of `token` has.
    fn place(&self, token: Token) -> usize {
        // The rule must be the one of the host, which deals tokens to threads in turn. Another rule
        // would send requests of a thread to the namespace of another.
        let thread = self.threads.map_or(token.0, |threads| token.0 % threads);
        self.of_thread[thread as usize % self.of_thread.len()]
    }

    fn record(&mut self, completions: &[Completion]) {
        for completion in completions {
            let place = self.place(completion.token);
            let sent = self.sent.get_mut(completion.token.0 as usize).and_then(Option::take);
            if let (Some(sent), Some(Some(recorder))) = (sent, self.recorders.get_mut(place)) {
                recorder.record(&sent.request, sent.at, completion);
            }
        }
    }
}

impl BlockTarget for PerNamespaceRecorder {
    fn capacity_bytes(&self) -> u64 {
        self.span
    }

    fn sector_bytes(&self) -> u32 {
        self.machine.device().sector_bytes()
    }

    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.check(&request)?;
        let place = self.place(token);
        // The offset selects the namespace further down. Threads are unknown there, and a field for
        // the namespace in each request would cost memory in every run.
        let offset_bytes = request.offset_bytes + place as u64 * self.span;
        // The request is recorded only after it was accepted. A full machine returns it, and it
        // comes again with the same token.
        self.machine.as_device().submit(now, Request { offset_bytes, ..request }, token)?;
        let index = token.0 as usize;
        if index >= self.sent.len() {
            self.sent.resize(index + 1, None);
        }
        self.sent[index] = Some(Sent { request, at: now });
        if let Some(recorder) = &mut self.recorders[place] {
            recorder.arrived(now);
        }
        Ok(())
    }

    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        let first = out.len();
        self.machine.as_device().reap(now, out);
        self.record(&out[first..]);
    }

    fn next_event(&self) -> Option<Time> {
        self.machine.device().next_event()
    }
}

impl Device for PerNamespaceRecorder {
    fn events(&mut self) -> &mut EventLog {
        self.machine.as_device().events()
    }

    fn report(&self, report: &mut DeviceReport) {
        self.machine.device().report(report);
    }

    fn precondition(&mut self, watcher: &mut dyn FnMut(f64) -> bool) -> Result<(), PrepareError> {
        self.machine.as_device().precondition(watcher)
    }

    fn host_cpu(&self) -> Time {
        self.machine.device().host_cpu()
    }

    fn is_gone(&self) -> bool {
        self.machine.device().is_gone()
    }

    fn begin_window(&mut self, at: Time) {
        self.machine.as_device().begin_window(at);
        // The window is that of the run: what completed before is in none of its figures. Requests on their way belong to
        // the window in which they complete.
        for recorder in &mut self.recorders {
            *recorder = Some(Recorder::new(Keep::Summary, None).start_recording_at(at));
        }
        let on_their_way = self.sent.iter().zip(0..).filter_map(|(sent, token)| {
            let sent = sent.as_ref()?;
            Some((sent.at, self.place(Token(token))))
        });
        let mut on_their_way: Vec<(Time, usize)> = on_their_way.collect();
        on_their_way.sort_unstable();
        for (sent, place) in on_their_way {
            if let Some(recorder) = &mut self.recorders[place] {
                recorder.arrived(sent);
            }
        }
    }

    fn run_until_completion(
        &mut self,
        limit: Option<Time>,
        out: &mut Vec<Completion>,
    ) -> Option<Time> {
        let first = out.len();
        let reached = self.machine.as_device().run_until_completion(limit, out);
        self.record(&out[first..]);
        reached
    }
}

impl SimTarget for PerNamespaceRecorder {
    fn as_device(&mut self) -> &mut dyn Device {
        self
    }

    fn device(&self) -> &dyn Device {
        self
    }

    fn account(&self) -> Option<&Account> {
        self.machine.account()
    }

    fn path(&self, end: Time, report: &mut PathFigures) {
        self.machine.path(end, report);
        let lost = self.sent.iter().flatten().count();
        report.invariants.push(Invariant {
            name: "namespaces".into(),
            holds: lost == 0,
            detail: format!("{lost} requests of namespaces did not complete"),
        });
    }

    fn namespaces(&mut self, end: Time) -> Vec<NamespaceResult> {
        let mut all = Vec::new();
        for (place, namespace) in self.loaded.iter().enumerate() {
            // A namespace that several threads share appears several times in the list. Only its
            // first place reports, because all of its requests were recorded there.
            if self.of_thread[place] != place {
                continue;
            }
            let has = |(n, of): (usize, &usize)| (*of == place).then_some(n as u32);
            // One that is alone is every thread's.
            let threads = match self.of_thread.len() {
                1 => Vec::new(),
                _ => self.of_thread.iter().enumerate().filter_map(has).collect(),
            };
            let recording = self.recorders[place].take().map(|r| r.finish(end));
            let figures = recording.as_ref().map(Recording::namespace_result).unwrap_or_default();
            all.push(NamespaceResult {
                namespace: namespace.id,
                block_bytes: namespace.block_bytes,
                capacity_bytes: namespace.capacity_bytes(),
                threads,
                ..figures
            });
        }
        all
    }
}
