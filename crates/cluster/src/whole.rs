//! Figures that do not follow from the requests of hosts: energy, the work of the flash, the cost of the tool.
//!
//! A host has them of its whole run only, not by stretch of the series, so they cannot be cut to the window that all hosts share.
//! Each host keeps its own. The flash operations of all hosts are summed where the window holds all but [`OUTSIDE_MOST`] of the
//! requests, and their energy where it covers times of the same length.

use ssdyno_figures::{
    Energy, EnergyRow, FaultsResult, FlashOperations, GcVictims, OwnCost, Power, RunResult,
    SeriesPoint, TailVerdict, WholeRun, seconds,
};
use ssdyno_record::HostPart;

/// The share of a host's requests outside the common window up to which a sum over whole runs is one of the window. Hosts that
/// simulate for the same time lose the last stretch of the series: of a run longer than 256 ms 1/256 at most.
const OUTSIDE_MOST: f64 = 0.01;

/// The share by which the times of the hosts' energy may differ. Hosts that simulate for the same time settle at different times,
/// and the energy of a device is proportional to time, not to requests.
const SECONDS_MOST: f64 = 0.01;

/// The figures of one host's whole run; `None` where it has none.
pub(crate) fn of_host(result: &RunResult) -> Option<WholeRun> {
    let whole = WholeRun {
        energy_joules: result.energy_joules,
        energy_seconds: result.energy_seconds,
        flash_operations: result.flash_operations,
        write_amplification: result.write_amplification,
        faults: result.faults.clone(),
        own_cost: result.own_cost,
        p99_believable: result.p99_believable.clone(),
    };
    (whole != WholeRun::default()).then_some(whole)
}

/// Adds the figures of all `hosts` together, of which each has a name, to `result`.
pub(crate) fn fill(result: &mut RunResult, hosts: &[(&str, &RunResult)], parts: &[HostPart]) {
    // The verdict on the tail, the cost of the tool and the faults do not depend on the window, so
    // they come before the test of the requests outside it.
    result.p99_believable = tail(hosts);
    result.own_cost = own_cost(hosts);
    let faults: Vec<&FaultsResult> =
        hosts.iter().filter_map(|host| host.1.faults.as_ref()).collect();
    result.faults = FaultsResult::of_hosts(&faults);
    energy(result, hosts);
    let outside = |(host, part): (&(&str, &RunResult), &HostPart)| {
        let all = host.1.requests.max(1) as f64;
        (part.requests_outside as f64 > OUTSIDE_MOST * all).then(|| host.0.to_owned())
    };
    let outside: Vec<String> = hosts.iter().zip(parts).filter_map(outside).collect();
    // Real targets have no device model. A note about missing
    // flash operations would only confuse their users.
    if outside.is_empty() {
        flash(result, hosts);
    } else if hosts.iter().any(|host| host.1.flash_operations.is_some()) {
        let names = outside.join(", ");
        result.notes.push(format!(
            "flash operations are not summed, because more than 1 % of the requests of {names} are outside \
             the window; `hosts` contains these figures for the whole run of each host"
        ));
    }
    // The power of a point can be added only if the points of all hosts begin at the same time. A host
    // that began earlier has its points at other places.
    let aligned = parts.iter().all(|part| part.before.as_ps() == 0);
    let series: Vec<&[SeriesPoint]> = hosts.iter().map(|host| &*host.1.series).collect();
    if aligned {
        power(&mut result.series, &series);
    }
}

/// The sum of `figure` over all hosts; `None` where one does not have it.
fn sum<T>(hosts: &[(&str, &RunResult)], figure: impl Fn(&RunResult) -> Option<T>) -> Option<T>
where
    T: std::ops::Add<Output = T>,
{
    // One host without the figure makes the sum unknown. A sum over the others
    // would look like the figure of all hosts.
    let all: Option<Vec<T>> = hosts.iter().map(|host| figure(host.1)).collect();
    all?.into_iter().reduce(|sum, one| sum + one)
}

