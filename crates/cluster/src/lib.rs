//! Many hosts as one run (S4): workers that load targets, the controller that starts them together and joins what they
//! recorded, and the protocol between them.
//!
//! A [`WorkerService`] carries out one run at a time for whoever prepared it: [`serve_listener`] over TCP,
//! [`serve_stdio`] over the streams of its process, as a program that ssh starts ([`RemoteStart`]). [`run_on_hosts`] is
//! the controller of one run: it compares versions and clocks, prepares the targets, lets everybody begin at one
//! moment, watches, and joins the recordings over the window in which all hosts were running
//! ([`ssdyno_record::Together`]). Percentiles and averages are not sent: histograms are added.
//!
//! [`metrics_text`] has the state of a run and of its machines as OpenMetrics text; a worker serves it at a
//! [`MetricsListener`], which only reads what the run told last.
//!
//! A [`JobPlan`] is a run that a front end can start, here or on several hosts; started, it is a [`Job`].
//!
//! Errors are [`Failure`](ssdyno_session::Failure)s with the name of the host in them. A host that is lost in the middle
//! makes the run partial, with its name; the others are kept.
//!
//! Not here: what one run is (`session`), how progress and results are shown.
//!
//! A worker on loopback needs no certificate. Beyond it controller and worker prove who they are by TLS, on Linux.
//!
//! Rows of requests stay on the worker until the controller fetches them, after the run.

mod asking;
mod clocks;
mod codec;
mod comparing;
mod connection;
mod controller;
mod current_run;
mod hosts;
mod job;
mod join;
mod load;
mod member;
mod metrics;
mod plan;
mod plan_rates;
mod plan_result;
mod plan_run;
mod probes;
mod progress;
mod protocol;
mod rows;
mod scraped;
mod served;
mod server;
mod ssh;
#[cfg_attr(not(target_os = "linux"), path = "no_tls.rs")]
mod tls;
mod watched;
mod whole;
mod worker;

pub use clocks::ClockComparison;
pub use controller::{ReachedHosts, run_on_hosts};
pub use hosts::HostAddress;
pub use job::{HERE, Job, JobPlan};
pub use load::{ClusterLoad, HostLoad, Hosts};
pub use metrics::{MetricsCache, MetricsListener, OPEN_METRICS_TYPE, RunOutline, metrics_text};
pub use plan::{ClusterPlan, PlanClient, PlanFile, PlanStep, PlannedStep, RateArrivals};
pub use plan_rates::{RateSweep, Rates};
pub use plan_result::{PlanResult, StepFigures, StepResult};
pub use plan_run::{PlanOutcome, PlanRun};
pub use progress::{ClusterProgress, MetricsReading};
pub use scraped::{MetricsSource, ProberAddress};
pub use server::{WorkerListener, serve_listener, serve_stdio};
pub use ssh::RemoteStart;
#[cfg(target_os = "linux")]
pub use tls::{
    CertificateState, EnrolledWorker, Enrolment, Invitation, InvitationOptions, WorkerCertificate,
    enrol_worker, enrolled_workers, renew_controller, revoke_worker,
};
pub use worker::{WorkerConsent, WorkerService};
