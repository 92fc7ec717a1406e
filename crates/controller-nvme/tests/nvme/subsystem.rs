//! The subsystem without any PCI bus: what another transport stands on.

use ssdyno_block::{BlockTarget, Request, Time, Token};
use ssdyno_controller_nvme::{
    AdminOutcome, FeatureValue, HostData, NvmCommand, NvmStep, NvmeSubsystem,
};
use ssdyno_device::delay::{DelayConfig, DelayDevice};
use ssdyno_device::nvme::{NvmeControllerConfig, NvmeSetup};
use ssdyno_spec::nvme::{
    AsynchronousEvent, IdentifyController, IdentifyNamespace, NvmeStatus, SmartLog,
    SubmissionEntry, admin, cns, feature, nvm, page,
};
use zerocopy::FromBytes;

use crate::admin::log;
use crate::support::{entry, get_feature, identify, set_feature, transfer};

/// A host that is nothing but its data.
#[derive(Default)]
struct Memory {
    /// What the host sends next.
    sends: Vec<u8>,
    /// What it has got.
    got: Vec<u8>,
}

impl HostData for Memory {
    fn send(&mut self, data: &[u8]) -> Result<(), NvmeStatus> {
        self.got = data.to_vec();
        Ok(())
    }
    fn receive(&mut self, data: &mut [u8]) -> Result<(), NvmeStatus> {
        let sent = self.sends.get(..data.len()).ok_or(NvmeStatus::DATA_TRANSFER_ERROR)?;
        data.copy_from_slice(sent);
        Ok(())
    }
}

fn subsystem() -> NvmeSubsystem<DelayDevice> {
    subsystem_with(true)
}

fn subsystem_with(contents: bool) -> NvmeSubsystem<DelayDevice> {
    let text = "[delay]\ncapacity = \"1GiB\"\nread = \"100us\"\nwrite = \"30us\"\n";
    let device = DelayDevice::new(&DelayConfig::parse(text).unwrap(), 1).unwrap();
    let config =
        NvmeControllerConfig { model: "No bus".to_owned(), contents, ..Default::default() };
    NvmeSubsystem::new(device, NvmeSetup::in_front(&config, true)).unwrap()
}

/// Checks and executes a command as a transport does; gives what the host has got.
fn execute(
    subsystem: &mut NvmeSubsystem<DelayDevice>,
    command: SubmissionEntry,
    sends: &[u8],
) -> Result<(AdminOutcome, Vec<u8>), NvmeStatus> {
    subsystem.check_admin(&command)?;
    let mut data = Memory { sends: sends.to_vec(), got: Vec::new() };
    let outcome = subsystem.execute(Time::from_s(7200), &command, &mut data)?;
    Ok((outcome, data.got))
}

/// Base 2.0c, clauses 5.16 and 5.17.
#[test]
fn identify_and_log_pages_need_no_bus() {
    let mut subsystem = subsystem();
    let done = AdminOutcome::Done(0);
    let (outcome, bytes) = execute(&mut subsystem, identify(cns::CONTROLLER, 0), &[]).unwrap();
    let id = IdentifyController::read_from_bytes(&bytes).unwrap();
    assert!(outcome == done && id.model.starts_with(b"No bus  "));
    assert_eq!(id.volatile_write_cache & 1, 1);
    let (_, bytes) = execute(&mut subsystem, identify(cns::NAMESPACE, 1), &[]).unwrap();
    let namespace = IdentifyNamespace::read_from_bytes(&bytes).unwrap();
    let format = namespace.lba_format[usize::from(namespace.format_index())];
    assert_eq!(namespace.size.get() << format.data_shift, 1 << 30);
    let (outcome, bytes) = execute(&mut subsystem, log(page::SMART, 512), &[]).unwrap();
    let health = SmartLog::read_from_bytes(&bytes).unwrap();
    assert_eq!((outcome, u128::from(health.power_on_hours)), (done, 2));
    assert_eq!(
        execute(&mut subsystem, log(0x70, 512), &[]),
        Err(NvmeStatus::LOG_PAGE_INVALID.with_do_not_retry())
    );
}

