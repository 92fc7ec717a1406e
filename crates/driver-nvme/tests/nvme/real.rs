//! The driver and the controller of the simulated SSD: each checks the other.

use proptest::prelude::*;
use ssdyno_block::conformance::check_target;
use ssdyno_block::{BlockTarget, Fault, Request, Time, Token};
use ssdyno_controller_nvme::{ControllerFault, Effect, NvmeController, Stuck};
use ssdyno_driver_nvme::{
    AdminCommand, DataBuffer, DriverEvent, DriverState, Feature, InterruptChoice, IoCommand,
    IoResult, NvmeConfig, NvmeError, PriorityClass, QueuePolicy, ResetCause, Weights,
};
use ssdyno_pci::{InterruptMode, PciFunction, SimulatedPci};
use ssdyno_spec::nvme::{DatasetRange, IdentifyNamespace, NvmeStatus, SmartLog, page};
use ssdyno_ssd::{Config, Ssd};
use zerocopy::{FromBytes, FromZeros};

use crate::drivers::target::NvmeTarget;
use crate::faults::{Move, moves, play};
use crate::rig::{Rig, TIMING, config};

type Real = NvmeController<Ssd>;

/// A small SSD behind its controller, with `keys` of the table `[nvme]`.
fn real(keys: &str) -> SimulatedPci<Real> {
    let small = include_str!("../../../ssd/tests/small_nvme.toml");
    let device = Config::parse(&format!("{small}\n[nvme]\nready_time = \"1ms\"\n{keys}")).unwrap();
    let ssd = Ssd::new(&device, 7).unwrap();
    SimulatedPci::new(
        NvmeController::in_front_of(ssd, device.nvme_setup().unwrap()).unwrap(),
        TIMING,
    )
}

fn patient() -> NvmeConfig {
    NvmeConfig { io_timeout: Time::from_ms(100), admin_timeout: Time::from_ms(50), ..config() }
}

#[test]
fn target_passes_the_suite() {
    let policies = [
        QueuePolicy::RoundRobin { as_printed: false },
        QueuePolicy::PerCorePool,
        QueuePolicy::Single,
    ];
    for policy in policies {
        check_target(|| {
            let wanted = NvmeConfig { policy, cores: 3, entries: 8, ..patient() };
            NvmeTarget::start(real(""), wanted, 1, 64 * 1024).unwrap()
        });
    }
}

#[test]
fn target_takes_requests_of_any_length() {
    let wanted = NvmeConfig { entries: 4, ..patient() };
    let mut target = NvmeTarget::start(real(""), wanted, 1, 1 << 20).unwrap();
    let long = Request::read(0, 10 << 20);
    target.submit(Time::ZERO, long, Token(3)).unwrap();
    target.submit(Time::ZERO, Request::trim(0, 10 << 20), Token(4)).unwrap();
    let mut out = Vec::new();
    while out.len() < 2 {
        let at = target.next_event().unwrap();
        target.reap(at, &mut out);
    }
    let mut ends: Vec<_> = out.iter().map(|done| (done.token, done.status)).collect();
    ends.sort_by_key(|end| end.0);
    let ok = ssdyno_block::Status::Ok;
    assert_eq!(ends, [(Token(3), ok), (Token(4), ok)]);
    assert_eq!(target.pci().faults(), []);
    assert_eq!(target.driver().counters().commands, 40 + 1, "MDTS is 256 KiB at most here");
}

/// Base 2.0c, clause 3.5.1: whatever version the controller reports, and with what it lacks.
#[test]
fn the_driver_starts_with_every_version() {
    for version in ["1.0", "1.1", "1.2", "1.3", "1.4", "2.0"] {
        let keys = format!(
            "version = \"{version}\"\nnamespaces_max = 4\n\
             namespaces = [{{ size = \"8MiB\" }}, {{ block_size = \"4KiB\" }}]"
        );
        let mut target = NvmeTarget::start(real(&keys), patient(), 2, 64 * 1024).unwrap();
        let namespaces = target.driver().namespaces();
        let sizes: Vec<_> = namespaces.iter().map(|n| (n.id, n.block_bytes)).collect();
        assert_eq!(sizes, [(1, 512), (2, 4096)], "{version}");
        let requests = [Request::write(0, 8192), Request::read(0, 8192), Request::trim(0, 8192)];
        for (request, number) in requests.into_iter().chain([Request::flush()]).zip(0..) {
            let now = target.next_event().unwrap_or(Time::ZERO);
            target.submit(now, request, Token(number)).unwrap();
            let mut out = Vec::new();
            while out.is_empty() {
                let at = target.next_event().unwrap();
                target.reap(at, &mut out);
            }
            assert_eq!(out[0].status, ssdyno_block::Status::Ok, "{version}: {request:?}");
        }
        assert_eq!(target.pci().faults(), []);
    }
}

