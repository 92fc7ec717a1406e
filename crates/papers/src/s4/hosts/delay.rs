//! The storage of figure 7 on real sockets: an NBD server whose device takes the same time for each request, one request at a
//! time, in the order of arrival; any number may wait. Reads give zeroes; there is nothing to write to.
//!
//! It asks clock and sockets all the time instead of sleeping, since a sleep takes longer than the shorter of the delays. How late
//! its answers are is counted.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ssdyno_session::Failure;
use ssdyno_spec::nbd::{
    CMD_DISCONNECT, CMD_READ, CMD_WRITE, ERR_UNSUPPORTED, FIXED_NEWSTYLE, HAS_FLAGS, INFO_EXPORT,
    MAGIC, NO_ZEROES, OPT_EXPORT_NAME, OPT_GO, OPTION_BYTES, OPTION_MAGIC, OPTION_REPLY_MAGIC,
    READ_ONLY, REP_ACK, REP_INFO, REPLY_MAGIC, REQUEST_BYTES, REQUEST_MAGIC,
};

use super::cpu::Cores;
use super::lab::{TARGET_ADDRESS, enter};

use super::tools::refused;

/// The port.
pub(super) const PORT: u16 = 10_810;

/// Size of the export.
const EXPORT_BYTES: u64 = 1 << 30;

/// The longest request that is served.
const REQUEST_BYTES_MAX: u32 = 1 << 20;

/// How often it looks for new connections.
const ACCEPT_EVERY: Duration = Duration::from_millis(1);

/// After so long without a request it sleeps between looks.
const IDLE_AFTER: Duration = Duration::from_millis(20);

/// Flags of the handshake and of the export.
const HANDSHAKE_FLAGS: u16 = FIXED_NEWSTYLE | NO_ZEROES;
const EXPORT_FLAGS: u16 = HAS_FLAGS | READ_ONLY;

// Errors of replies, as Linux numbers them.
const EPERM: u32 = 1;
const EINVAL: u32 = 22;

/// How late answers were.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Lateness {
    pub(super) answers: u64,
    sum: Duration,
    pub(super) most: Duration,
}

impl Lateness {
    fn add(&mut self, late: Duration) {
        self.answers += 1;
        self.sum += late;
        self.most = self.most.max(late);
    }

    /// In us.
    pub(super) fn mean_us(&self) -> f64 {
        self.sum.as_secs_f64() * 1e6 / self.answers.max(1) as f64
    }
}

/// The server, on a thread of its own. Dropped, it is stopped.
pub(super) struct DelayServer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Lateness>>,
}

impl DelayServer {
    /// Listens in `namespace`, with requests of `delay`.
    pub(super) fn start(
        namespace: &str,
        cores: &Cores,
        delay: Duration,
    ) -> Result<DelayServer, Failure> {
        let namespace = namespace.to_owned();
        DelayServer::on(cores, delay, move || {
            enter(&namespace)?;
            TcpListener::bind((TARGET_ADDRESS, PORT)).map_err(|error| {
                Failure::failed(format!("the server with a delay cannot listen: {error}"))
            })
        })
    }

    fn on(
        cores: &Cores,
        delay: Duration,
        listen: impl FnOnce() -> Result<TcpListener, Failure> + Send + 'static,
    ) -> Result<DelayServer, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        // The thread enters the namespace by itself: a network namespace belongs to a thread. The
        // caller stays outside and keeps its own network.
        let stopped = Arc::clone(&stop);
        let (ready, is_ready) = mpsc::channel();
        let serve = move || {
            let listener = listen().and_then(|listener| {
                let nonblocking = listener.set_nonblocking(true);
                nonblocking.map_err(|error| {
                    Failure::failed(format!("cannot wait on a socket: {error}"))
                })?;
                Ok(listener)
            });
            let (listener, told) = match listener {
                Ok(listener) => (Some(listener), Ok(())),
                Err(error) => (None, Err(error)),
            };
            // Who started it waits for that.
            let _ = ready.send(told);
            let serve = |listener| Server::new(listener, delay).serve(&stopped);
            listener.map(serve).unwrap_or_default()
        };
        let spawn = || std::thread::Builder::new().name("delay".to_owned()).spawn(serve);
        // A thread begins on the cores of who starts it.
        let thread = cores.on_target(spawn);
        let thread =
            thread.map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
        let server = DelayServer { stop, thread: Some(thread) };
        match is_ready.recv() {
            Ok(told) => told.map(|()| server),
            Err(_) => Err(refused("the server with a delay ended", "please report this")),
        }
    }

    /// Stops it; how late it was.
    pub(super) fn end(mut self) -> Lateness {
        self.join()
    }

    fn join(&mut self) -> Lateness {
        // The order of this store with others does not matter: the join afterwards waits for the
        // end of the thread, and the thread reads the flag in every turn.
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for DelayServer {
    fn drop(&mut self) {
        self.join();
    }
}

/// What a connection expects next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Flags,
    Options,
    Requests,
}

