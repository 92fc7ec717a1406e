//! What to re-run.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// Names a paper, or a part of it: `S3`, `S3/table5`, `S3/table5/nand1/latency_ms`, `S3/figure3`,
/// `S3/claims`. A part selects everything below it; case does not matter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selector {
    text: String,
    parts: Vec<String>,
}

impl FromStr for Selector {
    type Err = Infallible;
    fn from_str(text: &str) -> Result<Selector, Infallible> {
        let parts = text.trim().split('/').filter(|part| !part.is_empty());
        let parts = parts.map(str::to_ascii_lowercase).collect();
        Ok(Selector { text: text.to_owned(), parts })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Selector {
    /// True if the selector names the paper `id` or a part of it.
    pub(crate) fn is_about(&self, id: &str) -> bool {
        self.parts.first().is_some_and(|part| part.eq_ignore_ascii_case(id))
    }

    /// True if the selector names `id` or something above it.
    pub fn selects(&self, id: &str) -> bool {
        let mut parts = id.split('/');
        // Whole parts are compared and not prefixes of the text: `S3/table` must not select
        // `S3/table5`.
        self.parts.iter().all(|own| parts.next().is_some_and(|part| part.eq_ignore_ascii_case(own)))
    }

    /// True if the selector names `id`, something above it or something below it.
    pub(crate) fn reaches(&self, id: &str) -> bool {
        self.parts.iter().zip(id.split('/')).all(|(own, part)| part.eq_ignore_ascii_case(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_selects_everything_below_it() {
        let selects = |text: &str, id| text.parse::<Selector>().unwrap().selects(id);
        assert!(selects("S3", "S3/table5/nand1/iops"));
        assert!(selects("s3/Table5/", "S3/table5/nand1/iops"));
        assert!(selects("S3/table5/nand1/iops", "S3/table5/nand1/iops"));
        assert!(!selects("S3/table5/nand1/iops", "S3/table5/nand1"));
        assert!(!selects("S3/table", "S3/table5/nand1/iops"));
        assert!(!selects("S4", "S3/table5/nand1/iops"));
        let reaches = |text: &str, id| text.parse::<Selector>().unwrap().reaches(id);
        assert!(reaches("S3", "S3/table5") && reaches("S3/table5/nand1/iops", "S3/table5"));
        assert!(!reaches("S3/claims/x", "S3/table5"));
    }
}
