//! NVMe commands in the form that the kernel accepts through io_uring (linux/nvme_ioctl.h, `struct nvme_uring_cmd`),
//! and the kernel's results.

use ssdyno_block::{Op, Request};

use super::Outcome;

/// Bytes of `struct nvme_uring_cmd`.
pub(crate) const BYTES: usize = 72;

/// `NVME_URING_CMD_IO`: `_IOWR('N', 0x80, struct nvme_uring_cmd)`.
pub(crate) const SEND: u32 = 0xC000_0000 | (BYTES as u32) << 16 | 0x4E << 8 | 0x80;

/// Blocks of a read or write at most: their number less one has 16 bits (NVM Command Set 1.0, clause 3.2.4).
pub(crate) const BLOCKS_MAX: u64 = 1 << 16;

/// Bytes of a range of Dataset Management (clause 3.2.3, figure 42).
pub(crate) const RANGE_BYTES: usize = 16;

/// The facts about its namespace that a command needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Namespace {
    /// Its identifier.
    pub(crate) nsid: u32,
    /// Bytes of a logical block, a power of two.
    pub(crate) block_bytes: u32,
}

/// The command of `request`, whose data (of a trim: its range) lies at `address`; `None` where it is longer than
/// one can be, or no whole blocks.
pub(crate) fn encode(request: &Request, address: u64, namespace: Namespace) -> Option<[u8; 80]> {
    let mut command = [0; 80];
    let mut word =
        |at: usize, value: u32| command[at..at + 4].copy_from_slice(&value.to_le_bytes());
    word(4, namespace.nsid);
    // Clauses 3.2.4, 3.2.6, 3.2.3 of the NVM Command Set, 7.1 of the base specification 2.0.
    let opcode = match request.op {
        Op::Flush => 0x00,
        Op::Write => 0x01,
        Op::Read => 0x02,
        Op::Trim => 0x09,
    };
    let (block, blocks) = blocks(request, namespace)?;
    let data = match request.op {
        Op::Flush => 0,
        Op::Trim => {
            // One range (from 0), to be deallocated.
            word(44, 1 << 2);
            RANGE_BYTES as u32
        }
        Op::Read | Op::Write => {
            // The field has 16 bits and counts from zero. A longer request would wrap to a short
            // one and appear to be very fast.
            if blocks > BLOCKS_MAX {
                return None;
            }
            word(40, block as u32);
            word(44, (block >> 32) as u32);
            word(48, (blocks - 1) as u32);
            request.length_bytes
        }
    };
    if data > 0 {
        word(24, address as u32);
        word(28, (address >> 32) as u32);
        word(36, data);
    }
    command[0] = opcode;
    Some(command)
}

/// The range of a trim, as Dataset Management takes it.
pub(crate) fn range(request: &Request, namespace: Namespace) -> Option<[u8; RANGE_BYTES]> {
    let (block, blocks) = blocks(request, namespace)?;
    let mut range = [0; RANGE_BYTES];
    range[4..8].copy_from_slice(&u32::try_from(blocks).ok()?.to_le_bytes());
    range[8..].copy_from_slice(&block.to_le_bytes());
    Some(range)
}

/// First block and number of blocks; of a flush none.
fn blocks(request: &Request, namespace: Namespace) -> Option<(u64, u64)> {
    let unit = u64::from(namespace.block_bytes);
    let length = u64::from(request.length_bytes);
    let whole = request.offset_bytes.is_multiple_of(unit) && length.is_multiple_of(unit);
    let fits = (length == 0) == (request.op == Op::Flush);
    (whole && fits).then_some((request.offset_bytes / unit, length / unit))
}

