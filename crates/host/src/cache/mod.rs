//! The page cache and the file system: what they decide. Its cost and its time belong to the host
//! (`cached`).

mod config;
mod pages;
mod state;
#[cfg(test)]
mod tests;
mod write;

pub use config::{CacheConfig, FileSystemConfig, Journal};
pub(crate) use config::{check_cache, check_file_system, error};
pub(crate) use state::{CacheState, Piece};
