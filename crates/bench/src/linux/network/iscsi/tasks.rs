//! Requests as SCSI commands of one session in its full-feature phase (RFC 7143, clauses 4 and 11).

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use ssdyno_block::{Op, Request, counted};
use ssdyno_spec::iscsi::{BHS_BYTES, FINAL, NO_TAG, READ, STATUS, UNDERFLOW, WRITE};
use ssdyno_spec::iscsi::{event, opcode};

use super::cdb::{Shape, UNMAP_BYTES};
use super::conversation::Conversation;
use super::login::Parameters;
use super::pdu::{Header, Numbers, farewell};
use super::sense::Ended;
use crate::engine::Outcome;
use crate::network::protocol::{Outbox, Piece, Protocol};
use crate::network::stream::Stream;

/// Bits of a tag that are the slot; the others count, so that a second answer to a command is told from the answer to
/// the next one of its slot.
const SLOT_BITS: u32 = 20;

/// How often a command is sent again that met a unit attention: each tells of one event, and events are few.
const ATTENTIONS_MOST: u32 = 8;

/// How long a command waits before it is sent again to a unit that had no room for it: at first, and at most. Each time
/// twice as long: a queue that stays full is not made longer by asking.
const PAUSE_FIRST: Duration = Duration::from_millis(1);
const PAUSE_MOST: Duration = Duration::from_millis(128);

/// How long a command is sent again to a unit that has no room: a unit that is reset, or moves to another controller,
/// takes seconds.
const BUSY_MOST: Duration = Duration::from_secs(5);

/// Kinds of remarks that are kept.
const REMARKS_MOST: usize = 16;

/// The limits of a session and its logical unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unit {
    pub(crate) lun: [u8; 8],
    pub(crate) shape: Shape,
    /// Most bytes of a read or write.
    pub(crate) most_bytes: u32,
    /// The largest number of bytes in one UNMAP; 0 if it supports none.
    pub(crate) unmap_bytes: u64,
}

/// A request without an answer.
#[derive(Clone, Copy, Debug)]
struct Task {
    request: Request,
    /// `None` while the target takes no more commands.
    tag: Option<u32>,
    received: usize,
    attentions: u32,
    /// When the unit had no room for it first, and how long it waits the next time.
    refused: Option<(Instant, Duration)>,
}

impl Task {
    /// Bytes from us.
    fn out_bytes(&self) -> usize {
        match self.request.op {
            Op::Write => self.request.length_bytes as usize,
            Op::Trim => UNMAP_BYTES,
            Op::Read | Op::Flush => 0,
        }
    }

    /// Bytes to us.
    fn in_bytes(&self) -> usize {
        if self.request.op == Op::Read { self.request.length_bytes as usize } else { 0 }
    }
}

/// The requests of one session.
#[derive(Debug)]
pub(crate) struct Tasks {
    unit: Unit,
    parameters: Parameters,
    numbers: Numbers,
    /// Writes are durable when they complete.
    fua: bool,
    /// By slot.
    tasks: Vec<Option<Task>>,
    /// Slots whose commands the target does not take yet.
    waiting: VecDeque<u32>,
    /// Slots whose commands the unit had no room for, and when they are sent again.
    later: Vec<(Instant, u32)>,
    /// Commands so far.
    count: u32,
    /// Padding that follows the data being received.
    padding: usize,
    /// How often, and of which request first.
    remarks: BTreeMap<String, (u64, Option<Request>)>,
}

impl Tasks {
    pub(crate) fn new(unit: Unit, parameters: Parameters, numbers: Numbers) -> Tasks {
        Tasks {
            unit,
            parameters,
            numbers,
            fua: false,
            tasks: Vec::new(),
            waiting: VecDeque::new(),
            later: Vec::new(),
            count: 0,
            padding: 0,
            remarks: BTreeMap::new(),
        }
    }

    fn remark(&mut self, words: String, request: Option<Request>) {
        if self.remarks.len() < REMARKS_MOST || self.remarks.contains_key(&words) {
            self.remarks.entry(words).or_insert((0, request)).0 += 1;
        }
    }

    /// Sends the commands that the target takes by now.
    fn start(&mut self, out: &mut Outbox) {
        // A target says with each answer how many commands it takes (RFC 7143, clause 4.2.2). A
        // command beyond the window would be dropped without a response, and the request would
        // hang.
        while self.numbers.window() > 0
            && let Some(slot) = self.waiting.pop_front()
        {
            self.command(slot, out);
        }
    }

