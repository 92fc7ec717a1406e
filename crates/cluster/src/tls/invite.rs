//! A controller that waits for one worker to enrol.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rcgen::CertificateSigningRequestParams;
use rustls::ServerConfig;
use ssdyno_session::{Failure, FailureKind};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::authority::{Authority, DAY, Purpose, now_unix_s};
use super::enrol::check_names;
use super::enrolled;
use super::identity::{Identity, Role};
use super::messages::{Answer, ENROLMENT, Question, receive, send};
use super::pinned::{CONTROLLER_NAME, fingerprint};
use super::revoked::{self, Revocations};
use super::session::{accept, server_config};
use super::token::{Secret, Token};

/// Wrong secrets after which an invitation ends. A token cannot be guessed; an attempt is worth a
/// message.
const WRONG_MAX: u32 = 5;

/// Workers that are answered at once.
const CLIENTS_MAX: usize = 16;

/// The time within which a connection must send its request.
const ASK_WITHIN: Duration = Duration::from_secs(10);

/// How often it is asked whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The purpose of an invitation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvitationOptions {
    /// Where it waits for the worker; with port 0 at one that is free.
    pub listen: SocketAddr,
    /// The name of this machine for workers; `None` for the address that it listens at or, where that is every address,
    /// its name.
    pub reach: Option<String>,
    /// How long it waits: seconds to a day.
    pub valid_for: Duration,
    /// How long the certificate of the worker lasts, in days: 1 to 3650.
    pub worker_days: u32,
    /// The subjects of the certificate: names and addresses. Empty, the worker says it.
    pub names: Vec<String>,
}

impl Default for InvitationOptions {
    /// Every address, a quarter of an hour, a year.
    fn default() -> InvitationOptions {
        InvitationOptions {
            listen: SocketAddr::from(([0, 0, 0, 0], 7809)),
            reach: None,
            valid_for: Duration::from_secs(15 * 60),
            worker_days: 365,
            names: Vec::new(),
        }
    }
}

/// One worker may enrol.
#[derive(Debug)]
pub struct Invitation {
    listener: TcpListener,
    token: Token,
    ends: Instant,
    desk: Desk,
}

/// A worker that was enrolled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnrolledWorker {
    /// Where it came from.
    pub peer: SocketAddr,
    /// The subjects of its certificate.
    pub names: Vec<String>,
}

/// Who enrols workers.
#[derive(Clone, Debug)]
struct Desk {
    authority: Arc<Authority>,
    directory: Arc<Path>,
    config: Arc<ServerConfig>,
    options: Arc<InvitationOptions>,
    gate: Arc<Mutex<Gate>>,
}

/// What a worker gets.
struct Enrolled {
    certificate: String,
    names: Vec<String>,
    revoked: Option<String>,
}

/// The holder of the secret gets through, once.
#[derive(Debug)]
struct Gate {
    secret: Secret,
    used: bool,
    wrong: u32,
}

impl Gate {
    /// Whether `secret` lets in.
    fn check(&mut self, secret: &[u8]) -> Result<(), &'static str> {
        // The limit is tested before the secret. After five wrong secrets even the right one is refused, because
        // the place of the invitation is known to an attacker.
        if self.wrong >= WRONG_MAX {
            return Err("this invitation ended after too many wrong tokens");
        }
        if !self.secret.is(secret) {
            self.wrong += 1;
            return Err(
                "its token does not belong to this invitation: it was used, has expired, or was never issued",
            );
        }
        // A wrong secret is counted before this test, so a stranger cannot find
        // out whether an invitation was used.
        if self.used {
            return Err("its token has already been used");
        }
        Ok(())
    }
}

