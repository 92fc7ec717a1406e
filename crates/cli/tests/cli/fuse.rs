//! A file behind a FUSE server that is killed, or stops answering, while it is measured.
//!
//! The server is this very test program, called again with [`MOUNT`] set: a process of its own, so
//! that it can be killed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyEntry, Request,
};

use crate::common::{Place, one_object};
use crate::trouble::{at_work, ended, message, started, stored};

/// Where the server mounts, and after how many reads it answers no more.
const MOUNT: &str = "SSDYNO_TEST_FUSE_MOUNT";
const SILENT_AFTER: &str = "SSDYNO_TEST_FUSE_SILENT_AFTER";

const SIZE: u64 = 16 << 20;
const FILE: &str = "file";
const TTL: Duration = Duration::from_secs(60);

/// One file of zeros.
struct Zeros {
    reads: AtomicU64,
    silent_after: u64,
    /// Is made at the first read that is not answered.
    silent: PathBuf,
}

fn attributes(ino: INodeNo) -> FileAttr {
    let is_root = ino == INodeNo::ROOT;
    FileAttr {
        ino,
        size: if is_root { 0 } else { SIZE },
        blocks: if is_root { 0 } else { SIZE / 512 },
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: if is_root { FileType::Directory } else { FileType::RegularFile },
        perm: if is_root { 0o755 } else { 0o644 },
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        flags: 0,
        blksize: 4096,
    }
}

impl Filesystem for Zeros {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == FILE {
            reply.entry(&TTL, &attributes(INodeNo(2)), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &attributes(ino));
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if self.reads.fetch_add(1, Ordering::Relaxed) >= self.silent_after {
            std::fs::write(&self.silent, "").unwrap();
            // Dropped, it would answer with an error.
            std::mem::forget(reply);
            return;
        }
        let length = u64::from(size).min(SIZE.saturating_sub(offset));
        reply.data(&vec![0; length as usize]);
    }
}

/// Not a test: the server, where the environment says so.
#[test]
fn server() {
    let Some(mount) = std::env::var_os(MOUNT) else { return };
    let silent_after = std::env::var(SILENT_AFTER).ok().and_then(|n| n.parse().ok());
    let zeros = Zeros {
        reads: AtomicU64::new(0),
        silent_after: silent_after.unwrap_or(u64::MAX),
        silent: Path::new(&mount).with_extension("silent"),
    };
    let mut config = Config::default();
    config.n_threads = Some(1);
    fuser::mount(zeros, mount, &config).unwrap();
}

/// A server at work; killed and unmounted at the end.
struct Server {
    process: Child,
    mount: PathBuf,
}

impl Server {
    /// `None` where there is no FUSE, or it may not be used.
    fn start(place: &Place, silent_after: Option<u64>) -> Option<Server> {
        if !Path::new("/dev/fuse").exists() {
            println!("skipped: there is no /dev/fuse here");
            return None;
        }
        let mount = place.path().join("mnt");
        std::fs::create_dir(&mount).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "fuse::server"]).env(MOUNT, &mount);
        command.envs(silent_after.map(|reads| (SILENT_AFTER, reads.to_string())));
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut server = Server { process, mount };
        let began = Instant::now();
        while !server.mount.join(FILE).exists() {
            if server.process.try_wait().unwrap().is_some() {
                println!("skipped: nothing can be mounted here (root may)");
                return None;
            }
            assert!(began.elapsed() < Duration::from_secs(10), "it does not mount");
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(server)
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = Command::new("umount").arg("-l").arg(&self.mount).stderr(Stdio::null()).status();
    }
}

const RUN: [&str; 8] =
    ["run", "mnt/file", "--workload", "randread", "--for", "60s", "--keep", "summary"];

#[test]
fn a_server_that_is_killed_ends_the_run_and_what_was_measured_is_kept() {
    for engine in ["io_uring", "threads"] {
        let place = Place::new();
        let Some(mut server) = Server::start(&place, None) else { return };
        let depth = ["--engine", engine, "--set", "workload.depth=8", "--batch", "4"];
        let run = started(&place, &[&RUN[..], &depth].concat(), "a");
        at_work(&run);
        server.kill();
        let began = Instant::now();
        let object = ended(run, 1);
        assert!(began.elapsed() < Duration::from_secs(10));
        let message = message(&object);
        assert!(message.contains("no longer responds"), "{engine}: {message}");
        let stored = stored(&place, "a");
        assert_eq!(stored["partial"], true);
        assert!(stored["requests"].as_u64().unwrap() > 100, "{engine}: {}", stored["requests"]);
    }
}

#[test]
fn a_server_that_answers_no_more_can_be_interrupted() {
    let place = Place::new();
    let Some(mut server) = Server::start(&place, Some(500)) else { return };
    let run = started(&place, &RUN, "a");
    let pid = rustix::process::Pid::from_child(&run);
    let began = Instant::now();
    while !place.path().join("mnt.silent").exists() {
        assert!(began.elapsed() < Duration::from_secs(15), "it reads nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    // What was measured is there before the kernel lets go of the program.
    let file = place.path().join("results/a/result.json");
    let began = Instant::now();
    while !file.exists() {
        assert!(began.elapsed() < Duration::from_secs(15), "it hangs");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill();
    let object = ended(run, 130);
    assert!(object["notes"].to_string().contains("had not completed when the run ended"));
    let stored = one_object(&std::fs::read_to_string(file).unwrap());
    assert_eq!(stored["partial"], true);
    assert!((400..=500).contains(&stored["requests"].as_u64().unwrap()), "{}", stored["requests"]);
}
