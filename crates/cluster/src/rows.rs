//! Rows of requests: a worker keeps them in a directory of its own until the run is released, and its controller fetches
//! them as the file that a run without other hosts would have written.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ssdyno_record::Recording;
use ssdyno_report::RunDirectory;
use ssdyno_session::{Failure, FailureKind, unwritable};
use tokio::sync::mpsc;
use tonic::Status;

use crate::connection::Connection;
use crate::protocol::{GONE_AFTER, NO_ANSWER, RowsPart, TRY_EVERY, status_of};

/// Bytes of a part: large enough that its head costs nothing, small enough that two in flight are nothing to a worker.
const PART_BYTES: usize = 256 << 10;

/// The rows of a run on its worker. They go with it.
#[derive(Clone, Debug)]
pub(crate) struct KeptRows(Arc<Kept>);

#[derive(Debug)]
struct Kept {
    directory: RunDirectory,
    /// Held while the file is written: after a cut the controller asks again, and rows can be read once.
    writing: Mutex<()>,
    /// How many write the file or wait for it. Above 0 the run is in use, although no controller asks for it.
    busy: AtomicUsize,
}

/// A mark in [`Kept::busy`].
struct Busy<'a>(&'a AtomicUsize);

impl<'a> Busy<'a> {
    fn mark(count: &'a AtomicUsize) -> Busy<'a> {
        count.fetch_add(1, Ordering::Relaxed);
        Busy(count)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // An error is ignored: `drop` cannot report it, and the directory lies below a directory
        // for temporary files, which the system cleans.
        let _ = std::fs::remove_dir_all(self.directory.path());
    }
}

impl KeptRows {
    /// A place below `base` for the rows of run `number`.
    pub(crate) fn create(base: &Path, number: u64) -> Result<KeptRows, Failure> {
        // The process ID keeps workers on one machine apart. `RunDirectory::create` never uses a directory that
        // exists, so another user cannot prepare one to read the rows.
        let name = format!("ssdyno-rows-{}-{number}", std::process::id());
        let directory = RunDirectory::create(base, &name).map_err(|error| {
            let Failure { message, help, .. } = unwritable(&error);
            Failure {
                help,
                ..Failure::new(FailureKind::Unwritable, format!("no place for rows: {message}"))
            }
            .with_key("rows")
        })?;
        // Offsets and times of requests show what a user does. The directory therefore belongs to the user of this
        // worker alone, before the first row is written into it.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let private = std::fs::Permissions::from_mode(0o700);
            let _ = std::fs::set_permissions(directory.path(), private);
        }
        let (writing, busy) = (Mutex::new(()), AtomicUsize::new(0));
        Ok(KeptRows(Arc::new(Kept { directory, writing, busy })))
    }

    /// Where a run leaves its rows.
    pub(crate) fn path(&self) -> PathBuf {
        self.0.directory.path().to_owned()
    }

    /// Whether a file of them is being written.
    pub(crate) fn is_busy(&self) -> bool {
        self.0.busy.load(Ordering::Relaxed) > 0
    }

    /// Sends the file of the rows of `recording` from `offset` on to `parts`; it is written when it is first asked for.
    /// `hear` is called with each part.
    pub(crate) fn send(
        &self,
        recording: &Recording,
        offset: u64,
        parts: &mpsc::Sender<Result<RowsPart, Status>>,
        hear: impl Fn(),
    ) {
        if let Err(failure) = self.try_send(recording, offset, parts, hear) {
            // A controller that is gone does not learn of it.
            let _ = parts.blocking_send(Err(status_of(&failure)));
        }
    }

    /// Writes the file of the rows of `recording`, or waits for the call that writes it; gives its path.
    fn write_once(&self, recording: &Recording, hear: &impl Fn()) -> Result<PathBuf, Failure> {
        let path = self.path().join("requests.parquet");
        // Writing the file may take longer than the lease of 45 s, and the controller cannot send anything
        // meanwhile. The mark keeps the housekeeping from ending the run.
        let busy = Busy::mark(&self.0.busy);
        let writing = self.0.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if !path.exists() {
            let none = || Failure::failed("this run kept no rows");
            let rows = recording.rows().ok_or_else(none)?;
            self.0.directory.write_rows(rows, false).map_err(|error| unwritable(&error))?;
        }
        drop(writing);
        // The lease begins before the mark is gone; the housekeeping could come in between.
        hear();
        drop(busy);
        Ok(path)
    }