/// Adds the energy of all hosts, each over the mean of their times, so that the mean power of all is the sum of theirs.
fn energy(result: &mut RunResult, hosts: &[(&str, &RunResult)]) {
    let of_hosts = || hosts.iter().filter_map(|host| Some((host.0, host.1.energy_seconds?)));
    let longest = of_hosts().max_by(|one, other| one.1.total_cmp(&other.1));
    let shortest = of_hosts().min_by(|one, other| one.1.total_cmp(&other.1));
    let (Some((longest, most)), Some((shortest, least))) = (longest, shortest) else { return };
    if most > least * (1.0 + SECONDS_MOST) {
        let [most, least] = [most, least].map(seconds);
        result.notes.push(format!(
            "energy is not summed, because it covers {most} of {longest}, but {least} of {shortest}; `hosts` \
             contains the energy of each host"
        ));
        return;
    }
    let common = of_hosts().map(|host| host.1).sum::<f64>() / hosts.len() as f64;
    // A host without a time has no power, and a run of no time has joules of zero.
    let scale = |host: &RunResult| match host.energy_seconds {
        Some(own) if own > 0.0 => common / own,
        _ => 1.0,
    };
    let part = |pick: fn(&Energy) -> f64| {
        sum(hosts, |host| Some(pick(host.energy_joules.as_ref()?) * scale(host)))
    };
    let all = || {
        Some(Energy {
            total: part(|energy| energy.total)?,
            flash: part(|energy| energy.flash)?,
            cpu: part(|energy| energy.cpu)?,
            dram: part(|energy| energy.dram)?,
            bus: part(|energy| energy.bus)?,
            parts: part(|energy| energy.parts)?,
            per_request: None,
            above_idle: part(|energy| energy.above_idle)?,
        })
    };
    let Some(mut energy) = all() else { return };
    // The energy was spent on all requests of each host, also on those outside the window.
    // The quotient therefore uses the same requests, over the same times.
    let requests: f64 = hosts.iter().map(|host| host.1.requests as f64 * scale(host.1)).sum();
    energy.per_request = (requests > 0.0).then(|| energy.total / requests);
    let mean_s = result.latency_ns.as_ref().map(|latency| latency.all.mean / 1e9);
    result.energy_delay_joule_seconds =
        energy.per_request.zip(mean_s).map(|(joules, seconds)| joules * seconds);
    result.energy_joules = Some(energy);
    result.energy_seconds = Some(common);
    for (row, scale) in hosts
        .iter()
        .flat_map(|(_, host)| host.energy_by_part.iter().map(move |row| (row, scale(host))))
    {
        let same =
            |other: &&mut EnergyRow| other.part == row.part && other.activity == row.activity;
        // Hosts may simulate different devices. Rows with the same part and activity are added, and a
        // part that only one host has keeps its own row.
        match result.energy_by_part.iter_mut().find(same) {
            Some(all) => {
                all.joules += row.joules * scale;
                all.seconds += row.seconds * scale;
            }
            None => result.energy_by_part.push(EnergyRow {
                joules: row.joules * scale,
                seconds: row.seconds * scale,
                ..row.clone()
            }),
        }
    }
}

fn flash(result: &mut RunResult, hosts: &[(&str, &RunResult)]) {
    let count = |pick: fn(&FlashOperations) -> u64| {
        sum(hosts, |host| host.flash_operations.as_ref().map(pick))
    };
    let all = || {
        Some(FlashOperations {
            reads: count(|operations| operations.reads)?,
            programs: count(|operations| operations.programs)?,
            erases: count(|operations| operations.erases)?,
            relocations: count(|operations| operations.relocations)?,
            mapping_programs: count(|operations| operations.mapping_programs)?,
        })
    };
    let Some(operations) = all() else { return };
    result.flash_operations = Some(operations);
    result.write_amplification = write_amplification(hosts);
    let victims: Vec<&GcVictims> =
        hosts.iter().filter_map(|host| host.1.gc_victims.as_ref()).collect();
    let blocks: f64 = victims.iter().map(|victims| victims.blocks as f64).sum();
    // The mean is weighted by the number of blocks. A host that collected one block would otherwise
    // count as much as a host that collected thousands.
    let valid: f64 = victims.iter().map(|victims| victims.valid_mean * victims.blocks as f64).sum();
    let mut counts = vec![0; victims.iter().map(|one| one.by_valid_share.len()).max().unwrap_or(0)];
    for one in victims {
        counts.iter_mut().zip(&one.by_valid_share).for_each(|(all, count)| *all += count);
    }
    result.gc_victims = GcVictims::new(counts, valid / blocks);
}

