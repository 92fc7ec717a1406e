//! The ring driver and the NVMe driver, unchanged, over devices in another process: data is checked,
//! then round trips and throughput are measured (`docs/ring_over_vfio_user.md`).
//!
//! ```text
//! over_vfio_user                        both drivers, each with its device in a process of its own
//! over_vfio_user serve ring PATH        only the device: ring or nvme, for any vfio-user client at PATH
//! ```

#[cfg(target_os = "linux")]
#[expect(dead_code, reason = "tests use more of it")]
mod device;
#[cfg(target_os = "linux")]
mod measure;
#[cfg(target_os = "linux")]
mod nvme;
#[cfg(target_os = "linux")]
mod ring;

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => measure::both(),
        ["serve", what, socket] => device::serve(what, socket.as_ref()),
        // Started by ourselves, to end with us.
        ["part", what, socket] => {
            device::end_with_parent()?;
            device::serve(what, socket.as_ref())
        }
        _ => Err("nothing, or: serve ring PATH, or: serve nvme PATH".into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("vfio-user needs Linux");
}