/// S1-22: interrupts are configured before the start, and ignored until it is over: it takes as long
/// whether or not they come, and those that can be masked do not come.
#[test]
fn interrupts_are_ignored_while_the_start_polls() {
    for (mode, maskable) in
        [(InterruptMode::Pin, true), (InterruptMode::Msi, true), (InterruptMode::MsiX, false)]
    {
        let start = |delivered: bool| {
            let interrupts = InterruptChoice::Only(mode);
            let wanted = NvmeConfig { interrupts, start_poll: Some(Time::from_us(70)), ..config() };
            let mut rig = Rig::new(real("msi_vectors = 8"), wanted);
            rig.nvme.driver.start(&mut rig.nvme.pci, rig.nvme.now).unwrap();
            let (mut vectors, mut came, mut out) = (Vec::new(), 0, Vec::new());
            while rig.nvme.driver.state() == DriverState::Starting {
                rig.nvme.now = rig.nvme.next_event().unwrap();
                rig.nvme.pci.advance(rig.nvme.now);
                rig.nvme.pci.set_now(rig.nvme.now);
                rig.nvme.pci.take_interrupts(rig.nvme.now, &mut vectors);
                came += vectors.len();
                for vector in vectors.drain(..).filter(|_| delivered) {
                    rig.nvme.driver.on_interrupt(&mut rig.nvme.pci, rig.nvme.now, vector, &mut out);
                }
                if rig.nvme.driver.next_deadline().is_some_and(|at| at <= rig.nvme.now) {
                    rig.nvme.driver.poll(&mut rig.nvme.pci, rig.nvme.now, &mut out);
                }
            }
            assert_eq!(rig.nvme.driver.interrupt_mode(), Some(mode));
            (rig.nvme.now, came)
        };
        let ((with, came), (without, _)) = (start(true), start(false));
        assert_eq!(with, without, "{mode:?}");
        assert_eq!(came == 0, maskable, "{mode:?}: {came} interrupts");
    }
}

/// S1-26, S1-41: the P3600's queues, weighted, in every kind of interrupt.
#[test]
fn comes_up_on_the_real_controller() {
    for (keys, mode) in [
        ("msix_vectors = 0\nmsi_vectors = 0", InterruptMode::Pin),
        ("msi_vectors = 8", InterruptMode::Msi),
        ("io_queues = 31\nqueue_entries = 4096\ndoorbell_stride = \"16B\"", InterruptMode::MsiX),
    ] {
        let weights = Weights { burst_shift: 0, high: 4, medium: 2, low: 1 };
        let policy = QueuePolicy::Weighted { queues: [1, 1, 1, 1], weights };
        let features = vec![
            Feature::InterruptCoalescing { entries: 2, time_100us: 1 },
            Feature::PowerState(0),
            Feature::AsynchronousEvents(0x1ff),
        ];
        let interrupts = InterruptChoice::Only(mode);
        let wanted = NvmeConfig { policy, entries: 4096, features, interrupts, ..patient() };
        let mut rig = Rig::ready(real(keys), wanted);
        assert_eq!(rig.nvme.driver.interrupt_mode(), Some(mode));
        for class in PriorityClass::ALL {
            let queue = rig.nvme.driver.choose(0, class).queue;
            for i in 0..20 {
                rig.read(queue, i * 8, 8).unwrap();
            }
        }
        rig.drain();
        assert!(rig.done.iter().all(|done| done.is_success()));
        let mut events = Vec::new();
        rig.nvme.driver.take_events(&mut events);
        assert_eq!(events, []);
        let counters = rig.nvme.driver.counters();
        assert_eq!((counters.strays, counters.lost_interrupts), (0, 0));
        rig.nvme.driver.shutdown(&mut rig.nvme.pci, rig.nvme.now).unwrap();
        rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Stopping);
        assert_eq!(rig.nvme.driver.state(), DriverState::Stopped);
        rig.check();
    }
}

