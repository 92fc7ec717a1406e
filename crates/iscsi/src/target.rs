//! The state that all connections share: the logical units, and the logged-in initiators.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ssdyno_block::Time;
use ssdyno_scsi::Nexus;
use ssdyno_serve::{Served, ServedClock, Shared, TimeKeeper};

use crate::LogicalUnits;
use crate::pending::{Aborts, Mailbox, Owner, Pending};
use crate::units::{ScsiTask, TaskEnd, TaskId};

/// Sessions at a time.
const SESSIONS_MAX: usize = 256;

/// A name that iSCSI does not allow.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{name}` is not an iSCSI name: use iqn.YEAR-MONTH.DOMAIN:ANYTHING, eui. with 16 or naa. with 16 or 32 hexadecimal digits, in lower case and at most 223 bytes"
)]
pub struct NameError {
    /// The name.
    pub name: String,
}

/// What discovery (SendTargets) gives as the address of the target (RFC 7143, appendix C).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Portal {
    /// That of our end of the connection: right unless addresses are translated on the way.
    #[default]
    OfConnection,
    /// None: initiators stay at the address that they used. Right behind any translation, but some that list targets
    /// (`iscsi-ls`) leave one without address out.
    WhereAsked,
    /// This one: a name or an address, with a port, such as `10.0.2.2:3260`.
    Fixed(String),
}

/// A target node with one portal group.
pub struct IscsiTarget {
    name: String,
    portal: Portal,
    state: Arc<Shared<State>>,
}

/// Behind the lock.
struct State {
    units: Box<dyn LogicalUnits>,
    pending: Pending,
    /// What the units have just ended.
    ended: Vec<TaskEnd>,
    /// By TSIH.
    sessions: BTreeMap<u16, Entry>,
    next_handle: u16,
    /// LUN fields that were reset, and how often; all of them for a target reset.
    unit_resets: BTreeMap<u64, u64>,
    target_resets: u64,
}

/// A session that is logged in.
struct Entry {
    initiator: String,
    isid: [u8; 6],
    nexus: Option<Nexus>,
    closed: Arc<AtomicBool>,
    mailbox: Arc<Mailbox>,
}

/// A session, as its connection holds it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) handle: u16,
    /// `None`: a discovery session.
    pub(crate) nexus: Option<Nexus>,
    closed: Arc<AtomicBool>,
}

impl Session {
    /// Somebody ended it.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

impl IscsiTarget {
    /// A target with this iSCSI name that serves `units`, which follow the time on the wall from now on.
    ///
    /// # Errors
    /// [`NameError`] (RFC 7143, clause 4.2.7).
    pub fn new(name: &str, units: Box<dyn LogicalUnits>) -> Result<IscsiTarget, NameError> {
        if !is_name(name) {
            return Err(NameError { name: name.to_owned() });
        }
        let state = State {
            units,
            pending: Pending::default(),
            ended: Vec::new(),
            sessions: BTreeMap::new(),
            next_handle: 1,
            unit_resets: BTreeMap::new(),
            target_resets: 0,
        };
        let state = Arc::new(Shared::new(state, ServedClock::wall()));
        Ok(IscsiTarget { name: name.to_owned(), portal: Portal::default(), state })
    }

    /// The same, with another reply to requests for its address.
    #[must_use]
    pub fn with_portal(self, portal: Portal) -> IscsiTarget {
        IscsiTarget { portal, ..self }
    }

    /// The same, with another clock.
    #[must_use]
    pub fn with_clock(self, clock: ServedClock) -> IscsiTarget {
        self.state.lock().set_clock(clock);
        self
    }

    /// Lets happen what is due by the target's clock, and gives when something is due next, from now on;
    /// `None`: nothing is. A [`IscsiServer`](crate::IscsiServer) does this by itself.
    pub fn run(&self) -> Option<Duration> {
        self.state.catch_up()
    }

    /// Does so in a thread, until the keeper is dropped.
    pub(crate) fn keep_time(&self) -> io::Result<TimeKeeper> {
        self.state.keep_time("iscsi-clock")
    }

