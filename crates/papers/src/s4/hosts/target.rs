//! The targets of table 4 in a namespace: nbd-server, our iSCSI target and tgt, each with a medium in memory for each client.

use std::fmt::Write as _;
use std::path::PathBuf;

use ssdyno_session::Failure;

use super::cpu::Cores;
use super::lab::{Lab, TARGET_ADDRESS};
use super::memory::MemoryFile;
use super::own_target::OwnTarget;
use super::programs::{Program, Programs};
use super::tools::Tools;

/// The port of nbd-server.
const NBD_PORT: u16 = 10_809;

/// The port of tgt, and the one that it listens at until it has its units.
const TGT_PORT: u16 = 3260;
const TGT_PORT_BEFORE: u16 = 3259;

/// The port of our target for client 1.
const OWN_PORT: u16 = 3261;

/// The name of all iSCSI targets here.
pub(super) const TARGET_NAME: &str = "iqn.2026-01.org.ssdyno:table4";

/// Bytes of what one client reads.
pub(super) const MEDIUM_BYTES: usize = 64 << 20;

/// nbd-server goes to the background. (In the foreground, with `-d`, it takes one connection only.)
const START_NBD: &str = "\"$NBD_SERVER\" -C \"$NBD_FILE\" </dev/null\n";

/// What serves the clients of table 4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Server {
    /// nbd-server, over NBD.
    Nbd,
    /// Our target, over iSCSI.
    Own,
    /// tgtd, over iSCSI.
    Tgt,
}

impl Server {
    pub(super) const ALL: [Server; 3] = [Server::Nbd, Server::Own, Server::Tgt];

    pub(super) fn name(self) -> &'static str {
        match self {
            Server::Nbd => "NBD, nbd-server",
            Server::Own => "iSCSI, ours",
            Server::Tgt => "iSCSI, tgt",
        }
    }

    /// What client `n`, from 1, loads.
    pub(super) fn address(self, n: u16) -> String {
        match self {
            Server::Nbd => format!("nbd://{TARGET_ADDRESS}:{NBD_PORT}/{}", export(n)),
            Server::Own => {
                format!("iscsi://{TARGET_ADDRESS}:{}/{TARGET_NAME}/0", own_port(n))
            }
            // Its unit 0 is a controller.
            Server::Tgt => format!("iscsi://{TARGET_ADDRESS}:{TGT_PORT}/{TARGET_NAME}/{n}"),
        }
    }
}

/// All targets. Dropped, they are stopped.
pub(super) struct Targets {
    _programs: Programs,
    _own: OwnTarget,
    _files: Vec<MemoryFile>,
}

impl Targets {
    /// Starts those that `tools` have, in the target's namespace and on its core.
    pub(super) fn start(
        tools: &Tools,
        lab: &Lab,
        cores: &Cores,
        clients: u16,
    ) -> Result<Targets, Failure> {
        // The contents change with each sector of 512 bytes. A file of zeroes could be a hole,
        // which a server can answer without reading it.
        let contents: Vec<u8> = (0..MEDIUM_BYTES).map(|at| (at >> 9) as u8).collect();
        // Each client has a medium of its own in memory. With a common one, the second client would
        // read what the first has brought into the caches of the processor.
        let media = (1..=clients).map(|n| MemoryFile::new(&export(n), &contents));
        let mut files = media.collect::<Result<Vec<_>, _>>()?;
        let paths: Vec<String> = files.iter().map(MemoryFile::path).collect();
        let file = MemoryFile::new("nbd-server.conf", configuration(&paths).as_bytes())?;
        let mut programs = vec![Program {
            name: "nbd-server",
            port: NBD_PORT,
            start: START_NBD.to_owned(),
            words: vec![
                ("NBD_SERVER", tools.nbd_server.clone()),
                ("NBD_FILE", PathBuf::from(file.path())),
            ],
        }];
        files.push(file);
        if let Some((daemon, admin)) = tools.tgt.clone() {
            programs.push(Program {
                name: "tgtd",
                port: TGT_PORT,
                start: start_tgt(&paths),
                words: vec![("TGTD", daemon), ("TGTADM", admin)],
            });
        }
        let ports = (1..=clients).map(own_port).collect();
        Ok(Targets {
            _programs: Programs::start(&tools.ip, lab, cores, &programs)?,
            _own: OwnTarget::start(lab, cores, ports, &contents)?,
            _files: files,
        })
    }
}

