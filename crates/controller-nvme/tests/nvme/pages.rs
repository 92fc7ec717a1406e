//! Physical region pages (base 2.0c, clause 4.1.1) compared with a walk of a few lines: every byte goes to the place
//! that the entries define, for any offsets, lists and chains.

use proptest::prelude::*;
use ssdyno_pci::DmaDirection;
use ssdyno_spec::nvme::{NvmeStatus, SubmissionEntry, nvm, registers};

use crate::support::{BASE, DATA, FixedTime, Host, host, transfer};

/// Most data of a command here: 64 KiB.
const LIMIT: u64 = 64 << 10;
/// Where lists are put: 1 MiB, behind the data pages.
const LISTS: u64 = BASE + (5 << 20);

/// One transfer: pages by number in 2 MiB from [`DATA`] on, and where its list lies.
#[derive(Clone, Debug)]
struct Layout {
    /// CC.MPS.
    page_shift: u32,
    /// Of the first page, in dwords.
    offset: u64,
    blocks: u32,
    pages: Vec<u64>,
    /// Qwords before the list in its page.
    list_at: u64,
    /// Pages of the list, by number in its area: where it begins and where it goes on.
    list_pages: Vec<u64>,
}

fn layouts() -> impl Strategy<Value = Layout> {
    let page_shift = prop_oneof![4 => Just(0_u32), 1 => 1..4_u32];
    page_shift.prop_flat_map(|page_shift| {
        let page_bytes = 4096_u64 << page_shift;
        let (in_data, in_lists) = ((2 << 20) / page_bytes, (1 << 20) / page_bytes);
        let page_offset = prop_oneof![2 => Just(0), 2 => 0..page_bytes / 4];
        let near_end = page_bytes / 8 - 20..page_bytes / 8;
        let list_at = prop_oneof![2 => Just(0), 2 => 0..page_bytes / 8, 3 => near_end];
        let blocks = prop_oneof![6 => 1..=128_u32, 1 => Just(128_u32), 1 => 129..300_u32];
        let pages = prop::collection::vec(0..in_data, 80);
        // A chain that comes back to a page would write over itself.
        let list_pages = prop::sample::subsequence((0..in_lists).collect::<Vec<_>>(), 4);
        (page_offset, blocks, pages, list_at, list_pages.prop_shuffle()).prop_map(
            move |(offset, blocks, pages, list_at, list_pages)| Layout {
                page_shift,
                offset: offset * 4,
                blocks,
                pages,
                list_at,
                list_pages,
            },
        )
    })
}

impl Layout {
    fn page_bytes(&self) -> u64 {
        4096 << self.page_shift
    }
    fn page(&self, number: usize) -> u64 {
        DATA + self.pages[number] * self.page_bytes()
    }
    fn bytes(&self) -> u64 {
        u64::from(self.blocks) * 512
    }
    /// Pages that the transfer touches.
    fn count(&self) -> usize {
        (self.offset + self.bytes()).div_ceil(self.page_bytes()) as usize
    }

    /// Writes the list, as the host does, and gives PRP2.
    fn second(&self, host: &mut Host<FixedTime>) -> u64 {
        match self.count() {
            1 => return 0xdead_beef,
            2 => return self.page(1),
            _ => {}
        }
        let place =
            |page: usize, slot| LISTS + self.list_pages[page] * self.page_bytes() + slot * 8;
        let in_page = self.page_bytes() / 8;
        let (mut page, mut slot) = (0, self.list_at);
        for number in 1..self.count() {
            // The last entry of a page is a pointer where more than one entry is left.
            if slot == in_page - 1 && number + 1 < self.count() {
                let next = place(page + 1, 0);
                host.data(place(page, slot), 8).copy_from_slice(&next.to_le_bytes());
                (page, slot) = (page + 1, 0);
            }
            let entry = self.page(number);
            host.data(place(page, slot), 8).copy_from_slice(&entry.to_le_bytes());
            slot += 1;
        }
        place(0, self.list_at)
    }

    /// Where each dword of the data is.
    fn dwords(&self) -> Vec<u64> {
        let all = (self.offset..self.offset + self.bytes()).step_by(4);
        all.map(|at| self.page((at / self.page_bytes()) as usize) + at % self.page_bytes())
            .collect()
    }
}

fn ready(layout: &Layout) -> Host<FixedTime> {
    let mut host = host("max_transfer = \"64KiB\"");
    host.write(registers::CC, 0);
    host.enable_with(registers::CC_ENTRY_SIZES | layout.page_shift << 7 | registers::CC_ENABLE);
    host.settle();
    host.create_pair(1, 8);
    host
}

proptest! {
    #[test]
    fn every_byte_is_where_the_entries_say(layout in layouts(), opcode in 1..3_u8) {
        let mut host = ready(&layout);
        let command = SubmissionEntry {
            prp1: (layout.page(0) + layout.offset).into(),
            prp2: layout.second(&mut host).into(),
            ..transfer(opcode, 0, layout.blocks)
        };
        host.bus.touched.clear();
        let status = host.command(1, command).status();
        if layout.bytes() > LIMIT {
            prop_assert_eq!(status.kind(), NvmeStatus::INVALID_FIELD);
            prop_assert!(host.bus.touched.is_empty());
            return Ok(());
        }
        prop_assert!(status.is_success(), "{:?}", status);
        let way = if opcode == nvm::READ { DmaDirection::ToHost } else { DmaDirection::FromHost };
        let mut found = Vec::new();
        for (at, bytes, direction) in &host.bus.touched {
            prop_assert_eq!(*direction, way);
            found.extend((*at..at + bytes).step_by(4));
        }
        prop_assert_eq!(found, layout.dwords());
        prop_assert_eq!(host.bus.faults, 0);
    }

    /// An entry that may have no offset and has one fails the command, before any data moves.
    #[test]
    fn offsets_where_none_may_be_are_refused(
        layout in layouts(),
        which in any::<prop::sample::Index>(),
        wrong in 1..4096_u64,
    ) {
        prop_assume!(layout.bytes() <= LIMIT && layout.count() > 1);
        let mut host = ready(&layout);
        let mut second = layout.second(&mut host);
        let in_page = (layout.page_bytes() / 8 - layout.list_at) as usize;
        let entries = layout.count() - 1;
        match entries {
            1 => second += wrong,
            // One of those in the first page of the list, pointer or not.
            _ => {
                let at = second + which.index(entries.min(in_page)) as u64 * 8;
                host.data(at, 2)[0] |= wrong as u8;
                host.data(at, 2)[1] |= (wrong >> 8) as u8;
            }
        }
        let command = SubmissionEntry {
            prp1: (layout.page(0) + layout.offset).into(),
            prp2: second.into(),
            ..transfer(nvm::WRITE, 0, layout.blocks)
        };
        host.bus.touched.clear();
        let status = host.command(1, command).status();
        prop_assert_eq!(status, NvmeStatus::PRP_OFFSET_INVALID.with_do_not_retry());
        prop_assert!(host.bus.touched.is_empty());
        prop_assert!(host.controller.device().seen.is_empty());
    }
}
