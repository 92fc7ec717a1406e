//! Sockets: a listener, and a thread for each connection.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::connection::{Connection, Flow};
use crate::pdu::BHS_BYTES;
use crate::target::Target;
use crate::wire;

/// How long a login may take between its PDUs.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(15);
/// Connections at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 256;

/// A target that listens. Dropped, it ends all connections and waits for their threads.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

/// What the threads share.
#[derive(Debug)]
struct Shared {
    target: Arc<Target>,
    stopping: AtomicBool,
    connections: AtomicUsize,
    /// Open connections, by number, to be closed at the end.
    streams: Mutex<Vec<(usize, TcpStream)>>,
}

impl Server {
    /// Listens at `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn start(address: impl ToSocketAddrs, target: Arc<Target>) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            target,
            stopping: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            streams: Mutex::new(Vec::new()),
        });
        let for_thread = shared.clone();
        let listener = thread::Builder::new()
            .name("iscsi-listener".to_owned())
            .spawn(move || listen(&listener, &for_thread))?;
        Ok(Server { address, shared, listener: Some(listener) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The target.
    pub fn target(&self) -> &Arc<Target> {
        &self.shared.target
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.close_all();
        // Wakes the listener, which looks at `stopping` then. An address for all interfaces cannot
        // be called.
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        let woken = TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok();
        if let Some(listener) = self.listener.take().filter(|_| woken) {
            // It panics only if a model does, which the connection's thread has said already.
            let _ended = listener.join();
        }
    }
}

impl Shared {
    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<(usize, TcpStream)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close_all(&self) {
        for (_, stream) in self.streams().iter() {
            // One that is closed already is what is wanted.
            let _closed = stream.shutdown(Shutdown::Both);
        }
    }
}

fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for (number, stream) in listener.incoming().enumerate() {
        if shared.stopping.load(Ordering::Acquire) {
            break;
        }
        threads.retain(|thread| !thread.is_finished());
        let Ok(stream) = stream else {
            // Out of descriptors, mostly: do not spin until some are free.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        if shared.connections.load(Ordering::Acquire) >= CONNECTIONS_MAX {
            continue;
        }
        let shared = shared.clone();
        let name = format!("iscsi-{number}");
        let spawned = thread::Builder::new().name(name).spawn(move || {
            shared.connections.fetch_add(1, Ordering::AcqRel);
            // How a connection ended is its initiator's affair.
            let _ended = serve(&stream, number, &shared);
            shared.streams().retain(|(other, _)| *other != number);
            shared.connections.fetch_sub(1, Ordering::AcqRel);
        });
        threads.extend(spawned);
    }
    shared.close_all();
    for thread in threads {
        // As above.
        let _ended = thread.join();
    }
}

/// One connection until its end.
fn serve(stream: &TcpStream, number: usize, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOGIN_TIMEOUT))?;
    shared.streams().push((number, stream.try_clone()?));
    if shared.stopping.load(Ordering::Acquire) {
        return Ok(());
    }
    let other = stream.try_clone()?;
    let hang_up = Arc::new(move || {
        // One that is closed already is what is wanted.
        let _closed = other.shutdown(Shutdown::Read);
    });
    let portal = stream.local_addr()?.to_string();
    let mut connection = Connection::new(shared.target.clone(), portal, hang_up);
    let (mut reader, mut writer) = (io::BufReader::with_capacity(1 << 16, stream), stream);
    let (mut out, mut bytes) = (Vec::new(), Vec::new());
    loop {
        let framing = connection.framing();
        let Some(pdu) = wire::read(&mut reader, framing)? else { break };
        let logging_in = connection.is_logging_in();
        let flow = connection.receive(pdu, &mut out);
        if logging_in && !connection.is_logging_in() {
            stream.set_read_timeout(None)?;
        }
        bytes.clear();
        for pdu in out.drain(..) {
            pdu.write(framing, &mut bytes);
        }
        writer.write_all(&bytes)?;
        if flow == Flow::Ends {
            break;
        }
    }
    // What is unread would turn our last answer into a reset of the connection.
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut rest = [0; BHS_BYTES * 64];
    for _ in 0..64 {
        if reader.read(&mut rest)? == 0 {
            break;
        }
    }
    Ok(())
}
