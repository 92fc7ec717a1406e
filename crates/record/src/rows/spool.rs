//! Rows on their way to a file, so that they need little memory and outlive a program that is killed.
//!
//! A job fills a chunk, hands it to the single writer thread, and continues in an empty chunk: there is no other lock,
//! and memory is only needed when the disk lags behind. Chunks have a limit. A disk that is slower than the load for so
//! long that they are all full never stops the load, which would be measured with it: rows are left out then, and
//! counted.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use cpu_time::ThreadTime;

use super::file::{self, Chunk, Head, Segment};
use crate::memory;

/// Name of the file with rows in the directory of a run.
pub(crate) const ROWS_FILE: &str = "requests.rows";

/// Keeps room on the disk for the figures while rows may fill it.
pub(crate) const ROOM_FILE: &str = "requests.room";
const ROOM_BYTES: usize = 1 << 20;
const ROOM_LEAST: usize = 1 << 15;

/// Words of a chunk: 1 MiB. Smaller ones cost more calls for the same rows, larger ones do not stay in a cache
/// from the job to the writer.
pub(crate) const CHUNK_WORDS: usize = 1 << 16;

/// Chunks that each job has ready from the start.
const CHUNKS_READY: usize = 3;

/// Most memory for chunks, and its share of what is available.
const MEMORY_MOST: u64 = 1 << 30;
const MEMORY_SHARE: u64 = 4;

/// The state that the writer and the jobs share, and later the readers.
#[derive(Debug)]
pub(crate) struct Shared {
    path: PathBuf,
    /// Locked while the run goes on.
    file: Mutex<File>,
    empty: Mutex<Vec<Vec<u128>>>,
    /// Chunks that there are, and may be.
    made: AtomicUsize,
    most: usize,
    /// Rows that no chunk was left for.
    left_out: AtomicU64,
    /// CPU time of the writer.
    writer_ns: AtomicU64,
    index: Mutex<Index>,
}

