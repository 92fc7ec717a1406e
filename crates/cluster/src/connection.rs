//! One worker, as its controller sees it.

use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ssdyno_prober::{SystemSeries, monotonic_ns};
use ssdyno_session::{Failure, RunSpec};
use tokio::sync::Mutex;
use tonic::codec::CompressionEncoding;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status, Streaming};
use tower::service_fn;

use crate::clocks::{Answer, ClockComparison, QUESTIONS, compare, unix_less_monotonic_ns};
use crate::hosts::HostAddress;
use crate::protocol::{
    Begin, Collected, FetchRows, Hello, HostRecord, HostSnapshot, MESSAGE_BYTES_MAX, NO_ANSWER,
    OfProbe, OfRun, PREPARE_WITHIN, PROTOCOL, Prepare, ProbeSample, ReadClock, RowsPart,
    StartProbe, Watch, WorkerClient, failure_of,
};
use crate::ssh::{RemoteStart, SshStream, SshWorker};
use crate::tls::ClientTls;

/// How long a worker may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How long ssh may take to reach a host, to be let in and to start a worker.
const START_WITHIN: Duration = Duration::from_secs(30);

/// How often a connection without traffic is probed, and how long for an answer: a host that is cut off is noticed within
/// the sum.
const PROBE_EVERY: Duration = Duration::from_secs(2);
const PROBE_WITHIN: Duration = Duration::from_secs(4);

/// The same for a worker that ssh started: it ends with its connection, which cannot be made again, so a cut that TCP
/// survives must not end it.
const PROBE_SSH_WITHIN: Duration = Duration::from_secs(30);

/// A worker that answered.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) name: String,
    pub(crate) machine: String,
    client: WorkerClient<Channel>,
    /// The same without compression, for snapshots: they are small and many.
    plain: WorkerClient<Channel>,
    /// Keeps the ssh that carries it.
    _ssh: Option<Arc<Mutex<SshWorker>>>,
}

impl Connection {
    /// The same connection, by another name in messages and results.
    pub(crate) fn called(&self, name: Option<&str>) -> Connection {
        let name = name.unwrap_or(&self.name).to_owned();
        Connection { name, ..self.clone() }
    }

    /// Connects, and compares versions.
    pub(crate) async fn open(
        address: &HostAddress,
        remote: &RemoteStart,
        identity: Option<&Path>,
        version: &str,
    ) -> Result<Connection, Failure> {
        let name = address.to_string();
        let mut revoked = None;
        let (channel, mut ssh, within) = match address {
            HostAddress::Listening { host, port, .. } => {
                // TLS comes first: the list of revoked certificates goes to the worker with the first message, so a
                // worker learns of a stolen controller key before it accepts a run.
                let channel = match tls_for(address, identity)? {
                    Some(tls) => {
                        revoked = tls.revoked()?;
                        over_tls(&tls, host, *port, &name).await?
                    }
                    None => connect(&name).await?,
                };
                (channel, None, ANSWER_WITHIN)
            }
            HostAddress::Ssh { destination, port } => {
                let (mut worker, stream) = SshWorker::start(destination, *port, remote)?;
                match over_ssh(stream).await {
                    Ok(channel) => (channel, Some(worker), START_WITHIN),
                    // ssh may end before the first byte, for example if the host refuses the login. Its exit code and
                    // its standard error tell the user more than the broken stream does.
                    Err(failure) => return Err(worker.explain(failure).await),
                }
            }
        };
        // Snapshots come up to ten times a second from each worker. `plain` does not compress them, because they
        // are small and gzip would take CPU time on both sides.
        let plain = WorkerClient::new(channel.clone());
        // A recording of a day has some 2 MB, and tonic refuses messages above 4 MB by default. Without this limit a
        // long run with many series points would measure everything and then fail.
        let mut client = WorkerClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
            .accept_compressed(CompressionEncoding::Gzip);
        let hello = Hello { protocol: PROTOCOL, version: version.to_owned(), revoked };
        let greeting = match (answer(&name, within, client.hello(hello)).await, &mut ssh) {
            (Ok(greeting), _) => greeting,
            (Err(failure), Some(ssh)) => return Err(ssh.explain(failure).await),
            (Err(failure), None) => return Err(explain_plain(address, failure).await),
        };
        // Versions must be equal, not compatible: two versions may define a figure differently, and the
        // controller would add these figures into one result.
        if (greeting.protocol, greeting.version.as_str()) != (PROTOCOL, version) {
            let (theirs, its) = (greeting.version, greeting.protocol);
            let message = format!(
                "{name} has version {theirs} (protocol {its}), this is {version} (protocol {PROTOCOL})"
            );
            let help = "install the same version on all hosts: one result cannot combine figures of two versions";
            return Err(Failure::failed(message).with_help(help));
        }
        // The connection owns ssh. `kill_on_drop` ends ssh with the last clone of the connection, and the worker at
        // the other end then sees the end of its standard input and stops.
        let ssh = ssh.map(|ssh| Arc::new(Mutex::new(ssh)));
        Ok(Connection { name, machine: greeting.machine, client, plain, _ssh: ssh })
    }

