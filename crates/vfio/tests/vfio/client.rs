//! Our client with servers that are not as they should be.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use proptest::prelude::*;
use ssdyno_pci::{FunctionError, InterruptMode, PciFunction};
use ssdyno_spec::vfio_user::{
    self as layout, DeviceInfo, HEADER_BYTES, InterruptInfo, RegionInfo, VfioUserHeader,
    VfioUserVersion, command,
};
use ssdyno_spec::{pci, ring};
use ssdyno_vfio::{ClientError, VfioUserFunction, Waited};
use zerocopy::{FromBytes, IntoBytes};

use crate::raw::Thread;

/// A server that answers as it should until `right` answers were given, then as `wrong` says: bytes
/// instead of an answer, and the end; nothing for `None`. It ends when the client has.
fn serve(right: usize, wrong: Option<Vec<u8>>) -> (tempfile::TempDir, std::thread::JoinHandle<()>) {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut header = [0; HEADER_BYTES];
        let mut answered = 0;
        while stream.read_exact(&mut header).is_ok() {
            let asked = VfioUserHeader::read_from_bytes(&header).unwrap();
            let mut body = vec![0; asked.message_bytes.get() as usize - HEADER_BYTES];
            stream.read_exact(&mut body).unwrap();
            if asked.flags.get() & layout::FLAG_NO_REPLY != 0 {
                continue;
            }
            answered += 1;
            let sent = match &wrong {
                _ if answered <= right => stream.write_all(&answer(asked, &body)),
                Some(bytes) => {
                    // The client may have heard enough before the end.
                    let _ = stream.write_all(bytes);
                    return;
                }
                None => Ok(()),
            };
            if sent.is_err() {
                return;
            }
        }
    });
    (folder, thread)
}

/// A right answer to anything: a function with one register page and two vectors of each kind.
fn answer(asked: VfioUserHeader, body: &[u8]) -> Vec<u8> {
    let data = match asked.command.get() {
        command::VERSION => [VfioUserVersion::default().as_bytes(), b"{}\0"].concat(),
        command::DEVICE_GET_INFO => {
            let flags = (layout::DEVICE_PCI | layout::DEVICE_RESETS).into();
            let (regions, interrupts) = (layout::REGIONS.into(), layout::INTERRUPTS.into());
            DeviceInfo { flags, regions, interrupts, ..DeviceInfo::default() }.as_bytes().to_vec()
        }
        command::DEVICE_GET_REGION_INFO => {
            RegionInfo { bytes: 4096.into(), ..RegionInfo::default() }.as_bytes().to_vec()
        }
        command::DEVICE_GET_IRQ_INFO => {
            InterruptInfo { count: 2.into(), ..InterruptInfo::default() }.as_bytes().to_vec()
        }
        command::REGION_READ => [body, &[1, 2, 3, 4]].concat(),
        _ => Vec::new(),
    };
    let header = VfioUserHeader {
        message_bytes: ((HEADER_BYTES + data.len()) as u32).into(),
        flags: layout::FLAG_REPLY.into(),
        ..asked
    };
    [header.as_bytes(), &data].concat()
}

/// Answers that the client needs until it is connected: version, device, 6 regions, 3 kinds of interrupts,
/// reset.
const CONNECTED: usize = 12;

#[test]
fn what_the_server_says_is_believed() {
    let (folder, thread) = serve(usize::MAX, None);
    let mut function = VfioUserFunction::connect(&folder.path().join("socket")).unwrap();
    assert_eq!((function.bar_bytes(0), function.bar_bytes(6)), (4096, 0));
    assert_eq!(function.config_read(0), 0x0403_0201);
    assert_eq!(function.bar_read64(0, 8), 0x0403_0201_0403_0201);
    // It says nothing about descriptors, so each comes in a message of its own.
    assert_eq!(function.enable_interrupts(InterruptMode::MsiX, 5), Ok(2));
    assert!(function.why_gone().is_none());
    drop(function);
    thread.join().unwrap();
}

#[test]
fn nobody_there_is_said_with_the_place() {
    let error = VfioUserFunction::connect("/nonexistent/socket".as_ref()).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/socket"), "{error}");
}

