//! Jobs that check what they wrote (`verify`), as something else carries out.

use std::path::Path;

use super::job::read;
use super::reader::Purpose;
use super::values::Size;
use crate::WorkloadError;

/// The writes and checks of a job with `verify`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FioVerify {
    /// The name in brackets.
    pub name: String,
    /// Files or devices that it names.
    pub files: Vec<String>,
    /// Bytes of a write.
    pub block_bytes: u32,
    /// Bytes from the start that are written, where it says so (`size`).
    pub range_bytes: Option<u64>,
    /// Requests outstanding (`iodepth`).
    pub depth: u32,
    /// Reads among the requests, in percent.
    pub read_percent: u8,
    /// Blocks to write, where it says so (`number_ios`).
    pub writes: Option<u64>,
    /// Writes between two flushes (`fsync`).
    pub flush_every: Option<u64>,
    /// Seed, where it sets one.
    pub seed: Option<u64>,
}

/// Reads the only job of the file at `path` as one that writes and checks.
///
/// # Errors
/// As for a load, and where there are several jobs, or one that cannot be checked so.
pub fn read_fio_verify(path: &Path) -> Result<FioVerify, WorkloadError> {
    let mut jobs = read(path, Purpose::Verify)?;
    let job = jobs.pop();
    // Two jobs that overlap would overwrite the stamps of each other. A check would then report
    // correct data of the other job as an error.
    let (Some(job), true) = (job, jobs.is_empty()) else {
        let at = crate::TraceLine { file: path.to_owned(), number: 0, text: String::new() };
        let help = "use one file for each job: a job cannot check data that another job overwrites";
        return Err(WorkloadError::of_trace("verify takes one job", help, at));
    };
    let refuse = |what: &str, help: &str| Err(WorkloadError::of_trace(what, help, job.line()));
    let load = &job.load;
    if load.mix[1] <= 0.0 || load.mix[2] > 0.0 {
        return refuse("the job has to write, and must not trim", "use rw=randwrite or rw=randrw");
    }
    let [read, write, _] = &load.sizes;
    let reads = load.mix[0] > 0.0;
    // Each block has its own stamp, so a read must cover exactly the blocks that a write stamped.
    // With several sizes, a block could contain parts of two writes.
    if write.min() != write.max()
        || (reads && (read.min(), read.max()) != (write.min(), write.max()))
    {
        return refuse("the job has blocks of several sizes", "give one size: bs=4k");
    }
    let Ok(block_bytes) = u32::try_from(write.min()) else {
        return refuse("the block is longer than a request can be", "make it shorter");
    };
    let range_bytes = match load.length {
        None => None,
        Some(Size::Bytes(bytes)) => Some(bytes),
        Some(Size::Percent(_)) => {
            return refuse("its size is a share of the target", "give it in bytes: size=1g");
        }
    };
    if load.start.is_some() || load.increment.is_some() || job.copies > 1 || job.file_count > 1 {
        return refuse(
            "verify writes one range from the start of one target",
            "leave out offset, offset_increment, numjobs and nrfiles",
        );
    }
    Ok(FioVerify {
        name: job.name.clone(),
        files: job.files.clone(),
        block_bytes,
        range_bytes,
        depth: load.depth,
        // A share of 99.6 % would be rounded to 100 % and write nothing, so there would be no stamp
        // to check. The whole number therefore stays below 100.
        read_percent: load.mix[0].round().clamp(0.0, 99.0) as u8,
        writes: load.requests,
        flush_every: load.shape.flush_every,
        seed: job.seed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verify(text: &str) -> Result<FioVerify, WorkloadError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read_fio_verify(file.path())
    }

    #[test]
    fn a_job_says_what_to_write_and_check() {
        let text = "[a]\nfilename=/dev/x\nrw=randrw\nrwmixread=20\nbs=8k\nsize=1m\nioengine=libaio\n\
                    iodepth=16\nverify=crc32c\nverify_fatal=1\ndo_verify=1\nfsync=32\nrandseed=7\n";
        let found = verify(text).unwrap();
        let expected = FioVerify {
            name: "a".to_owned(),
            files: vec!["/dev/x".to_owned()],
            block_bytes: 8192,
            range_bytes: Some(1 << 20),
            depth: 16,
            read_percent: 20,
            writes: None,
            flush_every: Some(32),
            seed: Some(7),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn what_cannot_be_checked_so_is_refused() {
        for (text, words) in [
            ("[a]\nrw=read\nverify=md5\n", "has to write"),
            ("[a]\nrw=write\nbsrange=4k-8k\nverify=md5\n", "several sizes"),
            ("[global]\nrw=write\nverify=md5\n[a]\n[b]\n", "one job"),
            ("[a]\nrw=write\nverify=md5\nnumjobs=2\n", "one range"),
            ("[a]\nrw=write\nsize=50%\nverify=md5\n", "share"),
            ("[a]\nrw=write\nverify=md5\nverify_pattern=0xff\n", "verify_pattern"),
            ("[a]\nrw=write\nverify=md5\nverify_only=1\n", "verify_only"),
            ("[a]\nrw=write\nverify=md5\ndo_verify=0\n", "do_verify"),
            ("[a]\nrw=write\n", "no verify"),
        ] {
            let error = verify(text).unwrap_err();
            assert!(error.to_string().contains(words), "{text}: {error}");
            assert!(error.help.is_some());
        }
    }
}
