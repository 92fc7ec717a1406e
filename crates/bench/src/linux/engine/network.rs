//! Requests that go to a server over a socket: many on their way at once on one connection, answers in any order.
//!
//! The socket never waits; the job does, in ppoll(2), when nothing is there. Data goes directly from and to the buffers
//! of the slots: write data is not copied first, and the data of long reads is received in place.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use ssdyno_block::{Op, Request};

use super::{Engine, Outcome};
use crate::buffers::Buffers;
use crate::content::Content;
use crate::network::protocol::Outbox;
use crate::network::{Link, Remote};

/// The bytes received in one call, besides the rest of a long read.
// Several answers fit into one receive call. The rest of a long read does not go through here:
// it is received where it belongs.
const STAGING_BYTES: usize = 128 << 10;

/// Pieces of memory that one call sends.
const PARTS_MOST: usize = 64;

/// An endless wait is cut here: a job that was given up must learn of it.
const LOOK_UP: Duration = Duration::from_millis(500);

/// What is told of a connection that the server closed without an error of the socket.
const CLOSED: &str = "the server closed the connection";

/// Data that is being received.
#[derive(Debug)]
struct Payload {
    slot: u32,
    /// The missing bytes of the data of its request.
    range: Range<usize>,
    ended: Option<(u32, Outcome)>,
}

/// A connection of one job, past the login.
pub(crate) struct Network {
    link: Link,
    buffers: Buffers,
    /// The request of each slot that is outstanding.
    requests: Vec<Option<Request>>,
    outstanding: u32,
    out: Outbox,
    /// Answered before all of them was sent: their memory is not free yet.
    held: Vec<(u32, Outcome)>,
    staging: Vec<u8>,
    /// Where in `staging` the bytes are that were received and not looked at.
    from: usize,
    to: usize,
    payload: Option<Payload>,
    done: Vec<(u32, Outcome)>,
    /// Why the connection is of no use any more.
    broken: Option<String>,
    system_calls: u64,
    remote: Arc<Remote>,
}

impl Network {
    /// For `slots` requests of up to `length_bytes` on `link`, a connection to `remote`; writes carry `content`, and
    /// are durable when they complete with `fua`.
    pub(crate) fn new(
        remote: Arc<Remote>,
        mut link: Link,
        (slots, length_bytes): (u32, u32),
        content: Option<Content>,
        fua: bool,
    ) -> io::Result<Network> {
        // A socket that waits could be stuck in sending while the server waits for us to
        // receive. Without waiting both directions make progress in one thread.
        link.stream.0.set_nonblocking(true)?;
        link.protocol.prepare(slots, fua);
        Ok(Network {
            link,
            buffers: Buffers::new(slots, length_bytes, content),
            requests: vec![None; slots as usize],
            outstanding: 0,
            out: Outbox::default(),
            held: Vec::new(),
            staging: vec![0; STAGING_BYTES],
            from: 0,
            to: 0,
            payload: None,
            done: Vec::new(),
            broken: None,
            system_calls: 0,
            remote,
        })
    }

