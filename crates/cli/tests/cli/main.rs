//! The program as its users see it: verbs, bad input, exit codes.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

mod bad_input;
mod common;
mod statistics;
mod verbs;
