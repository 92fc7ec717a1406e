//! Configuration files of I/O schedulers.

mod ceph;
mod comments;
mod hwdb;
mod iocost;
mod kind;
mod one_line;
mod seastar;

use crate::result::ProfileResult;

use super::result::CapacityResult;
pub use kind::SchedulerFile;

/// The text of `file` from `result`. `version` is that of the program.
///
/// # Errors
/// The figures are implausible, or some that the file needs are missing, or there are several solutions and the file takes
/// one: the reason.
pub fn scheduler_file(
    file: SchedulerFile,
    result: &ProfileResult,
    version: &str,
) -> Result<String, String> {
    let all = result.of_solutions();
    if all.len() > 1 && file != SchedulerFile::IoCostHwdb {
        let names: Vec<&str> = all.iter().map(|one| one.solution_name()).collect();
        return Err(format!(
            "the profile has the solutions {}, and this file can have only one: make it from the profiles of one solution",
            names.join(", ")
        ));
    }
    let mut comments = String::new();
    let mut capacities = Vec::new();
    for one in all {
        let (name, several) = (one.solution_name(), !result.more_solutions.is_empty());
        let of_solution =
            |reason| if several { format!("solution {name}: {reason}") } else { reason };
        let capacity = usable(file, one).map_err(of_solution)?;
        comments += &comments::comments(file, one, capacity, version);
        capacities.push((name, capacity));
    }
    let capacity = capacities[0].1;
    let body = match file {
        SchedulerFile::IoCostModel => iocost::model_file(capacity),
        SchedulerFile::IoCostQos => iocost::qos_file(capacity)?,
        SchedulerFile::IoCostHwdb => hwdb::file(&capacities)?,
        SchedulerFile::IoProperties => seastar::file(result, capacity),
        SchedulerFile::MClock => ceph::file(capacity)?,
    };
    Ok(comments + &body)
}

/// The capacity of `result`, of which `file` can be made.
fn usable(file: SchedulerFile, result: &ProfileResult) -> Result<&CapacityResult, String> {
    let Some(capacity) = &result.capacity else {
        return Err("the profile has no capacity (`method=capacity`)".to_owned());
    };
    if let Some(reason) = capacity.implausible.first() {
        return Err(reason.clone());
    }
    for figure in file.needs() {
        // A single round has no interval. It does not say how far another round would be off,
        // and a configuration file would not show that.
        if capacity.figure(*figure).is_none_or(|one| one.low.is_none()) {
            return Err(format!(
                "{} was not measured twice: allow more time (`time`)",
                figure.key()
            ));
        }
    }
    Ok(capacity)
}

#[cfg(test)]
mod tests;
