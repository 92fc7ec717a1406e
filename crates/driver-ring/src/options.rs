//! How the driver works.

use ssdyno_block::Time;
use ssdyno_spec::ring::ResponseMode;

/// When a block is sent, and how large it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BlockPolicy {
    /// Full blocks of this size only (S0-31). With fewer requests than that nothing ever happens:
    /// [`RingDriver::stalled`](crate::RingDriver::stalled) says so, and
    /// [`RingDriverOptions::partial_after`] or [`RingDriver::send_pending`](crate::RingDriver::send_pending)
    /// end it.
    Static(u32),
    /// What is pending, up to the largest block (S0-32).
    #[default]
    Dynamic,
}

/// What the requests handler sends when the card is idle, with dynamic blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IdleDispatch {
    /// A block with the first descriptor alone, as soon as there is one (S0-27).
    #[default]
    FirstDescriptor,
    /// All descriptors of the request: better for requests of several pages.
    WholeRequest,
}

/// How the host learns that descriptors are back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CompletionPolicy {
    /// One interrupt a block, at its end (S0-15).
    #[default]
    PerBlock,
    /// An interrupt with each return: the same as [`PerBlock`](CompletionPolicy::PerBlock) but with
    /// responses one by one (S0-17) or in subsets (S0-18).
    PerReturn,
    /// As Linux' network drivers do: the first return interrupts; interrupts are masked while the host
    /// polls, `budget` bios at a time, until a poll finds fewer than that.
    Napi {
        /// Bios completed in a poll, at most; at least 1.
        budget: u32,
    },
    /// Calibrated interrupts (Tai et al., OSDI 2021): the card gathers returns until there are
    /// `threshold` or `timeout` has passed; urgent requests interrupt at once.
    Calibrated {
        /// Descriptors; at least 1.
        threshold: u32,
        /// After the first return that was not reported; below 4 s.
        timeout: Time,
    },
    /// No interrupts: the host sleeps for half of the mean time of blocks of that size, then polls
    /// (Linux' hybrid polling).
    HybridPolling {
        /// From one poll to the next; more than 0.
        interval: Time,
    },
}

/// How the driver works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingDriverOptions {
    /// When a block is sent, and how large it is.
    pub block: BlockPolicy,
    /// With static blocks: what is pending goes as a smaller block when no request has come for so
    /// long. `None`: never, as in the paper, whose driver waits forever (S0-36).
    pub partial_after: Option<Time>,
    /// Largest block; `None`: what the card says (S0-10).
    pub max_block: Option<u32>,
    /// What is sent to an idle card.
    pub idle_dispatch: IdleDispatch,
    /// How descriptors come back (S0-16 … S0-18).
    pub response: ResponseMode,
    /// Descriptors in a subset, with [`ResponseMode::Subsets`]; 1 to 65535.
    pub subset: u32,
    /// How the host learns of it.
    pub completion: CompletionPolicy,
    /// Descriptors of the next block that the card may hold (S0-26); 0: none.
    pub prefetch: u32,
    /// Requests in the driver, at most: 1 to 2^20. Further ones are refused as
    /// [`Full`](ssdyno_block::SubmitError::Full).
    pub queue_depth: u32,
    /// Descriptors in the ring, a power of two; `None`: by the card's parameters (S0-9).
    pub ring_size: Option<u32>,
    /// True: the driver has pages of its own, used by requests that give no address: for loads whose data
    /// nobody looks at. They are pinned when more descriptors are in use than ever before, in stretches of
    /// 64 KiB, up to 4 KiB for each descriptor of the ring.
    pub own_pages: bool,
    /// A block that is not back after so long is looked for; if it is not there either, the card
    /// is reset.
    pub timeout: Time,
}

impl Default for RingDriverOptions {
    fn default() -> RingDriverOptions {
        RingDriverOptions {
            block: BlockPolicy::Dynamic,
            partial_after: None,
            max_block: None,
            idle_dispatch: IdleDispatch::FirstDescriptor,
            response: ResponseMode::Block,
            subset: 1,
            completion: CompletionPolicy::PerBlock,
            prefetch: 0,
            queue_depth: 1024,
            ring_size: None,
            own_pages: true,
            timeout: Time::from_s(1),
        }
    }
}
