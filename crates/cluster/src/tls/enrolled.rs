//! The workers that a controller enrolled: a list of their certificates, beside the authority.

use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};
use ssdyno_session::Failure;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::authority::{Authority, now_unix_s};
use super::files;
use super::identity::{Identity, Role};
use super::revoked::{Revocations, Serial};
use super::token::{hex, unhex_any};

/// A line of the list: written when the certificate is signed, and never changed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    serial: String,
    names: Vec<String>,
    enrolled_unix_s: i64,
    ends_unix_s: i64,
}

impl Line {
    fn of(text: &str) -> Result<Line, String> {
        let line: Line = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match unhex_any(&line.serial) {
            Some(_) => Ok(line),
            None => Err(format!("`{}` is not a serial number", line.serial)),
        }
    }
}

/// Whether a certificate counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CertificateState {
    /// It counts.
    Valid,
    /// Its time is over.
    Expired,
    /// The controller took it back, at this second since 1970.
    Revoked(i64),
}

/// A certificate of a worker. A worker that enrolled again has several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerCertificate {
    /// Its serial number in hexadecimal digits: no two certificates have the same.
    pub serial: String,
    /// Its subjects: names and addresses by which controllers may call the worker.
    pub names: Vec<String>,
    /// When it was given, in seconds since 1970.
    pub enrolled_unix_s: i64,
    /// Its last second, since 1970.
    pub ends_unix_s: i64,
    /// Whether it counts now.
    pub state: CertificateState,
}

fn list_of(directory: &Path) -> PathBuf {
    directory.join("enrolled.jsonl")
}

/// Adds the certificate `pem` of the worker that is called `names`. The caller gives it away afterwards: one that is not in
/// the list could not be taken back.
pub(super) fn record(directory: &Path, pem: &str, names: &[String]) -> Result<(), Failure> {
    let bad = |error: &dyn std::fmt::Display| {
        Failure::failed(format!("cannot read a new certificate: {error}"))
    };
    // The serial number is read back from the certificate as DER has it. The encoding may differ from the
    // bytes that went in, and a revocation compares DER.
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| bad(&error))?;
    let (_, read) = X509Certificate::from_der(&der).map_err(|error| bad(&error))?;
    let line = Line {
        serial: hex(read.raw_serial()),
        names: names.to_vec(),
        enrolled_unix_s: now_unix_s(),
        ends_unix_s: read.validity().not_after.timestamp(),
    };
    let line = serde_json::to_string(&line).map_err(|error| bad(&error))?;
    files::append(&list_of(directory), &line)
}

fn read(directory: &Path) -> Result<Vec<Line>, Failure> {
    let path = list_of(directory);
    let text = files::read_list(&path)?.unwrap_or_default();
    // One damaged line stops the reading. Skipping it would hide a certificate that
    // is valid and could not be revoked by name.
    let lines = text.lines().enumerate();
    let lines = lines.map(|(index, line)| Line::of(line).map_err(|why| (index, why)));
    lines.collect::<Result<_, _>>().map_err(|(index, why)| {
        let message = format!(
            "{} is damaged: line {} does not describe a worker: {why}",
            path.display(),
            index + 1
        );
        Failure::usage(message)
            .with_help(
                "restore it, or remove this line; after that its certificate cannot be revoked",
            )
            .with_key("identity")
    })
}

fn certificate(line: Line, revoked: &Revocations, now: i64) -> WorkerCertificate {
    let serial: Serial = unhex_any(&line.serial).unwrap_or_default();
    let state = match revoked.time_of(&serial) {
        Some(time) => CertificateState::Revoked(time),
        // An expired certificate needs no revocation: TLS refuses it already. Keeping it off the list keeps the
        // list short, because nothing is ever removed from the list.
        None if line.ends_unix_s < now => CertificateState::Expired,
        None => CertificateState::Valid,
    };
    let Line { serial, names, enrolled_unix_s, ends_unix_s } = line;
    WorkerCertificate { serial, names, enrolled_unix_s, ends_unix_s, state }
}

fn authority_in(directory: &Path) -> Result<Authority, Failure> {
    Authority::open(directory)?.ok_or_else(|| {
        let place = directory.display();
        let message =
            format!("this controller has no authority: there is no authority.pem in {place}");
        Failure::usage(message)
            .with_help("invite a worker first: that creates the authority")
            .with_key("identity")
    })
}

/// The certificates that the controller in `directory` gave to workers, the oldest first.
///
/// # Errors
/// There is no controller, or one of its files is damaged.
pub fn enrolled_workers(directory: &Path) -> Result<Vec<WorkerCertificate>, Failure> {
    let authority = authority_in(directory)?;
    let revoked = Revocations::read(directory, &authority.certificate)?;
    let now = now_unix_s();
    Ok(read(directory)?.into_iter().map(|line| certificate(line, &revoked, now)).collect())
}

