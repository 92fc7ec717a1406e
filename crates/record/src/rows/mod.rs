//! One row a request, in 16 bytes nearly always.

mod file;
mod names;
mod order;
mod packed;
mod row;
mod spool;
mod strip;
mod table;

pub use file::Head as RowsHead;
pub(crate) use file::{read_chunk, read_head};
pub use names::RowNames;
pub(crate) use order::Batch;
#[cfg(test)]
pub(crate) use packed::tests;
pub(crate) use packed::{Block, Stamp};
pub use row::Row;
pub use spool::Spool;
pub(crate) use spool::{ROOM_FILE, ROWS_FILE, Shared};
#[cfg(test)]
pub(crate) use strip::CHUNK_WORDS;
pub(crate) use strip::Strip;
pub use table::Rows;
