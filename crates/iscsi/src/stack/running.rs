//! SCSI commands on their way to what carries them out.

use ssdyno_block::Time;
use ssdyno_scsi::{DataPlace, JobProgress, ScsiJob, ScsiRequest, SenseBytes};
use ssdyno_spec::scsi::{opcode, status};

use super::backend::{Backend, Ended, Refused};
use super::{COMMAND_BYTES_MAX, Running, Stage, Units};
use crate::units::{ScsiTask, TaskAttribute, TaskEnd, TaskResponse};

/// The outcome of the commands of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Launch {
    /// One was submitted; there may be more.
    One,
    /// There is none now.
    Nothing,
    /// There is no room for it.
    Later,
}

impl<B: Backend> Units<B> {
    /// A task has come.
    pub(super) fn arrive(&mut self, task: ScsiTask) {
        self.arrivals += 1;
        self.ordered += usize::from(task.attribute == TaskAttribute::Ordered);
        let running = Running {
            task,
            arrival: self.arrivals,
            stage: Stage::Waiting,
            job: ScsiJob::new(),
            data_in: Vec::new(),
            unsent: None,
        };
        let place = match self.running.iter().position(Option::is_none) {
            Some(place) => place,
            None => {
                self.running.push(None);
                self.running.len() - 1
            }
        };
        self.running[place] = Some(running);
        self.begin(place);
    }

    /// Begins the task in `place`, or has it wait.
    pub(super) fn begin(&mut self, place: usize) {
        let its_turn = self.is_its_turn(place);
        let Some(running) = &mut self.running[place] else { return };
        if !its_turn {
            return self.waiting.push_back(place);
        }
        let task = &running.task;
        let request = ScsiRequest {
            nexus: task.nexus,
            lun: task.lun,
            cdb: &task.cdb,
            data_out_bytes: task.expected_out_bytes,
            data_out: &task.data_out,
            deleted: false,
        };
        match self.backend.target_mut().begin(&mut running.job, &request) {
            JobProgress::Pending => {
                running.stage = Stage::Begun;
                running.data_in.resize(running.job.data_in_bytes() as usize, 0);
                self.ready.push_back(place);
            }
            JobProgress::Blocked => self.waiting.push_back(place),
            progress => self.end(place, progress),
        }
    }

    /// Does all that can be done without time going on.
    pub(super) fn go_on(&mut self) {
        loop {
            while let Some(ended) = self.backend.ended() {
                self.command_ended(ended);
            }
            self.ring_alarms();
            if std::mem::take(&mut self.freed) {
                self.begin_waiting();
            }
            B::look_again(self);
            self.launch_ready();
            if !self.freed {
                break;
            }
        }
    }

    fn ring_alarms(&mut self) {
        while let Some((_, place)) =
            self.alarms.first().copied().filter(|(at, _)| *at <= self.backend.now())
        {
            self.alarms.pop_first();
            self.ready.push_back(place);
        }
    }

    /// Submits NVMe commands as long as there is room, one of each SCSI command in turn.
    fn launch_ready(&mut self) {
        while let Some(place) = self.ready.pop_front() {
            match self.launch(place) {
                Launch::One if self.running[place].is_some() => self.make_ready(place),
                Launch::One | Launch::Nothing => {}
                Launch::Later => return self.ready.push_front(place),
            }
        }
    }

    fn make_ready(&mut self, place: usize) {
        if !self.ready.contains(&place) {
            self.ready.push_back(place);
        }
    }

    fn launch(&mut self, place: usize) -> Launch {
        let Some(running) = &mut self.running[place] else { return Launch::Nothing };
        if running.stage != Stage::Begun {
            return Launch::Nothing;
        }
        if self.backend.target().is_aborted(&running.job) {
            self.cancel(place);
            return Launch::Nothing;
        }
        let next = running.unsent.take().or_else(|| self.backend.next_command(&mut running.job));
        let Some(mut command) = next else { return Launch::Nothing };
        let wait_ms = B::take_wait_ms(&mut command);
        if wait_ms > 0 {
            running.unsent = Some(command);
            self.alarms.insert((self.backend.now() + Time::from_ms(wait_ms.into()), place));
            return Launch::Nothing;
        }
        let Some(outgoing) = outgoing::<B>(running, &command) else {
            self.complete(place, &command, B::NO_DATA);
            return Launch::One;
        };
        match self.backend.send(place, command, outgoing) {
            Ok(()) => Launch::One,
            Err(Refused::Later) => {
                running.unsent = Some(command);
                Launch::Later
            }
            Err(Refused::Ended(end)) => {
                self.complete(place, &command, end);
                Launch::One
            }
        }
    }

