//! The page: runs that are started, watched and compared in a browser (S4-6).
//!
//! [`PageServer::bind`] takes an address of loopback, [`PageServer::serve`] answers there until it is told to end. One run
//! goes on at a time: figures of two at once would be of neither. It is a [`Task`](ssdyno_task::Task); a run may be on other
//! hosts, too. Its series is bounded, and every viewer sees the same. Files of results are those of the command line.
//!
//! Nothing is changed without the session's token (see `guard`). Errors are [`Failure`](ssdyno_session::Failure)s, as
//! objects of JSON.
//!
//! Not here: the drawing code (`assets`), statistics, and permissions to write: consent is in [`DeskOptions`], never in
//! a request.

mod answer;
mod current;
mod desk;
mod ended;
mod events;
mod flash;
mod folders;
mod guard;
mod permit;
mod presets;
mod routes;
mod series;
mod server;
mod sources;
mod systems;
mod view;

pub use desk::DeskOptions;
pub use server::PageServer;
