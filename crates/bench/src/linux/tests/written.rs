//! What ends up on the target.

use std::collections::HashSet;
use std::io::Write as _;

use super::*;

const BLOCK: usize = 4096;
/// Of the file: 16 MiB.
const BLOCKS: usize = 4096;

/// What deflate leaves of a file, and its different blocks, as shares.
fn shares(name: &str) -> (f64, f64) {
    let content = std::fs::read(name).unwrap();
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&content).unwrap();
    let compressed = encoder.finish().unwrap().len() as f64 / content.len() as f64;
    let unique: HashSet<&[u8]> = content.chunks(BLOCK).collect();
    (compressed, unique.len() as f64 / BLOCKS as f64)
}

/// Writes the whole file once, one block after the other, and looks at it. Deflate adds up to 1.5 % of the
/// whole; of 4096 writes a share of 0.3 is repeated within 0.036 (five standard deviations).
#[test]
fn what_is_written_is_as_fresh_and_as_compressible_as_asked() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), BLOCKS * BLOCK);
    let keys =
        "read_percent = 0\ndepth = 8\nrequests = 4096\naddress = { pattern = \"sequential\" }\n";
    for engine in [EngineKind::Uring, EngineKind::Threads] {
        for (buffer, compressed, unique) in [
            ("", 1.0, 1.0),
            ("buffer = { compress = \"50%\" }\n", 0.5, 1.0),
            ("buffer = { dedupe = \"30%\" }\n", 0.7, 0.7),
            ("buffer = { compress = \"100%\" }\n", 0.0, 1.0 / 4096.0),
        ] {
            let mut run = run(&name, &format!("{keys}{buffer}"));
            // One thread: each job repeats its own data.
            run.source = Source::Generator(
                match engine {
                    EngineKind::Threads => WorkloadConfig::from_toml(
                        &format!("{keys}{buffer}").replace("depth = 8", "depth = 1"),
                    ),
                    _ => WorkloadConfig::from_toml(&format!("{keys}{buffer}")),
                }
                .unwrap(),
            );
            (run.access, run.options.engine) = (permit(&name), engine);
            match run.execute(&mut |_| KeepGoing::Continue) {
                Err(BenchError::Uring { source }) => {
                    eprintln!("skipped: no io_uring here ({source})");
                    continue;
                }
                other => assert!(other.unwrap().failure.is_none()),
            }
            let (left, different) = shares(&name);
            // Blocks that repeat close by are found by the compressor, too, most of them.
            if !buffer.contains("dedupe") {
                assert!((left - compressed).abs() < 0.015, "{engine:?} {buffer}: {left}");
            }
            let tolerance = if buffer.contains("dedupe") { 0.036 } else { 0.0 };
            assert!((different - unique).abs() <= tolerance, "{engine:?} {buffer}: {different}");
        }
    }
}

/// The same from a job file, with the chunks of fio.
#[test]
fn a_job_file_says_what_its_writes_carry() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), BLOCKS * BLOCK);
    for (options, compressed, unique) in [
        ("", 1.0, 1.0),
        ("buffer_compress_percentage=50", 0.5, 1.0),
        ("buffer_compress_percentage=50\nbuffer_compress_chunk=4k", 0.5, 1.0),
        ("zero_buffers=1", 0.0, 1.0 / 4096.0),
        // One for each place in memory.
        ("scramble_buffers=0", f64::NAN, 8.0 / 4096.0),
    ] {
        let text =
            format!("[w]\nrw=write\nbs=4k\nioengine=libaio\niodepth=8\ndirect=1\n{options}\n");
        let mut run = with_jobs(run(&name, ""), &text);
        (run.access, run.options.engine) = (permit(&name), EngineKind::Uring);
        match run.execute(&mut |_| KeepGoing::Continue) {
            Err(BenchError::Uring { source }) => {
                return eprintln!("skipped: no io_uring here ({source})");
            }
            other => assert!(other.unwrap().failure.is_none()),
        }
        let (left, different) = shares(&name);
        assert!(compressed.is_nan() || (left - compressed).abs() < 0.015, "{options}: {left}");
        assert_eq!(different, unique, "{options}");
    }
}
