//! The interface between a protocol and the code that moves bytes: the protocol handles messages, and no socket while
//! requests are outstanding.

use std::collections::VecDeque;
use std::fmt;
use std::io::IoSlice;
use std::ops::Range;
use std::time::Instant;

use ssdyno_block::Request;

use super::stream::Stream;
use crate::engine::Outcome;
use crate::error::BenchError;

/// Puts requests into the messages of one connection, and finds out what the messages received mean.
pub(crate) trait Protocol: fmt::Debug + Send {
    /// The next requests are for slots below `slots`; with `fua` writes are durable when they complete. Nothing is
    /// outstanding.
    fn prepare(&mut self, slots: u32, fua: bool);

    /// Puts what begins `request` into `out`, now or when the server takes it. An error is the outcome of a
    /// request that the server never takes: nothing was put there.
    fn encode(&mut self, slot: u32, request: &Request, out: &mut Outbox) -> Result<(), Outcome>;

    /// What `received` begins with; `None` where that is not whole yet. It is asked again with more bytes then. No
    /// header is longer than 64 KiB. The data that the message requests is put into `out`.
    ///
    /// # Errors
    /// The server breaks the protocol, or ends the connection: it is of no use any more.
    fn decode(&mut self, received: &[u8], out: &mut Outbox) -> Result<Option<Piece>, String>;

    /// When [`resume`](Protocol::resume) has something to send; `None` while all that is outstanding waits for the server.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Puts what is due by now into `out`.
    fn resume(&mut self, _out: &mut Outbox) {}

    /// Whether the server still responds on `stream`, which is blocking and has nothing outstanding; `deadline` ends
    /// the question. A protocol without such a question says yes only if nothing `arrived`: then the connection has not
    /// ended.
    fn is_alive(&mut self, _stream: &mut Stream, arrived: bool, _deadline: Instant) -> bool {
        !arrived
    }

    /// The message that ends a connection in an orderly way.
    fn goodbye(&mut self) -> Vec<u8>;

    /// The server's messages besides the outcomes since the last call, for a reader of the figures.
    fn remarks(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// One message of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// Bytes of the message before its data, or all of them.
    pub(crate) header_bytes: usize,
    /// Where the data that follows belongs: a slot, and bytes of its request.
    pub(crate) data: Option<(u32, Range<usize>)>,
    /// The request that ends, when the data is there.
    pub(crate) ended: Option<(u32, Outcome)>,
}

/// The capabilities of a server and its export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Facts {
    pub(crate) size_bytes: u64,
    /// Unit of addresses and lengths: not below a sector, which is that of requests.
    pub(crate) sector_bytes: u32,
    /// Most bytes of data of a read or write.
    pub(crate) most_bytes: u32,
    pub(crate) read_only: bool,
    /// Writes can be durable when they complete.
    pub(crate) fua: bool,
    /// A flush on one connection is for what was written on the others, too.
    pub(crate) shares_flushes: bool,
    /// Notes that a reader of the figures needs.
    pub(crate) notes: Vec<String>,
}

/// A problem with a server or its connection, and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Trouble {
    pub(crate) what: String,
    pub(crate) help: String,
}

/// What a talk with a server gives.
pub(crate) type Talk<T = ()> = Result<T, Trouble>;

impl Trouble {
    pub(crate) fn new(what: String, help: &str) -> Trouble {
        Trouble { what, help: help.to_owned() }
    }

    /// The server sent `what`, which it must not.
    pub(crate) fn protocol(what: String) -> Trouble {
        let what = format!("the server breaks the protocol: it sent {what}");
        Trouble::new(
            what,
            "check the port and the kind of the server, and try a newer version of the server",
        )
    }

    /// As an error of `target`.
    pub(crate) fn of(self, target: &str) -> BenchError {
        BenchError::Network { target: target.to_owned(), what: self.what, help: self.help }
    }
}

/// Names that a message shows.
const SHOWN: usize = 8;

/// The first of `names`, for a message.
pub(crate) fn shown(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// Messages that have not been sent whole.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Headers of the messages, one behind the other, from `heads_from` on.
    heads: Vec<u8>,
    heads_from: usize,
    messages: VecDeque<Message>,
}

#[derive(Debug)]
struct Message {
    /// Whose data it carries; `None` where it is of no request.
    slot: Option<u32>,
    /// The unsent part of its header.
    head_bytes: usize,
    /// The unsent part of the data of its request.
    data: Range<usize>,
}

impl Outbox {
    /// Adds a message: a header, and this part of the data of the request in `slot`.
    pub(crate) fn push(&mut self, slot: Option<u32>, head: &[u8], data: Range<usize>) {
        self.heads.extend_from_slice(head);
        self.messages.push_back(Message { slot, head_bytes: head.len(), data });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        *self = Outbox::default();
    }

    /// Whether something of the request in `slot` is not sent.
    pub(crate) fn holds(&self, slot: u32) -> bool {
        self.messages.iter().any(|message| message.slot == Some(slot))
    }

    /// The first pieces to send, into `parts`; how many they are. `data` has the data of a slot.
    pub(crate) fn parts<'a>(
        &'a self,
        parts: &mut [IoSlice<'a>],
        data: impl Fn(u32, Range<usize>) -> &'a [u8],
    ) -> usize {
        let (mut count, mut head_from) = (0, self.heads_from);
        // Headers without data between them are one piece.
        let mut head_to = head_from;
        for message in &self.messages {
            // A message may need two pieces: its header and its data. It is left for the next
            // call if there is no place for both.
            if count + 2 > parts.len() {
                break;
            }
            head_to += message.head_bytes;
            let Some(slot) = message.slot.filter(|_| !message.data.is_empty()) else { continue };
            if head_to > head_from {
                parts[count] = IoSlice::new(&self.heads[head_from..head_to]);
                (count, head_from) = (count + 1, head_to);
            }
            parts[count] = IoSlice::new(data(slot, message.data.clone()));
            count += 1;
        }
        if head_to > head_from && count < parts.len() {
            parts[count] = IoSlice::new(&self.heads[head_from..head_to]);
            count += 1;
        }
        count
    }

    /// Takes off the first `left` bytes, which are sent.
    pub(crate) fn sent(&mut self, mut left: usize) {
        while let Some(message) = self.messages.front_mut() {
            let head = left.min(message.head_bytes);
            message.head_bytes -= head;
            self.heads_from += head;
            left -= head;
            let data = left.min(message.data.len());
            message.data.start += data;
            left -= data;
            if message.head_bytes > 0 || !message.data.is_empty() {
                break;
            }
            self.messages.pop_front();
        }
        // Headers are removed only when all are sent. Removing each by itself would move the
        // rest every time.
        if self.messages.is_empty() {
            self.heads.clear();
            self.heads_from = 0;
        }
    }
}
