//! The certificates that a controller took back: a list that its authority signed (RFC 5280, 5).

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{CertificateRevocationListParams, KeyIdMethod, RevokedCertParams, SerialNumber};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use ssdyno_session::Failure;
use x509_parser::prelude::{CertificateRevocationList, FromDer, X509Certificate};

use super::authority::{AUTHORITY_DAYS, Authority, DAY};
use super::files;
use super::identity::Identity;

/// The number of a certificate, as DER has it.
pub(super) type Serial = Vec<u8>;

/// What is revoked.
#[derive(Debug, Default)]
pub(super) struct Revocations {
    /// The signed list; `None` if nothing was ever revoked.
    pub(super) signed: Option<CertificateRevocationListDer<'static>>,
    /// Numbers, and when they were revoked, in seconds since 1970.
    revoked: Vec<(Serial, i64)>,
}

fn file_in(directory: &Path) -> PathBuf {
    directory.join("revoked.pem")
}

/// The list in `directory`, as PEM.
pub(super) fn text(directory: &Path) -> Result<Option<String>, Failure> {
    files::read_list(&file_in(directory))
}

/// Stores `list` in `directory` of a worker, if it has more certificates than the one that is there. Nothing is ever taken off the
/// list, so whoever has an old one cannot bring back what it lacks.
///
/// # Errors
/// The authority of `identity` did not sign it, or it cannot be stored.
pub(super) fn learn(directory: &Path, list: &str, identity: &Identity) -> Result<(), Failure> {
    let authority = &identity.chain[1];
    let told = Revocations::of(list, authority).map_err(|why| {
        let message =
            format!("the list of revoked certificates that the controller sent is bad: {why}");
        Failure::failed(message).with_help("look at `revoked.pem` of the controller")
    })?;
    // The lock is on the identity file and not on the list, because the list may
    // not exist yet and is replaced by a rename.
    let _alone = files::lock(&identity.path)?;
    let known = Revocations::read(directory, authority)?;
    // Nothing is ever removed from a list, so of two lists with the same signer the longer one is newer. A
    // stolen controller key cannot bring back an old list.
    if told.revoked.len() > known.revoked.len() {
        files::write(&file_in(directory), list, true)?;
    }
    Ok(())
}

/// Replaces the list in `directory` of a worker with `list`: a worker that another authority enrolled before has the
/// list of that authority, which would refuse every controller.
pub(super) fn replace(directory: &Path, list: Option<&str>) -> Result<(), Failure> {
    let path = file_in(directory);
    match list {
        Some(list) => files::write(&path, list, true).map(drop),
        None => files::remove(&path),
    }
}

impl Revocations {
    /// Reads the list in `directory`, which `authority` signed. Without such a file nothing is revoked.
    ///
    /// # Errors
    /// It is damaged, or another authority signed it: nothing is trusted then.
    pub(super) fn read(
        directory: &Path,
        authority: &CertificateDer<'_>,
    ) -> Result<Revocations, Failure> {
        let path = file_in(directory);
        let Some(text) = files::read_list(&path)? else { return Ok(Revocations::default()) };
        Revocations::of(&text, authority).map_err(|why| {
            let message =
                format!("{} is not a list of revoked certificates: {why}", path.display());
            Failure::usage(message)
                .with_help("restore it; without it a revoked worker would be trusted again")
                .with_key("identity")
        })
    }

    fn of(text: &str, authority: &CertificateDer<'_>) -> Result<Revocations, String> {
        let signed = CertificateRevocationListDer::from_pem_slice(text.as_bytes());
        let signed = signed.map_err(|error| error.to_string())?;
        let (_, list) =
            CertificateRevocationList::from_der(&signed).map_err(|error| error.to_string())?;
        let (_, issuer) =
            X509Certificate::from_der(authority).map_err(|error| error.to_string())?;
        // The signature is checked here, too. TLS alone would only say that it does not know the state of a
        // certificate, and the user could not find the damaged file.
        list.verify_signature(issuer.public_key())
            .map_err(|_| "the authority of this controller did not sign it".to_owned())?;
        let revoked = list.iter_revoked_certificates();
        let revoked =
            revoked.map(|one| (one.raw_serial().to_vec(), one.revocation_date.timestamp()));
        Ok(Revocations { revoked: revoked.collect(), signed: Some(signed) })
    }

    /// When `serial` was revoked.
    pub(super) fn time_of(&self, serial: &[u8]) -> Option<i64> {
        // A linear search: a controller revokes a handful of certificates, and the
        // list is read once for each connection.
        self.revoked.iter().find(|(other, _)| other == serial).map(|(_, time)| *time)
    }

    pub(super) fn add(&mut self, serial: Serial, unix_s: i64) {
        self.revoked.push((serial, unix_s));
    }

    /// Signs the list, and stores it in `directory`.
    pub(super) fn write(&self, directory: &Path, authority: &Authority) -> Result<(), Failure> {
        let at = |unix_s: i64| {
            let since = Duration::from_secs(u64::try_from(unix_s).unwrap_or_default());
            (SystemTime::UNIX_EPOCH + since).into()
        };
        let certificates = self.revoked.iter().map(|(serial, time)| RevokedCertParams {
            serial_number: SerialNumber::from_slice(serial),
            revocation_time: at(*time),
            reason_code: None,
            invalidity_date: None,
        });
        let now = SystemTime::now();
        let params = CertificateRevocationListParams {
            this_update: now.into(),
            // The list is valid as long as its authority. A worker without a network, which cannot receive
            // a newer list, must not refuse everybody one day.
            next_update: (now + DAY * AUTHORITY_DAYS).into(),
            // Nothing is ever removed from the list, so its length grows with each change and serves
            // as the number of the list (RFC 5280, 5.2.3).
            crl_number: SerialNumber::from(self.revoked.len() as u64),
            issuing_distribution_point: None,
            revoked_certs: certificates.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let text = params.signed_by(&authority.issuer).and_then(|list| list.pem());
        let text = text.map_err(|error| {
            let message = format!("cannot sign the list of revoked certificates: {error}");
            Failure::failed(message)
        })?;
        files::write(&file_in(directory), &text, true).map(drop)
    }
}