struct Connection {
    /// Unlike places in a list it stays when another connection ends.
    number: u64,
    stream: TcpStream,
    phase: Phase,
    input: Vec<u8>,
    output: Vec<u8>,
    is_over: bool,
}

/// A request in the device.
struct Waiting {
    connection: u64,
    cookie: [u8; 8],
    length: u32,
    due: Instant,
}

struct Server {
    listener: TcpListener,
    delay: Duration,
    connections: Vec<Connection>,
    accepted: u64,
    /// In the order in which they are due.
    device: VecDeque<Waiting>,
    /// When the device is free again.
    free: Instant,
    late: Lateness,
}

impl Server {
    fn new(listener: TcpListener, delay: Duration) -> Server {
        Server {
            listener,
            delay,
            connections: Vec::new(),
            accepted: 0,
            device: VecDeque::new(),
            free: Instant::now(),
            late: Lateness::default(),
        }
    }

    fn serve(mut self, stop: &AtomicBool) -> Lateness {
        let (mut looked, mut busy) = (Instant::now(), Instant::now());
        while !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            // `accept` is a system call. In every turn it would make all answers later, while new
            // connections come only at the start of a load.
            if now.duration_since(looked) >= ACCEPT_EVERY {
                looked = now;
                self.accept();
            }
            let mut heard = self.answer();
            for at in 0..self.connections.len() {
                heard |= self.hear(at);
                // Others are not kept waiting by what one sends.
                heard |= self.answer();
            }
            self.connections.retain(|connection| !connection.is_over);
            if heard || !self.device.is_empty() {
                busy = now;
            } else if now.duration_since(busy) > IDLE_AFTER {
                std::thread::sleep(ACCEPT_EVERY);
            }
        }
        self.late
    }

    fn accept(&mut self) {
        // A connection that cannot be taken is one that its client sees end.
        while let Ok((stream, _)) = self.listener.accept() {
            // Nagle's algorithm would hold a small answer back until the previous one is
            // acknowledged. This wait would be added to the delay that the figure is about.
            if stream.set_nonblocking(true).is_err() || stream.set_nodelay(true).is_err() {
                continue;
            }
            let mut output = MAGIC.to_be_bytes().to_vec();
            output.extend(OPTION_MAGIC.to_be_bytes());
            output.extend(HANDSHAKE_FLAGS.to_be_bytes());
            self.accepted += 1;
            let mut connection = Connection {
                number: self.accepted,
                stream,
                phase: Phase::Flags,
                input: Vec::new(),
                output,
                is_over: false,
            };
            connection.send();
            self.connections.push(connection);
        }
    }

    /// Sends what is due; whether something was.
    fn answer(&mut self) -> bool {
        let mut some = false;
        while let Some(first) = self.device.front() {
            let now = Instant::now();
            if now < first.due {
                break;
            }
            let Some(Waiting { connection, cookie, length, due }) = self.device.pop_front() else {
                break;
            };
            some = true;
            // Lateness is counted and printed instead of assumed to be zero. With 10 us, an answer
            // that is 1 us late changes the result by 10 %.
            self.late.add(now.duration_since(due));
            let found = self.connections.iter_mut().find(|one| one.number == connection);
            if let Some(connection) = found {
                connection.reply(cookie, 0);
                let end = connection.output.len() + length as usize;
                connection.output.resize(end, 0);
                connection.send();
            }
        }
        some
    }

    /// Reads what came on a connection; whether something did.
    fn hear(&mut self, at: usize) -> bool {
        let connection = &mut self.connections[at];
        let mut part = [0; 4096];
        if !connection.output.is_empty() {
            connection.send();
        }
        match connection.stream.read(&mut part) {
            Ok(0) => connection.is_over = true,
            Ok(count) => connection.input.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(_) => connection.is_over = true,
        }
        while let Some(taken) = connection.step() {
            if let Some((cookie, length)) = taken {
                // The schedule is that of the device: an answer that is sent late delays no other.
                self.free = self.free.max(Instant::now()) + self.delay;
                let (connection, due) = (connection.number, self.free);
                self.device.push_back(Waiting { connection, cookie, length, due });
            }
        }
        true
    }
}

