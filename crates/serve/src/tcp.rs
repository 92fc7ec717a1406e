//! A listener, and a thread for each connection.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bell::{Bell, Heard};

/// How long a listener that cannot accept waits.
const PAUSE: Duration = Duration::from_millis(10);

/// What a connection's thread does.
type Serve = dyn Fn(&TcpStream) -> io::Result<()> + Send + Sync;

/// A service that listens. Dropped, it takes nobody any more, closes all connections and waits for their
/// threads.
pub struct TcpService {
    address: SocketAddr,
    connections: Arc<Connections>,
    listener: Option<JoinHandle<()>>,
    bell: Option<Bell>,
}

/// What the threads share.
struct Connections {
    serve: Box<Serve>,
    name: String,
    /// At a time; more are closed at once.
    most: usize,
    stopping: AtomicBool,
    count: AtomicUsize,
    /// Those that are open, by number, to be closed at the end.
    streams: Mutex<Vec<(usize, TcpStream)>>,
}

impl TcpService {
    /// Listens at `address`, where port 0 takes a free one, and gives each connection a thread that calls
    /// `serve`; its end is the end of the connection. Threads are called `name` and a number. Connections
    /// beyond `connections_max` at a time are closed at once.
    ///
    /// # Errors
    /// The address cannot be used, or the system gives no thread.
    pub fn start(
        address: impl ToSocketAddrs,
        name: &str,
        connections_max: usize,
        serve: impl Fn(&TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<TcpService> {
        let listener = TcpListener::bind(address)?;
        // A client may have gone away before it is accepted. A blocking `accept` would then wait
        // for the next client, also while the service ends.
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (bell, heard) = bell::pair()?;
        let connections = Arc::new(Connections {
            serve: Box::new(serve),
            name: name.to_owned(),
            most: connections_max,
            stopping: AtomicBool::new(false),
            count: AtomicUsize::new(0),
            streams: Mutex::new(Vec::new()),
        });
        let shared = connections.clone();
        let thread = thread::Builder::new().name(format!("{name}-listener"));
        let listener = thread.spawn(move || listen(&listener, &heard, &shared))?;
        Ok(TcpService { address, connections, listener: Some(listener), bell: Some(bell) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections that are open.
    pub fn connections(&self) -> usize {
        self.connections.count.load(Ordering::Acquire)
    }
}

impl Drop for TcpService {
    fn drop(&mut self) {
        // The flag is set before the connections are closed. A connection that registers itself
        // meanwhile is either in the list or sees the flag.
        self.connections.stopping.store(true, Ordering::Release);
        self.connections.close_all();
        // The bell wakes the listener, which then reads `stopping`. A connection to the own address would not do: in
        // another network namespace it leads nowhere, or to another program.
        drop(self.bell.take());
        if let Some(listener) = self.listener.take() {
            // A panic of a connection was printed by its thread.
            let _ended = listener.join();
        }
    }
}

impl std::fmt::Debug for TcpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpService").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Connections {
    fn streams(&self) -> MutexGuard<'_, Vec<(usize, TcpStream)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close_all(&self) {
        for (_, stream) in self.streams().iter() {
            // One that is closed already is what is wanted.
            let _closed = stream.shutdown(Shutdown::Both);
        }
    }

    /// One connection; its end is its client's affair.
    fn serve(&self, stream: &TcpStream, number: usize) -> io::Result<()> {
        // A clone is registered for closing. Shutting it down wakes the
        // thread that reads from the original.
        self.streams().push((number, stream.try_clone()?));
        // `stopping` is read after the registration. Whoever set it closed the list, and
        // this connection may have been missing from it.
        if self.stopping.load(Ordering::Acquire) {
            return Ok(());
        }
        (self.serve)(stream)
    }
}

fn listen(listener: &TcpListener, heard: &Heard, connections: &Arc<Connections>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for (number, stream) in listener.incoming().enumerate() {
        if connections.stopping.load(Ordering::Acquire) {
            break;
        }
        threads.retain(|thread| !thread.is_finished());
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                heard.wait(listener);
                continue;
            }
            Err(_) => {
                // Most often the process is out of file descriptors. The pause keeps the
                // loop from spinning until one is free.
                thread::sleep(PAUSE);
                continue;
            }
        };
        // Some systems pass the non-blocking mode of the listener on to the connection.
        // The threads of connections expect to block.
        if stream.set_nonblocking(false).is_err() {
            continue;
        }
        // A connection too many is closed by dropping it. The client sees the end at once,
        // while a queue would let it wait without a sign.
        if connections.count.load(Ordering::Acquire) >= connections.most {
            continue;
        }
        let shared = connections.clone();
        let name = format!("{}-{number}", connections.name);
        connections.count.fetch_add(1, Ordering::AcqRel);
        let spawned = thread::Builder::new().name(name).spawn(move || {
            let _leaves = Leaves { connections: &shared, number };
            let _ended = shared.serve(&stream, number);
        });
        match spawned {
            Ok(thread) => threads.push(thread),
            Err(_) => {
                connections.count.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }
    connections.close_all();
    for thread in threads {
        // As above.
        let _ended = thread.join();
    }
}

/// Strikes a connection off when its thread ends, however it does.
struct Leaves<'a> {
    connections: &'a Connections,
    number: usize,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        // The clone must leave the list. It would otherwise keep the
        // connection open after its thread has ended.
        self.connections.streams().retain(|(other, _)| *other != self.number);
        self.connections.count.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What wakes a listener: one end is dropped, and the other notices.
#[cfg(unix)]
mod bell {
    use std::io;
    use std::net::TcpListener;
    use std::os::unix::net::UnixStream;

    use rustix::event::{PollFd, PollFlags, poll};

    pub(super) type Bell = UnixStream;

    #[derive(Debug)]
    pub(super) struct Heard(UnixStream);

    pub(super) fn pair() -> io::Result<(Bell, Heard)> {
        UnixStream::pair().map(|(bell, heard)| (bell, Heard(heard)))
    }

    impl Heard {
        /// Until somebody connects to `listener`, or the bell is dropped.
        pub(super) fn wait(&self, listener: &TcpListener) {
            let wanted = PollFlags::IN;
            let mut sockets = [PollFd::new(listener, wanted), PollFd::new(&self.0, wanted)];
            // A signal may end the call early. The caller then looks at both sockets and
            // waits again; the pause only limits how often.
            if poll(&mut sockets, None).is_err() {
                std::thread::sleep(super::PAUSE);
            }
        }
    }
}

/// Without such a call the listener looks now and then.
#[cfg(not(unix))]
mod bell {
    use std::io;
    use std::net::TcpListener;

    #[derive(Debug)]
    pub(super) struct Bell;

    #[derive(Debug)]
    pub(super) struct Heard;

    pub(super) fn pair() -> io::Result<(Bell, Heard)> {
        Ok((Bell, Heard))
    }

    impl Heard {
        pub(super) fn wait(&self, _: &TcpListener) {
            std::thread::sleep(super::PAUSE);
        }
    }
}
