//! The replacement for TLS in builds without it.

use std::path::Path;

use hyper_util::rt::TokioIo;
use ssdyno_session::Failure;
use tokio::io::DuplexStream;

/// The controller's end: none without TLS.
#[derive(Clone, Debug)]
pub(crate) enum ClientTls {}

impl ClientTls {
    pub(crate) fn load(_: &Path) -> Result<ClientTls, Failure> {
        Err(Failure::usage("ssdyno has TLS on Linux only")
            .with_help("reach the worker through ssh: name it as [USER@]HOST, without a port"))
    }

    pub(crate) fn revoked(&self) -> Result<Option<String>, Failure> {
        match *self {}
    }

    pub(crate) async fn connect(
        &self,
        _: &str,
        _: u16,
        _: &str,
    ) -> Result<TokioIo<DuplexStream>, Failure> {
        match *self {}
    }

    pub(crate) async fn is_spoken_at(_: &str, _: u16) -> bool {
        false
    }
}
