//! The translator over a little device in memory.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod attentions;
mod blocks;
mod bytes;
mod common;
mod lists;
mod matrix;
mod nexuses;
mod pages;
mod random;
mod rows;
mod sanitize;