    fn command(&mut self, slot: u32, out: &mut Outbox) {
        let Some(task) = self.tasks.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        self.count = self.count.wrapping_add(1);
        // Never NO_TAG: its slot would be 2^20 - 1, which is refused.
        let tag = self.count << SLOT_BITS | slot;
        (task.tag, task.received) = (Some(tag), 0);
        let task = *task;
        let cdb = self.unit.shape.command(&task.request, self.fua);
        let mut header = self.numbers.command(self.unit.lun, tag, &cdb);
        let Parameters { immediate, segment_bytes, first_burst_bytes, initial_r2t, .. } =
            self.parameters;
        let length = task.out_bytes();
        // Data that goes with the command spares the target a question and the command a round
        // trip. How much may go, and in which messages, was agreed on at login.
        let first = length.min(first_burst_bytes);
        let at_once = if immediate { first.min(segment_bytes) } else { 0 };
        let unasked = if initial_r2t { at_once } else { first };
        let direction = match (task.in_bytes(), length) {
            (0, 0) => 0,
            (0, _) => WRITE,
            _ => READ,
        };
        // The F bit ends a burst. If more unasked data follows, it is in messages of its own,
        // and the last of them has the bit.
        let is_final = if at_once == unasked { FINAL } else { 0 };
        // Bits 2:0: simple task.
        header.0[1] = is_final | direction | 1;
        header.set(20, task.in_bytes().max(length) as u32);
        self.put(slot, header, 0..at_once, out);
        if at_once < unasked {
            self.data_out(slot, NO_TAG, at_once..unasked, out);
        }
    }

    /// One burst of the data of the task in `slot`, for the target's `transfer` tag.
    fn data_out(&self, slot: u32, transfer: u32, burst: Range<usize>, out: &mut Outbox) {
        let Some(Task { tag: Some(tag), .. }) = self.tasks[slot as usize] else { return };
        let starts = burst.clone().step_by(self.parameters.segment_bytes);
        for (number, from) in starts.enumerate() {
            let to = burst.end.min(from + self.parameters.segment_bytes);
            let mut header = Header::new(opcode::DATA_OUT);
            header.0[1] = if to == burst.end { FINAL } else { 0 };
            header.0[8..16].copy_from_slice(&self.unit.lun);
            header.set(16, tag);
            header.set(20, transfer);
            header.set(28, self.numbers.status);
            // DataSN counts from 0 in each burst (RFC 7143, clause 11.7). Targets check it, and
            // a gap is a protocol error.
            header.set(36, number as u32);
            header.set(40, from as u32);
            self.put(slot, header, from..to, out);
        }
    }

    /// One message with this part of the data of the task in `slot`.
    fn put(&self, slot: u32, mut header: Header, part: Range<usize>, out: &mut Outbox) {
        let bytes = part.len();
        header.set_data_bytes(bytes);
        let request = self.tasks[slot as usize].map(|task| task.request);
        match request.filter(|request| request.op == Op::Trim) {
            Some(trim) => {
                let data = &self.unit.shape.unmap(&trim)[part];
                out.push(Some(slot), &[&header.0, data].concat(), 0..0);
            }
            None => out.push(Some(slot), &header.0, part),
        }
        // Data segments are padded to whole words. The padding is a message of its own in the
        // outbox, because the data is not copied.
        if !bytes.is_multiple_of(4) {
            out.push(Some(slot), &[0; 3][..4 - bytes % 4], 0..0);
        }
    }

    /// The slot of an answer, and its task.
    fn find(&self, header: &Header) -> Result<(u32, Task), String> {
        let tag = header.word(16);
        let slot = tag & ((1 << SLOT_BITS) - 1);
        let task = self.tasks.get(slot as usize).copied().flatten();
        // A tag carries the count of the command. A second answer to an older command of the
        // slot has another count and does not end the present one.
        let task = task.filter(|task| task.tag == Some(tag)).ok_or_else(|| {
            let kind = header.opcode();
            format!(
                "the target answered a command that was not sent, or answered it twice (kind {kind:#04x}, \
                 tag {tag:#x})"
            )
        })?;
        Ok((slot, task))
    }

    /// The command in `slot` has ended; its outcome, unless it is sent again.
    fn end(
        &mut self,
        (slot, task): (u32, Task),
        ended: Ended,
        residual: usize,
        out: &mut Outbox,
    ) -> Option<(u32, Outcome)> {
        let request = task.request;
        // The unit has no room now; the request has not failed. It is sent again, and its
        // latency includes the wait, as it does for every other initiator.
        if ended.is_for_later() && self.is_put_off((slot, task), ended, Instant::now()) {
            return None;
        }
        if ended != Ended::Good {
            self.remark(format!("{}: {}", request.op.name(), ended.words()), Some(request));
        }
        // A unit attention tells of an event before the command, which was not carried out. The
        // same command succeeds the next time. The limit ends a target that reports events
        // without end.
        if ended.is_attention() && task.attentions < ATTENTIONS_MOST {
            let attentions = task.attentions + 1;
            self.tasks[slot as usize] = Some(Task { tag: None, attentions, ..task });
            self.waiting.push_back(slot);
            self.start(out);
            return None;
        }
        self.tasks[slot as usize] = None;
        let outcome = match request.op {
            _ if !ended.is_good() => -ended.errno(),
            Op::Read => task.received as Outcome,
            Op::Write => task.out_bytes().saturating_sub(residual) as Outcome,
            Op::Trim | Op::Flush => 0,
        };
        Some((slot, outcome))
    }

