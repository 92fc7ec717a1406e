//! A certificate with its key and the authority that issued it, in one file.

use std::path::{Path, PathBuf};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use ssdyno_session::Failure;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::time::ASN1Time;

use super::files;

/// Whose certificate it is. That decides what it is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Controller,
    Worker,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::Controller => "controller",
            Role::Worker => "worker",
        }
    }

    pub(super) fn file(self, directory: &Path) -> PathBuf {
        directory.join(format!("{}.pem", self.name()))
    }

    /// How it comes by a new certificate.
    pub(super) fn renewal(self) -> &'static str {
        match self {
            Role::Controller => {
                "make an invitation with this controller: that renews its own certificate"
            }
            Role::Worker => "enrol this worker again, with a new invitation of its controller",
        }
    }
}

/// The identity of this program for the other end of a connection.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(super) role: Role,
    pub(super) path: PathBuf,
    /// Its certificate, then that of the authority.
    pub(super) chain: [CertificateDer<'static>; 2],
    pub(super) key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads that of `role` from `directory`.
    ///
    /// # Errors
    /// There is none, others can read it, or it has expired.
    pub(crate) fn read(role: Role, directory: &Path) -> Result<Identity, Failure> {
        let (path, name) = (role.file(directory), role.name());
        let Some(text) = files::read(&path)? else {
            let place = directory.display();
            let message =
                format!("this {name} has no certificate: there is no {name}.pem in {place}");
            let help = match role {
                Role::Controller => "invite a worker first: that creates the certificate",
                Role::Worker => {
                    "enrol the worker first: `ssdyno controller invite` on the controller prints the token"
                }
            };
            return Err(Failure::usage(message).with_help(help).with_key("identity"));
        };
        let identity = Identity::of(role, path, &text)?;
        identity.check_dates()?;
        Ok(identity)
    }

    /// What `text` holds.
    pub(super) fn of(role: Role, path: PathBuf, text: &str) -> Result<Identity, Failure> {
        let certificates: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(text.as_bytes()).collect();
        // Exactly two certificates: the chain of this protocol has no intermediates. More of them
        // would come from a file that another program made.
        let chain = certificates.ok().and_then(|list| <[_; 2]>::try_from(list).ok());
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes()).ok();
        match (chain, key) {
            (Some(chain), Some(key)) => Ok(Identity { role, path, chain, key }),
            _ => {
                let message = format!(
                    "{} does not hold a certificate, the certificate of its authority and a key",
                    path.display()
                );
                Err(Failure::usage(message)
                    .with_help(format!("remove it, then {}", role.renewal()))
                    .with_key("identity"))
            }
        }
    }

    /// The last second of its certificate, since 1970.
    pub(super) fn ends_at(&self) -> Result<i64, Failure> {
        Ok(self.dates()?.1)
    }

    /// The number of its certificate, as DER has it.
    pub(super) fn serial(&self) -> Result<Vec<u8>, Failure> {
        Ok(self.certificate()?.raw_serial().to_vec())
    }

    fn dates(&self) -> Result<(i64, i64), Failure> {
        let read = self.certificate()?;
        let validity = read.validity();
        Ok((validity.not_before.timestamp(), validity.not_after.timestamp()))
    }

    fn certificate(&self) -> Result<X509Certificate<'_>, Failure> {
        let read = X509Certificate::from_der(&self.chain[0]).map_err(|error| {
            let message = format!("{} holds no certificate: {error}", self.path.display());
            Failure::usage(message).with_help(self.role.renewal()).with_key("identity")
        })?;
        Ok(read.1)
    }

    fn check_dates(&self) -> Result<(), Failure> {
        let (from, to) = self.dates()?;
        let (name, path) = (self.role.name(), self.path.display());
        let now = ASN1Time::now().timestamp();
        // TLS would refuse the certificate as well, but at the other end, and with an alert instead of a
        // date. This message names the file and the remedy.
        if now > to {
            let message = format!("the certificate of this {name} expired on {}: {path}", date(to));
            return Err(Failure::failed(message)
                .with_help(self.role.renewal())
                .with_key("identity"));
        }
        if now < from {
            let message = format!(
                "the certificate of this {name} is not valid before {}: {path}",
                date(from)
            );
            return Err(Failure::failed(message)
                .with_help("check the clock of this machine")
                .with_key("identity"));
        }
        Ok(())
    }
}

/// `unix_s` for people, in UTC.
pub(super) fn date(unix_s: i64) -> String {
    let time = ASN1Time::from_timestamp(unix_s).ok().and_then(|time| time.to_rfc2822().ok());
    time.unwrap_or_else(|| format!("second {unix_s} since 1970"))
}
