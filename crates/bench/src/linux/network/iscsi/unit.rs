//! The description of a logical unit, read before the load.

use std::time::Duration;

use ssdyno_spec::scsi::{mode, vpd};

use super::cdb::{self, Cdb, Shape};
use super::conversation::Conversation;
use super::sense::Ended;
use super::tasks::Unit;
use crate::network::protocol::{Facts, Talk, Trouble};

/// Longest request to a unit that reports no limit.
const MOST_BYTES_UNTOLD: u64 = 32 << 20;

/// Most blocks of commands with addresses of 32 bits.
const SHORT_BLOCKS_MOST: u64 = 0xffff;

/// Bytes that are read of a page.
const PAGE_BYTES: u16 = 255;

/// How often a command is sent again: a unit has more than one thing to say after power on, and becomes ready.
const TRIES_MOST: u32 = 50;

/// How long a unit is left alone that is becoming ready.
const PAUSE: Duration = Duration::from_millis(100);

/// The value of the field LUN of messages for the unit `number` (SAM-5, 4.7).
pub(crate) fn lun(number: u16) -> [u8; 8] {
    let [high, low] = number.to_be_bytes();
    // Peripheral device addressing up to 255, flat space addressing beyond.
    let high = if number < 256 { 0 } else { high | 0x40 };
    [high, low, 0, 0, 0, 0, 0, 0]
}

/// A conversation about one unit.
struct Questions<'a, 'b> {
    conversation: &'a mut Conversation<'b>,
    lun: [u8; 8],
}

impl Questions<'_, '_> {
    /// Repeats the command until the unit has no other condition to report.
    fn ask(&mut self, cdb: &Cdb, bytes: u32) -> Talk<(Ended, Vec<u8>)> {
        let mut answer = self.conversation.ask(self.lun, cdb, bytes)?;
        for _ in 1..TRIES_MOST {
            // A unit that has just been found reports unit attentions and may still become
            // ready. Both pass by themselves, so the question is repeated and the run does not
            // fail.
            if answer.0.is_passing() {
                std::thread::sleep(PAUSE);
            } else if !answer.0.is_attention() {
                break;
            }
            answer = self.conversation.ask(self.lun, cdb, bytes)?;
        }
        Ok(answer)
    }

    /// As [`ask`](Questions::ask), for what must be answered with `least` bytes or more.
    fn need(&mut self, what: &str, cdb: &Cdb, bytes: u32, least: usize) -> Talk<Vec<u8>> {
        let (ended, data) = self.ask(cdb, bytes)?;
        if !ended.is_good() {
            let what = format!("{what} failed: {}", ended.words());
            return Err(Trouble::new(what, "look at the target's log and at its device"));
        }
        if data.len() < least {
            return Err(Trouble::protocol(format!("{} B in response to {what}", data.len())));
        }
        Ok(data)
    }

    /// A page of vital product data, where there is one, as long as it should be at least.
    fn page(&mut self, page: u8) -> Talk<Option<[u8; 64]>> {
        let (ended, data) = self.ask(&cdb::inquiry(Some(page), PAGE_BYTES), PAGE_BYTES.into())?;
        let fits = ended.is_good() && data.len() >= 8 && data[1] == page;
        let mut whole = [0; 64];
        let length = data.len().min(64);
        whole[..length].copy_from_slice(&data[..length]);
        Ok(fits.then_some(whole))
    }

    /// The units of the target, for a user who named none of them.
    fn others(&mut self) -> Option<String> {
        let (ended, data) = self.conversation.ask([0; 8], &cdb::report_luns(2048), 2048).ok()?;
        let entries = data.get(8..)?.chunks_exact(8).take(16);
        let numbers =
            entries.map(|lun| (u16::from(lun[0] & 0x3f) << 8 | u16::from(lun[1])).to_string());
        let numbers: Vec<String> = numbers.collect();
        (ended.is_good() && !numbers.is_empty()).then(|| numbers.join(", "))
    }

    /// Vendor and product of a disk that is there.
    fn identity(&mut self, number: u16) -> Talk<String> {
        let data = self.need("INQUIRY", &cdb::inquiry(None, 96), 96, 5)?;
        let (qualifier, kind) = (data[0] >> 5, data[0] & 0x1f);
        if qualifier != 0 {
            let help = match self.others() {
                Some(others) => format!("name one of its units: {others}"),
                None => "look at the target's configuration".to_owned(),
            };
            return Err(Trouble { what: format!("the target has no unit {number}"), help });
        }
        if kind != 0 {
            return Err(Trouble::new(
                format!("the unit {number} is not a disk but a device of type {kind:#04x}"),
                "name a unit that is a disk",
            ));
        }
        let text =
            |range| String::from_utf8_lossy(data.get(range).unwrap_or(&[])).trim().to_owned();
        let clean = |text: String| text.replace(|c: char| c.is_control(), "?");
        Ok(format!("{} {}", clean(text(8..16)), clean(text(16..32))).trim().to_owned())
    }

    /// Blocks, their size, whether commands are long, and whether it is thin.
    fn capacity(&mut self) -> Talk<(u64, Shape, bool)> {
        // The long form comes first: the short one cannot name more than 2^32 blocks, and only the
        // long one shows whether the unit is thin.
        let (ended, data) = self.ask(&cdb::read_capacity_16(32), 32)?;
        if ended.is_good() && data.len() >= 12 {
            let last = word(&data, 0) << 32 | word(&data, 4);
            let thin = data.get(14).is_some_and(|byte| byte & 0x80 != 0);
            let shape = Shape { block_bytes: word(&data, 8) as u32, long: true };
            return Ok((last.saturating_add(1), shape, thin));
        }
        // Of before SBC-2, or smaller than 2 TiB and simple.
        let data = self.need("READ CAPACITY", &cdb::read_capacity_10(), 8, 8)?;
        let (blocks, shape) = short_capacity(&data, &ended)?;
        Ok((blocks, shape, false))
    }

