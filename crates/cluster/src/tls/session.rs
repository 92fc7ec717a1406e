//! Connections: both ends authenticate each other before a message is sent.

use std::io::{self, Cursor};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::ServerName;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use ssdyno_session::Failure;
use tokio::io::{AsyncReadExt as _, Chain, Join, ReadHalf, WriteHalf, join, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};
use tokio_stream::wrappers::ReceiverStream;

use super::explain;
use super::identity::{Identity, Role};
use super::pinned::{CONTROLLER_NAME, pinned_config, provider};
use super::revoked::{self, Revocations};

/// How long a connection may take until both ends are known.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// Connections that are between arrival and that at most; others wait in the queue of the system.
const HANDSHAKES_MAX: usize = 64;

/// The protocol of a connection (RFC 7301): HTTP/2, as gRPC has it.
const HTTP2: &[u8] = b"h2";

type Client = client::TlsStream<TcpStream>;

/// A connection to a worker, with what it sent first.
pub(crate) type ClientStream =
    TokioIo<Join<Chain<Cursor<Vec<u8>>, ReadHalf<Client>>, WriteHalf<Client>>>;

/// A connection from a controller.
pub(crate) type ServerStream = server::TlsStream<TcpStream>;

fn roots(identity: &Identity) -> Result<Arc<RootCertStore>, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(identity.chain[1].clone()).map_err(|error| explain::unusable(identity, &error))?;
    Ok(Arc::new(roots))
}

/// The side of a controller.
#[derive(Clone, Debug)]
pub(crate) struct ClientTls {
    identity: Arc<Identity>,
    directory: Arc<Path>,
}

impl ClientTls {
    /// With the certificate of the controller in `directory`.
    pub(crate) fn load(directory: &Path) -> Result<ClientTls, Failure> {
        let identity = Arc::new(Identity::read(Role::Controller, directory)?);
        let tls = ClientTls { identity, directory: directory.into() };
        // The configuration is made once for nothing but its errors. A damaged file then shows before
        // the first connection, with the name of the file.
        tls.config()?;
        Ok(tls)
    }

    /// The configuration of the next connection. The list of revoked certificates is read each time: a worker whose certificate was
    /// revoked in the meantime, in the middle of a run or while the page is open, cannot come back after a cut.
    fn config(&self) -> Result<ClientConfig, Failure> {
        let identity = &*self.identity;
        let unusable = |error: rustls::Error| explain::unusable(identity, &error);
        let revoked = Revocations::read(&self.directory, &identity.chain[1])?;
        let verifier = WebPkiServerVerifier::builder_with_provider(roots(identity)?, provider())
            .with_crls(revoked.signed)
            .build()
            .map_err(|error| explain::unusable(identity, &error))?;
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_webpki_verifier(verifier);
        let (chain, key) = (identity.chain.to_vec(), identity.key.clone_key());
        let mut config = builder.with_client_auth_cert(chain, key).map_err(unusable)?;
        // Resumption is off: a resumed session would not check the certificate of a
        // worker that was revoked in the meantime.
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![HTTP2.to_vec()];
        Ok(config)
    }

    /// The list of certificates that its authority took back, for workers; `None` where nothing was ever revoked.
    pub(crate) fn revoked(&self) -> Result<Option<String>, Failure> {
        revoked::text(&self.directory)
    }

    /// Whether whoever listens at `host` and `port` speaks TLS.
    pub(crate) async fn is_spoken_at(host: &str, port: u16) -> bool {
        // No certificate has the fingerprint 0, so this handshake always fails. The kind of error shows whether
        // the other end speaks TLS, and nothing is sent to it.
        let Ok(config) = pinned_config([0; 32], HTTP2) else { return false };
        let Ok(name) = ServerName::try_from(CONTROLLER_NAME) else { return false };
        let asking = async {
            let tcp = TcpStream::connect((host.trim_matches(['[', ']']), port)).await.ok()?;
            let error = TlsConnector::from(Arc::new(config)).connect(name, tcp).await.err()?;
            Some(explain::is_of_certificate(&error))
        };
        tokio::time::timeout(HANDSHAKE_WITHIN, asking).await.ok().flatten().unwrap_or(false)
    }

