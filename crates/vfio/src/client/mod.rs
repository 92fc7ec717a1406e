//! The client: a function in another process, for our drivers.

mod function;
mod memory;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use ssdyno_pci::InterruptMode;
use ssdyno_spec::vfio_user::{
    self as layout, DeviceInfo, InterruptInfo, RegionInfo, SetInterrupts, VfioUserVersion, command,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::ProtocolError;
use crate::message::{DESCRIPTORS_MAX, Inbox, Received, header, send};
use crate::version::{MINOR, VersionData, our_version_data};
use memory::Memory;

/// A server that does not reply for this time counts as gone, unless the client sets another limit.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no function, or why it is gone.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error("{}: no vfio-user server listens there: {source}", path.display())]
    Connect {
        /// Where.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
    /// The server does not serve a PCI function.
    #[error("the server does not serve a PCI function")]
    NotPci,
    /// The server has ended, or has cut the connection.
    #[error("the server is gone")]
    Closed,
    /// It has not answered in time.
    #[error("the server has not replied to command {command} for {limit:?}")]
    Late {
        /// Which.
        command: u16,
        /// For how long.
        limit: Duration,
    },
    /// It has refused something that it must not refuse.
    #[error("the server refuses command {command} with error {error}")]
    Refused {
        /// Which.
        command: u16,
        /// A number of errno(3), or 0.
        error: i32,
    },
    /// Its message is invalid.
    #[error("the server's message is invalid: {0}")]
    Protocol(#[from] ProtocolError),
    /// A reply is not the expected one, or is too short.
    #[error("the server's reply to command {command} is malformed")]
    Answer {
        /// Which.
        command: u16,
    },
    /// The system refuses us something.
    #[error("cannot get {what} from the system: {error}")]
    System {
        /// What was wanted.
        what: &'static str,
        /// Why.
        error: Errno,
    },
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waited {
    /// Interrupts came.
    Interrupted,
    /// The time is over.
    TimedOut,
    /// The function is gone.
    Gone,
}

/// A PCI function that another process serves over vfio-user.
///
/// Registers are read and written by messages, writes without waiting for an answer; memory for DMA is shared;
/// interrupts are eventfds, which [`wait`](VfioUserFunction::wait) waits for. Dropped, it leaves the
/// server.
#[derive(Debug)]
pub struct VfioUserFunction {
    socket: UnixStream,
    inbox: Inbox,
    next_id: u16,
    patience: Duration,
    bar_bytes: [u64; layout::REGION_BARS as usize],
    /// Interrupts of each kind: pin, MSI, MSI-X.
    interrupt_counts: [u32; 3],
    /// Most descriptors in a message to the server.
    descriptors_max: usize,
    memory: Memory,
    mode: Option<InterruptMode>,
    /// By vector.
    events: Vec<OwnedFd>,
    /// The pin has come and masked itself.
    pin_masked: bool,
    gone: Option<ClientError>,
}

impl VfioUserFunction {
    /// Connects to the server at `path`, and resets the function. A server that does not reply for
    /// 5 s is given up.
    ///
    /// # Errors
    /// There is no server, or it does not serve a PCI function.
    pub fn connect(path: &Path) -> Result<VfioUserFunction, ClientError> {
        VfioUserFunction::connect_with(path, PATIENCE)
    }

    /// As [`connect`](VfioUserFunction::connect), for a server that may take `patience`, more than 0,
    /// for an answer, now and later.
    ///
    /// # Errors
    /// The same.
    pub fn connect_with(path: &Path, patience: Duration) -> Result<VfioUserFunction, ClientError> {
        let refused =
            |source| ClientError::Connect { path: path.to_owned(), source: Arc::new(source) };
        let socket = UnixStream::connect(path).map_err(refused)?;
        socket.set_write_timeout(Some(patience)).map_err(refused)?;
        let mut function = VfioUserFunction {
            socket,
            inbox: Inbox::default(),
            next_id: 0,
            patience,
            bar_bytes: [0; layout::REGION_BARS as usize],
            interrupt_counts: [0; 3],
            descriptors_max: 1,
            memory: Memory::default(),
            mode: None,
            events: Vec::new(),
            pin_masked: false,
            gone: None,
        };
        function.agree()?;
        function.look()?;
        Ok(function)
    }

    /// Why the function is gone, if it is.
    pub fn why_gone(&self) -> Option<&ClientError> {
        self.gone.as_ref()
    }

    /// A function level reset: registers and configuration space are as after power-on. Memory stays
    /// shared.
    ///
    /// # Errors
    /// The server refuses, or is gone.
    pub fn reset(&mut self) -> Result<(), ClientError> {
        self.call(command::DEVICE_RESET, &[], &[], &[]).map(|_| ())
    }

    /// Waits for interrupts, at most for `limit`, and appends their vectors. One that comes several
    /// times before somebody waits comes once.
    pub fn wait(&mut self, limit: Duration, vectors: &mut Vec<u16>) -> Waited {
        self.unmask_pin();
        if self.gone.is_some() {
            return Waited::Gone;
        }
        let ready = match self.poll_events(limit) {
            Ok(ready) => ready,
            Err(error) => {
                self.gone = Some(ClientError::System { what: "waiting", error });
                return Waited::Gone;
            }
        };
        let before = vectors.len();
        for (vector, event) in self.events.iter().enumerate().filter(|(at, _)| ready[*at]) {
            if read(event, &mut [0; 8]).is_ok() {
                vectors.push(vector as u16);
            }
        }
        let came = vectors.len() > before;
        self.pin_masked |= came && self.mode == Some(InterruptMode::Pin);
        // No request is pending, so the server has left or sends invalid data.
        if ready.last() == Some(&true) && self.unasked().is_err() && !came {
            return Waited::Gone;
        }
        if came { Waited::Interrupted } else { Waited::TimedOut }
    }

    /// Which eventfds are ready, and at the end whether the socket is.
    fn poll_events(&self, limit: Duration) -> Result<Vec<bool>, Errno> {
        let interest = |event| PollFd::new(event, PollFlags::IN);
        let mut ready: Vec<PollFd<'_>> = self.events.iter().map(interest).collect();
        ready.push(PollFd::new(&self.socket, PollFlags::IN));
        match poll(&mut ready, Timespec::try_from(limit).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        Ok(ready.iter().map(|ready| !ready.revents().is_empty()).collect())
    }

    /// The driver has had its look: the pin may interrupt again.
    fn unmask_pin(&mut self) {
        if std::mem::take(&mut self.pin_masked) {
            let asked = SetInterrupts {
                flags: (layout::SET_DATA_NONE | layout::SET_ACTION_UNMASK).into(),
                count: 1.into(),
                ..set_interrupts(layout::PIN)
            };
            self.post(command::DEVICE_SET_IRQS, asked.as_bytes(), &[]);
        }
    }

    /// An unrequested message arrived.
    fn unasked(&mut self) -> Result<(), ()> {
        let error = match self.inbox.receive(&self.socket) {
            Ok(Received::NotYet) => return Ok(()),
            Ok(Received::Closed) => ClientError::Closed,
            Ok(Received::Message(message)) => {
                ClientError::Answer { command: message.header.command.get() }
            }
            Err(error) => error.into(),
        };
        self.gone = Some(error);
        Err(())
    }

    /// The first message.
    fn agree(&mut self) -> Result<(), ClientError> {
        let ours = VfioUserVersion { major: 0.into(), minor: MINOR.into() };
        let answer = self.call(command::VERSION, ours.as_bytes(), &our_version_data(), &[])?;
        let wrong = ClientError::Answer { command: command::VERSION };
        let Ok((theirs, data)) = VfioUserVersion::read_from_prefix(&answer) else {
            return Err(wrong);
        };
        if theirs.major.get() != 0 {
            let (major, minor) = (theirs.major.get(), theirs.minor.get());
            return Err(ProtocolError::Version { major, minor }.into());
        }
        let text = data.strip_suffix(&[0]).unwrap_or(data);
        let data: VersionData = match text {
            [] => VersionData::default(),
            text => serde_json::from_slice(text).map_err(|_| wrong)?,
        };
        data.check()?;
        let most = data.capabilities.max_msg_fds as usize;
        self.descriptors_max = most.clamp(1, DESCRIPTORS_MAX);
        Ok(())
    }

    /// What there is; and a fresh start.
    fn look(&mut self) -> Result<(), ClientError> {
        let asked =
            DeviceInfo { argument_bytes: bytes_of::<DeviceInfo>(), ..DeviceInfo::default() };
        let info: DeviceInfo = self.ask(command::DEVICE_GET_INFO, asked.as_bytes())?;
        if info.flags.get() & layout::DEVICE_PCI == 0 {
            return Err(ClientError::NotPci);
        }
        for index in 0..layout::REGION_BARS.min(info.regions.get()) {
            let asked = RegionInfo {
                argument_bytes: bytes_of::<RegionInfo>(),
                index: index.into(),
                ..RegionInfo::default()
            };
            let region: RegionInfo = self.ask(command::DEVICE_GET_REGION_INFO, asked.as_bytes())?;
            self.bar_bytes[index as usize] = region.bytes.get();
        }
        for index in 0..3.min(info.interrupts.get()) {
            let asked = InterruptInfo {
                argument_bytes: bytes_of::<InterruptInfo>(),
                index: index.into(),
                ..InterruptInfo::default()
            };
            let kind: InterruptInfo = self.ask(command::DEVICE_GET_IRQ_INFO, asked.as_bytes())?;
            self.interrupt_counts[index as usize] = kind.count.get();
        }
        if info.flags.get() & layout::DEVICE_RESETS != 0 {
            self.reset()?;
        }
        Ok(())
    }

    /// A command whose reply begins with a `T`.
    fn ask<T: FromBytes>(&mut self, code: u16, body: &[u8]) -> Result<T, ClientError> {
        let answer = self.call(code, body, &[], &[])?;
        let parsed = T::read_from_prefix(&answer);
        parsed.map(|(parsed, _)| parsed).map_err(|_| ClientError::Answer { command: code })
    }

    /// Sends a command and waits for its answer. A refusal leaves the function as it is; after every other
    /// error it is gone.
    fn call(
        &mut self,
        code: u16,
        body: &[u8],
        data: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Vec<u8>, ClientError> {
        if self.gone.is_some() {
            return Err(ClientError::Closed);
        }
        let called = self.exchange(code, body, data, descriptors);
        match called {
            Err(error @ ClientError::Refused { .. }) => Err(error),
            Err(error) => {
                self.gone = Some(error.clone());
                Err(error)
            }
            answer => answer,
        }
    }

    fn exchange(
        &mut self,
        code: u16,
        body: &[u8],
        data: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Vec<u8>, ClientError> {
        let start = Instant::now();
        let id = self.send(code, 0, [body, data], descriptors)?;
        loop {
            match self.inbox.receive(&self.socket)? {
                Received::Closed => return Err(ClientError::Closed),
                Received::Message(answer) => {
                    let header = &answer.header;
                    let due = answer.is_reply() && header.message_id.get() == id;
                    return match answer.error() {
                        _ if !due || header.command.get() != code => {
                            Err(ClientError::Answer { command: code })
                        }
                        Some(error) => Err(ClientError::Refused { command: code, error }),
                        None => Ok(answer.body),
                    };
                }
                Received::NotYet => {}
            }
            let left = self.patience.saturating_sub(start.elapsed());
            let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut ready, Timespec::try_from(left).ok().as_ref()) {
                Ok(0) if left.is_zero() => {
                    return Err(ClientError::Late { command: code, limit: self.patience });
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(ProtocolError::from(error).into()),
            }
        }
    }

    /// Sends a command without waiting for a reply.
    fn post(&mut self, code: u16, body: &[u8], data: &[u8]) {
        if self.gone.is_none()
            && let Err(error) = self.send(code, layout::FLAG_NO_REPLY, [body, data], &[])
        {
            self.gone = Some(error);
        }
    }

    fn send(
        &mut self,
        code: u16,
        flags: u32,
        parts: [&[u8]; 2],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<u16, ClientError> {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let header = header(id, code, flags, parts[0].len() + parts[1].len());
        match send(&self.socket, &header, parts, descriptors) {
            Ok(()) => Ok(id),
            Err(Errno::PIPE | Errno::CONNRESET) => Err(ClientError::Closed),
            Err(Errno::AGAIN) => Err(ClientError::Late { command: code, limit: self.patience }),
            Err(error) => Err(ProtocolError::from(error).into()),
        }
    }
}

fn bytes_of<T>() -> zerocopy::little_endian::U32 {
    (size_of::<T>() as u32).into()
}

fn set_interrupts(index: u32) -> SetInterrupts {
    SetInterrupts {
        argument_bytes: bytes_of::<SetInterrupts>(),
        index: index.into(),
        ..SetInterrupts::default()
    }
}
