//! Sockets: a listener, a thread that keeps the time, and two for each connection.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::line;
use crate::target::Target;

/// Connections at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 256;

/// A target that listens. Dropped, it ends all connections and waits for their threads.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
    clock: Option<JoinHandle<()>>,
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
        let mut server = Server { address, shared, listener: None, clock: None };
        let thread = |name: &str| thread::Builder::new().name(name.to_owned());
        let shared = server.shared.clone();
        server.clock = Some(thread("iscsi-clock").spawn(move || keep_time(&shared))?);
        let shared = server.shared.clone();
        let listens = thread("iscsi-listener").spawn(move || listen(&listener, &shared));
        server.listener = Some(listens?);
        Ok(server)
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
        self.shared.target.ring();
        if let Some(clock) = self.clock.take() {
            // It panics only if a model does, which the thread has said already.
            let _ended = clock.join();
        }
        let Some(listener) = self.listener.take() else { return };
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
        if woken {
            // As above, of a connection's thread.
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

/// Lets happen what is due, when it is due.
fn keep_time(shared: &Shared) {
    // Otherwise a sleep may last 50 us longer than asked. Where that cannot be had, it does.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    shared.target.keep_time(&shared.stopping);
}

/// One connection; its end is its initiator's affair.
fn serve(stream: &TcpStream, number: usize, shared: &Shared) -> io::Result<()> {
    shared.streams().push((number, stream.try_clone()?));
    if shared.stopping.load(Ordering::Acquire) {
        return Ok(());
    }
    line::serve(stream, shared.target.clone())
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