    /// Connects to the worker at `host` and `port`, which is called `name`.
    pub(crate) async fn connect(
        &self,
        host: &str,
        port: u16,
        name: &str,
    ) -> Result<ClientStream, Failure> {
        let bare = host.trim_matches(['[', ']']);
        let server = ServerName::try_from(bare.to_owned()).map_err(|_| {
            Failure::usage(format!("{name}: a certificate cannot be issued for the name {host}"))
                .with_help("use the DNS name of the host, or its address")
        })?;
        let config = self.config().map_err(|failure| {
            let message = format!("{name}: {}", failure.message);
            Failure { message, ..failure }
        })?;
        let connecting = async {
            let tcp = TcpStream::connect((bare, port))
                .await
                .map_err(|error| explain::unreachable(name, &error))?;
            let refused = |error: io::Error| explain::by_client(name, &error);
            // An error is ignored: the connection works without this
            // option, only with more delay.
            let _ = tcp.set_nodelay(true);
            let connector = TlsConnector::from(Arc::new(config));
            let mut stream = connector.connect(server, tcp).await.map_err(refused)?;
            // With TLS 1.3 a client is ready before the server has looked at its certificate. HTTP/2 lets the server speak
            // first (RFC 9113, 3.4): what it says is its settings, or why it refuses the certificate. A client that
            // spoke before would often lose that to a reset of the connection.
            let mut first = vec![0; 512];
            match stream.read(&mut first).await {
                Ok(0) => Err(refused(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => {
                    // The bytes that were read go in front of the rest of the stream. HTTP/2 begins with them, and
                    // without them the connection would be out of step.
                    first.truncate(read);
                    let (from, to) = split(stream);
                    Ok(TokioIo::new(join(Cursor::new(first).chain(from), to)))
                }
                Err(error) => Err(refused(error)),
            }
        };
        let connected = tokio::time::timeout(HANDSHAKE_WITHIN, connecting).await;
        connected.unwrap_or_else(|_| Err(explain::silent(name, HANDSHAKE_WITHIN)))
    }
}

/// The side of a worker.
#[derive(Clone, Debug)]
pub(crate) struct ServerTls {
    identity: Arc<Identity>,
    directory: Arc<Path>,
}

impl ServerTls {
    /// With the certificate of the worker in `directory`.
    pub(crate) fn load(directory: &Path) -> Result<ServerTls, Failure> {
        let identity = Arc::new(Identity::read(Role::Worker, directory)?);
        let tls = ServerTls { identity, directory: directory.into() };
        // The same test as on the side of the controller: a worker without a usable
        // certificate must not start and then refuse everybody.
        tls.config()?;
        Ok(tls)
    }

    /// The configuration of the next connection. The list of revoked certificates is read each time: another controller, or a person, may have
    /// brought a newer one.
    fn config(&self) -> Result<ServerConfig, Failure> {
        let identity = &*self.identity;
        let revoked = Revocations::read(&self.directory, &identity.chain[1])?;
        let verifier = WebPkiClientVerifier::builder_with_provider(roots(identity)?, provider())
            .with_crls(revoked.signed)
            .build()
            .map_err(|error| explain::unusable(identity, &error))?;
        server_config(identity, Some(verifier), HTTP2)
    }

    /// Stores `list`, the revoked certificates that a controller sent, if it is longer than the list of this worker.
    ///
    /// # Errors
    /// The authority did not sign it, or it cannot be stored.
    pub(crate) fn learn(&self, list: &str) -> Result<(), Failure> {
        revoked::learn(&self.directory, list, &self.identity)
    }

    /// Connections of controllers to `listener`. `refused` receives the others.
    pub(crate) fn incoming(
        self,
        listener: TcpListener,
        refused: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> ReceiverStream<io::Result<ServerStream>> {
        // Handshakes run in tasks of their own. One client that sends nothing would otherwise
        // keep all controllers out for five seconds.
        let (send, receive) = mpsc::channel(1);
        tokio::spawn(async move {
            let places = Arc::new(Semaphore::new(HANDSHAKES_MAX));
            loop {
                // A place is taken before `accept`. Clients that only connect can therefore hold
                // 64 sockets at most, each for five seconds.
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                let (tcp, peer) = match listener.accept().await {
                    Ok(accepted) => accepted,
                    // The process has too many open files, or the client has gone away already. A short pause keeps
                    // the loop from using a whole core until a file is closed.
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                };
                if send.is_closed() {
                    return;
                }
                let (tls, send) = (self.clone(), send.clone());
                let refused = Arc::clone(&refused);
                tokio::spawn(async move {
                    let accepted = match tls.config() {
                        Ok(config) => accept(Arc::new(config), tcp).await,
                        Err(failure) => Err(failure.message),
                    };
                    match accepted {
                        // An error means that the server has stopped taking connections. The worker is ending, so
                        // the connection is dropped without a message.
                        Ok(stream) => drop(send.send(Ok(stream)).await),
                        Err(why) => refused(&format!("refused {peer}: {why}")),
                    }
                    drop(place);
                });
            }
        });
        ReceiverStream::new(receive)
    }
}

/// A server with `identity`, which asks clients for certificates if there is a `verifier`.
pub(super) fn server_config(
    identity: &Identity,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    protocol: &[u8],
) -> Result<ServerConfig, Failure> {
    let unusable = |error: rustls::Error| explain::unusable(identity, &error);
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?;
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let (chain, key) = (identity.chain.to_vec(), identity.key.clone_key());
    let mut config = builder.with_single_cert(chain, key).map_err(unusable)?;
    // TLS 1.3 tickets allow a client to resume a session, and a resumed session would not be
    // checked against the list of revoked certificates.
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}

/// The client at the other end of `tcp`, or the reason why it is not a client.
pub(super) async fn accept(
    config: Arc<ServerConfig>,
    tcp: TcpStream,
) -> Result<ServerStream, String> {
    let _ = tcp.set_nodelay(true);
    let accepting = TlsAcceptor::from(config).accept(tcp);
    match tokio::time::timeout(HANDSHAKE_WITHIN, accepting).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(explain::by_server(&error)),
        Err(_) => Err(format!("it sent nothing for {} s", HANDSHAKE_WITHIN.as_secs())),
    }
}
