//! The shape of paper S1 once more, on somebody else's devices (S1-69): a Linux guest in QEMU with a MegaRAID
//! SAS 1078 and an NVMe drive of 31 I/O queue pairs, both behind two bridges, read at random by 1 to 8
//! threads of fio and of our own program. Not in `test`: it takes minutes, and a download the first time.
//!
//! Only the order of the figures means something. The virtual machine is emulated without KVM, its eight
//! processors share those of this machine, and both devices answer at once: what is measured is the way to
//! them, and from as many threads as there are real processors on the threads hinder each other.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, bail};

use crate::guest::{self, Boot};
use crate::workspace::Workspace;

/// Time of each run, and most of all together.
const SECONDS_EACH: u32 = 3;
const SECONDS_MAX: u32 = 900;
const THREADS: [u32; 4] = [1, 2, 4, 8];
/// A figure may be so much worse than its order wants: two runs on a shared machine differ.
const NOISE: f64 = 0.10;
/// With so many real processors or fewer, threads of the guest take them from each other and from the devices.
const CONTENDED: usize = 2;

/// Runs the guest, prints its figures beside the claims of the paper, and checks what can hold here.
///
/// # Errors
/// The guest cannot be made or started, or did not come to its end.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let folder = guest::made(workspace)?;
    let program = guest::program(workspace)?;
    guest::pack(&folder, &program, &folder, &[])?;
    println!("starting a guest of 8 processors: some minutes");
    let said = boot(&folder)?;
    let figures = Figures::parse(&said);
    if !said.lines().any(|line| line.trim() == "done") || figures.is_cut() {
        bail!("the guest did not come to its end; it said:\n{said}");
    }
    print!("{}", figures.table());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut good = true;
    for (holds, what) in figures.checks(processors).into_iter().chain(tree_checks(&said)) {
        println!("{} {what}", if holds { "ok    " } else { "not ok" });
        good &= holds;
    }
    Ok(good)
}

fn boot(folder: &Path) -> Result<String> {
    // Devices that answer at once: what is compared is the way to them.
    let nothing = |id: &str| format!("driver=null-co,size=1G,read-zeroes=on,if=none,id={id}");
    let (reads, others) = (nothing("reads"), nothing("others"));
    let devices = [
        "-device",
        "pci-bridge,id=first,chassis_nr=1,addr=0x8",
        "-device",
        "pci-bridge,id=second,bus=first,chassis_nr=2,addr=0x5",
        "-drive",
        &reads,
        "-device",
        "nvme,bus=second,addr=0x3,serial=GUEST,max_ioqpairs=31,drive=reads",
        "-drive",
        &others,
        "-device",
        "megasas,id=sas,bus=second,addr=0x6",
        "-device",
        "scsi-hd,bus=sas.0,drive=others",
    ];
    let words = format!("ssdyno={SECONDS_EACH}");
    let how = Boot {
        init: "guest-nvme",
        words: &words,
        processors: 8,
        seconds_max: SECONDS_MAX,
        devices: &devices,
    };
    guest::boot(folder, &how)
}

/// Reads a second by tool, device and threads.
struct Figures(BTreeMap<(String, String, u32), f64>);

impl Figures {
    fn parse(said: &str) -> Figures {
        let figure = |line: &str| {
            let mut words = line.strip_prefix("iops ")?.split_whitespace();
            let (tool, device) = (words.next()?.to_owned(), words.next()?.to_owned());
            Some(((tool, device, words.next()?.parse().ok()?), words.next()?.parse().ok()?))
        };
        Figures(said.lines().filter_map(figure).collect())
    }

    fn of(&self, tool: &str, device: &str, threads: u32) -> f64 {
        self.0.get(&(tool.to_owned(), device.to_owned(), threads)).copied().unwrap_or(0.0)
    }

    /// A figure is missing, or nothing was read.
    fn is_cut(&self) -> bool {
        let each = |tool| ["megasas", "nvme"].map(|device| (tool, device));
        let all = each("fio").into_iter().chain(each("ssdyno"));
        let mut all = all.flat_map(|(tool, device)| THREADS.map(|n| self.of(tool, device, n)));
        all.any(|rate| rate <= 0.0)
    }

