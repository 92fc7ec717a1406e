//! A passive NVMe driver: rings, commands and recovery; no clock, no thread, no log.
//!
//! Key types: [`NvmeDriver`] (start, submit, poll, interrupts, watchdog, shutdown; one owner) with its
//! [`NvmeConfig`]; its parts [`Controller`] and [`QueuePair`], for a system with many cores;
//! [`IoCommand`] and [`IoCompletion`]; [`AdminCommand`] and [`Feature`]; [`QueuePolicy`] and
//! [`QueueSelector`] (which queue a core uses); [`SimulatedNvme`] (driver and simulated controller on one
//! clock). A system that binds drivers to functions at run time is in `examples/drivers_and_classes`.
//!
//! Whoever uses it says what time it is with each call, brings interrupts, and calls
//! [`NvmeDriver::poll`] at [`NvmeDriver::next_deadline`]. The function is lent to each call, so the
//! owner of a simulated one can advance it in between, and a host can give each core its own.
//! Nothing is allocated for an I/O command: all slots and rings are made at the start.
//!
//! # In a kernel, in firmware, in user space
//!
//! The crate needs `core` and `alloc` and nothing else (`cargo check -p ssdyno-driver-nvme --target
//! x86_64-unknown-none`). What surrounds it supplies:
//!
//! - **Registers, configuration space, memory for DMA, interrupts:** an implementation of
//!   [`PciFunction`], whose documentation says what order of accesses it owes. It is the only trait to
//!   write, and every method of this crate is generic over it: no dynamic dispatch. Memory is asked for
//!   at the start and at resets only.
//! - **A heap** for start, reset, scan of namespaces and admin commands that receive data. Where it has no
//!   room the call says so ([`NvmeError::NoMemory`], [`AdminError::NoMemory`]) and the driver stays usable,
//!   or ends as after any other failure; nothing panics or ends the program. Room for the answer of an
//!   admin command is made when it is submitted. Submitting and completing I/O allocate nothing where the
//!   vector for completions has room: give it as many places as commands are outstanding. What neither it
//!   nor the heap has room for stays in the completion queue until the next call.
//! - **Memory for DMA**, pinned: of the admin queue 2.5 KiB and 1 to 31 pages; of each I/O queue 80 bytes an
//!   entry for its rings, and [page lists](NvmeConfig::lists_at_start) on demand within a bound
//!   ([`NvmeDriver::pinned_bytes`]). A command that finds no memory for a page list is refused, and leaves no
//!   trace.
//! - **A clock:** a [`MonotonicTime`] with each call, from any origin, never going back; a microsecond is fine
//!   enough. It does not wrap: nanoseconds of 64 bits fit for 584 years. `poll` wants to be called at
//!   `next_deadline`, from a timer or an idle loop.
//! - **Interrupts:** for each vector [`on_interrupt`](NvmeDriver::on_interrupt), from a handler or a
//!   thread of it; it never waits. A pin that others share is fine: one call too many finds nothing.
//!   Without interrupts ([`InterruptChoice::Polling`]) call [`poll_queue`](NvmeDriver::poll_queue).
//! - **Atomics of 64 bits** and pointers. There is no lock in this crate, and `unsafe` in one place: a counted
//!   pointer whose making can fail, as the standard library has none.
//! - **The data:** its bus address, or that of each of its pages ([`DataBuffer`]). It belongs to the
//!   device until the completion; the driver never looks at it.
//!
//! # One owner
//!
//! A controller brought up and read from by polling, as firmware does:
//!
//! ```
//! use ssdyno_block::{Time, Token};
//! use ssdyno_driver_nvme::*;
//! use ssdyno_pci::PciFunction;
//!
//! /// The state of the first block; `clock` says what time it is.
//! fn read_block_0<F: PciFunction>(
//!     function: &mut F,
//!     clock: &mut impl FnMut(&mut F) -> Time,
//! ) -> Result<IoResult, NvmeError> {
//!     let polling = InterruptChoice::Polling;
//!     let mut driver = NvmeDriver::new(NvmeConfig { interrupts: polling, ..NvmeConfig::default() });
//!     driver.start_and_wait(function, &mut *clock)?;
//!     let page = function.dma_allocate(4096)?;
//!     let nsid = driver.namespaces()[0].id;
//!     let read = IoCommand::read(nsid, 0, 1, DataBuffer::Contiguous(page.address));
//!     let (queue, mut done) = (1, Vec::with_capacity(1));
//!     let now = clock(function);
//!     driver.submit(function, now, queue, &read, Token(7)).expect("an empty queue takes it");
//!     while done.is_empty() {
//!         let now = clock(function);
//!         driver.poll_queue(function, queue, &mut done);
//!         // Timeouts, aborts, resets.
//!         driver.poll(function, now, &mut done);
//!     }
//!     assert_eq!(done[0].token, Token(7));
//!     Ok(done[0].result)
//! }
//! # use ssdyno_controller_nvme::NvmeController;
//! # use ssdyno_ssd::{Config, Ssd};
//! # use ssdyno_pci::{PciTiming, SimulatedPci};
//! # let file = include_str!("../../ssd/tests/small_nvme.toml");
//! # let config = Config::parse(&format!("{file}\n[nvme]\nready_time = \"1ms\"")).unwrap();
//! # let controller = NvmeController::in_front_of(Ssd::new(&config, 1).unwrap(), config.nvme_setup().unwrap()).unwrap();
//! # let us = Time::from_us(1);
//! # let timing = PciTiming { posted_write: us, read_round_trip: us, interrupt: us };
//! # let mut function = SimulatedPci::new(controller, timing);
//! # let mut now = Time::ZERO;
//! # let mut clock = |pci: &mut SimulatedPci<_>| {
//! #     now += Time::from_us(10);
//! #     pci.advance(now);
//! #     pci.set_now(now);
//! #     now
//! # };
//! # let result = read_block_0(&mut function, &mut clock).unwrap();
//! # assert_eq!(result, IoResult::Completed(ssdyno_spec::nvme::NvmeStatus::SUCCESS));
//! ```
//!
//! # Many cores
//!
//! [`NvmeDriver`] takes `&mut self`: with several cores it would need a lock around it. Its parts do not. A
//! [`QueuePair`] is owned by the core that uses it and touches nothing but its own rings, slots, doorbells and
//! counters; the [`Controller`] has the rest. They communicate through two kinds of shared words: orders, a chain of
//! notices that the controller object extends and each pair reads (a check for news is one load), and a mailbox for
//! each pair (the order it obeyed, the time of its first timeout, and its requests for aborts). The cases that matter:
//!
//! | a kernel's | here |
//! |---|---|
//! | hardware context of a core | a [`QueuePair`], with an instance of [`PciFunction`] of its own |
//! | interrupt of a queue | [`QueuePair::on_interrupt`] on the owner's core |
//! | time-out handler on any core | [`Controller::poll`] at its deadline; [`Controller::calls`] names the queues whose owners are to [`attend`](QueuePair::attend): they look into the queue, and wish an abort, which the controller object sends |
//! | reset worker | [`Controller::poll`]: has the pairs take their hands off, disables, has them give up what is outstanding, and creates the queues again |
//! | suspend and resume | [`Controller::suspend`], by shutdown or by power state, and [`Controller::resume`] |
//! | surprise removal | [`Controller::removed`]; each owner answers for its pair |
//! | a core that goes offline | its pair moves to another core, or [goes back](Controller::give_back) |
//! | fewer queues than cores | the kernel's lock around a pair that cores share ([`QueueSelector::queues_of`]) |
//!
//! No core touches another's pair, and none waits for another, but for a reset, which waits for all.
//! Every token that was taken comes back once, to the owner of its pair.
//!
//! ```
//! use std::sync::mpsc::{Receiver, Sender, channel};
//! use std::time::Duration;
//!
//! use ssdyno_block::{Time, Token};
//! use ssdyno_driver_nvme::*;
//! use ssdyno_pci::PciFunction;
//!
//! # static ANSWERED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
//! /// What a core does with its pair until the end: here it reads. Gives how many reads completed,
//! /// and how many given up. `called` stands for an interrupt from another core, `wanted` for a way to
//! /// wake the thread of the controller object.
//! fn core<F: PciFunction>(
//!     mut function: F,
//!     mut pair: QueuePair,
//!     clock: impl Fn() -> Time,
//!     called: Receiver<()>,
//!     wanted: Sender<()>,
//!     buffer: u64,
//! ) -> (u32, u32) {
//!     let (mut done, mut next) = (Vec::with_capacity(pair.entries() as usize), 0);
//!     let (mut answered, mut given_up) = (0, 0);
//!     while !pair.is_over() {
//!         let read = IoCommand::read(1, u64::from(next % 100), 8, DataBuffer::Contiguous(buffer));
//!         // Refused while the queue is full, in a reset, and at the end: the request stays with us.
//!         if pair.submit(&mut function, clock(), &read, Token(next)).is_ok() {
//!             next += 1;
//!         }
//!         // A kernel does something else, and polls in the handler of the pair's vector.
//!         let called = called.recv_timeout(Duration::from_micros(100)).is_ok();
//!         pair.poll(&mut function, &mut done);
//!         let due = pair.next_deadline().is_some_and(|at| at <= clock());
//!         if (due || called) && pair.attend(&mut function, clock(), &mut done) {
//!             let _ = wanted.send(());
//!         }
//!         for completion in done.drain(..) {
//! #           ANSWERED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
//!             match completion.result {
//!                 IoResult::Completed(_) => answered += 1,
//!                 IoResult::Abandoned => given_up += 1,
//!             }
//!         }
//!     }
//!     assert_eq!(answered + given_up, next, "every token comes back once");
//!     (answered, given_up)
//! }
//!
//! /// What the thread of the controller object does each time it wakes: at `next_deadline`, with
//! /// vector 0, and when somebody wants it.
//! fn control<F: PciFunction>(
//!     function: &mut F,
//!     controller: &mut Controller,
//!     now: Time,
//!     cores: &[Sender<()>],
//! ) {
//!     controller.poll(function, now);
//!     let mut queues = Vec::new();
//!     controller.calls(&mut queues);
//!     for queue in queues {
//!         let _ = cores[usize::from(queue) - 1].send(());
//!     }
//! }
//! # use std::sync::{Arc, Mutex, MutexGuard};
//! # use ssdyno_controller_nvme::NvmeController;
//! # use ssdyno_ssd::{Config, Ssd};
//! # use ssdyno_pci::{DmaRegion, FunctionError, InterruptMode, PciTiming, SimulatedPci};
//! # type Pci = SimulatedPci<NvmeController<Ssd>>;
//! # #[derive(Clone)]
//! # struct Access(Arc<Mutex<(Pci, Time)>>);
//! # impl Access {
//! #     fn with<T>(&self, f: impl FnOnce(&mut Pci) -> T) -> T { f(&mut self.0.lock().unwrap().0) }
//! #     fn now(&self) -> Time { self.0.lock().unwrap().1 }
//! #     fn pass(&self, time: Time) -> Time {
//! #         let (pci, now) = &mut *self.0.lock().unwrap();
//! #         *now += time;
//! #         pci.advance(*now);
//! #         pci.set_now(*now);
//! #         *now
//! #     }
//! # }
//! # impl PciFunction for Access {
//! #     fn config_read(&mut self, o: u16) -> u32 { self.with(|p| p.config_read(o)) }
//! #     fn config_write(&mut self, o: u16, v: u32) { self.with(|p| p.config_write(o, v)) }
//! #     fn bar_bytes(&self, bar: u8) -> u64 { self.with(|p| p.bar_bytes(bar)) }
//! #     fn bar_read32(&mut self, b: u8, o: u32) -> u32 { self.with(|p| p.bar_read32(b, o)) }
//! #     fn bar_write32(&mut self, b: u8, o: u32, v: u32) { self.with(|p| p.bar_write32(b, o, v)) }
//! #     fn dma_allocate(&mut self, n: u32) -> Result<DmaRegion, FunctionError> { self.with(|p| p.dma_allocate(n)) }
//! #     fn dma_free(&mut self, r: DmaRegion) { self.with(|p| p.dma_free(r)) }
//! #     fn dma_read(&mut self, r: &DmaRegion, o: u32, out: &mut [u8]) { self.with(|p| p.dma_read(r, o, out)) }
//! #     fn dma_write(&mut self, r: &DmaRegion, o: u32, b: &[u8]) { self.with(|p| p.dma_write(r, o, b)) }
//! #     fn dma_load32(&mut self, r: &DmaRegion, o: u32) -> u32 { self.with(|p| p.dma_load32(r, o)) }
//! #     fn enable_interrupts(&mut self, m: InterruptMode, n: u16) -> Result<u16, FunctionError> { self.with(|p| p.enable_interrupts(m, n)) }
//! # }
//! # let file = include_str!("../../ssd/tests/small_nvme.toml");
//! # let config = Config::parse(&format!("{file}\n[nvme]\nready_time = \"100us\"")).unwrap();
//! # let simulated = NvmeController::in_front_of(Ssd::new(&config, 1).unwrap(), config.nvme_setup().unwrap()).unwrap();
//! # let us = Time::from_us(1);
//! # let timing = PciTiming { posted_write: us, read_round_trip: us, interrupt: us };
//! # let access = Access(Arc::new(Mutex::new((SimulatedPci::new(simulated, timing), Time::ZERO))));
//! # let mut function = access.clone();
//! let mut controller = Controller::new(NvmeConfig { cores: 3, ..NvmeConfig::default() });
//! # let clock = |f: &mut Access| f.pass(Time::from_us(10));
//! controller.start_and_wait(&mut function, clock)?;
//! let buffer = function.dma_allocate(4096)?;
//! let (wanted, wakes) = channel();
//! let (mut cores, mut running) = (Vec::new(), Vec::new());
//! // Policy per core, the default: queue 1 for core 0, and so on.
//! for pair in controller.take_pairs() {
//!     let (call, called) = channel();
//!     cores.push(call);
//! #   let clock = { let access = access.clone(); move || access.now() };
//!     let (function, wanted) = (function.clone(), wanted.clone());
//!     running.push(std::thread::spawn(move || {
//!         core(function, pair, clock, called, wanted, buffer.address)
//!     }));
//! }
//! # let mut run = |controller: &mut Controller, until: DriverState, answered: u32| {
//! #     let seen = || ANSWERED.load(std::sync::atomic::Ordering::Relaxed);
//! #     while controller.state() != until || seen() < answered {
//! #         let now = access.pass(Time::from_us(50));
//! #         let _ = wakes.recv_timeout(Duration::from_micros(50));
//! #         control(&mut function, controller, now, &cores);
//! #     }
//! #     (access.clone(), access.now())
//! # };
//! # let (mut function, now) = run(&mut controller, DriverState::Ready, 30);
//! // Some time later.
//! controller.reset(&mut function, now)?;
//! # let (mut function, now) = run(&mut controller, DriverState::Ready, 100);
//! // And at the end.
//! controller.shutdown(&mut function, now)?;
//! # while !running.iter().all(std::thread::JoinHandle::is_finished) {
//! #     run(&mut controller, DriverState::Stopped, 0);
//! #     cores.iter().for_each(|core| _ = core.send(()));
//! # }
//! for thread in running {
//!     let (answered, given_up) = thread.join().unwrap();
//!     println!("{answered} answered, {given_up} given up");
//! }
//! # access.with(|pci| {
//! #     assert_eq!((pci.faults(), pci.memory_bytes()), (&[][..], 4096));
//! #     assert_eq!(pci.device().counters().bad_doorbells, 0);
//! # });
//! # Ok::<(), NvmeError>(())
//! ```
//!
//! Errors: [`NvmeError`] for start, stop and recovery, [`IoError`] and [`AdminError`] for what is not
//! taken; a command that was taken completes exactly once, by [`IoResult::Completed`] or, after a reset
//! or a removal, by [`IoResult::Abandoned`]. Nothing is retried here: the data of a command is its
//! submitter's, who decides.
//!
//! A completion that belongs to no outstanding command (completed twice, late for an identifier in use again, or of a
//! command that was never sent) is dropped, counted ([`NvmeCounters::strays`]) and reported
//! ([`DriverEvent::StrayCompletion`]): an identifier has 12 bits for its slot and 4 bits for the number of uses of the
//! slot, as in Linux. What it should have answered is found by its timeout.
//!
//! Requests are split at MDTS, at the boundary that the namespace names (NOIOB), and where the
//! [table of quirks](Quirks) knows a stripe.
//!
//! Not modelled: memory pages other than 4 KiB, host memory buffer, shadow doorbells (Doorbell Buffer
//! Config), controller memory buffer, scatter-gather lists, fused commands, reservations, end-to-end
//! protection and interleaved metadata (such namespaces are refused), streams, zones, fabrics.
//!
//! [`PciFunction`]: ssdyno_pci::PciFunction
//! [`MonotonicTime`]: ssdyno_block::MonotonicTime

#![no_std]

extern crate alloc;

mod admin;
mod admin_command;
mod command;
mod config;
mod control_log;
mod controller;
mod driver;
mod error;
mod line;
mod pair;
mod pair_mailbox;
mod policy;
mod prp;
mod queue;
mod quirks;
mod ring;
mod shared;
mod simulated;
mod split;
mod start;
mod state;
mod step;
mod steps;
mod suspend;
mod wait;
mod watch;

pub use admin::AdminCompletion;
pub use admin_command::{AdminCommand, Feature};
pub use command::{DataBuffer, IoCommand, IoCompletion, IoOperation, IoResult, Namespace};
pub use config::{HeadDoorbell, InterruptChoice, NvmeConfig};
pub use controller::Controller;
pub use driver::NvmeDriver;
pub use error::{AdminError, IoError, NvmeError, Unusable};
pub use pair::QueuePair;
pub use policy::{MFI_COMMANDS, PriorityClass, QueueChoice, QueuePolicy, QueueSelector, Weights};
pub use quirks::Quirks;
pub use simulated::SimulatedNvme;
pub use state::{DriverEvent, DriverState, NvmeCounters, ResetCause};
pub use suspend::SuspendMode;
