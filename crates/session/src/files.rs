//! Small files, read whole, with a message for whatever may be wrong with them.

use std::fs::File;
use std::io::{ErrorKind, Read};

use crate::failure::{Failure, FailurePlace};

/// More than any configuration; keeps an endless file out.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Reads a text file, with a message for whatever may be wrong with it.
///
/// # Errors
/// It cannot be read, is larger than 16 MiB, or is not UTF-8.
pub fn read_text(path: &str) -> Result<String, Failure> {
    text(path, read_bytes(path)?)
}

/// The same of what other programs print: UTF-8, UTF-16 with a byte order mark (PowerShell's `>` saves it), or
/// Latin-1, in which names of devices were once.
///
/// # Errors
/// It cannot be read, is larger than 16 MiB, or is not text.
pub fn read_printed_text(path: &str) -> Result<String, Failure> {
    printed_text(path, read_bytes(path)?)
}

fn printed_text(path: &str, bytes: Vec<u8>) -> Result<String, Failure> {
    let wide = match &bytes[..] {
        [0xff, 0xfe, rest @ ..] => Some((rest, u16::from_le_bytes as fn([u8; 2]) -> u16)),
        [0xfe, 0xff, rest @ ..] => Some((rest, u16::from_be_bytes as fn([u8; 2]) -> u16)),
        _ => None,
    };
    if let Some((rest, unit)) = wide {
        let (pairs, odd) = rest.as_chunks::<2>();
        let units = pairs.iter().map(|pair| unit(*pair));
        let text: Result<String, _> = char::decode_utf16(units).collect();
        return match text {
            Ok(text) if odd.is_empty() => Ok(text),
            _ => Err(cannot(
                path,
                "it begins like UTF-16 text, but the rest is not UTF-16",
                "save it as UTF-8",
            )),
        };
    }
    if str::from_utf8(&bytes).is_ok() || bytes.contains(&0) {
        return text(path, bytes);
    }
    Ok(bytes.into_iter().map(char::from).collect())
}

fn text(path: &str, bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        // The replacement character stands where the first wrong byte was: three bytes long.
        let (span, label) = (valid..valid + 3, "not UTF-8".to_owned());
        let place =
            FailurePlace { name: path.to_owned(), text, span, first_line: 1, label, is_file: true };
        cannot(path, "it is not UTF-8 text", "save it as UTF-8").at(Some(place))
    })
}

/// The failure to read `path`.
pub(crate) fn cannot(path: &str, why: &str, help: &str) -> Failure {
    Failure::usage(format!("cannot read {path}: {why}")).with_help(help).in_file(path)
}

/// Reads a small file, with a message for whatever may be wrong with it.
///
/// # Errors
/// It cannot be read, or is larger than 16 MiB.
pub fn read_bytes(path: &str) -> Result<Vec<u8>, Failure> {
    let cannot = |why: &str, help: &str| cannot(path, why, help);
    let is_directory = || cannot("it is a directory", "name the file in it");
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => cannot("there is no such file", "check the path"),
        ErrorKind::PermissionDenied => cannot("permission denied", "check its permissions"),
        ErrorKind::IsADirectory => is_directory(),
        _ => cannot(&error.to_string(), "check the path"),
    })?;
    if file.metadata().is_ok_and(|data| data.is_dir()) {
        return Err(is_directory());
    }
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| cannot(&error.to_string(), "check the file"))?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(cannot("it is larger than 16 MiB", "name a configuration or a result"));
    }
    Ok(bytes)
}
