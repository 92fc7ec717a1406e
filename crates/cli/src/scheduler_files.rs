//! Configuration files of I/O schedulers, made of a profile.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use clap::Args;
use ssdyno_profile::{
    Method, ProfileOp, ProfilePlan, ProfileResult, SchedulerFile, scheduler_file,
};
use ssdyno_session::{Failure, FailureKind};

use crate::options::in_text_of_task;
use crate::output::Output;

/// Stands for standard output.
const STANDARD_OUTPUT: &str = "-";

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Scheduler files (--method capacity; - is standard output)")]
pub(crate) struct SchedulerFileArgs {
    /// Write the line for io.cost.model (Linux): six coefficients, with their intervals as comments.
    #[arg(long, value_name = "FILE")]
    io_cost_model: Option<PathBuf>,
    /// Write a proposed line for io.cost.qos (Linux), from latencies at a moderate load.
    #[arg(long, value_name = "FILE")]
    io_cost_qos: Option<PathBuf>,
    /// Write an entry for systemd's hardware database with both lines.
    #[arg(long, value_name = "FILE")]
    io_cost_hwdb: Option<PathBuf>,
    /// Write io_properties.yaml for Seastar (ScyllaDB, Redpanda).
    #[arg(long, value_name = "FILE")]
    io_properties: Option<PathBuf>,
    /// Write the capacity options for Ceph's mClock scheduler.
    #[arg(long, value_name = "FILE")]
    mclock: Option<PathBuf>,
}

/// A file that was asked for.
#[derive(Debug)]
struct Wanted {
    file: SchedulerFile,
    option: &'static str,
    path: PathBuf,
    /// It was made before the measurement, to see whether that can be.
    is_new: bool,
}

/// Files that can be written.
#[derive(Debug)]
pub(crate) struct SchedulerFiles(Vec<Wanted>);

fn is_output(path: &Path) -> bool {
    path.as_os_str() == STANDARD_OUTPUT
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let what = format!("cannot write {}: {error}", path.display());
    Failure::new(FailureKind::Unwritable, what)
        .with_help("name a file in a directory that you may write to")
}

impl SchedulerFileArgs {
    fn all(&self) -> impl Iterator<Item = (SchedulerFile, &'static str, &PathBuf)> {
        let all = [
            (SchedulerFile::IoCostModel, "--io-cost-model", &self.io_cost_model),
            (SchedulerFile::IoCostQos, "--io-cost-qos", &self.io_cost_qos),
            (SchedulerFile::IoCostHwdb, "--io-cost-hwdb", &self.io_cost_hwdb),
            (SchedulerFile::IoProperties, "--io-properties", &self.io_properties),
            (SchedulerFile::MClock, "--mclock", &self.mclock),
        ];
        all.into_iter().filter_map(|(file, option, path)| Some((file, option, path.as_ref()?)))
    }

    /// Whether one is asked for.
    pub(crate) fn any(&self) -> bool {
        self.all().next().is_some()
    }

    /// Refuses what `plan` cannot give, and sees before the measurement whether all files can be written.
    pub(crate) fn open(
        &self,
        plan: &ProfilePlan,
        output: Output,
    ) -> Result<SchedulerFiles, Failure> {
        let mut files = SchedulerFiles(Vec::new());
        let mut outputs = 0;
        for (file, option, path) in self.all() {
            if !matches!(plan.method, Method::Capacity { .. }) {
                let help = "leave it out, or profile with --method capacity";
                return Err(
                    Failure::usage(format!("`{option}` is for --method capacity")).with_help(help)
                );
            }
            if file.needs_writes() && !plan.ops.contains(&ProfileOp::Write) {
                let help = "leave out --ops read, or leave out this option";
                let what = format!("`{option}` needs figures of writes, which --ops leaves out");
                return Err(Failure::usage(what).with_help(help));
            }
            outputs += u32::from(is_output(path));
            files.0.push(Wanted { file, option, path: path.clone(), is_new: false });
        }
        if outputs > 1 || outputs == 1 && output.json {
            let what = "only one file can go to standard output";
            return Err(Failure::usage(what).with_help("name a file instead of -"));
        }
        for at in 0..files.0.len() {
            let opened = files.0[at].try_open();
            if let Err(error) = opened {
                files.remove_new();
                return Err(error);
            }
        }
        Ok(files)
    }
}

impl Wanted {
    fn try_open(&mut self) -> Result<(), Failure> {
        if is_output(&self.path) {
            return Ok(());
        }
        let is_new = !self.path.exists();
        // Its old content stays until there is new content.
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&self.path);
        opened.map_err(|error| unwritable(&self.path, &error))?;
        self.is_new = is_new;
        Ok(())
    }
}

impl SchedulerFiles {
    /// Whether one goes to standard output.
    pub(crate) fn takes_output(&self) -> bool {
        self.0.iter().any(|wanted| is_output(&wanted.path))
    }

    /// After a profile that gave nothing.
    pub(crate) fn remove_new(&self) {
        for wanted in self.0.iter().filter(|wanted| wanted.is_new) {
            // It stays behind, empty, where it cannot be removed.
            let _ = fs::remove_file(&wanted.path);
        }
    }

    /// Writes all files; gives the names of those that are none of standard output.
    pub(crate) fn write(
        &self,
        result: &ProfileResult,
        output: Output,
    ) -> Result<Vec<String>, Failure> {
        let mut texts = Vec::new();
        for wanted in &self.0 {
            let version = env!("CARGO_PKG_VERSION");
            match scheduler_file(wanted.file, result, version) {
                Ok(text) => texts.push(text),
                Err(reason) => {
                    self.remove_new();
                    let reason = in_text_of_task(&reason);
                    let what = format!("`{}` is not written: {reason}", wanted.option);
                    let help = "the figures are in the result; no scheduler file was written";
                    return Err(Failure::new(FailureKind::Failed, what).with_help(help));
                }
            }
        }
        let mut names = Vec::new();
        for (wanted, text) in self.0.iter().zip(&texts) {
            if is_output(&wanted.path) {
                output.text(text)?;
            } else {
                fs::write(&wanted.path, text).map_err(|error| unwritable(&wanted.path, &error))?;
                names.push(wanted.path.display().to_string());
            }
        }
        Ok(names)
    }
}
