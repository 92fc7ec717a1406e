//! The server: a device at a socket, for one client at a time.

mod interrupts;
mod maps;
mod session;
mod slot;

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use ssdyno_pci::PciDevice;
use ssdyno_serve::{Paced, ServedClock};

use crate::ProtocolError;
use crate::message::{Inbox, Received};
pub use slot::ServerCounters;
use slot::Slot;

/// A client that takes no replies for this time has left.
const REPLY_LIMIT: Duration = Duration::from_secs(5);

/// Why a device cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// There cannot be a socket of that name.
    #[error("{}: cannot create a socket there: {source}", path.display())]
    Bind {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else listens there, or there is a file.
    #[error("{}: in use; end the program that serves it, or choose another path", path.display())]
    InUse {
        /// Where.
        path: PathBuf,
    },
    /// The system does not let us wait for a client.
    #[error("cannot wait for clients: {0}")]
    Wait(io::Error),
}

/// How a client left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientEnd {
    /// It closed the connection, or died.
    Left,
    /// It sent what cannot be understood, so the connection was closed.
    Nonsense(ProtocolError),
}

/// A device at a socket.
///
/// One client at a time. When it has left, its memory and its eventfds are given up, and the device stays
/// as it was, as the protocol's specification says: who comes next resets it.
#[derive(Debug)]
pub struct VfioUserServer<D> {
    listener: UnixListener,
    path: PathBuf,
    slot: Paced<Slot<D>>,
}

impl<D: PciDevice> VfioUserServer<D> {
    /// Shows `device` at a new socket, `path`. A socket there that nobody listens at any more is
    /// replaced. The device's clock starts now; what falls due while nobody is connected happens, late, when
    /// somebody is.
    ///
    /// # Errors
    /// The path cannot be used.
    ///
    /// # Panics
    /// If the device's identity cannot be put into configuration space: a BAR that is no power of
    /// two, or none left for the MSI-X table.
    pub fn bind(path: &Path, device: D) -> Result<VfioUserServer<D>, ServerError> {
        let refused = |source| ServerError::Bind { path: path.to_owned(), source };
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                if !is_left_over(path) {
                    return Err(ServerError::InUse { path: path.to_owned() });
                }
                std::fs::remove_file(path).map_err(refused)?;
                UnixListener::bind(path).map_err(refused)?
            }
            bound => bound.map_err(refused)?,
        };
        let slot = Paced::new(Slot::new(device), ServedClock::wall());
        Ok(VfioUserServer { listener, path: path.to_owned(), slot })
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.slot.served.device
    }

    /// The device, for its own hooks.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.slot.served.device
    }

    /// What happened so far.
    pub fn counters(&self) -> ServerCounters {
        self.slot.served.counters()
    }

    /// Waits for a client and serves it until it leaves.
    ///
    /// # Errors
    /// The system does not let us wait.
    pub fn serve_client(&mut self) -> Result<ClientEnd, ServerError> {
        let (socket, _) = self.listener.accept().map_err(ServerError::Wait)?;
        socket.set_write_timeout(Some(REPLY_LIMIT)).map_err(ServerError::Wait)?;
        // Otherwise a sleep may last 50 us longer than asked. Where that cannot be had, it does.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let end = self.serve(&socket);
        self.slot.served.forget_client();
        end.map_err(|error| ServerError::Wait(error.into()))
    }

    fn serve(&mut self, socket: &UnixStream) -> Result<ClientEnd, Errno> {
        let mut inbox = Inbox::default();
        let mut agreed = false;
        loop {
            let left = self.slot.catch_up();
            let handled = match inbox.receive(socket) {
                Ok(Received::Message(message)) => {
                    let now = self.slot.now();
                    session::handle(&mut self.slot.served, now, socket, message, &mut agreed)
                }
                Ok(Received::NotYet) => {
                    sleep(socket, left)?;
                    Ok(())
                }
                Ok(Received::Closed) => return Ok(ClientEnd::Left),
                Err(error) => Err(error),
            };
            match handled {
                Ok(()) => {}
                // It left while it was being answered.
                Err(ProtocolError::Socket(error)) if is_gone(error) => return Ok(ClientEnd::Left),
                Err(error) => return Ok(ClientEnd::Nonsense(error)),
            }
        }
    }
}

impl<D> Drop for VfioUserServer<D> {
    fn drop(&mut self) {
        // Who has removed it already did our work.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Until a message comes, or the time is over.
fn sleep(socket: &UnixStream, left: Option<Duration>) -> Result<(), Errno> {
    let limit = left.and_then(|left| Timespec::try_from(left).ok());
    let mut ready = [PollFd::new(socket, PollFlags::IN)];
    match poll(&mut ready, limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A socket without a listener. Connections to a file of another kind are refused, too.
fn is_left_over(path: &Path) -> bool {
    let is_socket = |facts: std::fs::Metadata| facts.file_type().is_socket();
    if !std::fs::symlink_metadata(path).is_ok_and(is_socket) {
        return false;
    }
    UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

fn is_gone(error: i32) -> bool {
    [Errno::PIPE, Errno::CONNRESET].iter().any(|gone| gone.raw_os_error() == error)
}