/// The export of client `n`, from 1.
fn export(n: u16) -> String {
    format!("client-{n}")
}

fn own_port(n: u16) -> u16 {
    OWN_PORT - 1 + n
}

/// The file of nbd-server, for media at `paths`.
fn configuration(paths: &[String]) -> String {
    let mut text =
        format!("[generic]\nlistenaddr = {TARGET_ADDRESS}\nport = {NBD_PORT}\nallowlist = true\n");
    for (n, path) in (1..).zip(paths) {
        // The exports are read-only. No load writes, and a mistake in a load must not change the
        // data of later loads.
        let _ = write!(text, "[{}]\nexportname = {path}\nreadonly = true\n", export(n));
    }
    text
}

/// Starts tgtd, with a unit for each of `paths`. Its control socket is in a file system that is mounted for this shell
/// alone: it meets no other tgtd, and nothing of it stays. Its last command lets it listen.
fn start_tgt(paths: &[String]) -> String {
    let mut text = format!(
        "mount -t tmpfs ssdyno /mnt; export TGT_IPC_SOCKET=/mnt/tgt\n\
         \"$TGTD\" -f --iscsi portal=127.0.0.1:{TGT_PORT_BEFORE} </dev/null & n=0\n\
         adm() {{ \"$TGTADM\" --lld iscsi --op \"$@\"; }}\n\
         until adm new --mode target --tid 1 --targetname {TARGET_NAME}; do\n\
         n=$((n + 1)); [ $n -lt 100 ]; sleep 0.05; done\n"
    );
    for (n, path) in (1..).zip(paths) {
        let unit = format!("--mode logicalunit --tid 1 --lun {n}");
        let _ = write!(
            text,
            "adm new {unit} --backing-store {path}\nadm update {unit} --params readonly=1\n"
        );
    }
    text += "adm bind --mode target --tid 1 --initiator-address ALL\n";
    let _ = writeln!(text, "adm new --mode portal --param portal={TARGET_ADDRESS}:{TGT_PORT}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_an_export() {
        let text = configuration(&["/a".to_owned(), "/b".to_owned()]);
        assert!(text.contains("[client-2]\nexportname = /b\nreadonly = true"), "{text}");
        assert!(text.starts_with("[generic]\nlistenaddr = 10.83.0.1\nport = 10809\n"), "{text}");
    }

    /// It listens only when all units are there.
    #[test]
    fn each_client_has_a_unit_of_tgt() {
        let text = start_tgt(&["/a".to_owned(), "/b".to_owned()]);
        let of_b = "adm new --mode logicalunit --tid 1 --lun 2 --backing-store /b\n";
        assert!(text.contains(of_b) && text.contains("--lun 2 --params readonly=1"), "{text}");
        let last = text.lines().last().unwrap();
        assert_eq!(last, "adm new --mode portal --param portal=10.83.0.1:3260");
    }

    #[test]
    fn no_two_clients_load_the_same() {
        let addresses = Server::ALL.map(|server| server.address(2));
        let expected = [
            "nbd://10.83.0.1:10809/client-2",
            "iscsi://10.83.0.1:3262/iqn.2026-01.org.ssdyno:table4/0",
            "iscsi://10.83.0.1:3260/iqn.2026-01.org.ssdyno:table4/2",
        ];
        assert_eq!(addresses, expected);
    }
}
