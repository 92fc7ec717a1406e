//! Compressed traces: read whole and in parts, and no damage goes unnoticed.
use crate::common;

use std::fmt::Write as _;
use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::LazyLock;

use common::{DEVICE, Issued, play};
use proptest::prelude::*;
use ssdyno_block::Time;
use ssdyno_workload::{BeyondEnd, TraceOptions, Workload, WorkloadError, read_trace};

fn open(bytes: Vec<u8>) -> Result<Box<dyn Workload + Send>, WorkloadError> {
    let options = TraceOptions { beyond_end: BeyondEnd::Skip, ..TraceOptions::default() };
    read_trace(Box::new(Cursor::new(bytes)), Path::new("some.trace"), &options, &DEVICE)
}

/// All requests, or what is wrong with the trace.
fn played(bytes: Vec<u8>, most: usize) -> Result<Vec<Issued>, WorkloadError> {
    let mut workload = open(bytes)?;
    let all = play(workload.as_mut(), &DEVICE, Time::from_us(10), most);
    workload.error().map_or(Ok(all), Err)
}

/// Many lines, so that compressed data has several blocks.
fn long_text(lines: u64) -> String {
    (0..lines).fold(String::new(), |mut text, line| {
        writeln!(text, "{}.{:06} 0 {} 8 {}", line, line * 7919 % 1_000_000, line * 8, line % 2)
            .unwrap();
        text
    })
}

fn compressed(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let bytes = text.as_bytes();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(bytes).unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    bzip2.write_all(bytes).unwrap();
    let options = lzma_rust2::XzOptions::default();
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    xz.write_all(bytes).unwrap();
    let info = lz4_flex::frame::FrameInfo::new().content_checksum(true);
    let mut lz4 = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    lz4.write_all(bytes).unwrap();
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    vec![
        ("gzip", gzip.finish().unwrap()),
        ("bzip2", bzip2.finish().unwrap()),
        ("xz", xz.finish().unwrap()),
        ("zstd", ruzstd::encoding::compress_to_vec(bytes, level)),
        ("lz4", lz4.finish().unwrap()),
    ]
}

#[test]
fn compressed_traces_are_read_whole_and_in_parts() {
    let text = long_text(20_000);
    let expected = played(text.as_bytes().to_vec(), 20_000).unwrap();
    assert_eq!(expected.len(), 20_000);
    for (name, bytes) in compressed(&text) {
        let all = played(bytes, 20_000).unwrap();
        assert!(all == expected, "{name}");
    }
    // Two members or frames, one after the other.
    let (first, second) = text.split_at(text.find("\n10000.").unwrap() + 1);
    for ((name, mut bytes), (_, more)) in compressed(first).into_iter().zip(compressed(second)) {
        bytes.extend(more);
        let all = played(bytes, 20_000).unwrap();
        assert!(all == expected, "{name} in two parts");
    }
}

#[test]
fn truncated_compression_is_an_error_after_what_was_read() {
    for (name, bytes) in compressed(&long_text(50_000)) {
        for cut in [bytes.len() / 2, bytes.len() - 5, 7] {
            let opened = open(bytes[..cut].to_vec());
            let error = match opened {
                Err(error) => error,
                Ok(mut workload) => {
                    let all = play(workload.as_mut(), &DEVICE, Time::from_us(1), 50_000);
                    assert!(!all.is_empty() && all.len() <= 50_000, "{name}");
                    workload.error().unwrap_or_else(|| panic!("{name} cut at {cut} goes unnoticed"))
                }
            };
            assert!(error.at.is_some(), "{name}: {error}");
            assert!(error.what.contains("cut short"), "{name}, {cut}: {error}");
            assert!(error.help.unwrap().contains("copy or compress"), "{name}, {cut}");
        }
    }
}

/// A skippable frame holds what is not data, such as the table of a seekable file.
#[test]
fn skippable_frames_of_zstd_are_passed_over() {
    let text = long_text(100);
    let frame = compressed(&text).into_iter().find(|(name, _)| *name == "zstd").unwrap().1;
    let skippable = b"\x50\x2a\x4d\x18\x05\x00\x00\x00table".to_vec();
    let expected = played(text.into_bytes(), 100).unwrap();
    for parts in [[&skippable, &frame], [&frame, &skippable]] {
        assert_eq!(played(parts.into_iter().flatten().copied().collect(), 100).unwrap(), expected);
    }
    let mut cut = frame.clone();
    cut.extend(&skippable[..10]);
    assert!(played(cut, 100).unwrap_err().what.contains("cut short"));
}

#[test]
fn what_cannot_be_read_is_named() {
    let mut tar = vec![0; 600];
    tar[257..262].copy_from_slice(b"ustar");
    for (bytes, kind) in [
        (b"PK\x03\x04\x14\x00\x00\x00\xff\xfe".to_vec(), "unzip"),
        (b"\x5d\x00\x00\x80\x00\xff\xff\xff".to_vec(), "unlzma"),
        (b"7z\xbc\xaf\x27\x1c\x00\x04".to_vec(), "7z"),
        (tar, "tar -xf"),
    ] {
        let error = played(bytes, 1).unwrap_err();
        assert!(error.help.as_ref().unwrap().contains(kind), "{kind}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Each of the five has a checksum: a wrong byte is told of, or was of no account.
    #[test]
    fn a_wrong_byte_is_noticed(which in 0..5_usize, at: usize, change in 1..=255_u8) {
        let (name, mut bytes) = SMALL[which].clone();
        // Headers of gzip and the flags of lz4 and zstd that say whether there is a checksum.
        let at = 7 + at % (bytes.len() - 7);
        bytes[at] ^= change;
        if let Ok(all) = played(bytes, 100_000) {
            prop_assert!(all == *PLAYED, "{} at {}: {} requests", name, at, all.len());
        }
    }
}

/// A short trace in every compression.
static SMALL: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(|| compressed(&long_text(30)));
static PLAYED: LazyLock<Vec<Issued>> =
    LazyLock::new(|| played(long_text(30).into_bytes(), 30).unwrap());