    /// Whether it is protected, has FUA, and whether its cache is on; `None` where it does not tell.
    fn modes(&mut self) -> Talk<(bool, bool, Option<bool>)> {
        let (ended, data) = self.ask(&cdb::mode_sense(mode::CACHING, 255), 255)?;
        if !ended.is_good() || data.len() < 4 {
            return Ok((false, false, None));
        }
        let page = data.get(4 + usize::from(data[3])..).unwrap_or(&[]);
        let is_caching = page.len() >= 3 && page[0] & 0x3f == mode::CACHING;
        let cached = is_caching.then(|| page[2] & mode::CACHING_WCE != 0);
        let flag = |flag| data[2] & flag != 0;
        Ok((flag(mode::DEVICE_SPECIFIC_WP), flag(mode::DEVICE_SPECIFIC_DPOFUA), cached))
    }
}

/// The big-endian number of four bytes at `at`.
fn word(data: &[u8], at: usize) -> u64 {
    data[at..at + 4].iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Blocks and their size, from the answer to READ CAPACITY (10) of a unit whose long form ended as `long`.
fn short_capacity(data: &[u8], long: &Ended) -> Talk<(u64, Shape)> {
    let last = word(data, 0);
    // The largest number is not an address: it means that the capacity does not fit here, and that
    // the long form contains it (SBC-3, clause 5.15).
    if last == u64::from(u32::MAX) {
        let why = format!(
            "the unit has too many blocks for READ CAPACITY (10), and READ CAPACITY (16) failed: {}",
            long.words()
        );
        return Err(Trouble::new(why, "look at the target's log and at its device"));
    }
    Ok((last + 1, Shape { block_bytes: word(data, 4) as u32, long: false }))
}

/// Asks the unit `number` what it is.
pub(crate) fn look(
    conversation: &mut Conversation<'_>,
    target: &str,
    number: u16,
) -> Talk<(Unit, Facts)> {
    let lun = lun(number);
    let mut questions = Questions { conversation, lun };
    let identity = questions.identity(number)?;
    questions.need("TEST UNIT READY", &cdb::test_unit_ready(), 0, 0)?;
    let (blocks, shape, thin) = questions.capacity()?;
    let block = u64::from(shape.block_bytes);
    let size = blocks.checked_mul(block).filter(|bytes| i64::try_from(*bytes).is_ok());
    let Some(size_bytes) = size else {
        return Err(Trouble::protocol(format!("a unit of {blocks} blocks of {block} B")));
    };
    if !block.is_power_of_two() || !(512..=1 << 16).contains(&block) {
        return Err(Trouble::new(
            format!("the unit has blocks of {block} B"),
            "name a unit with a block size that is a power of two from 512 B to 64 KiB",
        ));
    }
    let field = |page: Option<[u8; 64]>, at: usize| {
        let page = page.unwrap_or([0; 64]);
        u64::from(u32::from_be_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]))
    };
    // The limits are asked for and obeyed. A request that is too long would fail in the target,
    // and the figures would be those of failures.
    let limits = questions.page(vpd::BLOCK_LIMITS)?;
    let most = match field(limits, 8) * block {
        0 => MOST_BYTES_UNTOLD,
        most => most.min(1 << 30),
    };
    let most = if shape.long { most } else { most.min(SHORT_BLOCKS_MOST * block) };
    let unmaps = thin && questions.page(vpd::PROVISIONING)?.is_some_and(|page| page[5] & 0x80 != 0);
    let unmap_bytes = if unmaps { field(limits, 20) * block } else { 0 };
    let (read_only, fua, cached) = questions.modes()?;
    let unit = Unit { lun, shape, most_bytes: most as u32, unmap_bytes };
    let has: Vec<&str> = [
        (read_only, "read-only"),
        (fua, "FUA"),
        (unmap_bytes > 0, "unmap"),
        (cached == Some(true), "its write cache is on"),
        (cached == Some(false), "its write cache is off"),
        (!shape.long, "commands of 10 bytes"),
    ]
    .into_iter()
    .filter_map(|(is, name)| is.then_some(name))
    .collect();
    let notes = vec![format!(
        "iSCSI unit `{target}/{number}`: {identity}; {}; blocks of {block} B, requests of at most {most} B; latencies include the network and the target",
        if has.is_empty() { "no FUA, no unmap".to_owned() } else { has.join(", ") }
    )];
    let facts = Facts {
        size_bytes,
        sector_bytes: shape.block_bytes,
        most_bytes: most as u32,
        read_only,
        fua,
        // SYNCHRONIZE CACHE is for the logical unit, whoever wrote.
        shares_flushes: true,
        notes,
    };
    Ok((unit, facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_capacity_may_say_that_it_is_too_short() {
        let failed = Ended::Status(0x28);
        let (blocks, shape) =
            short_capacity(&[0xff, 0xff, 0xff, 0xfe, 0, 0, 2, 0], &failed).unwrap();
        assert_eq!((blocks, shape.block_bytes, shape.long), (u32::MAX.into(), 512, false));
        let trouble = short_capacity(&[0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0], &failed).unwrap_err();
        assert!(trouble.what.contains("too many blocks"), "{trouble:?}");
        assert!(trouble.what.contains(&failed.words()), "{trouble:?}");
    }
}
