//! The protocol of network block devices (NBD), the side of the client: fixed newstyle handshake, simple
//! replies, no TLS (`doc/proto.md` of the NBD project).

pub(crate) mod handshake;
pub(crate) mod wire;

use std::time::Instant;

use ssdyno_block::{Op, Request, SECTOR_BYTES};

use zerocopy::big_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

use self::wire::{Command, ExportHead, Reply};
use crate::engine::Outcome;
use crate::network::protocol::{Facts, Outbox, Piece, Protocol, Talk, Trouble};
use crate::network::stream::Stream;

/// Negotiates the export `name` on `stream`, which is blocking; `deadline` ends it.
pub(crate) fn connect(
    stream: &mut Stream,
    name: &str,
    deadline: Instant,
) -> Talk<(Box<dyn Protocol>, Facts)> {
    let export = handshake::negotiate(stream, name, deadline)?;
    Ok((Box::new(Nbd::new(export)), export.facts(name)))
}

/// Longest request to a server that reports no limit.
const MOST_BYTES_UNTOLD: u32 = 32 << 20;

/// Sizes of requests that a server takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockSizes {
    /// Unit of addresses and lengths.
    pub(crate) least_bytes: u32,
    pub(crate) preferred_bytes: u32,
    /// Most bytes of data of a read or write.
    pub(crate) most_bytes: u32,
}

impl BlockSizes {
    fn of(data: &[u8]) -> Option<BlockSizes> {
        let (sizes, _) = <[U32; 3]>::read_from_prefix(data).ok()?;
        let [least_bytes, preferred_bytes, most_bytes] = sizes.map(U32::get);
        Some(BlockSizes { least_bytes, preferred_bytes, most_bytes })
    }
}

/// The server's description of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Export {
    pub(crate) size_bytes: u64,
    pub(crate) flags: u16,
    /// `None` where the server does not tell.
    pub(crate) blocks: Option<BlockSizes>,
}

impl Export {
    fn new(head: ExportHead, blocks: Option<BlockSizes>) -> Export {
        Export { size_bytes: head.size_bytes.get(), flags: head.flags.get(), blocks }
    }

    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Itself, where its sizes can be.
    pub(crate) fn checked(self) -> Talk<Export> {
        if i64::try_from(self.size_bytes).is_err() {
            return Err(Trouble::protocol(format!("an export of {} B", self.size_bytes)));
        }
        match self.blocks {
            Some(blocks)
                if !blocks.least_bytes.is_power_of_two()
                    || blocks.least_bytes > 1 << 16
                    || blocks.most_bytes < blocks.least_bytes =>
            {
                let BlockSizes { least_bytes, most_bytes, .. } = blocks;
                let what = format!("blocks of {least_bytes} to {most_bytes} B");
                Err(Trouble::protocol(what))
            }
            _ => Ok(self),
        }
    }

    fn facts(&self, name: &str) -> Facts {
        Facts {
            size_bytes: self.size_bytes,
            sector_bytes: self.sector_bytes(),
            most_bytes: self.most_bytes(),
            read_only: self.has(wire::READ_ONLY),
            fua: self.has(wire::SEND_FUA),
            shares_flushes: self.has(wire::CAN_MULTI_CONN),
            notes: self.notes(name),
        }
    }

    /// Unit of addresses and lengths: not below a sector, which is that of requests.
    fn sector_bytes(&self) -> u32 {
        self.blocks.map_or(SECTOR_BYTES, |blocks| blocks.least_bytes.max(SECTOR_BYTES))
    }

    /// Most bytes of data of a read or write.
    fn most_bytes(&self) -> u32 {
        self.blocks.map_or(MOST_BYTES_UNTOLD, |blocks| blocks.most_bytes)
    }

