//! Real data: `contents = true`.

use ssdyno_spec::nvme::{DatasetRange, NvmeStatus, SubmissionEntry, dataset, nvm};
use zerocopy::IntoBytes;

use crate::support::{DATA, FixedTime, Host, entry, host, transfer};

fn ready() -> Host<FixedTime> {
    let mut host = host("contents = true");
    host.create_pair(1, 16);
    host
}
fn write(host: &mut Host<FixedTime>, first: u64, blocks: u32, byte: u8) {
    host.data(DATA, blocks as usize * 512).fill(byte);
    assert!(host.command(1, transfer(nvm::WRITE, first, blocks)).status().is_success());
}
fn read(host: &mut Host<FixedTime>, first: u64, blocks: u32) -> Vec<u8> {
    host.data(DATA, blocks as usize * 512).fill(0xee);
    assert!(host.command(1, transfer(nvm::READ, first, blocks)).status().is_success());
    // One byte of each block tells all, if the block is even.
    let blocks = host.data(DATA, blocks as usize * 512).chunks(512);
    blocks.map(|block| if block.iter().all(|b| *b == block[0]) { block[0] } else { 0xdd }).collect()
}

/// NVM 1.0c, clauses 3.2.4 and 3.2.6.
#[test]
fn what_was_written_is_read() {
    let mut host = ready();
    assert_eq!(read(&mut host, 0, 4), [0; 4], "nothing was written yet");
    write(&mut host, 1, 8, 5);
    write(&mut host, 7, 1, 6);
    assert_eq!(read(&mut host, 0, 10), [0, 5, 5, 5, 5, 5, 5, 6, 5, 0]);
}

/// NVM 1.0c, figure 97: DLFEAT says that deallocated blocks read as zero.
#[test]
fn deallocated_blocks_and_zeroes_read_as_zero() {
    let mut host = ready();
    write(&mut host, 0, 8, 9);
    let range = DatasetRange { attributes: 0.into(), blocks: 2.into(), first: 3.into() };
    host.data(DATA, 16).copy_from_slice(range.as_bytes());
    let trim = entry(nvm::DATASET_MANAGEMENT, 1, [0, dataset::DEALLOCATE, 0]);
    assert!(host.command(1, trim).status().is_success());
    assert!(host.command(1, transfer(nvm::WRITE_ZEROES, 6, 1)).status().is_success());
    assert_eq!(read(&mut host, 0, 8), [9, 9, 9, 0, 0, 9, 0, 9]);
}

/// NVM 1.0c, clause 3.2.1.
#[test]
fn compare_compares() {
    let mut host = ready();
    write(&mut host, 0, 32, 3);
    host.data(DATA, 4096).fill(3);
    let compare = SubmissionEntry { prp2: (DATA + 4096).into(), ..transfer(nvm::COMPARE, 0, 16) };
    assert!(host.command(1, compare).status().is_success());
    host.data(DATA + 4096, 4096)[4095] = 4;
    assert_eq!(host.command(1, compare).status(), NvmeStatus::COMPARE_FAILURE);
    let zeroes = SubmissionEntry { prp1: (DATA + 8192).into(), ..transfer(nvm::COMPARE, 500, 1) };
    host.data(DATA + 8192, 512).fill(0);
    assert!(host.command(1, zeroes).status().is_success(), "never written");
}
