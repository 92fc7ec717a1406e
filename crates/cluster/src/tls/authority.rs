//! The authority of a controller, which signs certificates.

use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SerialNumber,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use ssdyno_session::Failure;

use super::files;
use super::identity::{Identity, Role};
use super::token::{Secret, hex};

/// A day.
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// How long an authority lasts: longer than the machines that trust it.
pub(super) const AUTHORITY_DAYS: u32 = 3650;

/// How long the certificate of a controller lasts. Each invitation renews one that has not much left of it.
const CONTROLLER_DAYS: u32 = 365;
const RENEW_WITH_LEFT: Duration = Duration::from_secs(60 * 86_400);

/// A clock of another machine may be behind by this much.
const BEHIND: Duration = Duration::from_secs(3600);

/// The purpose of a certificate.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// To command workers.
    Controller,
    /// To be a server: a worker, or the controller while it enrols one.
    Server,
}

/// Signs certificates.
#[derive(Debug)]
pub(crate) struct Authority {
    pub(super) issuer: Issuer<'static, KeyPair>,
    pub(super) certificate: CertificateDer<'static>,
    /// The same for files.
    pub(super) pem: String,
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::failed(format!("cannot create a certificate: {error}"))
}

fn params(name: &str, names: &[String], lasts: Duration) -> Result<CertificateParams, Failure> {
    let mut params = CertificateParams::new(names).map_err(|error| failed(&error))?;
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    params.distinguished_name = distinguished;
    // The start lies an hour in the past. A worker whose clock is behind would otherwise
    // refuse the new certificate as not yet valid.
    let now = SystemTime::now();
    params.not_before = (now - BEHIND).into();
    params.not_after = now.checked_add(lasts).unwrap_or(now).into();
    Ok(params)
}

fn file_in(directory: &Path) -> PathBuf {
    directory.join("authority.pem")
}

/// A number for a certificate. Random: one that came from the key would be the same if a worker whose certificate was revoked
/// enrolled with the same key again.
fn new_serial() -> Result<SerialNumber, Failure> {
    let mut bytes = Secret::random()?.bytes().to_vec();
    // The number must be positive, and it should have one length in DER: the first byte is
    // therefore neither 0 nor above 0x7f (RFC 5280, 4.1.2.2).
    bytes[0] = bytes[0] & 0x3f | 0x40;
    Ok(SerialNumber::from(bytes))
}

impl Authority {
    /// That of the controller in `directory`, which is made at the first time; with a certificate of the controller that
    /// has some time left.
    pub(crate) fn open_or_create(directory: &Path) -> Result<Authority, Failure> {
        files::make_directory(directory)?;
        let authority = match Authority::open(directory)? {
            Some(authority) => authority,
            None => {
                // Two processes may create the authority at the same time. The file is linked without replacing, so
                // the first one wins, and the second one reads the winner's file.
                files::write(&file_in(directory), &Authority::create()?, false)?;
                let gone = || failed(&"another process removed the authority");
                Authority::open(directory)?.ok_or_else(gone)?
            }
        };
        // Another process may give the controller a new certificate at this moment, and revoke the old one.
        let _alone = Authority::lock(directory)?;
        authority.renew_controller(directory)?;
        Ok(authority)
    }

    /// That of the controller in `directory`, if there is one.
    pub(super) fn open(directory: &Path) -> Result<Option<Authority>, Failure> {
        let path = file_in(directory);
        let Some(text) = files::read(&path)? else { return Ok(None) };
        let authority = Authority::of(&text).map_err(|error| {
            let message = format!("{} does not hold an authority: {error}", path.display());
            let help = "restore it; without it remove the directory, and enrol all workers again";
            Failure::usage(message).with_help(help).with_key("identity")
        })?;
        Ok(Some(authority))
    }

    /// Nobody else revokes certificates of the controller in `directory` until this is dropped.
    pub(super) fn lock(directory: &Path) -> Result<File, Failure> {
        files::lock(&file_in(directory))
    }

