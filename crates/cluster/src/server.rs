//! Workers that wait for controllers.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
#[cfg(target_os = "linux")]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ssdyno_session::Failure;
use tokio::io::{AsyncRead, AsyncWrite, join};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::codec::CompressionEncoding;
use tonic::transport::{Error, Server};

use crate::metrics::MetricsListener;
use crate::protocol::{MESSAGE_BYTES_MAX, WorkerServer};
use crate::served::Served;
#[cfg(target_os = "linux")]
use crate::tls::ServerTls;
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
    Failure::failed(format!("{what}: {error}"))
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    // One worker thread: the runtime shares the machine with the load. Long work runs in
    // `spawn_blocking`, so one thread can carry all connections.
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
        // The controller fetches the record and then releases the run. A worker without a run
        // has therefore delivered everything that it had.
        while worker.is_busy() {
            tokio::time::sleep(ASK_EVERY).await;
        }
    };
    let _ = tokio::time::timeout(FAREWELL, fetched).await;
}

/// Ends runs without a controller.
async fn keep_house(worker: WorkerService) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let worker = worker.clone();
        // Ending a run waits for requests in flight, which may take as long as the drive does. The
        // thread that carries connections must not wait with it.
        let _ = tokio::task::spawn_blocking(move || worker.end_abandoned()).await;
    }
}

/// An address at which a worker can be reached.
pub struct WorkerListener {
    listener: TcpListener,
    address: SocketAddr,
    #[cfg(target_os = "linux")]
    tls: Option<ServerTls>,
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "without TLS nobody is refused")
    )]
    refused: Arc<dyn Fn(&str) + Send + Sync>,
    metrics: Option<MetricsListener>,
}

impl fmt::Debug for WorkerListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerListener").field("address", &self.address).finish_non_exhaustive()
    }
}

impl WorkerListener {
    /// Listens at `address` of loopback, without TLS; with port 0 at one that is free.
    ///
    /// # Errors
    /// The address is taken, or not one of loopback: everybody who reaches it could load this machine's disks.
    pub fn bind(address: SocketAddr) -> Result<WorkerListener, Failure> {
        if !address.ip().is_loopback() {
            let message = format!(
                "{address} can be reached from other machines, and a worker without TLS trusts every program that reaches it"
            );
            return Err(Failure::usage(message).with_help(
                "enrol the worker with an invitation of its controller; or listen on 127.0.0.1 or [::1], and reach it \
                 through ssh",
            ));
        }
        WorkerListener::open(address)
    }

    /// The same with mutual TLS, at any address: only the controller that enrolled this worker gets further. `directory`
    /// has the certificate of the worker.
    ///
    /// # Errors
    /// This worker is not enrolled, or its certificate has expired; or the address is taken.
    #[cfg(target_os = "linux")]
    pub fn bind_tls(address: SocketAddr, directory: &Path) -> Result<WorkerListener, Failure> {
        let tls = ServerTls::load(directory).map_err(|failure| {
            let message = format!("cannot listen at {address} with TLS: {}", failure.message);
            Failure { message, ..failure }
        });
        let tls = Some(tls?);
        Ok(WorkerListener { tls, ..WorkerListener::open(address)? })
    }

    fn open(address: SocketAddr) -> Result<WorkerListener, Failure> {
        let taken = |error| {
            Failure::usage(format!("cannot listen at {address}: {error}"))
                .with_help("use another port; 0 selects a free port")
        };
        let listener = TcpListener::bind(address).map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        Ok(WorkerListener {
            listener,
            address,
            #[cfg(target_os = "linux")]
            tls: None,
            refused: Arc::new(|_| ()),
            metrics: None,
        })
    }

    /// Tells `refused` who was not let in, and why, as one line without secrets.
    #[must_use]
    pub fn on_refused(self, refused: impl Fn(&str) + Send + Sync + 'static) -> WorkerListener {
        WorkerListener { refused: Arc::new(refused), ..self }
    }

