//! The ring card against its layout and closed forms, driven by a host of few lines.

#![allow(clippy::unwrap_used, reason = "support of tests: what fails here fails the test")]

mod data;
mod host;
mod parallel;
mod properties;

use ssdyno_block::units::{Bytes, Span};
use ssdyno_block::{Fault, FaultSite, FaultTrigger, Time};
use ssdyno_controller_ring::{DescriptorEngine, MediaConfig, RingCard, RingConfig};
use ssdyno_device::array::{ArrayConfig, ArrayTable, MemberSpec, StripedArray};
use ssdyno_device::{DeviceReport, DeviceSpec};
use ssdyno_pci::{FaultyDevice, PciFunction};
use ssdyno_spec::ring::{
    self as layout, Descriptor, ErrorKind, ResponseMode, RingCommandKind, RingFault,
};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromZeros, IntoBytes};

use host::Host;

const TEXT: &str = include_str!("../../../../presets/devices/zc706-ring.toml");

fn preset() -> RingConfig {
    RingConfig::parse(TEXT).unwrap()
}

/// Time from one command to the next in the middle of a block: the difference of two block lengths.
fn inter_command(config: &RingConfig, kind: RingCommandKind, mode: ResponseMode) -> Time {
    let block = |size| Host::new(config, 256, mode, 1).on().block(kind, size);
    let returned = match mode {
        // Ten more descriptors are fetched and returned; this is not between commands.
        ResponseMode::Block => {
            let link = Host::new(config, 256, mode, 1);
            let link = link.pci.device().link();
            let bytes = |n: u64| n * 32;
            let base = 0x1_2000_0000;
            link.write_time(base, bytes(30)) - link.write_time(base, bytes(20))
                + (link.read_time(base, bytes(30)) - link.read_time(base, bytes(20)))
        }
        _ => {
            let link = Host::new(config, 256, mode, 1);
            let link = link.pci.device().link();
            link.read_time(0x1_2000_0000, 960) - link.read_time(0x1_2000_0000, 640)
        }
    };
    (block(30) - block(20) - returned) / 10
}

/// S0-24: packets of a page, in closed form. S0-48: what they leave of the link.
#[test]
fn packets_are_those_of_the_standard() {
    let config = preset();
    let host = Host::new(&config, 8, ResponseMode::Block, 1);
    let link = host.pci.device().link();
    let read = link.write_traffic(0x10_0000, 4096);
    assert_eq!((read.transactions, read.to_host.packets, read.to_device.packets), (32, 32, 0));
    assert_eq!(read.to_host.bytes, 4096 + 32 * 24);
    let write = link.read_traffic(0x10_0000, 4096);
    assert_eq!((write.transactions, write.to_host.packets, write.to_device.packets), (8, 8, 64));
    assert_eq!((write.to_host.bytes, write.to_device.bytes), (8 * 24, 4096 + 64 * 20));
    // S0-23: the user's write takes more packets.
    assert!(write.packets() > read.packets());
    // S0-48.
    assert_eq!((1.0 / link.write_time(0, 4096).as_s_f64()).round(), 411_184.0);
    let mut bare = config.clone();
    bare.link.request_overhead = Bytes(0);
    let host = Host::new(&bare, 8, ResponseMode::Block, 1);
    let raw = host.pci.device().link().write_time(0, 4096);
    assert_eq!((1.0 / raw.as_s_f64()).floor(), 488_281.0);
}

/// S0-25, and the rules for sizes: smaller packets are more packets, and take longer.
#[test]
fn more_packets_take_longer() {
    let mut times = Vec::new();
    for payload in [128, 256, 512, 1024] {
        let mut config = preset();
        config.link.max_payload = Bytes(payload);
        config.link.max_read_request = Bytes(payload.max(512));
        let host = Host::new(&config, 8, ResponseMode::Block, 1);
        let link = host.pci.device().link();
        assert_eq!(link.write_traffic(0, 4096).transactions, 4096 / payload);
        times.push(link.write_time(0, 4096));
    }
    assert!(times.windows(2).all(|two| two[0] > two[1]), "{times:?}");
    let mut times = Vec::new();
    for request in [128, 256, 512, 1024] {
        let mut config = preset();
        config.link.max_read_request = Bytes(request);
        let host = Host::new(&config, 8, ResponseMode::Block, 1);
        let link = host.pci.device().link();
        assert_eq!(link.read_traffic(0, 4096).transactions, 4096 / request);
        times.push(link.read_time(0, 4096));
    }
    assert!(times.windows(2).all(|two| two[0] > two[1]), "{times:?}");
}

