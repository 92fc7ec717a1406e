//! The value of `--sweep`.

use std::str::FromStr;

use ssdyno_sweep::Axis;

/// The swept key, with the options given for it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Swept {
    pub(crate) typed: String,
    pub(crate) axis: Axis,
}

impl FromStr for Swept {
    type Err = String;

    fn from_str(typed: &str) -> Result<Swept, String> {
        Axis::swept(typed).map(|axis| Swept { typed: typed.to_owned(), axis })
    }
}
