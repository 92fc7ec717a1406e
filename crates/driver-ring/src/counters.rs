//! What the driver did.

/// What the driver did since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RingCounters {
    /// Blocks given to the card.
    pub blocks: u64,
    /// Descriptors in them.
    pub descriptors: u64,
    /// Blocks by size: entry n counts sizes from 2^n up to 2^(n+1) - 1.
    pub blocks_by_size: [u64; 16],
    /// Blocks with one descriptor that the requests handler sent to an idle card (S0-27).
    pub idle_dispatches: u64,
    /// Interrupts that were taken.
    pub interrupts: u64,
    /// Of these, ones that found nothing new.
    pub interrupts_empty: u64,
    /// Polls.
    pub polls: u64,
    /// Bios completed.
    pub bios: u64,
    /// Bios completed with an error.
    pub errors: u64,
    /// Blocks that were back without an interrupt that said so, where one was due.
    pub lost_interrupts: u64,
    /// Resets of a card that stood still or reported a fault.
    pub resets: u64,
}