/// Base 2.0c, clauses 5.15 and 5.27: a value stays until a reset; what belongs to the transport goes to it.
#[test]
fn features_need_no_bus() {
    let mut subsystem = subsystem();
    let cache = |subsystem: &mut _| {
        execute(subsystem, get_feature(feature::VOLATILE_WRITE_CACHE), &[]).unwrap().0
    };
    assert_eq!(cache(&mut subsystem), AdminOutcome::Done(1));
    let off = set_feature(feature::VOLATILE_WRITE_CACHE, 0);
    assert_eq!(execute(&mut subsystem, off, &[]).unwrap().0, AdminOutcome::Done(0));
    assert_eq!(cache(&mut subsystem), AdminOutcome::Done(0));
    subsystem.reset(Time::from_s(7201));
    assert_eq!(cache(&mut subsystem), AdminOutcome::Done(1));

    // Data in both directions; what the host does not send ends the command.
    let mut behavior = [0; 512];
    behavior[0] = 1;
    let set = set_feature(feature::HOST_BEHAVIOR, 0);
    assert_eq!(execute(&mut subsystem, set, &[]), Err(NvmeStatus::DATA_TRANSFER_ERROR));
    assert_eq!(execute(&mut subsystem, set, &behavior).unwrap().0, AdminOutcome::Done(0));
    let (_, got) = execute(&mut subsystem, get_feature(feature::HOST_BEHAVIOR), &[]).unwrap();
    assert_eq!(got, behavior);

    let queues = set_feature(feature::NUMBER_OF_QUEUES, 3 << 16 | 3);
    let outcome = execute(&mut subsystem, queues, &[]).unwrap().0;
    assert_eq!(outcome, AdminOutcome::TransportFeature);
    let asks = get_feature(feature::NUMBER_OF_QUEUES);
    let of_transport = FeatureValue { current: 7, default: 9, of_namespace: false };
    let value = subsystem.get_features(&asks, Some(of_transport), &mut Memory::default());
    assert_eq!(value, Ok(7));
    let none = NvmeStatus::INVALID_FIELD.with_do_not_retry();
    assert_eq!(execute(&mut subsystem, asks, &[]), Err(none), "this transport has no such feature");
    let alive = set_feature(feature::KEEP_ALIVE, 1500);
    execute(&mut subsystem, alive, &[]).unwrap();
    assert_eq!(subsystem.keep_alive_time(), Some(Time::from_s(2)), "rounded up");
}

/// Base 2.0c, clause 5.2: events wait for a request, under the name that the transport gave it.
#[test]
fn events_and_deleted_namespaces_are_outcomes() {
    let mut subsystem = subsystem();
    subsystem.request_event(77).unwrap();
    assert_eq!(subsystem.next_event_due(), None);
    let notices = set_feature(feature::ASYNCHRONOUS_EVENTS, 1 << 8);
    execute(&mut subsystem, notices, &[]).unwrap();
    let delete = entry(admin::NAMESPACE_MANAGEMENT, 1, [1, 0, 0]);
    let outcome = execute(&mut subsystem, delete, &[]).unwrap().0;
    assert_eq!(outcome, AdminOutcome::Deallocate(0..1 << 30));
    let event = subsystem.next_event_due();
    assert_eq!(event, Some((77, AsynchronousEvent::NAMESPACE_CHANGED)));
    assert_eq!(subsystem.next_event_due(), None);
    let create = entry(admin::CREATE_SUBMISSION_QUEUE, 0, [0; 3]);
    let foreign = NvmeStatus::INVALID_OPCODE.with_do_not_retry();
    assert_eq!(execute(&mut subsystem, create, &[]), Err(foreign), "queues are the transport's");
}

