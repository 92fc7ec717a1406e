//! Taking the measurements of earlier sessions over.

use crate::measure::{Measurement, Measurements, ProfileOp};

use super::Adaptive;

impl Adaptive {
    /// Goes on after `sessions`. Their slices are in the model; what they showed about bursts is gone through again.
    /// Breakpoints need fresh slices to be kept, and get them.
    pub(super) fn take_over(&mut self, sessions: &[&[Measurement]]) {
        let mut so_far = Measurements::default();
        for session in sessions {
            // Each session began with this search for the end of a burst. The same call keeps
            // the search in step with what that session asked for.
            self.filling.look_again();
            for one in *session {
                let cell = (one.test, one.size_bytes);
                let looked = self.filling.take_over(one, &so_far);
                so_far.add(*one);
                self.total += 1;
                *self.asked.entry(cell).or_default() += 1;
                // The session fixed the length of a cell after its first slice, whose length
                // was a guess. The same rule decides here, so that the same slices count.
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
