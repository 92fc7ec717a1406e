//! Nothing: every request completes at once. It measures the tool itself.

use std::io;
use std::time::Duration;

use ssdyno_block::Request;

use super::{Engine, Outcome};
use crate::faults::Faults;

/// Completes what it is given.
#[derive(Debug, Default)]
pub(crate) struct Null {
    done: Vec<(u32, Outcome)>,
}

impl Null {
    /// How many can be reaped.
    #[inline]
    pub(crate) fn reapable(&self) -> u64 {
        self.done.len() as u64
    }
}

impl Engine for Null {
    const HANDS_OVER: bool = false;

    #[inline]
    fn push(&mut self, slot: u32, request: &Request) {
        self.done.push((slot, Faults::wanted(request)));
    }

    #[inline]
    fn turn(&mut self, _want: u32, _wait: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn ready(&mut self, want: u32) -> io::Result<bool> {
        Ok(self.done.len() >= want as usize)
    }

    #[inline]
    fn reap(&mut self, mut each: impl FnMut(u32, Outcome)) {
        for (slot, outcome) in self.done.drain(..) {
            each(slot, outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_ends_as_it_should() {
        let mut null = Null::default();
        let (trim, flush) = (Request::trim(0, 4096), Request::flush());
        for request in [Request::read(0, 4096), Request::write(512, 512), trim, flush] {
            null.push(3, &request);
            let mut seen = 0;
            null.reap(|slot, outcome| {
                assert!(slot == 3 && Faults::is_ok(&request, outcome), "{request:?}: {outcome}");
                seen += 1;
            });
            assert_eq!(seen, 1);
        }
    }
}