    /// Compares the clocks.
    pub(crate) async fn compare_clocks(&mut self) -> Result<ClockComparison, Failure> {
        let mut answers = Vec::with_capacity(QUESTIONS);
        for _ in 0..QUESTIONS {
            // Both clocks of this machine are read before the question. The wall clock may be set at any time, so its
            // distance to the monotonic clock belongs to this question alone.
            let (unix_less_monotonic_ns, asked_ns) = (unix_less_monotonic_ns(), monotonic_ns());
            let question = self.client.read_clock(ReadClock {});
            let reading = answer(&self.name, ANSWER_WITHIN, question).await?;
            let answered_ns = monotonic_ns();
            answers.push(Answer { asked_ns, answered_ns, unix_less_monotonic_ns, reading });
        }
        compare(&answers).ok_or_else(|| Failure::failed("no clock was read"))
    }

    /// Lets it prepare `spec`; gives the number of the run.
    pub(crate) async fn prepare(
        &mut self,
        spec: &RunSpec,
        controller: &str,
    ) -> Result<u64, Failure> {
        let no_json = |error| Failure::failed(format!("cannot send the spec: {error}"));
        // The spec travels as JSON text inside the CBOR message. The worker parses it with the same code
        // and the same error messages as a spec from a file.
        let spec = serde_json::to_string(spec).map_err(no_json)?;
        let prepare = Prepare { spec, controller: controller.to_owned() };
        let told = answer(&self.name, PREPARE_WITHIN, self.client.prepare(prepare)).await?;
        Ok(told.run)
    }

    pub(crate) async fn begin(&mut self, run: u64, at_monotonic_ns: u64) -> Result<(), Failure> {
        answer(&self.name, ANSWER_WITHIN, self.client.begin(Begin { run, at_monotonic_ns }))
            .await?;
        Ok(())
    }

    pub(crate) async fn watch(
        &mut self,
        run: u64,
        every: Duration,
    ) -> Result<Streaming<HostSnapshot>, Failure> {
        let every_ms = every.as_millis() as u32;
        answer(&self.name, ANSWER_WITHIN, self.plain.watch(Watch { run, every_ms })).await
    }

    pub(crate) async fn stop(&mut self, run: u64) -> Result<(), Failure> {
        answer(&self.name, ANSWER_WITHIN, self.client.stop(OfRun { run })).await?;
        Ok(())
    }

    /// The measurements of run `run`, which has ended.
    pub(crate) async fn collect(&mut self, run: u64) -> Result<HostRecord, Failure> {
        let Collected(record) =
            answer(&self.name, PREPARE_WITHIN, self.client.collect(OfRun { run })).await?;
        let gone = || Failure::failed("a record is in use");
        // The message was decoded here a moment ago, so this `Arc` has one owner. `Arc` serves the worker,
        // which may have to send the same record again after a cut.
        Arc::try_unwrap(record).map_err(|_| gone())
    }

    /// The file of the rows of run `run`, which has ended, from byte `offset` on.
    pub(crate) async fn rows(
        &mut self,
        run: u64,
        offset: u64,
    ) -> Result<Streaming<RowsPart>, Failure> {
        let rows = self.client.rows(FetchRows { run, offset });
        answer(&self.name, PREPARE_WITHIN, rows).await
    }

    /// Lets it sample its machine; gives the number of the probe.
    pub(crate) async fn start_probe(&mut self, every: Duration) -> Result<u64, Failure> {
        let every_ms = u32::try_from(every.as_millis()).unwrap_or(u32::MAX);
        let told = self.client.start_probe(StartProbe { every_ms });
        Ok(answer(&self.name, ANSWER_WITHIN, told).await?.probe)
    }

    pub(crate) async fn watch_probe(
        &mut self,
        probe: u64,
    ) -> Result<Streaming<ProbeSample>, Failure> {
        answer(&self.name, ANSWER_WITHIN, self.client.watch_probe(OfProbe { probe })).await
    }

    /// Ends a probe and fetches what it sampled.
    pub(crate) async fn end_probe(&mut self, probe: u64) -> Result<SystemSeries, Failure> {
        let told = self.client.end_probe(OfProbe { probe });
        Ok(answer(&self.name, ANSWER_WITHIN, told).await?.series)
    }

    /// Lets it forget the run; one that goes on is stopped.
    pub(crate) async fn release(&mut self, run: u64) {
        // A failure is ignored. A worker that does not receive the message forgets the run after its lease of 45
        // s, and the result of this run does not depend on it.
        let _ = answer(&self.name, ANSWER_WITHIN, self.client.release(OfRun { run })).await;
    }
}

/// `endpoint`, which notices within `within` that its host is cut off.
fn probed(endpoint: Endpoint, within: Duration) -> Endpoint {
    endpoint
        .http2_keep_alive_interval(PROBE_EVERY)
        .keep_alive_timeout(within)
        .keep_alive_while_idle(true)
}

