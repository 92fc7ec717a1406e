//! Messages on the socket, for both sides.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{self, Errno};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use ssdyno_spec::vfio_user::{FLAG_ERROR, FLAG_REPLY, FLAG_TYPE, HEADER_BYTES, VfioUserHeader};
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, IntoBytes};

/// Most descriptors in a message, both ways: QEMU takes no more.
pub(crate) const DESCRIPTORS_MAX: usize = 16;
/// Most data of a read or a write, in bytes: the protocol's default.
pub(crate) const DATA_BYTES_MAX: u32 = 1 << 20;
/// No message is longer: data, and more than any command needs besides.
const MESSAGE_BYTES_MAX: usize = DATA_BYTES_MAX as usize + 4096;

/// A message that cannot be decoded; the following bytes on the socket cannot be decoded either.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProtocolError {
    /// A message says that it is shorter than its header, or longer than any.
    #[error("a message claims a length of {bytes} bytes")]
    MessageBytes {
        /// What it says.
        bytes: u32,
    },
    /// A reply came where commands come, or the other way round.
    #[error("message {message_id} has flags {flags:#x}, which are not valid here")]
    Flags {
        /// Which one.
        message_id: u16,
        /// Its flags.
        flags: u32,
    },
    /// The first message did not agree on a version.
    #[error("the first message has command {command}, not VERSION")]
    NoVersion {
        /// What it has instead.
        command: u16,
    },
    /// The first message is a VERSION without room for one.
    #[error("the VERSION message has {bytes} bytes after its header; a version takes 4")]
    VersionBytes {
        /// How many there are.
        bytes: usize,
    },
    /// The capabilities of the other side are invalid.
    #[error(
        "the text after version {major}.{minor} in the VERSION message is not valid JSON (capabilities), \
         from byte {at} on"
    )]
    VersionData {
        /// Its major version.
        major: u16,
        /// Its minor version.
        minor: u16,
        /// The first byte that is not understood, counted from 1 behind the version.
        at: usize,
    },
    /// The other side takes no data in a message, so that no register can be read or written.
    #[error(
        "the VERSION message has max_data_xfer_size 0; it must be at least 1, and 1048576 is usual"
    )]
    NoData,
    /// The other side speaks another version.
    #[error("the other side speaks version {major}.{minor} of the protocol, not 0.x")]
    Version {
        /// Its major version.
        major: u16,
        /// Its minor version.
        minor: u16,
    },
    /// The other side takes nothing off the socket, or the connection broke.
    #[error("the socket gives error {0}")]
    Socket(i32),
}

impl From<Errno> for ProtocolError {
    fn from(error: Errno) -> ProtocolError {
        ProtocolError::Socket(error.raw_os_error())
    }
}

/// A message as it came.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) header: VfioUserHeader,
    /// Without the header.
    pub(crate) body: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

impl Message {
    /// The beginning of the body, and the rest; `None` if it is shorter.
    pub(crate) fn parse<T: FromBytes>(&self) -> Option<(T, &[u8])> {
        T::read_from_prefix(&self.body).ok()
    }

    pub(crate) fn is_reply(&self) -> bool {
        self.header.flags.get() & FLAG_TYPE == FLAG_REPLY
    }

    /// The error in a reply.
    pub(crate) fn error(&self) -> Option<i32> {
        let wrong = self.header.flags.get() & FLAG_ERROR != 0;
        wrong.then(|| self.header.error.get() as i32)
    }
}

/// What a look at the socket gave.
#[derive(Debug)]
pub(crate) enum Received {
    Message(Message),
    /// Nothing, or a part of a message.
    NotYet,
    /// The other side is gone.
    Closed,
}

/// A message on its way in. It never reads further than to its end, so that descriptors belong to
/// the message that they come with.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Inbox {
    /// Takes what is there, without waiting.
    pub(crate) fn receive(&mut self, socket: impl AsFd) -> Result<Received, ProtocolError> {
        loop {
            let wanted = self.wanted()?;
            if wanted == self.bytes.len() {
                return Ok(Received::Message(self.take()));
            }
            let have = self.bytes.len();
            self.bytes.resize(wanted, 0);
            let came = receive_some(socket.as_fd(), &mut self.bytes[have..], &mut self.descriptors);
            self.bytes.truncate(have + came.unwrap_or(0));
            match came {
                Ok(0) | Err(Errno::CONNRESET) => return Ok(Received::Closed),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Received::NotYet),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// How long the message is, as far as that is known.
    fn wanted(&self) -> Result<usize, ProtocolError> {
        let Ok((header, _)) = VfioUserHeader::read_from_prefix(&self.bytes) else {
            return Ok(HEADER_BYTES);
        };
        let bytes = header.message_bytes.get();
        let possible = (HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&(bytes as usize));
        if possible { Ok(bytes as usize) } else { Err(ProtocolError::MessageBytes { bytes }) }
    }

    fn take(&mut self) -> Message {
        let body = self.bytes.split_off(HEADER_BYTES);
        let header = VfioUserHeader::read_from_bytes(&self.bytes).unwrap_or_default();
        self.bytes.clear();
        Message { header, body, descriptors: std::mem::take(&mut self.descriptors) }
    }
}

fn receive_some(
    socket: BorrowedFd<'_>,
    out: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let came = recvmsg(socket, &mut [IoSliceMut::new(out)], &mut control, flags)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            // A message in pieces may bring more than one may have: they are closed.
            let room = DESCRIPTORS_MAX - descriptors.len();
            descriptors.extend(rights.take(room));
        }
    }
    Ok(came.bytes)
}

/// A header for a message with `body` bytes behind it.
pub(crate) fn header(message_id: u16, command: u16, flags: u32, body: usize) -> VfioUserHeader {
    VfioUserHeader {
        message_id: U16::new(message_id),
        command: U16::new(command),
        message_bytes: U32::new((HEADER_BYTES + body) as u32),
        flags: U32::new(flags),
        error: U32::new(0),
    }
}

/// Sends a message; waits while the socket is full, as long as its timeout says.
pub(crate) fn send(
    socket: impl AsFd,
    header: &VfioUserHeader,
    parts: [&[u8]; 2],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOMANYREFS);
    }
    let mut slices =
        [IoSlice::new(header.as_bytes()), IoSlice::new(parts[0]), IoSlice::new(parts[1])];
    let mut left = &mut slices[..];
    while left.iter().any(|slice| !slice.is_empty()) {
        match sendmsg(socket.as_fd(), left, &mut control, SendFlags::NOSIGNAL) {
            Ok(sent) => {
                IoSlice::advance_slices(&mut left, sent);
                // Descriptors travel once.
                control.clear();
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