    /// Whether the command in `slot`, for which the unit has no room `now`, is sent again; else it has waited long enough.
    fn is_put_off(&mut self, (slot, task): (u32, Task), ended: Ended, now: Instant) -> bool {
        let (first, pause) = task.refused.unwrap_or((now, PAUSE_FIRST));
        if now.duration_since(first) >= BUSY_MOST {
            return false;
        }
        let words = format!(
            "{}: {}; the command was sent again, and its latency includes the retries",
            task.request.op.name(),
            ended.words()
        );
        self.remark(words, Some(task.request));
        // The pause doubles: asking a full queue more often does not empty it, and it would load
        // the target that is being measured.
        let refused = Some((first, (pause * 2).min(PAUSE_MOST)));
        self.tasks[slot as usize] = Some(Task { tag: None, refused, ..task });
        self.later.push((now + pause, slot));
        true
    }

    /// Sends again what is due at `now`.
    fn send_again(&mut self, now: Instant, out: &mut Outbox) {
        let waiting = &mut self.waiting;
        self.later.retain(|(due, slot)| {
            let is_due = *due <= now;
            if is_due {
                waiting.push_back(*slot);
            }
            !is_due
        });
        self.start(out);
    }

    fn data_in(&mut self, header: &Header, out: &mut Outbox) -> Result<Piece, String> {
        let (slot, mut task) = self.find(header)?;
        let (from, bytes) = (header.word(40) as usize, header.data_bytes());
        // DataPDUInOrder was agreed on, so data comes without gaps. A gap would leave bytes in
        // the buffer that were never received.
        if from != task.received || from + bytes > task.in_bytes() {
            let most = task.in_bytes();
            let (end, next) = (from + bytes, task.received);
            return Err(match from == next {
                true => format!("the target sent data up to byte {end}, but the read has {most} B"),
                false => {
                    format!("the target sent data out of order: byte {from} instead of {next}")
                }
            });
        }
        task.received += bytes;
        self.tasks[slot as usize] = Some(task);
        self.padding = bytes.next_multiple_of(4) - bytes;
        let ended = if header.flags() & STATUS != 0 {
            self.end((slot, task), Ended::of(0, header.0[3], &[]), 0, out)
        } else {
            None
        };
        Ok(Piece {
            header_bytes: header.head_bytes(),
            data: Some((slot, from..from + bytes)),
            ended,
        })
    }

    fn ready_to_transfer(&mut self, header: &Header, out: &mut Outbox) -> Result<(), String> {
        let (slot, task) = self.find(header)?;
        let (from, bytes) = (header.word(40) as usize, header.word(44) as usize);
        if bytes == 0 || bytes > self.parameters.burst_bytes || from + bytes > task.out_bytes() {
            let most = task.out_bytes();
            return Err(format!("the target asked for {bytes} B at byte {from} of {most}"));
        }
        self.data_out(slot, header.word(20), from..from + bytes, out);
        Ok(())
    }

    /// The target does not take a message, whose header `data` begins with.
    fn rejected(&mut self, reason: u8, data: &[u8]) -> Result<Option<(u32, Outcome)>, String> {
        let what = match reason {
            0x02 => "wrong digest",
            0x04 => "protocol error",
            0x05 => "command not supported",
            0x06 => "too many immediate commands",
            0x07 => "task in progress",
            0x09 => "invalid field",
            0x0a => "long operation",
            0x0c => "waiting for logout",
            _ => "unknown reason",
        };
        let words = format!("the target rejects a message: {what} ({reason:#04x})");
        let Some(bad) = data.first_chunk::<BHS_BYTES>().map(|bytes| Header(*bytes)) else {
            return Err(words);
        };
        // A report on a part of a command is followed by the end of the command.
        if bad.opcode() != opcode::SCSI_COMMAND {
            self.remark(words, None);
            return Ok(None);
        }
        let (slot, task) = self.find(&bad)?;
        self.remark(words, Some(task.request));
        self.tasks[slot as usize] = None;
        Ok(Some((slot, -libc::EPROTO)))
    }

