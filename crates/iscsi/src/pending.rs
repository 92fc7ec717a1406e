//! Commands and task management functions that have not ended, and the way back to their connections.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ssdyno_scsi::Nexus;

use crate::units::{TaskEnd, TaskId};

/// A connection's requests to the threads that read and write its bytes.
pub trait Transport: Send + Sync {
    /// Somebody else has ended the session: whoever reads from the connection is to stop.
    fn hang_up(&self);
    /// Something has ended: [`Connection::completed`](crate::Connection::completed) is to be called soon,
    /// from another place than this.
    fn wake(&self);
}

/// What is for a connection.
#[derive(Debug)]
pub(crate) enum Mail {
    /// One of its commands has ended.
    Ended(TaskEnd),
    /// The task management function with this tag has.
    Managed { tag: u32, response: u8 },
}

/// Where a connection finds what ended.
pub(crate) struct Mailbox {
    mail: Mutex<Vec<Mail>>,
    pub(crate) transport: Arc<dyn Transport>,
}

impl Mailbox {
    pub(crate) fn new(transport: Arc<dyn Transport>) -> Mailbox {
        Mailbox { mail: Mutex::new(Vec::new()), transport }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Mail>> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, mail: Mail) {
        self.lock().push(mail);
        self.transport.wake();
    }

    /// What is there, in its order.
    pub(crate) fn take(&self) -> Vec<Mail> {
        std::mem::take(&mut self.lock())
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").field("mail", &self.lock().len()).finish_non_exhaustive()
    }
}

/// Whose a task is.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) nexus: Nexus,
    pub(crate) lun: u64,
    pub(crate) mailbox: Arc<Mailbox>,
}

/// Which tasks a task management function ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Aborts {
    /// This one.
    Task(TaskId),
    /// Those of a nexus at a logical unit.
    TaskSet(Nexus, u64),
    /// All at a logical unit.
    Unit(u64),
    /// All.
    Everything,
}

impl Aborts {
    fn cover(self, id: TaskId, owner: &Owner) -> bool {
        match self {
            Aborts::Task(one) => id == one,
            Aborts::TaskSet(nexus, lun) => owner.nexus == nexus && owner.lun == lun,
            Aborts::Unit(lun) => owner.lun == lun,
            Aborts::Everything => true,
        }
    }
}

/// A function that is answered when its tasks have ended (SAM-5, 7.2 to 7.7).
#[derive(Debug)]
struct Managing {
    waits: BTreeSet<TaskId>,
    mailbox: Arc<Mailbox>,
    tag: u32,
    response: u8,
}

/// All that has not ended, of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// With whether it was aborted.
    tasks: BTreeMap<TaskId, (Owner, bool)>,
    managing: Vec<Managing>,
    last: u64,
}

impl Pending {
    /// The number of a new task.
    pub(crate) fn add(&mut self, owner: Owner) -> TaskId {
        self.last += 1;
        let id = TaskId(self.last);
        self.tasks.insert(id, (owner, false));
        id
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// A task has ended: its connection is informed, and so are those that waited for it.
    pub(crate) fn end(&mut self, mut ended: TaskEnd) {
        let id = ended.id;
        if let Some((owner, aborted)) = self.tasks.remove(&id) {
            ended.answer = ended.answer.filter(|_| !aborted);
            owner.mailbox.put(Mail::Ended(ended));
        }
        self.managing.retain_mut(|managing| {
            managing.waits.remove(&id);
            let over = managing.waits.is_empty();
            if over {
                let Managing { tag, response, .. } = *managing;
                managing.mailbox.put(Mail::Managed { tag, response });
            }
            !over
        });
    }

    /// A function with `tag` has aborted tasks. `false`: all have ended, it can be answered at once.
    pub(crate) fn manage(
        &mut self,
        aborts: Aborts,
        mailbox: &Arc<Mailbox>,
        tag: u32,
        response: u8,
    ) -> bool {
        let mut waits = BTreeSet::new();
        for (id, (owner, aborted)) in &mut self.tasks {
            if aborts.cover(*id, owner) {
                *aborted = true;
                waits.insert(*id);
            }
        }
        let waited_for = !waits.is_empty();
        if waited_for {
            self.managing.push(Managing { waits, mailbox: mailbox.clone(), tag, response });
        }
        waited_for
    }
}
