//! S4 over a real network (S4-1 to S4-7, S4-35 to S4-37, S4-42, S4-46): network namespaces with links of limited rate on one
//! machine, workers in the clients' namespaces, and servers in the target's. Measured in wall time, beside the answer of the
//! simulator.

mod claims;
mod cpu;
mod delay;
mod facts;
mod lab;
mod measure;
mod memory;
mod own_target;
mod programs;
mod ramp;
mod tables;
mod target;
#[cfg(test)]
mod tests;
mod tools;

use std::collections::BTreeSet;

use claims::Check;
use facts::Facts;
use measure::{CLIENTS, DELAYS, Outcome, Parts, measure};
use ssdyno_session::Failure;

use super::data::{Case, Plan, Printed};
use super::figures::points;
use crate::assumptions::Changes;
use crate::claims::Claims;
use crate::error::nothing;
use crate::measured::PointPlan;
use crate::{
    Claim, HostsOptions, KeepGoing, PapersOptions, PapersProgress, PapersReport, Selector,
};

/// Parts, with a title each.
const PARTS: [(&str, &str); 4] = [
    ("table4", "Table 4 over a network, measured (with --hosts)"),
    ("figure7a", "Figure 7, storage of 100 us over a network, measured (with --hosts)"),
    ("figure7b", "Figure 7, storage of 10 us over a network, measured (with --hosts)"),
    ("ramp_up", "The start of the clients of table 4, measured (with --hosts)"),
];

/// What can be selected here, with a title each.
pub(super) fn selectable() -> Result<Vec<(String, String)>, Failure> {
    let parts = PARTS.map(|(id, title)| (format!("S4/hosts/{id}"), title.to_owned()));
    Ok(parts.into_iter().chain(claims::all()?.titles()).collect())
}

/// Whether `selector` means `part`, here or as the simulator has it.
fn means(selector: &Selector, part: &str) -> bool {
    selector.reaches(&format!("S4/hosts/{part}")) || selector.reaches(&format!("S4/{part}"))
}

impl Parts {
    /// Those that `selector` means, or that claims need which it names.
    fn of(selector: &Selector, all: &Claims<Check>) -> Parts {
        let needed: BTreeSet<&String> =
            all.named(selector).flat_map(|check| &check.statement.about).collect();
        let on = |part: &str| means(selector, part) || needed.iter().any(|own| *own == part);
        Parts {
            table4: on("table4"),
            figure7: DELAYS.map(|(_, figure)| on(figure)),
            ramp_up: on("ramp_up"),
        }
    }
}

/// Measures what `selector` means, and simulates the same.
pub(super) fn run(
    selector: &Selector,
    options: &PapersOptions,
    hosts: &HostsOptions,
    progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<PapersReport, Failure> {
    let all = claims::all()?;
    let parts = Parts::of(selector, &all);
    if parts == Parts::default() {
        return Err(nothing(selector, selectable()?));
    }
    let (printed, plan) = (Printed::load()?, Plan::load()?);
    // The measurement is first: what is missing for it is told at once.
    // The machine is described before the measurement: afterwards its load average would contain
    // our own load.
    let machine = machine();
    let outcome = measure(&plan, parts, hosts, progress)?;
    let figures = parts.table4.then_some("table4").into_iter();
    let sevens = DELAYS.into_iter().zip(parts.figure7).filter(|(_, on)| *on);
    let figures = figures.chain(sevens.map(|((_, figure), _)| figure));
    // SPEK's are beside what is measured, with as many clients.
    let is_beside = |case: &Case| {
        case.stack == "spek" && (case.network.is_none() || CLIENTS.contains(&case.workers))
    };
    let cases = points(figures, &plan).into_iter().filter(is_beside).collect();
    let simulated = Plan::simulate(&cases, options, Changes::none(), progress)?;
    let facts = Facts { outcome: &outcome, plan: &plan, simulated: &simulated };
    let claims = judged(&facts, &all, selector);
    Ok(report(&facts, &printed, parts, claims, notes(hosts, &machine, &outcome)))
}

fn report(
    facts: &Facts<'_>,
    printed: &Printed,
    parts: Parts,
    claims: Vec<Claim>,
    notes: Vec<String>,
) -> PapersReport {
    let (mut figures, mut tables) = (Vec::new(), Vec::new());
    if parts.table4 {
        let (figure, table) = tables::table4(facts, &printed.table4);
        figures.push(figure);
        tables.push(table);
    }
    if parts.figure7.contains(&true) {
        let (drawn, told) = tables::figure7(facts, parts);
        figures.extend(drawn);
        tables.extend(told);
    }
    if parts.ramp_up {
        tables.push(tables::ramp_up(facts));
    }
    PapersReport {
        title: format!("{}: over a network", printed.title),
        claims,
        figures,
        tables,
        runs: facts.simulated.summaries(),
        notes,
        partial: facts.outcome.is_partial || facts.simulated.partial,
        ..PapersReport::default()
    }
}

fn judged(facts: &Facts<'_>, all: &Claims<Check>, selector: &Selector) -> Vec<Claim> {
    let named: Vec<&str> = all.named(selector).map(|check| check.name).collect();
    let beside = |about: &[String]| about.iter().any(|part| means(selector, part));
    let checks = all.checks.iter();
    checks
        .filter(|check| named.contains(&check.name) || beside(&check.statement.about))
        .map(|check| all.report(check, (check.check)(facts), "not measured"))
        .collect()
}

fn notes(hosts: &HostsOptions, machine: &str, outcome: &Outcome) -> Vec<String> {
    let HostsOptions { seconds, repeats, .. } = hosts;
    let cores = match outcome.has_core {
        true => {
            "The target has its own core, whose share includes the work of other processes there; clients share the other cores; the CPU time of the network counts for the sender"
        }
        false => "Target and clients share the one core, so no share of a core is known",
    };
    vec![
        format!(
            "Measured on {machine}: {repeats} times {seconds} s each, mean ± half of the 95 % interval. Claims hold or not for \
             this machine alone."
        ),
        format!(
            "Namespaces and links are on one machine. {cores}. The target's data is in memory: there is no disk behind it."
        ),
        format!(
            "Table 4 has iSCSI. Here the targets are nbd-server, our iSCSI target on threads of this process, and tgt, with an \
             export or a unit for each client; one target is loaded at a time.{}",
            if outcome.has_tgt { "" } else { " tgt is not measured: `tgtd` is not installed (package tgt)." }
        ),
        "The storage of figure 7 serves one request at a time, like the simulated storage; the queue has no limit. A worker is \
         a client with one request outstanding; its link is not limited."
            .to_owned(),
    ]
}

/// The machine, its kernel, and what else it does.
fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let model =
        processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, model)| model.trim());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("unknown");
    format!("{model}, {cores} cores, Linux {}, load average before {load}", kernel.trim())
}
