//! Workers in threads, and runs on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use ssdyno_cluster::{
    HostAddress, Hosts, WorkerConsent, WorkerListener, WorkerService, run_on_hosts, serve_listener,
};
use ssdyno_figures::KeepGoing;
use ssdyno_session::{Failure, Measured, RunSpec};

pub(crate) const VERSION: &str = "1.2.3";

/// A worker in a thread of its own.
pub(crate) struct Running {
    pub(crate) address: HostAddress,
    pub(crate) end: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

impl Running {
    pub(crate) fn new(consent: WorkerConsent) -> Running {
        Running::of_version(consent, VERSION)
    }

    pub(crate) fn of_version(consent: WorkerConsent, version: &str) -> Running {
        Running::of(WorkerService::new(consent, version))
    }

    pub(crate) fn of(service: WorkerService) -> Running {
        let listener = WorkerListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.address().to_string().parse().unwrap();
        let end = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&end);
        let serve =
            move || serve_listener(listener, &service, move || ends.load(Ordering::Relaxed));
        Running { address, end, thread: Some(std::thread::spawn(serve)) }
    }

    fn stop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn workers(count: usize) -> (Vec<Running>, Vec<HostAddress>) {
    let workers: Vec<Running> =
        (0..count).map(|_| Running::new(WorkerConsent::default())).collect();
    let addresses = workers.iter().map(|worker| worker.address.clone()).collect();
    (workers, addresses)
}

pub(crate) fn run(hosts: &[HostAddress], spec: &RunSpec) -> Result<Measured, Failure> {
    run_on_hosts(&at(hosts), spec, &mut |_| KeepGoing::Continue)
}

pub(crate) fn at(hosts: &[HostAddress]) -> Hosts {
    Hosts { addresses: hosts.to_vec(), version: VERSION.to_owned(), ..Hosts::default() }
}

pub(crate) fn spec(target: &str, seconds: f64) -> RunSpec {
    RunSpec {
        target: Some(target.to_owned()),
        duration: format!("{}ms", seconds * 1e3).parse().ok(),
        ..RunSpec::default()
    }
}

pub(crate) fn file(bytes: usize) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![7u8; bytes]).unwrap();
    file
}

pub(crate) fn name_of(file: &tempfile::NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}