/// Programs of all hosts by pages written of all hosts: a mean of the hosts' own figures would count one that wrote a page as much
/// as one that wrote a million.
fn write_amplification(hosts: &[(&str, &RunResult)]) -> Option<f64> {
    let (mut programs, mut pages) = (0.0, 0.0);
    // Bytes that hosts wrote: of those whose device programmed pages, and of those whose device still has all in its buffer.
    let (mut bytes, mut buffered) = (0.0, 0.0);
    for (_, host) in hosts {
        let of_host = host.flash_operations?.programs as f64;
        // A host that wrote nothing may still have moved pages in garbage collection. Its
        // programs count, and it adds no pages of the host.
        programs += of_host;
        let written = host.series.iter().map(|point| point.write_bytes as f64).sum::<f64>();
        match host.write_amplification {
            Some(factor) if factor > 0.0 => {
                pages += of_host / factor;
                bytes += written;
            }
            // A factor of 0 gives no information on the pages. They follow from the bytes and the pages of the other
            // hosts.
            Some(_) => buffered += written,
            None => {}
        }
    }
    if programs == 0.0 && hosts.iter().any(|(_, host)| host.write_amplification.is_some()) {
        return Some(0.0);
    }
    if buffered > 0.0 {
        pages *= 1.0 + buffered / bytes;
    }
    (pages > 0.0 && pages.is_finite()).then(|| programs / pages)
}

/// The cost of a request, over the requests of all hosts.
fn own_cost(hosts: &[(&str, &RunResult)]) -> Option<OwnCost> {
    let requests: f64 = hosts.iter().map(|host| host.1.requests as f64).sum();
    let mean = |pick: fn(&OwnCost) -> Option<f64>| {
        // The cost of each host is a mean over its own requests. The product is the
        // total again, and totals can be added.
        let all = sum(hosts, |host| Some(pick(host.own_cost.as_ref()?)? * host.requests as f64))?;
        (requests > 0.0).then(|| all / requests)
    };
    Some(OwnCost {
        cpu_ns_per_request: mean(|cost| Some(cost.cpu_ns_per_request))?,
        syscalls_per_request: mean(|cost| cost.syscalls_per_request),
        context_switches_per_request: mean(|cost| cost.context_switches_per_request),
        user_cpu_ns_per_request: mean(|cost| cost.user_cpu_ns_per_request),
        system_cpu_ns_per_request: mean(|cost| cost.system_cpu_ns_per_request),
        floor_cpu_ns_per_request: mean(|cost| cost.floor_cpu_ns_per_request),
    })
}

/// One host whose tail cannot be believed is enough: its requests are in the tail of all.
fn tail(hosts: &[(&str, &RunResult)]) -> Option<TailVerdict> {
    let verdicts =
        || hosts.iter().filter_map(|host| Some((host.0, host.1.p99_believable.as_ref()?)));
    let against: Vec<String> = verdicts()
        .filter(|(_, verdict)| !verdict.believable)
        .flat_map(|(name, verdict)| {
            verdict.reasons.iter().map(move |reason| format!("{name}: {reason}"))
        })
        .collect();
    if !against.is_empty() {
        return Some(TailVerdict { believable: false, reasons: against });
    }
    let (_, first) = verdicts().next()?;
    // A good verdict needs a verdict of every host. A host without one may be
    // the host whose tail cannot be believed.
    (verdicts().count() == hosts.len()).then(|| first.clone())
}

