//! One run of either simulator, and its cost.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use super::machine::{self, Load};
use crate::command::Cmd;

/// The result and the cost of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// Requests that completed.
    pub(crate) requests: f64,
    /// User and system time of the whole process, from its start to its end, in seconds.
    pub(crate) cpu_s: f64,
    /// Of ours: of the loop alone, in seconds. Of MQSim: after each part of its requests that it announces
    /// (percent, seconds so far).
    pub(crate) cpu_s_parts: Vec<(f64, f64)>,
    /// Mean, in microseconds; MQSim prints whole ones.
    pub(crate) latency_us: f64,
    /// Flash operations: pages read and programmed.
    pub(crate) reads: f64,
    pub(crate) programs: f64,
}

/// CPU time of process `pid` in seconds; `None` once it is gone. `of` names two neighbouring fields of
/// proc(5), `stat`, counted from 1.
fn cpu_s(pid: &str, of: usize) -> Option<f64> {
    /// Linux counts in these for programs, on all processors.
    const TICKS_A_SECOND: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, in brackets, may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks = rest.split_whitespace().skip(of - 3).take(2);
    Some(ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS_A_SECOND)
}

/// Fields of a process itself, and of the children that it has waited for.
const OWN: usize = 14;
const CHILDREN: usize = 16;

