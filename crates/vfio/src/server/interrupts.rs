//! Interrupts on their way from the device to the client's eventfds.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, write};
use ssdyno_block::Time;
use ssdyno_pci::{Identity, InterruptMode};
use ssdyno_spec::vfio_user::{self as layout, InterruptInfo, SetInterrupts};

/// One interrupt of a kind.
#[derive(Debug, Default)]
struct Line {
    event: Option<OwnedFd>,
    masked: bool,
    /// It came while it was masked.
    pending: bool,
}

/// One kind of interrupts.
#[derive(Debug, Default)]
struct Kind {
    on: bool,
    /// How many the client has set.
    granted: u16,
    lines: Vec<Line>,
}

/// All interrupts of a function.
#[derive(Debug)]
pub(super) struct Interrupts {
    /// Pin, MSI, MSI-X: as they are numbered.
    kinds: [Kind; 3],
    /// By the time at which they are due.
    due: VecDeque<(Time, u16)>,
    asserted: bool,
    /// The command register keeps the pin from the host.
    pin_off: bool,
    pub(super) sent: u64,
}

impl Interrupts {
    pub(super) fn new(identity: &Identity) -> Interrupts {
        let counts =
            [u16::from(identity.interrupt_pin != 0), identity.msi_vectors, identity.msix_vectors];
        let kinds = counts.map(|count| Kind {
            lines: (0..count).map(|_| Line::default()).collect(),
            ..Kind::default()
        });
        Interrupts { kinds, due: VecDeque::new(), asserted: false, pin_off: false, sent: 0 }
    }

    /// How many of a kind there are; `None`: no such kind.
    pub(super) fn info(&self, index: u32) -> Option<InterruptInfo> {
        let count = match self.kinds.get(index as usize) {
            Some(kind) => kind.lines.len(),
            None if index < layout::INTERRUPTS => 0,
            None => return None,
        };
        let masks = layout::INTERRUPT_MASKABLE | layout::INTERRUPT_AUTOMASKED;
        let masks = if index == layout::PIN { masks } else { 0 };
        Some(InterruptInfo {
            argument_bytes: (size_of::<InterruptInfo>() as u32).into(),
            flags: (layout::INTERRUPT_EVENTFD | masks).into(),
            index: index.into(),
            count: (count as u32).into(),
        })
    }

    /// Which kind the client wants; the pin, if it did not say.
    pub(super) fn mode(&self) -> InterruptMode {
        match &self.kinds {
            [_, _, msix] if msix.on => InterruptMode::MsiX,
            [_, msi, _] if msi.on => InterruptMode::Msi,
            _ => InterruptMode::Pin,
        }
    }

    /// See [`BusMaster::vectors`](ssdyno_pci::BusMaster::vectors).
    pub(super) fn granted(&self) -> u16 {
        match self.mode() {
            InterruptMode::Pin => 1,
            InterruptMode::Msi => self.kinds[layout::MSI as usize].granted,
            InterruptMode::MsiX => u16::MAX,
        }
    }

    /// How many vectors of MSI are on, if any, and whether MSI-X is.
    pub(super) fn messages(&self) -> (Option<u16>, bool) {
        let msi = &self.kinds[layout::MSI as usize];
        let granted = msi.granted.max(1).next_power_of_two();
        (msi.on.then_some(granted), self.mode() == InterruptMode::MsiX)
    }

