//! Names for the numbers of jobs and devices in rows.

/// The names of the numbers in rows.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RowNames {
    /// Each job; one that is not here is called by its number, from 0.
    pub jobs: Vec<String>,
    /// First byte and name of each file or device of the target, in the order of their addresses.
    pub devices: Vec<(u64, String)>,
}

impl RowNames {
    /// The name of job number `job`.
    pub fn job(&self, job: u32) -> String {
        self.jobs.get(job as usize).cloned().unwrap_or_else(|| job.to_string())
    }

    /// Names for jobs that run beside one another: those that several have get a number behind them.
    pub fn of_jobs(names: &[String]) -> Vec<String> {
        let numbered = names.iter().enumerate().map(|(at, name)| {
            let number = names[..at].iter().filter(|other| *other == name).count();
            let is_only = names.iter().filter(|other| *other == name).count() == 1;
            if is_only { name.clone() } else { format!("{name}.{number}") }
        });
        numbered.collect()
    }

    /// The number of the device that `offset_bytes` lies on.
    #[inline]
    pub fn device_at(&self, offset_bytes: u64) -> usize {
        if self.devices.len() < 2 {
            return 0;
        }
        let behind = self.devices.partition_point(|(start, _)| *start <= offset_bytes);
        behind.saturating_sub(1)
    }
}