/// Reads of host memory wait for tags: with one tag each request takes a way there and back.
#[test]
fn reads_wait_for_tags() {
    let mut config = preset();
    config.link.read_tags = 1;
    let host = Host::new(&config, 8, ResponseMode::Block, 1);
    let link = host.pci.device().link();
    // 8 requests; each: request 24 B, 800 ns, 512 B in 8 completions of 84 B; 0.5 ns a byte.
    let each = Time::from_ps(12_000 + 800_000 + 8 * 84 * 500);
    assert_eq!(link.read_time(0, 4096), each * 8);
    config.link.read_tags = 8;
    let host = Host::new(&config, 8, ResponseMode::Block, 1);
    let all = Time::from_ps(12_000 + 800_000 + 64 * 84 * 500);
    assert_eq!(host.pci.device().link().read_time(0, 4096), all);
}

/// S0-21, S0-22, S0-23: the longer of transfer and processing is the time between commands, in any
/// direction, and a write's is longer.
#[test]
fn commands_follow_at_the_longer_of_transfer_and_processing() {
    for command in ["1us", "3us", "5us", "9us"] {
        let mut config = preset();
        config.card.command_time = command.parse().unwrap();
        let host = Host::new(&config, 8, ResponseMode::Block, 1);
        let link = host.pci.device().link();
        let setup = config.dma.setup_time.0;
        for (kind, wire) in [
            (RingCommandKind::Read, link.write_time(0, 4096)),
            (RingCommandKind::Write, link.read_time(0, 4096)),
        ] {
            let expected = config.card.command_time.0.max(setup + wire);
            let ours = inter_command(&config, kind, ResponseMode::Block);
            assert_eq!(ours, expected, "{kind:?} at {command}");
        }
    }
}

/// S0-20: with one engine each return of a descriptor holds up the next command's data by the length
/// of its own transfer; a second engine takes that away.
#[test]
fn one_engine_is_held_up_by_returns_and_two_are_not() {
    let mut config = preset();
    let link = Host::new(&config, 8, ResponseMode::Each, 1);
    let link = link.pci.device().link();
    let setup = config.dma.setup_time.0;
    let (page, descriptor) = (link.write_time(0, 4096), link.write_time(0, 32));
    let one = inter_command(&config, RingCommandKind::Read, ResponseMode::Each);
    assert_eq!(one, setup + page + setup + descriptor);
    config.dma.descriptors = DescriptorEngine::Separate;
    let two = inter_command(&config, RingCommandKind::Read, ResponseMode::Each);
    // The link is one: a descriptor's packet may stand before the page's.
    assert!(two >= setup + page && two <= setup + page + descriptor, "{two}");
    assert!(one.as_ps() as f64 / two.as_ps() as f64 > 1.25);
}

/// S0-16 … S0-18: interrupts, in number and time.
#[test]
fn responses_come_back_as_the_mode_says() {
    let interrupts = |mode, subset| {
        let mut host = Host::new(&preset(), 64, mode, subset).on();
        host.block(RingCommandKind::Read, 10);
        (host.interrupts.len(), host.interrupts[0], *host.interrupts.last().unwrap())
    };
    let (block, first, last) = interrupts(ResponseMode::Block, 1);
    assert_eq!((block, first), (1, last));
    let (each, first_of_each, _) = interrupts(ResponseMode::Each, 1);
    assert_eq!(each, 10);
    assert!(first_of_each < first / 2);
    let (subsets, first_of_subsets, _) = interrupts(ResponseMode::Subsets, 4);
    assert_eq!(subsets, 3);
    assert!(first_of_each < first_of_subsets && first_of_subsets < first);
}