    /// What a client sets.
    pub(super) fn set(
        &mut self,
        asked: &SetInterrupts,
        data: &[u8],
        events: Vec<OwnedFd>,
    ) -> Result<(), Errno> {
        let (flags, start) = (asked.flags.get(), asked.start.get() as usize);
        let (count, action) = (asked.count.get() as usize, flags & layout::SET_ACTION);
        let kind = match self.kinds.get_mut(asked.index.get() as usize) {
            Some(kind) => kind,
            // Errors and requests: this server has none of them.
            None if asked.index.get() < layout::INTERRUPTS && count == 0 => return Ok(()),
            None => return Err(Errno::INVAL),
        };
        let end = start.checked_add(count).filter(|end| *end <= kind.lines.len());
        let end = end.ok_or(Errno::INVAL)?;
        let with_events = flags & layout::SET_DATA == layout::SET_DATA_EVENTFD;
        if !events.is_empty() && (!with_events || events.len() != count) {
            return Err(Errno::INVAL);
        }
        let meant: Vec<bool> = match flags & layout::SET_DATA {
            layout::SET_DATA_NONE => vec![true; count],
            layout::SET_DATA_BOOL if data.len() == count => data.iter().map(|b| *b != 0).collect(),
            layout::SET_DATA_EVENTFD if action == layout::SET_ACTION_TRIGGER => {
                kind.assign(start, end, events);
                self.switched();
                return Ok(());
            }
            // An eventfd that masks or unmasks.
            layout::SET_DATA_EVENTFD => return Err(Errno::NOTSUP),
            _ => return Err(Errno::INVAL),
        };
        match action {
            layout::SET_ACTION_TRIGGER if count == 0 => {
                kind.off();
                self.switched();
            }
            layout::SET_ACTION_TRIGGER | layout::SET_ACTION_MASK | layout::SET_ACTION_UNMASK => {
                let lines =
                    kind.lines[start..end].iter_mut().zip(meant).filter(|(_, meant)| *meant);
                lines.for_each(|(line, _)| self.sent += u64::from(line.act(action)));
                if asked.index.get() == layout::PIN && action == layout::SET_ACTION_UNMASK {
                    self.drive_pin();
                }
            }
            _ => return Err(Errno::INVAL),
        }
        Ok(())
    }

    /// Another kind may be on: what was on its way is dropped, as the pin is level triggered and drivers
    /// look when they have switched.
    fn switched(&mut self) {
        self.due.clear();
        self.drive_pin();
    }

    /// The device asks for `vector` at `at`.
    pub(super) fn raise(&mut self, at: Time, vector: u16) {
        let after = self.due.iter().rev().take_while(|(due, _)| *due > at).count();
        self.due.insert(self.due.len() - after, (at, vector));
    }

    /// The device releases the pin.
    pub(super) fn release(&mut self) {
        self.asserted = false;
        if self.mode() == InterruptMode::Pin {
            self.due.clear();
        }
    }

    pub(super) fn set_pin_off(&mut self, off: bool) {
        self.pin_off = off;
        self.drive_pin();
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.due.front().map(|(at, _)| *at)
    }

    /// Sends what is due by `now`.
    pub(super) fn send(&mut self, now: Time) {
        while let Some((_, vector)) = self.due.pop_front_if(|(at, _)| *at <= now) {
            let mode = self.mode();
            if mode == InterruptMode::Pin {
                self.asserted = true;
                self.drive_pin();
                continue;
            }
            let kind = if mode == InterruptMode::Msi { layout::MSI } else { layout::MSIX };
            // Messages of a vector that the client did not set up go nowhere.
            if let Some(line) = self.kinds[kind as usize].lines.get_mut(usize::from(vector)) {
                self.sent += u64::from(line.act(layout::SET_ACTION_TRIGGER));
            }
        }
    }

    /// A pin that is asserted interrupts once, and masks itself: unmasking asks again.
    fn drive_pin(&mut self) {
        let drives = self.asserted && !self.pin_off && self.mode() == InterruptMode::Pin;
        if let Some(line) = self.kinds[layout::PIN as usize].lines.first_mut()
            && drives
            && !line.masked
        {
            self.sent += u64::from(line.act(layout::SET_ACTION_TRIGGER));
            line.masked = true;
        }
    }

    /// The client is gone, and its eventfds with it.
    pub(super) fn forget_client(&mut self) {
        self.kinds.iter_mut().for_each(Kind::off);
        self.due.clear();
    }

    /// The device was reset: it requests no interrupt. Eventfds stay.
    pub(super) fn silence(&mut self) {
        self.due.clear();
        self.asserted = false;
        self.kinds
            .iter_mut()
            .flat_map(|kind| &mut kind.lines)
            .for_each(|line| line.pending = false);
    }
}