/// Drives one I/O command to its end, as a transport does; gives the requests that the device has got, and the status.
fn drive(
    (subsystem, now): (&mut NvmeSubsystem<DelayDevice>, &mut Time),
    wanted: SubmissionEntry,
    data: &mut [u8],
) -> (Vec<Request>, NvmeStatus) {
    let mut command = NvmCommand::new(wanted.opcode, wanted.namespace_id.get());
    let mut requests = Vec::new();
    let decoded = subsystem.decode(&mut command, &wanted, &mut Memory::default());
    let mut step = decoded.unwrap_or_else(NvmStep::End);
    loop {
        let moves = step == NvmStep::Move || step == NvmStep::Begin && command.is_write();
        let mut equal = true;
        if moves {
            assert_eq!(command.data_bytes(), data.len() as u64);
            // In two pieces, as if they lay in two places.
            let half = data.len() / 2;
            for (at, part) in data.chunks_mut(half).enumerate() {
                let reads = wanted.opcode == nvm::READ;
                let host = |scratch: &mut [u8]| {
                    let (to, from) = if reads { (part, scratch) } else { (scratch, part) };
                    to.copy_from_slice(from);
                    Ok::<(), ()>(())
                };
                equal &= subsystem.move_data(&command, (at * half) as u64, half, host).unwrap();
            }
        }
        step = match step {
            NvmStep::Begin => subsystem.begin(&mut command),
            NvmStep::Submit(request) => {
                requests.push(request);
                subsystem.submit(*now, request, Token(1)).unwrap();
                let mut done = Vec::new();
                while done.is_empty() {
                    *now = subsystem.device().next_event().unwrap();
                    subsystem.device_mut().reap(*now, &mut done);
                }
                subsystem.device_done(&mut command)
            }
            NvmStep::Move if equal => NvmStep::End(NvmeStatus::SUCCESS),
            NvmStep::Move => NvmStep::End(NvmeStatus::COMPARE_FAILURE),
            NvmStep::End(status) => {
                subsystem.release(&command);
                return (requests, status);
            }
        };
    }
}

/// NVM 1.0c, clause 3.2: data go through the medium, a cache is flushed where the host asks for it, and the end of the
/// namespace is the end.
#[test]
fn io_commands_need_no_bus() {
    let (mut subsystem, mut now) = (subsystem(), Time::ZERO);
    let blocks = transfer(nvm::WRITE, 8, 2);
    let (first, bytes) = (8 * 512, 1024);
    let mut data: Vec<u8> = (0..=255).cycle().take(1024).collect();
    let written = data.clone();
    let ok = NvmeStatus::SUCCESS;
    let forced = SubmissionEntry { dword12: (blocks.dword12.get() | 1 << 30).into(), ..blocks };
    let write = Request::write(first, bytes);
    assert_eq!(drive((&mut subsystem, &mut now), blocks, &mut data), (vec![write], ok));
    let both = vec![write, Request::flush()];
    assert_eq!(drive((&mut subsystem, &mut now), forced, &mut data), (both, ok), "FUA");
    data.fill(0);
    let (requests, status) =
        drive((&mut subsystem, &mut now), transfer(nvm::READ, 8, 2), &mut data);
    assert_eq!((requests, status), (vec![Request::read(first, bytes)], ok));
    assert!(data == written);
    data[1023] ^= 1;
    let compare = transfer(nvm::COMPARE, 8, 2);
    assert_eq!(
        drive((&mut subsystem, &mut now), compare, &mut data).1,
        NvmeStatus::COMPARE_FAILURE
    );
    let zeroes = transfer(nvm::WRITE_ZEROES, 8, 2);
    assert_eq!(drive((&mut subsystem, &mut now), zeroes, &mut []).0, [Request::trim(first, bytes)]);
    drive((&mut subsystem, &mut now), transfer(nvm::READ, 8, 2), &mut data);
    assert!(data.iter().all(|byte| *byte == 0));
    let beyond = transfer(nvm::READ, (1 << 30) / 512 - 1, 2);
    let status = NvmeStatus::LBA_OUT_OF_RANGE.with_do_not_retry();
    assert_eq!(drive((&mut subsystem, &mut now), beyond, &mut data), (Vec::new(), status));
}

/// A device that keeps no data gives zeroes, and not what another command has moved.
#[test]
fn nothing_of_a_write_is_read_where_no_data_are_kept() {
    let (mut subsystem, mut now) = (subsystem_with(false), Time::ZERO);
    drive((&mut subsystem, &mut now), transfer(nvm::WRITE, 8, 2), &mut [7; 1024]);
    let mut data = [9; 1024];
    drive((&mut subsystem, &mut now), transfer(nvm::READ, 0, 2), &mut data);
    assert_eq!(data, [0; 1024]);
}
