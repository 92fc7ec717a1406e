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
            Box::new(Frames::<Zstd>::Between(Some(reader)))
        }
        [0x04, 0x22, 0x4D, 0x18, ..] => Box::new(Frames::<Lz4>::Between(Some(reader))),
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

/// Frame after frame: decoders end with the first, but parallel compressors and concatenated files have several.
enum Frames<F> {
    Between(Option<Source>),
    Frame(Box<F>),
}

/// The decoder of a frame.
trait Frame: Read + Sized {
    /// Bytes that decide what begins.
    const HEAD_BYTES: usize;

    /// What begins with `head`, behind which `error` comes, if there is one, and then `rest`.
    fn open(head: Vec<u8>, error: Option<io::Error>, rest: Source) -> io::Result<Frames<Self>>;

    /// The source behind the frame, which was read to its end.
    fn close(self) -> io::Result<Source>;
}

impl<F: Frame> Read for Frames<F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            match self {
                Frames::Frame(frame) => {
                    let count = frame.read(out)?;
                    if count > 0 {
                        return Ok(count);
                    }
                    let ended = std::mem::replace(self, Frames::Between(None));
                    let Frames::Frame(frame) = ended else { return Ok(0) };
                    *self = Frames::Between(Some(frame.close()?));
                }
                Frames::Between(source) => {
                    let Some(mut reader) = source.take() else { return Ok(0) };
                    let (head, error) = read_ahead(&mut reader, F::HEAD_BYTES);
                    if head.is_empty() && error.is_none() {
                        return Ok(0);
                    }
                    *self = F::open(head, error, reader)?;
                }
            }
        }
    }
}

type Zstd = StreamingDecoder<Source, FrameDecoder>;

impl Frame for Zstd {
    const HEAD_BYTES: usize = 4;

    fn open(head: Vec<u8>, error: Option<io::Error>, rest: Source) -> io::Result<Frames<Zstd>> {
        if let [0x50..=0x5F, 0x2A, 0x4D, 0x18] = head[..] {
            return skip_frame(rest).map(|rest| Frames::Between(Some(rest)));
        }
        let decoder = StreamingDecoder::new(put_back(head, error, rest));
        Ok(Frames::Frame(Box::new(decoder.map_err(io::Error::other)?)))
    }

    /// Compares the checksum at the end of the frame, if it has one (RFC 8878, clause 3.1.1): the decoder works it out and
    /// leaves it at that.
    fn close(self) -> io::Result<Source> {
        let (source, decoder) = self.into_parts();
        match (decoder.get_checksum_from_data(), decoder.get_calculated_checksum()) {
            (Some(written), Some(found)) if written != found => {
                Err(io::Error::other("the compressed data is damaged: its checksum does not match"))
            }
            _ => Ok(source),
        }
    }
}

/// Passes over a skippable frame (RFC 8878, clause 3.1.2) that begins at `reader`, behind its magic number.
fn skip_frame(mut reader: Source) -> io::Result<Source> {
    let mut length = [0; 4];
    reader.read_exact(&mut length)?;
    let length = u64::from(u32::from_le_bytes(length));
    let skipped = io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
    if skipped == length { Ok(reader) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

type Lz4 = lz4_flex::frame::FrameDecoder<Watched>;

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

impl Frame for Lz4 {
    const HEAD_BYTES: usize = 1;

    fn open(head: Vec<u8>, error: Option<io::Error>, rest: Source) -> io::Result<Frames<Lz4>> {
        let watched = Watched { source: put_back(head, error, rest), ended: false };
        Ok(Frames::Frame(Box::new(Lz4::new(watched))))
    }

    fn close(self) -> io::Result<Source> {
        let Watched { source, ended } = self.into_inner();
        // A frame that ends together with the source has no end mark. The decoder reports the end like a complete frame, so a
        // truncated file would pass as a shorter trace.
        if ended { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(source) }
    }
}
