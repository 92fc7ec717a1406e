//! The server, message by message: the messages of other clients, and invalid ones.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use ssdyno_pci::PciFunction;
use ssdyno_spec::vfio_user::{
    self as layout, DeviceInfo, DmaMap, DmaUnmap, HEADER_BYTES, InterruptInfo, RegionInfo,
    SetInterrupts, command,
};
use ssdyno_spec::{pci, ring};
use ssdyno_vfio::{
    ClientEnd, ProtocolError, ServerError, VfioUserFunction, VfioUserServer, Waited,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::raw::{Raw, Thread};

const INVALID: Result<Vec<u8>, i32> = Err(Errno::INVAL.raw_os_error());

fn region(raw: &mut Raw, index: u32) -> Result<u64, i32> {
    let asked = RegionInfo { index: index.into(), ..RegionInfo::default() };
    let answer = raw.call(command::DEVICE_GET_REGION_INFO, asked.as_bytes())?;
    Ok(RegionInfo::read_from_bytes(&answer).unwrap().bytes.get())
}

fn interrupts(raw: &mut Raw, index: u32) -> Result<u32, i32> {
    let asked = InterruptInfo { index: index.into(), ..InterruptInfo::default() };
    let answer = raw.call(command::DEVICE_GET_IRQ_INFO, asked.as_bytes())?;
    Ok(InterruptInfo::read_from_bytes(&answer).unwrap().count.get())
}

#[test]
fn a_client_learns_what_there_is() {
    let server = Thread::start(1);
    let mut raw = server.agreed();
    let answer = raw.call(command::DEVICE_GET_INFO, DeviceInfo::default().as_bytes()).unwrap();
    let info = DeviceInfo::read_from_bytes(&answer).unwrap();
    assert_eq!(info.flags.get(), layout::DEVICE_PCI | layout::DEVICE_RESETS);
    assert_eq!((info.regions.get(), info.interrupts.get()), (9, 5));
    let sizes: Vec<_> = (0..10).map(|index| region(&mut raw, index)).collect();
    let invalid = Err(Errno::INVAL.raw_os_error());
    // Registers, the MSI-X table, configuration space.
    let expected = [4096, 0, 4096, 0, 0, 0, 0, 4096, 0].map(Ok);
    assert_eq!((&sizes[..9], sizes[9]), (&expected[..], invalid));
    let counts: Vec<_> = (0..6).map(|index| interrupts(&mut raw, index)).collect();
    assert_eq!(counts, [Ok(1), Ok(1), Ok(1), Ok(0), Ok(0), Err(Errno::INVAL.raw_os_error())]);
    drop(raw);
    assert_eq!(server.ends().0, [ClientEnd::Left]);
}

/// Guests read bytes of configuration space, and some split registers.
#[test]
fn accesses_may_be_split_and_unaligned() {
    let server = Thread::start(1);
    let mut raw = server.agreed();
    assert_eq!(raw.read(layout::REGION_CONFIG, 1, 2), Ok(vec![0x10, 0x44]));
    raw.write(layout::REGION_CONFIG, u64::from(pci::COMMAND), &[pci::COMMAND_MEMORY as u8])
        .unwrap();
    assert_eq!(raw.read(0, 0, 8), Ok(b"RING\x01\0\0\0".to_vec()));
    // A register byte by byte, and two with one write from the middle of the first.
    for (at, byte) in [0x11, 0x22, 0x33, 0x44].into_iter().enumerate() {
        raw.write(0, u64::from(ring::RING_LOW) + at as u64, &[byte]).unwrap();
    }
    assert_eq!(raw.read(0, ring::RING_LOW.into(), 4), Ok(vec![0x11, 0x22, 0x33, 0x44]));
    raw.write(0, u64::from(ring::RING_LOW) + 2, &[0xaa, 0xbb, 0xcc, 0xdd]).unwrap();
    let both = raw.read(0, ring::RING_LOW.into(), 8);
    assert_eq!(both, Ok(vec![0x11, 0x22, 0xaa, 0xbb, 0xcc, 0xdd, 0, 0]));
    // The MSI-X table is memory, what is behind it are zeros.
    raw.write(2, 0, &[7; 20]).unwrap();
    assert_eq!(raw.read(2, 8, 16), Ok([[7; 8], [0; 8]].concat()));
    for (region, offset, count) in [(0, 4093, 4), (0, u64::MAX, 4), (1, 0, 1), (9, 0, 1), (8, 0, 1)]
    {
        assert_eq!(raw.read(region, offset, count), INVALID, "{count} at {offset} of {region}");
    }
    // More data is promised than there is.
    let short = [&0_u64.to_le_bytes()[..], &0_u32.to_le_bytes(), &64_u32.to_le_bytes()].concat();
    assert_eq!(raw.call(command::REGION_WRITE, &short), INVALID);
    raw.call(command::DEVICE_RESET, &[]).unwrap();
    assert_eq!(raw.read(0, 0, 4), Ok(vec![0xff; 4]), "memory is not decoded after a reset");
    drop(raw);
    server.ends();
}

fn file(pages: u64) -> OwnedFd {
    let file = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, pages * 4096).unwrap();
    file
}