/// S0-12: blocks wrap around, and numbers do.
#[test]
fn blocks_and_numbers_wrap_around() {
    for mode in [ResponseMode::Block, ResponseMode::Each, ResponseMode::Subsets] {
        let mut host = Host::new(&preset(), 16, mode, 3);
        host.number = u32::MAX - 20;
        let mut host = host.on();
        for size in [1, 7, 11, 16, 5, 16, 3] {
            host.block(RingCommandKind::Write, size);
        }
        let traffic = *host.card().traffic();
        assert_eq!((traffic.blocks, traffic.commands), (7, 59), "{mode:?}");
    }
}

/// S0-14: a second block while one is outstanding, and a touched descriptor.
#[test]
fn who_breaks_the_protocol_is_told() {
    let mut host = Host::new(&preset(), 16, ResponseMode::Block, 1).on();
    host.put_all(RingCommandKind::Read, 8);
    host.give(0, 4);
    host.give(4, 4);
    assert_eq!(host.card().fault(), Some(RingFault::BlockOutstanding));
    host.settle();
    assert!(!host.get(3).is_with_device() && host.get(4).is_with_device());
    let status = host.read(layout::STATUS);
    assert_eq!(status >> 8 & 0xff, RingFault::BlockOutstanding as u32);

    let mut host = Host::new(&preset(), 16, ResponseMode::Block, 1).on();
    host.put_all(RingCommandKind::Read, 4);
    host.give(0, 4);
    host.now = Time::from_us(10);
    host.pci.advance(host.now);
    let mut touched = host.get(2);
    touched.device_offset = U64::new(0);
    host.set(2, &touched);
    host.settle();
    assert_eq!(host.card().fault(), Some(RingFault::Ownership));
    let errors: Vec<u8> = (0..4).map(|number| host.get(number).error).collect();
    assert_eq!(errors, [0, 0, ErrorKind::Ownership as u8, 0]);

    for (offset, size) in [(0, 0), (0, 33), (16, 1), (0, 17)] {
        let mut host = Host::new(&preset(), 16, ResponseMode::Block, 1).on();
        host.write(layout::NEXT_OFFSET, offset);
        host.write(layout::NEXT_SIZE, size);
        assert_eq!(host.card().fault(), Some(RingFault::BadBlock), "{offset} {size}");
    }
}

/// S0-7: errors of all kinds stand in the descriptor, and the others are done.
#[test]
fn descriptors_carry_their_errors() {
    let mut host = Host::new(&preset(), 16, ResponseMode::Each, 1).on();
    host.card().fault_plan_mut().add(FaultSite::Command, Fault::Error, FaultTrigger::Number(1));
    host.put(RingCommandKind::Read, 0);
    host.put(RingCommandKind::Write, 1);
    host.put(RingCommandKind::Read, 1 << 40);
    host.put(RingCommandKind::Flush, 0);
    let unmapped = host.put(RingCommandKind::Write, 2);
    let mut descriptor = host.get(unmapped);
    descriptor.host_address = U64::new(0x1000);
    host.set(unmapped, &descriptor);
    let not_ours = host.put(RingCommandKind::Read, 3);
    let mut descriptor = host.get(not_ours);
    descriptor.control = U32::new(0);
    host.set(not_ours, &descriptor);
    let wrong = host.put(RingCommandKind::Read, 4);
    let mut descriptor = host.get(wrong);
    descriptor.number = U32::new(77);
    host.set(wrong, &descriptor);
    host.give(0, 7);
    host.settle();
    let errors: Vec<Option<ErrorKind>> =
        (0..7).map(|number| ErrorKind::from_bits(host.get(number).error)).collect();
    let expected = [
        None,
        Some(ErrorKind::Medium),
        Some(ErrorKind::OutOfRange),
        None,
        Some(ErrorKind::HostMemory),
        Some(ErrorKind::NotACommand),
        Some(ErrorKind::NotACommand),
    ];
    assert_eq!(errors, expected);
    assert!((0..7).all(|number| !host.get(number).is_with_device()));
    assert_eq!(host.pci.faults().len(), 1, "the fake memory saw it too");
}

