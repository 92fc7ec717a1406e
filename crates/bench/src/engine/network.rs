//! Requests that go to a server over a socket: many on their way at once on one connection, answers in any order.
//!
//! The socket never waits; the job does, in ppoll(2), when nothing is there. Data goes from and to the places of the
//! slots: what is to be written is not copied before, and the data of long reads is received where it belongs.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use ssdyno_block::{Op, Request};

use super::{Engine, Outcome};
use crate::buffers::Buffers;
use crate::content::Content;
use crate::network::stream::Stream;
use crate::network::{Piece, Protocol, Remote};

/// What is received in one call, beside the rest of a long read.
const STAGING_BYTES: usize = 128 << 10;

/// Pieces of memory that one call sends.
const PARTS_MOST: usize = 64;

/// A wait without end is cut here: a job that was given up must come to know of it.
const LOOK_UP: Duration = Duration::from_millis(500);

/// A message that has not been sent whole.
#[derive(Debug)]
struct Unsent {
    slot: u32,
    /// Of its header, the end of which lies in [`Network::heads`].
    head_bytes: usize,
    /// Of its data, and how many of them are sent.
    data_bytes: usize,
    data_sent: usize,
}

/// Data that is being received.
#[derive(Clone, Copy, Debug)]
struct Payload {
    piece: Piece,
    received: usize,
}