/// The number at the front of `bytes`.
fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut number = [0; N];
    if let Some(part) = bytes.get(at..at + N) {
        number.copy_from_slice(part);
    }
    number
}

impl Connection {
    fn send(&mut self) {
        match self.stream.write(&self.output) {
            Ok(count) => drop(self.output.drain(..count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.is_over = true,
        }
    }

    fn reply(&mut self, cookie: [u8; 8], error: u32) {
        self.output.extend(REPLY_MAGIC.to_be_bytes());
        self.output.extend(error.to_be_bytes());
        self.output.extend(cookie);
    }

    /// Takes one message off what came: a read, by its cookie and length, or what needs no device. `None`: there is no
    /// whole message.
    #[allow(
        clippy::option_option,
        reason = "no message, and a message that is no read, are two things"
    )]
    fn step(&mut self) -> Option<Option<([u8; 8], u32)>> {
        if self.is_over {
            return None;
        }
        match self.phase {
            Phase::Flags => {
                self.take(4)?;
                self.phase = Phase::Options;
                Some(None)
            }
            Phase::Options => self.option().map(|()| None),
            Phase::Requests => self.request(),
        }
    }

    /// The first `count` bytes, once they are there.
    fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        (self.input.len() >= count).then(|| self.input.drain(..count).collect())
    }

    fn option(&mut self) -> Option<()> {
        let whole = |input: &[u8]| {
            // The length comes from the network and is bounded before it is waited for. A client
            // could otherwise make the server collect 4 GiB.
            let length = u32::from_be_bytes(number(input, 12)) as usize;
            (input.len() >= OPTION_BYTES).then_some(OPTION_BYTES + length.min(4096))
        };
        let message = whole(&self.input).and_then(|count| self.take(count))?;
        if u64::from_be_bytes(number(&message, 0)) != OPTION_MAGIC {
            self.is_over = true;
            return Some(());
        }
        let option = u32::from_be_bytes(number(&message, 8));
        let mut size_and_flags = EXPORT_BYTES.to_be_bytes().to_vec();
        size_and_flags.extend(EXPORT_FLAGS.to_be_bytes());
        match option {
            OPT_EXPORT_NAME => {
                self.output.extend(size_and_flags);
                self.phase = Phase::Requests;
            }
            OPT_GO => {
                let information = [&INFO_EXPORT.to_be_bytes()[..], &size_and_flags].concat();
                self.reply_option(option, REP_INFO, &information);
                self.reply_option(option, REP_ACK, &[]);
                self.phase = Phase::Requests;
            }
            _ => self.reply_option(option, ERR_UNSUPPORTED, &[]),
        }
        self.send();
        Some(())
    }

    fn reply_option(&mut self, option: u32, kind: u32, data: &[u8]) {
        self.output.extend(OPTION_REPLY_MAGIC.to_be_bytes());
        self.output.extend(option.to_be_bytes());
        self.output.extend(kind.to_be_bytes());
        self.output.extend((data.len() as u32).to_be_bytes());
        self.output.extend(data);
    }

    #[allow(clippy::option_option, reason = "as of a step")]
    fn request(&mut self) -> Option<Option<([u8; 8], u32)>> {
        let message = self.take(REQUEST_BYTES)?;
        let kind = u16::from_be_bytes(number(&message, 6));
        let cookie = number(&message, 8);
        let (offset, length) =
            (u64::from_be_bytes(number(&message, 16)), u32::from_be_bytes(number(&message, 24)));
        let is_broken = u32::from_be_bytes(number(&message, 0)) != REQUEST_MAGIC;
        if is_broken || kind == CMD_DISCONNECT {
            self.is_over = true;
            return Some(None);
        }
        // `checked_add` is needed: an offset near 2^64 would wrap around and pass the comparison
        // with the end of the export.
        let is_within =
            offset.checked_add(u64::from(length)).is_some_and(|end| end <= EXPORT_BYTES)
                && length <= REQUEST_BYTES_MAX;
        if kind == CMD_READ && is_within {
            return Some(Some((cookie, length)));
        }
        // Data of a write would follow: a client that sends it does not heed the flags of the export.
        self.is_over = kind == CMD_WRITE;
        self.reply(cookie, if kind == CMD_READ { EINVAL } else { EPERM });
        self.send();
        Some(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(delay: Duration) -> (DelayServer, TcpStream) {
        let cores = Cores::split().unwrap();
        let (port, told) = mpsc::channel();
        let server = DelayServer::on(&cores, delay, move || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            port.send(listener.local_addr().unwrap()).unwrap();
            Ok(listener)
        });
        let server = server.unwrap();
        let mut client = TcpStream::connect(told.recv().unwrap()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        client.set_nodelay(true).unwrap();
        let mut greeting = [0; 18];
        client.read_exact(&mut greeting).unwrap();
        assert_eq!(u64::from_be_bytes(number(&greeting, 0)), MAGIC);
        client.write_all(&[0, 0, 0, 3]).unwrap();
        let mut option = OPTION_MAGIC.to_be_bytes().to_vec();
        option.extend(OPT_GO.to_be_bytes());
        option.extend([0, 0, 0, 6, 0, 0, 0, 0, 0, 0]);
        client.write_all(&option).unwrap();
        let mut reply = [0; 20 + 12 + 20];
        client.read_exact(&mut reply).unwrap();
        assert_eq!(u64::from_be_bytes(number(&reply, 22)), EXPORT_BYTES);
        (server, client)
    }

    fn request(kind: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
        let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(kind.to_be_bytes());
        bytes.extend(cookie.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes
    }

    /// Requests that arrive together are answered in turn, each a delay after the one before: n take n delays at least,
    /// whatever else the machine does.
    #[test]
    fn one_request_at_a_time() {
        let delay = Duration::from_millis(3);
        let (server, mut client) = started(delay);
        let all: Vec<u8> = (0..10).flat_map(|n| request(CMD_READ, n, n * 4096, 512)).collect();
        let begun = Instant::now();
        client.write_all(&all).unwrap();
        for n in 0..10_u32 {
            let mut reply = [9; 16 + 512];
            client.read_exact(&mut reply).unwrap();
            assert_eq!(u64::from_be_bytes(number(&reply, 8)), u64::from(n));
            assert!(reply[16..].iter().all(|byte| *byte == 0) && number::<4>(&reply, 4) == [0; 4]);
            assert!(begun.elapsed() >= delay * (n + 1), "{n}: {:?}", begun.elapsed());
        }
        let late = server.end();
        assert_eq!(late.answers, 10);
    }

    #[test]
    fn what_is_no_read_within_the_export_is_refused() {
        let (server, mut client) = started(Duration::ZERO);
        for (bytes, error) in [
            (request(3, 1, 0, 0), EPERM),
            (request(CMD_READ, 2, EXPORT_BYTES, 512), EINVAL),
            (request(CMD_READ, 3, u64::MAX, 512), EINVAL),
            (request(CMD_READ, 4, 0, REQUEST_BYTES_MAX + 1), EINVAL),
        ] {
            client.write_all(&bytes).unwrap();
            let mut reply = [0; 16];
            client.read_exact(&mut reply).unwrap();
            assert_eq!(u32::from_be_bytes(number(&reply, 4)), error);
        }
        client.write_all(&request(CMD_DISCONNECT, 5, 0, 0)).unwrap();
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
        assert_eq!(server.end(), Lateness::default());
    }

    #[test]
    fn garbage_ends_a_connection_and_not_the_server() {
        let (server, mut client) = started(Duration::ZERO);
        let address = client.peer_addr().unwrap();
        client.write_all(&[7; 64]).unwrap();
        // With bytes unread the system may reset it instead.
        assert!(matches!(client.read(&mut [0; 8]), Ok(0) | Err(_)));
        let mut other = TcpStream::connect(address).unwrap();
        other.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        other.read_exact(&mut [0; 18]).unwrap();
        drop(server);
    }
}
