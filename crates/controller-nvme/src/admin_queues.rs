//! Creating and deleting I/O queues (base 2.0c, clauses 5.4 to 5.7; S1-26).

use ssdyno_block::Time;
use ssdyno_spec::nvme::{NvmeStatus, SubmissionEntry};

use super::NvmeController;
use super::admin::{Call, Outcome};
use super::arbiter::Class;
use super::commands::{NIL, State};
use super::queues::{CompletionQueue, SubmissionQueue};
use crate::answer::Answer;
use ssdyno_device::Device;

impl<D: Device> NvmeController<D> {
    /// The common properties of both kinds of queue: identifier and number of entries. `sized` means that the host has
    /// set the size of its entries.
    fn queue_of(&self, entry: &SubmissionEntry, granted: u32, sized: bool) -> Answer<(u16, u32)> {
        let dword10 = entry.dword10.get();
        let (id, entries) = (dword10 & 0xffff, (dword10 >> 16) + 1);
        if id == 0 || id > granted {
            return Err(NvmeStatus::QUEUE_ID_INVALID.with_do_not_retry());
        }
        let fits = (2..=self.subsystem.config().queue_entries).contains(&entries);
        if !fits || !sized {
            return Err(NvmeStatus::QUEUE_SIZE_INVALID.with_do_not_retry());
        }
        // CAP.CQR: queues lie in one piece, bit PC.
        if entry.dword11.get() & 1 == 0 {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        if entry.prp1.get() & (self.registers.page_bytes() - 1) != 0 {
            return Err(NvmeStatus::PRP_OFFSET_INVALID.with_do_not_retry());
        }
        Ok((id as u16, entries))
    }

    /// `vectors` are those that the host granted.
    pub(super) fn create_completion_queue(
        &mut self,
        entry: &SubmissionEntry,
        vectors: u16,
    ) -> Answer {
        let (_, granted) = self.queues.features.queues_granted();
        let sized = self.registers.has_completion_entry_size();
        let (id, entries) = self.queue_of(entry, granted, sized)?;
        if self.queues.completion(id).is_some() {
            return Err(NvmeStatus::QUEUE_ID_INVALID.with_do_not_retry());
        }
        let vector = entry.dword11.get() >> 16;
        let enabled = entry.dword11.get() & 2 != 0;
        if enabled && (!self.interrupts.exists(vector) || vector >= u32::from(vectors)) {
            return Err(NvmeStatus::INTERRUPT_VECTOR_INVALID.with_do_not_retry());
        }
        let vector = enabled.then_some(vector as u16);
        let queue = CompletionQueue::new(entry.prp1.get(), entries, vector);
        self.queues.completion[usize::from(id)] = Some(queue);
        self.queues.had_io = true;
        Ok(())
    }

    pub(super) fn create_submission_queue(&mut self, entry: &SubmissionEntry) -> Answer {
        let (granted, completions) = self.queues.features.queues_granted();
        let sized = self.registers.has_submission_entry_size();
        let (id, entries) = self.queue_of(entry, granted, sized)?;
        let dword11 = entry.dword11.get();
        let completion = dword11 >> 16;
        if self.queues.submission(id).is_some() || completion == 0 || completion > completions {
            return Err(NvmeStatus::QUEUE_ID_INVALID.with_do_not_retry());
        }
        let completion = completion as u16;
        // The completion queue must exist first (S1-26). It counts its submission queues,
        // because it may be deleted only after all of them.
        let reports_to = self.queues.completion(completion);
        let missing = NvmeStatus::COMPLETION_QUEUE_INVALID.with_do_not_retry();
        reports_to.ok_or(missing)?.submissions += 1;
        let queue = SubmissionQueue::new(entry.prp1.get(), entries, completion);
        self.queues.submission[usize::from(id)] = Some(queue);
        self.arbiter.set_class(id, Class::from_priority(dword11 >> 1));
        Ok(())
    }

    pub(super) fn delete_completion_queue(&mut self, entry: &SubmissionEntry) -> Answer {
        let id = entry.dword10.get() as u16;
        let queue = self.queues.completion(id).filter(|_| id != 0);
        let queue = queue.ok_or(NvmeStatus::QUEUE_ID_INVALID.with_do_not_retry())?;
        if queue.submissions > 0 {
            return Err(NvmeStatus::QUEUE_DELETION_INVALID.with_do_not_retry());
        }
        // Entries that the host never took would keep the pin asserted forever. They are gone
        // with the queue.
        if queue.interrupts {
            let (vector, unread) = (queue.vector, queue.waiting());
            self.interrupts.taken(vector, unread);
        }
        self.queues.completion[usize::from(id)] = None;
        Ok(())
    }

    pub(super) fn is_being_deleted(&self, queue: u16) -> bool {
        !self.queues.deletions.is_empty()
            && self.queues.deletions.iter().any(|(_, deleted)| *deleted == queue)
    }

    /// Commands that the device has not begun end; the deletion completes once the others have.
    pub(super) fn delete_submission_queue(&mut self, call: Call<'_>) -> Answer<Outcome> {
        let Call { at, slot, entry } = call;
        let id = entry.dword10.get() as u16;
        if id == 0 || self.queues.submission(id).is_none() || self.is_being_deleted(id) {
            return Err(NvmeStatus::QUEUE_ID_INVALID.with_do_not_retry());
        }
        self.arbiter.unpend(id);
        // Entries on the way are not accepted any more.
        // The read on its way stays in the pipe with no entries, so that the order of arrivals
        // is kept. Only its places go back.
        for fetch in self.pipes.fetches.iter_mut().filter(|fetch| fetch.queue == id) {
            self.commands.give_back(false, fetch.count);
            fetch.count = 0;
        }
        let all = self.commands.all();
        for other in all.filter(|other| *other != slot) {
            let command = self.commands.get(other);
            if command.queue == id && command.state != State::Free {
                self.end_early(at, other, NvmeStatus::SUBMISSION_QUEUE_DELETED);
            }
        }
        // The deletion completes only after the last command of the queue (base 2.0c, clause
        // 5.7). A controller that completed it at once could still write data of an old command
        // later.
        self.queues.deletions.push((slot, id));
        self.finish_deletions(at);
        Ok(Outcome::Later)
    }

    /// Completes the deletions whose commands have ended. Completions that found their queue full
    /// are dropped: none may follow the deletion.
    pub(super) fn finish_deletions(&mut self, at: Time) {
        let mut index = 0;
        while let Some((slot, id)) = self.queues.deletions.get(index).copied() {
            let under_way = self.commands.waiting().any(|other| {
                let command = self.commands.get(other);
                // A held completion waits for room that the host may never make. Counting it
                // would let the deletion wait for a host that waits for the deletion.
                command.queue == id && command.state != State::Held
            });
            if under_way {
                index += 1;
                continue;
            }
            self.drop_held(id);
            if let Some(queue) = self.queues.completion_of(id) {
                queue.submissions -= 1;
            }
            self.queues.submission[usize::from(id)] = None;
            self.queues.deletions.remove(index);
            self.finish(at, slot, NvmeStatus::SUCCESS);
        }
    }

    /// Drops the completions of submission queue `id` that wait for room.
    fn drop_held(&mut self, id: u16) {
        let Some(queue) = self.queues.completion_of(id) else { return };
        let Some((mut next, _)) = queue.held.take() else { return };
        let mut kept: Vec<u32> = Vec::new();
        while next != NIL {
            let slot = next;
            next = self.commands.get(slot).next;
            if self.commands.get(slot).queue == id {
                self.drop_command(slot);
            } else {
                kept.push(slot);
            }
        }
        // Several submission queues may share the completion queue. Completions of the others
        // keep their order in a new chain.
        for pair in kept.windows(2) {
            self.commands.get_mut(pair[0]).next = pair[1];
        }
        if let (Some(first), Some(last)) = (kept.first(), kept.last()) {
            self.commands.get_mut(*last).next = NIL;
            if let Some(queue) = self.queues.completion_of(id) {
                queue.held = Some((*first, *last));
            }
        }
    }
}