fn map(address: u64, pages: u64) -> DmaMap {
    let bytes = (pages * 4096).into();
    DmaMap { address: address.into(), bytes, flags: 3.into(), ..DmaMap::default() }
}

#[test]
fn memory_comes_with_a_descriptor_or_without() {
    let server = Thread::start(1);
    let mut raw = server.agreed();
    let exists = Err(Errno::EXIST.raw_os_error());
    assert_eq!(raw.call_with(command::DMA_MAP, map(0, 2).as_bytes(), &[file(2)]), Ok(Vec::new()));
    assert_eq!(raw.call(command::DMA_MAP, map(0x2000, 1).as_bytes()), Ok(Vec::new()));
    assert_eq!(raw.call(command::DMA_MAP, map(0x1000, 1).as_bytes()), exists);
    let two = [file(1), file(1)];
    assert_eq!(raw.call_with(command::DMA_MAP, map(0x8000, 1).as_bytes(), &two), INVALID);
    // A message shorter than its stated length, and a descriptor too many for a request that needs
    // none.
    assert_eq!(raw.call_with(command::DMA_MAP, map(0x8000, 2).as_bytes(), &[file(1)]), INVALID);
    assert_eq!(raw.call_with(command::DEVICE_RESET, &[], &[file(1)]), INVALID);
    let asked = DmaUnmap { bytes: 0x3000.into(), ..DmaUnmap::default() };
    let answer = raw.call(command::DMA_UNMAP, asked.as_bytes());
    assert_eq!(answer, Ok(asked.as_bytes().to_vec()));
    assert_eq!(raw.call(command::DMA_UNMAP, asked.as_bytes()), Err(Errno::NOENT.raw_os_error()));
    drop(raw);
    server.ends();
}

#[test]
fn interrupts_are_set_and_taken_back() {
    let server = Thread::start(1);
    let mut raw = server.agreed();
    let on = layout::SET_DATA_EVENTFD | layout::SET_ACTION_TRIGGER;
    let off = layout::SET_DATA_NONE | layout::SET_ACTION_TRIGGER;
    let mut set = |flags: u32, count: u32, files: usize| {
        let asked = SetInterrupts {
            flags: flags.into(),
            index: layout::MSIX.into(),
            count: count.into(),
            ..SetInterrupts::default()
        };
        let event = || eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let files: Vec<_> = (0..files).map(|_| event()).collect();
        let answer = raw.call_with(command::DEVICE_SET_IRQS, asked.as_bytes(), &files);
        let control = raw.read(layout::REGION_CONFIG, 0x73, 1).unwrap()[0];
        (answer, control & 0x80 != 0)
    };
    let fine = || Ok(Vec::new());
    // A set without descriptors is one, too; configuration space says that they are on.
    assert_eq!(set(on, 1, 0), (fine(), true));
    assert_eq!(set(off, 0, 0), (fine(), false));
    assert_eq!(set(on, 1, 1), (fine(), true));
    assert_eq!(set(on, 1, 2), (INVALID, true));
    assert_eq!(set(on, 2, 2), (INVALID, true));
    assert_eq!(set(on, 1, 20), (INVALID, true));
    assert_eq!(set(off, 0, 0), (fine(), false));
    drop(raw);
    server.ends();
}

/// An error comes as the reply, and then the end.
fn refused(raw: &mut Raw, code: u16) {
    let (header, body) = raw.receive().expect("a reply before the end");
    assert_eq!(header.flags.get(), layout::FLAG_REPLY | layout::FLAG_ERROR);
    assert_eq!((header.command.get(), header.message_id.get()), (code, 1));
    assert_eq!((header.error.get() as i32, body.len()), (Errno::INVAL.raw_os_error(), 0));
    assert_eq!(raw.receive(), None);
}