/// S0-26: what is held is started before its block is given, is not fetched again, and the second
/// block is through earlier.
#[test]
fn held_commands_are_done_earlier() {
    let second_block = |depth: u32| {
        let mut host = Host::new(&preset(), 64, ResponseMode::Block, 1);
        host.write(layout::PREFETCH, depth);
        let mut host = host.on();
        host.put_all(RingCommandKind::Write, 20);
        host.give(0, 10);
        while host.interrupts.is_empty() {
            host.now = host.pci.next_event().unwrap();
            host.pci.advance(host.now);
            let mut vectors = Vec::new();
            host.pci.take_interrupts(host.now, &mut vectors);
            host.interrupts.extend(vectors.drain(..).map(|_| host.now));
        }
        // The host takes a while.
        host.now += Time::from_us(12);
        host.pci.advance(host.now);
        host.give(10, 10);
        host.settle();
        assert_eq!(host.card().fault(), None);
        assert!(
            (0..20).all(|number| host.get(number).status == 0 && !host.get(number).is_command())
        );
        (host.now, *host.card().traffic())
    };
    let (without, plain) = second_block(0);
    let (with, held) = second_block(4);
    assert_eq!((plain.prefetched, held.prefetched), (0, 4));
    assert_eq!(held.commands, 20);
    // What the host took, less one page of a held command that keeps the one engine from returning.
    assert!(without - with > Time::from_us(12 - 6), "{without} {with}");
}

/// A reset drops everything; numbers may begin anew.
#[test]
fn a_reset_drops_the_block() {
    let mut host = Host::new(&preset(), 16, ResponseMode::Block, 1).on();
    let hang = Fault::Hang(Time::MAX);
    host.card().fault_plan_mut().add(FaultSite::Command, hang, FaultTrigger::Number(2));
    host.put_all(RingCommandKind::Read, 4);
    host.give(0, 4);
    host.settle();
    assert_eq!(host.read(layout::STATUS), layout::STATUS_ENABLED | layout::STATUS_BUSY);
    host.write(layout::CONTROL, 0);
    assert_eq!(host.read(layout::STATUS), 0);
    host.settle();
    assert!((0..4).all(|number| host.get(number).is_with_device()), "nothing is returned");
    host.number = 1000;
    let mut host = host.on();
    host.block(RingCommandKind::Write, 5);
}

/// S0-44: other media behind the same interface, and their parallelism.
#[test]
fn media_can_be_exchanged() {
    let dram =
        Host::new(&preset(), 64, ResponseMode::Block, 1).on().block(RingCommandKind::Read, 32);
    let mut config = preset();
    let pcm = |channels, banks_per_channel| MediaConfig::Pcm {
        capacity: Bytes(1 << 30),
        channels,
        banks_per_channel,
        read_time: Span(Time::from_us(5)),
        write_time: Span(Time::from_us(80)),
    };
    config.media = pcm(1, 1);
    let mut one = Host::new(&config, 64, ResponseMode::Block, 1).on();
    let reads = one.block(RingCommandKind::Read, 32);
    assert!(reads > Time::from_us(5 * 32) && reads < Time::from_us(5 * 32 + 15), "{reads}");
    let writes = one.block(RingCommandKind::Write, 32);
    assert!(writes > Time::from_us(80 * 32), "{writes}");
    config.media = pcm(4, 2);
    let mut eight = Host::new(&config, 64, ResponseMode::Block, 1).on();
    assert!(eight.block(RingCommandKind::Write, 32) < Time::from_us(80 * 4 + 60));
    assert!(eight.block(RingCommandKind::Read, 32) < dram + Time::from_us(10));
    assert_eq!(eight.read(layout::TECHNOLOGY), layout::Technology::Pcm as u32);
    assert_eq!(eight.read(layout::WRITE_TIME), 80_000);
}

