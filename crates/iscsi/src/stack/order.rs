//! When a task may begin (SAM-5, 8.9): simple tasks in any order, ordered ones after all that came before
//! them and before all that come after.

use super::backend::Backend;
use super::{Stage, Units};
use crate::units::TaskAttribute;

impl<B: Backend> Units<B> {
    /// Whether the task in `place` may begin, as far as its attribute goes.
    pub(super) fn is_its_turn(&self, place: usize) -> bool {
        let Some(task) = &self.running[place] else { return false };
        if self.ordered == 0 || task.task.attribute == TaskAttribute::HeadOfQueue {
            return true;
        }
        let mut others = self.running.iter().flatten();
        !others.any(|other| {
            let before = other.arrival < task.arrival && other.task.lun == task.task.lun;
            let either = task.task.attribute == TaskAttribute::Ordered
                || other.task.attribute == TaskAttribute::Ordered;
            before && either
        })
    }

    /// Those that waited for others to end begin, where they may now.
    pub(super) fn begin_waiting(&mut self) {
        for _ in 0..self.waiting.len() {
            let Some(place) = self.waiting.pop_front() else { break };
            let waits =
                self.running[place].as_ref().is_some_and(|task| task.stage == Stage::Waiting);
            if waits {
                self.begin(place);
            }
        }
    }
}
