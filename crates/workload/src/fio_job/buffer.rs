//! The data of a job's writes (fio documentation, "Buffers and memory").

use ssdyno_block::units::{Bytes, Percent};

use super::reader::{Answer, Reader};
use super::values::{self, Size};
use crate::WriteData;

impl Reader<'_> {
    /// fio fills its buffers once and scrambles some bytes of each block before it is written, or refills
    /// them; with data of a given kind it always refills, unless it is told not to. Here data is fresh
    /// unless neither is wanted.
    pub(super) fn buffer(&mut self) -> Answer<WriteData> {
        let share = values::whole_in(..=100);
        let expected = "a percentage from 0 to 100";
        let compress = self.value(&["buffer_compress_percentage"], expected, &share)?;
        let dedupe = self.value(&["dedupe_percentage"], expected, &share)?;
        let dedupe = dedupe.unwrap_or(0) as f64;
        if let Some(mode) = self.text("dedupe_mode")
            && mode != "repeat"
            && dedupe > 0.0
        {
            let what = format!("dedupe_mode={mode} is not supported");
            return self.wrong(what, "leave it out: a write repeats the last fresh one (repeat)");
        }
        let chunk =
            self.value(&["buffer_compress_chunk"], "a size such as 512 or 4k", values::size)?;
        let chunk = match chunk {
            None => WriteData::default().compress_chunk,
            Some(Size::Bytes(bytes)) => Bytes(bytes),
            Some(_) => return self.wrong("`buffer_compress_chunk` is not a size", "use 512 or 4k"),
        };
        // A share of compression or duplicates wins over `zero_buffers`, as in fio. Zeroes alone
        // would compress to nothing and make the given share meaningless.
        let of_a_kind = compress.is_some_and(|share| share > 0) || dedupe > 0.0;
        let zeroes = (self.switch("zero_buffers")? || self.zero_pattern()?) && !of_a_kind;
        let asked = self.find(&["refill_buffers"]).is_some();
        let refill = self.switch("refill_buffers")?;
        // fio scrambles by default, which makes no two blocks equal. The default here is therefore
        // fresh data: a device with deduplication would otherwise store one block.
        let scramble =
            self.find(&["scramble_buffers"]).is_none() || self.switch("scramble_buffers")?;
        Ok(WriteData {
            refill: if of_a_kind { refill || !asked } else { refill || scramble },
            compress: if zeroes { Percent(100.0) } else { Percent(compress.unwrap_or(0) as f64) },
            compress_chunk: chunk,
            dedupe: Percent(dedupe),
        })
    }

    /// Whether the job writes a pattern, which can only be zeroes.
    fn zero_pattern(&mut self) -> Answer<bool> {
        let Some(pattern) = self.text("buffer_pattern") else {
            return Ok(false);
        };
        let digits = pattern.strip_prefix("0x").unwrap_or(&pattern);
        if !digits.is_empty() && digits.bytes().all(|digit| digit == b'0') {
            return Ok(true);
        }
        let what = "every write would carry the same bytes (buffer_pattern)";
        let help = "leave it out for fresh data; for compressible data use zero_buffers, \
                    buffer_compress_percentage=50 or dedupe_percentage=30";
        self.wrong(what, help)
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_fio_jobs;
    use super::*;
    use crate::WorkloadError;

    fn read(text: &str) -> Result<WriteData, WorkloadError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("[a]\nrw=write\n{text}\n")).unwrap();
        read_fio_jobs(file.path()).map(|jobs| jobs[0].buffer)
    }

    /// fio 3.33, HOWTO and `init.c`.
    #[test]
    fn buffers_are_filled_as_fio_fills_them() {
        let of = |text: &str| {
            let WriteData { refill, compress, compress_chunk, dedupe } = read(text).unwrap();
            (refill, compress.0, compress_chunk.0, dedupe.0)
        };
        // Scrambled or refilled, no block is like another.
        for fresh in
            ["", "refill_buffers", "refill_buffers=1\nscramble_buffers=0", "scramble_buffers=1"]
        {
            assert_eq!(of(fresh), (true, 0.0, 512, 0.0), "{fresh}");
        }
        assert_eq!(of("scramble_buffers=0"), (false, 0.0, 512, 0.0));
        assert_eq!(of("buffer_compress_percentage=50"), (true, 50.0, 512, 0.0));
        let chunk = "buffer_compress_percentage=70\nbuffer_compress_chunk=4k\nscramble_buffers=0";
        assert_eq!(of(chunk), (true, 70.0, 4096, 0.0));
        assert_eq!(of("buffer_compress_percentage=50\nbuffer_compress_chunk=0").2, 0);
        assert_eq!(of("dedupe_percentage=30\nscramble_buffers=0"), (true, 0.0, 512, 30.0));
        let same = "dedupe_percentage=30\nbuffer_compress_percentage=20\nrefill_buffers=0";
        assert_eq!(of(same), (false, 20.0, 512, 30.0));
        assert_eq!(of("zero_buffers").1, 100.0);
        assert_eq!(of("zero_buffers\nbuffer_compress_percentage=40").1, 40.0);
    }

    #[test]
    fn what_is_no_share_or_not_offered_is_refused_with_its_line() {
        for (text, told) in [
            ("dedupe_percentage=101", "dedupe_percentage"),
            ("buffer_compress_percentage=half", "buffer_compress_percentage"),
            ("buffer_compress_chunk=10%", "buffer_compress_chunk"),
            ("dedupe_percentage=5\ndedupe_mode=working_set", "working_set"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.to_string().contains(told), "{error}");
            assert!(error.at.is_some_and(|at| at.number >= 3), "{text}");
        }
        assert!(read("dedupe_mode=working_set").is_ok(), "without duplicates it has no meaning");
    }
}
