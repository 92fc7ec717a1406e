//! The program as its users see it: verbs, bad input, exit codes.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

mod bad_input;
mod bounds;
mod common;
mod completion;
mod faults;
mod ftls;
#[cfg(target_os = "linux")]
mod fuse;
#[cfg(target_os = "linux")]
mod hosts;
#[cfg(target_os = "linux")]
mod hosts_tls;
#[cfg(target_os = "linux")]
mod json;
mod latency_target;
#[cfg(target_os = "linux")]
mod live;
mod loops;
mod memory;
#[cfg(target_os = "linux")]
#[path = "../../../bench/src/linux/tests/network/server.rs"]
#[expect(dead_code, reason = "the tests of the initiator use more of it")]
mod nbd_server;
#[cfg(target_os = "linux")]
mod network_lab;
#[cfg(target_os = "linux")]
mod network_targets;
#[cfg(target_os = "linux")]
mod overwriting;
#[cfg(target_os = "linux")]
mod page;
#[cfg(target_os = "linux")]
mod page_cache;
mod parts;
mod provenance;
mod repeat;
mod resume;
mod spec;
mod statistics;
mod sweep;
mod sweep_stops;
mod timeline;
mod traces;
#[cfg(target_os = "linux")]
mod trouble;
mod verbs;
mod why;