/// Runs `command` to its end; `line` hears of each line that it prints, with its CPU time so far.
/// What it printed, and its CPU time: ten milliseconds are the smallest step.
fn run(command: &Cmd, mut line: impl FnMut(&str, f64)) -> Result<(String, f64)> {
    let before = cpu_s("self", CHILDREN).context("/proc is needed for CPU times: Linux only")?;
    let mut built = command.build();
    built.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = built.spawn().with_context(|| format!("cannot start `{command}`"))?;
    let pid = child.id().to_string();
    let mut output = String::new();
    if let Some(stdout) = child.stdout.take() {
        for text in BufReader::new(stdout).lines() {
            let text = text?;
            line(&text, cpu_s(&pid, OWN).unwrap_or_default());
            output += &text;
            output.push('\n');
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{command}` failed ({status}); run it by hand to see why");
    }
    let after = cpu_s("self", CHILDREN).unwrap_or(before);
    Ok((output, after - before))
}

/// Runs `requests` of `load` on MQSim, the program `program`, with files in `directory`.
pub(crate) fn theirs(
    program: &Path,
    directory: &Path,
    load: &Load,
    (requests, seed): (u64, u64),
) -> Result<Figures> {
    let file = |name: &str| directory.join(name);
    let (device, workload) = (file("device.xml"), file("workload.xml"));
    let results = file("workload_scenario_1.xml");
    fs::write(&device, machine::device_xml())?;
    fs::write(&workload, machine::workload_xml(load, requests, seed))?;
    // An old one must not be taken for that of this run.
    let _ = fs::remove_file(&results);
    let name = |path: &PathBuf| path.display().to_string();
    let command = Cmd::new(program.display().to_string())
        .args(["-i".to_owned(), name(&device), "-w".to_owned(), name(&workload)])
        .dir(directory);
    let mut parts = Vec::new();
    let (output, cpu_s) = run(&command, |line, cpu_s| {
        parts.extend(announced(line).map(|percent| (percent, cpu_s)));
    })?;
    let report = fs::read_to_string(&results)
        .with_context(|| format!("`{command}` left no {}", results.display()))?;
    let served = after(&output, "total requests serviced:").context("it served no requests")?;
    if served < requests as f64 {
        bail!("MQSim served {served} of {requests} requests: {} runs dry", load.name);
    }
    let count = |name: &str| after(&report, &format!(" {name}=\"")).unwrap_or_default();
    // A command for two planes is counted once, and apart.
    let pages = |one: &str, two: &str| count(one) + 2.0 * count(two);
    Ok(Figures {
        requests: served,
        cpu_s,
        cpu_s_parts: parts,
        latency_us: after(&output, "device response time:").unwrap_or_default(),
        reads: pages("Issued_Flash_Read_CMD", "Issued_Flash_Multiplane_Read_CMD"),
        programs: pages("Issued_Flash_Program_CMD", "Issued_Flash_Multiplane_Program_CMD"),
    })
}

/// Runs `requests` of `load` on ours, the program `program`, with `keep` of the requests kept.
pub(crate) fn ours(
    program: &Path,
    directory: &Path,
    load: &Load,
    (requests, seed, keep): (u64, u64, &str),
) -> Result<Figures> {
    let results = directory.join("ours");
    let settings = machine::OURS.iter().flat_map(|set| ["--set", set]).map(str::to_owned);
    let depth = format!("workload.depth={}", load.depth);
    let command = Cmd::new(program.display().to_string())
        .args(["run", "sim:config-a", "--json", "--workload", load.workload, "--set", &depth])
        .args(settings)
        .args(["--requests", &requests.to_string(), "--seed", &seed.to_string()])
        .args(["--keep", keep, "--results", &results.display().to_string()]);
    let (output, cpu_s) = run(&command, |_, _| {})?;
    let _ = fs::remove_dir_all(&results);
    let result: serde_json::Value = serde_json::from_str(&output)?;
    same_machine(result["configuration"]["device_toml"].as_str().unwrap_or_default())?;
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or_default();
    let served = number(&result["requests"]);
    Ok(Figures {
        requests: served,
        cpu_s,
        cpu_s_parts: vec![(
            100.0,
            number(&result["own_cost"]["cpu_ns_per_request"]) * served / 1e9,
        )],
        latency_us: number(&result["latency_ns"]["mean"]) / 1e3,
        reads: number(&result["flash_operations"]["reads"]),
        programs: number(&result["flash_operations"]["programs"]),
    })
}

/// Nothing is compared once the preset is no longer what MQSim's files say.
fn same_machine(device: &str) -> Result<()> {
    let lines: Vec<&str> = device.lines().map(str::trim).collect();
    for key in machine::KEYS {
        if !lines.contains(key) {
            bail!(
                "sim:config-a no longer says `{key}`: bring xtask/src/mqsim/machine.rs up to date"
            );
        }
    }
    Ok(())
}

/// How much MQSim says is done, in percent, if `line` says so.
fn announced(line: &str) -> Option<f64> {
    let (before, _) = line.split_once("% progress")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// The number that stands in `text` behind the first `name`.
fn after(text: &str, name: &str) -> Option<f64> {
    let rest = text.split_once(name)?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stand-in for MQSim: a shell script that prints and writes the same.
    #[cfg(target_os = "linux")]
    fn stand_in(directory: &Path, served: u64) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let script = format!(
            "#!/bin/sh\n\
             test -f \"$2\" && test -f \"$4\" || exit 3\n\
             echo '[>      ]  0% progress in Host.IO_Flow.Synth.No_0'\n\
             i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done\n\
             echo '[=====> ] 50% progress in Host.IO_Flow.Synth.No_0'\n\
             echo 'Flow Host.IO_Flow.Synth.No_0 - total requests generated: 40 total requests serviced:{served}'\n\
             echo '                   - device response time: 132 (us) end-to-end request delay:133 (us)'\n\
             cat > \"${{4%.xml}}_scenario_1.xml\" <<'END'\n\
             <SSDDevice.FTL Issued_Flash_Read_CMD=\"7\" Issued_Flash_Multiplane_Read_CMD=\"2\" \
             Issued_Flash_Program_CMD=\"90\" Issued_Flash_Multiplane_Program_CMD=\"5\"/>\n\
             END\n"
        );
        let path = directory.join(format!("stand-in-{served}"));
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_mqsim_prints_and_writes_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let program = stand_in(directory.path(), 40);
        let got = theirs(&program, directory.path(), &machine::WRITE, (40, 1)).unwrap();
        let Figures { requests, latency_us, reads, programs, .. } = got;
        assert_eq!((requests, latency_us, reads, programs), (40.0, 132.0, 11.0, 100.0));
        let parts: Vec<f64> = got.cpu_s_parts.iter().map(|(percent, _)| *percent).collect();
        assert_eq!(parts, [0.0, 50.0]);
        // The loop of the script took its time before the second line, or the end.
        assert!(got.cpu_s > 0.0, "{got:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn requests_that_never_end_are_no_comparison() {
        let directory = tempfile::tempdir().unwrap();
        let program = stand_in(directory.path(), 39);
        let error = theirs(&program, directory.path(), &machine::WRITE, (40, 1)).unwrap_err();
        assert!(error.to_string().contains("39 of 40"), "{error}");
        let missing = directory.path().join("missing");
        let error = theirs(&missing, directory.path(), &machine::WRITE, (40, 1)).unwrap_err();
        assert!(error.to_string().contains("cannot start"), "{error}");
    }

    #[test]
    fn a_changed_preset_is_noticed() {
        let all = machine::KEYS.join("\n");
        same_machine(&all).unwrap();
        let error =
            same_machine(&all.replace("dies_per_chip = 2", "dies_per_chip = 4")).unwrap_err();
        assert!(error.to_string().contains("`dies_per_chip = 2`"), "{error}");
    }
}
