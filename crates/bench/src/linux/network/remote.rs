//! The known facts about a network target, and its idle connections.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::protocol::{Facts, Protocol, Talk, Trouble};
use super::stream::Stream;
use super::uri::{Address, Offer, UnitName, Uri};
use super::{iscsi, nbd};
use crate::error::BenchError;

/// The time limit of connecting and the handshake together: no longer than the wait of a stopped run.
const HANDSHAKE_MOST: Duration = Duration::from_secs(5);

/// A connection that was idle for less is not asked whether the server is still there: calls that follow one another
/// would take twice as long. Targets ping, and firewalls forget, after longer.
const IDLE_TRUSTED: Duration = Duration::from_secs(1);

/// How long the answer to that may take.
const ALIVE_WITHIN: Duration = Duration::from_secs(2);

/// A connection past the handshake.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) stream: Stream,
    pub(crate) protocol: Box<dyn Protocol>,
}

/// A network target.
#[derive(Debug)]
pub(crate) struct Remote {
    name: String,
    uri: Uri,
    facts: Facts,
    /// Unused connections past the handshake. The first is that by which the target was looked at: a server for one
    /// client would let a second one wait. With when that began.
    idle: Mutex<Vec<(Instant, Link)>>,
}

impl Remote {
    /// Connects to the target `name`.
    pub(crate) fn open(name: &str) -> Result<Remote, BenchError> {
        let uri = Uri::parse(name).map_err(|what| {
            let help = "use nbd://HOST[:PORT][/EXPORT], nbd+unix:///[EXPORT]?socket=PATH or iscsi://HOST[:PORT]/IQN/LUN";
            Trouble::new(what, help).of(name)
        })?;
        let (link, facts) = connect(&uri).map_err(|trouble| trouble.of(name))?;
        let idle = Mutex::new(vec![(Instant::now(), link)]);
        Ok(Remote { name: name.to_owned(), uri, facts, idle })
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The text to type before a write.
    pub(crate) fn short_name(&self) -> String {
        self.uri.short_name()
    }

    /// The protocol, as in results.
    pub(crate) fn protocol(&self) -> &'static str {
        match self.uri.offer {
            Offer::Nbd { .. } => "nbd",
            Offer::Iscsi(_) => "iscsi",
        }
    }

    /// A connection past the handshake, idle or new. An idle connection that the server has closed, or on which it no
    /// longer responds, is not returned: the first request would fail.
    pub(crate) fn link(&self) -> Result<Link, BenchError> {
        let next = || self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        while let Some((since, mut link)) = next() {
            if is_alive(&mut link, since.elapsed()) {
                return Ok(link);
            }
        }
        let (link, facts) = connect(&self.uri).map_err(|trouble| trouble.of(&self.name))?;
        // All jobs use addresses below the size that the first connection told. A smaller export
        // on another connection would fail requests, and a larger one would be another export.
        if facts.size_bytes != self.facts.size_bytes {
            let (was, is) = (self.facts.size_bytes, facts.size_bytes);
            let what =
                format!("the target has {was} B on the first connection and {is} B on another");
            return Err(
                Trouble::new(what, "run again while nothing changes the target").of(&self.name)
            );
        }
        Ok(link)
    }

    /// Takes back a connection on which nothing is outstanding.
    pub(crate) fn keep(&self, link: Link) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push((Instant::now(), link));
    }
}

impl Drop for Remote {
    /// Takes leave: a server that is not told logs an error.
    fn drop(&mut self) {
        let idle = self.idle.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (_, Link { mut stream, mut protocol }) in idle.drain(..) {
            // The code does not wait for it: a socket that takes no 48 bytes is closed without.
            let _ = stream.0.set_nonblocking(true);
            let _ = stream.0.write_vectored(&[io::IoSlice::new(&protocol.goodbye())]);
        }
    }
}

/// Whether `link`, which was idle for this time, can be used.
fn is_alive(link: &mut Link, idle: Duration) -> bool {
    let Link { stream, protocol } = link;
    // Nothing is outstanding, so nothing should arrive. The received bytes are a ping, or the end
    // of the connection; only the protocol can distinguish them.
    let arrived = stream.has_arrived();
    if !arrived && idle < IDLE_TRUSTED {
        return true;
    }
    let asked = stream.0.set_nonblocking(false);
    asked.is_ok() && protocol.is_alive(stream, arrived, Instant::now() + ALIVE_WITHIN)
}

fn connect(uri: &Uri) -> Talk<(Link, Facts)> {
    let deadline = Instant::now() + HANDSHAKE_MOST;
    let connected = Stream::connect(&uri.address, deadline);
    let mut stream = connected.map_err(|error| unreachable_server(&uri.address, &error))?;
    let (protocol, facts) = match &uri.offer {
        Offer::Nbd { export } => nbd::connect(&mut stream, export, deadline)?,
        Offer::Iscsi(name) => iscsi::connect(&mut stream, name, deadline)
            .map_err(|trouble| with_targets(trouble, uri, name, deadline))?,
    };
    Ok((Link { stream, protocol }, facts))
}

/// `trouble`, with the targets of the server if it does not know this name.
fn with_targets(trouble: Trouble, uri: &Uri, name: &UnitName, deadline: Instant) -> Trouble {
    if trouble.help != iscsi::UNKNOWN_TARGET {
        return trouble;
    }
    // The list needs a session of its own, of the kind discovery. It is only help for a message:
    // if it fails, the message stays as it was.
    let stream = Stream::connect(&uri.address, deadline).ok();
    match stream.and_then(|mut stream| iscsi::targets(&mut stream, &name.initiator, deadline)) {
        Some(names) => Trouble { help: format!("name one of its targets: {names}"), ..trouble },
        None => trouble,
    }
}

fn unreachable_server(address: &Address, error: &io::Error) -> Trouble {
    let help = match (error.kind(), address) {
        (io::ErrorKind::ConnectionRefused, Address::Tcp { .. }) => {
            "no server listens there: start it, and check host and port"
        }
        (io::ErrorKind::TimedOut, _) => "nothing answers: check host, port and firewall",
        (io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused, Address::Unix(_)) => {
            "no server listens there: start it, and check the path of the socket"
        }
        (io::ErrorKind::PermissionDenied, _) => "ask the owner of the socket for access to it",
        _ => "check host and network",
    };
    Trouble::new(format!("cannot connect to {address}: {error}"), help)
}
