//! The messages between a worker and its controller during enrolment: one request, one response. Each is a length of
//! four bytes, the highest first, and that many bytes of CBOR.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The protocol of such a connection (RFC 7301).
pub(super) const ENROLMENT: &[u8] = b"ssdyno-enrol/1";

/// Bytes of a message at most.
const BYTES_MAX: u32 = 64 << 10;

/// Names that a worker may have.
pub(super) const NAMES_MAX: usize = 32;

/// What a worker asks. No `Debug`: it holds a secret.
#[derive(Serialize, Deserialize)]
pub(super) struct Question {
    /// The secret of the token.
    pub(super) secret: Vec<u8>,
    /// A certificate signing request (RFC 2986) as PEM, for its key alone.
    pub(super) request: String,
    /// Names and addresses by which the worker is reached.
    pub(super) names: Vec<String>,
}

/// What the controller answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Enrolled {
        /// As PEM.
        certificate: String,
        /// As PEM.
        authority: String,
        names: Vec<String>,
        /// The list of revoked certificates as PEM, where there is one.
        #[serde(default)]
        revoked: Option<String>,
    },
    /// Why not.
    Refused(String),
}

pub(super) async fn send<T: Serialize>(
    to: &mut (impl AsyncWrite + Unpin),
    message: &T,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    ciborium::into_writer(message, &mut bytes).map_err(io::Error::other)?;
    // The sender checks the same limit as the receiver. A message that is too long is then an error
    // here, with a cause, and not a closed connection there.
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= BYTES_MAX);
    let length = length.ok_or_else(|| io::Error::other("a message is too long"))?;
    to.write_all(&length.to_be_bytes()).await?;
    to.write_all(&bytes).await?;
    to.flush().await
}

pub(super) async fn receive<T: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
) -> io::Result<T> {
    let length = from.read_u32().await?;
    // The length comes from a client that has proved nothing yet. Without the limit four
    // bytes would make this process reserve 4 GiB.
    if length > BYTES_MAX {
        return Err(io::Error::other("a message is too long"));
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes).await?;
    // The error of the parser is not passed on: it may quote a part of the
    // message, and the message contains the secret.
    ciborium::from_reader(bytes.as_slice()).map_err(|_| io::Error::other("a message is garbled"))
}