    fn command_ended(&mut self, ended: Ended<B>) {
        let Ended { place, command, end, data } = ended;
        let Some(running) = &mut self.running[place] else { return };
        let moved = B::data(&command);
        let range = moved.offset as usize..;
        let buffer = match moved.place {
            DataPlace::Buffer => running.data_in.get_mut(range),
            DataPlace::Scratch => running.job.scratch_mut().get_mut(range),
            DataPlace::Nothing => None,
        };
        if let Some(buffer) = buffer.filter(|_| B::is_to_host(&command)) {
            let length = buffer.len().min(data.len());
            buffer[..length].copy_from_slice(&data[..length]);
        }
        self.complete(place, &command, end);
    }

    /// A command of the task in `place` has completed.
    fn complete(&mut self, place: usize, command: &B::Command, end: B::End) {
        let Some(running) = &mut self.running[place] else { return };
        let formatted = B::formatted(command, end);
        match (self.backend.complete(&mut running.job, command, end), formatted) {
            // What comes next may be there by now.
            (JobProgress::Pending, _) => self.make_ready(place),
            (JobProgress::Done, Some(nsid)) => {
                running.stage = Stage::Formatted(nsid);
                self.formats += 1;
            }
            (progress, _) => self.end(place, progress),
        }
    }

    /// The task in `place` is over.
    pub(super) fn end(&mut self, place: usize, progress: JobProgress) {
        let Some(running) = self.running[place].take() else { return };
        self.ready.retain(|other| *other != place);
        self.waiting.retain(|other| *other != place);
        self.alarms.retain(|(_, other)| *other != place);
        let Running { task, stage, job, mut data_in, .. } = running;
        self.formats -= usize::from(matches!(stage, Stage::Formatted(_) | Stage::Looking(_)));
        self.ordered -= usize::from(task.attribute == TaskAttribute::Ordered);
        if !job.data_in().is_empty() {
            data_in.clear();
            data_in.extend_from_slice(job.data_in());
        }
        data_in.truncate(job.data_in_bytes() as usize);
        let answer = match progress {
            JobProgress::Done => {
                Some(TaskResponse { status: job.status(), sense: job.sense_bytes() })
            }
            JobProgress::Aborted => None,
            // Neither is an end; the initiator may try again.
            JobProgress::Pending | JobProgress::Blocked => {
                Some(TaskResponse { status: status::BUSY, sense: SenseBytes::NONE })
            }
        };
        self.ended.push(TaskEnd { id: task.id, answer, data_in });
        self.freed = true;
        if task.cdb[0] == opcode::PERSISTENT_RESERVE_OUT {
            // PREEMPT AND ABORT.
            self.cancel_aborted();
        }
    }

    /// Aborts tasks; those that nothing at the controller belongs to end now.
    pub(super) fn abort(&mut self, which: impl Fn(&ScsiTask) -> bool) {
        for place in 0..self.running.len() {
            match &mut self.running[place] {
                Some(running) if which(&running.task) => running.job.abort(),
                _ => continue,
            }
            self.cancel(place);
        }
        self.go_on();
    }

    /// Ends those that somebody else has aborted.
    fn cancel_aborted(&mut self) {
        for place in 0..self.running.len() {
            let begun = |running: &&Running<B::Command>| running.stage == Stage::Begun;
            let running = self.running[place].as_ref().filter(begun);
            if running.is_some_and(|running| self.backend.target().is_aborted(&running.job)) {
                self.cancel(place);
            }
        }
    }

    /// An aborted task: nothing more of it is submitted.
    fn cancel(&mut self, place: usize) {
        let Some(running) = &mut self.running[place] else { return };
        match running.stage {
            Stage::Waiting => self.end(place, JobProgress::Aborted),
            Stage::Begun => {
                let unsent = running.unsent.take();
                let next = unsent.or_else(|| match running.job.outstanding() {
                    0 => self.backend.next_command(&mut running.job),
                    // The last of these ends it.
                    _ => None,
                });
                self.alarms.retain(|(_, other)| *other != place);
                if let Some(command) = next {
                    self.complete(place, &command, B::ABORTED);
                }
            }
            Stage::Formatted(_) | Stage::Looking(_) => {}
        }
    }
}

/// What a command sends; `None` where it is not there.
fn outgoing<'a, B: Backend>(
    running: &'a Running<B::Command>,
    command: &B::Command,
) -> Option<&'a [u8]> {
    let moved = B::data(command);
    let (offset, bytes) = (moved.offset as usize, moved.bytes as usize);
    if bytes > COMMAND_BYTES_MAX as usize {
        return None;
    }
    let range = offset..offset + bytes;
    match moved.place {
        _ if B::is_to_host(command) => Some(&[]),
        DataPlace::Buffer => running.task.data_out.get(range),
        DataPlace::Scratch => running.job.scratch().get(range),
        DataPlace::Nothing => Some(&[]),
    }
}
