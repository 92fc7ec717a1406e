//! The provenance of results: as a table, and the differences between two results.

use serde_json::Value;
use ssdyno_figures::{Change, Provenance, RunResult, significant};
use ssdyno_prober::{DriveOrigin, FileOrigin, MachineOrigin, StorageOrigin};

/// Digits of a commit that are shown.
const COMMIT_DIGITS: usize = 10;

/// Something that is known of a machine or its storage.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct OriginFact {
    /// The subject of the fact: its place, the same in two results whatever the names of devices.
    place: String,
    /// Its name, such as `scheduler`.
    name: &'static str,
    /// Of what, where it is not the first of its kind: ` of dm-0`.
    of: String,
    /// The value, as it is shown.
    pub(crate) value: String,
}

impl OriginFact {
    /// `scheduler of dm-0`.
    pub(crate) fn label(&self) -> String {
        format!("{}{}", self.name, self.of)
    }
}

/// The differences between the provenance of two runs, as far as both have it. Of simulated runs only the version
/// matters: they are the same on each machine.
pub(crate) fn provenance_changes(first: &RunResult, second: &RunResult) -> Vec<Change> {
    let mut changes = Vec::new();
    if let (Some(one), Some(other)) = (&first.provenance, &second.provenance) {
        let has_commits = one.commit.is_some() && other.commit.is_some();
        let version = |of: &Provenance| match has_commits {
            true => version(of),
            false => of.version.clone(),
        };
        changes.extend(change("version", version(one), version(other)));
    }
    let is_real = |run: &RunResult| run.simulated_requests_per_wall_second.is_none();
    if !is_real(first) || !is_real(second) {
        return changes;
    }
    let (one, other) = (all_facts(first), all_facts(second));
    changes.extend(one.into_iter().filter_map(|fact| {
        let same = |to: &&OriginFact| (&to.place, to.name) == (&fact.place, fact.name);
        let now = other.iter().find(same)?;
        change(&fact.label(), fact.value, now.value.clone())
    }));
    changes
}

fn change(key: &str, first: String, second: String) -> Option<Change> {
    let is_other = first != second;
    let (first, second) = (Some(Value::String(first)), Some(Value::String(second)));
    is_other.then(|| Change { key: key.to_owned(), first, second, asked_for: false })
}

/// `0.1.0 (0123456789)`.
pub(crate) fn version(of: &Provenance) -> String {
    match &of.commit {
        Some(commit) => {
            let shown: String = commit.chars().take(COMMIT_DIGITS).collect();
            format!("{} ({shown})", of.version)
        }
        None => of.version.clone(),
    }
}

/// For the run, and for each of its hosts.
fn all_facts(run: &RunResult) -> Vec<OriginFact> {
    let mut all = run.provenance.as_ref().map_or_else(Vec::new, facts);
    for host in &run.hosts {
        let of_host = host.provenance.as_ref().map_or_else(Vec::new, facts);
        all.extend(of_host.into_iter().map(|fact| OriginFact {
            place: format!("{} {}", host.name, fact.place),
            of: format!("{} on {}", fact.of, host.name),
            ..fact
        }));
    }
    all
}

/// The known facts about the machine and the storage, in order.
pub(crate) fn facts(of: &Provenance) -> Vec<OriginFact> {
    let mut all = Facts::default();
    if let Some(machine) = &of.machine {
        all.machine(machine);
    }
    let is_one = of.storage.len() == 1;
    for (at, storage) in of.storage.iter().enumerate() {
        let StorageOrigin { target, file, drives } = storage;
        let of_target = if is_one { String::new() } else { format!(" of {target}") };
        (all.place, all.of) = (format!("{at}"), of_target.clone());
        if let Some(file) = file {
            all.file(file);
        }
        for (depth, drive) in drives.iter().enumerate() {
            let is_first = depth == 0;
            all.place = format!("{at}.{depth}");
            all.of = if is_first { of_target.clone() } else { format!(" of {}", drive.name) };
            all.drive(drive);
        }
    }
    all.found
}

/// Facts as they are found.
#[derive(Default)]
struct Facts {
    place: String,
    of: String,
    found: Vec<OriginFact>,
}

impl Facts {
    fn add(&mut self, name: &'static str, value: Option<String>) {
        let Some(value) = value else { return };
        self.found.push(OriginFact { place: self.place.clone(), name, of: self.of.clone(), value });
    }

    fn machine(&mut self, machine: &MachineOrigin) {
        // A missing value is an answer, too.
        let or_no = |kind: &Option<String>| Some(kind.clone().unwrap_or_else(|| "no".to_owned()));
        self.add("cpu", machine.cpu_model.clone());
        self.add("cores", machine.cpu_cores.map(|cores| cores.to_string()));
        self.add("governor", machine.cpu_governor.clone());
        self.add("architecture", Some(machine.architecture.clone()));
        self.add("kernel", machine.kernel.clone());
        self.add("os", machine.os.clone());
        self.add("memory", machine.memory_bytes.map(binary));
        self.add("virtual machine", or_no(&machine.virtual_machine));
        self.add("container", or_no(&machine.container));
    }

    fn file(&mut self, file: &FileOrigin) {
        self.add("file system", file.file_system.clone());
        self.add("mount options", Some(file.mount_options.join(",")));
        self.add("file size", Some(binary(file.size_bytes)));
        self.add("extents", file.extents.map(|extents| extents.to_string()));
        self.add("unwritten extents", file.unwritten_bytes.map(binary));
        self.add("holes", file.hole_bytes.map(binary));
    }

