//! Sockets: TCP and local ones, with a moment at which waiting ends.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::uri::Address;

/// A connected socket, TCP or local. The methods that are used here are calls on the descriptor, and work for both.
#[derive(Debug)]
pub(crate) struct Stream(pub(crate) TcpStream);

impl Stream {
    /// Connects, until `deadline` at the latest; of the addresses of a host the first that answers.
    pub(crate) fn connect(address: &Address, deadline: Instant) -> io::Result<Stream> {
        match address {
            Address::Unix(path) => UnixStream::connect(path).map(Stream::from),
            Address::Tcp { host, port } => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, left(deadline)?) {
                        Ok(stream) => {
                            // A request must not wait for the response to the previous request.
                            stream.set_nodelay(true)?;
                            return Ok(Stream(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
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
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }

    fn set_timeouts(&self, wait: Duration) -> io::Result<()> {
        self.0.set_read_timeout(Some(wait))?;
        self.0.set_write_timeout(Some(wait))
    }

    /// Fills `bytes`, waiting until `deadline` at most. The socket must be blocking.
    pub(crate) fn read_until(&mut self, bytes: &mut [u8], deadline: Instant) -> io::Result<()> {
        let mut at = 0;
        while at < bytes.len() {
            // The timeout of a socket counts from each call. It is set again to the remaining time,
            // so that a server that sends one byte at a time cannot stretch the deadline.
            self.set_timeouts(left(deadline)?)?;
            match self.0.read(&mut bytes[at..]) {
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
            match self.0.write(&bytes[at..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => at += sent,
                Err(error) => waited(error)?,
            }
        }
        Ok(())
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Stream {
        Stream(OwnedFd::from(stream).into())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
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
