//! Compression, told from the first bytes.

use std::io::{self, Cursor, Read};

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// A header may ask for a dictionary of 4 GiB; `xz -9` needs 65 MiB.
const XZ_MEMORY_KIB: u32 = 256 << 10;

type Source = Box<dyn Read + Send>;

/// Reads until `buffer` has `wanted` bytes, the end, or an error, which is returned beside.
pub(crate) fn read_ahead(reader: &mut Source, wanted: usize) -> (Vec<u8>, Option<io::Error>) {
    let mut head = Vec::new();
    // `take` and `read_to_end` keep what was read before an error.
    let result = reader.by_ref().take(wanted as u64).read_to_end(&mut head);
    (head, result.err())
}

/// `head`, then `error` if there is one, then `rest`.
pub(crate) fn put_back(head: Vec<u8>, error: Option<io::Error>, rest: Source) -> Source {
    match error {
        None => Box::new(Cursor::new(head).chain(rest)),
        // The error comes after the bytes that were read before it. A truncated file then still
        // shows the line at which it breaks.
        Some(error) => Box::new(Cursor::new(head).chain(Failing(Some(error)))),
    }
}

/// Fails once, then is at its end.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// The text behind `reader`, whatever it is compressed with (gzip, zstd, xz, bzip2, lz4): the first bytes say
/// it. An error of the file or of its compression is one of the reader that is returned.
pub fn decompress(mut reader: Source) -> Source {
    let (head, error) = read_ahead(&mut reader, 6);
    let magic = head.clone();
    let reader = put_back(head, error, reader);
    match magic.as_slice() {
        // Method and flags, too (RFC 1952, clause 2.3.1): two bytes alone may be a time.
        [0x1F, 0x8B, 8, 0..=0x1F, ..] => Box::new(flate2::read::MultiGzDecoder::new(reader)),
        [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => {
            Box::new(Zstd::Between(Some(reader)))
        }
        [0x04, 0x22, 0x4D, 0x18, ..] => Box::new(Lz4::Between(Some(reader))),
        [0xFD, b'7', b'z', b'X', b'Z', 0] => {
            Box::new(lzma_rust2::XzReader::new_mem_limit(reader, true, XZ_MEMORY_KIB))
        }
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Box::new(bzip2::read::MultiBzDecoder::new(reader)),
        _ => reader,
    }
}

/// The remedy for a file that begins with `head` and is not text, if its kind is known.
pub(crate) fn unpacked_with(head: &[u8]) -> Option<&'static str> {
    match head {
        [b'P', b'K', 3 | 5, ..] => Some("it is a ZIP archive: `unzip` it first"),
        [b'7', b'z', 0xBC, 0xAF, ..] => Some("it is a 7z archive: unpack it first"),
        [0x5D, 0, 0, ..] => Some("it looks like LZMA: `unlzma` it first"),
        [0xF0, 0xDE, 0xBC, 0x9A, 0x78, 0x56, 0x34, 0x12, ..] => Some(
            "it is libCacheSim's lcs: convert it with its `traceConv` to oracleGeneral, which this program reads",
        ),
        // The native order of the machine that recorded it.
        [7, 0x74, b'a', b'e', ..] | [b'e', b'a', 0x74, 7, ..] => {
            Some("it is blktrace's binary output: `blkparse -i` turns it into text")
        }
        [0x1F, 0x8B, ..] => Some("it was compressed twice: unpack it once first"),
        _ if head.get(257..262) == Some(b"ustar") && head[..257].contains(&0) => {
            Some("it is a tar archive: unpack it first (`tar -xf`), and name the file in it")
        }
        _ => None,
    }
}

/// Frame after frame: `StreamingDecoder` ends with the first, but parallel compressors and
/// concatenated files have several.
enum Zstd {
    Between(Option<Source>),
    Frame(Box<StreamingDecoder<Source, FrameDecoder>>),
}

/// Compares the checksum at the end of a frame, if it has one (RFC 8878, clause 3.1.1): the decoder
/// works it out and leaves it at that.
fn check_frame(decoder: &FrameDecoder) -> io::Result<()> {
    match (decoder.get_checksum_from_data(), decoder.get_calculated_checksum()) {
        (Some(written), Some(found)) if written != found => {
            Err(io::Error::other("the compressed data is damaged: its checksum does not match"))
        }
        _ => Ok(()),
    }
}

/// Passes over a skippable frame (RFC 8878, clause 3.1.2) that begins at `reader`, behind its magic
/// number.
fn skip_frame(reader: &mut Source) -> io::Result<()> {
    let mut length = [0; 4];
    reader.read_exact(&mut length)?;
    let length = u64::from(u32::from_le_bytes(length));
    let skipped = io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
    if skipped == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

impl Read for Zstd {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            match self {
                Zstd::Frame(decoder) => {
                    let count = decoder.read(out)?;
                    if count > 0 {
                        return Ok(count);
                    }
                    let Zstd::Frame(decoder) = std::mem::replace(self, Zstd::Between(None)) else {
                        return Ok(0);
                    };
                    let (source, decoder) = decoder.into_parts();
                    check_frame(&decoder)?;
                    *self = Zstd::Between(Some(source));
                }
                Zstd::Between(source) => {
                    let Some(mut reader) = source.take() else { return Ok(0) };
                    let (head, error) = read_ahead(&mut reader, 4);
                    if head.is_empty() && error.is_none() {
                        return Ok(0);
                    }
                    if let [0x50..=0x5F, 0x2A, 0x4D, 0x18] = head[..] {
                        skip_frame(&mut reader)?;
                        *self = Zstd::Between(Some(reader));
                        continue;
                    }
                    let decoder = StreamingDecoder::new(put_back(head, error, reader));
                    *self = Zstd::Frame(Box::new(decoder.map_err(io::Error::other)?));
                }
            }
        }
    }
}

/// Frame after frame, as [`Zstd`].
enum Lz4 {
    Between(Option<Source>),
    Frame(Box<lz4_flex::frame::FrameDecoder<Watched>>),
}

/// Knows whether its end was met: `FrameDecoder` takes an end within a frame for that of the frame.
struct Watched {
    source: Source,
    ended: bool,
}

impl Read for Watched {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(out)?;
        self.ended |= count == 0 && !out.is_empty();
        Ok(count)
    }
}

impl Read for Lz4 {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            match self {
                Lz4::Frame(decoder) => {
                    let count = decoder.read(out)?;
                    if count > 0 {
                        return Ok(count);
                    }
                    let Lz4::Frame(decoder) = std::mem::replace(self, Lz4::Between(None)) else {
                        return Ok(0);
                    };
                    let Watched { source, ended } = decoder.into_inner();
                    // A frame that ends together with the source has no end mark. The decoder
                    // reports the end like a complete frame, so a truncated file would pass as a
                    // shorter trace.
                    if ended {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    *self = Lz4::Between(Some(source));
                }
                Lz4::Between(source) => {
                    let Some(mut reader) = source.take() else { return Ok(0) };
                    let (head, error) = read_ahead(&mut reader, 1);
                    if head.is_empty() && error.is_none() {
                        return Ok(0);
                    }
                    let source = put_back(head, error, reader);
                    let watched = Watched { source, ended: false };
                    *self = Lz4::Frame(Box::new(lz4_flex::frame::FrameDecoder::new(watched)));
                }
            }
        }
    }
}
