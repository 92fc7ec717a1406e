//! Real targets: from a spec to a run in wall time, and from its errors back to the spec.

use std::time::Duration;

#[cfg(target_os = "linux")]
use ssdyno_bench::RealTarget;
use ssdyno_bench::{BenchError, BenchOptions, BenchRun, Method, PageCache, Probing, ReapWait};
use ssdyno_block::Time;
use ssdyno_block::units::Span;
use ssdyno_figures::{MethodResult, MethodSettings, RunLimits};
#[cfg(target_os = "linux")]
use ssdyno_rig::Source;
use ssdyno_safety::Access;
use ssdyno_workload::TargetFacts;

#[cfg(target_os = "linux")]
use crate::consent::access;
use crate::document::Document;
use crate::failure::{Failure, FailureKind};
#[cfg(target_os = "linux")]
use crate::fio;
use crate::named;
use crate::overlay::settings;
use crate::prompt::Prompt;
use crate::schema_keys::WORKLOAD;
use crate::source::LoadedSource;
use crate::spec::{FileContents, Pin, RealSpec, RunSpec, WriteSpec, given, series_interval};

/// Why `key` is refused for a simulated target; `instead` says what to name for it.
fn for_real_targets(key: &str, instead: &str) -> Failure {
    let mut help = format!("leave it out, or name {instead}");
    if matches!(key, "write.allowed" | "write.size") {
        // Without a slash it is taken for the name of a simulated device.
        help += "; give a new file with its path, such as ./NAME";
    }
    Failure::usage(format!("`{key}` is for real targets")).with_help(help).with_key(key)
}

/// Refuses keys for real targets if the target is simulated, because they would have no effect. `instead` says what to
/// name for it.
///
/// # Errors
/// At least one of them is set.
pub fn refuse_real(real: &RealSpec, write: &WriteSpec, instead: &str) -> Result<(), Failure> {
    let all = given("real", real).into_iter().chain(given("write", write));
    all.into_iter().next().map_or(Ok(()), |(key, _)| Err(for_real_targets(&key, instead)))
}

/// Refuses what is for the host of a simulated target, for a real one.
pub(crate) fn refuse_host(host: &crate::HostSpec) -> Result<(), Failure> {
    match given("host", host).into_iter().next() {
        None => Ok(()),
        Some((key, _)) => {
            let what = format!("`{key}` is for simulated targets");
            let help = "leave it out: here this machine is the host";
            Err(Failure::usage(what).with_help(help).with_key(key))
        }
    }
}

impl RealSpec {
    /// The requested values over the defaults.
    pub fn options(&self) -> BenchOptions {
        let usual = BenchOptions::default();
        let duration = |span: Span| Duration::from_nanos(span.0.as_ns());
        BenchOptions {
            engine: self.engine.unwrap_or(usual.engine),
            iopoll: self.iopoll,
            sqpoll: self.sqpoll,
            page_cache: if self.buffered { PageCache::Emptied } else { usual.page_cache },
            nowait: usual.nowait,
            shared: usual.shared,
            jobs: self.jobs.unwrap_or(usual.jobs),
            cores: self.pin.as_ref().map_or_else(Vec::new, |pin| pin.cores().to_vec()),
            stay: self.pin.is_none(),
            method: self.method.unwrap_or(usual.method),
            batch: self.batch.map(|batch| batch.number()),
            submit: self.submit.map(|batch| batch.number()),
            waiting: self.wait,
            tune: self.tune,
            timeout: self.timeout.map_or(usual.timeout, duration),
            probing: match self.probe_interval {
                _ if self.no_probes => Probing::Off,
                Some(interval) => Probing::Every(duration(interval)),
                None => Probing::Auto,
            },
        }
    }

    /// The runner's own choice, written down: a changed default then changes no repeated run.
    fn written_out(&self) -> RealSpec {
        let usual = self.options();
        let nanoseconds = u64::try_from(usual.timeout.as_nanos()).unwrap_or(u64::MAX);
        RealSpec {
            engine: Some(usual.engine),
            jobs: Some(usual.jobs),
            timeout: Some(Span(Time::from_ns(nanoseconds))),
            ..self.clone()
        }
    }

    /// With the method that a run went about it by, where it was searched for or not said.
    pub(crate) fn found(&mut self, method: &MethodResult) {
        if !self.tune {
            self.method.get_or_insert_with(Method::default);
            return;
        }
        if method.tuning.is_empty() {
            return;
        }
        self.tune = false;
        // A part that is not set stays as it was asked for. The core is that of the whole run, see below.
        let MethodSettings { method: name, batch, submit, wait, pin: _ } = &method.settings;
        set(&mut self.method, name.as_deref(), Method::named);
        set(&mut self.batch, batch.as_deref(), |batch| batch.parse().ok());
        set(&mut self.submit, submit.as_deref(), |submit| submit.parse().ok());
        set(&mut self.wait, wait.as_deref(), ReapWait::named);
        if let (true, true, [core]) = (self.pin.is_none(), method.pinned, method.cores.as_slice()) {
            self.pin = Some(Pin::to(vec![*core as usize]));
        }
    }
}

/// Sets `key` to what `word` says, if it says something.
fn set<T>(key: &mut Option<T>, word: Option<&str>, read: fn(&str) -> Option<T>) {
    if let Some(word) = word {
        *key = read(word);
    }
}

/// Name and access of a further file.
#[cfg(target_os = "linux")]
fn pair((name, access): &mut (String, Access)) -> (&String, &mut Access) {
    (name, access)
}

/// A run on a real target, and where its workload comes from.
#[derive(Debug)]
pub(crate) struct RealRun {
    /// The run.
    pub(crate) run: BenchRun,
    /// The file of the load, for errors about it.
    pub(crate) workload: Option<Document>,
}

