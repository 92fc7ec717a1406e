//! What other programs print is read in the encodings that they are saved in.

use std::io::Write as _;

use ssdyno_session::files::read_printed_text;

fn read(bytes: &[u8]) -> Result<String, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    read_printed_text(file.path().to_str().unwrap()).map_err(|failure| failure.to_string())
}

fn utf16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(unit).collect()
}

/// PowerShell's `>` saves UTF-16 with a byte order mark; names of devices were in Latin-1 once.
#[test]
fn printed_text_in_each_encoding() {
    let line = "00:1f.2 SATA controller: Größe \u{1f4be}\r\n";
    let same = Ok(line.to_owned());
    assert_eq!(read(line.as_bytes()), same);
    assert_eq!(read(&utf16(line, u16::to_le_bytes)), same);
    assert_eq!(read(&utf16(line, u16::to_be_bytes)), same);
    assert_eq!(read(&[b'G', 0xf6, b'n']), Ok("Gön".to_owned()));
    assert_eq!(read(&[0xff, 0xfe]), Ok(String::new()));
}

#[test]
fn what_only_begins_as_utf16_is_refused() {
    let mut odd = utf16("a", u16::to_le_bytes);
    odd.push(0);
    // Half a unit, and half of a surrogate pair.
    for bytes in [&odd[..], &[0xff, 0xfe, 0x3d, 0xd8, b'a', 0]] {
        let error = read(bytes).unwrap_err();
        assert!(error.starts_with("cannot read"), "{error}");
    }
}