/// The outcome of a request from `result`: the kernel returns 0, the status of the command, or a negated error of its
/// own. The status becomes the error that the block layer makes of it (drivers/nvme/host/core.c, `nvme_error_status`;
/// block/blk-core.c, `blk_errors`).
pub(crate) fn outcome(result: i32, length_bytes: u32) -> Outcome {
    if result <= 0 {
        return if result == 0 { length_bytes as i32 } else { result };
    }
    // Status code type and code; "do not retry" and "more" do not describe the error. Passthrough
    // returns the status of the drive itself. It is translated as the block layer does it, so that
    // errors look the same with every engine.
    -match result & 0x7FF {
        0x081 => libc::ENOSPC,
        // Invalid opcode, field or namespace; no access to the namespace's range.
        0x001 | 0x002 | 0x00B | 0x180 => libc::EOPNOTSUPP,
        0x080 => libc::EREMOTEIO,
        0x082 => libc::EAGAIN,
        // Write fault, unrecovered read, access denied, block never written, compare, read-only range.
        0x182 | 0x280 | 0x281 | 0x285 | 0x286 | 0x287 => libc::ENODATA,
        // Guard, application and reference tags.
        0x181 | 0x282..=0x284 => libc::EILSEQ,
        0x083 => libc::EBADE,
        _ => libc::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR_K: Namespace = Namespace { nsid: 3, block_bytes: 4096 };

    fn word(command: &[u8; 80], number: usize) -> u32 {
        u32::from_le_bytes(command[4 * number..4 * number + 4].try_into().unwrap())
    }

    /// The words where linux/nvme_ioctl.h has them: opcode 0, nsid 1, addr 6 and 7, data_len 9, cdw10 to 15
    /// from 10 on.
    #[test]
    fn reads_and_writes_name_their_blocks() {
        let address = 0x7F12_3456_7000;
        let far = 0x1_2345_6789 * 4096;
        for (request, opcode) in [(Request::read(far, 16_384), 2), (Request::write(far, 16_384), 1)]
        {
            let command = encode(&request, address, FOUR_K).unwrap();
            assert_eq!((word(&command, 0), word(&command, 1)), (opcode, 3));
            assert_eq!((word(&command, 6), word(&command, 7)), (0x3456_7000, 0x7F12));
            assert_eq!((word(&command, 8), word(&command, 9)), (0, 16_384), "no metadata");
            assert_eq!((word(&command, 10), word(&command, 11)), (0x2345_6789, 1));
            assert_eq!(word(&command, 12), 3, "four blocks, from 0");
            assert!((13..20).all(|number| word(&command, number) == 0));
        }
    }

    #[test]
    fn flushes_and_trims_have_no_blocks_of_their_own() {
        let flush = encode(&Request::flush(), 0x1000, FOUR_K).unwrap();
        assert_eq!(word(&flush, 1), 3);
        assert!((0..20).filter(|number| *number != 1).all(|number| word(&flush, number) == 0));
        let trim = Request::trim(40_960, 81_920);
        let command = encode(&trim, 0x2000, FOUR_K).unwrap();
        assert_eq!((word(&command, 0), word(&command, 9)), (9, 16));
        assert_eq!((word(&command, 10), word(&command, 11)), (0, 4), "one range, deallocate");
        let range = range(&trim, FOUR_K).unwrap();
        assert_eq!(range[..8], [0, 0, 0, 0, 20, 0, 0, 0]);
        assert_eq!(u64::from_le_bytes(range[8..].try_into().unwrap()), 10);
    }

    #[test]
    fn what_no_command_can_carry_is_none() {
        let small = Namespace { nsid: 1, block_bytes: 512 };
        assert!(encode(&Request::read(0, 1 << 25), 0, small).is_some());
        assert!(encode(&Request::read(0, (1 << 25) + 512), 0, small).is_none());
        assert!(encode(&Request::read(512, 4096), 0, FOUR_K).is_none());
        assert!(encode(&Request::write(0, 512), 0, FOUR_K).is_none());
    }

    #[test]
    fn the_kernels_number_is_its_own() {
        // As printed by a C compiler for NVME_URING_CMD_IO.
        assert_eq!(SEND, 0xC048_4E80);
    }

    #[test]
    fn answers_are_bytes_or_errors() {
        assert_eq!(outcome(0, 4096), 4096);
        assert_eq!(outcome(-libc::EINTR, 4096), -libc::EINTR);
        // Unrecovered read error, with and without "do not retry".
        assert_eq!((outcome(0x281, 512), outcome(0x4281, 512)), (-libc::ENODATA, -libc::ENODATA));
        assert_eq!(outcome(0x80, 512), -libc::EREMOTEIO);
        assert_eq!(outcome(0x4002, 512), -libc::EOPNOTSUPP);
        assert_eq!(outcome(0x06, 512), -libc::EIO);
    }
}