impl Invitation {
    /// Listens. The authority of the controller in `directory` is made at the first time, and its certificate renewed where
    /// it ends soon.
    ///
    /// # Errors
    /// The address is taken, a name or a time is not possible, or `directory` cannot be used.
    pub fn open(directory: &Path, options: InvitationOptions) -> Result<Invitation, Failure> {
        let InvitationOptions { listen, reach, valid_for, worker_days, names } = &options;
        check_names(names)?;
        if let Some(reach) = reach {
            // The address goes into the token, and the worker connects to it. A pattern or a name
            // with other characters could not be reached.
            check_names(&[reach.trim_matches(['[', ']']).to_owned()])?;
        }
        if !(Duration::from_secs(1)..=DAY).contains(valid_for) {
            return Err(Failure::usage("an invitation is valid for 1 s to 24 h")
                .with_help("make it shortly before the worker is enrolled")
                .with_key("valid_for"));
        }
        if !(1..=3650).contains(worker_days) {
            return Err(Failure::usage("the certificate of a worker is valid for 1 to 3650 days")
                .with_help("a year is usual: enrolling it again renews it")
                .with_key("hosts_valid"));
        }
        let taken = |error| {
            Failure::usage(format!("cannot listen at {listen}: {error}"))
                .with_help("use another address or port; port 0 selects a free port")
        };
        let listener = TcpListener::bind(listen).map_err(taken)?;
        let port = listener.local_addr().map_err(taken)?.port();
        let authority = Authority::open_or_create(directory)?;
        // The secret has 128 random bits, and an invitation allows five attempts. The expiry
        // protects only against a token that was lost.
        let secret = Secret::random()?;
        let ends_unix_s =
            u64::try_from(now_unix_s()).unwrap_or_default().saturating_add(valid_for.as_secs());
        let token = Token {
            host: host_of(&options),
            port,
            ends_unix_s,
            authority: fingerprint(&authority.certificate),
            secret: secret.clone(),
        };
        let ends = Instant::now() + *valid_for;
        let config = Arc::new(enrolment_config(&authority, directory.into(), *valid_for)?);
        let gate = Arc::new(Mutex::new(Gate { secret, used: false, wrong: 0 }));
        let (authority, options) = (Arc::new(authority), Arc::new(options));
        let desk = Desk { authority, directory: directory.into(), config, options, gate };
        Ok(Invitation { listener, token, ends, desk })
    }

    /// The token for the worker, to be kept secret: its holder may enrol.
    pub fn token(&self) -> String {
        self.token.text()
    }

    /// Where it waits, as the token says it.
    pub fn place(&self) -> String {
        self.token.place()
    }

    /// Waits for the worker. `refused` receives the refused worker and the reason, as one line without secrets.
    ///
    /// # Errors
    /// No worker came in time, somebody tried too many tokens, or `ends` became true.
    pub fn wait(
        self,
        ends: impl Fn() -> bool,
        refused: &mut dyn FnMut(&str),
    ) -> Result<EnrolledWorker, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let failed =
            |error: std::io::Error| Failure::failed(format!("cannot wait for workers: {error}"));
        runtime.map_err(failed)?.block_on(async {
            self.listener.set_nonblocking(true).map_err(failed)?;
            let listener = tokio::net::TcpListener::from_std(self.listener).map_err(failed)?;
            let mut clients: JoinSet<Result<EnrolledWorker, String>> = JoinSet::new();
            loop {
                let is_over = Instant::now() >= self.ends;
                // Expiry and interrupt are checked on each pass. The sleep of 50 ms in `select` makes
                // sure that a pass comes, even if no client does.
                if let Some(why) = self.desk.over(is_over, ends()) {
                    return Err(why);
                }
                tokio::select! {
                    Some(done) = clients.join_next() => match done {
                        Ok(Ok(worker)) => return Ok(worker),
                        Ok(Err(why)) => refused(&why),
                        Err(error) => refused(&error.to_string()),
                    },
                    Ok((tcp, peer)) = listener.accept(), if clients.len() < CLIENTS_MAX => {
                        let desk = self.desk.clone();
                        clients.spawn(async move {
                            // One slow client must not hold the invitation. Each client has its own
                            // task and its own limit of ten seconds.
                            let served = tokio::time::timeout(ASK_WITHIN, desk.serve(tcp, peer)).await;
                            let served = served.unwrap_or_else(|_| Err("it was too slow".to_owned()));
                            served.map_err(|why| format!("refused {peer}: {why}"))
                        });
                    }
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                }
            }
        })
    }
}

/// The controller's name in a token.
fn host_of(options: &InvitationOptions) -> String {
    let address = options.listen.ip();
    let host = match &options.reach {
        Some(reach) => reach.trim_matches(['[', ']']).to_owned(),
        None if address.is_unspecified() => crate::worker::machine(),
        None => address.to_string(),
    };
    if host.contains(':') { format!("[{host}]") } else { host }
}

