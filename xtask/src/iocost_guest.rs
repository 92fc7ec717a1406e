//! The scheduler files of `ssdyno profile` in a stock Linux kernel: a guest loads `io.cost.model` and
//! `io.cost.qos` of simulated devices, and of a disk that it profiles itself. Not in `test`: it takes minutes,
//! and a download the first time.

use anyhow::{Result, bail};

use crate::command::Cmd;
use crate::guest::{self, Boot};
use crate::workspace::Workspace;

/// Most time of the guest; the profile in it takes one or two minutes.
const SECONDS_MAX: u32 = 600;
/// Devices whose files the host makes, with options: a disk with very low rates, a rented volume, and an SSD,
/// of which a program without optimisation measures a part.
const DEVICES: [(&str, &[&str]); 3] =
    [("exos-x20", &[]), ("volume-gp3", &[]), ("p3600", &["--time", "20s", "--span", "256M"])];
/// What the disk of the guest does in a second, by QEMU's throttle.
const IOPS: u32 = 2000;
const BYTES: u32 = 40_000_000;
/// The throttle lets a tenth of a second through at once, and an emulated guest is interrupted.
const TOLERANCE: f64 = 0.10;

/// Runs the guest, prints what its kernel took, and holds the profile of the disk against its throttle.
///
/// # Errors
/// The guest cannot be made or started, a profile fails, or the guest did not come to its end.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let folder = guest::made(workspace)?;
    let program = guest::program(workspace)?;
    let files = folder.join("iocost");
    std::fs::create_dir_all(&files)?;
    let mut names = Vec::new();
    for (device, options) in DEVICES {
        let (model, qos) = (format!("{device}.model"), format!("{device}.qos"));
        let target = format!("sim:{device}");
        let command = ["profile", &target, "--io-cost-model", &model];
        let made = Cmd::new(program.display().to_string())
            .args(command)
            .args(["--io-cost-qos", &qos])
            .args(options.iter().copied())
            .dir(&files)
            .announced();
        if !made.stream()? {
            bail!("{target} has no scheduler files; the message is above");
        }
        names.extend([model, qos]);
    }
    guest::pack(&folder, &program, &files, &names)?;
    println!("starting a guest: some minutes");
    let nothing = format!(
        "driver=null-co,size=1G,read-zeroes=on,if=none,id=disk,throttling.iops-total={IOPS},\
         throttling.bps-total={BYTES}"
    );
    // Behind the disks of the guest on the bus, which are /dev/vda and /dev/vdb. QEMU would make fewer requests of
    // sequential ones, and the throttle count those.
    let disk = "virtio-blk-pci,drive=disk,serial=GUEST,addr=0x1e,request-merging=off";
    let devices = ["-drive", &nothing, "-device", disk];
    let how = Boot {
        init: "guest-iocost",
        words: "",
        processors: 2,
        seconds_max: SECONDS_MAX,
        devices: &devices,
    };
    let said = guest::boot(&folder, &how)?;
    let mut good = said.lines().any(|line| line.trim() == "done");
    for line in said.lines().map(str::trim_end) {
        if line.starts_with("ok ") || line.starts_with("not ok ") || line.starts_with("    ") {
            println!("{line}");
        }
        good &= !line.starts_with("not ok ");
    }
    for (holds, what) in figures(&said) {
        println!("{} {what}", if holds { "ok" } else { "not ok" });
        good &= holds;
    }
    if !good && !said.contains("\ndone") {
        bail!("the guest did not come to its end; it said:\n{said}");
    }
    Ok(good)
}

/// The coefficients that the guest measured, against the throttle. Small requests meet its limit of requests,
/// large ones its limit of bytes.
fn figures(said: &str) -> Vec<(bool, String)> {
    let known = |name: &str| f64::from(if name.ends_with("bps") { BYTES } else { IOPS });
    let names = ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"];
    let check = |name: &str| {
        let mut lines = said.lines().filter_map(|line| line.trim().strip_prefix("figure "));
        let figure = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let Some(figure) = figure.and_then(|figure| figure.parse::<f64>().ok()) else {
            return (false, format!("{name} is missing"));
        };
        let ratio = figure / known(name);
        (
            (ratio - 1.0).abs() <= TOLERANCE,
            format!("{name}={figure} is {ratio:.3} of the throttle, within {TOLERANCE} wanted"),
        )
    };
    names.map(check).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_held_against_the_throttle() {
        let said = "figure rbps=40000000\r\nfigure rseqiops=2000\nfigure rrandiops=2000\n\
                    figure wbps=41000000\nfigure wseqiops=1900\nfigure wrandiops=2000\n";
        let bad = |said: &str| figures(said).iter().filter(|(holds, _)| !holds).count();
        assert_eq!(bad(said), 0);
        assert_eq!(bad(&said.replace("rbps=40000000", "rbps=48000000")), 1);
        assert_eq!(bad(&said.replace("rrandiops=2000", "rrandiops=1700")), 1);
        assert_eq!(bad(""), 6);
    }
}
