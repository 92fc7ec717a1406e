//! Mutual TLS between controllers and workers, and how a worker comes by its certificate.
//!
//! A controller has a directory with an authority, which signs certificates, and a certificate of its own. Each
//! certificate has one purpose (RFC 5280, 4.2.1.12): that of a controller authenticates clients, that of a worker
//! servers. So a worker cannot command another. A worker makes its key, and an invitation
//! ([`Invitation`](crate::Invitation)) has it certified by the authority; the key never leaves the worker.
//!
//! TLS 1.3 alone, without resumption: every connection checks both certificates and their dates.
//!
//! A controller takes back the certificate of a worker ([`revoke_worker`](crate::revoke_worker)): its authority signs a list of
//! them, which it reads before each connection. Its own certificate is replaced and taken back, too
//! ([`renew_controller`](crate::renew_controller)): each connection brings the list to the worker, which checks its signature,
//! keeps it, and reads it before each connection that it accepts.

mod authority;
mod enrol;
mod enrolled;
mod explain;
mod files;
mod identity;
mod invite;
mod messages;
mod pinned;
mod revoked;
mod session;
mod token;

pub use enrol::{Enrolment, enrol_worker};
pub use enrolled::{
    CertificateState, WorkerCertificate, enrolled_workers, renew_controller, revoke_worker,
};
pub use invite::{EnrolledWorker, Invitation, InvitationOptions};
pub(crate) use session::{ClientTls, ServerTls};
