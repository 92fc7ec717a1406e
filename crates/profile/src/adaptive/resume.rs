//! Taking the measurements of earlier sessions over.

use crate::measure::{Measurement, Measurements, ProfileOp};

use super::Adaptive;

impl Adaptive {
    /// Goes on after `sessions`. Their slices are in the model; what they showed about bursts is gone through again.
    /// Breakpoints need fresh slices to be kept, and get them.
    pub(super) fn take_over(&mut self, sessions: &[&[Measurement]]) {
        let mut so_far = Measurements::default();
        for session in sessions {
            // As the session itself began.
            self.filling.look_again();
            for one in *session {
                let cell = (one.test, one.size_bytes);
                let looked = self.filling.take_over(one, &so_far);
                so_far.add(*one);
                self.total += 1;
                *self.asked.entry(cell).or_default() += 1;
                // As after the slice itself: its length was a guess, and it may be too short to count.
                if one.test.op() == ProfileOp::Read {
                    let planned = self.slice(cell, Some(one.access_time_ns())).requests;
                    self.requests.entry(cell).or_insert(planned);
                }
                if !looked && self.is_used(one) {
                    *self.held.entry(cell).or_default() += 1;
                }
            }
        }
        self.filling.look_again();
    }
}
