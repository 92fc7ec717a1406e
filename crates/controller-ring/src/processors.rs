//! The microprocessors, and what they do next.

use ssdyno_block::Time;
use ssdyno_engine::events::{Activity, PartKind};
use ssdyno_pci::BusMaster;

use super::RingCard;
use super::config::CardConfig;
use super::dma::Work;
use super::event::Event;

/// What a microprocessor does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Job {
    /// Sees a doorbell and sets up the fetch.
    Fetch,
    /// Sets up the return of descriptors: number of the first, how many.
    Return(u32, u32),
    /// A command, by number.
    Command(u32),
}

/// The microprocessors: each has one job at a time.
#[derive(Debug)]
pub(super) struct Processors {
    /// Job of each, and when it began.
    jobs: Vec<Option<(Job, Time)>>,
    /// A doorbell was seen, and its fetch is not set up.
    pub(super) fetch_due: bool,
    command_time: Time,
    doorbell_time: Time,
    return_time: Time,
}

impl Processors {
    pub(super) fn new(config: &CardConfig) -> Processors {
        Processors {
            jobs: vec![None; config.processors as usize],
            fetch_due: false,
            command_time: config.command_time.0,
            doorbell_time: config.doorbell_time.0,
            return_time: config.return_time.0,
        }
    }

    /// The card is switched off.
    pub(super) fn clear(&mut self) {
        self.jobs.fill(None);
        self.fetch_due = false;
    }

    /// Processor `at` begins `job`; gives when it is done.
    #[inline]
    fn begin(&mut self, now: Time, at: usize, job: Job) -> Time {
        self.jobs[at] = Some((job, now));
        now + match job {
            Job::Fetch => self.doorbell_time,
            Job::Return(..) => self.return_time,
            Job::Command(_) => self.command_time,
        }
    }
}

impl RingCard {
    /// Gives the free engines something to do, then the free microprocessors: they prepare a transfer
    /// as soon as an engine takes the one before.
    pub(super) fn work(&mut self, now: Time) {
        // Engines come first. A processor may begin the next command only when the transfer of
        // the last one has left its place (S0-21).
        self.dma.start(now, &mut self.queue);
        for at in 0..self.processors.jobs.len() {
            if self.processors.jobs[at].is_none() {
                let Some(job) = self.next_job() else { break };
                let end = self.processors.begin(now, at, job);
                self.queue.schedule(end, Event::Processor(at as u32));
            }
        }
    }

    /// Returns go first: they free the host; then the doorbell; then the next command, which is
    /// prepared while the transfer of the last one runs, but not further ahead (S0-21).
    fn next_job(&mut self) -> Option<Job> {
        if let Some((first, count)) = self.block.returns.pop_front() {
            return Some(Job::Return(first, count));
        }
        if std::mem::take(&mut self.processors.fetch_due) {
            return Some(Job::Fetch);
        }
        // A processor prepares one command while the engine moves the data of the one before.
        // That makes the time between commands the longer of the two times (S0-21).
        if !self.block.has_command() || self.dma.is_full_of_data() || self.faults.hangs {
            return None;
        }
        let (number, last) = self.block.next_command();
        if last {
            self.prefetch();
        }
        Some(Job::Command(number))
    }

    /// Microprocessor `at` is done.
    pub(super) fn job_done(&mut self, now: Time, at: usize, bus: &mut dyn BusMaster) {
        let Some((job, since)) = self.processors.jobs[at].take() else { return };
        self.log.busy((PartKind::Core, at as u16), Activity::Execute, (since, now));
        match job {
            Job::Fetch => self.fetch(),
            Job::Return(first, count) => {
                if let Some(setup) = &self.registers.setup {
                    self.dma.queue_descriptors(setup, first, count, Work::Return);
                }
            }
            Job::Command(number) => self.command(now, number, bus),
        }
    }
}