/// A channel to a worker that listens.
async fn connect(name: &str) -> Result<Channel, Failure> {
    let endpoint = Endpoint::from_shared(format!("http://{name}"));
    let endpoint = endpoint.map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    // `tcp_nodelay`: the messages are small, and Nagle's algorithm with delayed acknowledgements can hold them back
    // for 40 ms. That delay would enter the bound of every clock comparison.
    let endpoint = endpoint.connect_timeout(ANSWER_WITHIN).tcp_nodelay(true);
    // TCP alone notices a pulled cable only after minutes. HTTP/2 pings notice it within 6 s, which leaves most of the
    // 30 s of `GONE_AFTER` for new attempts to connect.
    let endpoint = probed(endpoint, PROBE_WITHIN);
    endpoint.connect().await.map_err(|error| {
        let why = cause(&error);
        Failure::failed(format!("cannot reach a worker at {name}: {why}"))
            .with_help("start a worker that listens at this address")
    })
}

/// The certificate of this controller, from the directory `identity`, if `host` needs it.
fn tls_for(host: &HostAddress, identity: Option<&Path>) -> Result<Option<ClientTls>, Failure> {
    if !host.is_tls() {
        return Ok(None);
    }
    let missing = || {
        Failure::usage(format!("{host} needs TLS, but there is no certificate for it"))
            .with_help("name the directory with the identity of this controller")
            .with_key("identity")
    };
    let tls = ClientTls::load(identity.ok_or_else(missing)?);
    let named =
        |failure: Failure| Failure { message: format!("{host}: {}", failure.message), ..failure };
    tls.map(Some).map_err(named)
}

/// A channel over TLS to `host`, which is called `name`. After a cut it is made again.
#[cfg_attr(
    not(target_os = "linux"),
    allow(unused_variables, unused_assignments, reason = "no `ClientTls` exists without TLS")
)]
async fn over_tls(tls: &ClientTls, host: &str, port: u16, name: &str) -> Result<Channel, Failure> {
    // The channel passes on the error of its connector as text only. The slot `why`
    // keeps the whole failure with its help and key.
    let why: Arc<std::sync::Mutex<Option<Failure>>> = Arc::default();
    let (tls, host, name) = (tls.clone(), host.to_owned(), name.to_owned());
    let told = Arc::clone(&why);
    let connector = service_fn(move |_| {
        let (tls, host, name, told) = (tls.clone(), host.clone(), name.clone(), Arc::clone(&told));
        async move {
            tls.connect(&host, port, &name).await.map_err(|failure| {
                let message = failure.message.clone();
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
                io::Error::other(message)
            })
        }
    });
    // tonic needs a URI, and the connector ignores it. A name below `.invalid` (RFC 6761) can never be
    // resolved, so a mistake cannot reach a foreign machine.
    let endpoint = probed(Endpoint::from_static("http://worker.invalid"), PROBE_WITHIN);
    endpoint.connect_with_connector(connector).await.map_err(|error| {
        let known = why.lock().unwrap_or_else(PoisonError::into_inner).take();
        known.unwrap_or_else(|| Failure::failed(cause(&error)))
    })
}

/// `failure` of a connection without TLS, unless TLS is what was missing.
async fn explain_plain(address: &HostAddress, failure: Failure) -> Failure {
    match address {
        // A worker with TLS closes a connection without TLS, which looks like a worker that is down. A TLS
        // handshake that ends with a certificate shows the true reason.
        HostAddress::Listening { host, port, tls: false }
            if !address.is_tls() && ClientTls::is_spoken_at(host, *port).await =>
        {
            Failure::failed(format!("{address} accepts only connections with TLS"))
                .with_help(format!("name it as tls://{address}"))
        }
        _ => failure,
    }
}

/// A channel over the streams of an ssh. They are there once.
async fn over_ssh(stream: SshStream) -> Result<Channel, Failure> {
    let mut stream = Some(stream);
    let connector = service_fn(move |_| {
        // tonic calls the connector again after a cut. The streams of ssh exist once, so the second call must fail:
        // the worker at the other end has ended with its connection.
        let stream = stream.take().ok_or_else(|| io::Error::other("its ssh process has ended"));
        std::future::ready(stream)
    });
    let endpoint = probed(Endpoint::from_static("http://worker.invalid"), PROBE_SSH_WITHIN);
    endpoint.connect_with_connector(connector).await.map_err(|error| {
        let message = format!("ssh did not start a worker: {}", cause(&error));
        Failure::failed(message)
    })
}

/// The reply of `host`, or its error.
async fn answer<T>(
    host: &str,
    within: Duration,
    question: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(within, question).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(failure_of(host, &status)),
        Err(_) => {
            let message = format!("{host} does not answer (waited {} s)", within.as_secs());
            Err(Failure::failed(message)
                .with_help("check that the host and its network are up")
                .with_key(NO_ANSWER))
        }
    }
}

/// The innermost cause of `error`: the outer ones say `transport error` alone.
fn cause(error: &dyn std::error::Error) -> String {
    // An error of tonic prints only `transport error`. The innermost source says `connection refused` or
    // names the certificate, and only that helps the user.
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
