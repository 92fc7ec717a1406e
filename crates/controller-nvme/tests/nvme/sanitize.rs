//! Sanitize: states, commands refused during the operation, log page and event (clauses 5.24 and 8.21), and the time,
//! energy and wear of the operation on flash.

use ssdyno_block::{BlockTarget, Fault, Request, Time, Token};
use ssdyno_controller_nvme::{ControllerFault, Effect, NvmeController};
use ssdyno_device::{Device, DeviceReport, Sanitize, SanitizeMethod};
use ssdyno_engine::events::{Activity, Busy, EventReader, PartKind};
use ssdyno_spec::nvme::{
    AsynchronousEvent, IdentifyController, NvmeStatus, SanitizeLog, SubmissionEntry, admin, cns,
    nvm, page, registers, sanicap, sanitize,
};
use ssdyno_ssd::{Config, Ssd};
use zerocopy::FromBytes;

use crate::support::{
    DATA, FixedTime, Host, SANITIZE_SECONDS, config, entry, get_feature, host, identify, read,
    set_feature, transfer, write,
};

const OK: NvmeStatus = NvmeStatus::SUCCESS;
const BUSY: NvmeStatus = NvmeStatus::SANITIZE_IN_PROGRESS;
const FAILED: NvmeStatus = NvmeStatus::SANITIZE_FAILED;
const FIELD: NvmeStatus = NvmeStatus::INVALID_FIELD;

fn order(dword10: u32) -> SubmissionEntry {
    entry(admin::SANITIZE, 0, [dword10, 0, 0])
}
fn log_page(id: u8) -> SubmissionEntry {
    entry(admin::GET_LOG_PAGE, u32::MAX, [u32::from(id) | 127 << 16, 0, 0])
}
fn ready() -> Host<FixedTime> {
    let mut host = host("contents = true\nnamespaces_max = 4");
    host.create_pair(1, 16);
    host
}

impl<D: Device> Host<D> {
    /// Sends a command and waits a little, not until all is quiet.
    fn short(&mut self, queue: u16, command: SubmissionEntry) -> Option<NvmeStatus> {
        let id = self.push(queue, command);
        self.ring(queue);
        self.run_until(self.now + Time::from_ms(1));
        let done = self.reap(queue);
        done.into_iter().find(|c| c.command_id.get() == id).map(|c| c.status().kind())
    }
    fn sanitize_log(&mut self) -> SanitizeLog {
        assert_eq!(self.short(0, log_page(page::SANITIZE)), Some(OK));
        SanitizeLog::read_from_bytes(self.data(DATA, 512)).unwrap()
    }
    fn status(&mut self) -> u16 {
        self.sanitize_log().status.get()
    }
}

/// Figure 267: SPROG goes from 0 to 10000h during the operation, SSTAT and SCDW10 describe the most recent operation,
/// and the estimates are those of the device, rounded up to seconds.
#[test]
fn the_log_page_tells_how_far_it_is() {
    let mut host = ready();
    let log = host.sanitize_log();
    assert_eq!((log.progress.get(), log.status.get(), log.dword10.get()), (0xffff, 0, 0));
    let [overwrite, erase, crypto] = SANITIZE_SECONDS;
    assert_eq!(log.overwrite_seconds.get(), 16 * overwrite);
    assert_eq!((log.block_erase_seconds.get(), log.crypto_erase_seconds.get()), (erase, crypto));
    assert_eq!(log.overwrite_allocated_seconds.get(), 16 * overwrite + 1);
    assert_eq!(log.block_erase_allocated_seconds.get(), erase + 1);
    assert_eq!(log.crypto_erase_allocated_seconds.get(), crypto + 1);

    let passes = sanitize::OVERWRITE | 4 << sanitize::PASSES_SHIFT;
    let began = host.now;
    assert_eq!(host.short(0, order(passes)), Some(OK), "it completes when the operation has begun");
    let all = Time::from_s(4 * u64::from(overwrite));
    for quarter in 0..4u16 {
        host.run_until(began + all * u64::from(quarter) / 4 + Time::from_ms(5));
        let log = host.sanitize_log();
        // 5 to 7 ms late in some seconds.
        let off = log.progress.get() - quarter * 0x4000;
        assert!((1..100).contains(&off), "{:#x}", log.progress.get());
        assert_eq!(log.status.get(), SanitizeLog::IN_PROGRESS | quarter << 3, "passes completed");
        assert_eq!(log.dword10.get(), passes);
    }
    host.run_until(began + all + Time::from_ms(5));
    let log = host.sanitize_log();
    let done = SanitizeLog::SANITIZED | SanitizeLog::ERASED | 4 << 3;
    assert_eq!((log.progress.get(), log.status.get()), (0xffff, done));
    // Global data erased holds until the first write.
    host.command(1, read(0));
    assert_eq!(host.status(), done);
    host.command(1, write(0));
    assert_eq!(host.status(), done & !SanitizeLog::ERASED);
}