/// What is written is read again, through PRPs of every form.
#[test]
fn data_comes_back() {
    let keys = "contents = true\nmax_transfer = \"4MiB\"";
    let io_timeout = Time::from_s(10);
    let wanted = NvmeConfig { transfer_bytes_max: 4 << 20, entries: 4, io_timeout, ..patient() };
    let mut rig = Rig::ready(real(keys), wanted);
    let at = rig.buffer.address;
    for (turn, (offset, blocks)) in
        [(0, 1), (4, 8), (512, 9), (2048, 17), (4092, 700), (8, 8000)].into_iter().enumerate()
    {
        let bytes = blocks as usize * 512;
        let written: Vec<u8> = (0..bytes).map(|i| (i / 7 + i / 4096 + turn) as u8).collect();
        rig.nvme.pci.dma_write(&rig.buffer, offset, &written);
        let block = 1000 * turn as u64;
        let data = DataBuffer::Contiguous(at + u64::from(offset));
        rig.submit(1, &IoCommand::write(1, block, blocks, data)).unwrap();
        rig.drain();
        rig.nvme.pci.dma_write(&rig.buffer, 0, &vec![0xee; 5 << 20]);
        // Back into pages from the other end.
        let pages: Vec<u64> = (0..1001).map(|page| at + (1000 - page) * 4096).collect();
        let data = DataBuffer::Pages { pages: &pages, offset };
        rig.submit(1, &IoCommand::read(1, block, blocks, data)).unwrap();
        rig.drain();
        let mut read = vec![0; bytes];
        for (i, byte) in read.iter_mut().enumerate() {
            let place = offset as usize + i;
            let page = 1000 - place / 4096;
            let mut one = [0];
            rig.nvme.pci.dma_read(&rig.buffer, (page * 4096 + place % 4096) as u32, &mut one);
            *byte = one[0];
        }
        assert!(read == written, "{offset} {blocks}");
        let data = DataBuffer::Contiguous(at);
        rig.submit(1, &IoCommand::compare(1, block, 1, data)).unwrap();
        rig.drain();
        let compared = rig.done.last().unwrap().result;
        assert_eq!(compared, IoResult::Completed(NvmeStatus::COMPARE_FAILURE));
    }
    rig.check();
}

/// S1-43, S1-44: namespaces are made, attached, used and deleted; ranges are deallocated.
#[test]
fn namespaces_come_and_go() {
    let keys = "namespaces = [{ size = \"8MiB\" }]";
    let mut rig = Rig::ready(real(keys), patient());
    let mut wanted = IdentifyNamespace::new_zeroed();
    (wanted.size, wanted.capacity) = (1024.into(), 1024.into());
    let run = |rig: &mut Rig<Real>, command: &AdminCommand| {
        rig.nvme.driver.submit_admin(&mut rig.nvme.pci, rig.nvme.now, command, Token(1)).unwrap();
        let mut done = Vec::new();
        while done.is_empty() {
            assert!(rig.step());
            rig.nvme.driver.take_admin(&mut done);
        }
        assert_eq!(done[0].status, Some(NvmeStatus::SUCCESS), "{command:?}");
        done.remove(0)
    };
    let id = run(&mut rig, &AdminCommand::create_namespace(&wanted)).dword0;
    let controller = rig.nvme.driver.identity().unwrap().controller_id.get();
    run(&mut rig, &AdminCommand::attach_namespace(id, &[controller], true));
    rig.nvme.driver.rescan(&mut rig.nvme.pci, rig.nvme.now).unwrap();
    rig.run_while(|rig| rig.nvme.driver.namespaces().len() < 2);
    let range = DatasetRange { blocks: 64.into(), first: 512.into(), ..DatasetRange::default() };
    rig.submit(1, &IoCommand::deallocate(id, &[range])).unwrap();
    rig.submit(1, &IoCommand::write_zeroes(id, 0, 8)).unwrap();
    rig.submit(1, &IoCommand::flush(id)).unwrap();
    rig.drain();
    assert!(rig.done.iter().all(|done| done.is_success()));
    let smart = run(&mut rig, &AdminCommand::log_page(page::SMART, !0, 0, 512));
    assert!(SmartLog::read_from_bytes(&smart.data).is_ok());
    run(&mut rig, &AdminCommand::attach_namespace(id, &[controller], false));
    run(&mut rig, &AdminCommand::delete_namespace(id));
    rig.nvme.driver.rescan(&mut rig.nvme.pci, rig.nvme.now).unwrap();
    rig.run_while(|rig| rig.nvme.driver.namespaces().len() > 1);
    assert_eq!(rig.nvme.driver.namespaces()[0].id, 1);
    rig.check();
}

