//! S0-15, S0-19: descriptors one by one or in parallel, with as many processors and engines as there
//! are.

use super::*;

/// A command's share of the card's time, with so many processors and engines for data.
fn share(command_time: &str, processors: u32, engines: u32) -> f64 {
    let mut config = preset();
    config.card.command_time = command_time.parse().unwrap();
    (config.card.processors, config.dma.engines) = (processors, engines);
    inter_command(&config, RingCommandKind::Read, ResponseMode::Block).as_ns_f64()
}

/// Whichever of processors, engines and link is the narrowest decides.
#[test]
fn processors_and_engines_work_side_by_side() {
    let config = preset();
    let host = Host::new(&config, 8, ResponseMode::Block, 1);
    let wire = host.pci.device().link().write_time(0, 4096).as_ns_f64();
    let transfer = config.dma.setup_time.0.as_ns_f64() + wire;
    for (command_time, processors, engines, expected) in [
        ("9us", 1, 1, 9_000.0),
        ("9us", 2, 1, 4_500.0),
        ("9us", 2, 2, 4_500.0),
        // One engine sets up and transfers in turn; with two the link never waits for a set-up.
        ("5us", 5, 1, transfer),
        ("5us", 5, 2, wire),
        ("1us", 1, 4, wire),
    ] {
        let ours = share(command_time, processors, engines);
        // Blocks of 20 and 30 end in the middle of a round.
        let error = ours / expected - 1.0;
        assert!(error.abs() < 0.06, "{command_time} {processors} {engines}: {ours} {expected}");
    }
}

/// S0-44: the memory controller is the only limit of the medium, and one where it is slower than the link.
#[test]
fn the_memory_controller_is_the_limit_of_the_medium() {
    let mut config = preset();
    config.card.command_time = "1us".parse().unwrap();
    let setup = config.dma.setup_time.0.as_ns_f64();
    for (kind, bandwidth, page) in [
        (RingCommandKind::Read, "1GB/s", 4_096.0),
        (RingCommandKind::Write, "1GB/s", 4_096.0 + 812.0),
        (RingCommandKind::Read, "100GB/s", 4_864.0 / 2.0),
    ] {
        let MediaConfig::Dram { bandwidth: of, .. } = &mut config.media else { unreachable!() };
        *of = bandwidth.parse().unwrap();
        // Before a write's first byte: its request of 24 bytes, and the way there and back.
        let ours = inter_command(&config, kind, ResponseMode::Block).as_ns_f64();
        assert!((ours / (setup + page) - 1.0).abs() < 0.01, "{kind:?} {bandwidth}: {ours}");
    }
}
