//! Jobs whose end ends others (`exitall`, `exit_what`).

use super::reader::{Answer, Reader};

/// Whom the end of a job ends too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FioEnd {
    /// Nobody.
    #[default]
    Itself,
    /// The jobs of its set, those that have not begun among them (`exit_what=group`).
    Set,
    /// Whoever runs (`exit_what=stonewall`).
    Running,
    /// Everybody, those that have not begun among them (`exit_what=all`).
    All,
}

/// The set that a job belongs to, and what its end means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FioExit {
    /// Whom its end ends too.
    pub end: FioEnd,
    /// Which set; `new_group` and `stonewall` begin another one.
    pub set: u32,
}

impl FioExit {
    /// Whether a job that ends so ends `other`, which has begun or not (`has_begun`).
    pub fn ends(self, other: FioExit, has_begun: bool) -> bool {
        match self.end {
            FioEnd::Itself => false,
            FioEnd::Set => self.set == other.set,
            // `stonewall` spares jobs behind the wall: they have not begun and run afterwards.
            // `all` also cancels them, which is the only difference between the two.
            FioEnd::Running => has_begun,
            FioEnd::All => true,
        }
    }
}

impl Reader<'_> {
    /// Whether the section says that the end of a job ends others: then it does for all of the file.
    pub(super) fn exits(&mut self) -> Answer<bool> {
        self.switch("exitall")
    }

    /// Whom the end of the job ends, if it ends anybody.
    pub(super) fn exit_what(&mut self) -> Answer<FioEnd> {
        match self.text("exit_what").as_deref() {
            // fio's default is the group. The value matters only if `exitall` is set in some
            // section; otherwise the reader of jobs resets it, because each job then ends alone.
            None | Some("group") => Ok(FioEnd::Set),
            Some("stonewall") => Ok(FioEnd::Running),
            Some("all") => Ok(FioEnd::All),
            Some(_) => self.wrong("`exit_what` is unknown", "use group, stonewall or all"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_an_end_ends() {
        let exit = |end, set| FioExit { end, set };
        let other = exit(FioEnd::Itself, 1);
        for (end, set, begun, ends) in [
            (FioEnd::Itself, 1, true, false),
            (FioEnd::Set, 1, false, true),
            (FioEnd::Set, 2, true, false),
            (FioEnd::Running, 2, true, true),
            (FioEnd::Running, 2, false, false),
            (FioEnd::All, 2, false, true),
        ] {
            assert_eq!(exit(end, set).ends(other, begun), ends, "{end:?} {set} {begun}");
        }
    }
}