    fn table(&self) -> String {
        let mut text = String::from("\nReads of 4 KiB a second\nthreads");
        for column in ["fio megasas", "fio nvme", "ssdyno megasas", "ssdyno nvme"] {
            let _ = write!(text, "  {column:>14}");
        }
        for threads in THREADS {
            let _ = write!(text, "\n{threads:>7}");
            for tool in ["fio", "ssdyno"] {
                for device in ["megasas", "nvme"] {
                    let _ = write!(text, "  {:>14.0}", self.of(tool, device, threads));
                }
            }
        }
        text.push_str(
            "\nPaper 001: with one core the NVMe drive is ahead of the SAS disks (figure 5.1, almost 3 \
             times), with eight more so\n(figure 5.2, almost 5 times); its throughput ends to grow at \
             3 cores (figure 5.5). There disks were behind the controller,\nhere nothing is: only the \
             order can be compared.\n",
        );
        text
    }

    /// The conditions, in words.
    fn checks(&self, processors: usize) -> Vec<(bool, String)> {
        let mut checks = Vec::new();
        for tool in ["fio", "ssdyno"] {
            for threads in THREADS {
                let (sas, nvme) =
                    (self.of(tool, "megasas", threads), self.of(tool, "nvme", threads));
                let what = format!(
                    "{tool}, {threads} threads: nvme {:.2} times megasas, at least 1 wanted",
                    nvme / sas
                );
                checks.push((nvme >= sas * (1.0 - NOISE), what));
            }
            let gain = |threads| self.of(tool, "nvme", threads) / self.of(tool, "nvme", 1);
            let best = THREADS.map(gain).into_iter().fold(0.0, f64::max);
            let contended = processors <= CONTENDED;
            let mut what = format!("{tool}: nvme gains with threads, {best:.2} times one at best");
            if contended {
                let _ = write!(
                    what,
                    "; not demanded, for {processors} processors emulate 8 and the devices: contention"
                );
            }
            checks.push((contended || best > 1.0 + NOISE, what));
        }
        checks
    }
}

/// What `ssdyno pci sys` printed in the guest, against what Linux knows of the same machine: every bridge, and
/// for both devices the way of their pin through the bridges (PCI-to-PCI bridge specification 1.2, clause 9.1),
/// worked out here from the device numbers, with the interrupt at its end.
fn tree_checks(said: &str) -> Vec<(bool, String)> {
    let printed: Vec<&str> = said
        .lines()
        .skip_while(|line| line.trim() != "pci begin")
        .skip(1)
        .take_while(|line| line.trim() != "pci end")
        .collect();
    printed.iter().for_each(|line| println!("{line}"));
    let mut checks = Vec::new();
    let mut bridges = 0;
    for known in said.lines().filter_map(Known::parse) {
        let block = block(&printed, known.address);
        if known.class.starts_with("0x0604") {
            bridges += 1;
            let is_bridge = block.first().is_some_and(|line| line.contains("PCI bridge"));
            checks.push((is_bridge, format!("pci: {} is a bridge", known.address)));
        }
        if known.class.starts_with("0x0108") || known.class.starts_with("0x0104") {
            let route = known.route();
            let found = block.iter().any(|line| line.contains(&route));
            checks.push((found, format!("pci: {}, {route}", known.address)));
        }
    }
    checks.push((bridges == 2, format!("pci: {bridges} bridges, 2 wanted")));
    let devices = checks.len() - 1 - bridges;
    checks.push((devices == 2, format!("pci: {devices} devices behind them, 2 wanted")));
    checks
}

/// The lines of `printed` about the function at `address`.
fn block<'a>(printed: &[&'a str], address: &str) -> Vec<&'a str> {
    let starts = |line: &str| line.trim_start_matches([' ', '│', '├', '└', '─']).to_owned();
    let mut lines = printed.iter().skip_while(|line| !starts(line).starts_with(address));
    let first = lines.next().copied();
    let rest = lines.take_while(|line| !line.contains('─')).copied();
    first.into_iter().chain(rest).collect()
}

/// A line of the guest about one function, from sysfs.
struct Known<'a> {
    address: &'a str,
    class: &'a str,
    interrupt: &'a str,
    /// The functions from the root bus to it.
    way: Vec<&'a str>,
}