#[test]
fn flash_behind_the_ring_is_an_ssd() {
    let ssd = include_str!("../../../../presets/devices/config-a.toml");
    let ssd = ssd.replace("blocks_per_plane = 512", "blocks_per_plane = 16");
    let ssd: toml::Table = ssd.replace("= 0.1454753722794959", "= 0.3").parse().unwrap();
    let mut ring: toml::Table = TEXT.parse().unwrap();
    ring["media"] = toml::Value::Table([("kind".to_owned(), "flash".into())].into_iter().collect());
    for table in ["flash", "ftl"] {
        ring.insert(table.to_owned(), ssd[table].clone());
    }
    let config = RingConfig::parse(&toml::to_string(&ring).unwrap()).unwrap();
    let mut host = Host::new(&config, 64, ResponseMode::Each, 1).on();
    host.block(RingCommandKind::Write, 32);
    let reads = host.block(RingCommandKind::Read, 32);
    // 50 us of flash, in parallel, and the link.
    assert!(reads > Time::from_us(50 + 32 * 3) && reads < Time::from_us(400), "{reads}");
    host.block(RingCommandKind::Trim, 8);
    host.block(RingCommandKind::Flush, 1);
    let mut report = DeviceReport::default();
    host.card().report(&mut report);
    let flash = report.flash().unwrap();
    assert_eq!((flash.channels, flash.dies), (8, 64));
    assert!(!host.card().events().is_empty());
    // A reset with requests in the flash: their answers are for nobody.
    host.put_all(RingCommandKind::Read, 8);
    host.give(host.number - 8, 8);
    host.now += Time::from_us(30);
    host.pci.advance(host.now);
    host.write(layout::CONTROL, 0);
    host.write(layout::CONTROL, 1);
    host.block(RingCommandKind::Write, 20);
}

/// Every part's reports lie within the run, and parts that are one thing are never busy twice.
#[test]
fn reports_add_up() {
    use ssdyno_engine::events::{Busy, EventReader, PartKind};
    #[derive(Default)]
    struct Sums([u64; 6], Vec<Busy>);
    impl EventReader for Sums {
        fn read(&mut self, events: &[Busy]) {
            for event in events {
                self.0[event.part.kind as usize] += (event.to - event.from).as_ps();
                self.1.push(*event);
            }
        }
    }
    let mut host = Host::new(&preset(), 64, ResponseMode::Block, 1).on();
    let length = host.block(RingCommandKind::Read, 32) + host.block(RingCommandKind::Write, 32);
    let mut sums = Sums::default();
    host.card().events().show_to(&mut sums);
    let of = |kind: PartKind| Time::from_ps(sums.0[kind as usize]);
    // 64 commands of 3 us, 2 doorbells of 1 us, 2 returns of 0.5 us.
    assert_eq!(of(PartKind::Core), Time::from_us(64 * 3 + 2 + 1));
    // Two waits for the interrupt message on the wire.
    let wire = Time::from_ps(2 * (4 + 24) * 500);
    assert_eq!(of(PartKind::Controller) + wire, length);
    assert_eq!(of(PartKind::Dram), Time::from_ps(64 * 640_000));
    for kind in [PartKind::Core, PartKind::HostLink, PartKind::Dram] {
        for index in 0..2 {
            let mut own: Vec<&Busy> =
                sums.1.iter().filter(|b| b.part.kind == kind && b.part.index == index).collect();
            own.sort_by_key(|b| b.from);
            assert!(own.windows(2).all(|two| two[0].to <= two[1].from), "{kind:?} {index}");
        }
    }
}

#[test]
fn the_preset_says_what_it_reads() {
    let config = preset();
    assert_eq!(RingConfig::parse(&config.to_toml()).unwrap(), config);
    for (from, to, key) in [
        ("max_block = 32", "max_block = 0", "card.max_block"),
        ("prefetch = 8", "prefetch = 64", "card.prefetch"),
        ("engines = 1", "engines = 0", "dma.engines"),
        ("max_payload = \"128B\"", "max_payload = \"100B\"", "link.max_payload"),
        ("generation = 2", "generation = 9", "link.generation"),
        ("capacity = \"1GiB\"", "capacity = \"1KiB\"", "media.capacity"),
        ("read_tags = 2", "read_tags = 0", "link.read_tags"),
    ] {
        assert!(TEXT.contains(from), "{from}");
        let config = RingConfig::parse(&TEXT.replace(from, to)).unwrap();
        assert_eq!(RingCard::new(&config, 1).unwrap_err().key, key);
    }
}

/// An array has requests for its members, and a card takes none but from its driver.
#[test]
fn a_card_is_no_member_of_an_array() {
    let members = vec![MemberSpec::Device(DeviceSpec::new(preset()))];
    let array = ArrayTable { stripe: "64KiB".parse().unwrap(), members, controller: None };
    let (description, faults) = (String::new(), Default::default());
    let config = ArrayConfig { description, array, nvme: None, faults };
    let error = StripedArray::new(&config, 1).map(|_| ()).unwrap_err();
    assert_eq!(error.key, "array.members[0]");
}
