//! The page: runs that are started, watched and compared in a browser (S4-6).
//!
//! [`PageServer::bind`] takes an address of loopback, [`PageServer::serve`] answers there until it is told to end. One run
//! goes on at a time: figures of two at once would be of neither. It is a [`Job`](ssdyno_cluster::Job), here or on several
//! hosts, or another [`Task`](ssdyno_task::Task) on this machine; its series is bounded, and every viewer sees the same. Files of results are those of the command line.
//!
//! Nothing is changed without the session's token (see `guard`). Errors are [`Failure`](ssdyno_session::Failure)s, as
//! objects of JSON.
//!
//! Not here: what is drawn (`assets`), statistics, and who may write where: consent is in [`DeskOptions`], never in a
//! request.

mod answer;
mod desk;
mod events;
mod flash;
mod folders;
mod guard;
mod presets;
mod routes;
mod series;
mod server;
mod systems;
mod tasks;

pub use desk::DeskOptions;
pub use server::PageServer;