/// A server that workers know by its authority.
fn enrolment_config(
    authority: &Authority,
    path: PathBuf,
    lasts: Duration,
) -> Result<ServerConfig, Failure> {
    let names = [CONTROLLER_NAME.to_owned()];
    // The certificate lasts one day longer than the invitation. A worker whose
    // clock is ahead by some hours can still enrol.
    let text = authority.issue(Purpose::Server, &names, lasts + DAY)?;
    server_config(&Identity::of(Role::Controller, path, &text)?, None, ENROLMENT)
}

impl Desk {
    fn over(&self, is_late: bool, is_interrupted: bool) -> Option<Failure> {
        let wrong = self.gate.lock().unwrap_or_else(PoisonError::into_inner).wrong;
        if wrong >= WRONG_MAX {
            let message = format!("the invitation ended: {wrong} wrong tokens were tried");
            return Some(Failure::failed(message).with_help(
                "find the program that sends wrong tokens, then make another invitation at an address that only the worker can reach",
            ));
        }
        if is_interrupted {
            let message = "interrupted before a worker enrolled: the token is void";
            return Some(Failure::new(FailureKind::Interrupted, message));
        }
        is_late.then(|| {
            Failure::failed("no worker enrolled in time: the token has expired")
                .with_help("make another invitation when you can enrol the worker")
        })
    }

    /// Answers one worker; or says why it was not enrolled.
    async fn serve(&self, tcp: TcpStream, peer: SocketAddr) -> Result<EnrolledWorker, String> {
        let mut stream = accept(Arc::clone(&self.config), tcp).await?;
        let question: Question = receive(&mut stream).await.map_err(|error| error.to_string())?;
        let (answer, done) = match self.decide(question) {
            Ok(Enrolled { certificate, names, revoked }) => {
                let authority = self.authority.pem.clone();
                let worker = EnrolledWorker { peer, names: names.clone() };
                (Answer::Enrolled { certificate, authority, names, revoked }, Ok(worker))
            }
            Err(why) => (Answer::Refused(why.clone()), Err(why)),
        };
        let sent = send(&mut stream, &answer).await;
        // The shutdown sends what is still in the buffers. Closing the socket at once could reset the
        // connection, and the worker would lose the answer.
        let _ = tokio::io::AsyncWriteExt::shutdown(&mut stream).await;
        match (sent, done) {
            (Err(error), Ok(_)) => {
                // The token is spent, but nobody knows whether the worker has its certificate. The
                // invitation says so, and the user makes another one.
                Err(format!("the connection was lost while it received its certificate ({error})"))
            }
            (_, done) => done,
        }
    }

    /// The certificate for the worker, its purpose, and the list of revoked certificates.
    fn decide(&self, question: Question) -> Result<Enrolled, String> {
        // The gate is locked from the check to the mark. Two workers with the same token at the
        // same moment would otherwise both be enrolled.
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        gate.check(&question.secret)?;
        let Desk { authority, directory, options, .. } = self;
        let names = if options.names.is_empty() { question.names } else { options.names.clone() };
        check_names(&names).map_err(|failure| failure.message)?;
        if names.is_empty() {
            return Err("it has no name; give it one".to_owned());
        }
        // Only the public key of the request counts, which the worker proves to own. Names, purposes and extensions
        // in the request are ignored, because the worker could ask for anything.
        let request = CertificateSigningRequestParams::from_pem(&question.request)
            .map_err(|error| format!("its request is bad: {error}"))?;
        // A list that is damaged stops the enrolment before the token is spent. The worker could not check it, and would
        // refuse every controller.
        let told = |failure: Failure| failure.message;
        Revocations::read(directory, &authority.certificate).map_err(told)?;
        let revoked = revoked::text(directory).map_err(told)?;
        let lasts = DAY * options.worker_days;
        let signed = authority.sign(&request.public_key, Purpose::Server, &names, lasts);
        let certificate = signed.map_err(|failure| failure.message)?;
        // The certificate is in the list before the worker has it. A certificate that is
        // missing from the list could never be revoked.
        enrolled::record(directory, &certificate, &names).map_err(|failure| failure.message)?;
        gate.used = true;
        Ok(Enrolled { certificate, names, revoked })
    }
}
