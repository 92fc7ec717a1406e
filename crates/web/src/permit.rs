//! The targets that a task may write to: those allowed at the start of the server, whatever the page requests.

use ssdyno_cluster::{PlanFile, WorkerConsent};
use ssdyno_session::{Failure, RunSpec, WriteSpec, named};
use ssdyno_task::{CompareTask, Task};

/// Whether a task loads a real device or file. A verification always does, whatever its target is called.
pub(crate) fn is_real(task: &Task) -> bool {
    match task {
        Task::Run(spec) => ssdyno_session::is_real(spec).unwrap_or(false),
        Task::Pts(pts) => named::is_real(&pts.target),
        Task::Profile(profile) => named::is_real(&profile.target),
        Task::Compare(compare) => {
            let sides = compare.sides.len().max(compare.specs.len());
            (0..sides).any(|at| compare.loads_real(at))
        }
        Task::Sweep(sweep) => ssdyno_session::is_real(&sweep.run).unwrap_or(false),
        Task::Plan(plan) => PlanFile::new((**plan).clone()).is_ok_and(|file| {
            let mut loads = file.steps.iter().flat_map(|step| &step.load.hosts);
            loads.any(|host| ssdyno_session::is_real(&host.spec).unwrap_or(false))
        }),
        #[cfg(target_os = "linux")]
        Task::Verify(_) => true,
        #[cfg(target_os = "linux")]
        Task::Probe(_) => false,
    }
}

/// `task` with the permissions from the start of the server instead of the requested ones, as for runs.
pub(crate) fn permit(consent: &WorkerConsent, mut task: Task) -> Result<Task, Failure> {
    match &mut task {
        Task::Run(spec) => **spec = consent.apply((**spec).clone())?,
        Task::Pts(pts) => pts.write = permitted(consent, &pts.target, pts.write.clone())?,
        Task::Profile(profile) => {
            profile.write = permitted(consent, &profile.target, profile.write.clone())?;
        }
        Task::Compare(compare) => {
            // A comparison has one key for consent and many targets. Each real side is checked, and
            // one that is not allowed refuses the whole task.
            for side in compare.sides.iter().filter(|side| CompareTask::is_real(side)) {
                compare.run.write = permitted(consent, side, compare.run.write.clone())?;
            }
            for (at, spec) in compare.specs.iter_mut().enumerate() {
                let Some(spec) = spec else { continue };
                spec.target = spec.target.take().or_else(|| compare.sides.get(at).cloned());
                *spec = consent.apply(spec.clone())?;
            }
        }
        // The plan of a sweep refuses to vary the target where real targets are written to. The
        // consent for its one target is therefore enough.
        Task::Sweep(sweep) => sweep.run = consent.apply(sweep.run.clone())?,
        // Each host asks the consent of its own owner when the plan runs. This
        // machine can neither give nor refuse it.
        Task::Plan(_) => {}
        #[cfg(target_os = "linux")]
        Task::Verify(verify) => {
            // A journal is a file at a path that the request names. The page could otherwise
            // create files anywhere that the user may write to.
            if verify.journal.is_some() {
                return Err(Failure::usage("the page writes only result files")
                    .with_help("leave `journal` out, or verify with `ssdyno verify`")
                    .with_key("journal"));
            }
            if verify.write != WriteSpec::default() {
                // The name alone does not say whether a target is real: a verification takes any file
                // for its target, also one that looks simulated.
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

pub(crate) fn refuse_write(target: &str) -> Failure {
    Failure::usage(format!("writing to {target} is not allowed"))
        .with_help("allow it on the machine that serves the page: `ssdyno ui --write TARGET`")
        .with_key("write.allowed")
}