impl Known<'_> {
    fn parse(line: &str) -> Option<Known<'_>> {
        let mut words = line.strip_prefix("linux ")?.split_whitespace();
        let (address, class, interrupt) = (words.next()?, words.next()?, words.next()?);
        let way = words.next()?.split('/').filter(|part| part.matches(':').count() == 2).collect();
        Some(Known { address, class, interrupt, way })
    }

    /// Its pin, INTA, through the bridges above it, as the program prints it.
    fn route(&self) -> String {
        let mut route = String::from("INTA");
        let mut pin = 0;
        for pair in self.way.windows(2).rev() {
            let number = pair[1].split([':', '.']).nth(2);
            let number = number.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            pin = (pin + number.unwrap_or(0)) % 4;
            let _ = write!(route, " -> INT{} of {}", char::from(b'A' + pin as u8), pair[0]);
        }
        route + &format!(": interrupt {} ", self.interrupt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
pci begin
└─ 0000:00:08.0 PCI bridge [1b36:0001] -> buses 01-02
   │     INTA: interrupt 11 (I/O APIC 0) by mp-table
   └─ 0000:01:05.0 PCI bridge [1b36:0001] -> bus 02
      ├─ 0000:02:03.0 NVM Express controller [1b36:0010]
      │        INTA -> INTD of 0000:01:05.0 -> INTA of 0000:00:08.0: interrupt 11 (I/O APIC 0) by swizzle
      └─ 0000:02:06.0 RAID controller [1000:0060]
               INTA -> INTC of 0000:01:05.0 -> INTD of 0000:00:08.0: interrupt 10 by operating-system
pci end
linux 0000:00:00.0 0x060000 0 /sys/devices/pci0000:00/0000:00:00.0
linux 0000:00:08.0 0x060400 11 /sys/devices/pci0000:00/0000:00:08.0
linux 0000:01:05.0 0x060400 10 /sys/devices/pci0000:00/0000:00:08.0/0000:01:05.0
linux 0000:02:03.0 0x010802 11 /sys/devices/pci0000:00/0000:00:08.0/0000:01:05.0/0000:02:03.0
linux 0000:02:06.0 0x010400 10 /sys/devices/pci0000:00/0000:00:08.0/0000:01:05.0/0000:02:06.0
";

    fn bad(said: &str) -> Vec<String> {
        let failed = tree_checks(said).into_iter().filter(|(holds, _)| !holds);
        failed.map(|(_, what)| what).collect()
    }

    #[test]
    fn routes_are_held_against_the_bridges() {
        assert_eq!(bad(SAID), [""; 0]);
        // Another pin on the way, another interrupt, a bridge that was not found, a device that is missing.
        assert_eq!(bad(&SAID.replace("INTD of 0000:01:05.0", "INTA of 0000:01:05.0")).len(), 1);
        assert_eq!(bad(&SAID.replace("interrupt 10 by", "interrupt 11 by")).len(), 1);
        assert_eq!(
            bad(&SAID.replace("0000:01:05.0 PCI bridge", "0000:01:06.0 PCI bridge")).len(),
            1
        );
        assert_eq!(bad(&SAID.replace("0x0104", "0x0200")).len(), 1);
        assert!(!bad("").is_empty(), "a guest that said nothing");
    }

    fn figures(rates: impl Fn(&str, u32) -> u32) -> Figures {
        let mut said = String::new();
        for tool in ["fio", "ssdyno"] {
            for (device, threads) in THREADS.iter().flat_map(|n| [("nvme", n), ("megasas", n)]) {
                let _ =
                    writeln!(said, "iops {tool} {device} {threads} {}", rates(device, *threads));
            }
        }
        Figures::parse(&said)
    }

    #[test]
    fn the_order_of_the_figures_is_checked() {
        let failed = |figures: &Figures, processors| {
            figures.checks(processors).iter().filter(|(holds, _)| !holds).count()
        };
        let grows = figures(|device, n| if device == "nvme" { 100 * n } else { 50 });
        assert!(!grows.is_cut());
        assert_eq!(failed(&grows, 8), 0);
        // No gain with threads is a failure only where there are processors for them.
        let flat = figures(|device, _| if device == "nvme" { 100 } else { 50 });
        assert_eq!((failed(&flat, 8), failed(&flat, 2)), (2, 0));
        let behind = figures(|device, n| if device == "nvme" { 10 * n } else { 50 });
        assert_eq!(failed(&behind, 2), 6, "at 1, 2 and 4 threads, by both");
        assert!(Figures::parse("iops fio nvme 1 100\n").is_cut());
        assert!(figures(|_, n| n / 2).is_cut(), "nothing was read");
    }
}