    fn try_send(
        &self,
        recording: &Recording,
        offset: u64,
        parts: &mpsc::Sender<Result<RowsPart, Status>>,
        hear: impl Fn(),
    ) -> Result<(), Failure> {
        let path = self.write_once(recording, &hear)?;
        let unreadable = |error: std::io::Error| {
            Failure::failed(format!("cannot read {}: {error}", path.display()))
        };
        let mut file = File::open(&path).map_err(unreadable)?;
        let total_bytes = file.metadata().map_err(unreadable)?.len();
        // The offset comes from the network. An offset beyond the end gives an empty
        // part, and the controller compares the lengths.
        file.seek(SeekFrom::Start(offset.min(total_bytes))).map_err(unreadable)?;
        loop {
            let mut bytes = vec![0; PART_BYTES];
            let read = file.read(&mut bytes).map_err(unreadable)?;
            bytes.truncate(read);
            // An empty part marks the end, together with the length. The end of the stream alone could also be
            // a cut, and half of a Parquet file cannot be read.
            if parts.blocking_send(Ok(RowsPart { bytes, total_bytes })).is_err() || read == 0 {
                return Ok(());
            }
            hear();
        }
    }
}

/// A file that nobody can use before it is whole. Dropped, also when the transfer is interrupted, it goes, and its directory
/// if nothing else is there.
struct Unfinished<'a>(&'a Path);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // A whole file has its final name by then, and there is nothing to remove.
        if std::fs::remove_file(self.0).is_ok()
            && let Some(directory) = self.0.parent()
        {
            let _ = std::fs::remove_dir(directory);
        }
    }
}

/// Fetches the rows of run `run` into `path`. Rows that are already there are not fetched again; a cut of the network
/// is survived.
pub(crate) async fn fetch_rows(
    connection: &mut Connection,
    run: u64,
    path: &Path,
) -> Result<(), Failure> {
    let part = path.with_extension("parquet.part");
    let here = |what: &str, error: std::io::Error| {
        let message = format!("cannot {what} {}: {error}", part.display());
        Failure::new(FailureKind::Unwritable, message)
            .with_help("free some space, or choose another place for results")
    };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(|error| here("make the directory of", error))?;
    }
    // After a cut the transfer goes on at the length of this file, and the bytes that arrived before are not sent again.
    // A file that another run left here is emptied.
    let mut file = File::create(&part).map_err(|error| here("create", error))?;
    let _unfinished = Unfinished(&part);
    let mut heard = Instant::now();
    loop {
        let offset = file.metadata().map_err(|error| here("read", error))?.len();
        let cut = match connection.rows(run, offset).await {
            Ok(mut stream) => loop {
                match stream.message().await {
                    Ok(Some(RowsPart { bytes, total_bytes })) if bytes.is_empty() => {
                        let has = file.metadata().map_err(|error| here("read", error))?.len();
                        // The final name appears only for a complete file. A program that looks into the directory
                        // during the transfer never sees half of a file.
                        if has == total_bytes {
                            return std::fs::rename(&part, path)
                                .map_err(|error| here("rename", error));
                        }
                        let message = format!(
                            "{}: only {has} of {total_bytes} bytes of its rows arrived",
                            connection.name
                        );
                        return Err(Failure::failed(message));
                    }
                    Ok(Some(RowsPart { bytes, .. })) => {
                        file.write_all(&bytes).map_err(|error| here("write", error))?;
                        heard = Instant::now();
                    }
                    Ok(None) => {
                        break Failure::failed("its rows ended early").with_key(NO_ANSWER);
                    }
                    Err(status) => break crate::protocol::failure_of(&connection.name, &status),
                }
            },
            Err(failure) => failure,
        };
        // The time since the last part counts, not the time since the start: a transfer of hours over
        // a slow link is healthy as long as parts arrive.
        if cut.key.as_deref() != Some(NO_ANSWER) || heard.elapsed() > GONE_AFTER {
            return Err(cut);
        }
        tokio::time::sleep(TRY_EVERY).await;
    }
}