impl RealRun {
    /// The run of `spec` on `target`, which is followed by the files `more`, and the spec with everything in
    /// it. The target is opened last, when everything else was found sound, as `prompt` consents to.
    pub(crate) fn new(
        spec: &RunSpec,
        target: &str,
        more: &[String],
        prompt: &mut dyn Prompt,
    ) -> Result<(RealRun, RunSpec), Failure> {
        refuse_host(&spec.host)?;
        if spec.why {
            return Err(Failure::usage(
                "only a simulated target can show where the time goes (`why`)",
            )
            .with_help("leave it out, or run on a simulated target, such as sim:nvme-tlc")
            .with_key("why"));
        }
        let settings = settings(&spec.set)?;
        if let Some(setting) = settings.iter().find(|s| !s.key.starts_with(WORKLOAD)) {
            return Err(Failure::usage(format!("a real target has no key `{}`", setting.key))
                .with_help("only keys of the workload can be set: workload.KEY=VALUE")
                .with_key(&setting.key)
                .at(Some(setting.place(true, "no effect on a real target"))));
        }
        let loaded = LoadedSource::new(spec, target, more, &settings)?;
        let run = BenchRun {
            target: target.to_owned(),
            access: Access::ReadOnly,
            more: more.iter().map(|name| (name.clone(), Access::ReadOnly)).collect(),
            workload: spec.load(target).to_owned(),
            source: loaded.source,
            seed: spec.seed,
            limits: RunLimits { until: spec.until, ..RunLimits::default() },
            keep: spec.keep,
            rows_in: None,
            interval: series_interval(spec),
            options: spec.real.options(),
        };
        let mut real = RealRun { run, workload: loaded.document };
        real.permit(&spec.write, prompt)?;
        let resolved = RunSpec {
            set: Vec::new(),
            real: spec.real.written_out(),
            contents: FileContents {
                workload: loaded.contents,
                files: loaded.files,
                ..FileContents::default()
            },
            ..spec.clone()
        };
        Ok((real, resolved))
    }

    /// Opens the target as it was consented to.
    #[cfg(target_os = "linux")]
    fn permit(&mut self, write: &WriteSpec, prompt: &mut dyn Prompt) -> Result<(), Failure> {
        // A file is made before it is opened. A load that it cannot have would leave it behind.
        if !write.allowed && write.size.is_some() {
            self.run.refuse_changes().map_err(|error| self.explain(&error, FailureKind::Usage))?;
        }
        let BenchRun { target, access: of_target, more, source, .. } = &mut self.run;
        // Of several files, only those that a job changes are opened for writing.
        let read_only = WriteSpec { allowed: false, ..write.clone() };
        let several = !more.is_empty();
        let changed = |name: &String| match &*source {
            Source::Jobs { jobs, .. } if several => fio::changes(jobs, name),
            _ => true,
        };
        for (name, opened) in
            std::iter::once((&*target, of_target)).chain(more.iter_mut().map(pair))
        {
            *opened = access(if changed(name) { write } else { &read_only }, name, prompt)?;
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn permit(&mut self, _: &WriteSpec, _: &mut dyn Prompt) -> Result<(), Failure> {
        Ok(())
    }

    /// Size and sector of its target.
    #[cfg(target_os = "linux")]
    pub(crate) fn facts(&self) -> Result<TargetFacts, Failure> {
        let target = RealTarget::open(&self.run.target, &self.run.access);
        Ok(target.map_err(|error| self.explain(&error, FailureKind::Usage))?.facts())
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn facts(&self) -> Result<TargetFacts, Failure> {
        let error = BenchError::System { target: self.run.name() };
        Err(self.explain(&error, FailureKind::Usage))
    }

    /// An error of the run, at its place. `kind` for what showed only on the way.
    pub(crate) fn explain(&self, error: &BenchError, kind: FailureKind) -> Failure {
        let kind = match error {
            BenchError::Workload(error) => {
                return named::workload_failure(kind, error, self.workload.as_ref());
            }
            BenchError::Interrupted | BenchError::Unprepared => FailureKind::Interrupted,
            // The request is valid.
            BenchError::Silent { .. } => FailureKind::Failed,
            _ => kind,
        };
        Failure::new(kind, error.to_string()).with_help(error.help())
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::TunedMethod;

    use super::*;

    #[test]
    fn the_method_of_a_run_is_written_out() {
        let named =
            MethodSettings { method: Some("default".to_owned()), ..MethodSettings::default() };
        let mut method = MethodResult { settings: named, ..MethodResult::default() };
        let with = |real: &RealSpec, method: &MethodResult| {
            let mut found = real.clone();
            found.found(method);
            found
        };
        assert_eq!(with(&RealSpec::default(), &method).method, Some(Method::Default));
        let asked = RealSpec {
            method: Some(Method::Latency),
            batch: "2".parse().ok(),
            ..RealSpec::default()
        };
        assert_eq!(with(&asked, &method), asked);
        // If the method was searched for, the replay uses the method that was found, and does not
        // search again.
        method.settings = MethodSettings {
            batch: Some("16".to_owned()),
            submit: Some("all".to_owned()),
            wait: Some("spin".to_owned()),
            ..MethodSettings::default()
        };
        method.tuning = vec![TunedMethod::default()];
        (method.cores, method.pinned) = (vec![1], true);
        let found = with(&RealSpec { tune: true, ..RealSpec::default() }, &method);
        let again = RealSpec {
            batch: "16".parse().ok(),
            submit: "all".parse().ok(),
            wait: Some(ReapWait::Spin),
            pin: Some(Pin::to(vec![1])),
            ..RealSpec::default()
        };
        assert_eq!(found, again);
    }
}
