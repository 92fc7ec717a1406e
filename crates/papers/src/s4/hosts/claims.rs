//! What the paper says in words, held against what was measured over the network.

use super::facts::{ENOUGH, Facts};
use super::lab::Link;
use super::measure::{DELAYS, Load};
use super::target::Server;
use crate::answer::{Answer, more, no_less};
use crate::claims::{ClaimCheck, Claims, Verdict};
use crate::mean::Mean;

/// How a claim is checked.
pub(super) type Check = fn(&Facts<'_>) -> Verdict;

/// All of them.
pub(super) const CLAIMS: Claims<Check> = Claims { paper: "S4/hosts", checks: CHECKS };

/// Clients that begin within so many us of one another begin together: a thousandth of a second of the load.
const TOGETHER_US: f64 = 1000.0;

const CHECKS: &[ClaimCheck<Check>] = &[
    ClaimCheck {
        name: "second_client_raises_the_total",
        text: "Table 4: two clients together get more throughput than one client over a link of 1 Gbit/s (S4-42).",
        about: &["table4"],
        check: |facts| rises(facts, Server::Nbd, Link::Gigabit),
    },
    ClaimCheck {
        name: "third_client_lowers_the_total",
        text: "Table 4: the third client lowers the total over a link of 1 Gbit/s (S4-42).",
        about: &["table4"],
        check: |facts| falls(facts, Server::Nbd, Link::Gigabit),
    },
    ClaimCheck {
        name: "second_client_raises_the_total_of_a_fast_link",
        text: "Table 4 without a link limit, so that the target's CPU can be the bottleneck: two clients get more throughput than one.",
        about: &["table4"],
        check: |facts| rises(facts, Server::Nbd, Link::Unshaped),
    },
    ClaimCheck {
        name: "third_client_lowers_the_total_of_a_fast_link",
        text: "Table 4 without a link limit, so that the target's CPU can be the bottleneck: the third client lowers the total.",
        about: &["table4"],
        check: |facts| falls(facts, Server::Nbd, Link::Unshaped),
    },
    ClaimCheck {
        name: "target_is_the_bottleneck",
        text: "Table 4: over a link of 1 Gbit/s the target's core is above 90 % busy with two clients, and near 100 % with three (S4-42).",
        about: &["table4"],
        check: |facts| busy(facts, Server::Nbd, Link::Gigabit),
    },
    ClaimCheck {
        name: "target_is_the_bottleneck_of_a_fast_link",
        text: "Table 4 without a link limit: the target's core is above 90 % busy with two clients, and near 100 % with three.",
        about: &["table4"],
        check: |facts| busy(facts, Server::Nbd, Link::Unshaped),
    },
    ClaimCheck {
        name: "iscsi_second_client_raises_the_total",
        text: "Table 4, our iSCSI target: two clients together get more throughput than one client over a link of 1 Gbit/s (S4-42).",
        about: &["table4"],
        check: |facts| rises(facts, Server::Own, Link::Gigabit),
    },
    ClaimCheck {
        name: "iscsi_third_client_lowers_the_total",
        text: "Table 4, our iSCSI target: the third client lowers the total over a link of 1 Gbit/s (S4-42).",
        about: &["table4"],
        check: |facts| falls(facts, Server::Own, Link::Gigabit),
    },
    ClaimCheck {
        name: "iscsi_target_is_the_bottleneck",
        text: "Table 4, our iSCSI target: the target's core is above 90 % busy with two clients, and near 100 % with three over a link of 1 Gbit/s (S4-42).",
        about: &["table4"],
        check: |facts| busy(facts, Server::Own, Link::Gigabit),
    },
    ClaimCheck {
        name: "iscsi_second_client_raises_the_total_of_a_fast_link",
        text: "Table 4, our iSCSI target: two clients together get more throughput than one client if the link is not the bottleneck (S4-42).",
        about: &["table4"],
        check: |facts| rises(facts, Server::Own, Link::Unshaped),
    },
    ClaimCheck {
        name: "iscsi_third_client_lowers_the_total_of_a_fast_link",
        text: "Table 4, our iSCSI target: the third client lowers the total if the link is not the bottleneck (S4-42).",
        about: &["table4"],
        check: |facts| falls(facts, Server::Own, Link::Unshaped),
    },
    ClaimCheck {
        name: "iscsi_target_is_the_bottleneck_of_a_fast_link",
        text: "Table 4, our iSCSI target: the target's core is above 90 % busy with two clients, and near 100 % with three if the link is not the bottleneck (S4-42).",
        about: &["table4"],
        check: |facts| busy(facts, Server::Own, Link::Unshaped),
    },
    ClaimCheck {
        name: "tgt_second_client_raises_the_total",
        text: "Table 4, tgt over iSCSI: two clients together get more throughput than one client over a link of 1 Gbit/s (S4-42).",
        about: &["table4"],
        check: |facts| rises(facts, Server::Tgt, Link::Gigabit),
    },
    ClaimCheck {
        name: "tgt_third_client_lowers_the_total",
        text: "Table 4, tgt over iSCSI: the third client lowers the total over a link of 1 Gbit/s (S4-42).",
        about: &["table4"],
        check: |facts| falls(facts, Server::Tgt, Link::Gigabit),
    },
    ClaimCheck {
        name: "tgt_target_is_the_bottleneck",
        text: "Table 4, tgt over iSCSI: the target's core is above 90 % busy with two clients, and near 100 % with three over a link of 1 Gbit/s (S4-42).",
        about: &["table4"],
        check: |facts| busy(facts, Server::Tgt, Link::Gigabit),
    },
    ClaimCheck {
        name: "tgt_second_client_raises_the_total_of_a_fast_link",
        text: "Table 4, tgt over iSCSI: two clients together get more throughput than one client if the link is not the bottleneck (S4-42).",
        about: &["table4"],
        check: |facts| rises(facts, Server::Tgt, Link::Unshaped),
    },
    ClaimCheck {
        name: "tgt_third_client_lowers_the_total_of_a_fast_link",
        text: "Table 4, tgt over iSCSI: the third client lowers the total if the link is not the bottleneck (S4-42).",
        about: &["table4"],
        check: |facts| falls(facts, Server::Tgt, Link::Unshaped),
    },
    ClaimCheck {
        name: "tgt_target_is_the_bottleneck_of_a_fast_link",
        text: "Table 4, tgt over iSCSI: the target's core is above 90 % busy with two clients, and near 100 % with three if the link is not the bottleneck (S4-42).",
        about: &["table4"],
        check: |facts| busy(facts, Server::Tgt, Link::Unshaped),
    },
    ClaimCheck {
        name: "two_workers_saturate_100_us",
        text: "Figure 7a: two workers saturate the storage with 100 us (S4-36): 95 % of 10 000 requests per second.",
        about: &["figure7a"],
        check: |facts| {
            let iops = facts.iops(100, 2)?;
            let enough = Mean::exact(1e4 * ENOUGH);
            Some((no_less(iops, enough), format!("{} IOPS", iops.text(0))))
        },
    },
    ClaimCheck {
        name: "simulator_needs_as_many_workers",
        text: "Figure 7a: the simulator needs the same number of workers as this measurement for 95 % of the limit of the storage with 100 us.",
        about: &["figure7a"],
        check: |facts| {
            let (here, simulated) = (facts.needed(100)?, facts.simulated_needed("figure7a")?);
            let text = format!("{}, the simulator {}", workers(here), workers(simulated));
            // The number of workers is tested by throughput and not by comparing two counts. Near
            // the limit of 95 %, a count would change with a disturbance of one run.
            let enough = |n: u16| Some(no_less(facts.iops(100, n)?, Mean::exact(1e4 * ENOUGH)));
            // As many are enough here, and one less is not.
            let answer = match simulated {
                Some(1) => enough(1)?,
                Some(n) => enough(n)? & !enough(n - 1)?,
                None => (here == simulated).into(),
            };
            Some((answer, text))
        },
    },
    ClaimCheck {
        name: "overhead_weighs_more_on_faster_storage",
        text: "Figure 7: the faster the storage, the larger the share of a request's time outside the storage (S4-35): one worker gets a smaller share of the limit at 10 us than at 100 us.",
        about: &["figure7a", "figure7b"],
        check: |facts| {
            let [slow, fast] = DELAYS.map(|(delay, _)| {
                let limit = Mean::exact(1e6 / f64::from(delay));
                facts.iops(delay, 1).map(|iops| iops.over(limit).times(100.0))
            });
            let (slow, fast) = (slow?, fast?);
            let text = format!("{} and {} %", slow.text(1), fast.text(1));
            // The share of the limit is compared and not IOPS: the fast storage has the higher rate
            // in any case. S4-35 is about what the tool loses.
            Some((more(slow, fast), text))
        },
    },
    ClaimCheck {
        name: "clients_begin_together",
        text: "Clients act independently, and the controller synchronises their start (S4-4): the last client starts within 1 ms of the first.",
        about: &["ramp_up"],
        check: |facts| {
            let most = facts.skews().into_iter().reduce(f64::max)?;
            // The worst load decides, without an interval. One late client would shift the window
            // in which all hosts are measured.
            Some(((most <= TOGETHER_US).into(), format!("at most {most:.0} us apart")))
        },
    },
];

/// A number of workers, if there is one.
pub(super) fn workers(needed: Option<u16>) -> String {
    needed.map_or_else(|| "more than were tried".to_owned(), |n| n.to_string())
}

fn totals(facts: &Facts<'_>, server: Server, link: Link) -> Option<([Mean; 3], String)> {
    let of = |clients| facts.megabytes(server, link, clients);
    let all = [of(1)?, of(2)?, of(3)?];
    let [one, two, three] = all.map(|mean| mean.text(1));
    Some((all, format!("{one}, {two}, {three} MB/s; printed 18.012, 29.007, 23.214")))
}

fn rises(facts: &Facts<'_>, server: Server, link: Link) -> Verdict {
    let ([one, two, _], text) = totals(facts, server, link)?;
    Some((more(two, one), text))
}

fn falls(facts: &Facts<'_>, server: Server, link: Link) -> Verdict {
    let ([_, two, three], text) = totals(facts, server, link)?;
    Some((more(two, three), text))
}

fn busy(facts: &Facts<'_>, server: Server, link: Link) -> Verdict {
    let shares = |figure: fn(&Load) -> f64| {
        let share = |clients| {
            let share = facts.table(server, link, clients, figure)?;
            // Without a core of its own nothing is known of it.
            (!share.mean.is_nan()).then_some(share)
        };
        Some([share(2)?, share(3)?])
    };
    let judged =
        |[two, three]: [Mean; 2]| more(two, Mean::exact(90.0)) & no_less(three, Mean::exact(100.0));
    let all = shares(|load| 100.0 * load.cpu.core)?;
    let [two, three] = all.map(|share| share.text(1));
    let (answer, text) = (judged(all), format!("{two} and {three} %"));
    // Other programs on the core keep it busy as the target does: an answer that depends on them is none.
    let alone = shares(|load| 100.0 * (load.cpu.core - load.cpu.others)).map(judged);
    if alone.is_some_and(|alone| alone != answer) {
        return Some((Answer::Near, format!("{text}, while other programs used this core, too")));
    }
    Some((answer, text))
}
