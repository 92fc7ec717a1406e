//! Files that are garbage, cut off or not there: an error with file and line, and the other sources remain.

use crate::common::{MEMINFO, Machine, NET_HEADER, STAT};
use proptest::prelude::*;

/// The only error of a machine with `text` in `file`: as text, with its path from `proc` on.
fn error(file: &str, text: &str) -> String {
    let machine = Machine::new();
    machine.write(file, text);
    let counters = machine.read();
    let [error] = counters.errors() else { panic!("{text:?}: {:?}", counters.errors()) };
    assert_eq!(error.file, machine.path(file));
    let shown = error.to_string();
    shown[shown.find("/proc/").unwrap() + 1..].to_owned()
}

#[test]
fn errors_have_file_line_and_reason() {
    let long = "cpu  100 10 50 1000 40 5 6\n";
    for (file, text, expected) in [
        ("proc/stat", "", "proc/stat:1: the file ends before `cpu`"),
        ("proc/stat", long, "proc/stat:1: the line ends before time 8"),
        (
            "proc/stat",
            &STAT[..STAT.find("procs_b").unwrap()],
            "proc/stat:8: the file ends before `procs_blocked`",
        ),
        (
            "proc/stat",
            &STAT.replace("ctxt 7", "ctxt -7"),
            "proc/stat:5: ctxt is `-70000`, which is not a number",
        ),
        (
            "proc/stat",
            &STAT.replace("cpu1", "cpu99999999999"),
            "proc/stat:3: there is no core 99999999999",
        ),
        ("proc/meminfo", "MemTotal", "proc/meminfo:1: there is no `:` after the name"),
        ("proc/meminfo", "MemTotal: 5 MB\n", "proc/meminfo:1: MemTotal is not in kB"),
        (
            "proc/meminfo",
            "MemTotal: 18446744073709551615 kB\n",
            "proc/meminfo:1: MemTotal is too large",
        ),
        (
            "proc/meminfo",
            &MEMINFO[..MEMINFO.find(" kB\nMemAvailable").unwrap()],
            "proc/meminfo:2: MemFree is not in kB",
        ),
        (
            "proc/vmstat",
            "pswpin +1\n",
            "proc/vmstat:1: the number of pages is `+1`, which is not a number",
        ),
        ("proc/net/dev", "", "proc/net/dev:1: the file ends before `Inter-|`"),
        ("proc/net/dev", "bytes\n", "proc/net/dev:1: this is not the header of the file"),
        (
            "proc/net/dev",
            &format!("{NET_HEADER} eth0 1 2"),
            "proc/net/dev:3: there is no `:` after the name of the interface",
        ),
        (
            "proc/net/dev",
            &format!("{NET_HEADER}eth0: 1 2"),
            "proc/net/dev:3: the line ends before counter 3",
        ),
        ("proc/diskstats", "8 0\n", "proc/diskstats:1: the line ends before the name"),
        (
            "proc/diskstats",
            "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n8 1 sda1 1 2 3",
            "proc/diskstats:2: the line ends before counter of reads 4",
        ),
        (
            "proc/pressure/io",
            "most total=1\n",
            "proc/pressure/io:1: the line contains neither `some` nor `full`",
        ),
        (
            "proc/pressure/io",
            "some avg10=0.00\n",
            "proc/pressure/io:1: the line ends before `total=`",
        ),
    ] {
        assert_eq!(error(file, text), expected);
    }
}

#[test]
fn an_unreadable_source_leaves_the_others() {
    let machine = Machine::new();
    let before = machine.read();
    for file in ["proc/stat", "proc/net/dev", "proc/diskstats"] {
        std::fs::remove_file(machine.path(file)).unwrap();
    }
    // A directory instead of a file.
    std::fs::create_dir(machine.path("proc/diskstats")).unwrap();
    let after = machine.read();
    let lines: Vec<_> = after.errors().iter().map(|error| error.line).collect();
    assert_eq!(lines, [None; 3], "{:?}", after.errors());
    let sample = after.since(&before);
    assert_eq!((sample.cpu, sample.activity), (None, None));
    assert!(sample.interfaces.is_empty() && sample.disks.is_empty());
    assert!(sample.memory.is_some() && sample.swap.is_some());
}

#[test]
fn swap_pressure_and_power_may_be_absent() {
    let machine = Machine::new();
    machine.write("proc/vmstat", "nr_free_pages 9\n");
    let sample = machine.sample(|_| ());
    assert_eq!(sample.swap, None);
    assert!(sample.pressure.is_empty() && sample.power.is_empty());
    // A zone that tells no number is an error.
    machine.zone(5);
    machine.write("sys/class/powercap/intel-rapl:0/energy_uj", "much\n");
    let error = machine.read().errors()[0].to_string();
    assert!(
        error.ends_with("energy_uj:1: the reading is `much`, which is not a number"),
        "{error}"
    );
}

const FILES: [&str; 7] = [
    "proc/stat",
    "proc/meminfo",
    "proc/vmstat",
    "proc/net/dev",
    "proc/diskstats",
    "proc/pressure/io",
    "sys/class/powercap/intel-rapl:0/energy_uj",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_give_figures_or_errors(
        contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), FILES.len()),
    ) {
        let machine = Machine::new();
        let before = machine.read();
        for (file, bytes) in FILES.iter().zip(contents) {
            machine.write(file, bytes);
        }
        let after = machine.read();
        prop_assert!(after.errors().iter().any(|error| error.file.ends_with("stat")));
        after.since(&before);
        before.since(&after);
    }

    #[test]
    fn numbers_of_any_size_give_rates_that_can_be(
        numbers in prop::collection::vec(prop_oneof![any::<u64>(), 0..9u64, (1u64 << 32) - 5..(1 << 32) + 5], 2 * 60),
        cut in 0usize..1000,
    ) {
        let machine = Machine::new();
        let mut numbers = numbers.iter().map(u64::to_string);
        let mut line = |words: usize| numbers.by_ref().take(words).collect::<Vec<_>>().join(" ");
        let mut read = || {
            machine.write("proc/stat", STAT.replace("cpu  100 10 50 1000 40 5 6 7", &format!("cpu {}", line(8))));
            machine.network(&format!("eth0: {}", line(16)));
            machine.write("proc/diskstats", format!("8 0 sda {}", line(17)));
            machine.write("proc/vmstat", format!("pswpin {}\npswpout {}\n", line(1), line(1)));
            machine.zone(line(1).parse().unwrap());
            machine.read()
        };
        let (before, after) = (read(), read());
        for sample in [after.since(&before), before.since(&after)] {
            let text = serde_json::to_string(&sample).unwrap();
            // A NaN or an infinity is `null` inside of a group, and no group reads that back.
            let back: ssdyno_prober::SystemSample = serde_json::from_str(&text).unwrap();
            prop_assert!(!text.contains(":-"), "{text}");
            prop_assert_eq!(back.sequence, 0);
        }
        // Cut off anywhere.
        let end = cut.min(STAT.len());
        machine.write("proc/stat", &STAT[..end]);
        machine.read();
    }
}