/// Where the rows of each of `hosts` lie below the directory of a result: each at a place of its own.
pub(crate) fn places<'a>(hosts: impl Iterator<Item = &'a str>) -> Vec<String> {
    // The name of a host comes from the user and becomes a directory. Leading dots are
    // removed, so that `..` cannot lead out of the result.
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '-' };
    let mut taken = BTreeSet::new();
    let place = |host: &str| {
        let name: String = host.chars().map(plain).collect();
        let name = name.trim_matches(['.', '-']);
        let name = if name.is_empty() { "host" } else { name };
        // `user@host` and `user-host` are two hosts. Some file systems do not distinguish upper and lower case.
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let free = names.find(|name| taken.insert(name.to_ascii_lowercase()));
        format!("hosts/{}/requests.parquet", free.unwrap_or_default())
    };
    hosts.map(place).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use ssdyno_session::{RunSpec, Unattended, resolve};

    use super::*;
    use crate::server::{WorkerListener, serve_listener};
    use crate::ssh::RemoteStart;
    use crate::worker::{WorkerConsent, WorkerService};

    #[test]
    fn each_host_has_a_place_of_its_own() {
        let hosts =
            ["user@host", "user-host", "127.0.0.1:7801", "..", "主机", "User-Host", "user-host-2"];
        let expected = [
            "user-host",
            "user-host-2",
            "127.0.0.1-7801",
            "host",
            "host-2",
            "User-Host-3",
            "user-host-2-2",
        ];
        let expected = expected.map(|name| format!("hosts/{name}/requests.parquet"));
        assert_eq!(places(hosts.into_iter()), expected);
    }

    /// A transfer that fails or is interrupted leaves nothing that looks like a result.
    #[test]
    fn an_unfinished_transfer_leaves_no_file() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("hosts/a/requests.parquet");
        let part = path.with_extension("parquet.part");
        let listener = WorkerListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.address().to_string().parse().unwrap();
        let end = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&end);
        let worker = WorkerService::new(WorkerConsent::default(), "1");
        let serve = move || serve_listener(listener, &worker, move || ends.load(Ordering::Relaxed));
        let worker = std::thread::spawn(serve);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let remote = RemoteStart::default();
            let mut connection = Connection::open(&address, &remote, None, "1").await.unwrap();
            let failure = fetch_rows(&mut connection, 7, &path).await.unwrap_err();
            assert_eq!(failure.key.as_deref(), Some(crate::protocol::NO_RUN), "{failure}");
            assert!(!part.exists() && !base.path().join("hosts/a").exists());
            let mut fetch = Box::pin(fetch_rows(&mut connection, 7, &path));
            tokio::select! {
                biased;
                done = &mut fetch => panic!("its answer was there at once: {done:?}"),
                () = std::future::ready(()) => assert!(part.exists()),
            }
            drop(fetch);
            assert!(!part.exists());
        });
        end.store(true, Ordering::Relaxed);
        worker.join().unwrap().unwrap();
    }

    /// After a cut the controller asks again while the file of its first request is still written: both get the whole file.
    #[test]
    fn rows_can_be_asked_for_twice_at_once() {
        let base = tempfile::tempdir().unwrap();
        let kept = KeptRows::create(base.path(), 1).unwrap();
        let (target, requests) = (Some("null:".to_owned()), Some(50_000));
        let keep = ssdyno_figures::Keep::All;
        let spec = RunSpec { target, requests, keep, ..RunSpec::default() };
        let mut prepared = resolve(&spec, &mut Unattended).unwrap();
        prepared.keep_rows_in(kept.path());
        let recording = prepared.start().unwrap().result().unwrap().recording;
        let ask = || {
            let (send, mut receive) = mpsc::channel(1 << 10);
            kept.send(&recording, 0, &send, || ());
            drop(send);
            std::iter::from_fn(|| receive.blocking_recv())
                .map(|part| {
                    part.map(|part| part.bytes.len()).map_err(|status| status.message().to_owned())
                })
                .collect::<Result<Vec<usize>, String>>()
        };
        let (first, second) = std::thread::scope(|scope| {
            let first = scope.spawn(ask);
            (ask(), first.join().unwrap())
        });
        assert_eq!(first, second);
        assert!(first.unwrap().iter().sum::<usize>() > 50_000);
        assert!(!kept.is_busy());
    }
}