    /// The target says something by itself.
    fn told(&mut self, header: &Header, data: &[u8]) -> Result<(), String> {
        if let Some(why) = farewell(header) {
            return Err(why.to_owned());
        }
        let told = match header.0[36] {
            event::SCSI => {
                let words = Ended::of(0, ssdyno_spec::scsi::status::CHECK_CONDITION, data).words();
                format!("the target reports: {words}")
            }
            code => format!("the target sends an event of kind {code:#04x}"),
        };
        self.remark(told, None);
        Ok(())
    }

    fn message(&mut self, header: &Header, data: &[u8], out: &mut Outbox) -> Result<Piece, String> {
        let mut ended = None;
        match header.opcode() {
            opcode::SCSI_RESPONSE => {
                let found = self.find(header)?;
                let residual = if header.flags() & UNDERFLOW != 0 { header.word(44) } else { 0 };
                let how = Ended::of(header.0[2], header.0[3], data);
                ended = self.end(found, how, residual as usize, out);
            }
            opcode::READY_TO_TRANSFER => self.ready_to_transfer(header, out)?,
            opcode::NOP_IN => {
                if let Some(pong) = self.numbers.pong(header) {
                    out.push(None, &pong.0, 0..0);
                }
            }
            opcode::ASYNC_MESSAGE => self.told(header, data)?,
            opcode::REJECT => ended = self.rejected(header.0[2], data)?,
            kind => return Err(format!("the target sent a message of kind {kind:#04x}")),
        }
        Ok(Piece { header_bytes: header.whole_bytes(), data: None, ended })
    }
}

impl Protocol for Tasks {
    fn prepare(&mut self, slots: u32, fua: bool) {
        (self.fua, self.tasks) = (fua, vec![None; slots as usize]);
        self.waiting.clear();
        self.later.clear();
    }

    fn encode(&mut self, slot: u32, request: &Request, out: &mut Outbox) -> Result<(), Outcome> {
        let length = request.length_bytes;
        match request.op {
            Op::Trim if self.unit.unmap_bytes == 0 => return Err(-libc::EOPNOTSUPP),
            Op::Trim if u64::from(length) > self.unit.unmap_bytes => return Err(-libc::EINVAL),
            Op::Read | Op::Write if length > self.unit.most_bytes => return Err(-libc::EINVAL),
            _ if slot >= (1 << SLOT_BITS) - 1 => return Err(-libc::EINVAL),
            _ => {}
        }
        let request = *request;
        let task = Task { request, tag: None, received: 0, attentions: 0, refused: None };
        self.tasks[slot as usize] = Some(task);
        self.waiting.push_back(slot);
        self.start(out);
        Ok(())
    }

    fn decode(&mut self, received: &[u8], out: &mut Outbox) -> Result<Option<Piece>, String> {
        let Some(rest) = received.get(self.padding..) else { return Ok(None) };
        let Some(bytes) = rest.first_chunk::<BHS_BYTES>() else { return Ok(None) };
        let header = Header(*bytes).checked()?;
        let is_data = header.opcode() == opcode::DATA_IN;
        // The data of a read is not waited for: it goes to its place as it comes. Other messages
        // are short and are looked at as a whole.
        let wanted = if is_data { header.head_bytes() } else { header.whole_bytes() };
        if rest.len() < wanted {
            return Ok(None);
        }
        let padding = std::mem::take(&mut self.padding);
        self.numbers.hear(&header);
        let mut piece = if is_data {
            self.data_in(&header, out)?
        } else {
            let from = header.head_bytes();
            self.message(&header, &rest[from..from + header.data_bytes()], out)?
        };
        // The answer may have opened the window. Commands that waited for it go out with the
        // next call.
        self.start(out);
        piece.header_bytes += padding;
        Ok(Some(piece))
    }

    fn due(&self) -> Option<Instant> {
        self.later.iter().map(|(due, _)| *due).min()
    }

    fn resume(&mut self, out: &mut Outbox) {
        if !self.later.is_empty() {
            self.send_again(Instant::now(), out);
        }
    }

    fn is_alive(&mut self, stream: &mut Stream, _arrived: bool, deadline: Instant) -> bool {
        let mut conversation = Conversation { stream, deadline, numbers: self.numbers };
        let answered = conversation.ping().is_ok();
        self.numbers = conversation.numbers;
        answered
    }

    fn goodbye(&mut self) -> Vec<u8> {
        self.numbers.logout().0.to_vec()
    }

    fn remarks(&mut self) -> Vec<String> {
        let told = |(words, (count, first)): (String, (u64, Option<Request>))| {
            let first = first.map_or(String::new(), |r| {
                format!("; first of {} B at byte {}", r.length_bytes, r.offset_bytes)
            });
            format!("{words} ({}{first})", counted(count, "time", "times"))
        };
        std::mem::take(&mut self.remarks).into_iter().map(told).collect()
    }
}

#[cfg(test)]
mod tests;
