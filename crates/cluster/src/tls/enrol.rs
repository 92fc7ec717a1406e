//! A worker that comes with a token of an invitation.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::ServerName;
use ssdyno_session::Failure;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::authority::{is_name, now_unix_s};
use super::explain;
use super::files;
use super::identity::{Identity, Role, date};
use super::messages::{Answer, ENROLMENT, NAMES_MAX, Question, receive, send};
use super::pinned::{CONTROLLER_NAME, fingerprint, pinned_config};
use super::revoked;
use super::session::server_config;
use super::token::Token;

/// How long it may take, from the connection to the certificate.
const ENROL_WITHIN: Duration = Duration::from_secs(15);

/// The identity of a worker after its enrolment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Enrolment {
    /// The file with its certificate and its key.
    pub file: PathBuf,
    /// The subjects of its certificate: names and addresses by which controllers may call it.
    pub names: Vec<String>,
    /// When the certificate ends, for people.
    pub valid_until: String,
}

/// Enrols this worker with `token`, and stores its certificate in `directory`. A certificate that is there is replaced:
/// that renews it. It is for `names`; without any, for the name of this machine and the address by which it reaches the
/// controller.
///
/// # Errors
/// The token is wrong, was used or has expired; the controller cannot be reached, or is another one than the token says;
/// or `directory` cannot be written. Nothing is stored then.
pub fn enrol_worker(token: &str, directory: &Path, names: &[String]) -> Result<Enrolment, Failure> {
    let token: Token = token.parse()?;
    check_names(names)?;
    // The directory is made before the token is used. A directory that cannot be written would otherwise cost
    // the token, and the user would need a new invitation.
    files::make_directory(directory)?;
    let file = Role::Worker.file(directory);
    // The key is made here and never leaves this machine. The controller receives
    // only a signing request with the public half.
    let key = KeyPair::generate().map_err(|error| broken(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| broken(&error))?;
    let asked = runtime.block_on(async {
        let asked = tokio::time::timeout(ENROL_WITHIN, ask(&token, &key, names)).await;
        asked.unwrap_or_else(|_| Err(explain::silent(&token.place(), ENROL_WITHIN)))
    });
    let Given { certificate, authority, names, revoked } =
        asked.map_err(|failure| if_expired(&token, failure))?;
    let text = certificate + &authority + &key.serialize_pem();
    let identity = Identity::of(Role::Worker, file.clone(), &text)?;
    // The handshake checked the certificate of the server. The answer contains the authority again, and this
    // copy is the one that the worker will trust from now on.
    if fingerprint(&identity.chain[1]) != token.authority {
        let message = format!("{} sent a certificate from another authority", token.place());
        return Err(Failure::failed(message).with_help("ask for an invitation of your controller"));
    }
    // This also checks that the key fits the certificate. A pair that does
    // not fit must not replace a working file.
    server_config(&identity, None, ENROLMENT)?;
    // The list comes before the certificate. A crash in between leaves a worker that refuses everybody; the other
    // order would leave one that accepts a revoked controller.
    revoked::replace(directory, revoked.as_deref())?;
    files::write(&file, &text, true)?;
    Ok(Enrolment { file, names, valid_until: date(identity.ends_at()?) })
}

pub(super) fn check_names(names: &[String]) -> Result<(), Failure> {
    let bad = names.iter().find(|name| !is_name(name));
    match bad {
        Some(bad) => {
            Err(Failure::usage(format!("a certificate cannot be issued for the name `{bad}`"))
                .with_help("use a DNS name, or an address without a port"))
        }
        None if names.len() > NAMES_MAX => {
            Err(Failure::usage(format!("there are {} names", names.len()))
                .with_help(format!("a worker has at most {NAMES_MAX} names")))
        }
        None => Ok(()),
    }
}

fn broken(error: &dyn std::fmt::Display) -> Failure {
    Failure::failed(format!("cannot enrol: {error}"))
}

/// The controller's data for a worker.
struct Given {
    certificate: String,
    authority: String,
    names: Vec<String>,
    revoked: Option<String>,
}

/// Connects, and asks for a certificate.
async fn ask(token: &Token, key: &KeyPair, names: &[String]) -> Result<Given, Failure> {
    let place = token.place();
    let bare = token.host.trim_matches(['[', ']']);
    let tcp = TcpStream::connect((bare, token.port)).await.map_err(|error| {
        let message = format!("cannot reach the controller at {place}: {error}");
        Failure::failed(message).with_help(
            "the controller waits until one worker has enrolled or the token has expired; after \
             that, make another invitation",
        )
    })?;
    // The local address of this connection is one by which the controller can probably reach
    // this worker, behind any number of interfaces.
    let here = tcp.local_addr().ok().map(|address| address.ip());
    let names = if names.is_empty() { names_of_this_machine(here) } else { names.to_vec() };
    let config = pinned_config(token.authority, ENROLMENT).map_err(|error| broken(&error))?;
    let server = ServerName::try_from(CONTROLLER_NAME).map_err(|error| broken(&error))?;
    let connected = TlsConnector::from(Arc::new(config)).connect(server, tcp).await;
    let mut stream = connected.map_err(|error| explain::not_the_controller(&place, &error))?;
    let request = CertificateParams::default().serialize_request(key);
    let request = request.and_then(|request| request.pem()).map_err(|error| broken(&error))?;
    let question = Question { secret: token.secret.bytes().to_vec(), request, names };
    let cut = |error: std::io::Error| {
        let message = format!(
            "the connection to {place} was lost while this worker enrolled: \
                               {error}"
        );
        Failure::failed(message).with_help("make another invitation: this token may be used up")
    };
    send(&mut stream, &question).await.map_err(cut)?;
    match receive(&mut stream).await.map_err(cut)? {
        Answer::Enrolled { certificate, authority, names, revoked } => {
            Ok(Given { certificate, authority, names, revoked })
        }
        Answer::Refused(why) => {
            let message = format!("the controller at {place} refused this worker: {why}");
            Err(Failure::failed(message))
        }
    }
    // A refusal needs a new token in almost all cases. More exact
    // help from a deeper layer is kept.
    .map_err(|failure| match failure.help {
        None => failure.with_help("make another invitation, and use its token before it expires"),
        Some(_) => failure,
    })
}

fn names_of_this_machine(address: Option<IpAddr>) -> Vec<String> {
    let machine = crate::worker::machine();
    let machine = Some(machine).filter(|name| is_name(name) && name != "localhost");
    let address = address.map(|address| address.to_canonical().to_string());
    machine.into_iter().chain(address).collect()
}

/// A token whose time is over may be why a controller does not wait any more. Not decided before: this clock may be
/// wrong, and the controller knows better.
fn if_expired(token: &Token, failure: Failure) -> Failure {
    let ends = i64::try_from(token.ends_unix_s).unwrap_or(i64::MAX);
    if now_unix_s() <= ends {
        return failure;
    }
    let message = format!("the token expired on {}: {}", date(ends), failure.message);
    Failure { message, ..failure }
        .with_help("make another invitation, and use its token before it expires")
}
