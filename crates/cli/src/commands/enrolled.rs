//! `ssdyno controller list`, `ssdyno controller revoke` and `ssdyno controller renew`.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use ssdyno_cluster::{
    CertificateState, WorkerCertificate, enrolled_workers, renew_controller, revoke_worker,
};
use ssdyno_figures::rfc3339;
use ssdyno_session::Failure;

use crate::hosts::identity;
use crate::output::Output;

/// The identity of this controller.
#[derive(Clone, Debug, Args)]
pub(crate) struct IdentityArgs {
    /// Directory with the authority and the certificate of this controller [default:
    /// $XDG_CONFIG_HOME/ssdyno/controller].
    #[arg(long, value_name = "DIR")]
    identity: Option<PathBuf>,
}

impl IdentityArgs {
    /// The directory with it.
    pub(crate) fn directory(&self) -> Result<PathBuf, Failure> {
        identity(self.identity.as_deref(), "controller")
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RevokeArgs {
    /// A name or an address in the worker's certificate, or the serial number of the certificate, as
    /// `controller list` shows them. A name revokes all valid certificates with that name.
    name: String,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn list(args: &IdentityArgs, output: Output) -> Result<(), Failure> {
    let workers = enrolled_workers(&args.directory()?)?;
    output.either(|| table(&workers), || json!({ "workers": values(&workers) }))
}

pub(crate) fn revoke(args: &RevokeArgs, output: Output) -> Result<(), Failure> {
    let revoked = revoke_worker(&args.identity.directory()?, &args.name)?;
    let line =
        |one: &WorkerCertificate| format!("revoked {}: {}\n", one.serial, one.names.join(", "));
    output.either(|| revoked.iter().map(line).collect(), || json!({ "revoked": values(&revoked) }))
}

pub(crate) fn renew(args: &IdentityArgs, output: Output) -> Result<(), Failure> {
    let serial = renew_controller(&args.directory()?)?;
    let text = || format!("this controller has a new certificate; {serial} is revoked\n");
    output.either(text, || json!({ "revoked_serial": serial }))
}

fn moment(unix_s: i64) -> String {
    rfc3339(u64::try_from(unix_s).unwrap_or_default())
}

/// A day is enough in a table.
fn day(unix_s: i64) -> String {
    moment(unix_s).chars().take_while(|c| *c != 'T').collect()
}

fn state(state: CertificateState) -> &'static str {
    match state {
        CertificateState::Valid => "valid",
        CertificateState::Expired => "expired",
        CertificateState::Revoked(_) => "revoked",
    }
}

fn table(workers: &[WorkerCertificate]) -> String {
    if workers.is_empty() {
        return "no worker is enrolled\n".to_owned();
    }
    let line = |one: &WorkerCertificate| {
        let since = match one.state {
            CertificateState::Revoked(at) => format!(" {}", day(at)),
            _ => String::new(),
        };
        let (from, to) = (day(one.enrolled_unix_s), day(one.ends_unix_s));
        let (state, names) = (format!("{}{since}", state(one.state)), one.names.join(", "));
        format!("{:32}  {from}  {to}  {state:18}  {names}\n", one.serial)
    };
    let heading =
        format!("{:32}  {:10}  {:10}  {:18}  names\n", "serial", "enrolled", "until", "state");
    heading + &workers.iter().map(line).collect::<String>()
}

fn values(workers: &[WorkerCertificate]) -> Vec<Value> {
    let value = |one: &WorkerCertificate| {
        let mut value = json!({
            "names": one.names,
            "serial": one.serial,
            "enrolled": moment(one.enrolled_unix_s),
            "valid_until": moment(one.ends_unix_s),
            "state": state(one.state),
        });
        if let CertificateState::Revoked(at) = one.state {
            value["revoked"] = json!(moment(at));
        }
        value
    };
    workers.iter().map(value).collect()
}
