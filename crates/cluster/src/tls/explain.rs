//! Explanations of failed connections, for people.

use std::io;
use std::time::Duration;

use rustls::{AlertDescription, CertificateError, Error};
use ssdyno_session::Failure;

use super::identity::{Identity, Role, date};

fn failed(message: String, help: impl Into<String>) -> Failure {
    Failure::failed(message).with_help(help)
}

/// An identity that TLS does not take.
pub(super) fn unusable(identity: &Identity, error: &dyn std::fmt::Display) -> Failure {
    let message = format!("{} cannot be used: {error}", identity.path.display());
    Failure::usage(message)
        .with_help(format!("remove it, then {}", identity.role.renewal()))
        .with_key("identity")
}

/// A host that does not answer TCP.
pub(super) fn unreachable(name: &str, error: &io::Error) -> Failure {
    failed(
        format!("cannot reach a worker at {name}: {error}"),
        "start a worker that listens at this address",
    )
}

/// A host that accepts TCP and sends nothing.
pub(super) fn silent(name: &str, waited: Duration) -> Failure {
    failed(
        format!("{name} does not answer (waited {} s)", waited.as_secs()),
        "check that the host and its network are up, and that a worker with TLS listens there",
    )
}

fn cause(error: &io::Error) -> Option<&Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

/// Whether the other end showed a certificate, which was not accepted.
pub(super) fn is_of_certificate(error: &io::Error) -> bool {
    matches!(cause(error), Some(Error::InvalidCertificate(_)))
}

/// The controller's message when the connection to the worker `name` failed.
pub(super) fn by_client(name: &str, error: &io::Error) -> Failure {
    const ANOTHER: &str = "enrol that worker with an invitation of this controller, or use the identity of the controller that invited it";
    // Each cause has its own remedy, and the text of rustls names none. It is written for
    // programmers of TLS, not for an owner of storage servers.
    match cause(error) {
        Some(Error::InvalidCertificate(error)) => bad_worker(name, error),
        Some(Error::AlertReceived(alert)) => refused(name, *alert),
        Some(Error::InvalidMessage(_)) => failed(
            format!("{name} does not use TLS"),
            "only a worker on loopback may listen without TLS: name it without `tls://`, or start it with its certificate",
        ),
        Some(Error::NoApplicationProtocol) => {
            failed(format!("{name} is not a worker: it speaks another protocol over TLS"), ANOTHER)
        }
        Some(error) => failed(format!("{name}: TLS failed: {error}"), ANOTHER),
        None => failed(
            format!("{name} closed the connection before it identified itself: {error}"),
            "check what the worker printed",
        ),
    }
}

/// A certificate of a worker that is not accepted.
fn bad_worker(name: &str, error: &CertificateError) -> Failure {
    let renewal = Role::Worker.renewal();
    let seconds = |time: &rustls::pki_types::UnixTime| date(time.as_secs() as i64);
    match error {
        CertificateError::ExpiredContext { not_after, .. } => {
            let since = seconds(not_after);
            failed(format!("the certificate of the worker at {name} expired on {since}"), renewal)
        }
        CertificateError::NotValidYetContext { not_before, .. } => failed(
            format!(
                "the certificate of the worker at {name} is not valid before {}",
                seconds(not_before)
            ),
            "check the clock of this machine",
        ),
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<&str> = presented.iter().map(|name| plain_name(name)).collect();
            failed(
                format!("the worker at {name} is enrolled under other names: {}", names.join(", ")),
                "use one of these names, or enrol it again with this name too",
            )
        }
        CertificateError::Revoked => failed(
            format!("this controller revoked the certificate of the worker at {name}"),
            "to trust the worker again, enrol it with a new invitation and restart it",
        ),
        // A foreign authority with the same name gives a bad signature instead of an
        // unknown issuer. Both mean the same to the user.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => failed(
            format!("the certificate of the worker at {name} is from another authority"),
            "enrol that worker with an invitation of this controller, or use the identity of the controller that invited it",
        ),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            failed(format!("the certificate of {name} is not a worker certificate"), renewal)
        }
        error => {
            failed(format!("the certificate of the worker at {name} is bad: {error}"), renewal)
        }
    }
}

/// `DnsName("a")` or `IpAddress(127.0.0.1)` without what is around it.
fn plain_name(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, inner)| inner.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

/// A worker that does not accept the certificate of this controller.
fn refused(name: &str, alert: AlertDescription) -> Failure {
    let renewal = Role::Controller.renewal();
    match alert {
        AlertDescription::CertificateExpired => failed(
            format!("{name} says that the certificate of this controller has expired"),
            format!("{renewal}; or set the clock of the worker"),
        ),
        AlertDescription::CertificateRevoked => failed(
            format!("{name} says that the certificate of this controller was revoked"),
            "use the identity of the controller that was renewed",
        ),
        // rustls sends `DecryptError` when the signature of the client's chain does not fit. For the user this is the
        // same case as an authority that the worker does not know.
        AlertDescription::UnknownCA | AlertDescription::DecryptError => failed(
            format!(
                "{name} does not know the authority of this controller: another controller enrolled it"
            ),
            "enrol that worker with an invitation of this controller, or use the identity of the controller that invited it",
        ),
        AlertDescription::UnsupportedCertificate | AlertDescription::CertificateRequired => failed(
            format!(
                "{name} accepts commands from controllers only, and this certificate is not a controller certificate"
            ),
            "use the identity of a controller",
        ),
        AlertDescription::NoApplicationProtocol => failed(
            format!("{name} is not a worker: it speaks another protocol over TLS"),
            "check which program listens there",
        ),
        alert => failed(format!("{name} refuses this controller: {alert:?}"), renewal),
    }
}

/// The server at `place` is not the controller that made the invitation.
pub(super) fn not_the_controller(place: &str, error: &io::Error) -> Failure {
    let why = match cause(error) {
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "its authority is not the one in the token".to_owned()
        }
        Some(Error::InvalidMessage(_)) => "it does not use TLS".to_owned(),
        Some(Error::NoApplicationProtocol | Error::AlertReceived(_)) => {
            "it is a server for something else".to_owned()
        }
        Some(error) => error.to_string(),
        None => error.to_string(),
    };
    failed(
        format!("{place} is not the controller that made this token: {why}"),
        "make another invitation, and check which program listens there; no secret was sent to it",
    )
}

/// A server's message about a client whose connection failed.
pub(super) fn by_server(error: &io::Error) -> String {
    match cause(error) {
        Some(Error::NoCertificatesPresented) => "it has no certificate".to_owned(),
        Some(Error::InvalidCertificate(error)) => match error {
            CertificateError::ExpiredContext { not_after, .. } => {
                format!("its certificate expired on {}", date(not_after.as_secs() as i64))
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "its certificate is from another authority".to_owned()
            }
            CertificateError::Revoked => "its certificate was revoked".to_owned(),
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                "its certificate is not a controller certificate".to_owned()
            }
            error => format!("its certificate is bad: {error}"),
        },
        Some(Error::InvalidMessage(_)) => "it does not use TLS".to_owned(),
        Some(Error::AlertReceived(AlertDescription::CertificateRevoked)) => {
            "it revoked the certificate of this worker".to_owned()
        }
        Some(Error::AlertReceived(alert)) => format!("it does not accept this side ({alert:?})"),
        Some(error) => error.to_string(),
        None => format!("its connection ended: {error}"),
    }
}