#[test]
fn who_does_not_begin_with_a_version_is_sent_away() {
    let server = Thread::start(4);
    let mut raw = server.connect();
    raw.send(command::DEVICE_RESET, 0, &[], &[]);
    refused(&mut raw, command::DEVICE_RESET);
    let mut raw = server.connect();
    raw.send(command::VERSION, 0, &[1, 0, 0, 0], &[]);
    refused(&mut raw, command::VERSION);
    let mut raw = server.agreed();
    raw.send(command::DEVICE_RESET, layout::FLAG_REPLY, &[], &[]);
    assert_eq!(raw.receive(), None);
    // A client that wants no reply gets none.
    let mut raw = server.connect();
    raw.send(command::VERSION, layout::FLAG_NO_REPLY, &[1, 0, 0, 0], &[]);
    assert_eq!(raw.receive(), None);
    let ends = server.ends().0;
    let code = command::DEVICE_RESET;
    assert_eq!(ends[0], ClientEnd::Nonsense(ProtocolError::NoVersion { command: code }));
    assert_eq!(ends[1], ClientEnd::Nonsense(ProtocolError::Version { major: 1, minor: 0 }));
    assert!(matches!(ends[2], ClientEnd::Nonsense(ProtocolError::Flags { .. })), "{:?}", ends[2]);
}

/// A VERSION message that cannot be read is not another version: the error names the broken part.
#[test]
fn a_broken_version_message_is_told_as_such() {
    let server = Thread::start(7);
    for body in [
        &[0, 0, 1][..],
        b"\0\0\x01\0{\"capabilities\":{\"max_msg_fds\":}}\0",
        b"\0\0\x01\0{\n\"capabilities\": 7}\0",
        b"\x01\0\0\0}",
        b"\0\0\x01\0{\"capabilities\":{\"max_data_xfer_size\":0}}\0",
    ] {
        let mut raw = server.connect();
        raw.send(command::VERSION, 0, body, &[]);
        refused(&mut raw, command::VERSION);
    }
    // No capabilities are valid, and so are very few.
    for body in [&[0, 0, 1, 0][..], b"\0\0\x01\0{\"capabilities\":{\"max_data_xfer_size\":1}}\0"] {
        let mut raw = server.connect();
        raw.send(command::VERSION, 0, body, &[]);
        let (header, _) = raw.receive().unwrap();
        assert_eq!(header.flags.get(), layout::FLAG_REPLY);
    }
    let ends = server.ends().0;
    let broken = |at| ClientEnd::Nonsense(ProtocolError::VersionData { major: 0, minor: 1, at });
    assert_eq!(ends[0], ClientEnd::Nonsense(ProtocolError::VersionBytes { bytes: 3 }));
    assert_eq!(ends[1], broken(32));
    assert!(
        matches!(ends[2], ClientEnd::Nonsense(ProtocolError::VersionData { .. })),
        "{:?}",
        ends[2]
    );
    assert_eq!(ends[3], ClientEnd::Nonsense(ProtocolError::Version { major: 1, minor: 0 }));
    assert_eq!(ends[4], ClientEnd::Nonsense(ProtocolError::NoData));
    assert_eq!((&ends[5], &ends[6]), (&ClientEnd::Left, &ClientEnd::Left));
    let ClientEnd::Nonsense(error) = ends[1] else { unreachable!() };
    assert!(error.to_string().contains("from byte 32 on"), "{error}");
    assert!(!error.to_string().contains("another version"), "{error}");
}

