//! Simulated targets: from a spec to a run in virtual time, and from its errors back to the spec.

use ssdyno_driver_ring::RingError;
use ssdyno_rig::{RunError, RunLimits, Session, SimRun};

use crate::attach::HostRequest;
use crate::document::Document;
use crate::failure::{Failure, FailureKind};
use crate::kinds::DEVICE_KINDS;
use crate::named;
use crate::overlay::settings;
use crate::real::refuse_real;
use crate::source::LoadedSource;
use crate::spec::{FileContents, RunSpec, series_interval};

/// A run in virtual time, and where its parts come from.
#[derive(Debug)]
pub(crate) struct SimulatedRun {
    /// The run.
    pub(crate) run: SimRun,
    device: Document,
    /// The file of the load, for errors about it.
    pub(crate) workload: Option<Document>,
    /// The defaults chosen for the user.
    pub(crate) notes: Vec<String>,
}

impl SimulatedRun {
    /// The run of `spec` on `target`, and the spec with everything in it.
    pub(crate) fn new(spec: &RunSpec, target: &str) -> Result<(SimulatedRun, RunSpec), Failure> {
        refuse_real(&spec.real, &spec.write, "a device, a file or `null:`")?;
        let settings = settings(&spec.set)?;
        let device = named::device(spec.contents.device.as_ref(), target, &settings)?;
        let load = LoadedSource::new(spec, target, &[], &settings)?;
        let device_contents =
            device.config.to_table(DEVICE_KINDS).unwrap_or_else(|| device.document.as_written());
        let request = HostRequest {
            spec: &spec.host,
            contents: &spec.contents,
            source: &load.source,
            settings: &settings,
        };
        let attached = request.attach(device.config)?;
        let run = SimRun {
            target: device.name.clone(),
            device: attached.attach,
            workload: spec.load(target).to_owned(),
            source: load.source,
            seed: spec.seed,
            limits: RunLimits { until: spec.until, ..RunLimits::default() },
            keep: spec.keep,
            interval: series_interval(spec),
            why: spec.why,
        };
        let resolved = RunSpec {
            target: Some(device.name),
            set: Vec::new(),
            host: attached.host,
            contents: FileContents {
                device: Some(device_contents),
                workload: load.contents,
                files: load.files,
                ..attached.contents
            },
            ..spec.clone()
        };
        let (workload, notes) = (load.document, device.notes);
        let device = device.document;
        Ok((SimulatedRun { run, device, workload, notes }, resolved))
    }

    /// Its device, for loads of their own.
    pub(crate) fn begin_session(&self) -> Result<Session, Failure> {
        let session = Session::new(&self.run.device, self.run.seed);
        session.map_err(|error| self.explain(&error, FailureKind::Usage))
    }

    /// An error of the run, at its place. `kind` for what showed only on the way.
    pub(crate) fn explain(&self, error: &RunError, kind: FailureKind) -> Failure {
        match error {
            RunError::Device(error) => self.device.impossible(error),
            RunError::Workload(error) => {
                named::workload_failure(kind, error, self.workload.as_ref())
            }
            RunError::Host(error) => {
                let message = format!("`{}` of the host: {}", error.key, error.problem);
                Failure::usage(message).with_help(error.help.as_str()).with_key(&error.key)
            }
            RunError::Ring(RingError::BadOption { .. }) => Failure::usage(error.to_string())
                .with_help("change it in `host.ring`; the help of `ssdyno run` lists its keys"),
            RunError::Stack { .. } => {
                Failure::usage(error.to_string()).with_help("leave `host.stack` out")
            }
            RunError::Namespaces { help, .. } => {
                Failure::usage(error.to_string()).with_help(help.as_str())
            }
            RunError::Nvme(_) | RunError::Ring(_) | RunError::Scsi(_) => {
                Failure::new(FailureKind::Failed, error.to_string())
                    .with_help("check the tables of the controller in the device file")
            }
            RunError::Refused { request, error } => {
                let what = format!(
                    "the device refused a {:?} of {} B at byte {}: {error}",
                    request.op, request.length_bytes, request.offset_bytes
                );
                Failure::new(FailureKind::Failed, what.to_lowercase())
                    .with_help("the figures cover the requests before it")
            }
            RunError::Unprepared => Failure::new(FailureKind::Interrupted, error.to_string())
                .with_help("nothing was measured, so there is no result"),
            RunError::Gone { .. } => Failure::new(FailureKind::Failed, error.to_string())
                .with_help("the figures cover the requests before it; `faults` of the device contains the injected faults"),
            RunError::GivenUp { .. } => Failure::new(FailureKind::Failed, error.to_string()).with_help(
                "the figures cover the requests before it; if the run injects no faults, the driver's time limit is too short for the device: raise `host.time_limit`",
            ),
            RunError::Memory => Failure::new(FailureKind::Failed, error.to_string()).with_help(
                "the figures cover the requests up to that point; with `keep=summary`, memory does not grow with the number of requests",
            ),
            RunError::Interrupted => Failure::new(FailureKind::Interrupted, "interrupted")
                .with_help("the figures cover the requests up to that point"),
        }
    }
}
