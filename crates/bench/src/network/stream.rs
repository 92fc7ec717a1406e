//! Sockets: TCP and local ones, with a moment at which waiting ends.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::uri::Address;

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Connects, until `deadline` at the latest; of the addresses of a host the first that answers.
    pub(crate) fn connect(address: &Address, deadline: Instant) -> io::Result<Stream> {
        match address {
            Address::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
            Address::Tcp { host, port } => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, left(deadline)?) {
                        Ok(stream) => {
                            // A request must not wait for the response to the previous request.
                            stream.set_nodelay(true)?;
                            return Ok(Stream::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    /// Whether calls return at once where they would have to wait.
    pub(crate) fn set_nonblocking(&self, yes: bool) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(yes),
            Stream::Unix(stream) => stream.set_nonblocking(yes),
        }
    }

    /// Whether there is something to read: bytes, or the end of the connection.
    pub(crate) fn has_arrived(&self) -> bool {
        let mut sockets = [PollFd::new(self, PollFlags::IN)];
        // A socket that cannot be asked is of no use: reading tells.
        poll(&mut sockets, Some(&Timespec::default())) != Ok(0)
    }

    /// Ends both directions: whoever waits for it returns.
    pub(crate) fn shut_down(&self) {
        // It may have ended already.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(std::net::Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(std::net::Shutdown::Both),
        };
    }

    fn set_timeouts(&self, wait: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(Some(wait))?;
                stream.set_write_timeout(Some(wait))
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(Some(wait))?;
                stream.set_write_timeout(Some(wait))
            }
        }
    }

    /// Fills `bytes`, waiting until `deadline` at most. The socket must be blocking.
    pub(crate) fn read_until(&mut self, bytes: &mut [u8], deadline: Instant) -> io::Result<()> {
        let mut at = 0;
        while at < bytes.len() {
            // The timeout of a socket counts from each call. It is set again to the remaining time,
            // so that a server that sends one byte at a time cannot stretch the deadline.
            self.set_timeouts(left(deadline)?)?;
            match self.read(&mut bytes[at..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => at += read,
                Err(error) => waited(error)?,
            }
        }
        Ok(())
    }

    /// Sends all of `bytes`, waiting until `deadline` at most. The socket must be blocking.
    pub(crate) fn write_until(&mut self, bytes: &[u8], deadline: Instant) -> io::Result<()> {
        let mut at = 0;
        while at < bytes.len() {
            self.set_timeouts(left(deadline)?)?;
            match self.write(&bytes[at..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => at += sent,
                Err(error) => waited(error)?,
            }
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(bytes),
            Stream::Unix(stream) => stream.read(bytes),
        }
    }

    pub(crate) fn read_vectored(&mut self, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read_vectored(parts),
            Stream::Unix(stream) => stream.read_vectored(parts),
        }
    }

    pub(crate) fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write_vectored(parts),
            Stream::Unix(stream) => stream.write_vectored(parts),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

/// The time until `deadline`, which is not over.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// A wait that ended without anything is not an error: whether there is time left is asked next.
fn waited(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => Ok(()),
        _ => Err(error),
    }
}
