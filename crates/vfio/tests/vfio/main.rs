//! Devices in other processes, or in other threads, and our drivers over them.
//!
//! No test depends on how fast the machine is: timeouts are those after which something hangs.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "support of tests: what fails here fails the test")]

mod client;
#[path = "../../examples/over_vfio_user/device.rs"]
mod device;
mod nvme;
mod protocol;
mod raw;
mod ring;
#[path = "../../examples/over_vfio_user/nvme.rs"]
mod wall_nvme;
#[path = "../../examples/over_vfio_user/ring.rs"]
mod wall_ring;

use std::path::Path;
use std::process::Command;

use device::DeviceProcess;
use tempfile::TempDir;

/// Set in a process that is to serve: what, and where.
const SERVE: &str = "SSDYNO_VFIO_TEST_SERVE";
const SOCKET: &str = "SSDYNO_VFIO_TEST_SOCKET";

/// Not a test, but what the other process runs: this program again.
#[test]
fn device_process() {
    if let (Ok(what), Ok(socket)) = (std::env::var(SERVE), std::env::var(SOCKET)) {
        device::end_with_parent().unwrap();
        device::serve(&what, Path::new(&socket)).unwrap();
    }
}

/// A device in another process, and the folder of its socket.
fn device(what: &str) -> (DeviceProcess, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "device_process", "--nocapture"]);
    program.env(SERVE, what).env(SOCKET, &socket);
    (DeviceProcess::start(&mut program, &socket).unwrap(), folder)
}
