//! The translator over a little device in memory.

mod blocks;
mod bytes;
mod common;
mod lists;
mod matrix;
mod nexuses;
mod pages;
mod random;
mod rows;
