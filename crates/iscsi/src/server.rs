//! Sockets: a listener, a thread that keeps the time, and two for each connection.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use ssdyno_serve::{TcpService, TimeKeeper};

use crate::line;
use crate::target::IscsiTarget;

/// Connections at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 256;

/// A target that listens. Dropped, it ends all connections and waits for their threads.
#[derive(Debug)]
pub struct IscsiServer {
    target: Arc<IscsiTarget>,
    /// Before the keeper of the time: commands that are pending at the end may go on until it is over.
    service: TcpService,
    _clock: TimeKeeper,
}

impl IscsiServer {
    /// Listens at `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn start(address: impl ToSocketAddrs, target: Arc<IscsiTarget>) -> io::Result<IscsiServer> {
        let served = target.clone();
        let serve = move |stream: &_| line::serve(stream, served.clone());
        let service = TcpService::start(address, "iscsi", CONNECTIONS_MAX, serve)?;
        Ok(IscsiServer { _clock: target.keep_time()?, service, target })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.service.address()
    }

    /// The target.
    pub fn target(&self) -> &Arc<IscsiTarget> {
        &self.target
    }
}
