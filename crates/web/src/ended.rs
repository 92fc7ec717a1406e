//! The end of a run whose task panicked.

use ssdyno_session::{Failure, RunPhase};

use crate::desk::Desk;

/// Ends the run of a desk if the thread that follows it panics, for example with the panic of its task. The page would
/// otherwise show the run as active, and refuse every later one.
#[derive(Debug)]
pub(crate) struct EndOnPanic<'a>(pub(crate) &'a Desk);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        if let Some(run) = &mut self.0.state().run
            && run.view.phase != RunPhase::Ended
        {
            let failure = Failure::failed("the run ended with an internal error")
                .with_help("report the message that `ssdyno ui` printed on standard error");
            run.view.phase = RunPhase::Ended;
            run.view.error = Some(failure.body());
            run.told.systems.clear();
        }
        self.0.changed();
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::AtomicBool;

    use ssdyno_cluster::{Hosts, WorkerConsent};
    use ssdyno_engine::events::{Busy, EventReader};
    use ssdyno_session::Unattended;
    use ssdyno_task::Task;

    use super::*;
    use crate::current::CurrentRun;
    use crate::desk::DeskOptions;
    use crate::flash::LiveFlash;
    use crate::view::RunView;

    struct Panics;

    impl EventReader for Panics {
        fn read(&mut self, _: &[Busy]) {
            panic!("this panic is part of a test");
        }
    }

    #[test]
    fn a_task_that_panics_ends_its_run() {
        let (consent, hosts) = (WorkerConsent::default(), Hosts::default());
        let desk = Desk::new(DeskOptions { results: PathBuf::new(), consent, hosts });
        let toml = "target = \"sim:config-a\"\nrequests = 1000\nkeep = \"none\"\n";
        let task = Task::from_toml("the spec", toml).unwrap();
        let mut prepared = task.prepare(&mut Unattended).unwrap();
        prepared.read_by(Box::new(Panics));
        let runner = prepared.start().unwrap();
        let (name, target, load) = ("a".to_owned(), "b".to_owned(), "c".to_owned());
        let view = RunView::begun(1, name, target, load);
        desk.state().run = Some(CurrentRun::new(view, LiveFlash::new().0));
        assert!(desk.state().refuse_second().is_err());
        std::thread::scope(|scope| {
            let follow = || desk.follow(&task, runner, None, &AtomicBool::new(false));
            assert!(scope.spawn(follow).join().is_err(), "the panic is not hidden");
        });
        desk.state().refuse_second().unwrap();
        assert!(desk.view().is_some_and(|view| view.error.is_some()));
    }
}
