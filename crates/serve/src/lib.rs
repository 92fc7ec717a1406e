//! Simulated devices in the time on the wall, for servers of any protocol.
//!
//! A simulated device is passive: it does nothing until somebody says what time it is. A server for stock clients must
//! do so repeatedly: before each request of a client, and whenever an event is due. That is the same for every
//! protocol, so it is here and in no server.
//!
//! Key types: [`Served`] is what a device owes; [`Paced`] is a device and its [`ServedClock`], for a server
//! of one thread that waits in a poll of its own; [`Shared`] is the same behind a lock, for many clients,
//! with a [`TimeKeeper`], the thread that wakes up when something falls due; [`TcpService`] accepts
//! connections, gives each a thread, and ends all of them in order.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use ssdyno_block::Time;
//! use ssdyno_serve::{Served, ServedClock, Shared};
//!
//! /// A device that answers each question after 1 ms.
//! #[derive(Default)]
//! struct Slow {
//!     due: Vec<Time>,
//!     answers: u32,
//! }
//!
//! impl Served for Slow {
//!     fn advance(&mut self, now: Time) {
//!         let before = self.due.len();
//!         self.due.retain(|due| *due > now);
//!         self.answers += (before - self.due.len()) as u32;
//!     }
//!     fn next_event(&self) -> Option<Time> {
//!         self.due.iter().min().copied()
//!     }
//! }
//!
//! let device = Arc::new(Shared::new(Slow::default(), ServedClock::wall()));
//! let keeper = device.keep_time("example-clock").unwrap();
//! device.with(|slow, now| slow.due.push(now + Time::from_ms(1)));
//! while device.with(|slow, _| slow.answers) == 0 {
//!     std::thread::sleep(Duration::from_micros(100));
//! }
//! drop(keeper);
//! ```
//!
//! Not here: protocols; the data of a device (`ssdyno_device::Contents`).

mod clock;
mod paced;
mod shared;
mod tcp;

pub use clock::ServedClock;
pub use paced::{Paced, Served};
pub use shared::{Shared, TimeKeeper};
pub use tcp::TcpService;
