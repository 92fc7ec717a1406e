//! The machine: processor, kernel, memory, what it runs in.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{names, number, value};

/// Vendors and products of virtual machines in `/sys/class/dmi/id`, and what they are called here.
const VIRTUAL: [(&str, &str); 10] = [
    ("QEMU", "qemu"),
    ("KVM", "kvm"),
    ("Bochs", "qemu"),
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("Virtual Machine", "hyper-v"),
    ("Amazon EC2", "ec2"),
    ("Google Compute Engine", "gce"),
    ("Firecracker", "firecracker"),
];

/// The machine of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MachineOrigin {
    /// Model of the processor, such as `AMD EPYC 9354`; `null` if the kernel has no name for it.
    pub cpu_model: Option<String>,
    /// Logical processors that are online.
    pub cpu_cores: Option<u64>,
    /// Frequency governor of the processors, such as `performance`; several governors are joined by `+`. `null` if the
    /// kernel controls no frequency.
    pub cpu_governor: Option<String>,
    /// Architecture, such as `x86_64`.
    pub architecture: String,
    /// Release of the kernel, such as `6.12.9`.
    pub kernel: Option<String>,
    /// Name and version of the operating system.
    pub os: Option<String>,
    /// Usable memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The kind of virtual machine, such as `kvm`, or `yes` if it is unknown; `null` if none was
    /// detected.
    pub virtual_machine: Option<String>,
    /// The kind of container, such as `docker`; `null` if none was detected.
    pub container: Option<String>,
}

impl MachineOrigin {
    /// Of the machine whose `proc`, `sys`, `etc` and `run` are below `root`.
    pub fn read(root: &Path) -> MachineOrigin {
        let cpu = value(root.join("proc/cpuinfo")).unwrap_or_default();
        // The first processor stands for all: machines with processors of two models are rare.
        // PowerPC kernels write `cpu` instead of `model name`.
        let field = |name: &str| {
            let mut lines = cpu.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
        };
        let cores = cpu.lines().filter(|line| line.starts_with("processor")).count() as u64;
        // The flag `hypervisor` is set by the processor itself. It finds virtual
        // machines whose vendor hides its name in DMI.
        let hypervisor =
            field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
        MachineOrigin {
            cpu_model: field("model name").or_else(|| field("cpu")),
            cpu_cores: (cores > 0).then_some(cores),
            cpu_governor: governor(root),
            architecture: std::env::consts::ARCH.to_owned(),
            kernel: value(root.join("proc/sys/kernel/osrelease")),
            os: os(root),
            memory_bytes: memory(root),
            virtual_machine: virtual_machine(root, hypervisor),
            container: container(root),
        }
    }
}

fn governor(root: &Path) -> Option<String> {
    let cpus = root.join("sys/devices/system/cpu");
    // Cores may have different governors on a processor with big and small cores. The joined text shows that
    // figures of two runs cannot be compared without care.
    let governor = |cpu: &String| value(cpus.join(cpu).join("cpufreq/scaling_governor"));
    let mut all: Vec<String> = names(&cpus).iter().filter_map(governor).collect();
    all.sort();
    all.dedup();
    (!all.is_empty()).then(|| all.join("+"))
}

/// os-release(5): `PRETTY_NAME="Debian GNU/Linux 13 (trixie)"`.
fn os(root: &Path) -> Option<String> {
    let text =
        value(root.join("etc/os-release")).or_else(|| value(root.join("usr/lib/os-release")))?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches(['"', '\'']).to_owned())
}

/// proc_meminfo(5): `MemTotal:       16316412 kB`.
fn memory(root: &Path) -> Option<u64> {
    let text = value(root.join("proc/meminfo"))?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn virtual_machine(root: &Path, hypervisor: bool) -> Option<String> {
    // Xen says its name in a file of its own. It comes first, because a Xen guest
    // may show DMI data of its host's vendor.
    if let Some(kind) = value(root.join("sys/hypervisor/type")) {
        return Some(kind);
    }
    let said = ["sys_vendor", "product_name", "bios_vendor"]
        .map(|name| value(root.join("sys/class/dmi/id").join(name)).unwrap_or_default());
    let known = VIRTUAL.iter().find(|(mark, _)| said.iter().any(|text| text.contains(mark)));
    known.map(|(_, name)| (*name).to_owned()).or_else(|| hypervisor.then(|| "yes".to_owned()))
}

fn container(root: &Path) -> Option<String> {
    // systemd writes the kind of its container for all programs. The marks of Docker and Podman
    // are files in the root directory of the container.
    if let Some(kind) = value(root.join("run/systemd/container")) {
        return Some(kind);
    }
    let marks = [(".dockerenv", "docker"), ("run/.containerenv", "podman")];
    let found = marks.iter().find(|(mark, _)| root.join(mark).exists());
    found.map(|(_, name)| (*name).to_owned())
}

/// Memory of a NUMA node and the like is below a device; -1 is none.
pub(super) fn numa_node(device: &Path) -> Option<u32> {
    // The file lies one or two levels above the block device, depending on the bus. The kernel writes
    // -1 on a machine with one node, which `u32` refuses.
    let paths = ["device/numa_node", "device/device/numa_node"].map(|path| device.join(path));
    let node: i64 = paths.into_iter().find_map(number)?;
    u32::try_from(node).ok()
}

#[cfg(test)]
mod tests {
    use super::super::fake::put;
    use super::*;

    #[test]
    fn a_machine_is_described_by_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let empty = MachineOrigin::read(root);
        assert_eq!(
            empty,
            MachineOrigin {
                architecture: std::env::consts::ARCH.to_owned(),
                ..MachineOrigin::default()
            }
        );
        let cpu = |number: u32| {
            format!("processor\t: {number}\nmodel name\t: Fast CPU\nflags\t\t: fpu hypervisor\n\n")
        };
        put(root, "proc/cpuinfo", &(cpu(0) + &cpu(1)));
        put(root, "proc/sys/kernel/osrelease", "6.12.9\n");
        put(root, "proc/meminfo", "MemTotal:       2048 kB\nMemFree: 1 kB\n");
        put(root, "etc/os-release", "NAME=x\nPRETTY_NAME=\"Some OS 1\"\n");
        for (cpu, governor) in [("cpu0", "powersave"), ("cpu1", "performance")] {
            let path = format!("sys/devices/system/cpu/{cpu}/cpufreq/scaling_governor");
            put(root, &path, governor);
        }
        let machine = MachineOrigin::read(root);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(machine.cpu_model, text("Fast CPU"));
        assert_eq!(machine.cpu_cores, Some(2));
        assert_eq!(machine.cpu_governor, text("performance+powersave"));
        assert_eq!(machine.kernel, text("6.12.9"));
        assert_eq!(machine.os, text("Some OS 1"));
        assert_eq!(machine.memory_bytes, Some(2 << 20));
        assert_eq!((machine.virtual_machine, machine.container), (text("yes"), None));
        put(root, "sys/class/dmi/id/sys_vendor", "QEMU\n");
        put(root, ".dockerenv", "");
        let machine = MachineOrigin::read(root);
        assert_eq!((machine.virtual_machine, machine.container), (text("qemu"), text("docker")));
    }
}
