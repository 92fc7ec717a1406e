//! A client of a few lines that says whatever a test wants, and a server in a thread.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use ssdyno_controller_ring::{RingCard, RingConfig};
use ssdyno_spec::vfio_user::{
    self as layout, HEADER_BYTES, RegionAccess, VfioUserHeader, VfioUserVersion, command,
};
use ssdyno_vfio::{ClientEnd, ServerCounters, VfioUserServer};
use tempfile::TempDir;
use zerocopy::{FromBytes, IntoBytes};

/// Longest time that the server may take for anything.
const HANGS: Duration = Duration::from_secs(30);

pub(crate) const ZC706: &str = include_str!("../../../../presets/devices/zc706-ring.toml");

/// A ring card behind a server that serves `clients` of them, one after another.
pub(crate) struct Thread {
    folder: TempDir,
    thread: JoinHandle<(Vec<ClientEnd>, ServerCounters)>,
}

impl Thread {
    pub(crate) fn start(clients: usize) -> Thread {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let config = RingConfig::parse(ZC706).unwrap();
        let mut server = VfioUserServer::bind(&socket, RingCard::new(&config, 1).unwrap()).unwrap();
        let thread = std::thread::spawn(move || {
            let ends = (0..clients).map(|_| server.serve_client().unwrap()).collect();
            (ends, server.counters())
        });
        Thread { folder, thread }
    }

    pub(crate) fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("socket")
    }

    /// A connection on which nothing was said.
    pub(crate) fn connect(&self) -> Raw {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        stream.set_write_timeout(Some(HANGS)).unwrap();
        Raw { stream, id: 0 }
    }

    /// A connection on which a version was agreed on.
    pub(crate) fn agreed(&self) -> Raw {
        let mut raw = self.connect();
        let version = VfioUserVersion { major: 0.into(), minor: 7.into() };
        let mut body = version.as_bytes().to_vec();
        body.extend(b"{\"capabilities\":{\"max_msg_fds\":8,\"migration\":{\"pgsize\":4096}}}\0");
        let answer = raw.call(command::VERSION, &body).unwrap();
        let (version, _) = VfioUserVersion::read_from_prefix(&answer).unwrap();
        assert_eq!((version.major.get(), version.minor.get()), (0, 1));
        raw
    }

    /// How each client left.
    pub(crate) fn ends(self) -> (Vec<ClientEnd>, ServerCounters) {
        self.thread.join().expect("the server does not panic")
    }
}

/// A connection.
pub(crate) struct Raw {
    pub(crate) stream: UnixStream,
    id: u16,
}

impl Raw {
    /// Sends bytes as they are; false where the server has closed.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> bool {
        match self.stream.write_all(bytes) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("the server hangs"),
            Err(_) => false,
        }
    }

    /// The same with descriptors, without waiting; false where not all of it was taken.
    pub(crate) fn bytes_with(&mut self, bytes: &[u8], files: &[OwnedFd]) -> bool {
        let files: Vec<BorrowedFd<'_>> = files.iter().map(std::os::fd::AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let sent = sendmsg(&self.stream, &[IoSlice::new(bytes)], &mut control, flags);
        sent.is_ok_and(|sent| sent == bytes.len())
    }

    /// Sends a command with descriptors.
    pub(crate) fn send(&mut self, code: u16, flags: u32, body: &[u8], files: &[BorrowedFd<'_>]) {
        self.id += 1;
        let header = VfioUserHeader {
            message_id: self.id.into(),
            command: code.into(),
            message_bytes: ((HEADER_BYTES + body.len()) as u32).into(),
            flags: flags.into(),
            error: 0.into(),
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(files)));
        }
        let slices = [IoSlice::new(header.as_bytes()), IoSlice::new(body)];
        sendmsg(&self.stream, &slices, &mut control, SendFlags::NOSIGNAL).unwrap();
    }

    /// The next message: its header and the rest; `None` where the server has closed.
    pub(crate) fn receive(&mut self) -> Option<(VfioUserHeader, Vec<u8>)> {
        let mut header = [0; HEADER_BYTES];
        match self.stream.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("the server hangs"),
            Err(_) => return None,
        }
        let header = VfioUserHeader::read_from_bytes(&header).unwrap();
        let mut body = vec![0; header.message_bytes.get() as usize - HEADER_BYTES];
        self.stream.read_exact(&mut body).unwrap();
        Some((header, body))
    }

    /// A command and its answer, or the error in it.
    pub(crate) fn call_with(
        &mut self,
        code: u16,
        body: &[u8],
        files: &[OwnedFd],
    ) -> Result<Vec<u8>, i32> {
        let files: Vec<BorrowedFd<'_>> = files.iter().map(std::os::fd::AsFd::as_fd).collect();
        self.send(code, 0, body, &files);
        let (header, answer) = self.receive().expect("the server answers");
        assert_eq!((header.message_id.get(), header.command.get()), (self.id, code));
        if header.flags.get() & layout::FLAG_ERROR == 0 {
            assert_eq!((header.flags.get(), header.error.get()), (layout::FLAG_REPLY, 0));
            return Ok(answer);
        }
        assert!(answer.is_empty(), "an error is a header alone");
        Err(header.error.get() as i32)
    }

    pub(crate) fn call(&mut self, code: u16, body: &[u8]) -> Result<Vec<u8>, i32> {
        self.call_with(code, body, &[])
    }

    /// Reads a part of a region.
    pub(crate) fn read(&mut self, region: u32, offset: u64, count: u32) -> Result<Vec<u8>, i32> {
        let asked =
            RegionAccess { offset: offset.into(), region: region.into(), count: count.into() };
        let answer = self.call(command::REGION_READ, asked.as_bytes())?;
        assert_eq!(&answer[..size_of::<RegionAccess>()], asked.as_bytes());
        assert_eq!(answer.len(), size_of::<RegionAccess>() + count as usize);
        Ok(answer[size_of::<RegionAccess>()..].to_vec())
    }

    /// Writes a part of a region.
    pub(crate) fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<(), i32> {
        let count = (data.len() as u32).into();
        let asked = RegionAccess { offset: offset.into(), region: region.into(), count };
        let body = [asked.as_bytes(), data].concat();
        self.call(command::REGION_WRITE, &body).map(|_| ())
    }
}