/// S1-43: namespaces share the flash, and no page of it: what was written in one of them alone takes a read of
/// flash there, and none in the others.
#[test]
fn namespaces_have_pages_of_their_own() {
    const IDS: [u32; 3] = [1, 2, 3];
    const PAGES: u64 = 24;
    let small = include_str!("../../../ssd/tests/small_nvme.toml");
    let spaces = "[{ size = \"1MiB\" }, { size = \"1MiB\", block_size = \"4KiB\" }, {}]";
    let keys = format!("[nvme]\nready_time = \"1ms\"\nnamespaces = {spaces}");
    let device = Config::parse(&format!("{small}\n{keys}")).unwrap();
    let controller =
        NvmeController::in_front_of(Ssd::fresh(&device, 7).unwrap(), device.nvme_setup().unwrap())
            .unwrap();
    let mut rig = Rig::ready(SimulatedPci::new(controller, TIMING), patient());
    assert_eq!(rig.nvme.driver.namespaces().len(), IDS.len());
    let data = DataBuffer::Contiguous(rig.buffer.address);
    // Pages are 4 KiB; the second namespace has blocks as large.
    let blocks = |id: u32| if id == 2 { 1 } else { 8 };
    let first = |id: u32, page: u64| page * u64::from(blocks(id));
    // Each page is written in one of the namespaces.
    for page in 0..PAGES {
        let id = IDS[page as usize % IDS.len()];
        rig.submit(1, &IoCommand::write(id, first(id, page), blocks(id), data)).unwrap();
        rig.drain();
    }
    for id in IDS {
        rig.submit(1, &IoCommand::flush(id)).unwrap();
    }
    rig.drain();
    for page in 0..PAGES {
        for id in IDS {
            let before = rig.nvme.now;
            rig.submit(1, &IoCommand::read(id, first(id, page), blocks(id), data)).unwrap();
            rig.drain();
            let from_flash = rig.nvme.now - before >= Time::from_us(50);
            let written = IDS[page as usize % IDS.len()] == id;
            assert_eq!(from_flash, written, "page {page} of namespace {id}");
        }
    }
    assert!(rig.done.iter().all(|done| done.is_success()));
    rig.check();
}

#[test]
fn lost_command_is_aborted() {
    let mut rig = Rig::ready(real(""), patient());
    let fault = ControllerFault {
        opcode: None,
        namespace: 1,
        blocks: 0..8,
        times: 1,
        effect: Effect::Meet(Fault::Drop),
    };
    rig.nvme.pci.device_mut().inject(fault);
    rig.read(1, 0, 8).unwrap();
    rig.read(1, 64, 8).unwrap();
    rig.drain();
    assert_eq!(rig.done[1].result, IoResult::Completed(NvmeStatus::ABORT_REQUESTED));
    assert_eq!(rig.nvme.driver.counters().resets, 0);
    rig.check();
}

