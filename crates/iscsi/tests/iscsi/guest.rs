//! A stock Linux, in a virtual machine, as the initiator: `cargo xtask scsi-guest` makes it.

use std::process::Command;

use ssdyno_iscsi::{Portal, UnitOptions};

use crate::device::{self, Blocks};

/// The folder with `vmlinuz`, `initrd` and `disk`, by this variable.
const FOLDER: &str = "SSDYNO_GUEST";
/// Large enough for two file systems; XFS wants 300 MiB.
const LARGE: (&str, &str) = ("blocks_per_plane = 64", "blocks_per_plane = 768");
/// Under emulation on a busy machine.
const SECONDS_MAX: &str = "1500";

#[test]
#[ignore = "some minutes, and needs a guest: cargo xtask scsi-guest"]
fn stock_linux_drives_the_target_with_blocks_of_512_bytes() {
    boot(Blocks::Small);
}

#[test]
#[ignore = "some minutes, and needs a guest: cargo xtask scsi-guest"]
fn stock_linux_drives_the_target_with_blocks_of_4_kib() {
    boot(Blocks::Large);
}

/// Boots the guest; each of its checks must be good, and it must come to its end.
fn boot(blocks: Blocks) {
    let Ok(folder) = std::env::var(FOLDER) else {
        println!("skipped: there is no guest; type: cargo xtask scsi-guest");
        return;
    };
    // The guest calls us by an address that its virtual machine translates.
    let units = device::units_changed(blocks.keys(), LARGE, UnitOptions::default());
    let server = device::served(units, Portal::WhereAsked);
    let port = server.address().port();
    let kernel =
        format!("console=ttyS0 root=/dev/vda rw quiet init=/sbin/guest panic=-1 ssdyno={port}");
    let disk = format!("file={folder}/disk,format=raw,if=virtio,snapshot=on");
    let output = Command::new("timeout")
        .args([SECONDS_MAX, "qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi"])
        .args(["-cpu", "max", "-smp", "2", "-m", "1G", "-nodefaults", "-display", "none"])
        .args(["-serial", "stdio", "-no-reboot", "-append", &kernel, "-drive", &disk])
        .args(["-kernel", &format!("{folder}/vmlinuz"), "-initrd", &format!("{folder}/initrd")])
        .args(["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let count = |start: &str| said.lines().filter(|line| line.starts_with(start)).count();
    println!("Linux guest, {blocks}: {} good, {} not", count("ok "), count("not ok "));
    let came_to_its_end = said.lines().any(|line| line.trim() == "done");
    assert!(count("not ok ") == 0 && count("ok ") > 60 && came_to_its_end, "{said}");
}
