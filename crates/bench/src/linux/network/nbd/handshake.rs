//! From a connected socket to an export: the fixed newstyle handshake of NBD.

use std::io;
use std::time::Instant;

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::wire::{self, ExportHead, OptionHead};
use super::{BlockSizes, Export};
use crate::network::protocol::{Talk, Trouble, shown};
use crate::network::stream::Stream;

/// Longest reply to an option that is read.
const REPLY_MOST_BYTES: u32 = 1 << 16;

/// Replies to one option, at most: a server that lists its exports may have many.
const REPLIES_MOST: u32 = 10_000;

/// Negotiates `name` on `stream`, which is blocking; `deadline` ends it.
pub(crate) fn negotiate(stream: &mut Stream, name: &str, deadline: Instant) -> Talk<Export> {
    let mut handshake = Handshake { stream, deadline };
    let flags = handshake.greet()?;
    // NBD_OPT_GO returns the block sizes and gives a reason for a refusal. Servers before the fixed
    // handshake know only the name of the export and close the connection if it is wrong.
    if flags & wire::FIXED_NEWSTYLE != 0
        && let Some(export) = handshake.go(name)?
    {
        return export.checked();
    }
    handshake.export_name(name, flags & wire::NO_ZEROES != 0)?.checked()
}

/// A reply to an option.
struct OptionReply {
    kind: u32,
    data: Vec<u8>,
}

impl OptionReply {
    /// The server's text for an error, after a colon.
    fn message(&self) -> String {
        let text = String::from_utf8_lossy(&self.data);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        if text.is_empty() { String::new() } else { format!(": {text}") }
    }
}

struct Handshake<'a> {
    stream: &'a mut Stream,
    deadline: Instant,
}

