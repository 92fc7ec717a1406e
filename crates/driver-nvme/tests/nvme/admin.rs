//! Admin commands of callers, events, rescans.

use ssdyno_block::{Time, Token};
use ssdyno_driver_nvme::{
    AdminCommand, AdminError, DriverEvent, DriverState, Feature, NvmeConfig, NvmeDriver,
};
use ssdyno_pci::{PciFunction, SimulatedPci};
use ssdyno_spec::nvme::{
    AsynchronousEvent, AutonomousTransition, NvmeStatus, cns, feature, page, select,
};

use crate::double::{Double, Nature, namespace};
use crate::rig::{Rig, TIMING, config, double};

#[test]
fn features_are_set_and_got() {
    let mut rig = Rig::ready(double(Nature::default()), config());
    let set = AdminCommand::set_feature(&Feature::VolatileWriteCache(true), false);
    rig.nvme.driver.submit_admin(&mut rig.nvme.pci, rig.nvme.now, &set, Token(7)).unwrap();
    let get = AdminCommand::get_feature(feature::VOLATILE_WRITE_CACHE, select::CURRENT);
    rig.nvme.driver.submit_admin(&mut rig.nvme.pci, rig.nvme.now, &get, Token(8)).unwrap();
    let mut done = Vec::new();
    rig.run_while(|rig| rig.nvme.now < Time::from_ms(10));
    rig.nvme.driver.take_admin(&mut done);
    let ends: Vec<_> = done.iter().map(|d| (d.token.0, d.status, d.dword0)).collect();
    assert_eq!(ends, [(7, Some(NvmeStatus::SUCCESS), 0), (8, Some(NvmeStatus::SUCCESS), 1)]);
}

#[test]
fn queue_of_admin_commands_has_an_end() {
    let mut rig = Rig::ready(double(Nature::default()), config());
    let command = AdminCommand::identify(cns::NAMESPACE, 1);
    let taken = (0..100)
        .take_while(|i| {
            rig.nvme
                .driver
                .submit_admin(&mut rig.nvme.pci, rig.nvme.now, &command, Token(*i))
                .is_ok()
        })
        .count();
    // 31 places, of which four wait for events.
    assert_eq!(taken, 27);
    rig.run_while(|rig| rig.nvme.now < Time::from_ms(10));
    let mut done = Vec::new();
    rig.nvme.driver.take_admin(&mut done);
    assert_eq!(done.len(), 27);
    assert!(
        done.iter().all(|d| d.data.len() == 4096 && d.data[..8] == (1_u64 << 14).to_le_bytes())
    );
    let long = AdminCommand::log_page(page::ERROR, !0, 0, 8192);
    let refused = rig.nvme.driver.submit_admin(&mut rig.nvme.pci, rig.nvme.now, &long, Token(1));
    assert_eq!(refused, Err(AdminError::TooLong { bytes: 8192 }));
    rig.check_double();
}

#[test]
fn events_are_told_and_asked_for_again() {
    let mut rig = Rig::ready(double(Nature::default()), config());
    let now = rig.nvme.now;
    rig.device().raise_event(now, AsynchronousEvent::NAMESPACE_CHANGED);
    rig.run_while(|rig| rig.nvme.now < Time::from_ms(10));
    let mut events = Vec::new();
    rig.nvme.driver.take_events(&mut events);
    assert_eq!(events, [DriverEvent::Asynchronous(AsynchronousEvent::NAMESPACE_CHANGED)]);
    assert_eq!(rig.device().waiting_events.len(), 4);
}

#[test]
fn rescan_finds_what_is_new() {
    let mut rig = Rig::ready(double(Nature::default()), config());
    rig.device().nature.namespaces.push(namespace(77, 12));
    rig.nvme.driver.rescan(&mut rig.nvme.pci, rig.nvme.now).unwrap();
    assert!(rig.nvme.driver.rescan(&mut rig.nvme.pci, rig.nvme.now).is_err(), "one at a time");
    rig.read(1, 0, 8).unwrap();
    rig.run_while(|rig| rig.nvme.now < Time::from_ms(10));
    let ids: Vec<_> = rig.nvme.driver.namespaces().iter().map(|n| (n.id, n.blocks)).collect();
    assert_eq!(ids, [(1, 1 << 14), (2, 77)]);
    rig.drain();
    rig.check_double();
}

/// A user on hardware has a clock, but no events.
#[test]
fn synchronous_use() {
    let mut pci: SimulatedPci<Double> = SimulatedPci::new(Double::new(Nature::default()), TIMING);
    let mut now = Time::ZERO;
    let mut clock = |pci: &mut SimulatedPci<Double>| {
        now += Time::from_us(10);
        pci.advance(now);
        pci.set_now(now);
        now
    };
    let mut driver = NvmeDriver::new(NvmeConfig { ..config() });
    driver.start_and_wait(&mut pci, &mut clock).unwrap();
    let mut out = Vec::new();
    let mut ended =
        |driver: &mut NvmeDriver, pci: &mut SimulatedPci<Double>, command: AdminCommand<'_>| {
            let now = clock(pci);
            driver.submit_admin(pci, now, &command, Token(9)).unwrap();
            let mut done = Vec::new();
            while done.is_empty() {
                let now = clock(pci);
                driver.poll(pci, now, &mut out);
                driver.take_admin(&mut done);
            }
            done.remove(0)
        };
    let done = ended(&mut driver, &mut pci, AdminCommand::identify_controller());
    assert_eq!((done.status, done.data[77]), (Some(NvmeStatus::SUCCESS), 5), "MDTS");
    let done = ended(&mut driver, &mut pci, AdminCommand::format(1, 0));
    assert_eq!(done.status, Some(NvmeStatus::INVALID_OPCODE));
    let now = clock(&mut pci);
    driver.shutdown(&mut pci, now).unwrap();
    while driver.state() != DriverState::Stopped {
        let now = clock(&mut pci);
        driver.poll(&mut pci, now, &mut out);
    }
    assert_eq!(pci.memory_bytes(), 0);
    assert!(pci.dma_allocate(1).is_ok());
    assert_eq!(pci.device().violations, Vec::<String>::new());
}

/// S1-45: the table that goes over the bus.
#[test]
fn autonomous_power_has_a_table() {
    let Feature::AutonomousPower(table) = Feature::autonomous_power(2, 4, 100) else {
        panic!("another feature");
    };
    assert_eq!(table, [AutonomousTransition::new(4, 100); 2]);
    assert_eq!((table[0].target(), table[0].idle_ms()), (4, 100));
    assert_eq!(Feature::AutonomousPower(Vec::new()).dword11(), 0);
}