/// One that stops in the middle of a message hinders nobody: the server goes on when it is gone.
#[test]
fn half_a_message_is_no_message() {
    let server = Thread::start(3);
    let mut raw = server.agreed();
    assert!(raw.bytes(&[1, 0, 13]));
    drop(raw);
    let mut raw = server.agreed();
    // A header whose size cannot be.
    assert!(raw.bytes(&[1, 0, 13, 0, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!(raw.receive(), None);
    // Ours comes last, and finds the device as it should be.
    let mut function = VfioUserFunction::connect(&server.socket()).unwrap();
    assert_eq!(function.config_read(pci::VENDOR_ID) as u16, ring::VENDOR);
    drop(function);
    let ends = server.ends().0;
    let nonsense = ClientEnd::Nonsense(ProtocolError::MessageBytes { bytes: 15 });
    assert_eq!(ends, [ClientEnd::Left, nonsense, ClientEnd::Left]);
}

#[test]
fn a_place_that_is_taken_is_left_alone() {
    let config = ssdyno_controller_ring::RingConfig::parse(crate::raw::ZC706).unwrap();
    let card = || ssdyno_controller_ring::RingCard::new(&config, 1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    // A file of somebody else's.
    let place = folder.path().join("file");
    std::fs::write(&place, "mine").unwrap();
    let refused = VfioUserServer::bind(&place, card());
    assert!(matches!(refused, Err(ServerError::InUse { .. })));
    assert_eq!(std::fs::read(&place).unwrap(), b"mine");
    // A living server, and a socket that a dead one has left.
    let place = folder.path().join("socket");
    let first = VfioUserServer::bind(&place, card()).unwrap();
    assert!(matches!(VfioUserServer::bind(&place, card()), Err(ServerError::InUse { .. })));
    drop(first);
    assert!(!place.exists());
    drop(std::os::unix::net::UnixListener::bind(&place).unwrap());
    assert!(VfioUserServer::bind(&place, card()).is_ok());
}

/// A wait for nothing ends by itself.
#[test]
fn waits_end() {
    let server = Thread::start(1);
    let mut function = VfioUserFunction::connect(&server.socket()).unwrap();
    let mut vectors = Vec::new();
    let start = Instant::now();
    assert_eq!(function.wait(Duration::from_millis(20), &mut vectors), Waited::TimedOut);
    assert!(start.elapsed() >= Duration::from_millis(20) && vectors.is_empty());
    drop(function);
    server.ends();
}

/// Parts of messages, so that garbled ones get further than to the first look.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let small = prop::sample::select(vec![0_u32, 1, 2, 4, 7, 8, 32, 4096, 0x8000_0000, u32::MAX]);
    let word = prop_oneof![3 => small, 1 => any::<u32>()];
    let words = prop::collection::vec(word, 0..12);
    let words = words.prop_map(|words| words.into_iter().flat_map(u32::to_le_bytes).collect());
    prop_oneof![4 => words, 1 => prop::collection::vec(any::<u8>(), 0..80)]
}

/// A message: command, flags, what its size is wrong by, descriptors, body.
type Garbled = (u16, u32, i32, usize, Vec<u8>);

fn garbled() -> impl Strategy<Value = Garbled> {
    let code = prop_oneof![8 => 1_u16..18, 1 => any::<u16>()];
    let flags = prop_oneof![6 => Just(0), 2 => Just(layout::FLAG_NO_REPLY), 1 => any::<u32>()];
    let wrong = prop_oneof![12 => Just(0), 1 => -20_i32..20, 1 => any::<i32>()];
    (code, flags, wrong, 0_usize..3, body())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// For any messages of a client, the server neither panics nor hangs, and serves the next
    /// client.
    #[test]
    fn garbled_messages_do_no_harm(messages in prop::collection::vec(garbled(), 1..24), polite in any::<bool>()) {
        let server = Thread::start(2);
        let mut raw = if polite { server.agreed() } else { server.connect() };
        raw.stream.set_nonblocking(true).unwrap();
        for (code, flags, wrong, files, body) in messages {
            let bytes = (HEADER_BYTES + body.len()) as u32;
            let mut message = layout::VfioUserHeader {
                message_id: 1.into(),
                command: code.into(),
                message_bytes: bytes.wrapping_add(wrong as u32).into(),
                flags: flags.into(),
                error: 0.into(),
            }.as_bytes().to_vec();
            message.extend(&body);
            let files: Vec<_> = (0..files).map(|_| file(1)).collect();
            if !raw.bytes_with(&message, &files) {
                break;
            }
        }
        drop(raw);
        let mut function = VfioUserFunction::connect(&server.socket()).unwrap();
        prop_assert_eq!(function.config_read(pci::VENDOR_ID) as u16, ring::VENDOR);
        drop(function);
        let (ends, counters) = server.ends();
        prop_assert_eq!(ends.len(), 2);
        prop_assert_eq!(counters.dma_bytes_to_host, 0);
    }
}
