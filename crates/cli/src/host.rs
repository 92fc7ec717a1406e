//! The host options: what lies between workload and device.

use clap::Args;
use ssdyno_block::units::Span;
use ssdyno_host::{CompletionWait, ThreadMode};
use ssdyno_session::{
    DEFAULT_HOST, Doorbell, DriverSpec, HostSpec, Queues, RingSpec, StackKind, is_time_limit,
};

use crate::words::words;

/// The host between the workload and the device.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Host")]
pub(crate) struct HostArgs {
    /// Host software between workload and device [default: nvme for a device file with a table `nvme`,
    /// ring for a ring card, network with --network, otherwise direct].
    #[arg(long, value_name = "DRIVER", value_parser = words::<DriverSpec>())]
    pub(crate) driver: Option<DriverSpec>,
    /// The machine: a preset (see `ssdyno list hosts`) or FILE.toml.
    #[arg(long, value_name = "HOST", default_value = DEFAULT_HOST)]
    pub(crate) host: String,
    /// Number of host cores that issue requests [default: all].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) cores: Option<u16>,
    /// Attach the device over a network: a preset (s4-iscsi, iscsi-25g) or FILE.toml. Each host core opens
    /// one session [default with --driver network: s4-iscsi].
    #[arg(long, value_name = "NETWORK")]
    pub(crate) network: Option<String>,
    /// How NVMe commands are spread over queues [default: per-core].
    #[arg(long, value_name = "POLICY", value_parser = words::<Queues>())]
    pub(crate) queues: Option<Queues>,
    /// Kernel layers above the driver [default: block].
    #[arg(long, value_name = "STACK", value_parser = words::<StackKind>())]
    pub(crate) stack: Option<StackKind>,
    /// How threads issue requests: sync (each outstanding request has its own thread), async, or batch
    /// (issue all, then wait for all) [default: from the host file].
    #[arg(long, value_name = "MODE", value_parser = words::<ThreadMode>())]
    pub(crate) threads: Option<ThreadMode>,
    /// How a thread waits for completions [default: interrupt].
    #[arg(long, value_name = "HOW", value_parser = words::<CompletionWait>())]
    pub(crate) completion: Option<CompletionWait>,
    /// When doorbells are written: for each command and completion, or once for all commands and
    /// completions that are ready [default: for each command; once for all completions].
    #[arg(long, value_name = "WHEN", value_parser = words::<Doorbell>())]
    pub(crate) doorbell: Option<Doorbell>,
    /// Priority classes of the threads in turn, 0 (served first) to 3, such as 1,3. For --queues weighted
    /// and more-queues.
    #[arg(long, value_name = "CLASSES", value_delimiter = ',',
          value_parser = clap::value_parser!(u8).range(0..=3))]
    pub(crate) classes: Vec<u8>,
    /// NVMe power state that the driver sets at its start, such as 1. States after 0 limit the power of the
    /// device and slow it (`nvme.operational_states` of the device file) [default: state 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=31))]
    pub(crate) power_state: Option<u8>,
    /// Namespaces of an NVMe device: one namespace for all threads, or one namespace for each thread in
    /// turn, such as 1,2,3,4 for four threads [default: 1].
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) namespaces: Vec<u32>,
    /// Command timeout of the NVMe driver, 1ms to 1h. When it expires the driver polls the queue, then
    /// aborts the command; after twice the timeout it resets the controller (docs/faults.md)
    /// [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = time_limit)]
    pub(crate) time_limit: Option<Span>,
    /// How often the NVMe driver retries a failed command [default: 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1000))]
    pub(crate) retries: Option<u32>,
    /// Options of the ring driver, such as block=16,completion=napi:64. Keys: block (dynamic or N),
    /// partial-after, max-block, idle (first, request), response (block, each, subset:N), completion
    /// (block, return, napi:BUDGET, calibrated:N:TIME, hybrid:TIME), prefetch, queue-depth,
    /// ring-size, timeout.
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub(crate) ring: Option<RingSpec>,
}

impl HostArgs {
    /// As a spec has it.
    pub(crate) fn spec(&self) -> HostSpec {
        HostSpec {
            driver: self.driver,
            name: (self.host != DEFAULT_HOST).then(|| self.host.clone()),
            cores: self.cores,
            network: self.network.clone(),
            queues: self.queues,
            stack: self.stack,
            threads: self.threads,
            completion: self.completion,
            doorbell: self.doorbell,
            classes: self.classes.clone(),
            power_state: self.power_state,
            namespaces: self.namespaces.clone(),
            time_limit: self.time_limit,
            retries: self.retries,
            ring: self.ring.clone(),
        }
    }
}

/// The timeout of a driver.
fn time_limit(text: &str) -> Result<Span, String> {
    let span: Span =
        text.parse().map_err(|error: ssdyno_block::units::UnitError| error.to_string())?;
    match is_time_limit(span.0) {
        true => Ok(span),
        false => Err("use a time of 1ms to 1h, such as 100ms".to_owned()),
    }
}
