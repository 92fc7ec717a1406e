//! Compression, told from the first bytes.

use std::io::{self, Cursor, Read};

use ruzstd::decoding::StreamingDecoder;

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

/// The text behind `reader`, whatever it is compressed with.
pub(crate) fn decompress(mut reader: Source) -> Source {
    let (head, error) = read_ahead(&mut reader, 6);
    let magic = head.clone();
    let reader = put_back(head, error, reader);
    match magic.as_slice() {
        [0x1F, 0x8B, ..] => Box::new(flate2::read::MultiGzDecoder::new(reader)),
        [0x28, 0xB5, 0x2F, 0xFD, ..] => Box::new(Zstd::Between(Some(reader))),
        [0xFD, b'7', b'z', b'X', b'Z', 0] => {
            Box::new(lzma_rust2::XzReader::new_mem_limit(reader, true, XZ_MEMORY_KIB))
        }
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Box::new(bzip2::read::MultiBzDecoder::new(reader)),
        _ => reader,
    }
}

/// Frame after frame: `StreamingDecoder` ends with the first, but parallel compressors and
/// concatenated files have several.
enum Zstd {
    Between(Option<Source>),
    Frame(Box<StreamingDecoder<Source, ruzstd::decoding::FrameDecoder>>),
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
                    *self = Zstd::Between(Some(decoder.into_inner()));
                }
                Zstd::Between(source) => {
                    let Some(mut reader) = source.take() else { return Ok(0) };
                    let (head, error) = read_ahead(&mut reader, 4);
                    if head.is_empty() && error.is_none() {
                        return Ok(0);
                    }
                    let decoder = StreamingDecoder::new(put_back(head, error, reader));
                    *self = Zstd::Frame(Box::new(decoder.map_err(io::Error::other)?));
                }
            }
        }
    }
}
