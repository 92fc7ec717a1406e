//! NAND flash: geometry, timing, dies, planes and channels.
//!
//! Key types: [`FlashConfig`] (the table in a device file), [`Geometry`] (sizes and addresses),
//! [`FlashTiming`] (spans in picoseconds), [`FlashOp`] (a request of an FTL), and [`FlashArray`] (the dies with their
//! queues, and the channels between them and the controller).
//!
//! Errors: [`ConfigError`](ssdyno_block::ConfigError) names the key that is wrong. The array is stricter than hardware: a
//! program out of order in its block, or into a page that was not erased, panics, because only a
//! defective FTL can ask for it.
//!
//! **Who uses a channel when.** By default transfers of all kinds go first come, first served: a command of some
//! hundred nanoseconds waits behind the pages that were ready before it. That makes dies go in convoy and costs
//! reads of many dies 10 to 30 %; [`ChannelOrder`] has other orders. A transfer that has begun is never interrupted.
//!
//! **What a die does at a time.** By default one thing: until the last page of a read is out, or the data of a program
//! is in, its array does nothing. With `cache_read` and `cache_program` there is a cache register for each plane, and
//! bus and array overlap (ONFI 31h, 3Fh and 15h). `docs/flash_channels.md` describes the rules, their cost and their
//! gain.
//!
//! Not modelled: cycles on the channel for polling of status, for selecting a page that was read, for suspending and
//! resuming; parts whose cache operations demand the same planes or block; cells that change between SLC and
//! more bits; bit errors and read retry, temperature, read disturb, partial page programming,
//! the controller's error correction beyond a fixed time per page.

mod array;
mod bus;
mod config;
mod die;
mod geometry;
mod op;
mod timing;

pub use array::{FlashArray, FlashEvent, PlanePort};
pub use bus::{FlashChannel, OnfiMode};
pub use config::{CellType, ChannelOrder, CopyMode, FlashConfig, MultiPlane, PerLevel};
pub use geometry::{Divisor, Geometry};
pub use op::{FlashOp, NO_OWNER, OpKind};
pub use timing::FlashTiming;