/// Figure 267: global data erased says that the storage was not written to. Zeroes and spoilt blocks are written;
/// what is deallocated is not.
#[test]
fn every_command_that_writes_ends_global_data_erased() {
    let deallocate = entry(nvm::DATASET_MANAGEMENT, 1, [0, 4, 0]);
    for (command, erased) in [
        (transfer(nvm::WRITE_ZEROES, 0, 8), 0),
        (transfer(nvm::WRITE_UNCORRECTABLE, 0, 8), 0),
        (SubmissionEntry { prp1: DATA.into(), ..deallocate }, SanitizeLog::ERASED),
    ] {
        let mut host = ready();
        assert_eq!(host.command(0, order(sanitize::CRYPTO_ERASE)).status(), OK);
        host.data(DATA, 16).copy_from_slice(&[0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(host.command(1, command).status(), OK);
        assert_eq!(host.status() & SanitizeLog::ERASED, erased, "{:#x}", command.opcode);
    }
}

/// Figure 304: the actions, and what each takes.
#[test]
fn each_action_takes_its_time_and_leaves_nothing() {
    let [overwrite, erase, crypto] = SANITIZE_SECONDS;
    let keep = sanitize::NO_DEALLOCATION;
    let one = 1 << sanitize::PASSES_SHIFT;
    for (dword10, seconds, byte) in [
        (sanitize::BLOCK_ERASE, erase, 0),
        (sanitize::BLOCK_ERASE | keep, erase + 1, 0),
        (sanitize::CRYPTO_ERASE, crypto, 0),
        (sanitize::CRYPTO_ERASE | keep, crypto + 1, 0),
        (sanitize::OVERWRITE | one, overwrite, 0),
        (sanitize::OVERWRITE, 16 * overwrite, 0),
        // The last pass has the pattern as it is, inverted passes or not.
        (sanitize::OVERWRITE | one | keep, overwrite + 1, 0xa5),
        (sanitize::OVERWRITE | (2 * one) | keep | sanitize::INVERT, 2 * overwrite + 1, 0xa5),
    ] {
        let mut host = ready();
        host.data(DATA, 4096).fill(7);
        host.command(1, write(40));
        let began = host.now;
        let mut command = order(dword10);
        command.dword11 = 0xa5a5_a5a5.into();
        assert_eq!(host.command(0, command).status(), OK);
        let took = (host.now - began).as_ps() / Time::from_s(1).as_ps();
        assert_eq!(took, u64::from(seconds), "{dword10:#x}");
        for first in [40, 0, 1000] {
            host.data(DATA, 4096).fill(9);
            assert_eq!(host.command(1, read(first)).status(), OK);
            assert_eq!(host.data(DATA, 4096), [byte; 4096], "{dword10:#x}");
        }
    }
}

/// Clause 8.21.4: what is allowed while an operation is in progress.
#[test]
fn most_commands_are_refused_meanwhile() {
    let admin_commands = [
        (log_page(page::ERROR), OK),
        (log_page(page::SMART), OK),
        (log_page(page::CHANGED_NAMESPACES), OK),
        (log_page(page::SANITIZE), OK),
        (log_page(page::FIRMWARE_SLOT), BUSY),
        (log_page(page::COMMAND_EFFECTS), BUSY),
        (identify(cns::CONTROLLER, 0), OK),
        (identify(cns::NAMESPACE, 1), OK),
        (get_feature(0x02), OK),
        (set_feature(0x02, 0), OK),
        (entry(admin::ABORT, 0, [1, 0, 0]), OK),
        (entry(admin::KEEP_ALIVE, 0, [0; 3]), OK),
        (crate::support::create_completion(2, 8, 2, DATA + 8192), OK),
        (entry(admin::DELETE_COMPLETION_QUEUE, 0, [2, 0, 0]), OK),
        (entry(admin::FORMAT_NVM, 1, [0; 3]), BUSY),
        (entry(admin::NAMESPACE_MANAGEMENT, 1, [1, 0, 0]), BUSY),
        (entry(admin::NAMESPACE_ATTACHMENT, 1, [1, 0, 0]), BUSY),
        (order(sanitize::BLOCK_ERASE), BUSY),
        (order(sanitize::EXIT_FAILURE_MODE), BUSY),
        (entry(0xc0, 0, [0; 3]), NvmeStatus::INVALID_OPCODE),
    ];
    let io_commands = [
        (read(0), BUSY),
        (write(0), BUSY),
        (transfer(nvm::COMPARE, 0, 8), BUSY),
        (entry(nvm::WRITE_ZEROES, 1, [0; 3]), BUSY),
        (entry(nvm::VERIFY, 1, [0; 3]), BUSY),
        (entry(nvm::WRITE_UNCORRECTABLE, 1, [0; 3]), BUSY),
        (entry(nvm::DATASET_MANAGEMENT, 1, [0, 4, 0]), BUSY),
        (entry(nvm::FLUSH, 1, [0; 3]), OK),
        (entry(nvm::FLUSH, 9, [0; 3]), NvmeStatus::INVALID_NAMESPACE),
    ];
    let mut host = ready();
    assert_eq!(host.short(0, order(sanitize::BLOCK_ERASE)), Some(OK));
    let seen = host.controller.device().seen.len();
    for (queue, commands) in [(0, &admin_commands[..]), (1, &io_commands[..])] {
        for (command, expected) in commands {
            assert_eq!(host.short(queue, *command), Some(*expected), "{command:?}");
        }
    }
    assert_eq!(host.controller.device().seen.len(), seen, "the device hears of none of them");
    host.settle();
    assert_eq!(host.command(1, read(0)).status(), OK, "afterwards all is as before");
}

/// Clause 8.21.4: commands under way end with Sanitize In Progress, but Flush.
#[test]
fn commands_under_way_are_aborted() {
    let mut host = ready();
    let ids =
        [read(0), write(8), entry(nvm::FLUSH, 1, [0; 3])].map(|command| host.push(1, command));
    host.ring(1);
    while host.controller.device().seen.len() < 3 {
        assert!(host.step(Time::MAX));
    }
    assert_eq!(host.command(0, order(sanitize::CRYPTO_ERASE)).status(), OK);
    let ends: Vec<_> = host.reap(1);
    let end = |id: u16| ends.iter().find(|c| c.command_id.get() == id).unwrap().status().kind();
    assert_eq!(ids.map(end), [BUSY, BUSY, OK]);
}

/// Clause 8.21: no controller level reset ends it, nor does a shutdown.
#[test]
fn it_goes_on_over_resets() {
    let mut host = ready();
    let began = host.now;
    assert_eq!(host.short(0, order(sanitize::BLOCK_ERASE)), Some(OK));
    let ends = began + Time::from_s(SANITIZE_SECONDS[1].into());
    let enabled = registers::CC_ENTRY_SIZES | registers::CC_ENABLE;
    host.write(registers::CC, enabled | 1 << 14);
    host.run_until(host.now + Time::from_ms(10));
    assert_eq!(host.read(registers::CSTS) >> 2 & 3, 2, "the shutdown completes");
    let resets: [fn(&mut Host<FixedTime>); 3] = [
        |host| host.write(registers::CC, 0),
        |host| host.write(registers::NSSR, registers::NSSR_RESET),
        |host| {
            use ssdyno_pci::PciDevice;
            host.controller.reset(host.now);
        },
    ];
    for reset in resets {
        reset(&mut host);
        host.enable_with(enabled);
        host.run_until(host.now + Time::from_ms(200));
        let log = host.sanitize_log();
        assert_eq!(log.status.get(), SanitizeLog::IN_PROGRESS);
        let share = (host.now - began).as_ps() as f64 / (ends - began).as_ps() as f64;
        let told = f64::from(log.progress.get()) / 65536.0;
        assert!((share - told).abs() < 0.002, "{share} {told}");
    }
    host.run_until(ends + Time::from_ms(1));
    assert_eq!(host.status(), SanitizeLog::SANITIZED | SanitizeLog::ERASED);
}

/// Figure 146: Sanitize Operation Completed, with page 81h; a new operation withdraws it.
#[test]
fn its_end_is_an_event() {
    let mut host = ready();
    let told = |host: &mut Host<FixedTime>| -> Vec<u32> {
        host.reap(0).iter().map(|completion| completion.dword0.get()).collect()
    };
    let ask = entry(admin::ASYNCHRONOUS_EVENT_REQUEST, 0, [0; 3]);
    host.push(0, ask);
    host.push(0, order(sanitize::CRYPTO_ERASE));
    host.ring(0);
    host.run_until(host.now + Time::from_ms(1));
    assert_eq!(told(&mut host), [0], "Sanitize itself");
    host.settle();
    assert_eq!(AsynchronousEvent::SANITIZE_COMPLETED.dword(), 0x81_0106);
    assert_eq!(told(&mut host), [0x81_0106]);
    // Masked until the page is read.
    host.push(0, ask);
    host.push(0, order(sanitize::CRYPTO_ERASE));
    host.ring(0);
    host.settle();
    assert_eq!(told(&mut host), [0, 0x81_0106], "the new operation has withdrawn the old event");
    host.push(0, ask);
    host.ring(0);
    host.settle();
    assert!(told(&mut host).is_empty());
}

/// Clause 8.21: what a failure leaves, and how it is left, by mode.
#[test]
fn failure_modes() {
    let fails = ControllerFault {
        opcode: Some(admin::SANITIZE),
        namespace: 0,
        blocks: 0..0,
        times: 1,
        effect: Effect::Meet(Fault::Error),
    };
    let free = sanitize::UNRESTRICTED_EXIT;
    for (mode, exit, again) in [(0, FAILED, FAILED), (free, OK, OK)] {
        let mut host = ready();
        host.controller.inject(fails.clone());
        assert_eq!(host.command(0, order(sanitize::BLOCK_ERASE | mode)).status(), OK);
        let log = host.sanitize_log();
        assert_eq!((log.progress.get(), log.status.get()), (0xffff, SanitizeLog::FAILED));
        for (queue, command, ends) in [
            (1, read(0), FAILED),
            (1, entry(nvm::FLUSH, 1, [0; 3]), OK),
            (0, entry(admin::FORMAT_NVM, 1, [0; 3]), FAILED),
            (0, identify(cns::CONTROLLER, 0), OK),
            (0, order(0), FIELD),
        ] {
            assert_eq!(host.short(queue, command), Some(ends), "{command:?}");
        }
        // A reset does not mend it.
        host.write(registers::CC, 0);
        host.enable();
        host.create_pair(1, 16);
        assert_eq!(host.short(1, read(0)), Some(FAILED));
        assert_eq!(host.short(0, order(sanitize::EXIT_FAILURE_MODE)), Some(exit));
        assert_eq!(host.short(1, read(0)), Some(exit));
        assert_eq!(host.status(), SanitizeLog::FAILED, "the most recent operation has failed");
        assert_eq!(host.command(0, order(sanitize::CRYPTO_ERASE | free)).status().kind(), again);
        assert_eq!(host.command(0, order(sanitize::CRYPTO_ERASE)).status(), OK);
        assert_eq!(host.command(1, read(0)).status(), OK, "another operation mends it");
    }
    // A command that is refused begins nothing.
    let mut host = ready();
    host.controller
        .inject(ControllerFault { effect: Effect::Fail(NvmeStatus::INTERNAL_ERROR), ..fails });
    assert_eq!(host.short(0, order(sanitize::BLOCK_ERASE)), Some(NvmeStatus::INTERNAL_ERROR));
    assert_eq!(host.status(), SanitizeLog::NEVER);
}

/// Figure 275, SANICAP; a device that cannot sanitize has neither command nor log page.
#[test]
fn capabilities_are_those_of_the_device() {
    let all = sanicap::CRYPTO_ERASE | sanicap::BLOCK_ERASE | sanicap::OVERWRITE;
    for (version, cannot, expected) in [
        ("1.2", false, 0),
        ("1.3", false, all),
        ("1.4", false, all | sanicap::WRITES_ONCE_MORE),
        ("2.0", true, 0),
    ] {
        let mut host = host(&format!("version = \"{version}\""));
        host.controller.device_mut().cannot_sanitize = cannot;
        host.admin(identify(cns::CONTROLLER, 0));
        let id = IdentifyController::read_from_bytes(host.data(DATA, 4096)).unwrap();
        assert_eq!(id.sanitize.get(), expected, "{version}");
        let (command, log) = match expected {
            0 => (NvmeStatus::INVALID_OPCODE, NvmeStatus::LOG_PAGE_INVALID),
            _ => (OK, OK),
        };
        assert_eq!(host.short(0, log_page(page::SANITIZE)), Some(log));
        assert_eq!(host.short(0, order(sanitize::BLOCK_ERASE)), Some(command));
    }
}

/// Time of each activity, and operations, of the dies.
#[derive(Default, Debug, PartialEq)]
struct Dies {
    erases: (Time, u64),
    programs: (Time, u64),
    transfers: Time,
}

impl EventReader for Dies {
    fn read(&mut self, events: &[Busy]) {
        for event in events.iter().filter(|event| event.part.kind == PartKind::Die) {
            let length = event.to - event.from;
            let cell = match event.activity {
                Activity::Erase => &mut self.erases,
                Activity::Program => &mut self.programs,
                _ => {
                    self.transfers += length;
                    continue;
                }
            };
            cell.0 += length;
            cell.1 += u64::from(event.operations);
        }
    }
}

const FTLS: [&str; 6] = ["page", "dftl", "block", "bast", "fast", "agrawal"];

fn ssd(ftl: &str) -> (Config, Ssd) {
    let name = format!("name = \"{ftl}\"\n");
    let more = if ftl == "dftl" { "dftl.mapping_cache = \"4KiB\"\n" } else { "" };
    let name = format!("{name}{more}");
    let mut changes = vec![("name = \"page\"\n", name.as_str())];
    if ftl == "agrawal" {
        changes.push(("copy = \"copy-back\"\n", ""));
    }
    let config = config("", &changes);
    let ssd = Ssd::new(&config, 7).unwrap();
    (config, ssd)
}

/// The small device: 2 channels of 2 dies of 2 planes of 64 blocks of 64 pages; the planes of a die join.
/// A page crosses the bus in 4096 B / 333 MB/s = 12.3 us, two of them in 24.6, and those of both dies of a
/// channel well within the 500 us of a program: a step takes 524.6 us.
#[test]
fn flash_time_energy_and_wear_are_those_of_the_geometry() {
    let us = Time::from_us;
    let page = Time::from_ps(4096 * 1_000_000 / 333);
    let erase = us(3500) * 64;
    let pass = (us(500) + page * 2) * (64 * 64);
    for ftl in FTLS {
        for (method, time, erases, programs) in [
            (SanitizeMethod::BlockErase, erase, 1, 0),
            (SanitizeMethod::Overwrite { passes: 3 }, erase * 4 + pass * 3, 4, 3),
            (SanitizeMethod::CryptoErase, Time::from_ms(100), 0, 0),
        ] {
            let (_, mut ssd) = ssd(ftl);
            let before = DeviceReport::of(&ssd).health();
            ssd.events().clear();
            let order = Sanitize { method, stays_allocated: false };
            let told = ssd.sanitize_time(order).unwrap();
            let now = Time::from_s(3);
            let done = ssd.sanitize(now, order).unwrap();
            // A picosecond for each rounded page.
            let off = told.as_ps().abs_diff(time.as_ps());
            assert!(off < 100_000, "{ftl} {method:?}: {told}, not {time}");
            assert!(!done.failed && done.ends >= now + told, "{ftl}");
            let mut dies = Dies::default();
            ssd.events().show_to(&mut dies);
            if method == SanitizeMethod::CryptoErase {
                // An FTL may erase what holds nothing any more; one that keeps its table in flash has to
                // write that.
                assert_eq!(dies.programs.1 == 0, ftl != "dftl", "{ftl}: {dies:?}");
                continue;
            }
            assert_eq!(done.ends, now + told, "{ftl}");
            // Four dies; both planes of a die at once.
            assert_eq!(dies.erases, (erase * (4 * erases), 4 * 128 * erases), "{ftl}");
            let all = us(500) * (4 * 64 * 64) * programs;
            assert_eq!(dies.programs, (all, 4 * 128 * 64 * programs), "{ftl}");
            let after = DeviceReport::of(&ssd).health();
            assert_eq!(after.erases_min, before.erases_min + erases as u32, "{ftl}");
            assert_eq!(after.erases_max, before.erases_max + erases as u32, "{ftl}");
        }
    }
}

/// After it every page reads without flash, can be written, and reads what was written; where it stays
/// allocated, every page is read from flash at once.
#[test]
fn a_sanitized_ssd_is_empty_and_works() {
    for ftl in FTLS {
        for (method, stays_allocated) in [
            (SanitizeMethod::BlockErase, false),
            (SanitizeMethod::BlockErase, true),
            (SanitizeMethod::Overwrite { passes: 1 }, true),
            (SanitizeMethod::CryptoErase, false),
            (SanitizeMethod::CryptoErase, true),
        ] {
            let (_, mut ssd) = ssd(ftl);
            ssd.check_contents();
            let pages = ssd.capacity_bytes() / 4096;
            let mut now = Time::from_ms(1);
            let run = |ssd: &mut Ssd, now: &mut Time, request: Request| {
                let begins = *now;
                ssd.submit(begins, request, Token(1)).unwrap();
                let mut out = Vec::new();
                while out.is_empty() {
                    *now = ssd.next_event().unwrap();
                    ssd.reap(*now, &mut out);
                }
                assert!(out[0].status == ssdyno_block::Status::Ok);
                *now - begins
            };
            for page in 0..pages / 2 {
                run(&mut ssd, &mut now, Request::write(page * 4096, 4096));
            }
            // One is still under way.
            ssd.submit(now, Request::write(0, 4096), Token(2)).unwrap();
            let done = ssd.sanitize(now, Sanitize { method, stays_allocated }).unwrap();
            assert!(!done.failed, "{ftl}");
            now = done.ends;
            let mut out = Vec::new();
            ssd.reap(now, &mut out);
            assert_eq!(out.len(), 1, "what was under way is answered");
            for page in [0, 1, pages / 3, pages - 1] {
                let took = run(&mut ssd, &mut now, Request::read(page * 4096, 4096));
                let from_flash = took >= Time::from_us(50);
                assert_eq!(from_flash, stays_allocated, "{ftl} {method:?} page {page}: {took}");
            }
            for page in (0..pages).chain(0..pages / 2) {
                run(&mut ssd, &mut now, Request::write(page * 4096, 4096));
            }
            for page in (0..pages).step_by(97) {
                let took = run(&mut ssd, &mut now, Request::read(page * 4096, 4096));
                assert!(took >= Time::from_us(50), "{ftl}");
            }
            assert!(ssd.contents_compared() > 0);
        }
    }
}

/// Blocks that do not survive the erases of many passes are bad afterwards; too few are left to hold the
/// logical pages: the operation fails (SSTAT 3).
#[test]
fn a_device_that_it_wears_out_fails() {
    let config = config("", &[("copy = ", "endurance_cycles = 10\ncopy = ")]);
    let mut host = Host::new(
        NvmeController::in_front_of(Ssd::new(&config, 7).unwrap(), config.nvme_setup().unwrap())
            .unwrap(),
    );
    host.enable();
    host.create_pair(1, 16);
    let keep = sanitize::NO_DEALLOCATION;
    assert_eq!(host.command(0, order(sanitize::OVERWRITE | keep)).status(), OK);
    assert_eq!(host.status(), SanitizeLog::FAILED);
    assert_eq!(host.command(1, read(0)).status().kind(), FAILED);
}