#[test]
fn hanging_controller_is_reset() {
    let mut rig = Rig::ready(real(""), patient());
    for (how, state) in
        [(Stuck::UntilReset, DriverState::Ready), (Stuck::ForGood, DriverState::Stopped)]
    {
        for i in 0..10 {
            rig.read(1, i * 8, 8).unwrap();
        }
        rig.nvme.pci.device_mut().hang(how);
        rig.drain();
        rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Recovering);
        match state {
            DriverState::Ready => assert_eq!(rig.nvme.driver.state(), state),
            _ => assert!(matches!(rig.nvme.driver.state(), DriverState::Failed(_))),
        }
    }
    assert_eq!(rig.done.len(), 20);
    rig.check();
}

#[test]
fn broken_controller_is_reset_at_once_when_looked_at() {
    let mut rig = Rig::ready(real(""), patient());
    rig.nvme.pci.device_mut().fail();
    rig.read(1, 0, 8).unwrap();
    rig.drain();
    rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Recovering);
    let mut events = Vec::new();
    rig.nvme.driver.take_events(&mut events);
    assert_eq!(events, [DriverEvent::Reset(ResetCause::Fatal)]);
    assert_eq!(rig.nvme.driver.counters().aborts, 0);
    rig.read(1, 0, 8).unwrap();
    rig.drain();
    assert!(rig.done[1].is_success());
    rig.check();
}

/// It hangs again while it comes up.
#[test]
fn second_hang_gets_a_second_reset() {
    let mut rig = Rig::ready(real(""), patient());
    rig.nvme.pci.device_mut().hang(Stuck::UntilReset);
    rig.read(1, 0, 8).unwrap();
    rig.drain();
    // The controller is idle: the read was given up, CC.EN is on its way.
    assert_eq!(rig.nvme.driver.state(), DriverState::Recovering);
    rig.nvme.pci.device_mut().hang(Stuck::UntilReset);
    rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Recovering);
    assert_eq!(rig.nvme.driver.state(), DriverState::Ready);
    let mut events = Vec::new();
    rig.nvme.driver.take_events(&mut events);
    let causes = [ResetCause::AdminTimeout, ResetCause::NotReady];
    assert_eq!(events, causes.map(DriverEvent::Reset));
    rig.check();
}

/// A fault of the controller, before the moves.
fn fault() -> impl Strategy<Value = ControllerFault> {
    let effect = prop_oneof![
        Just(Effect::Fail(NvmeStatus::UNRECOVERED_READ)),
        (1..200_u64).prop_map(|ms| Effect::Meet(Fault::Delay(Time::from_ms(ms)))),
        Just(Effect::Meet(Fault::Drop)),
    ];
    (0..10_000_u64, 1..3000_u64, 1..4_u32, effect).prop_map(|(first, n, times, effect)| {
        ControllerFault { opcode: None, namespace: 1, blocks: first..first + n, times, effect }
    })
}

proptest! {
    #[test]
    fn every_request_is_answered_once(
        moves in moves(),
        faults in prop::collection::vec(fault(), 0..3),
        hang in prop::option::weighted(0.2, 0..100_usize),
        entries in 2..20_u32,
        interrupts in 0..3_usize,
    ) {
        use ssdyno_driver_nvme::InterruptChoice::{Best, Only};
        let interrupts = [Best, Only(InterruptMode::Pin), Only(InterruptMode::Msi)][interrupts];
        let wanted = NvmeConfig { entries, cores: 3, interrupts, ..patient() };
        let mut rig = Rig::ready(real("io_queues = 3"), wanted);
        for fault in faults {
            rig.nvme.pci.device_mut().inject(fault);
        }
        let (before, after) = moves.split_at(hang.unwrap_or(0).min(moves.len()));
        play(&mut rig, before);
        if hang.is_some() {
            rig.nvme.pci.device_mut().hang(Stuck::UntilReset);
        }
        play(&mut rig, after);
        let stops = |m: &Move| matches!(m, Move::Remove | Move::Shutdown);
        if !moves.iter().any(stops) {
            rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Recovering);
            let state = rig.nvme.driver.state();
            let given_up = DriverState::Failed(NvmeError::Unresponsive { resets: 3 });
            prop_assert!(state == DriverState::Ready || state == given_up, "{state:?}");
        }
        prop_assert_eq!(rig.nvme.driver.counters().strays, 0);
        prop_assert_eq!(rig.nvme.pci.device().counters().bad_doorbells, 0);
    }
}
