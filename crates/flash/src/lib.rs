//! NAND flash: geometry, timing, dies, planes and channels.
//!
//! Key types: [`Config`] (what a device file says), [`Geometry`] (sizes and addresses),
//! [`Timing`] (spans in picoseconds), [`FlashOp`] (what an FTL asks for), [`FlashArray`] (the dies
//! with their queues, and the channels between them and the controller).
//!
//! Errors: [`ConfigError`](ssdyno_block::ConfigError) names the key that is wrong. The array is stricter than hardware: a
//! program out of order in its block, or into a page that was not erased, panics, because only a
//! defective FTL can ask for it.
//!
//! Not modelled: bit errors and read retry, temperature, read disturb, partial page programming,
//! the controller's error correction beyond a fixed time per page.

mod array;
mod bus;
mod config;
mod die;
mod geometry;
mod op;
mod timing;

pub use array::{FlashArray, FlashEvent, Port};
pub use bus::{Bus, OnfiMode};
pub use config::{CellType, Config, CopyMode, MultiPlane, PerLevel};
pub use geometry::{Divisor, Geometry};
pub use op::{FlashOp, NO_OWNER, OpKind};
pub use timing::Timing;