    /// Begins a command of `owner`, unless its logical unit was reset after `resets` was read; its end
    /// goes to the owner.
    pub(crate) fn submit(
        &self,
        owner: Owner,
        resets: u64,
        task: impl FnOnce(TaskId) -> ScsiTask,
    ) -> Option<TaskId> {
        let begun = self.state.with(|state, now| {
            if state.resets(owner.lun) != resets {
                return None;
            }
            let id = state.pending.add(owner);
            state.units.submit(now, task(id));
            state.collect();
            Some(id)
        });
        self.state.lock().settle(|state| !state.pending.is_empty());
        begun
    }

    /// Aborts tasks for the function with `tag`. True where that is answered with `response` later, by
    /// `mailbox`; false where it can be at once.
    pub(crate) fn abort(
        &self,
        aborts: Aborts,
        mailbox: &Arc<Mailbox>,
        tag: u32,
        response: u8,
    ) -> Option<bool> {
        // What has ended by now has ended: time goes on before the first line of this.
        self.state.with(|state, _| {
            let there = match aborts {
                Aborts::Task(id) => {
                    state.units.abort_task(id);
                    true
                }
                Aborts::TaskSet(nexus, lun) => state.units.abort_task_set(nexus, lun),
                Aborts::Unit(lun) => state.reset_unit(lun),
                Aborts::Everything => {
                    state.reset_target();
                    true
                }
            };
            state.collect();
            let waits = there && state.pending.manage(aborts, mailbox, tag, response);
            there.then_some(waits)
        })
    }

    /// The address that discovery reports.
    pub fn portal(&self) -> &Portal {
        &self.portal
    }

    /// Its iSCSI name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sessions that are logged in.
    pub fn sessions(&self) -> usize {
        self.state.lock().served.sessions.len()
    }

    /// How much data the initiator owes to a command, and a number that changes when its logical unit is
    /// reset.
    pub(crate) fn owed(&self, lun: u64, cdb: &[u8]) -> (u64, u64) {
        let state = &self.state.lock().served;
        (state.units.data_out_bytes(lun, cdb), state.resets(lun))
    }

    /// A new session. One of the same initiator port is ended (RFC 7143, clause 6.3.5). `None`: no
    /// room.
    pub(crate) fn log_in(
        &self,
        initiator: &str,
        isid: [u8; 6],
        discovery: bool,
        mailbox: &Arc<Mailbox>,
    ) -> Option<Session> {
        let state = &mut self.state.lock().served;
        let same = |entry: &Entry| {
            !discovery
                && entry.nexus.is_some()
                && entry.initiator == initiator
                && entry.isid == isid
        };
        let old: Vec<u16> =
            state.sessions.iter().filter(|(_, entry)| same(entry)).map(|(tsih, _)| *tsih).collect();
        old.into_iter().for_each(|handle| state.end(handle));
        if state.sessions.len() >= SESSIONS_MAX {
            return None;
        }
        let nexus = match discovery {
            true => None,
            false => Some(state.units.attach(&transport_id(initiator, isid))?),
        };
        let handle = state.free_handle();
        let closed = Arc::new(AtomicBool::new(false));
        let session = Session { handle, nexus, closed: closed.clone() };
        let mailbox = mailbox.clone();
        let entry = Entry { initiator: initiator.to_owned(), isid, nexus, closed, mailbox };
        state.sessions.insert(handle, entry);
        Some(session)
    }

    /// The session is over.
    pub(crate) fn log_out(&self, session: &Session) {
        if !session.is_closed() {
            self.state.lock().served.end(session.handle);
        }
    }

    /// Ends all sessions.
    pub(crate) fn end_all(&self) {
        let state = &mut self.state.lock().served;
        let all: Vec<u16> = state.sessions.keys().copied().collect();
        all.into_iter().for_each(|handle| state.end(handle));
    }
}

impl Served for State {
    fn advance(&mut self, now: Time) {
        self.units.advance(now);
        self.collect();
    }

