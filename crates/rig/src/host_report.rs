//! The work of the host, as figures of a result.

use std::collections::BTreeMap;

use ssdyno_block::Time;
use ssdyno_figures::{
    CacheResult, HostCore, HostEnergy, HostResult, NetworkResult, RunResult, percent,
};
use ssdyno_host::{Account, CacheAccount, CpuCause};

use crate::attach::{Attach, HostPlan, Stack};
use crate::medium;

/// The `host` object of a result: the work of its window, which ended at the first of `ends`; the second is when everything
/// was over.
pub(crate) fn result(
    attach: &Attach,
    account: &Account,
    network: Option<NetworkResult>,
    stack: Stack,
    (window_end, end): (Time, Time),
) -> Option<HostResult> {
    let host = attach.host()?;
    let account = &account.of_window();
    let end = end.saturating_sub(account.window_start);
    // The requests that IOPS and the energy of the drive count, too. The work for those that failed is part of what the
    // others took.
    let failed: u64 = account.failed_by_core.iter().sum();
    let good = account.requests.saturating_sub(failed);
    // The maximum avoids a division by zero in a run without such requests. Tables leave its figures out.
    let requests = good.max(1) as f64;
    let each = |count: u64| count as f64 / requests;
    let nanoseconds = |time: Time| time.as_ns_f64() / requests;
    let cpu = &account.cpu;
    let by_cause: BTreeMap<String, f64> = CpuCause::ALL
        .iter()
        .map(|cause| (cause.name().to_owned(), nanoseconds(cpu.of(*cause))))
        .collect();
    let told = account.last_delivery.saturating_sub(account.window_start).as_s_f64();
    let by_device =
        account.device_bytes_at_last_delivery.saturating_sub(account.device_bytes_at_window_start);
    Some(HostResult {
        host: host.name.clone(),
        driver: attach.driver_name().to_owned(),
        queues: attach.queues(),
        stack: stack.name().to_owned(),
        threads: host.plan.mode.name().to_owned(),
        completion: host.plan.waiting.name().to_owned(),
        cpu_ns_per_request: nanoseconds(cpu.total()),
        cpu_ns_per_request_by_cause: by_cause,
        commands_per_request: each(account.commands),
        context_switches_per_request: each(account.context_switches),
        switches_to_idle_per_request: Some(each(account.switches_to_idle)),
        system_calls_per_request: Some(each(account.system_calls)),
        interrupts_per_request: each(account.interrupts),
        register_writes_per_request: each(account.register_writes),
        register_reads_per_request: each(account.register_reads),
        lock_wait_ns_per_request: nanoseconds(account.lock_wait),
        locks_contended_share: (account.locks > 0)
            .then(|| account.locks_contended as f64 / account.locks as f64),
        queue_full_per_request: each(account.queue_full),
        // S1-56: a write path that copies completes early, so the rate of the application exceeds
        // the rate of the device. The thesis could not show both; here both are in the result.
        device_completed_bytes_per_second: (account.delivered_early > 0 && told > 0.0)
            .then(|| by_device as f64 / told),
        namespaces: Vec::new(),
        cores: cores(account, window_end.saturating_sub(account.window_start)),
        cache: account.cache.as_ref().map(cache),
        network,
        energy: energy(host, account, good, end),
        host_toml: host.config.to_toml(),
    })
}

/// Says what the page cache of the host did to the figures of `result`, where there is one. It served `outside_device` of the
/// requests: from pages that it kept or read ahead, or into memory. A median of 0 ns would look like that of a device.
pub(crate) fn describe_cache(result: &mut RunResult, outside_device: u64) {
    let Some(cache) = result.host.as_ref().and_then(|host| host.cache) else { return };
    result.warnings.extend(medium::page_cache(&cache));
    if outside_device > 0 {
        let share = percent(outside_device as f64 / result.requests as f64);
        result.notes.push(format!(
            "{share} of the requests spent no time in the device, because the page cache served them: `in device` counts \
             each as 0 ns"
        ));
    }
}

fn cache(cache: &CacheAccount) -> CacheResult {
    CacheResult {
        pages_read: cache.pages_read,
        pages_hit: cache.pages_hit,
        hit_ratio: (cache.pages_read > 0).then(|| cache.pages_hit as f64 / cache.pages_read as f64),
        pages_ahead: cache.pages_ahead,
        pages_dirtied: cache.pages_dirtied,
        pages_written: cache.pages_written,
        write_commands: cache.write_commands,
        journal_pages: cache.journal_pages,
        metadata_reads: cache.metadata_reads,
        throttled: cache.throttled,
        dirty_pages_max: cache.dirty_pages_max,
    }
}

/// The work of each core in a window of this length.
fn cores(account: &Account, window: Time) -> Vec<HostCore> {
    // What is still written back after the load may take half a minute. Rates and shares that included it would say nothing of
    // the load.
    let seconds = window.as_s_f64();
    let rate = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    (0..account.cpu.cores())
        .map(|core| HostCore {
            busy_share: rate(account.cpu.of_core(core).as_s_f64()).min(1.0),
            iops: rate((account.delivered_by_core[core] - account.failed_by_core[core]) as f64),
            throughput_bytes_per_second: rate(account.bytes_by_core[core] as f64),
        })
        .collect()
}

/// `good` requests completed without error.
fn energy(host: &HostPlan, account: &Account, good: u64, end: Time) -> HostEnergy {
    let cpu = &host.config.cpu;
    let busy = account.cpu.total().as_s_f64();
    // S3-42 shows that the idle floor is most of the energy of a lightly loaded device. The same
    // holds for a host, so the part above idle is reported apart from the total.
    let idle_joules = cpu.idle_power.0 * end.as_s_f64() * account.cpu.cores() as f64;
    let above = busy * (cpu.active_power.0 - cpu.idle_power.0).max(0.0);
    HostEnergy {
        total_joules: idle_joules + above,
        above_idle_joules: above,
        above_idle_joules_per_request: (good > 0).then(|| above / good as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_the_page_cache_served_are_noted() {
        let notes = |cache, outside_device| {
            let host = Some(HostResult { cache, ..HostResult::default() });
            let mut result = RunResult { requests: 200, host, ..RunResult::default() };
            describe_cache(&mut result, outside_device);
            result.notes
        };
        let told = notes(Some(CacheResult::default()), 125);
        assert!(
            told[0].starts_with("62.5 % of the requests spent no time in the device"),
            "{told:?}"
        );
        assert_eq!(notes(Some(CacheResult::default()), 0), [""; 0]);
        // A device that takes no time is no cache.
        assert_eq!(notes(None, 125), [""; 0]);
    }
}
