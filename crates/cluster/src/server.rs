//! Workers that wait for controllers.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use ssdyno_session::{Failure, FailureKind};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, Stdin, Stdout};
use tokio::sync::oneshot;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::codec::CompressionEncoding;
use tonic::transport::Server;
use tonic::transport::server::Connected;

use crate::protocol::{MESSAGE_BYTES_MAX, WorkerServer};
use crate::worker::WorkerService;

/// How often it is asked whether to end.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// How long a controller may take to fetch the record of a run that ends with its worker.
const FAREWELL: Duration = Duration::from_secs(3);

/// How often a controller that is silent is probed, and how long for an answer: together less than the lease of a run.
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBE_WITHIN: Duration = Duration::from_secs(30);

fn service(worker: &WorkerService) -> WorkerServer<WorkerService> {
    WorkerServer::new(worker.clone())
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX)
        .accept_compressed(CompressionEncoding::Gzip)
        .send_compressed(CompressionEncoding::Gzip)
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Failed, format!("{what}: {error}"))
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.map_err(|error| failed("cannot start the threads of a worker", &error))
}

/// A server that finds out when a controller is gone without a word.
fn builder() -> Server {
    Server::builder()
        .http2_keepalive_interval(Some(PROBE_EVERY))
        .http2_keepalive_timeout(Some(PROBE_WITHIN))
}

async fn until(ends: &impl Fn() -> bool) {
    while !ends() {
        tokio::time::sleep(ASK_EVERY).await;
    }
}

/// Stops the run in order; its controller has some seconds to fetch what was measured.
async fn say_farewell(worker: &WorkerService) {
    worker.stop_run();
    let fetched = async {
        while worker.is_busy() {
            tokio::time::sleep(ASK_EVERY).await;
        }
    };
    let _ = tokio::time::timeout(FAREWELL, fetched).await;
}

/// Ends runs that nobody asks for.
async fn keep_house(worker: WorkerService) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let worker = worker.clone();
        // It may wait for what is in flight.
        let _ = tokio::task::spawn_blocking(move || worker.end_abandoned()).await;
    }
}

/// An address at which a worker can be reached.
#[derive(Debug)]
pub struct WorkerListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl WorkerListener {
    /// Listens at `address`; with port 0 at one that is free.
    ///
    /// # Errors
    /// The address is taken, or not one of loopback: everybody who reaches it could load this machine's disks.
    pub fn bind(address: SocketAddr) -> Result<WorkerListener, Failure> {
        if !address.ip().is_loopback() {
            let message = format!(
                "{address} can be reached from other machines, and a worker trusts everybody who reaches it"
            );
            return Err(Failure::usage(message)
                .with_help("listen on 127.0.0.1 or [::1], and reach it through ssh"));
        }
        let taken = |error| {
            Failure::usage(format!("cannot listen at {address}: {error}"))
                .with_help("use another port; 0 takes one that is free")
        };
        let listener = TcpListener::bind(address).map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        Ok(WorkerListener { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Answers controllers at `listener` until `ends` is true. A run that goes on then is stopped in order, and its
/// controller has some seconds to fetch what was measured.
///
/// # Errors
/// There are no threads for it.
pub fn serve_listener(
    WorkerListener { listener, .. }: WorkerListener,
    worker: &WorkerService,
    ends: impl Fn() -> bool + Send + Sync + 'static,
) -> Result<(), Failure> {
    let runtime = runtime()?;
    let worker = worker.clone();
    let served = runtime.block_on(async move {
        listener.set_nonblocking(true)?;
        let incoming = TcpListenerStream::new(tokio::net::TcpListener::from_std(listener)?);
        let incoming =
            incoming.map(|stream| stream.inspect(|stream| drop(stream.set_nodelay(true))));
        tokio::spawn(keep_house(worker.clone()));
        let (end, ended) = oneshot::channel::<()>();
        let router = builder().add_service(service(&worker));
        let serving = router.serve_with_incoming_shutdown(incoming, async { drop(ended.await) });
        let mut serving = tokio::spawn(serving);
        tokio::select! {
            _ = &mut serving => return Ok(()),
            () = until(&ends) => {}
        }
        say_farewell(&worker).await;
        drop(end);
        let _ = tokio::time::timeout(ASK_EVERY, serving).await;
        Ok::<(), io::Error>(())
    });
    runtime.shutdown_timeout(Duration::from_millis(200));
    served.map_err(|error| failed("the worker cannot listen", &error))
}

/// Answers the one controller at the other end of standard input and output, until it is gone: a worker that ssh
/// started leaves nothing behind.
///
/// # Errors
/// There are no threads for it.
pub fn serve_stdio(
    worker: &WorkerService,
    ends: impl Fn() -> bool + Send + Sync + 'static,
) -> Result<(), Failure> {
    let runtime = runtime()?;
    let worker = worker.clone();
    runtime.block_on(async move {
        tokio::spawn(keep_house(worker.clone()));
        let (end, ended) = oneshot::channel();
        let io = Stdio { input: tokio::io::stdin(), output: tokio::io::stdout(), _end: end };
        let incoming = tokio_stream::once(Ok::<_, io::Error>(io)).chain(tokio_stream::pending());
        let router = builder().add_service(service(&worker));
        let serving = router.serve_with_incoming(incoming);
        // The sender is dropped with the connection. The server itself would wait for a controller that is gone.
        tokio::select! {
            _ = serving => {}
            _ = ended => {}
            () = until(&ends) => say_farewell(&worker).await,
        }
        worker.stop_run();
    });
    // A read of standard input that nobody ends would keep the process.
    runtime.shutdown_timeout(Duration::from_millis(200));
    Ok(())
}

/// Standard input and output as one stream.
struct Stdio {
    input: Stdin,
    output: Stdout,
    /// Dropped with the stream.
    _end: oneshot::Sender<()>,
}

impl Connected for Stdio {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Stdio {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.input).poll_read(context, to)
    }
}

impl AsyncWrite for Stdio {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.output).poll_write(context, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_shutdown(context)
    }
}