    /// Notes that a reader of the figures needs.
    fn notes(&self, name: &str) -> Vec<String> {
        let flags = [
            (wire::READ_ONLY, "read-only"),
            (wire::SEND_FLUSH, "flush"),
            (wire::SEND_FUA, "FUA"),
            (wire::SEND_TRIM, "trim"),
            (wire::SEND_WRITE_ZEROES, "write zeroes"),
            (wire::ROTATIONAL, "rotational"),
            (wire::CAN_MULTI_CONN, "several connections"),
        ];
        let has: Vec<&str> =
            flags.into_iter().filter(|(flag, _)| self.has(*flag)).map(|(_, name)| name).collect();
        let has = if has.is_empty() { "no flags".to_owned() } else { has.join(", ") };
        let blocks = match self.blocks {
            Some(BlockSizes { least_bytes, preferred_bytes, most_bytes }) => format!(
                "requests of {least_bytes} to {most_bytes} B, {preferred_bytes} B preferred"
            ),
            None => "it does not report its block sizes".to_owned(),
        };
        let mut notes = vec![format!(
            "NBD export `{name}`: {has}; {blocks}; latencies include the network and the server"
        )];
        let beyond = self.size_bytes % u64::from(self.sector_bytes());
        if beyond > 0 {
            notes.push(format!(
                "the last {beyond} B of the export are less than a block of {} B and are not used",
                self.sector_bytes()
            ));
        }
        notes
    }
}

/// A request without an answer.
#[derive(Clone, Copy, Debug)]
struct Asked {
    cookie: u64,
    op: Op,
    length_bytes: u32,
}

/// Requests and replies of one connection past the handshake.
#[derive(Debug)]
pub(crate) struct Nbd {
    export: Export,
    /// Writes are durable when they complete.
    fua: bool,
    /// Of each slot.
    asked: Vec<Option<Asked>>,
    /// Requests so far: part of the cookie, so that a second answer to a request is told from the answer to the
    /// next one of its slot.
    count: u32,
}

impl Nbd {
    fn new(export: Export) -> Nbd {
        Nbd { export, fua: false, asked: Vec::new(), count: 0 }
    }
}

impl Protocol for Nbd {
    fn prepare(&mut self, slots: u32, fua: bool) {
        (self.fua, self.asked) = (fua, vec![None; slots as usize]);
    }

    fn encode(&mut self, slot: u32, request: &Request, out: &mut Outbox) -> Result<(), Outcome> {
        let unknown = match request.op {
            Op::Trim => !self.export.has(wire::SEND_TRIM),
            Op::Flush => !self.export.has(wire::SEND_FLUSH),
            Op::Read | Op::Write => false,
        };
        if unknown {
            return Err(-libc::EOPNOTSUPP);
        }
        let moves = matches!(request.op, Op::Read | Op::Write);
        if moves && request.length_bytes > self.export.most_bytes() {
            return Err(-libc::EINVAL);
        }
        self.count = self.count.wrapping_add(1);
        // The slot finds the request without a search. The count distinguishes two requests of one
        // slot, so that a second reply to the first is noticed.
        let cookie = u64::from(self.count) << 32 | u64::from(slot);
        let kind = match request.op {
            Op::Read => wire::CMD_READ,
            Op::Write => wire::CMD_WRITE,
            Op::Trim => wire::CMD_TRIM,
            Op::Flush => wire::CMD_FLUSH,
        };
        let flags = if self.fua && request.op == Op::Write { wire::FUA } else { 0 };
        let (offset, length) = match request.op {
            // Must be zero.
            Op::Flush => (0, 0),
            _ => (request.offset_bytes, request.length_bytes),
        };
        self.asked[slot as usize] =
            Some(Asked { cookie, op: request.op, length_bytes: request.length_bytes });
        let written = if request.op == Op::Write { request.length_bytes as usize } else { 0 };
        let head = command(flags, kind, cookie, offset, length);
        out.push(Some(slot), head.as_bytes(), 0..written);
        Ok(())
    }

