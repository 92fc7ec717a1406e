//! Nothing: every request completes at once. What is measured with it is the tool itself.

use std::io;
use std::time::Duration;

use ssdyno_block::Request;

use super::{Engine, Outcome};

/// Completes what it is given.
#[derive(Debug, Default)]
pub(crate) struct Null {
    done: Vec<(u32, Outcome)>,
}

impl Engine for Null {
    #[inline]
    fn push(&mut self, slot: u32, request: &Request) {
        self.done.push((slot, request.length_bytes as Outcome));
    }

    #[inline]
    fn turn(&mut self, _want: u32, _wait: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn ready(&mut self) -> io::Result<bool> {
        Ok(!self.done.is_empty())
    }

    #[inline]
    fn reap(&mut self, mut each: impl FnMut(u32, Outcome)) {
        for (slot, outcome) in self.done.drain(..) {
            each(slot, outcome);
        }
    }

    fn system_calls(&self) -> u64 {
        0
    }
}
