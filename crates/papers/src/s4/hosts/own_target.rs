//! Our iSCSI target in the target's namespace, on threads of this process: they end with it, however it ends.

use std::sync::Arc;

use ssdyno_device::delay::{DelayConfig, DelayDevice};
use ssdyno_iscsi::{BlockUnits, DiskOptions, IscsiServer, IscsiTarget, ServedClock, UnitOptions};
use ssdyno_session::Failure;

use super::cpu::Cores;
use super::lab::{Lab, TARGET_ADDRESS, enter};
use super::target::{MEDIUM_BYTES, TARGET_NAME};
use super::tools::refused;

/// The servers. Dropped, they are stopped.
pub(super) struct OwnTarget {
    namespace: String,
    servers: Vec<IscsiServer>,
}

impl OwnTarget {
    /// Listens at each of `ports`, with a unit of its own that has `contents` and takes no time.
    pub(super) fn start(
        lab: &Lab,
        cores: &Cores,
        ports: Vec<u16>,
        contents: &[u8],
    ) -> Result<OwnTarget, Failure> {
        let namespace = lab.target();
        let serve = || {
            enter(&namespace)?;
            ports.into_iter().map(|port| serve((TARGET_ADDRESS, port), contents)).collect()
        };
        // Threads begin in the namespace and on the cores of who starts them, so this one alone has to go there.
        let served = cores.on_target(|| std::thread::scope(|scope| scope.spawn(serve).join()));
        let panicked = |_| Err(refused("our iSCSI target panicked", "please report this"));
        let servers = served.unwrap_or_else(panicked)?;
        Ok(OwnTarget { namespace, servers })
    }
}

/// A server connects to itself to end, which it can in its namespace only: elsewhere the connection is never answered.
impl Drop for OwnTarget {
    fn drop(&mut self) {
        let servers = std::mem::take(&mut self.servers);
        let namespace = &self.namespace;
        let end = move || {
            // The thread is a new one, because a thread that has entered a namespace does not come
            // back by itself. The namespace of the caller stays as it is.
            let _ = enter(namespace);
            drop(servers);
        };
        let _ = std::thread::scope(|scope| scope.spawn(end).join());
    }
}

fn serve(address: (&str, u16), contents: &[u8]) -> Result<IscsiServer, Failure> {
    let cannot = |error: String| Failure::failed(format!("our iSCSI target cannot serve: {error}"));
    let text = format!("[delay]\ncapacity = \"{MEDIUM_BYTES}B\"\nread = \"0s\"\nwrite = \"0s\"\n");
    let device = DelayConfig::parse(&text)
        .map_err(|error| error.to_string())
        .and_then(|config| DelayDevice::new(&config, 0).map_err(|error| error.to_string()))
        .map_err(cannot)?;
    let options = DiskOptions {
        product: "MEMORY".to_owned(),
        serial: address.1.to_string(),
        unit: UnitOptions { read_only: true, ..UnitOptions::default() },
    };
    let mut units =
        BlockUnits::over(device, &options).map_err(|error| cannot(error.to_string()))?;
    units.put(0, contents);
    let target = IscsiTarget::new(TARGET_NAME, Box::new(units))
        .map_err(|error| cannot(error.to_string()))?
        // What takes no time waits for no clock.
        .with_clock(ServedClock::Device);
    IscsiServer::start(address, Arc::new(target)).map_err(|error| cannot(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    /// A login that gives no name is refused, by what speaks iSCSI.
    #[test]
    fn it_answers_a_login() {
        let server = serve(("127.0.0.1", 0), &[1; 4096]).unwrap();
        let mut socket = TcpStream::connect(server.address()).unwrap();
        let mut login = [0; 48];
        login[..2].copy_from_slice(&[0x43, 0x87]);
        socket.write_all(&login).unwrap();
        let mut answer = [0; 48];
        socket.read_exact(&mut answer).unwrap();
        // Login response; initiator error, missing parameter (RFC 7143, 11.13.5).
        assert_eq!((answer[0], answer[36], answer[37]), (0x23, 2, 7));
    }
}