    fn decode(&mut self, received: &[u8], _: &mut Outbox) -> Result<Option<Piece>, String> {
        let Ok((reply, _)) = Reply::read_from_prefix(received) else { return Ok(None) };
        let (magic, error, cookie) = (reply.magic.get(), reply.error.get(), reply.cookie.get());
        if magic != wire::REPLY_MAGIC {
            return Err(format!("the server sent a reply with the magic number {magic:#x}"));
        }
        let slot = cookie as u32;
        let asked = self.asked.get_mut(slot as usize);
        // Simple replies do not say how much data follows. Without the request the client cannot
        // know where the next reply begins, so an unknown cookie ends the connection.
        let Some(asked) = asked.and_then(|asked| asked.take_if(|a| a.cookie == cookie)) else {
            return Err(format!(
                "the server answered a request that was not sent, or answered it twice (cookie {cookie:#x})"
            ));
        };
        let is_ok = error == 0;
        let (payload_bytes, outcome) = match asked.op {
            _ if !is_ok => (0, -errno(error)),
            Op::Read => (asked.length_bytes as usize, asked.length_bytes as Outcome),
            Op::Write => (0, asked.length_bytes as Outcome),
            Op::Trim | Op::Flush => (0, 0),
        };
        let (data, ended) = (Some((slot, 0..payload_bytes)), Some((slot, outcome)));
        Ok(Some(Piece { header_bytes: wire::REPLY_BYTES, data, ended }))
    }

    fn goodbye(&mut self) -> Vec<u8> {
        command(0, wire::CMD_DISCONNECT, 0, 0, 0).as_bytes().to_vec()
    }
}

fn command(flags: u16, kind: u16, cookie: u64, offset: u64, length: u32) -> Command {
    Command {
        magic: wire::REQUEST_MAGIC.into(),
        flags: flags.into(),
        kind: kind.into(),
        cookie: cookie.into(),
        offset: offset.into(),
        length: length.into(),
    }
}

