//! Tests that measure nothing: selection, tables and claims from given figures.

use super::cpu::CpuShares;
use super::lab::Link;
use super::measure::{CLIENTS, Client, Load, Outcome, WORKERS};
use super::target::Server;
use super::*;
use crate::ClaimState;

fn parts(text: &str) -> Parts {
    Parts::of(&text.parse().unwrap(), &claims::all().unwrap())
}

#[test]
fn a_selector_means_a_part_by_either_name() {
    let all = Parts { table4: true, figure7: [true, true], ramp_up: true };
    let table = Parts { table4: true, ..Parts::default() };
    assert_eq!((parts("S4"), parts("S4/hosts")), (all, all));
    assert_eq!((parts("S4/table4"), parts("S4/hosts/table4")), (table, table));
    assert_eq!(parts("S4/figure7b").figure7, [false, true]);
    assert_eq!(parts("S4/hosts/claims"), all);
    assert!(parts("S4/hosts/claims/clients_begin_together").ramp_up);
    assert_eq!(parts("S4/figure1"), Parts::default());
}

fn load(each: &[f64], core: f64) -> Load {
    let client = |(at, megabytes): (usize, &f64)| Client {
        megabytes: *megabytes,
        skew_us: 10.0 * at as f64,
        steady_seconds: Some(0.1),
    };
    let megabytes = each.iter().sum::<f64>();
    Load {
        clients: each.iter().enumerate().map(client).collect(),
        megabytes,
        iops: megabytes * 1e6 / 32_768.0,
        latency_us: 100.0,
        cpu: CpuShares { processes: core / 2.0, core, others: 0.0 },
        steady_seconds: Some(0.02),
    }
}

/// The paper's own table 4 with NBD on the limited link and with our iSCSI target on the other one, elsewhere another shape;
/// there is no tgt.
fn given() -> Outcome {
    let mut outcome = Outcome { has_core: true, ..Outcome::default() };
    let paper: [&[f64]; 3] = [&[18.012], &[15.488, 13.519], &[9.035, 7.645, 6.534]];
    for (clients, each) in CLIENTS.into_iter().zip(paper) {
        let core = [0.7, 0.96, 1.0][usize::from(clients - 1)];
        let paper = vec![load(each, core); 3];
        let flat = vec![50.0 / f64::from(clients); usize::from(clients)];
        let flat = vec![load(&flat, 0.5); 3];
        for (server, link, loads) in [
            (Server::Nbd, Link::Gigabit, &paper),
            (Server::Nbd, Link::Unshaped, &flat),
            (Server::Own, Link::Gigabit, &flat),
            (Server::Own, Link::Unshaped, &paper),
        ] {
            outcome.table4.insert((server, link, clients), loads.clone());
        }
    }
    for workers in WORKERS {
        for (delay, limit) in [(100, 1e4), (10, 1e5)] {
            let iops = (f64::from(workers) * 5_500.0).min(limit);
            let all = vec![Load { iops, ..Load::default() }; 3];
            outcome.figure7.insert((delay, workers), all);
        }
    }
    outcome
}

fn reported(outcome: &Outcome) -> PapersReport {
    let (printed, plan) = (Printed::load().unwrap(), Plan::load().unwrap());
    let selector = "S4".parse().unwrap();
    let options = PapersOptions::default();
    let simulated =
        Plan::simulate(&BTreeSet::new(), &options, Changes::none(), &mut |_| KeepGoing::Continue);
    let simulated = simulated.unwrap();
    let facts = Facts { outcome, plan: &plan, simulated: &simulated };
    let all = claims::all().unwrap();
    let claims = judged(&facts, &all, &selector);
    report(&facts, &printed, Parts::of(&selector, &all), claims, Vec::new())
}

fn state(report: &PapersReport, name: &str) -> Option<ClaimState> {
    let id = format!("S4/hosts/claims/{name}");
    report.claims.iter().find(|claim| claim.id == id).unwrap().state
}