    fn of(text: &str) -> Result<Authority, String> {
        let certificate =
            CertificateDer::from_pem_slice(text.as_bytes()).map_err(|error| error.to_string())?;
        let key =
            PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| error.to_string())?;
        let key = KeyPair::try_from(&key).map_err(|error| error.to_string())?;
        let issuer =
            Issuer::from_ca_cert_der(&certificate, key).map_err(|error| error.to_string())?;
        Ok(Authority { issuer, pem: certificate_only(text), certificate })
    }

    /// A new one, with its key.
    fn create() -> Result<String, Failure> {
        let key = KeyPair::generate().map_err(|error| failed(&error))?;
        // Two authorities also have different names. TLS finds the issuer by name first, and equal names
        // would turn "another authority" into "bad signature".
        let name = format!("ssdyno authority {}", &hex(Secret::random()?.bytes())[..8]);
        let mut params = params(&name, &[], DAY * AUTHORITY_DAYS)?;
        // The length of the path is 0: this authority signs certificates of hosts only, and
        // no further authorities (RFC 5280, 4.2.1.9).
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        // `CrlSign` is needed for the list of revoked certificates: TLS refuses a list whose
        // issuer may not sign lists (RFC 5280, 4.2.1.3).
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key).map_err(|error| failed(&error))?;
        Ok(certificate.pem() + &key.serialize_pem())
    }

    /// A certificate for the holder of `key`, as PEM.
    pub(super) fn sign(
        &self,
        key: &impl PublicKeyData,
        purpose: Purpose,
        names: &[String],
        lasts: Duration,
    ) -> Result<String, Failure> {
        let (name, usage) = match purpose {
            Purpose::Controller => ("ssdyno controller", ExtendedKeyUsagePurpose::ClientAuth),
            Purpose::Server => ("ssdyno server", ExtendedKeyUsagePurpose::ServerAuth),
        };
        let mut params = params(name, names, lasts)?;
        // The serial number is drawn for each certificate. A number derived from the key would still be on the list
        // when a revoked worker enrols again with the same key.
        params.serial_number = Some(new_serial()?);
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // One purpose for each certificate: a stolen worker certificate is valid only for
        // a server and can command no other worker.
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        Ok(params.signed_by(key, &self.issuer).map_err(|error| failed(&error))?.pem())
    }

    /// A certificate with a new key and that of the authority, as an identity has them.
    pub(super) fn issue(
        &self,
        purpose: Purpose,
        names: &[String],
        lasts: Duration,
    ) -> Result<String, Failure> {
        let key = KeyPair::generate().map_err(|error| failed(&error))?;
        Ok(self.sign(&key, purpose, names, lasts)? + &self.pem + &key.serialize_pem())
    }

    /// Makes the certificate of the controller if there is none, if it is from another authority, or if it expires
    /// soon.
    fn renew_controller(&self, directory: &Path) -> Result<(), Failure> {
        let path = Role::Controller.file(directory);
        // A controller that another authority signed before would be refused by all workers. The file
        // is replaced, although its own date may be good.
        if let Some(text) = files::read(&path)?
            && let Ok(identity) = Identity::of(Role::Controller, path.clone(), &text)
            && identity.chain[1] == self.certificate
            && let Ok(ends) = identity.ends_at()
            && ends > now_unix_s().saturating_add(RENEW_WITH_LEFT.as_secs() as i64)
        {
            return Ok(());
        }
        self.replace_controller(&path)
    }

    /// A new key and certificate of the controller, in `path`.
    pub(super) fn replace_controller(&self, path: &Path) -> Result<(), Failure> {
        let text = self.issue(Purpose::Controller, &[], DAY * CONTROLLER_DAYS)?;
        files::write(path, &text, true).map(drop)
    }
}

/// Seconds since 1970.
pub(super) fn now_unix_s() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// `text` without the key.
fn certificate_only(text: &str) -> String {
    const END: &str = "-----END CERTIFICATE-----";
    let end = text.find(END).map_or(0, |at| at + END.len());
    format!("{}\n", &text[..end])
}

/// Whether a certificate may be for `name`: an IP address, or a name of DNS that is no pattern and not reserved
/// (`.invalid`, RFC 6761: the controller has such a name while it enrols a worker).
pub(super) fn is_name(name: &str) -> bool {
    let label = |label: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        (1..=63).contains(&label.len()) && label.chars().all(plain) && !label.starts_with('-')
    };
    // The controller has a name below `.invalid` while it enrols workers. A worker with the same name
    // could act as the controller towards the next worker.
    let is_reserved = name.to_ascii_lowercase().ends_with(".invalid");
    name.parse::<IpAddr>().is_ok()
        || (name.len() <= 253 && name.split('.').all(label) && !is_reserved)
}
