//! The translator over a little device in memory.

mod blocks;
mod bytes;
mod common;
mod nexuses;
mod random;