/// A server that takes no data has no register that could be read.
#[test]
fn a_server_that_takes_no_data_is_refused() {
    let data = b"{\"capabilities\":{\"max_data_xfer_size\":0}}";
    let body = [VfioUserVersion::default().as_bytes(), data].concat();
    let header = VfioUserHeader {
        message_id: 0.into(),
        command: command::VERSION.into(),
        message_bytes: ((HEADER_BYTES + body.len()) as u32).into(),
        flags: layout::FLAG_REPLY.into(),
        error: 0.into(),
    };
    let (folder, thread) = serve(0, Some([header.as_bytes(), &body].concat()));
    let error = VfioUserFunction::connect(&folder.path().join("socket")).unwrap_err();
    thread.join().unwrap();
    assert!(error.to_string().contains("max_data_xfer_size 0"), "{error}");
}

/// A refusal is that of one access; the function stays.
#[test]
fn a_refusal_is_no_loss() {
    let server = Thread::start(1);
    let mut function = VfioUserFunction::connect(&server.socket()).unwrap();
    assert_eq!(function.enable_interrupts(InterruptMode::MsiX, 9), Ok(1));
    // Behind the end of configuration space, which the server refuses.
    assert_eq!(function.config_read(0xfffc), u32::MAX);
    assert!(function.why_gone().is_none());
    assert_eq!(function.config_read(pci::VENDOR_ID) as u16, ring::VENDOR);
    drop(function);
    server.ends();
}

#[test]
fn memory_is_checked_as_on_the_simulated_connector() {
    let server = Thread::start(1);
    let mut function = VfioUserFunction::connect(&server.socket()).unwrap();
    let first = function.dma_allocate(5000).unwrap();
    let second = function.dma_allocate(4096).unwrap();
    assert!(first.address.is_multiple_of(4096) && second.address.is_multiple_of(4096));
    assert!(second.address - first.address > 8192, "a page of nobody is between them");
    let mut zeros = [1; 5000];
    function.dma_read(&first, 0, &mut zeros);
    assert_eq!(zeros, [0; 5000]);
    function.dma_free(first);
    for wrong in [
        |f: &mut VfioUserFunction, r| f.dma_write(&r, 4093, &[0; 4]),
        |f: &mut VfioUserFunction, r| {
            f.dma_free(r);
            f.dma_free(r);
        },
    ] {
        let did = std::panic::AssertUnwindSafe(|| wrong(&mut function, second));
        assert!(std::panic::catch_unwind(did).is_err());
    }
    drop(function);
    server.ends();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// After any number of right replies the server sends invalid data or closes the connection: calls end, registers
    /// read as ones, and nothing panics.
    #[test]
    fn nonsense_of_a_server_is_a_function_that_is_gone(
        right in 0..CONNECTED + 3,
        size in prop_oneof![3 => 0_u32..200, 1 => any::<u32>()],
        flags in prop_oneof![Just(layout::FLAG_REPLY), Just(0), any::<u32>()],
        rest in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let header = VfioUserHeader {
            // No command of the client has this number.
            message_id: 9999.into(),
            message_bytes: size.into(),
            flags: flags.into(),
            ..VfioUserHeader::default()
        };
        let (folder, thread) = serve(right, Some([header.as_bytes(), &rest].concat()));
        let connected = VfioUserFunction::connect(&folder.path().join("socket"));
        prop_assert_eq!(connected.is_ok(), right >= CONNECTED);
        if let Ok(mut function) = connected {
            for _ in 0..4 {
                function.config_read(0);
            }
            prop_assert!(function.why_gone().is_some());
            prop_assert_eq!(function.bar_read32(0, 0), u32::MAX);
            function.bar_write32(0, 0, 1);
            prop_assert_eq!(function.dma_allocate(1), Err(FunctionError::Gone));
            let pin = function.enable_interrupts(InterruptMode::Pin, 1);
            prop_assert_eq!(pin, Err(FunctionError::Gone));
            prop_assert_eq!(function.wait(Duration::ZERO, &mut Vec::new()), Waited::Gone);
        }
        thread.join().unwrap();
    }
}

#[test]
fn a_silent_server_is_waited_for_as_long_as_told() {
    let (folder, thread) = serve(CONNECTED, None);
    let place = folder.path().join("socket");
    let mut function = VfioUserFunction::connect_with(&place, Duration::from_secs(1)).unwrap();
    assert_eq!(function.config_read(0), u32::MAX);
    let late = matches!(function.why_gone(), Some(ClientError::Late { .. }));
    assert!(late, "{:?}", function.why_gone());
    drop(function);
    thread.join().unwrap();
}