/// The contents of the file.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// By job.
    segments: Vec<Vec<Segment>>,
    /// Why nothing more was written, and rows that were not.
    error: Option<io::Error>,
    unwritten: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(path: PathBuf, file: File, most: usize) -> Shared {
        Shared {
            path,
            file: Mutex::new(file),
            empty: Mutex::new(Vec::with_capacity(most)),
            made: AtomicUsize::new(0),
            most,
            left_out: AtomicU64::new(0),
            writer_ns: AtomicU64::new(0),
            index: Mutex::default(),
        }
    }

    /// Where rows of `job` lie.
    pub(crate) fn segments(&self, job: u32) -> Vec<Segment> {
        locked(&self.index).segments.get(job as usize).cloned().unwrap_or_default()
    }

    /// Rows of `job` in the file.
    pub(crate) fn rows(&self, job: u32) -> usize {
        let index = locked(&self.index);
        index.segments.get(job as usize).into_iter().flatten().map(|segment| segment.rows).sum()
    }

    /// Rows that are not in the file: the disk was too slow for them, or took no more.
    pub(crate) fn lost(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed) + locked(&self.index).unwritten
    }

    /// Why the disk took no more rows.
    pub(crate) fn error(&self) -> Option<String> {
        locked(&self.index).error.as_ref().map(io::Error::to_string)
    }

    pub(crate) fn read(&self, at: u64, words: &mut [u128]) -> io::Result<()> {
        file::read_words(&mut locked(&self.file), at, words)
    }

    pub(crate) fn add(&self, job: u32, segment: Segment) {
        let mut index = locked(&self.index);
        let jobs = index.segments.len().max(job as usize + 1);
        index.segments.resize_with(jobs, Vec::new);
        index.segments[job as usize].push(segment);
    }

    /// An empty chunk; `None` where all are full.
    fn take(&self) -> Option<Vec<u128>> {
        let empty = locked(&self.empty).pop();
        empty.or_else(|| self.make())
    }

    /// One more chunk, if there may be more and there is memory for it.
    fn make(&self) -> Option<Vec<u128>> {
        // The number is looked at first: it costs a load, while the system must be asked for the
        // memory that is left.
        if self.made.load(Ordering::Relaxed) >= self.most || memory::is_scarce(1) {
            return None;
        }
        self.make_ready(CHUNK_WORDS)
    }

    /// One more chunk of this number of words, if more chunks are allowed and the system gives memory for it: the free
    /// memory was checked.
    fn make_ready(&self, words: usize) -> Option<Vec<u128>> {
        // Several jobs may be here at once. Each adds before it looks, so the limit holds
        // without a lock; one that was too late takes its part back.
        if self.made.fetch_add(1, Ordering::Relaxed) >= self.most {
            self.made.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let mut chunk = Vec::new();
        if !memory::reserve(&mut chunk, words) {
            // A chunk that was refused does not count: there may be memory for it later.
            self.made.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(chunk)
    }

    /// Removes the file: its rows are elsewhere now.
    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// The messages to the writer.
#[derive(Debug)]
enum Message {
    Chunk(Chunk),
    End,
}

/// The way of the rows of one job to the writer.
#[derive(Debug)]
pub(crate) struct Line {
    shared: Arc<Shared>,
    /// `None` for a reader.
    sender: Option<SyncSender<Message>>,
}

impl Line {
    pub(crate) fn to_read(shared: Arc<Shared>) -> Line {
        Line { shared, sender: None }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The first chunk of a job.
    pub(crate) fn first(&self) -> Vec<u128> {
        // A job cannot record without its first chunk. If there is no memory for it, the usual
        // allocation ends the program.
        self.shared.take().unwrap_or_else(|| Vec::with_capacity(CHUNK_WORDS))
    }

    /// Hands over `chunk` and gives an empty one in its place; `chunk` itself if there is none; its rows are dropped,
    /// or kept with `keep`.
    pub(crate) fn exchange(&self, mut chunk: Chunk, keep: bool) -> (Vec<u128>, bool) {
        let next = self.shared.take();
        let (Some(next), Some(sender)) = (next, &self.sender) else {
            if !keep {
                self.shared.left_out.fetch_add(chunk.rows as u64, Ordering::Relaxed);
                chunk.words.clear();
            }
            return (chunk.words, false);
        };
        // The channel has room for a message about each chunk that may exist, so it is never
        // full. `try_send` makes sure that a job never waits here.
        if let Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) =
            sender.try_send(Message::Chunk(chunk))
            && let Message::Chunk(chunk) = message
        {
            self.shared.left_out.fetch_add(chunk.rows as u64, Ordering::Relaxed);
        }
        (next, true)
    }

    /// Hands over the last chunk of a job.
    pub(crate) fn end(&self, chunk: Chunk) {
        let rows = chunk.rows as u64;
        if self.sender.as_ref().is_none_or(|to| to.send(Message::Chunk(chunk)).is_err()) {
            self.shared.left_out.fetch_add(rows, Ordering::Relaxed);
        }
    }
}

/// The file that rows of a run go to, and the thread that writes it.
#[derive(Debug)]
pub struct Spool {
    shared: Arc<Shared>,
    sender: SyncSender<Message>,
    writer: Option<JoinHandle<()>>,
    room: PathBuf,
}

impl Spool {
    /// Begins the file `requests.rows` in `directory`, for the rows of this number of jobs.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(directory: &Path, head: &Head, jobs: u32) -> io::Result<Spool> {
        let path = directory.join(ROWS_FILE);
        let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
        // The lock shows `recover` that the run is still active. Some file systems of networks have
        // no locks, and the run works without.
        let _ = file.try_lock();
        let room = directory.join(ROOM_FILE);
        let begun = keep_room(&room).and_then(|()| file::write_head(&mut file, head));
        let at = begun.inspect_err(|_| {
            // The first error says why the run cannot begin. The rest of the files is removed; an
            // error of that would hide the first error.
            let _ = fs::remove_file(&room).and(fs::remove_file(&path));
        })?;
        let of_writer = file.try_clone()?;
        let ready = CHUNKS_READY * jobs as usize;
        let available = memory::available_bytes().unwrap_or(MEMORY_MOST) / MEMORY_SHARE;
        let most = (available.min(MEMORY_MOST) / (CHUNK_WORDS as u64 * 16)) as usize;
        let most = most.max(ready);
        let shared = Arc::new(Shared::new(path, file, most));
        for _ in 0..ready {
            let Some(mut chunk) = shared.make_ready(CHUNK_WORDS) else { break };
            // The system gives a page only when it is first written, which costs most. These
            // writes happen before the run, so the run does not pay for them.
            chunk.resize(CHUNK_WORDS, 0);
            chunk.clear();
            locked(&shared.empty).push(chunk);
        }
        // A job may begin with a chunk of its own that does not count among the others. The
        // channel has room for it and for the end.
        let (sender, receiver) = sync_channel(most + jobs as usize + 1);
        let to = Arc::clone(&shared);
        let named = std::thread::Builder::new().name("rows".to_owned());
        let writer = named.spawn(move || write(&to, &receiver, of_writer, at))?;
        Ok(Spool { shared, sender, writer: Some(writer), room })
    }

    pub(crate) fn line(&self) -> Line {
        Line { shared: Arc::clone(&self.shared), sender: Some(self.sender.clone()) }
    }

    /// Waits until all that was handed over is written. Every job has ended by now, or what it records is
    /// not its own any more.
    pub fn close(&mut self) {
        if let Some(writer) = self.writer.take()
            && self.sender.send(Message::End).is_ok()
        {
            // A job that panicked has written its full chunks.
            let _ = writer.join();
        }
        // Figures may be written now.
        let _ = fs::remove_file(&self.room);
    }

    /// CPU time in ns that it took to write a row to the file, on average so far; 0 without any.
    pub fn writer_ns_by_row(&self) -> f64 {
        let rows: usize =
            locked(&self.shared.index).segments.iter().flatten().map(|segment| segment.rows).sum();
        self.shared.writer_ns.load(Ordering::Relaxed) as f64 / rows.max(1) as f64
    }

    /// Rows of job number `job` in the file by now.
    pub fn rows_of(&self, job: u32) -> usize {
        self.shared.rows(job)
    }
}

impl Drop for Spool {
    /// After a run that never began nothing is left.
    fn drop(&mut self) {
        self.close();
        let is_empty = locked(&self.shared.index).segments.is_empty();
        if is_empty {
            // Nobody misses it.
            let _ = self.shared.remove();
        }
    }
}

/// Takes room on the disk, as much as there is of what figures may need.
fn keep_room(path: &Path) -> io::Result<()> {
    let mut bytes = ROOM_BYTES;
    loop {
        let written = File::create(path).and_then(|mut file| {
            // Many file systems take no room for a length alone, and some take it only when data
            // goes to the disk. So the zeros are written and waited for.
            file.write_all(&vec![0; bytes])?;
            file.sync_data()
        });
        match written {
            Err(_) if bytes > ROOM_LEAST => bytes /= 2,
            other => return other,
        }
    }
}

/// Writes what it gets until the end.
fn write(shared: &Shared, receiver: &Receiver<Message>, mut file: File, mut at: u64) {
    let began = ThreadTime::now();
    while let Ok(Message::Chunk(mut chunk)) = receiver.recv() {
        let failed = locked(&shared.index).error.is_some();
        let appended = if failed { None } else { Some(file::append(&mut file, at, &chunk)) };
        match appended {
            Some(Ok(segment)) => {
                at = segment.at + 16 * segment.words as u64;
                shared.add(chunk.job, segment);
            }
            Some(Err(error)) => {
                // A part of the chunk may be in the file, and it is cut off. If that fails,
                // too, its length and checksum say that it does not count.
                let _ = file.set_len(at);
                let mut index = locked(&shared.index);
                index.error = Some(error);
                index.unwritten += chunk.rows as u64;
            }
            None => locked(&shared.index).unwritten += chunk.rows as u64,
        }
        // The memory goes back even if the disk takes no more. The load must not stop for that:
        // it goes on, and its rows are counted as lost.
        chunk.words.clear();
        locked(&shared.empty).push(chunk.words);
        shared.writer_ns.store(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom};

    use proptest::prelude::*;

    use super::*;
    use crate::recover;
    use crate::rows::tests::any_row;
    use crate::rows::{Row, RowNames, Rows, Strip};

    fn spooled(spool: &Spool, job: u32) -> Strip {
        let mut strip = Strip::of_job(job);
        strip.go_to(spool.line());
        strip
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Rows of every kind, of several jobs, handed over at any moment, come back in order: while the
        /// program goes on, and after it was killed.
        #[test]
        fn rows_come_back_from_the_file(
            made in prop::collection::vec((any_row(), 0u32..3, any::<bool>()), 0..300),
            repeated in prop_oneof![4 => 1usize..3, 1 => 100usize..300],
        ) {
            let directory = tempfile::tempdir().unwrap();
            let names = RowNames { jobs: vec!["a".to_owned()], ..RowNames::default() };
            let head = Head { names, ..Head::default() };
            let mut spool = Spool::create(directory.path(), &head, 3).unwrap();
            let mut strips: Vec<Strip> = (0..3).map(|job| spooled(&spool, job)).collect();
            let mut in_memory = Rows::default();
            let ends = |row: &Row| row.issue_ns.checked_add(row.latency_ns).is_some();
            for (row, job, hand_over) in made.iter().filter(|(row, ..)| ends(row)) {
                for _ in 0..repeated {
                    strips[*job as usize].push(row);
                    in_memory.strip(*job).push(row);
                }
                if *hand_over {
                    strips[*job as usize].hand_over();
                }
            }
            strips.iter_mut().for_each(Strip::end);
            spool.close();
            prop_assert_eq!(spool.shared.lost(), 0);
            let want = in_memory.to_vec().unwrap();
            let rows = Rows::merge(strips.into_iter().map(Rows::of).collect());
            prop_assert_eq!(rows.len(), want.len());
            prop_assert_eq!(&rows.to_vec().unwrap(), &want);
            // The lock of a process that was killed goes with it.
            drop(rows);
            drop(spool);
            match recover(directory.path()) {
                Ok((result, recording)) => {
                    prop_assert!(result.partial);
                    prop_assert_eq!(recording.rows().unwrap().to_vec().unwrap(), want);
                }
                Err(error) => prop_assert!(want.is_empty(), "{error}"),
            }
        }
    }

    /// Nothing takes the full chunks: when no chunk is left, rows are dropped and counted, and nothing waits.
    #[test]
    fn a_disk_that_is_too_slow_never_stops_the_load() {
        let file = tempfile::tempfile().unwrap();
        let shared = Arc::new(Shared::new(PathBuf::new(), file, 2));
        let (sender, receiver) = sync_channel(8);
        let mut strip = Strip::of_job(0);
        strip.go_to(Line { shared: Arc::clone(&shared), sender: Some(sender) });
        let row = Row::punctual(&ssdyno_block::Request::flush(), 1, 1, ssdyno_block::Status::Ok);
        // A chunk takes no row behind its last two words.
        let each = CHUNK_WORDS - 2;
        (0..5 * each).for_each(|_| strip.push(&row));
        // One chunk is handed over, three are left out, and one is in hand.
        assert_eq!(shared.lost(), 3 * each as u64);
        assert_eq!(receiver.try_iter().count(), 1);
        // What is in hand stays there.
        let before = shared.lost();
        strip.hand_over();
        assert_eq!(shared.lost(), before);
    }

    #[test]
    fn a_chunk_that_memory_was_refused_for_may_be_made_later() {
        let shared = Shared::new(PathBuf::new(), tempfile::tempfile().unwrap(), 1);
        assert!(shared.make_ready(usize::MAX / 32).is_none());
        assert!(shared.make_ready(CHUNK_WORDS).is_some());
        assert!(shared.make_ready(CHUNK_WORDS).is_none(), "one is the limit");
    }

    /// The number of the job is in no checksum. Tables by job are as long as the largest number, so one of a damaged
    /// head must not be believed.
    #[test]
    fn a_chunk_of_a_job_that_cannot_be_is_damaged() {
        let row = Row::punctual(&ssdyno_block::Request::flush(), 1, 1, ssdyno_block::Status::Ok);
        for (job, kept) in [(file::JOBS_MOST - 1, 2), (file::JOBS_MOST, 1), (u32::MAX, 1)] {
            let directory = tempfile::tempdir().unwrap();
            let mut spool = Spool::create(directory.path(), &Head::default(), 1).unwrap();
            let mut strip = spooled(&spool, 0);
            strip.push(&row);
            strip.end();
            spool.close();
            let path = directory.path().join(ROWS_FILE);
            let mut file = File::options().read(true).write(true).open(&path).unwrap();
            // The same once more, as of that job: its number is the bytes 8 to 11 of the chunk.
            let (_, at) = file::read_head(&mut file).unwrap().unwrap();
            let mut again = fs::read(&path).unwrap().split_off(at as usize);
            again[8..12].copy_from_slice(&job.to_le_bytes());
            file.seek(SeekFrom::End(0)).and_then(|_| file.write_all(&again)).unwrap();
            // The strip holds the file, too, and its lock.
            drop((strip, spool, file));
            let (result, _) = recover(directory.path()).unwrap();
            assert_eq!(result.requests, kept, "{job}");
        }
    }

    #[test]
    fn a_run_without_rows_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        drop(Spool::create(directory.path(), &Head::default(), 1).unwrap());
        assert_eq!(directory.path().read_dir().unwrap().count(), 0);
        let none = recover(directory.path()).unwrap_err();
        assert!(none.to_string().contains("requests.rows"), "{none}");
        fs::write(directory.path().join(ROWS_FILE), b"PAR1").unwrap();
        assert!(
            recover(directory.path()).unwrap_err().to_string().contains("not a file with rows")
        );
    }
}
