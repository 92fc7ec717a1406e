//! The metrics of a worker over HTTP, on loopback.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use ssdyno_prober::{Prober, ProberOptions};
use ssdyno_session::Failure;
use tokio::sync::Semaphore;

use super::{MetricsCache, OPEN_METRICS_TYPE, RunOutline, metrics_text};
use crate::hosts::is_loopback;
use crate::progress::ClusterProgress;
use crate::worker::{WorkerService, machine};

/// Connections at once at most; others wait.
const CONNECTIONS_MAX: usize = 16;

/// How long a client may take to ask, and how long for everything.
const ASK_WITHIN: Duration = Duration::from_secs(3);
const END_WITHIN: Duration = Duration::from_secs(10);

/// Bytes of a request at most: one of Prometheus has 300.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// How long to wait where no connection can be taken, such as for lack of file descriptors.
const REST: Duration = Duration::from_millis(100);

/// An address at which a worker serves its metrics.
#[derive(Debug)]
pub struct MetricsListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl MetricsListener {
    /// Listens at `address` of loopback; with port 0 at one that is free.
    ///
    /// # Errors
    /// The address is taken, or not one of loopback: metrics are neither encrypted nor protected by a password.
    pub fn bind(address: SocketAddr) -> Result<MetricsListener, Failure> {
        if !address.ip().is_loopback() {
            let message = format!(
                "{address} can be reached from other machines, and every program that reaches it could read the metrics"
            );
            return Err(Failure::usage(message).with_key("metrics").with_help(
                "serve them at 127.0.0.1 or [::1]; run Prometheus on this machine, or reach them through ssh -L",
            ));
        }
        let taken = |error| {
            Failure::usage(format!("cannot serve metrics at {address}: {error}"))
                .with_key("metrics")
                .with_help("use another port; 0 selects a free port")
        };
        let listener = TcpListener::bind(address).map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        Ok(MetricsListener { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the metrics of `worker` in the background, until the runtime ends.
    pub(crate) fn start(self, worker: &WorkerService) -> io::Result<()> {
        self.listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        // If the system has no thread for a prober, the metrics of the run are still served. Two points
        // are enough, because only the newest sample is read.
        let prober = Prober::start(ProberOptions { keep: 2, ..ProberOptions::default() }).ok();
        let machine = machine();
        let source =
            Source { worker: worker.clone(), machine, prober, cache: MetricsCache::default() };
        tokio::spawn(serve(listener, Arc::new(source)));
        Ok(())
    }
}

/// Where the metrics of a worker come from. A scrape sends no request to the run or the machine: it returns their last
/// reports.
struct Source {
    worker: WorkerService,
    machine: String,
    prober: Option<Prober>,
    cache: MetricsCache,
}

impl Source {
    fn text(&self) -> Arc<str> {
        self.cache.text(|| {
            // `run_under_way` does not renew the lease: a scrape must not keep a
            // run alive after its controller is gone.
            let run = self.worker.run_under_way();
            let sample = self.prober.as_ref().map(|prober| (self.machine.clone(), prober.latest()));
            let progress = ClusterProgress {
                hosts: run
                    .iter()
                    .map(|(_, snapshot, ..)| (self.machine.clone(), snapshot.clone(), None))
                    .collect(),
                systems: sample.into_iter().collect(),
                ..ClusterProgress::default()
            };
            let outline = run.as_ref().map(|(number, snapshot, target, load)| RunOutline {
                number: *number,
                name: "",
                target,
                load,
                phase: snapshot.phase,
            });
            metrics_text(self.worker.version(), outline, &progress)
        })
    }
}

async fn serve(listener: tokio::net::TcpListener, source: Arc<Source>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // The slot is taken before `accept`. More clients than that wait in the queue of the kernel and
    // cost this process neither memory nor file descriptors.
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            // `accept` fails at once while the process has no free file descriptors. Without a pause
            // the loop would take a whole core from the load.
            tokio::time::sleep(REST).await;
            continue;
        };
        let source = Arc::clone(&source);
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(request, Arc::clone(&source)));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                // A client that sends its header one byte at a time would hold a slot forever. 16 such
                // clients would hide the metrics from Prometheus.
                .header_read_timeout(ASK_WITHIN)
                .max_buf_size(REQUEST_BYTES_MAX)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer);
            // Errors of a client are ignored: they concern nobody else, and a log line
            // for each would let a client fill the disk.
            let _ = tokio::time::timeout(END_WITHIN, connection).await;
            drop(slot);
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    source: Arc<Source>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let refused = |status, why: &str| {
        respond(status, "text/plain; charset=utf-8", Bytes::from(format!("{why}\n")))
    };
    // DNS rebinding: a web page of another origin may let its own name point to 127.0.0.1. Its `Host` header
    // then contains that name, and the request is refused.
    if !is_called_loopback(request.headers()) {
        let why = "this server does not have that name: use 127.0.0.1, [::1] or localhost";
        return Ok(refused(StatusCode::MISDIRECTED_REQUEST, why));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response =
            refused(StatusCode::METHOD_NOT_ALLOWED, "metrics can only be read: use GET");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Ok(response);
    }
    if request.uri().path() != "/metrics" {
        return Ok(refused(StatusCode::NOT_FOUND, "the metrics are at /metrics"));
    }
    // Making a text takes a lock and formats some kilobytes. The one thread of the runtime also carries the
    // connections of controllers and must not wait for it.
    let made = tokio::task::spawn_blocking(move || source.text()).await;
    Ok(match made {
        Ok(text) => respond(StatusCode::OK, OPEN_METRICS_TYPE, Bytes::from(text.to_string())),
        Err(_) => refused(StatusCode::INTERNAL_SERVER_ERROR, "the worker failed"),
    })
}

fn is_called_loopback(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    // `[::1]` contains colons itself. Only text after the last colon that is a port number is cut off;
    // `::1` without brackets is not a valid `Host` header.
    let port = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
    is_loopback(port.map_or(host, |(name, _)| name))
}

fn respond(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}