/// A connection of one job, past the login.
pub(crate) struct Network<P: Protocol> {
    stream: Stream,
    protocol: P,
    buffers: Buffers,
    /// The request of each slot that is outstanding.
    requests: Vec<Option<Request>>,
    outstanding: u32,
    /// Headers of `unsent`, one behind the other, from `heads_from` on.
    heads: Vec<u8>,
    heads_from: usize,
    unsent: VecDeque<Unsent>,
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

impl<P: Protocol> Network<P> {
    /// For `slots` requests of up to `length_bytes` on `stream`, a connection to `remote`; writes carry `content`.
    pub(crate) fn new(
        remote: Arc<Remote>,
        stream: Stream,
        protocol: P,
        (slots, length_bytes): (u32, u32),
        content: Option<Content>,
    ) -> io::Result<Network<P>> {
        stream.set_nonblocking(true)?;
        Ok(Network {
            stream,
            protocol,
            buffers: Buffers::new(slots, length_bytes, content),
            requests: vec![None; slots as usize],
            outstanding: 0,
            heads: Vec::new(),
            heads_from: 0,
            unsent: VecDeque::new(),
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
        self.stream.shut_down();
        self.unsent.clear();
        self.payload = None;
        for slot in 0..self.requests.len() {
            if self.requests[slot].is_some() {
                self.finish(slot as u32, -libc::ECONNRESET);
            }
        }
    }

    /// Sends as much as the socket takes.
    fn send(&mut self) {
        while !self.unsent.is_empty() && self.broken.is_none() {
            self.system_calls += 1;
            match self.send_once() {
                Ok(sent) => self.sent(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // What the server said before it went may still be there.
                    self.receive();
                    self.give_up_for(format!("the connection broke: {error}"));
                }
            }
        }
    }

    fn send_once(&mut self) -> io::Result<usize> {
        let mut parts = [IoSlice::new(&[]); PARTS_MOST];
        let (mut count, mut head_from) = (0, self.heads_from);
        // Headers without data between them are one piece.
        let mut head_to = head_from;
        for message in &self.unsent {
            if count + 2 > PARTS_MOST {
                break;
            }
            head_to += message.head_bytes;
            if message.data_bytes == 0 {
                continue;
            }
            if head_to > head_from {
                parts[count] = IoSlice::new(&self.heads[head_from..head_to]);
                (count, head_from) = (count + 1, head_to);
            }
            let data = self.buffers.written(message.slot, message.data_bytes);
            parts[count] = IoSlice::new(&data[message.data_sent..]);
            count += 1;
        }
        if head_to > head_from && count < PARTS_MOST {
            parts[count] = IoSlice::new(&self.heads[head_from..head_to]);
            count += 1;
        }
        self.stream.write_vectored(&parts[..count])
    }

    /// Takes `left` bytes off what is unsent.
    fn sent(&mut self, mut left: usize) {
        while let Some(message) = self.unsent.front_mut() {
            let head = left.min(message.head_bytes);
            message.head_bytes -= head;
            self.heads_from += head;
            left -= head;
            let data = left.min(message.data_bytes - message.data_sent);
            message.data_sent += data;
            left -= data;
            if message.head_bytes > 0 || message.data_sent < message.data_bytes {
                break;
            }
            self.unsent.pop_front();
        }
        if self.unsent.is_empty() {
            self.heads.clear();
            self.heads_from = 0;
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
        let (room, place_bytes, read) = match &mut self.payload {
            // All that was received is looked at: the rest of the data is next.
            Some(Payload { piece, received }) => {
                let rest = piece.payload_bytes - *received;
                let request = Request::read(0, piece.payload_bytes as u32);
                let (place, _) = self.buffers.place(piece.slot, &request);
                let room = rest + staging.len();
                let mut parts =
                    [IoSliceMut::new(&mut place[*received..]), IoSliceMut::new(staging)];
                (room, rest, self.stream.read_vectored(&mut parts)?)
            }
            None => (staging.len(), 0, self.stream.read(staging)?),
        };
        if read == 0 {
            self.give_up_for("the server closed the connection".to_owned());
            return Ok(false);
        }
        let placed = read.min(place_bytes);
        if let Some(payload) = &mut self.payload {
            payload.received += placed;
        }
        self.to += read - placed;
        self.look();
        Ok(read == room)
    }

    /// Looks at what was received.
    fn look(&mut self) {
        loop {
            if let Some(Payload { piece, received }) = &mut self.payload {
                let count = (piece.payload_bytes - *received).min(self.to - self.from);
                if count > 0 {
                    let request = Request::read(0, piece.payload_bytes as u32);
                    let (place, _) = self.buffers.place(piece.slot, &request);
                    place[*received..*received + count]
                        .copy_from_slice(&self.staging[self.from..self.from + count]);
                    self.from += count;
                    *received += count;
                }
                if *received < piece.payload_bytes {
                    break;
                }
                let Piece { slot, outcome, .. } = *piece;
                self.payload = None;
                self.finish(slot, outcome);
            }
            match self.protocol.decode(&self.staging[self.from..self.to]) {
                Ok(None) => break,
                Ok(Some(piece)) if self.unsent.iter().any(|unsent| unsent.slot == piece.slot) => {
                    let why = "the server answered a request before it had all of it";
                    return self.give_up_for(why.to_owned());
                }
                Ok(Some(piece)) => {
                    self.from += piece.header_bytes;
                    self.payload = Some(Payload { piece, received: 0 });
                }
                Err(why) => return self.give_up_for(why),
            }
        }
        // What is left is less than a header, or nothing.
        self.staging.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
    }

    /// Waits until there is something to receive, or room for what is to be sent; whether there is.
    fn wait(&mut self, wait: Duration) -> io::Result<bool> {
        let mut wanted = PollFlags::IN;
        if !self.unsent.is_empty() {
            wanted |= PollFlags::OUT;
        }
        let wait = Timespec::try_from(wait).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut sockets = [PollFd::from_borrowed_fd(self.stream.as_fd(), wanted)];
        self.system_calls += 1;
        match poll(&mut sockets, Some(&wait)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl<P: Protocol> Engine for Network<P> {
    fn push(&mut self, slot: u32, request: &Request) {
        if self.broken.is_some() {
            self.done.push((slot, -libc::ECONNRESET));
            return;
        }
        let before = self.heads.len();
        if let Err(outcome) = self.protocol.encode(slot, request, &mut self.heads) {
            self.done.push((slot, outcome));
            return;
        }
        let data_bytes = match request.op {
            // Filled once, when it is known that it goes.
            Op::Write => self.buffers.place(slot, request).0.len(),
            _ => 0,
        };
        let head_bytes = self.heads.len() - before;
        self.unsent.push_back(Unsent { slot, head_bytes, data_bytes, data_sent: 0 });
        self.requests[slot as usize] = Some(*request);
        self.outstanding += 1;
    }

    fn turn(&mut self, want: u32, wait: Option<Duration>) -> io::Result<()> {
        self.send();
        let want = want as usize;
        let until = wait.map(|wait| Instant::now() + wait);
        // Alone, an answer cannot be there already; among many one usually is.
        if self.outstanding > 1 && self.done.len() < want {
            self.receive();
        }
        while self.done.len() < want {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if !self.wait(left.unwrap_or(LOOK_UP).min(LOOK_UP))? {
                return Ok(());
            }
            self.send();
            self.receive();
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
        }
        Ok(self.done.len() >= want as usize)
    }

    fn reap(&mut self, mut each: impl FnMut(u32, Outcome)) {
        self.done.drain(..).for_each(|(slot, outcome)| each(slot, outcome));
    }

    fn system_calls(&self) -> u64 {
        self.system_calls
    }

    fn trouble(&self) -> Option<String> {
        self.broken.clone()
    }

    fn give_up(&mut self) {
        self.give_up_for("the requests were given up".to_owned());
    }

    /// The connection is for the next one who needs one.
    fn end(self) {
        let used_up = self.broken.is_some() || self.outstanding > 0 || self.to > 0;
        if !used_up {
            self.remote.keep(self.stream);
        }
    }
}
