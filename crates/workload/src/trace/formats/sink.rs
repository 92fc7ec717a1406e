//! Where readers put what they found.

use std::collections::{BTreeMap, VecDeque};

use ssdyno_block::{Op, counted};

use super::super::number::Fault;
use super::reader::Record;

/// The output of a reader: its requests, and the skipped lines.
pub(crate) struct Sink {
    pub(crate) records: VecDeque<Record>,
    /// Reasons in the order of their first use, with how often.
    skipped: Vec<(&'static str, u64)>,
    /// The devices wanted; empty for all.
    filter: Vec<String>,
    /// Names of the devices that were met, the first few.
    devices: Vec<String>,
    more_devices: bool,
    /// The device of the previous line, which is usually the device of this line.
    latest: (String, String),
    /// Positions of the devices that are wanted, in the order of their first request; `None` if
    /// they are not needed.
    positions: Option<BTreeMap<String, u64>>,
    /// Position of the latest device.
    position: u64,
    /// Whether the latest device is wanted.
    wanted: bool,
}

/// So many devices are named in notes.
const NAMED_MOST: usize = 8;

impl Sink {
    /// `positions`: the position of each device is asked for.
    pub(crate) fn new(filter: Vec<String>, positions: bool) -> Sink {
        Sink {
            records: VecDeque::with_capacity(4),
            skipped: Vec::new(),
            filter,
            devices: Vec::new(),
            more_devices: false,
            latest: Default::default(),
            positions: positions.then(BTreeMap::new),
            position: 0,
            wanted: true,
        }
    }

    /// A line was passed over.
    pub(super) fn skip(&mut self, reason: &'static str) {
        match self.skipped.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => self.skipped.push((reason, 1)),
        }
    }

    /// Whether the device `name` of `host` (empty where the format has none) is wanted.
    pub(super) fn wants(&mut self, host: &str, name: &str) -> bool {
        let (latest_host, latest) = &self.latest;
        // Neighbouring lines mostly have the same device. The comparison with the last one avoids
        // building a name and a lookup per line.
        if self.devices.is_empty() || latest != name || latest_host != host {
            self.meet(host, name);
        }
        if !self.wanted {
            self.skip("another device");
        }
        self.wanted
    }

    /// Another device than before.
    fn meet(&mut self, host: &str, name: &str) {
        self.latest = (host.to_owned(), name.to_owned());
        let device = if host.is_empty() { name.to_owned() } else { format!("{host}.{name}") };
        let named = |filter: &String| {
            *filter == device || filter == name || (!host.is_empty() && filter == host)
        };
        self.wanted = self.filter.is_empty() || self.filter.iter().any(named);
        if self.devices.contains(&device) {
            // The list is for messages only and stays short. Cloud traces have thousands of volumes,
            // and a linear search over all of them would be slow.
        } else if self.devices.len() < NAMED_MOST {
            self.devices.push(device.clone());
        } else {
            self.more_devices = true;
        }
        if let Some(positions) = self.positions.as_mut().filter(|_| self.wanted) {
            // The order of first appearance gives each device its slot. It does not depend on the
            // names, so a trace with renamed volumes is laid out in the same way.
            let next = positions.len() as u64;
            self.position = *positions.entry(device).or_insert(next);
        }
    }

    /// The devices of the trace so far, for messages.
    pub(crate) fn devices(&self) -> String {
        let names = self.devices.join(", ");
        if self.more_devices { format!("{names}, …") } else { names }
    }

    /// A request with data. Its length must be above 0.
    pub(super) fn push(
        &mut self,
        time_ps: u128,
        op: Op,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), Fault> {
        // A request without data would complete at once and count as an I/O. It would raise IOPS
        // without any work of the device.
        if length_bytes == 0 {
            let what = format!("a {} of zero length", op.name());
            return Err(Fault::new(what, "correct or remove the line"));
        }
        let record = Record {
            time_ps,
            op,
            offset_bytes,
            length_bytes,
            device: self.position,
            object: false,
        };
        self.records.push_back(record);
        Ok(())
    }

    /// The same for an object that lies at `offset_bytes`. One without a size is passed over, as
    /// libCacheSim does.
    pub(super) fn push_object(
        &mut self,
        time_ps: u128,
        op: Op,
        offset_bytes: u64,
        length_bytes: u64,
    ) {
        if length_bytes == 0 {
            return self.skip("objects without a size");
        }
        let record =
            Record { time_ps, op, offset_bytes, length_bytes, device: self.position, object: true };
        self.records.push_back(record);
    }

    pub(super) fn flush(&mut self, time_ps: u128) {
        let (offset_bytes, length_bytes) = (0, 0);
        let (op, device) = (Op::Flush, self.position);
        let record = Record { time_ps, op, offset_bytes, length_bytes, device, object: false };
        self.records.push_back(record);
    }

    /// The skipped lines, and the devices of the trace. `unit` is what the trace is made of.
    pub(crate) fn notes(&self, unit: &str, out: &mut Vec<String>) {
        for (reason, count) in &self.skipped {
            let many = format!("trace {unit}s");
            out.push(format!(
                "{} skipped: {reason}",
                counted(*count, &format!("trace {unit}"), &many)
            ));
        }
        if let Some(positions) = &self.positions {
            let mut order: Vec<_> =
                positions.iter().map(|(name, at)| (*at, name.as_str())).collect();
            order.sort_unstable();
            let more = if order.len() > NAMED_MOST { ", …" } else { "" };
            let names: Vec<_> = order.iter().take(NAMED_MOST).map(|(_, name)| *name).collect();
            out.push(format!(
                "the {} devices of the trace lie one after the other on the target, as set by \
                 `trace.slot` ({}{more})",
                order.len(),
                names.join(", "),
            ));
        } else if self.filter.is_empty() && self.devices.len() > 1 {
            out.push(format!(
                "the trace has several devices ({}); all were replayed to the same addresses \
                 (`trace.device` selects devices, `trace.slot` gives each its own range)",
                self.devices()
            ));
        }
    }
}