/// The system's number for an error of the protocol, whose numbers are Linux's; one that is not of the protocol
/// counts as EINVAL (`doc/proto.md`, "Error values").
pub(crate) fn errno(error: u32) -> i32 {
    const KNOWN: [i32; 8] = [
        libc::EPERM,
        libc::EIO,
        libc::ENOMEM,
        libc::EINVAL,
        libc::ENOSPC,
        libc::EOVERFLOW,
        libc::EOPNOTSUPP,
        libc::ESHUTDOWN,
    ];
    KNOWN.into_iter().find(|known| *known as u32 == error).unwrap_or(libc::EINVAL)
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use proptest::prelude::*;

    use super::*;

    fn export(flags: u16) -> Export {
        Export { size_bytes: 1 << 40, flags, blocks: None }
    }

    /// Takes a request apart by the offsets of the specification, not with our own code.
    fn fields(bytes: &[u8]) -> (u32, u16, u16, u64, u64, u32) {
        (
            u32::from_be_bytes(bytes[0..4].try_into().unwrap()),
            u16::from_be_bytes(bytes[4..6].try_into().unwrap()),
            u16::from_be_bytes(bytes[6..8].try_into().unwrap()),
            u64::from_be_bytes(bytes[8..16].try_into().unwrap()),
            u64::from_be_bytes(bytes[16..24].try_into().unwrap()),
            u32::from_be_bytes(bytes[24..28].try_into().unwrap()),
        )
    }

    fn reply(magic: u32, error: u32, cookie: u64) -> Vec<u8> {
        [&magic.to_be_bytes()[..], &error.to_be_bytes(), &cookie.to_be_bytes()].concat()
    }

    fn request() -> impl Strategy<Value = Request> {
        let place = || (0_u64..1 << 31, 1_u32..1 << 13);
        prop_oneof![
            place().prop_map(|(at, length)| Request::read(at * 512, length * 512)),
            place().prop_map(|(at, length)| Request::write(at * 512, length * 512)),
            place().prop_map(|(at, length)| Request::trim(at * 512, length * 512)),
            Just(Request::flush()),
        ]
    }

    proptest! {
        /// Every request has its bytes at the places of the specification. Replies in any order belong to their
        /// requests; a reply is taken once, and only when it is complete.
        #[test]
        fn what_is_asked_is_sent_and_what_is_answered_is_found(
            requests in prop::collection::vec(request(), 1..20),
            order in any::<prop::sample::Index>(),
            fua: bool,
            errors in prop::collection::vec(prop_oneof![Just(0_u32), any::<u32>()], 20),
        ) {
            let mut nbd = Nbd::new(export(u16::MAX));
            nbd.prepare(20, fua);
            let mut cookies = Vec::new();
            for (slot, request) in requests.iter().enumerate() {
                let mut out = Outbox::default();
                prop_assert_eq!(nbd.encode(slot as u32, request, &mut out), Ok(()));
                let mut parts = [IoSlice::new(&[]); 3];
                let data = vec![0; 1 << 22];
                let count = out.parts(&mut parts, |_, range| &data[range]);
                let written = if request.op == Op::Write { request.length_bytes } else { 0 };
                prop_assert_eq!(parts[0].len(), 28);
                prop_assert_eq!(parts[1..count].iter().map(|p| p.len()).sum::<usize>(), written as usize);
                let (magic, flags, kind, cookie, offset, length) = fields(&parts[0]);
                let (wanted, place) = match request.op {
                    Op::Read => (0, (request.offset_bytes, request.length_bytes)),
                    Op::Write => (1, (request.offset_bytes, request.length_bytes)),
                    Op::Flush => (3, (0, 0)),
                    Op::Trim => (4, (request.offset_bytes, request.length_bytes)),
                };
                prop_assert_eq!((magic, kind, (offset, length)), (0x2560_9513, wanted, place));
                prop_assert_eq!(flags, u16::from(fua && request.op == Op::Write));
                cookies.push(cookie);
            }
            let mut none = Outbox::default();
            let first = order.index(requests.len());
            for at in (first..requests.len()).chain(0..first) {
                let (request, error) = (&requests[at], errors[at]);
                let bytes = reply(0x6744_6698, error, cookies[at]);
                for cut in 0..16 {
                    prop_assert_eq!(nbd.decode(&bytes[..cut], &mut none), Ok(None));
                }
                let piece = nbd.decode(&bytes, &mut none).unwrap().unwrap();
                let (slot, outcome) = piece.ended.unwrap();
                prop_assert_eq!((slot as usize, piece.header_bytes), (at, 16));
                let data = if request.op == Op::Read && error == 0 { request.length_bytes } else { 0 };
                prop_assert_eq!(piece.data, Some((slot, 0..data as usize)));
                prop_assert_eq!(crate::faults::Faults::is_ok(request, outcome), error == 0);
                prop_assert!(nbd.decode(&bytes, &mut none).is_err(), "twice");
            }
        }

        #[test]
        fn no_bytes_are_taken_for_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let (mut nbd, mut none) = (Nbd::new(export(0)), Outbox::default());
            nbd.prepare(4, false);
            match nbd.decode(&bytes, &mut none) {
                Ok(None) => prop_assert!(bytes.len() < 16),
                Ok(Some(piece)) => prop_assert!(false, "nothing was asked: {piece:?}"),
                Err(why) => prop_assert!(!why.is_empty()),
            }
        }
    }

    #[test]
    fn what_a_server_does_not_take_is_not_sent() {
        let (mut nbd, mut out) = (Nbd::new(export(0)), Outbox::default());
        nbd.prepare(1, false);
        for request in [Request::trim(0, 512), Request::flush()] {
            assert_eq!(nbd.encode(0, &request, &mut out), Err(-libc::EOPNOTSUPP));
        }
        let long = Request::write(0, MOST_BYTES_UNTOLD + 512);
        assert_eq!(nbd.encode(0, &long, &mut out), Err(-libc::EINVAL));
        assert!(out.is_empty());
    }

    #[test]
    fn errors_are_those_of_the_system() {
        for (sent, is) in [(1, 1), (5, 5), (12, 12), (22, 22), (28, 28), (75, 75), (95, 95)] {
            assert_eq!(errno(sent), is);
        }
        assert_eq!([errno(108), errno(2), errno(u32::MAX)], [libc::ESHUTDOWN, 22, 22]);
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        let of = |least_bytes, most_bytes| {
            let blocks = Some(BlockSizes { least_bytes, preferred_bytes: 4096, most_bytes });
            Export { blocks, ..export(0) }.checked().map(|export| export.sector_bytes())
        };
        assert_eq!([of(1, 1 << 25).unwrap(), of(4096, 1 << 25).unwrap()], [512, 4096]);
        for (least, most) in [(0, 1 << 20), (3, 1 << 20), (1 << 17, 1 << 20), (4096, 512)] {
            assert!(of(least, most).is_err(), "{least} {most}");
        }
        assert!(Export { size_bytes: 1 << 63, ..export(0) }.checked().is_err());
    }
}