    fn drive(&mut self, drive: &DriveOrigin) {
        let yes_or_no = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
        self.add("device", Some(drive.partition.clone().unwrap_or_else(|| drive.name.clone())));
        self.add("model", drive.model.clone());
        self.add("firmware", drive.firmware.clone());
        self.add("serial hash", drive.serial_hash.clone());
        self.add("transport", drive.transport.clone());
        self.add("capacity", drive.capacity_bytes.map(decimal));
        self.add("logical block", drive.logical_block_bytes.map(binary));
        self.add("physical block", drive.physical_block_bytes.map(binary));
        self.add("scheduler", drive.scheduler.clone());
        self.add("queue requests", drive.queue_requests.map(|requests| requests.to_string()));
        self.add("write cache", drive.write_cache.clone());
        self.add("rotational", drive.rotational.map(yes_or_no));
        self.add("read-ahead", drive.read_ahead_bytes.map(binary));
        self.add("numa node", drive.numa_node.map(|node| node.to_string()));
        let below = drive.lies_on.join(", ");
        self.add("lies on", (!below.is_empty()).then_some(below));
    }
}

/// In the greatest unit of 1024 bytes that gives 1 or more.
fn binary(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) => {
            format!("{} {unit}", short(bytes as f64 / (1u64 << shift) as f64))
        }
        None => format!("{bytes} B"),
    }
}

/// Four digits, without zeros at the end: sizes are round.
fn short(value: f64) -> String {
    let text = significant(value, 4);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// As on the label of a drive.
fn decimal(bytes: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB")];
    match units.iter().find(|(factor, _)| bytes as f64 >= *factor) {
        Some((factor, unit)) => format!("{} {unit}", short(bytes as f64 / factor)),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::HostRun;

    use super::*;

    fn provenance(kernel: &str, scheduler: &str, commit: &str) -> Provenance {
        let text = |text: &str| Some(text.to_owned());
        let machine = MachineOrigin { kernel: text(kernel), ..MachineOrigin::default() };
        let drive = |name: &str| DriveOrigin {
            name: name.to_owned(),
            scheduler: text(scheduler),
            capacity_bytes: Some(1_000_204_886_016),
            ..DriveOrigin::default()
        };
        let drives = vec![drive("dm-0"), drive("sda")];
        let file = Some(FileOrigin { size_bytes: 3 << 29, ..FileOrigin::default() });
        Provenance {
            version: "0.1.0".to_owned(),
            commit: text(commit),
            started: format!("at {kernel}"),
            command: text(kernel),
            machine: Some(machine),
            storage: vec![StorageOrigin { target: "/a".to_owned(), file, drives }],
        }
    }

    fn run(provenance: Provenance) -> RunResult {
        RunResult { provenance: Some(provenance), ..RunResult::default() }
    }

    fn told(first: &RunResult, second: &RunResult) -> Vec<String> {
        provenance_changes(first, second).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn real_runs_differ_in_all_that_is_known() {
        let one = run(provenance("6.1", "none", "0123456789abcdef"));
        let other = run(provenance("6.12", "mq-deadline", "fedcba9876543210"));
        let changed = [
            "version 0.1.0 (0123456789) -> 0.1.0 (fedcba9876)",
            "kernel 6.1 -> 6.12",
            "scheduler none -> mq-deadline",
            "scheduler of sda none -> mq-deadline",
        ];
        assert_eq!(told(&one, &other), changed);
        assert_eq!(told(&one, &one), Vec::<String>::new());
        // A value that only one side has does not count as a difference.
        let mut unknown = other.clone();
        let provenance = unknown.provenance.as_mut().unwrap();
        provenance.commit = None;
        provenance.storage.clear();
        assert_eq!(told(&one, &unknown), ["kernel 6.1 -> 6.12"]);
        // Results of older programs have none.
        assert_eq!(told(&one, &RunResult::default()), Vec::<String>::new());
    }

    #[test]
    fn simulated_runs_differ_in_the_program_alone() {
        let simulated = |kernel: &str, commit: &str| RunResult {
            simulated_requests_per_wall_second: Some(1.0),
            ..run(provenance(kernel, "none", commit))
        };
        let (one, other) = (simulated("6.1", "aaa"), simulated("6.12", "bbb"));
        assert_eq!(told(&one, &other), ["version 0.1.0 (aaa) -> 0.1.0 (bbb)"]);
        assert_eq!(told(&one, &simulated("6.12", "aaa")), Vec::<String>::new());
    }

    #[test]
    fn each_host_has_its_own_machine() {
        let on = |kernel: &str| {
            let provenance =
                Some(Provenance { storage: Vec::new(), ..provenance(kernel, "", "a") });
            let host = |name: &str| HostRun {
                name: name.to_owned(),
                provenance: provenance.clone(),
                ..HostRun::default()
            };
            RunResult { hosts: vec![host("a"), host("b")], ..RunResult::default() }
        };
        let changed = ["kernel on a 6.1 -> 6.12", "kernel on b 6.1 -> 6.12"];
        assert_eq!(told(&on("6.1"), &on("6.12")), changed);
    }

    #[test]
    fn bytes_are_in_the_units_of_labels() {
        assert_eq!(binary(3 << 29), "1.5 GiB");
        assert_eq!(binary(512), "512 B");
        assert_eq!(decimal(1_000_204_886_016), "1 TB");
    }
}
