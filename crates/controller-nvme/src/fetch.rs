//! Submission queue entries from host memory (base 2.0c, clause 3.4.4; S1-40).

use ssdyno_block::Time;
use ssdyno_pci::BusMaster;
use ssdyno_spec::nvme::{NvmeStatus, SubmissionEntry};
use zerocopy::{FromZeros, IntoBytes};

use super::NvmeController;
use super::commands::Command;
use super::pipe::Fetch;
use super::queues::advanced;
use super::subsystem::NvmCommand;
use super::wire::ENTRY_BYTES;
use ssdyno_device::Device;

/// Entries that are read at once at most: the limit of `nvme.fetch_entries`.
const ENTRIES_MAX: usize = 64;

impl<D: Device> NvmeController<D> {
    /// Begins reads as long as there are entries, room for their commands, and reads to spare.
    #[inline]
    pub(super) fn start_fetches(&mut self, at: Time) {
        if !self.arbiter.is_idle() {
            self.fetch(at);
        }
    }

    #[inline(always)]
    fn fetch(&mut self, at: Time) {
        // After the host has asked to shut down, it should submit no commands (base 2.0c, clause
        // 3.6). Entries that are there all the same are not fetched; a reset removes them.
        if self.registers.is_shutting_down() {
            return;
        }
        while self.pipes.fetches.len() < self.subsystem.config().fetches as usize {
            let (admin, io) = (self.commands.room(true), self.commands.room(false));
            let Some(grant) = self.arbiter.grant(admin > 0, io > 0) else { return };
            let queue = grant.queue;
            let Some(submission) = self.queues.submission(queue) else {
                // The queue was deleted after its doorbell had rung. Its bit is cleared here, or
                // the arbiter would grant it again forever.
                self.arbiter.unpend(queue);
                continue;
            };
            let room = if queue == 0 { admin } else { io };
            let unclaimed = submission.unclaimed();
            let count =
                grant.limit.min(unclaimed).min(self.subsystem.config().fetch_entries).min(room);
            // Entries are claimed when the read begins and not when it arrives. A second read
            // that begins meanwhile takes the entries behind them.
            submission.claim(count);
            self.arbiter.charge(grant, count);
            if count == unclaimed {
                self.arbiter.unpend(queue);
            }
            // The busy time of the health log counts while a command is outstanding. The test
            // comes before `promise`, which makes the controller busy.
            if queue != 0 && self.commands.is_idle() {
                self.subsystem.logs.busy(at);
            }
            // Places are kept for commands that are still on their way. Without this several
            // reads could bring more commands than there are slots.
            self.commands.promise(queue == 0, count);
            let wire = self.wire.times.entries[count as usize - 1];
            let (_, read) = self.wire.to_controller.reserve(at, wire);
            self.pipes
                .fetches
                .send(read + self.subsystem.config().fetch_latency.0, Fetch { queue, count });
            self.counters.fetches += 1;
        }
    }

    /// The entries are there.
    #[inline]
    pub(super) fn arrive(&mut self, at: Time, fetch: Fetch, bus: &mut dyn BusMaster) {
        let Fetch { queue, count, .. } = fetch;
        // A read whose queue was deleted leaves nothing.
        let Some(submission) = self.queues.submission(queue).filter(|_| count > 0) else { return };
        let (base, entries, head) = (submission.base, submission.entries, submission.head);
        // The head moves when the entries have arrived. A completion reports it, and the host
        // may then overwrite the entries; before, they could still be read.
        submission.head = advanced(head, count, entries);
        let mut buffer: [SubmissionEntry; ENTRIES_MAX];
        let mut single: SubmissionEntry;
        // Reading a burst needs a buffer of 4 KiB. Zeroing it for each single entry would cost
        // more than handling the entry.
        let all: &mut [SubmissionEntry] = if count == 1 {
            single = SubmissionEntry::new_zeroed();
            std::slice::from_mut(&mut single)
        } else {
            buffer = [SubmissionEntry::new_zeroed(); ENTRIES_MAX];
            &mut buffer[..count as usize]
        };
        // Around the end of the ring it takes two packets, at no further cost.
        let (first, second) = all.split_at_mut(count.min(entries - head) as usize);
        let read = bus.read(base + u64::from(head) * ENTRY_BYTES, first.as_mut_bytes());
        let read = read.and_then(|()| match second.is_empty() {
            true => Ok(()),
            false => bus.read(base, second.as_mut_bytes()),
        });
        if read.is_err() {
            // Without its queues a controller cannot go on (base 2.0c, clause 9.5).
            self.commands.give_back(queue == 0, count);
            return self.registers.set_fatal();
        }
        self.counters.commands += u64::from(count);
        for entry in all {
            self.accept(at, queue, entry, bus);
        }
    }

    /// A command is in the controller.
    fn accept(&mut self, at: Time, queue: u16, entry: &SubmissionEntry, bus: &mut dyn BusMaster) {
        let id = entry.command_id.get();
        let nvm = NvmCommand::new(entry.opcode, entry.namespace_id.get());
        let mut command = Command::new(queue, id, nvm);
        // An identifier that is still in use belongs to the older command. The newer one ends
        // with a conflict and must not free the identifier when it does.
        command.owns_id = self.queues.submission(queue).is_some_and(|queue| queue.take_id(id));
        let slot = self.commands.insert(command);
        if !command.owns_id {
            let status = NvmeStatus::COMMAND_ID_CONFLICT.with_do_not_retry();
            return self.finish(at, slot, status);
        }
        if queue == 0 {
            self.admin(at, slot, entry, bus);
        } else {
            self.decode(at, slot, entry, bus);
        }
    }
}
