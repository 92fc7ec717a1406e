//! The messages between a controller and a worker.
//!
//! A run on a worker: `Hello`, `ReadClock` some times, `Prepare`, `Begin`, `Watch`, `ReadClock` again, `Collect`,
//! `Release`. `Stop` may come at any time.
//!
//! Types are public because the generated trait is; nothing outside this crate sees them.

#![allow(unreachable_pub, reason = "the generated trait is public, and so must its messages be")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ssdyno_figures::RunResult;
use ssdyno_prober::{SystemSample, SystemSeries};
use ssdyno_record::Recording;
use ssdyno_session::{Failure, RunSnapshot};
use tonic::{Code, Status};

#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::too_many_lines,
    reason = "generated, and not always in need of all"
)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/ssdyno.v1.Worker.rs"));
}

pub(crate) use generated::worker_client::WorkerClient;
pub(crate) use generated::worker_server::{Worker, WorkerServer};

/// How long the controller tries to reach a host again that is cut off, before it gives the host up.
pub(crate) const GONE_AFTER: Duration = Duration::from_secs(30);

/// How often it tries.
pub(crate) const TRY_EVERY: Duration = Duration::from_millis(500);

/// How long a target may take to be opened and looked at, and a record to be made: the controller waits so long for the
/// answer.
pub(crate) const PREPARE_WITHIN: Duration = Duration::from_secs(120);

/// Version of the protocol. It rises when a message is renamed, removed or changes its meaning.
pub(crate) const PROTOCOL: u32 = 3;

/// Bytes of a message at most: a recording of a day has some 2 MB.
pub(crate) const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// The first message of a controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    /// Version of the program.
    pub version: String,
    /// The list of revoked certificates that the controller's authority signed, as PEM; `None` without TLS, and where nothing
    /// was ever revoked.
    #[serde(default)]
    pub revoked: Option<String>,
}

/// Who a worker is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Greeting {
    pub protocol: u32,
    pub version: String,
    /// Host name of the machine.
    pub machine: String,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ReadClock {}

/// The clocks of a worker, in nanoseconds, at one moment between question and answer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ClockReading {
    /// The monotonic clock, which cannot be set.
    pub monotonic_ns: u64,
    /// Since 1970, as the machine believes.
    pub unix_ns: u64,
}

/// What to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Prepare {
    /// A [`RunSpec`](ssdyno_session::RunSpec) as JSON.
    pub spec: String,
    /// The name of the caller, for the message to another caller.
    pub controller: String,
}

/// A run that is being prepared.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Preparing {
    pub run: u64,
    pub target: String,
    pub load: String,
}

/// A run of this worker.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct OfRun {
    pub run: u64,
}

/// When to begin, on the monotonic clock of the worker.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Begin {
    pub run: u64,
    pub at_monotonic_ns: u64,
}

/// Asks for snapshots of a run until it has ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Watch {
    pub run: u64,
    pub every_ms: u32,
}

/// How far a run of a worker is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostSnapshot {
    pub snapshot: RunSnapshot,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Done {}

/// Asks for samples of the machine.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct StartProbe {
    pub every_ms: u32,
}

/// A probe of this machine.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct OfProbe {
    pub probe: u64,
}

/// The newest sample.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProbeSample {
    pub sample: SystemSample,
}

/// All samples of a probe.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProbeRecord {
    pub series: SystemSeries,
}

/// What a worker measured.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostRecord {
    pub result: RunResult,
    pub recording: Recording,
    /// The reason why the run is not a success.
    pub failure: Option<Failure>,
    /// Start of the recorded window on the worker's monotonic clock; `None` where time is virtual.
    pub start_monotonic_ns: Option<u64>,
}

/// Asks for the rows of a run, which has ended, from a byte of their file on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct FetchRows {
    pub run: u64,
    pub offset: u64,
}

/// Bytes of the file of the rows; none at its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowsPart {
    #[serde(with = "octets")]
    pub bytes: Vec<u8>,
    /// Length of the file.
    pub total_bytes: u64,
}

/// Bytes as a string of bytes: serde makes a list of numbers of them, twice as long.
mod octets {
    use std::fmt;

    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        struct Octets;
        impl Visitor<'_> for Octets {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string of bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }

            fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
                // A reader may hand over a borrowed slice or an owned buffer. The owned one is taken as it is, which
                // saves a copy of 256 KiB for each part of the rows.
                Ok(bytes)
            }
        }
        from.deserialize_byte_buf(Octets)
    }
}

/// A record that can be sent again.
#[derive(Debug)]
pub struct Collected(pub Arc<HostRecord>);

impl Serialize for Collected {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Collected {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Collected, D::Error> {
        Ok(Collected(Arc::new(HostRecord::deserialize(from)?)))
    }
}

/// A failure as gRPC carries it: whole, in the details.
pub(crate) fn status_of(failure: &Failure) -> Status {
    let mut details = Vec::new();
    // Writing to memory cannot fail. If it did, the message of the
    // status would still reach the controller.
    let _ = ciborium::into_writer(failure, &mut details);
    Status::with_details(Code::FailedPrecondition, failure.message.clone(), Bytes::from(details))
}

/// The error that `host` reports.
pub(crate) fn failure_of(host: &str, status: &Status) -> Failure {
    // The details hold the whole failure with key and help. The name of the host is added here, because
    // the worker does not know by which name it was called.
    if let Ok(failure) = ciborium::from_reader::<Failure, _>(status.details()) {
        return Failure { message: format!("{host}: {}", failure.message), ..failure };
    }
    let message = match status.code() {
        Code::Unimplemented => format!("{host}: the worker runs another version of ssdyno"),
        _ => format!("{host}: {}", status.message()),
    };
    // A status without details did not come from the code of a worker. The key `NO_ANSWER` marks it
    // as a cut that may heal, and callers then try again.
    Failure::failed(message).with_key(NO_ANSWER)
}

/// The key of a failure that no worker reported: the connection is cut, or the other end is not a
/// worker.
pub(crate) const NO_ANSWER: &str = "connection";

/// The key of the failure of a worker that has no run of that number: its controller need not try again.
pub(crate) const NO_RUN: &str = "run";