    fn next_event(&self) -> Option<Time> {
        self.units.next_event()
    }
}

impl State {
    fn end(&mut self, handle: u16) {
        let Some(entry) = self.sessions.remove(&handle) else { return };
        entry.closed.store(true, Ordering::Release);
        entry.mailbox.transport.hang_up();
        if let Some(nexus) = entry.nexus {
            self.units.nexus_lost(nexus);
            self.collect();
        }
    }

    /// Tells their connections of the tasks that have ended.
    fn collect(&mut self) {
        self.units.take_ended(&mut self.ended);
        self.ended.drain(..).for_each(|ended| self.pending.end(ended));
    }

    /// TSIH is not 0.
    fn free_handle(&mut self) -> u16 {
        while self.next_handle == 0 || self.sessions.contains_key(&self.next_handle) {
            self.next_handle = self.next_handle.wrapping_add(1);
        }
        let handle = self.next_handle;
        self.next_handle = handle.wrapping_add(1);
        handle
    }

    /// A number that changes when `lun` is reset.
    fn resets(&self, lun: u64) -> u64 {
        self.target_resets + self.unit_resets.get(&lun).copied().unwrap_or(0)
    }

    /// LOGICAL UNIT RESET.
    fn reset_unit(&mut self, lun: u64) -> bool {
        let there = self.units.logical_unit_reset(lun);
        if there {
            *self.unit_resets.entry(lun).or_default() += 1;
        }
        there
    }

    /// Target reset.
    fn reset_target(&mut self) {
        self.units.target_reset();
        self.target_resets += 1;
    }
}

impl std::fmt::Debug for IscsiTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("name", &self.name).finish_non_exhaustive()
    }
}

/// RFC 7143, clauses 4.2.7.2 to 4.2.7.4, for names that are written down already normalised.
fn is_name(name: &str) -> bool {
    let small =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.' | b':');
    let hexadecimal = |digits: &str| digits.bytes().all(|b| b.is_ascii_hexdigit());
    match name.split_once('.') {
        Some(("iqn", rest)) => {
            let date = rest.get(..8).map(str::as_bytes);
            let dated = date.is_some_and(|d| {
                d.iter().enumerate().all(|(at, b)| match at {
                    4 => *b == b'-',
                    7 => *b == b'.',
                    _ => b.is_ascii_digit(),
                })
            });
            dated && rest.len() > 8 && name.len() <= 223 && name.bytes().all(small)
        }
        Some(("eui", digits)) => digits.len() == 16 && hexadecimal(digits),
        Some(("naa", digits)) => matches!(digits.len(), 16 | 32) && hexadecimal(digits),
        _ => false,
    }
}

/// TransportID of an initiator port: name, `,i,0x`, ISID (SPC-4, 7.6.4.6).
fn transport_id(initiator: &str, isid: [u8; 6]) -> Vec<u8> {
    let mut port = format!("{initiator},i,0x");
    isid.iter().for_each(|byte| port.push_str(&format!("{byte:02x}")));
    // Ends with a zero, padded to words, 20 bytes at least.
    let length = (port.len() + 1).next_multiple_of(4).max(20);
    let mut id = vec![0x45, 0, (length >> 8) as u8, length as u8];
    id.extend_from_slice(port.as_bytes());
    id.resize(4 + length, 0);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for good in ["iqn.2026-01.org.ssdyno:disk", "eui.02004567A425678D", "naa.52004567ba64678d"]
        {
            assert!(is_name(good), "{good}");
        }
        for bad in
            ["", "disk", "iqn.", "iqn.2026-1.org", "iqn.2026-01.", "iqn.2026-01.Org:x", "eui.12"]
        {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn transport_ids_are_padded() {
        let id = transport_id("iqn.2026-01.a:b", [0x80, 0, 0, 1, 2, 0xff]);
        assert_eq!(id.len() % 4, 0);
        assert_eq!(id[..4], [0x45, 0, 0, 36]);
        assert!(id[4..].starts_with(b"iqn.2026-01.a:b,i,0x8000000102ff\0"));
    }
}