impl Handshake<'_> {
    fn read<T: FromBytes + IntoBytes>(&mut self) -> Talk<T> {
        let mut read = T::new_zeroed();
        let done = self.stream.read_until(read.as_mut_bytes(), self.deadline);
        done.map_err(|error| failed(&error)).map(|()| read)
    }

    fn send(&mut self, bytes: &[u8]) -> Talk {
        self.stream.write_until(bytes, self.deadline).map_err(|error| failed(&error))
    }

    /// Reads the greeting and answers it; the server's flags.
    fn greet(&mut self) -> Talk<u16> {
        let magic = self.read::<U64>()?.get();
        if magic != wire::MAGIC {
            return Err(Trouble::new(
                format!("the server does not speak NBD: it begins with {magic:#018x}"),
                "check the port: the default NBD port is 10809",
            ));
        }
        let style = self.read::<U64>()?.get();
        if style == wire::OLD_STYLE_MAGIC {
            return Err(Trouble::new(
                "the server speaks the oldstyle handshake, which does not support export names"
                    .to_owned(),
                "use a server newer than 2012, or run it without the option for the old handshake",
            ));
        }
        if style != wire::OPTION_MAGIC {
            return Err(Trouble::protocol(format!("an unknown handshake ({style:#018x})")));
        }
        let flags = self.read::<U16>()?.get();
        // Only flags that the server has offered may be answered. An unknown flag makes a server
        // close the connection.
        let ours = flags & (wire::FIXED_NEWSTYLE | wire::NO_ZEROES);
        self.send(&u32::from(ours).to_be_bytes())?;
        Ok(flags)
    }

    fn reply(&mut self, option: u32) -> Talk<OptionReply> {
        let head: OptionHead = self.read()?;
        let (magic, answered, length) = (head.magic.get(), head.option.get(), head.length.get());
        if magic != wire::OPTION_REPLY_MAGIC {
            return Err(Trouble::protocol(format!("a reply with the magic number {magic:#018x}")));
        }
        if answered != option {
            return Err(Trouble::protocol(format!("a reply to option {answered}, not {option}")));
        }
        // The length comes from the network. Without a limit a server, or whatever listens on
        // the port, could make the client ask for 4 GiB.
        if length > REPLY_MOST_BYTES {
            return Err(Trouble::protocol(format!("a reply of {length} B to option {option}")));
        }
        let mut data = vec![0; length as usize];
        self.stream.read_until(&mut data, self.deadline).map_err(|error| failed(&error))?;
        Ok(OptionReply { kind: head.kind.get(), data })
    }

    /// Requests the export and the information on it. `None`: the server does not know the option.
    fn go(&mut self, name: &str) -> Talk<Option<Export>> {
        self.send(&wire::option(wire::OPT_GO, &wire::go(name, &[wire::INFO_BLOCK_SIZE])))?;
        let mut found: Option<ExportHead> = None;
        let mut blocks = None;
        for _ in 0..REPLIES_MOST {
            let reply = self.reply(wire::OPT_GO)?;
            match reply.kind {
                wire::REP_INFO => {
                    let Ok((kind, data)) = U16::read_from_prefix(&reply.data) else { continue };
                    match kind.get() {
                        wire::INFO_EXPORT => {
                            found = ExportHead::read_from_prefix(data).ok().map(|(head, _)| head);
                        }
                        wire::INFO_BLOCK_SIZE => blocks = BlockSizes::of(data),
                        // Unrequested information may arrive and must be ignored.
                        _ => {}
                    }
                }
                wire::REP_ACK => {
                    let found = found.ok_or_else(|| {
                        Trouble::protocol("an acknowledgement before the size of the export".into())
                    })?;
                    return Ok(Some(Export::new(found, blocks)));
                }
                wire::ERR_UNSUPPORTED => return Ok(None),
                wire::ERR_UNKNOWN => return Err(self.unknown(name, &reply)),
                kind if kind & wire::REP_ERROR != 0 => return Err(refused(name, &reply)),
                kind => return Err(Trouble::protocol(format!("a reply of kind {kind}"))),
            }
        }
        Err(Trouble::protocol("too many replies".to_owned()))
    }

    /// The export does not exist; the message lists those that exist, if the server reports them.
    fn unknown(&mut self, name: &str, reply: &OptionReply) -> Trouble {
        let what = match name {
            "" => format!("the server has no default export{}", reply.message()),
            name => format!("the server has no export `{name}`{}", reply.message()),
        };
        let help = match self.list() {
            Some(names) if names.is_empty() => {
                "the server reports that it has no exports".to_owned()
            }
            Some(names) => format!("name one of its exports: {}", shown(&names)),
            None => "check the name; the server does not list its exports".to_owned(),
        };
        // Sent to be polite; a server that does not read it has gone already.
        let _ = self.send(&wire::option(wire::OPT_ABORT, &[]));
        Trouble { what, help }
    }

    fn list(&mut self) -> Option<Vec<String>> {
        self.send(&wire::option(wire::OPT_LIST, &[])).ok()?;
        let mut names = Vec::new();
        for _ in 0..REPLIES_MOST {
            let reply = self.reply(wire::OPT_LIST).ok()?;
            match reply.kind {
                wire::REP_SERVER => {
                    let (length, rest) = U32::read_from_prefix(&reply.data).ok()?;
                    let name = rest.get(..length.get() as usize)?;
                    names.push(String::from_utf8_lossy(name).into_owned());
                }
                wire::REP_ACK => return Some(names),
                _ => return None,
            }
        }
        None
    }

    /// The handshake for servers without [`go`](Handshake::go): they close the connection if the export does not exist.
    fn export_name(&mut self, name: &str, no_zeroes: bool) -> Talk<Export> {
        self.send(&wire::option(wire::OPT_EXPORT_NAME, name.as_bytes()))?;
        let mut head = ExportHead::new_zeroed();
        let read = self.stream.read_until(head.as_mut_bytes(), self.deadline);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Trouble::new(
                format!("the server closed the connection when asked for the export `{name}`"),
                "check the name of the export, and the server's log",
            ),
            _ => failed(&error),
        })?;
        if !no_zeroes {
            self.read::<[u8; 124]>()?;
        }
        Ok(Export::new(head, None))
    }
}

fn refused(name: &str, reply: &OptionReply) -> Trouble {
    let message = reply.message();
    let (what, help) = match reply.kind {
        wire::ERR_TLS_REQUIRED => (
            format!("the server demands TLS, which is not supported{message}"),
            "configure the server to accept connections without TLS, on a network that you trust",
        ),
        wire::ERR_POLICY => (
            format!("the server refuses the export `{name}` to this client{message}"),
            "check which clients the server's configuration accepts",
        ),
        wire::ERR_SHUTDOWN => {
            (format!("the server is shutting down{message}"), "start it again, or wait")
        }
        wire::ERR_INVALID => (
            format!("the server rejects the request for the export `{name}` as invalid{message}"),
            "look at the server's log",
        ),
        kind => (
            format!(
                "the server refuses the export `{name}` (error {}){message}",
                kind & !wire::REP_ERROR
            ),
            "look at the server's log",
        ),
    };
    Trouble::new(what, help)
}

fn failed(error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::TimedOut => Trouble::new(
            "the server does not answer during the handshake".to_owned(),
            "check that it is an NBD server; a server that serves one client at a time makes others wait: close the other connection, or use `real.jobs=1`",
        ),
        io::ErrorKind::UnexpectedEof => Trouble::new(
            "the server closed the connection during the handshake".to_owned(),
            "check that it is an NBD server that accepts more clients, and look at its log",
        ),
        _ => Trouble::new(format!("the handshake failed: {error}"), "look at the server's log"),
    }
}
