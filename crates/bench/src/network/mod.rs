//! Targets behind a network, loaded by an initiator of our own: no block layer of this machine is in between,
//! and no kernel module is needed.
//!
//! A protocol is a [`Protocol`](protocol::Protocol): it knows messages and no socket. The
//! [engine](crate::engine::network) knows sockets and no protocol. The work that is done once for a target (names,
//! login, consent, blocking calls) is in [`Remote`]. There are [NBD](nbd) and [iSCSI](iscsi).

#[cfg(target_os = "linux")]
mod file;
#[cfg(target_os = "linux")]
mod iscsi;
#[cfg(target_os = "linux")]
mod nbd;
#[cfg(target_os = "linux")]
pub(crate) mod protocol;
#[cfg(target_os = "linux")]
mod remote;
#[cfg(target_os = "linux")]
pub(crate) mod stream;
#[cfg(target_os = "linux")]
mod uri;

#[cfg(target_os = "linux")]
pub use file::{RemoteFile, inspect_export};

#[cfg(target_os = "linux")]
pub(crate) use remote::{Link, Remote};

/// Whether `target` names a network target: `nbd:` and `iscsi:` and their variants, also those that are not supported.
pub fn is_network(target: &str) -> bool {
    let scheme = target.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| SCHEMES.iter().any(|one| one.eq_ignore_ascii_case(scheme)))
}

const SCHEMES: [&str; 8] =
    ["nbd", "nbd+unix", "nbds", "nbds+unix", "nbd+vsock", "nbds+vsock", "iscsi", "iser"];