/// Adds the power of all hosts, whose points lie where those of `all` do.
fn power(all: &mut [SeriesPoint], hosts: &[&[SeriesPoint]]) {
    for (at, point) in all.iter_mut().enumerate() {
        let of_host = |series: &&[SeriesPoint]| {
            let other = series.get(at)?;
            // Both hosts computed the time in floating point from the same grid. The tolerance of 1 ns allows for
            // rounding and is far below any interval of a series.
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            let same = near(other.start_seconds, point.start_seconds)
                && near(other.length_seconds, point.length_seconds);
            other.power_watts.filter(|_| same)
        };
        let powers: Option<Vec<Power>> = hosts.iter().map(of_host).collect();
        point.power_watts = powers.and_then(|powers| {
            powers.into_iter().reduce(|sum, one| Power {
                total: sum.total + one.total,
                flash: sum.flash + one.flash,
                cpu: sum.cpu + one.cpu,
                dram: sum.dram + one.dram,
                bus: sum.bus + one.bus,
                parts: sum.parts + one.parts,
            })
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(programs: u64, write_amplification: Option<f64>, write_bytes: u64) -> RunResult {
        let operations = FlashOperations { programs, ..FlashOperations::default() };
        let series = vec![SeriesPoint { write_bytes, ..SeriesPoint::default() }];
        let flash_operations = Some(operations);
        RunResult { flash_operations, write_amplification, series, ..RunResult::default() }
    }

    fn powered(watts: f64, seconds: f64, requests: u64) -> RunResult {
        let joules = watts * seconds;
        let energy = Energy { total: joules, cpu: joules, ..Energy::default() };
        let row = EnergyRow { part: "core".to_owned(), joules, seconds, ..EnergyRow::default() };
        RunResult {
            requests,
            energy_joules: Some(energy),
            energy_seconds: Some(seconds),
            energy_by_part: vec![row],
            ..RunResult::default()
        }
    }

    fn summed(hosts: &[(&str, &RunResult)]) -> RunResult {
        let mut all = RunResult::default();
        energy(&mut all, hosts);
        all
    }

    /// One device was busy for a little longer than the other: power is summed, not the joules of unequal times.
    #[test]
    fn the_power_of_all_hosts_is_the_sum_of_their_powers() {
        let (one, other) = (powered(2.0, 1.004, 100), powered(0.5, 1.012, 300));
        let all = summed(&[("a", &one), ("b", &other)]);
        let (joules, seconds) = (all.energy_joules.unwrap(), all.energy_seconds.unwrap());
        assert!((joules.total / seconds - 2.5).abs() < 1e-12, "{joules:?} {seconds}");
        assert!((joules.cpu / seconds - 2.5).abs() < 1e-12 && (1.004..1.012).contains(&seconds));
        let [row] = &all.energy_by_part[..] else { panic!("one part") };
        assert!((row.joules / joules.total - 1.0).abs() < 1e-12);
        assert!((row.seconds / seconds - 2.0).abs() < 1e-12);
        let per_request =
            (one.energy_joules.unwrap().total + other.energy_joules.unwrap().total) / 400.0;
        assert!((joules.per_request.unwrap() / per_request - 1.0).abs() < 0.01);
        assert!(all.notes.is_empty());
    }

    /// A driver of one host waited 30 s for a lost request: its idle energy is not that of a run of 20 ms.
    #[test]
    fn energy_over_unequal_times_is_not_summed() {
        let (long, short) = (powered(4.0, 30.02, 733), powered(5.0, 0.02, 733));
        let all = summed(&[("a", &short), ("b", &long)]);
        assert_eq!(
            (all.energy_joules, all.energy_seconds, all.energy_by_part.len()),
            (None, None, 0)
        );
        let [note] = &all.notes[..] else { panic!("{:?}", all.notes) };
        assert!(note.contains("30.02 s of b, but 20.00 ms of a"), "{note}");
        assert_eq!(of_host(&long).unwrap().energy_seconds, Some(30.02));
    }

    /// A device that has all writes in its buffer has a factor of 0, and its pages count as those of the others.
    #[test]
    fn a_factor_of_zero_is_a_figure() {
        let sum = |hosts: &[RunResult]| {
            write_amplification(&hosts.iter().map(|host| ("a", host)).collect::<Vec<_>>())
        };
        let (buffered, busy) = (host(0, Some(0.0), 3 << 20), host(600, Some(2.0), 1 << 20));
        let reader = host(10, None, 0);
        assert_eq!(sum(&[busy.clone(), buffered.clone()]), Some(0.5));
        assert_eq!(sum(&[buffered.clone(), buffered.clone()]), Some(0.0));
        assert_eq!(sum(&[busy.clone(), busy]), Some(2.0));
        assert_eq!(sum(&[reader.clone(), buffered]), None, "the size of a page is unknown");
        assert_eq!(sum(&[reader.clone(), reader]), None);
    }
}
