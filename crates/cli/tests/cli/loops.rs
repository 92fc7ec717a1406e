//! Loop devices: what is known of a device by its number, and devices that go away.

use std::process::Command;

use crate::common::Place;
use crate::trouble::{ended, message, shell, started, stored};

/// Loop devices on a loop device, taken down whatever happens.
pub(crate) struct Loops(pub(crate) Vec<String>);

impl Loops {
    pub(crate) fn attach(&mut self, place: &Place, below: &str) -> Option<()> {
        let command = format!("losetup --find --show {below}");
        let output = shell(place, &["losetup"], &command)?;
        if !output.status.success() {
            println!("skipped: no loop devices here (root may)");
            return None;
        }
        self.0.push(String::from_utf8(output.stdout).unwrap().trim().to_owned());
        Some(())
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for device in self.0.iter().rev() {
            let _ = Command::new("losetup").args(["--detach", device]).status();
        }
    }
}

/// A device has one lock, whatever node it is opened by.
#[test]
fn a_second_node_of_a_device_is_locked_too() {
    let place = Place::new();
    place.write("image", vec![7u8; 1 << 20]);
    let mut loops = Loops(Vec::new());
    let Some(()) = loops.attach(&place, "image") else { return };
    let device = loops.0[0].clone();
    let made = shell(&place, &["cp"], &format!("cp -a {device} node")).unwrap();
    let run = |node: &str| {
        let run = ["run", node, "--workload", "randread", "--requests", "9", "--keep", "none"];
        place.command(&run).output().unwrap()
    };
    // A file system may hold no devices (nodev).
    if !made.status.success() || !run("./node").status.success() {
        println!("skipped: no node of a device can be used here");
        return;
    }
    let first = ["run", &device, "--workload", "randread", "--for", "60s", "--keep", "summary"];
    let mut first = started(&place, &first, "a");
    let refused = run("./node");
    let _ = first.kill();
    let _ = first.wait();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && told.contains("is locked"), "{told}");
    // What a program that was killed leaves locked is waited for.
    assert!(run("./node").status.success());
}

/// A device that disappears: the loop device is detached, and its file cut off, under way.
#[test]
fn a_detached_loop_device_ends_its_run() {
    let place = Place::new();
    place.write("image", vec![7u8; 8 << 20]);
    let mut loops = Loops(Vec::new());
    let Some(()) = loops.attach(&place, "image") else { return };
    let device = loops.0[0].clone();
    let run = ["run", &device, "--workload", "randread", "--for", "60s", "--keep", "summary"];
    let run = started(&place, &run, "a");
    // The device stays as long as somebody has it open; what is behind it goes.
    let _ = Command::new("losetup").args(["--detach", &device]).status();
    let image = std::fs::File::options().write(true).open(place.path().join("image")).unwrap();
    image.set_len(0).unwrap();
    let object = ended(run, 1);
    assert!(message(&object).contains("no longer responds"), "{}", message(&object));
    assert_eq!(stored(&place, "a")["partial"], true);
    // It went with its last user.
    loops.0.clear();
}
