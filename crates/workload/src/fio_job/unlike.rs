//! Options with some values that match the behaviour here, and other values that would change the load.

use super::load::Load;
use super::reader::{Answer, Reader};
use super::values;

impl Reader<'_> {
    /// Refuses the values that are not supported.
    pub(super) fn check_unlike(&mut self, load: &Load) -> Answer<()> {
        self.check_errors(load)?;
        self.check_submission()?;
        self.check_completions(load)
    }

    /// A request that fails is counted, and the job goes on.
    fn check_errors(&mut self, load: &Load) -> Answer<()> {
        let Some(entry) = self.find(&["continue_on_error"]) else { return Ok(()) };
        // `continue_on_error=read` is fully honoured if the job only reads. With writes in the mix,
        // a write error would end the job in fio but not here.
        let only = |direction: usize| load.used().all(|used| used == direction);
        let goes_on = match entry.value.as_deref().unwrap_or("1") {
            "1" | "all" | "io" => true,
            "read" => only(0),
            "write" => only(1),
            _ => false,
        };
        if goes_on {
            return Ok(());
        }
        let what = "fio would end the job at a failed request; here the request is counted as failed, and the job continues";
        self.wrong(
            what,
            "set continue_on_error=all: `errors` in the result counts the failed requests",
        )
    }

    /// The thread that makes the requests submits them.
    fn check_submission(&mut self) -> Answer<()> {
        let Some(entry) = self.find(&["io_submit_mode"]) else { return Ok(()) };
        match entry.value.as_deref() {
            Some("inline") => Ok(()),
            Some("offload") => {
                let what =
                    "in fio, other threads submit the requests, one at a time (io_submit_mode)";
                let help = "leave it out: latencies of a job with a rate count from the intended start of a request";
                self.wrong(what, help)
            }
            _ => self.wrong("`io_submit_mode` is unknown", "use inline"),
        }
    }

    /// All completions that are there are taken at a time.
    fn check_completions(&mut self, load: &Load) -> Answer<()> {
        // A limit on completions per call makes fio return to submission earlier. Here each call
        // reaps all of them, so a smaller limit would have another timing.
        let most =
            self.value(&["iodepth_batch_complete_max"], "a number of requests", values::whole)?;
        if most.is_none_or(|most| most >= u64::from(load.depth)) {
            return Ok(());
        }
        let what = "fewer completions at a time than can be ready: here each call takes all that are ready";
        self.wrong(what, "give the iodepth, or leave it out")
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_fio_jobs;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            format!("[a]\nrw=randread\ndirect=1\nioengine=libaio\n{text}\n"),
        )
        .unwrap();
        match read_fio_jobs(file.path()) {
            Ok(jobs) => Ok(jobs[0].notes.clone()),
            Err(error) => {
                assert!(error.at.as_ref().is_some_and(|at| at.number >= 5), "{error}");
                Err(error.to_string())
            }
        }
    }

    /// fio 3.33, HOWTO: what these options change is honoured or refused, and never "without effect".
    #[test]
    fn what_would_change_the_load_is_refused() {
        for taken in [
            "continue_on_error=all",
            "continue_on_error=io",
            "continue_on_error=1",
            "continue_on_error=read",
            "io_submit_mode=inline",
            "iodepth=8\niodepth_batch_complete_max=8",
            "iodepth=8\niodepth_batch_complete_min=4\niodepth_batch_complete_max=16",
            "buffer_pattern=0",
            "buffer_pattern=0x0000",
        ] {
            assert_eq!(read(taken), Ok(Vec::new()), "{taken}");
        }
        for refused in [
            "continue_on_error=none",
            "continue_on_error=0",
            "continue_on_error=verify",
            "continue_on_error=write",
            "io_submit_mode=offload",
            "io_submit_mode=both",
            "iodepth=8\niodepth_batch_complete_max=7",
            "iodepth=8\niodepth_batch_complete_max=many",
            "buffer_pattern=0xdeadbeef",
            "buffer_pattern=\"abc\"",
            "buffer_pattern='file'",
        ] {
            assert!(read(refused).is_err(), "{refused}");
        }
    }
}