/// A core that other programs keep busy is not the target's.
#[test]
fn a_core_that_others_use_decides_nothing() {
    let mut outcome = given();
    for load in outcome.table4.values_mut().flatten() {
        load.cpu.others = 0.3;
    }
    let report = reported(&outcome);
    assert_eq!(state(&report, "target_is_the_bottleneck"), Some(ClaimState::Undecided));
    // Idle with the others, idle without them.
    let not = Some(ClaimState::DoesNotHold);
    assert_eq!(state(&report, "target_is_the_bottleneck_of_a_fast_link"), not);
}

#[test]
fn claims_follow_from_the_figures() {
    let report = reported(&given());
    let (holds, not) = (Some(ClaimState::Holds), Some(ClaimState::DoesNotHold));
    for name in [
        "second_client_raises_the_total",
        "third_client_lowers_the_total",
        "target_is_the_bottleneck",
        "iscsi_second_client_raises_the_total_of_a_fast_link",
        "iscsi_third_client_lowers_the_total_of_a_fast_link",
        "iscsi_target_is_the_bottleneck_of_a_fast_link",
        "two_workers_saturate_100_us",
        "overhead_weighs_more_on_faster_storage",
        "clients_begin_together",
    ] {
        assert_eq!(state(&report, name), holds, "{name}");
    }
    assert_eq!(state(&report, "target_is_the_bottleneck_of_a_fast_link"), not);
    let same = state(&report, "third_client_lowers_the_total_of_a_fast_link");
    assert_eq!(same, Some(ClaimState::Undecided));
    assert_eq!(state(&report, "iscsi_third_client_lowers_the_total"), Some(ClaimState::Undecided));
    assert_eq!(state(&report, "iscsi_target_is_the_bottleneck"), not);
    assert_eq!(state(&report, "tgt_third_client_lowers_the_total"), None);
    // Nothing was simulated.
    assert_eq!(state(&report, "simulator_needs_as_many_workers"), None);
}

#[test]
fn tables_have_what_was_measured_beside_the_paper() {
    let report = reported(&given());
    let ids: Vec<&str> = report.tables.iter().map(|table| table.id.as_str()).collect();
    let expected = ["table4", "figure7a", "figure7b", "figure7", "ramp_up"];
    assert_eq!(ids, expected.map(|id| format!("S4/hosts/{id}")));
    for table in &report.tables {
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.id);
    }
    let rows = &report.tables[0].rows;
    let three = &rows[2];
    assert_eq!(
        three[..7],
        [
            "NBD, nbd-server",
            "1 Gbit/s",
            "3",
            "23.2 ± 0.0",
            "23.2",
            "23.2 to 23.2",
            "9.0 + 7.6 + 6.5"
        ]
    );
    assert_eq!(three[9..11], ["9.0 + 7.6 + 6.5", "23.2"]);
    assert_eq!(rows[11][..4], ["iSCSI, ours", "not limited", "3", "23.2 ± 0.0"]);
    assert_eq!(rows[17][..4], ["iSCSI, tgt", "not limited", "3", "not measured"]);
    let needed = &report.tables[3].rows;
    assert_eq!(needed[0][..4], ["100", "2", "not measured", "2"]);
    assert_eq!(needed[1][1], "more than were tried");
    assert_eq!(report.tables[4].rows[1][3..6], ["10", "10", "0.1"]);
    assert_eq!(report.figures.len(), 3);
}

#[test]
fn a_program_that_is_missing_is_a_note() {
    let said = |has_tgt| {
        let outcome = Outcome { has_tgt, ..Outcome::default() };
        let hosts =
            HostsOptions { program: "x".into(), version: String::new(), seconds: 1.0, repeats: 3 };
        notes(&hosts, "a machine", &outcome).join(" ")
    };
    assert!(said(false).contains("`tgtd` is not installed") && !said(true).contains("tgtd"));
}

#[test]
fn what_was_not_measured_is_no_figure() {
    let report = reported(&Outcome::default());
    assert!(report.claims.iter().all(|claim| claim.state.is_none()), "{:?}", report.claims);
    assert!(report.tables[0].rows.iter().all(|row| row[3] == "not measured"));
    assert!(!report.text().contains("NaN"));
}
