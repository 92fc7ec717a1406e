//! The parts of a result as lines of text and as rows of tables, which the terminal and the page share.

pub(crate) mod energy;
pub(crate) mod faults;
pub(crate) mod host;
pub(crate) mod hosts;
pub(crate) mod jobs;
pub(crate) mod latency;
pub(crate) mod machine;
pub(crate) mod parts;
pub(crate) mod victims;