impl Kind {
    /// Lines from `start` to `end` get `events`, or lose theirs.
    fn assign(&mut self, start: usize, end: usize, events: Vec<OwnedFd>) {
        let mut events = events.into_iter();
        for line in &mut self.lines[start..end] {
            line.event = events.next();
            // It masks itself again only when it comes.
            line.masked = false;
        }
        self.on = start < end;
        self.granted = self.granted.max(end as u16);
    }

    fn off(&mut self) {
        (self.on, self.granted) = (false, 0);
        self.lines.fill_with(Line::default);
    }
}

impl Line {
    /// Masks, unmasks, or triggers; true if an interrupt was sent.
    fn act(&mut self, action: u32) -> bool {
        match action {
            layout::SET_ACTION_MASK => self.masked = true,
            layout::SET_ACTION_UNMASK => {
                self.masked = false;
                if std::mem::take(&mut self.pending) {
                    return self.signal();
                }
            }
            _ if self.masked => self.pending = true,
            _ => return self.signal(),
        }
        false
    }

    /// Adds 1 to the eventfd. One that a client has filled up would make us wait: it knows already.
    fn signal(&self) -> bool {
        let Some(event) = &self.event else { return false };
        let mut ready = [PollFd::new(event, PollFlags::OUT)];
        poll(&mut ready, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
            && write(event, &1_u64.to_ne_bytes()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::io::read;

    use super::*;

    const IDENTITY: Identity = Identity {
        vendor: 1,
        device: 2,
        class: 3,
        revision: 4,
        bar_bytes: [4096, 0, 0],
        msix_vectors: 3,
        msi_vectors: 2,
        interrupt_pin: 1,
    };

    struct Client {
        interrupts: Interrupts,
        events: Vec<OwnedFd>,
    }

    impl Client {
        fn new() -> Client {
            let event = || eventfd(0, EventfdFlags::NONBLOCK).unwrap();
            let events = (0..3).map(|_| event()).collect();
            Client { interrupts: Interrupts::new(&IDENTITY), events }
        }

        fn set(&mut self, index: u32, flags: u32, start: u32, count: u32) -> Result<(), Errno> {
            let asked = SetInterrupts {
                flags: flags.into(),
                index: index.into(),
                start: start.into(),
                count: count.into(),
                ..SetInterrupts::default()
            };
            let with = flags & layout::SET_DATA_EVENTFD != 0;
            let range = start as usize..(start + count).min(3) as usize;
            let events = self.events.get(range).filter(|_| with).unwrap_or_default();
            let events = events.iter().map(|event| event.try_clone().unwrap()).collect();
            self.interrupts.set(&asked, &[], events)
        }

        /// What came since the last call.
        fn came(&self) -> [u64; 3] {
            let mut came = [0; 3];
            for (came, event) in came.iter_mut().zip(&self.events) {
                let mut bytes = [0; 8];
                if read(event, &mut bytes).is_ok() {
                    *came = u64::from_ne_bytes(bytes);
                }
            }
            came
        }
    }

    const ON: u32 = layout::SET_DATA_EVENTFD | layout::SET_ACTION_TRIGGER;
    const OFF: u32 = layout::SET_DATA_NONE | layout::SET_ACTION_TRIGGER;
    const UNMASK: u32 = layout::SET_DATA_NONE | layout::SET_ACTION_UNMASK;

    #[test]
    fn messages_come_at_their_time_to_their_eventfd() {
        let mut client = Client::new();
        client.set(layout::MSIX, ON, 0, 3).unwrap();
        assert_eq!(client.interrupts.mode(), InterruptMode::MsiX);
        let us = Time::from_us;
        for (at, vector) in [(30, 2), (10, 0), (20, 0), (10, 7)] {
            client.interrupts.raise(us(at), vector);
        }
        client.interrupts.send(us(9));
        assert_eq!((client.came(), client.interrupts.next()), ([0, 0, 0], Some(us(10))));
        client.interrupts.send(us(20));
        assert_eq!((client.came(), client.interrupts.next()), ([2, 0, 0], Some(us(30))));
        client.set(layout::MSIX, layout::SET_DATA_NONE | layout::SET_ACTION_MASK, 2, 1).unwrap();
        client.interrupts.send(us(30));
        assert_eq!(client.came(), [0, 0, 0]);
        client.set(layout::MSIX, UNMASK, 2, 1).unwrap();
        assert_eq!((client.came(), client.interrupts.sent), ([0, 0, 1], 3));
        // Vectors may lose their eventfds, and all may be switched off.
        client.interrupts.kinds[2].assign(0, 3, Vec::new());
        client.interrupts.raise(us(40), 0);
        client.interrupts.send(us(40));
        assert_eq!(client.came(), [0, 0, 0]);
        client.set(layout::MSIX, OFF, 0, 0).unwrap();
        assert_eq!(client.interrupts.mode(), InterruptMode::Pin);
    }

    #[test]
    fn the_pin_is_a_level_that_masks_itself() {
        let mut client = Client::new();
        client.set(layout::PIN, ON, 0, 1).unwrap();
        for _ in 0..2 {
            client.interrupts.raise(Time::ZERO, 0);
            client.interrupts.send(Time::ZERO);
        }
        assert_eq!(client.came(), [1, 0, 0]);
        client.set(layout::PIN, UNMASK, 0, 1).unwrap();
        assert_eq!(client.came(), [1, 0, 0], "it is still asserted");
        client.interrupts.release();
        client.set(layout::PIN, UNMASK, 0, 1).unwrap();
        assert_eq!(client.came(), [0, 0, 0]);
        client.interrupts.set_pin_off(true);
        client.interrupts.raise(Time::ZERO, 0);
        client.interrupts.send(Time::ZERO);
        assert_eq!(client.came(), [0, 0, 0]);
        client.interrupts.set_pin_off(false);
        assert_eq!(client.came(), [1, 0, 0]);
    }

    #[test]
    fn a_client_can_trigger_and_a_full_eventfd_stops_nobody() {
        let mut client = Client::new();
        client.set(layout::MSI, ON, 0, 2).unwrap();
        assert_eq!(client.interrupts.granted(), 2);
        client.set(layout::MSI, OFF, 1, 1).unwrap();
        assert_eq!(client.came(), [0, 1, 0]);
        // A blocking one at its highest value.
        client.events[0] = eventfd(0, EventfdFlags::empty()).unwrap();
        write(&client.events[0], &(u64::MAX - 1).to_ne_bytes()).unwrap();
        client.set(layout::MSI, ON, 0, 2).unwrap();
        client.interrupts.raise(Time::ZERO, 0);
        client.interrupts.send(Time::ZERO);
    }

    #[test]
    fn what_cannot_be_set_is_refused() {
        let mut client = Client::new();
        for (index, flags, start, count) in [
            (layout::MSIX, ON, 1, 3),
            (layout::MSIX, ON, u32::MAX, 1),
            (layout::MSIX, OFF, 4, 0),
            (layout::PIN, ON, 0, 2),
            (3, ON, 0, 1),
            (5, OFF, 0, 0),
            (layout::MSI, layout::SET_DATA_BOOL | layout::SET_ACTION_TRIGGER, 0, 1),
            (layout::MSI, layout::SET_DATA_NONE, 0, 1),
            (layout::MSI, layout::SET_ACTION_TRIGGER, 0, 1),
            (layout::MSI, layout::SET_DATA_EVENTFD | layout::SET_ACTION_MASK, 0, 0),
        ] {
            let refused = if start == u32::MAX {
                let asked = SetInterrupts {
                    flags: flags.into(),
                    index: index.into(),
                    start: start.into(),
                    count: count.into(),
                    ..SetInterrupts::default()
                };
                client.interrupts.set(&asked, &[], Vec::new())
            } else {
                client.set(index, flags, start, count)
            };
            assert!(refused.is_err(), "kind {index}, flags {flags:#x}, {count} from {start}");
        }
        assert_eq!(client.interrupts.mode(), InterruptMode::Pin);
        assert_eq!(client.interrupts.info(layout::MSIX).map(|info| info.count.get()), Some(3));
        assert_eq!(client.interrupts.info(4).map(|info| info.count.get()), Some(0));
        assert_eq!(client.interrupts.info(5), None);
    }
}