    /// Carries out `request` alone, with `data` to write or a `place` to read into.
    ///
    /// # Errors
    /// Of the request, of the connection, or nothing was answered for `patience`.
    pub(crate) fn call(
        mut self,
        request: &Request,
        data: &[u8],
        place: &mut [u8],
        patience: Duration,
    ) -> io::Result<()> {
        self.push(0, request);
        if request.op == Op::Write {
            self.buffers.place(0, request).0.copy_from_slice(data);
        }
        let deadline = Instant::now() + patience;
        while self.done.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.turn(1, Some(left))?;
        }
        if let Some(why) = self.broken {
            return Err(io::Error::other(why));
        }
        if request.op == Op::Read {
            place.copy_from_slice(self.buffers.place(0, request).0);
        }
        let outcome = self.done.first().map_or(0, |(_, outcome)| *outcome);
        let remarks = self.link.protocol.remarks();
        self.end();
        if outcome >= 0 {
            return Ok(());
        }
        let error = io::Error::from_raw_os_error(-outcome);
        match remarks.first() {
            Some(remark) => Err(io::Error::new(error.kind(), format!("{error}: {remark}"))),
            None => Err(error),
        }
    }

    fn finish(&mut self, slot: u32, outcome: Outcome) {
        self.requests[slot as usize] = None;
        self.outstanding -= 1;
        self.done.push((slot, outcome));
    }

    /// The connection is of no use any more: what is outstanding fails.
    #[cold]
    fn give_up_for(&mut self, why: String) {
        if self.broken.is_some() {
            return;
        }
        self.broken = Some(why);
        // Further bytes from the server must not be taken for a reply. Outstanding requests fail
        // with the error of a connection that was reset.
        self.link.stream.shut_down();
        self.out.clear();
        self.held.clear();
        self.payload = None;
        for slot in 0..self.requests.len() {
            if self.requests[slot].is_some() {
                self.finish(slot as u32, -libc::ECONNRESET);
            }
        }
    }

    /// Sends as much as the socket takes.
    fn send(&mut self) {
        self.link.protocol.resume(&mut self.out);
        while !self.out.is_empty() && self.broken.is_none() {
            self.system_calls += 1;
            match self.send_once() {
                Ok(sent) => self.sent(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.send_failed(&error),
            }
        }
    }

    #[cold]
    fn send_failed(&mut self, error: &io::Error) {
        let broke = format!("the connection broke: {error}");
        // The server's last messages may still be there. A server often says why before
        // it closes. Its message may be in the socket although sending has failed.
        self.receive();
        // The error of a socket is reported once: after this one, the receive above sees an end
        // as if the server had closed the connection in order. A reset may have lost replies.
        if error.kind() == io::ErrorKind::ConnectionReset && self.broken.as_deref() == Some(CLOSED)
        {
            self.broken = Some(broke);
        } else {
            self.give_up_for(broke);
        }
    }

    fn send_once(&mut self) -> io::Result<usize> {
        let mut parts = [IoSlice::new(&[]); PARTS_MOST];
        let count = self.out.parts(&mut parts, |slot, range| {
            let request = self.requests[slot as usize].as_ref();
            let length = request.map_or(0, |request| request.length_bytes as usize);
            &self.buffers.written(slot, length)[range]
        });
        self.link.stream.0.write_vectored(&parts[..count])
    }

    /// The first `bytes` are sent.
    fn sent(&mut self, bytes: usize) {
        self.out.sent(bytes);
        if self.held.is_empty() {
            return;
        }
        for (slot, outcome) in std::mem::take(&mut self.held) {
            self.answered(slot, outcome);
        }
    }

    /// The server has answered the request in `slot`.
    fn answered(&mut self, slot: u32, outcome: Outcome) {
        // A server may answer a write before all of its data was sent. The memory is still read
        // by the socket, so the slot must not be used again yet.
        if self.out.holds(slot) {
            self.held.push((slot, outcome));
        } else {
            self.finish(slot, outcome);
        }
    }

    /// Receives what is there.
    fn receive(&mut self) {
        while self.broken.is_none() {
            self.system_calls += 1;
            match self.receive_once() {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.give_up_for(format!("the connection broke: {error}")),
            }
        }
    }

    /// Whether there may be more.
    fn receive_once(&mut self) -> io::Result<bool> {
        let staging = &mut self.staging[self.to..];
        let (room, place_bytes, read) = match &self.payload {
            // All that was received is looked at: the rest of the data is next.
            Some(Payload { slot, range, .. }) => {
                let request = Request::read(0, range.end as u32);
                let (place, _) = self.buffers.place(*slot, &request);
                // One call receives the rest of a long read in place, and the bytes after it into
                // the staging area. The data of long reads is never copied.
                let room = range.len() + staging.len();
                let mut parts =
                    [IoSliceMut::new(&mut place[range.clone()]), IoSliceMut::new(staging)];
                (room, range.len(), self.link.stream.0.read_vectored(&mut parts)?)
            }
            None => (staging.len(), 0, self.link.stream.0.read(staging)?),
        };
        if read == 0 {
            self.give_up_for(CLOSED.to_owned());
            return Ok(false);
        }
        let placed = read.min(place_bytes);
        if let Some(payload) = &mut self.payload {
            payload.range.start += placed;
        }
        self.to += read - placed;
        self.look();
        Ok(read == room)
    }

    /// Looks at what was received.
    fn look(&mut self) {
        loop {
            if let Some(Payload { slot, range, ended }) = &mut self.payload {
                let count = range.len().min(self.to - self.from);
                if count > 0 {
                    let request = Request::read(0, range.end as u32);
                    let (place, _) = self.buffers.place(*slot, &request);
                    place[range.start..range.start + count]
                        .copy_from_slice(&self.staging[self.from..self.from + count]);
                    self.from += count;
                    range.start += count;
                }
                if range.start < range.end {
                    break;
                }
                let ended = *ended;
                self.payload = None;
                if let Some((slot, outcome)) = ended {
                    self.answered(slot, outcome);
                }
            }
            let received = &self.staging[self.from..self.to];
            match self.link.protocol.decode(received, &mut self.out) {
                Ok(None) => break,
                Ok(Some(piece)) => {
                    self.from += piece.header_bytes;
                    let (slot, range) = piece.data.unwrap_or((0, 0..0));
                    self.payload = Some(Payload { slot, range, ended: piece.ended });
                }
                Err(why) => return self.give_up_for(why),
            }
        }
        // The rest is less than a header, or empty. Less than a header is left, so the move is
        // short. In return the next call has the whole area, and messages are always contiguous.
        self.staging.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
    }

    /// Waits until there is something to receive, or room for what is to be sent; whether there is.
    fn wait(&mut self, wait: Duration) -> io::Result<bool> {
        // The protocol may have something to send at a later time, such as a command that the
        // server had no room for. The wait ends then.
        let due = self.link.protocol.due();
        let wait = due.map_or(wait, |due| wait.min(due.saturating_duration_since(Instant::now())));
        let mut wanted = PollFlags::IN;
        if !self.out.is_empty() {
            wanted |= PollFlags::OUT;
        }
        let wait = Timespec::try_from(wait).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut sockets = [PollFd::from_borrowed_fd(self.link.stream.as_fd(), wanted)];
        self.system_calls += 1;
        match poll(&mut sockets, Some(&wait)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Engine for Network {
    fn push(&mut self, slot: u32, request: &Request) {
        if self.broken.is_some() {
            self.done.push((slot, -libc::ECONNRESET));
            return;
        }
        // A request that the server never takes ends at once, with its outcome. It is reaped
        // like any other, so that every slot comes back.
        if let Err(outcome) = self.link.protocol.encode(slot, request, &mut self.out) {
            self.done.push((slot, outcome));
            return;
        }
        if request.op == Op::Write {
            // Filled once, when it is known that it goes.
            self.buffers.place(slot, request);
        }
        self.requests[slot as usize] = Some(*request);
        self.outstanding += 1;
    }

    fn turn(&mut self, want: u32, wait: Option<Duration>) -> io::Result<()> {
        self.send();
        let want = want as usize;
        let until = wait.map(|wait| Instant::now() + wait);
        // Alone, an answer cannot be there already; among many one usually is.
        // Looking costs a system call. It is worth it only if an answer is likely to be there
        // already; otherwise the wait below tells at the same price.
        if self.outstanding > 1 && self.done.len() < want {
            self.receive();
            // The data that the server requested, such as the next part of a write.
            self.send();
        }
        while self.done.len() < want {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if !self.wait(left.unwrap_or(LOOK_UP).min(LOOK_UP))? {
                return Ok(());
            }
            self.send();
            self.receive();
            self.send();
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn ready(&mut self, want: u32) -> io::Result<bool> {
        if self.done.len() < want as usize {
            self.send();
            self.receive();
            self.send();
        }
        Ok(self.done.len() >= want as usize)
    }

    fn reap(&mut self, mut each: impl FnMut(u32, Outcome)) {
        self.done.drain(..).for_each(|(slot, outcome)| each(slot, outcome));
    }

    fn system_calls(&self) -> u64 {
        self.system_calls
    }

    fn remarks(&mut self) -> Vec<String> {
        self.link.protocol.remarks()
    }

    fn trouble(&self) -> Option<String> {
        self.broken.clone()
    }

    fn give_up(&mut self) {
        self.give_up_for("the requests were given up".to_owned());
    }

    /// The next job that needs a connection gets this one.
    fn end(self) {
        // A login takes several round trips. A connection in order is kept for the next job,
        // such as the next load of a search.
        let used_up = self.broken.is_some() || self.outstanding > 0 || self.to > 0;
        if !used_up {
            self.remote.keep(self.link);
        }
    }
}
