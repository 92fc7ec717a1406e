//! Mutual TLS between controllers and workers, and how a worker comes by its certificate.
//!
//! A controller has a directory with an authority, which signs certificates, and a certificate of its own. Each
//! certificate has one purpose (RFC 5280, 4.2.1.12): that of a controller authenticates clients, that of a worker
//! servers. So a worker cannot command another. A worker makes its key, and an invitation
//! ([`Invitation`](crate::Invitation)) has it certified by the authority; the key never leaves the worker.
//!
//! TLS 1.3 alone, without resumption: every connection checks both certificates and their dates.
//!
//! Not here: revocation. A certificate ends with its date, or with a new authority.

mod authority;
mod enrol;
mod explain;
mod files;
mod identity;
mod invite;
mod messages;
mod pinned;
mod session;
mod token;

pub use enrol::{Enrolment, enrol_worker};
pub use invite::{EnrolledWorker, Invitation, InvitationOptions};
pub(crate) use session::{ClientTls, ServerTls};
