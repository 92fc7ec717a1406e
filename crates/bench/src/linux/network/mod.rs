//! Targets behind a network, loaded by an initiator of our own: no block layer of this machine is in between,
//! and no kernel module is needed.
//!
//! A protocol is a [`Protocol`](protocol::Protocol): it knows messages and no socket. The
//! [engine](crate::engine::network) knows sockets and no protocol. The work that is done once for a target (names,
//! login, consent, blocking calls) is in [`Remote`]. There are [NBD](nbd) and [iSCSI](iscsi).

mod file;
mod iscsi;
mod nbd;
pub(crate) mod protocol;
mod remote;
pub(crate) mod stream;
mod uri;

pub use file::{RemoteFile, inspect_export};

pub(crate) use remote::{Link, Remote};
