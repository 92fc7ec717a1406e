//! What is known of a network target, its idle connections, and what a protocol is to the engine.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ssdyno_block::Request;

use super::nbd::handshake::negotiate;
use super::nbd::{Export, goodbye, wire};
use super::stream::Stream;
use super::uri::{Address, Uri};
use crate::engine::Outcome;
use crate::error::BenchError;

/// How long connecting and the handshake may take together: no longer than a run that was told to stop waits.
const HANDSHAKE_MOST: Duration = Duration::from_secs(5);

/// Puts requests into the messages of one connection, and finds out what the messages received mean. It knows no
/// socket.
pub(crate) trait Protocol {
    /// Appends the message for `request` to `out`; the data of a write follows it. An error is the outcome of a
    /// request that the server does not take: nothing was appended.
    fn encode(&mut self, slot: u32, request: &Request, out: &mut Vec<u8>) -> Result<(), Outcome>;

    /// What `received` begins with; `None` where that is not whole yet. It is asked again with more bytes then.
    ///
    /// # Errors
    /// The server breaks the protocol: the connection is of no use any more.
    fn decode(&mut self, received: &[u8]) -> Result<Option<Piece>, String>;
}

/// The answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// Bytes of the message before its data.
    pub(crate) header_bytes: usize,
    pub(crate) slot: u32,
    /// Bytes of data that follow, for the slot's place.
    pub(crate) payload_bytes: usize,
    /// Of the request, when its data is there.
    pub(crate) outcome: Outcome,
}

/// What is wrong with a server or the way to it, and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Trouble {
    pub(crate) what: String,
    pub(crate) help: String,
}

impl Trouble {
    pub(crate) fn new(what: String, help: &str) -> Trouble {
        Trouble { what, help: help.to_owned() }
    }

    /// The server sent `what`, which it must not.
    pub(crate) fn protocol(what: String) -> Trouble {
        let what = format!("the server breaks the protocol: it sent {what}");
        Trouble::new(what, "check that it is an NBD server, and try a newer version of it")
    }

    /// As an error of `target`.
    pub(crate) fn of(self, target: &str) -> BenchError {
        BenchError::Network { target: target.to_owned(), what: self.what, help: self.help }
    }
}

/// A network target.
#[derive(Debug)]
pub(crate) struct Remote {
    name: String,
    uri: Uri,
    export: Export,
    /// Connections past the handshake that nobody uses. The first is that by which the export was found: a server
    /// for one client would let a second one wait.
    idle: Mutex<Vec<Stream>>,
}

impl Remote {
    /// Connects to the target `name`.
    pub(crate) fn open(name: &str) -> Result<Remote, BenchError> {
        let uri = Uri::parse(name).map_err(|what| {
            let help = "write nbd://HOST[:PORT][/EXPORT] or nbd+unix:///[EXPORT]?socket=PATH";
            Trouble::new(what, help).of(name)
        })?;
        let (stream, export) = connect(&uri).map_err(|trouble| trouble.of(name))?;
        let idle = Mutex::new(vec![stream]);
        Ok(Remote { name: name.to_owned(), uri, export, idle })
    }

    pub(crate) fn export(&self) -> &Export {
        &self.export
    }

    /// What must be typed before it is written to.
    pub(crate) fn short_name(&self) -> String {
        self.uri.short_name()
    }

    /// What a reader of the figures must know.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.export.notes(&self.uri.export)
    }

    /// Whether a flush on one connection is for what was written on the others, too.
    pub(crate) fn shares_flushes(&self) -> bool {
        self.export.has(wire::CAN_MULTI_CONN)
    }

    /// A connection past the handshake, idle or new.
    pub(crate) fn link(&self) -> Result<Stream, BenchError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(stream) = idle {
            return Ok(stream);
        }
        let (stream, export) = connect(&self.uri).map_err(|trouble| trouble.of(&self.name))?;
        if export.size_bytes != self.export.size_bytes {
            let (was, is) = (self.export.size_bytes, export.size_bytes);
            let what = format!("the export had {was} B, and has {is} B on another connection");
            return Err(
                Trouble::new(what, "run again when it is not changed meanwhile").of(&self.name)
            );
        }
        Ok(stream)
    }

    /// Takes back a connection on which nothing is outstanding.
    pub(crate) fn keep(&self, stream: Stream) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }
}

impl Drop for Remote {
    /// Takes leave: a server that is not told logs an error.
    fn drop(&mut self) {
        let idle = self.idle.get_mut().unwrap_or_else(PoisonError::into_inner);
        for mut stream in idle.drain(..) {
            // Nobody waits for it: a socket that takes no 28 bytes is closed without.
            let _ = stream.set_nonblocking(true);
            let _ = stream.write_vectored(&[io::IoSlice::new(&goodbye())]);
        }
    }
}

fn connect(uri: &Uri) -> Result<(Stream, Export), Trouble> {
    let deadline = Instant::now() + HANDSHAKE_MOST;
    let connected = Stream::connect(&uri.address, deadline);
    let mut stream = connected.map_err(|error| unreachable_server(&uri.address, &error))?;
    let export = negotiate(&mut stream, &uri.export, deadline)?;
    Ok((stream, export))
}

fn unreachable_server(address: &Address, error: &io::Error) -> Trouble {
    let help = match (error.kind(), address) {
        (io::ErrorKind::ConnectionRefused, Address::Tcp { .. }) => {
            "no server listens there: start it, and check host and port"
        }
        (io::ErrorKind::TimedOut, _) => "check host, port and firewall: nothing answers",
        (io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused, Address::Unix(_)) => {
            "no server listens there: start it, and check the path of the socket"
        }
        (io::ErrorKind::PermissionDenied, _) => "ask the owner of the socket for access to it",
        _ => "check host and network",
    };
    Trouble::new(format!("cannot connect to {address}: {error}"), help)
}