/// Takes back the valid certificates of the worker that is called `name`, or the one with this serial number; gives them.
/// From now on this controller refuses to connect to a worker that shows one of them. A connection that is open goes on.
///
/// # Errors
/// No certificate has this name or number; all that have it are revoked or expired; a file of the controller is damaged,
/// or cannot be written.
pub fn revoke_worker(directory: &Path, name: &str) -> Result<Vec<WorkerCertificate>, Failure> {
    let authority = authority_in(directory)?;
    // The lock covers reading and writing of the list. Two revocations at the same time would otherwise
    // each write a list without the other's certificate.
    let _alone = Authority::lock(directory)?;
    let mut revoked = Revocations::read(directory, &authority.certificate)?;
    let now = now_unix_s();
    let all = read(directory)?;
    let is_named = |line: &Line| {
        line.serial.eq_ignore_ascii_case(name)
            || line.names.iter().any(|one| one.eq_ignore_ascii_case(name))
    };
    let (named, others): (Vec<Line>, Vec<Line>) = all.into_iter().partition(is_named);
    if named.is_empty() {
        return Err(unknown(name, &others));
    }
    let named: Vec<_> = named.into_iter().map(|line| certificate(line, &revoked, now)).collect();
    let (valid, past): (Vec<_>, Vec<_>) =
        named.into_iter().partition(|one| one.state == CertificateState::Valid);
    if valid.is_empty() {
        return Err(past_failure(name, past.last()));
    }
    for one in &valid {
        revoked.add(unhex_any(&one.serial).unwrap_or_default(), now);
    }
    // The list is complete before it replaces the old one. A crash during the write leaves
    // the old list, and the command can be repeated.
    revoked.write(directory, &authority)?;
    let taken = |one| WorkerCertificate { state: CertificateState::Revoked(now), ..one };
    Ok(valid.into_iter().map(taken).collect())
}

/// Gives the controller in `directory` a new key and a new certificate, and takes back the certificate that it had; gives the serial
/// number of that one in hexadecimal digits. A worker refuses the old certificate once a controller with the new list has connected
/// to it, or once the list (`revoked.pem`) lies in its own directory.
///
/// # Errors
/// There is no controller, or one of its files is damaged or cannot be written.
pub fn renew_controller(directory: &Path) -> Result<String, Failure> {
    let authority = authority_in(directory)?;
    let _alone = Authority::lock(directory)?;
    let mut revoked = Revocations::read(directory, &authority.certificate)?;
    let path = Role::Controller.file(directory);
    let text = files::read(&path)?.unwrap_or_default();
    let serial = Identity::of(Role::Controller, path.clone(), &text)?.serial()?;
    // The list is written first. A controller that is killed in between has a certificate that nobody accepts, and
    // the next `renew` repairs that. The other order would leave the stolen certificate valid.
    if revoked.time_of(&serial).is_none() {
        revoked.add(serial.clone(), now_unix_s());
        revoked.write(directory, &authority)?;
    }
    authority.replace_controller(&path)?;
    Ok(hex(&serial))
}

fn unknown(name: &str, others: &[Line]) -> Failure {
    let mut names: Vec<&str> =
        others.iter().flat_map(|line| &line.names).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let help = match names.as_slice() {
        [] => "this controller has not enrolled a worker yet".to_owned(),
        names => format!("enrolled workers: {}", names.join(", ")),
    };
    Failure::usage(format!(
        "no enrolled worker is called `{name}`, and no certificate has this number"
    ))
    .with_help(help)
    .with_key("name")
}

/// Why nothing is left to revoke, by the newest certificate of `name`.
fn past_failure(name: &str, newest: Option<&WorkerCertificate>) -> Failure {
    let date = super::identity::date;
    let why = newest.map_or(String::new(), |newest| match newest.state {
        CertificateState::Revoked(at) => format!("was already revoked on {}", date(at)),
        _ => format!("expired on {}", date(newest.ends_unix_s)),
    });
    Failure::usage(format!("the certificate of `{name}` {why}"))
        .with_help("there is nothing to revoke: it is already refused")
        .with_key("name")
}

#[cfg(test)]
mod tests {
    use super::super::authority::{DAY, Purpose};
    use super::*;

    /// Half a line is the only damage, and the certificates after it can be listed and revoked once it is removed.
    #[test]
    fn half_a_line_does_not_damage_the_next() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path();
        let authority = Authority::open_or_create(directory).unwrap();
        let enrol = |name: &str| {
            let names = [name.to_owned()];
            let certificate = authority.issue(Purpose::Server, &names, DAY).unwrap();
            record(directory, &certificate, &names).unwrap();
        };
        enrol("a");
        let path = list_of(directory);
        let whole = std::fs::read_to_string(&path).unwrap();
        let half = &whole[..whole.len() / 2];
        std::fs::write(&path, format!("{whole}{half}")).unwrap();
        enrol("b");
        let failure = enrolled_workers(directory).unwrap_err();
        assert!(failure.message.contains("line 2 does not describe a worker"), "{failure}");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace(&format!("\n{half}\n"), "\n")).unwrap();
        let all = enrolled_workers(directory).unwrap();
        let names: Vec<_> = all.into_iter().flat_map(|one| one.names).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(revoke_worker(directory, "b").unwrap().len(), 1);
    }
}