    /// Serves the metrics of the worker at `metrics`, too.
    #[must_use]
    pub fn with_metrics(self, metrics: MetricsListener) -> WorkerListener {
        WorkerListener { metrics: Some(metrics), ..self }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves `worker` to whoever is let in.
    fn start(
        self,
        worker: &WorkerService,
        ended: oneshot::Receiver<()>,
    ) -> io::Result<JoinHandle<Result<(), Error>>> {
        self.listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        #[cfg(target_os = "linux")]
        if let Some(tls) = self.tls {
            let worker = &worker.clone().told_by(&tls);
            // A connection comes out of this stream only after both certificates were checked, so gRPC
            // never sees a byte of a client that is not trusted.
            return Ok(start(worker, tls.incoming(listener, self.refused), ended));
        }
        let incoming = TcpListenerStream::new(listener);
        // Without this option Nagle's algorithm would delay small answers, and
        // clock comparisons would measure the delay.
        let incoming =
            incoming.map(|stream| stream.inspect(|stream| drop(stream.set_nodelay(true))));
        Ok(start(worker, incoming, ended))
    }
}

fn start<S>(
    worker: &WorkerService,
    incoming: impl Stream<Item = io::Result<S>> + Send + 'static,
    ended: oneshot::Receiver<()>,
) -> JoinHandle<Result<(), Error>>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let incoming = incoming.map(|stream| stream.map(|stream| Served::new(stream, None)));
    let router = builder().add_service(service(worker));
    tokio::spawn(router.serve_with_incoming_shutdown(incoming, async { drop(ended.await) }))
}

/// Answers controllers at `listener` until `ends` is true. A run that goes on then is stopped in order, and its
/// controller has some seconds to fetch what was measured.
///
/// # Errors
/// There are no threads for it.
pub fn serve_listener(
    listener: WorkerListener,
    worker: &WorkerService,
    ends: impl Fn() -> bool + Send + Sync + 'static,
) -> Result<(), Failure> {
    let runtime = runtime()?;
    let worker = worker.clone();
    let mut listener = listener;
    let served = runtime.block_on(async move {
        tokio::spawn(keep_house(worker.clone()));
        if let Some(metrics) = listener.metrics.take() {
            metrics.start(&worker)?;
        }
        // Metrics are taken out before: their server must start even if
        // nobody ever connects to the worker.
        let (end, ended) = oneshot::channel::<()>();
        let mut serving = listener.start(&worker, ended)?;
        tokio::select! {
            _ = &mut serving => return Ok(()),
            () = until(&ends) => {}
        }
        // The run is stopped first, while the server still answers: its controller can then fetch the
        // record. After three seconds the process ends in any case.
        say_farewell(&worker).await;
        drop(end);
        let _ = tokio::time::timeout(ASK_EVERY, serving).await;
        Ok::<(), io::Error>(())
    });
    runtime.shutdown_timeout(Duration::from_millis(200));
    served.map_err(|error| failed("the worker cannot listen", &error))
}

/// Serves the single controller at the other end of standard input and output until it is gone: a worker that ssh
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
        let stream = join(tokio::io::stdin(), tokio::io::stdout());
        let io = Served::new(stream, Some(end));
        // The stream has one connection and then waits forever. A stream that ended would make tonic
        // shut down while the connection is still in use.
        let incoming = tokio_stream::once(Ok::<_, io::Error>(io)).chain(tokio_stream::pending());
        let router = builder().add_service(service(&worker));
        let serving = router.serve_with_incoming(incoming);
        // The sender is dropped together with the connection, and that ends this process. The server itself
        // would go on waiting for a controller that is gone.
        tokio::select! {
            _ = serving => {}
            _ = ended => {}
            () = until(&ends) => say_farewell(&worker).await,
        }
        // Also after a lost connection: nobody will fetch the record, and a worker that
        // ssh started must not go on loading the disk.
        worker.stop_run();
    });
    // A blocking read of standard input cannot be cancelled. Without a time limit the runtime
    // would wait for it, and the process would never end.
    runtime.shutdown_timeout(Duration::from_millis(200));
    Ok(())
}
