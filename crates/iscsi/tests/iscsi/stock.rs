//! A stock initiator, that of QEMU, against the whole path: `qemu-io` and `qemu-img`.

use std::fs;
use std::process::{Command, Output};

use ssdyno_iscsi::{IscsiServer, UnitOptions};

use crate::device::{self, Blocks};
use crate::disk;

/// Sessions at a time.
const SESSIONS: u64 = 4;
/// What is copied to the device and back.
const IMAGE_BYTES: usize = 8 << 20;

/// The reads are short: QEMU 7.2 ends itself when at 4 KiB blocks one of 32 KiB or more meets blocks
/// of which it does not know whether they are there (it asks for a length that is not a multiple of the
/// block, against its own assertion in `iscsi_co_block_status`).
const COMMANDS: &[&str] = &[
    "write -P 0xab 0 1M",
    "read -P 0xab 0 1M",
    // Less than a block of 4 KiB: read, changed, written.
    "write -P 0x11 4096 512",
    "read -P 0x11 4096 512",
    "read -P 0xab 4608 512",
    // WRITE SAME, with and without UNMAP.
    "write -z 64k 16k",
    "read -P 0 64k 16k",
    "write -z -u 128k 16k",
    "read -P 0 128k 16k",
    "discard 256k 16k",
    "read -P 0 256k 16k",
    "read -P 0xab 272k 4k",
    "write -f -P 7 512k 4k",
    "flush",
    "aio_write -P 1 1M 256k",
    "aio_write -P 2 2M 256k",
    "aio_flush",
    "read -P 1 1M 256k",
    "read -P 2 2M 256k",
];

/// Commands that do not apply to a device without trims.
const TRIMS: &[&str] = &["discard 256k 16k", "read -P 0 256k 16k"];

fn qemu_io(url: &str, commands: &[String]) -> Output {
    let commands = commands.iter().flat_map(|command| ["-c", command]);
    Command::new("timeout")
        .args(["60", "qemu-io", "-f", "raw"])
        .args(commands)
        .arg(url)
        .output()
        .unwrap()
}

/// It ended well, and no pattern was another than it asked for.
fn assert_right(output: &Output) {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let wrong = ["verification failed", "failed:", "error", "Permission"];
    assert!(output.status.success() && !wrong.iter().any(|word| text.contains(word)), "{text}");
}

fn qemu_img(arguments: &[&str]) {
    let mut command = Command::new("timeout");
    let output = command.args(["60", "qemu-img"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Copies an image to the device and back.
fn copy_and_compare(url: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (image, back) = (folder.path().join("image"), folder.path().join("back"));
    // No two blocks alike, and some of them zero, which QEMU does not write but makes so.
    let content: Vec<u8> = (0..IMAGE_BYTES as u64)
        .map(|at| if at >> 16 & 3 == 3 { 0 } else { (at.wrapping_mul(0x9e37_79b9) >> 13) as u8 })
        .collect();
    fs::write(&image, &content).unwrap();
    let (image, to) = (image.to_str().unwrap(), back.to_str().unwrap());
    qemu_img(&["convert", "-n", "-f", "raw", "-O", "raw", image, url]);
    qemu_img(&["convert", "-f", "raw", "-O", "raw", url, to]);
    let found = fs::read(&back).unwrap();
    assert!(found.len() > IMAGE_BYTES, "the whole device comes back: {}", found.len());
    assert!(found[..IMAGE_BYTES] == content, "another image came back");
}

fn drives(blocks: Blocks) {
    drive(&device::serve(blocks.keys()), &format!("a drive, {blocks}"), true);
}

/// QEMU's tools at `server`. Devices that trim are small here, and are copied as a whole, too.
fn drive(server: &IscsiServer, what: &str, trims: bool) {
    let url = format!("iscsi://{}/{}/0", server.address(), device::NAME);
    let first = Command::new("qemu-img").args(["info", &url]).output();
    let Some(first) = first.ok().filter(|output| output.status.success()) else {
        println!(
            "skipped: no QEMU that knows iSCSI; type: sudo apt-get install qemu-utils \
             qemu-block-extra"
        );
        return;
    };
    assert!(String::from_utf8_lossy(&first.stdout).contains("virtual size"));
    if trims {
        copy_and_compare(&url);
    }
    let commands = COMMANDS.iter().filter(|command| trims || !TRIMS.contains(command));
    let commands: Vec<String> = commands.map(|command| (*command).to_owned()).collect();
    assert_right(&qemu_io(&url, &commands));
    // Sessions at a time, each with a range of its own.
    std::thread::scope(|scope| {
        for session in 0..SESSIONS {
            let (url, from) = (&url, (8 + 2 * session) << 20);
            scope.spawn(move || {
                let pattern = 0x20 + session;
                let commands: Vec<String> = (0..32)
                    .map(|chunk| from + (chunk << 16))
                    .flat_map(|at| ["write", "read"].map(|what| (what, at)))
                    .map(|(what, at)| format!("{what} -P {pattern} {at} 64k"))
                    .collect();
                assert_right(&qemu_io(url, &commands));
            });
        }
    });
    // What the others wrote is there for a session that did not write.
    for session in 0..SESSIONS {
        let (from, pattern) = ((8 + 2 * session) << 20, 0x20 + session);
        let commands = [0, 1 << 20, (2 << 20) - 16384]
            .map(|at| format!("read -P {pattern} {} 16k", from + at));
        assert_right(&qemu_io(&url, &commands));
    }
    println!("qemu-io and qemu-img, {what}: {} steps, {SESSIONS} sessions", COMMANDS.len());
}

#[test]
#[ignore = "needs QEMU's tools: cargo xtask scsi-suite"]
fn qemu_drives_blocks_of_512_bytes() {
    drives(Blocks::Small);
}

#[test]
#[ignore = "needs QEMU's tools: cargo xtask scsi-suite"]
fn qemu_drives_blocks_of_4_kib() {
    drives(Blocks::Large);
}

/// Disks are too large to be copied whole.
#[test]
#[ignore = "needs QEMU's tools: cargo xtask scsi-suite"]
fn qemu_drives_disks_and_an_ssd_without_nvme() {
    for blocks in [Blocks::Small, Blocks::Large] {
        let server = disk::serve(blocks, UnitOptions::default());
        drive(&server, &format!("a disk, {blocks}"), false);
    }
    drive(&disk::serve_ssd(UnitOptions::default()), "an SSD without NVMe", true);
}
