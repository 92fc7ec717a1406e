//! From the host options to what lies between workload and device.

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use ssdyno_block::Time;
use ssdyno_block::units::Span;
use ssdyno_device::{Config, nvme::NvmeConfig as ControllerConfig};
use ssdyno_driver_nvme::{Feature, HeadDoorbell, NvmeConfig, QueuePolicy, Weights};
use ssdyno_host::{ThreadMode, Waiting};
use ssdyno_rig::{
    Attach, BlockDevice, HostOptions, HostPlan, NETWORKS, NetworkConfig, Source, Stack,
};
use ssdyno_workload::Config as WorkloadConfig;

use crate::device_file::DeviceFile;
use crate::diagnose::Failure;
use crate::load;
use crate::overlay::{self, Setting};
use crate::ring::RingArg;

/// What lies between the workload and the device.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Host")]
pub(crate) struct HostArgs {
    /// The driver: direct attaches the workload to the device alone, adapter puts a host with a plain
    /// adapter before it, network a network target [default: nvme for a device with a table `nvme`,
    /// ring for a ring card, network with --network, direct for others].
    #[arg(long, value_name = "DRIVER")]
    pub(crate) driver: Option<DriverArg>,
    /// The machine: a preset (see `ssdyno list hosts`) or FILE.toml.
    #[arg(long, value_name = "HOST", default_value = DEFAULT_HOST)]
    pub(crate) host: String,
    /// Cores of it that take part [default: all].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) cores: Option<u16>,
    /// Puts the device behind a network, on a machine that serves it: a preset (s4-iscsi, iscsi-25g)
    /// or FILE.toml; each core of the host is a session.
    #[arg(long, value_name = "NETWORK")]
    pub(crate) network: Option<String>,
    /// How NVMe commands are spread over queues [default: per-core].
    #[arg(long, value_name = "POLICY")]
    pub(crate) queues: Option<QueuesArg>,
    /// What lies between a process and the driver [default: block].
    #[arg(long, value_name = "STACK", value_parser = PossibleValuesParser::new(["block", "scsi"]))]
    pub(crate) stack: Option<String>,
    /// How threads issue: sync (each outstanding request has its own thread), async, or batch
    /// (issue all, then wait for all) [default: as the host file says].
    #[arg(long, value_name = "MODE")]
    pub(crate) threads: Option<ThreadsArg>,
    /// How threads learn of completions [default: interrupt].
    #[arg(long, value_name = "HOW")]
    pub(crate) completion: Option<CompletionArg>,
    /// Doorbells for each command and completion, or once for all that come together [default:
    /// each command, and once for all completions].
    #[arg(long, value_name = "WHEN")]
    pub(crate) doorbell: Option<DoorbellArg>,
    /// Priority classes of the threads in turn, 0 (served first) to 3, such as 1,3; for the queues
    /// weighted and more-queues.
    #[arg(long, value_name = "CLASSES", value_delimiter = ',',
          value_parser = clap::value_parser!(u8).range(0..=3))]
    pub(crate) classes: Vec<u8>,
    /// NVMe power state that the driver sets as it starts, such as 1: states after 0 limit the
    /// device's power and slow it (`nvme.operational_states` of the device file) [default: none set,
    /// state 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=31))]
    pub(crate) power_state: Option<u8>,
    /// Namespaces of an NVMe device: one, for all threads, or one for each thread in turn, such as
    /// 1,2,3,4 for four threads, which then load nothing else [default: 1].
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) namespaces: Vec<u32>,
    /// How long the NVMe driver waits for an answer, 1ms to 1h: then it looks for it, has the command
    /// aborted, and after twice as long resets the controller; see `faults` of the device file
    /// [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = time_limit)]
    pub(crate) time_limit: Option<Span>,
    /// How often an NVMe command that failed is given to the device again [default: 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1000))]
    pub(crate) retries: Option<u32>,
    /// How the ring driver works, such as block=16,completion=napi:64. Keys: block (dynamic or N),
    /// partial-after, max-block, idle (first, request), response (block, each, subset:N), completion
    /// (block, return, napi:BUDGET, calibrated:N:TIME, hybrid:TIME), prefetch, queue-depth,
    /// ring-size, timeout.
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub(crate) ring: Option<RingArg>,
}

/// The first of the presets.
const DEFAULT_HOST: &str = "server";

macro_rules! names {
    ($type:ty) => {
        impl $type {
            /// As it is typed.
            pub(crate) fn name(self) -> String {
                let value = self.to_possible_value();
                value.map(|value| value.get_name().to_owned()).unwrap_or_default()
            }
        }
    };
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DriverArg {
    Direct,
    Adapter,
    Network,
    Nvme,
    Ring,
}

/// See [`QueuePolicy`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum QueuesArg {
    /// All queues in turn by every core, each under its lock.
    RoundRobin,
    /// The same with the mistakes of the printed code.
    RoundRobinAsPrinted,
    /// One for each core.
    PerCore,
    /// Several for each core, in turn.
    PerCorePool,
    /// One with a lock, and 128 commands at most (MFI).
    Single,
    /// Two for each priority class, served 32:16:8 after the urgent one.
    Weighted,
    /// 8, 4, 2 and 1 for the priority classes.
    MoreQueues,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ThreadsArg {
    Sync,
    Async,
    Batch,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum CompletionArg {
    Interrupt,
    Poll,
    /// Sleep for half of the usual time, then poll.
    Hybrid,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DoorbellArg {
    /// For each command and each completion.
    Each,
    /// Once for all.
    Batch,
}

names!(DriverArg);
names!(QueuesArg);
names!(ThreadsArg);
names!(CompletionArg);
names!(DoorbellArg);

impl QueuesArg {
    fn policy(self) -> QueuePolicy {
        match self {
            QueuesArg::RoundRobin => QueuePolicy::RoundRobin { as_printed: false },
            QueuesArg::RoundRobinAsPrinted => QueuePolicy::RoundRobin { as_printed: true },
            QueuesArg::PerCore => QueuePolicy::PerCore,
            QueuesArg::PerCorePool => QueuePolicy::PerCorePool,
            QueuesArg::Single => QueuePolicy::Single,
            QueuesArg::Weighted => {
                let weights = Weights { burst_shift: 3, high: 32, medium: 16, low: 8 };
                QueuePolicy::Weighted { queues: [2; 4], weights }
            }
            QueuesArg::MoreQueues => QueuePolicy::MoreQueues { queues: [8, 4, 2, 1] },
        }
    }
}

impl HostArgs {
    /// The options that were given, as they are typed.
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        let mut given = Vec::new();
        given.extend(self.driver.map(|driver| ("--driver", driver.name())));
        if self.host != DEFAULT_HOST {
            given.push(("--host", self.host.clone()));
        }
        given.extend(self.cores.map(|cores| ("--cores", cores.to_string())));
        given.extend(self.network.clone().map(|network| ("--network", network)));
        given.extend(self.queues.map(|queues| ("--queues", queues.name())));
        given.extend(self.stack.clone().map(|stack| ("--stack", stack)));
        given.extend(self.threads.map(|threads| ("--threads", threads.name())));
        given.extend(self.completion.map(|completion| ("--completion", completion.name())));
        given.extend(self.doorbell.map(|doorbell| ("--doorbell", doorbell.name())));
        if !self.classes.is_empty() {
            let classes: Vec<String> = self.classes.iter().map(u8::to_string).collect();
            given.push(("--classes", classes.join(",")));
        }
        if !self.namespaces.is_empty() {
            let ids: Vec<String> = self.namespaces.iter().map(u32::to_string).collect();
            given.push(("--namespaces", ids.join(",")));
        }
        given.extend(self.power_state.map(|state| ("--power-state", state.to_string())));
        given.extend(self.time_limit.map(|limit| ("--time-limit", limit.to_string())));
        given.extend(self.retries.map(|retries| ("--retries", retries.to_string())));
        given.extend(self.ring.as_ref().map(|ring| ("--ring", ring.typed.clone())));
        given
    }

    fn options(&self) -> HostOptions {
        HostOptions {
            cores: self.cores,
            mode: self.threads.map(|threads| match threads {
                ThreadsArg::Sync => ThreadMode::Sync,
                ThreadsArg::Async => ThreadMode::Async,
                ThreadsArg::Batch => ThreadMode::Batch,
            }),
            waiting: match self.completion {
                None | Some(CompletionArg::Interrupt) => Waiting::Interrupt,
                Some(CompletionArg::Poll) => Waiting::Poll,
                Some(CompletionArg::Hybrid) => Waiting::Hybrid,
            },
            stack: self.stack(),
            doorbell_per_batch: self.doorbell == Some(DoorbellArg::Batch),
            classes: self.classes.clone(),
            namespaces: self.namespaces.clone(),
            retries: self.retries.unwrap_or(0),
        }
    }

    fn stack(&self) -> Option<Stack> {
        let all = [Stack::Block, Stack::Scsi];
        all.into_iter().find(|stack| self.stack.as_deref() == Some(stack.name()))
    }

    fn plan(&self, source: &Source) -> Result<HostPlan, Failure> {
        let host = load::host(&self.host)?;
        if self.namespaces.len() > 1 && !matches!(source, Source::Generator(_)) {
            let what = "several `--namespaces` are for threads of a generator: the requests of a trace \
                        or a job file are dealt out to threads as they come";
            return Err(Failure::usage(what).with_help("choose one namespace, or use --workload"));
        }
        let threads = match source {
            Source::Generator(config) => {
                return Ok(HostPlan::new(&host.name, host.config, &self.options(), Some(config)));
            }
            Source::Trace { .. } => None,
            // Every copy of a job is a thread.
            Source::Jobs { jobs, .. } => Some(jobs.iter().map(|job| job.copies).sum()),
        };
        let load = threads
            .map(|threads| WorkloadConfig { threads: Some(threads), ..WorkloadConfig::default() });
        Ok(HostPlan::new(&host.name, host.config, &self.options(), load.as_ref()))
    }

    /// Puts the host before the device.
    pub(crate) fn attach(
        &self,
        device: DeviceFile,
        source: &Source,
        settings: &[Setting],
    ) -> Result<Attach, Failure> {
        let driver = self.driver.unwrap_or(match &device {
            _ if self.network.is_some() => DriverArg::Network,
            DeviceFile::Card(_) => DriverArg::Ring,
            DeviceFile::Ssd(config) if config.nvme.is_some() => DriverArg::Nvme,
            DeviceFile::Ssd(_) | DeviceFile::Delay(_) => DriverArg::Direct,
        });
        if let Some(ring) = self.ring.as_ref().filter(|_| driver != DriverArg::Ring) {
            let what = format!("`--ring {}` is for the ring driver", ring.typed);
            return Err(Failure::usage(what).with_help("leave it out, or run sim:zc706-ring"));
        }
        if driver != DriverArg::Network && self.network.is_some() {
            return Err(Failure::usage("`--network` needs the driver `network`")
                .with_help("leave --driver out, or --network"));
        }
        let of_network = settings.iter().find(|setting| setting.key.starts_with(overlay::NETWORK));
        if let Some(setting) = of_network.filter(|_| driver != DriverArg::Network) {
            return Err(Failure::usage(format!("there is no network for `{}`", setting.key))
                .with_help("add --network s4-iscsi, or leave the setting out")
                .with_key(&setting.key)
                .at(Some(setting.place(true, "no effect here"))));
        }
        self.check_effect(driver)?;
        match (driver, device) {
            (DriverArg::Nvme, DeviceFile::Ssd(config)) => self.nvme(config, source),
            (DriverArg::Ring, DeviceFile::Card(card)) => {
                let host = Box::new(self.plan(source)?);
                let options = self.ring.as_ref().map(|ring| ring.options);
                let driver = Box::new(options.unwrap_or_default());
                Ok(Attach::Ring { card: Box::new(card), driver, host })
            }
            (DriverArg::Direct | DriverArg::Adapter | DriverArg::Network, device) => {
                let what = device.what();
                let device = Box::new(device.block().ok_or_else(|| cannot(driver, what))?);
                match driver {
                    DriverArg::Adapter => {
                        Ok(Attach::Adapter { device, host: Box::new(self.plan(source)?) })
                    }
                    DriverArg::Network => {
                        let network = Box::new(self.network(settings)?);
                        Ok(Attach::Network { device, network, host: Box::new(self.plan(source)?) })
                    }
                    _ => self.direct(device),
                }
            }
            (driver, device) => Err(cannot(driver, device.what())),
        }
    }

    /// Refuses what `driver` would not look at: a run must not seem to have what it has not.
    fn check_effect(&self, driver: DriverArg) -> Result<(), Failure> {
        // With no driver at all any option is refused, later.
        let other = !matches!(driver, DriverArg::Nvme | DriverArg::Direct);
        let by_class = matches!(self.queues, Some(QueuesArg::Weighted | QueuesArg::MoreQueues));
        let (what, help) = if other && self.queues.is_some() {
            ("`--queues` is for the NVMe driver", "leave it out, or run an SSD such as sim:p3600")
        } else if other && !self.namespaces.is_empty() {
            let help = "leave it out, or run an SSD such as sim:p3600";
            ("`--namespaces` is for the NVMe driver", help)
        } else if other && self.power_state.is_some() {
            let help = "leave it out, or run an SSD such as sim:gen4-consumer";
            ("`--power-state` is for the NVMe driver", help)
        } else if other && self.time_limit.is_some() {
            (
                "`--time-limit` is for the NVMe driver",
                "leave it out; a ring card has --ring timeout=1s",
            )
        } else if other && self.retries.is_some() {
            let help = "leave it out, or run an SSD such as sim:p3600";
            ("`--retries` is for the NVMe driver", help)
        } else if driver == DriverArg::Ring && self.stack.as_deref() == Some("scsi") {
            let help = "leave --stack out, or run an SSD such as sim:p3600";
            ("the ring card takes no SCSI commands: the translation makes NVMe commands", help)
        } else if !self.classes.is_empty() && driver != DriverArg::Direct && !by_class {
            ("`--classes` has no effect with these queues", "add --queues weighted or more-queues")
        } else {
            return Ok(());
        };
        Err(Failure::usage(what).with_help(help))
    }

    /// The workload on the device alone: no option of a host has an effect.
    fn direct(&self, device: Box<BlockDevice>) -> Result<Attach, Failure> {
        match self.given().into_iter().find(|(name, _)| *name != "--driver") {
            None => Ok(Attach::Direct(device)),
            Some((name, _)) => {
                let driver = match *device {
                    BlockDevice::Ssd(_) => "nvme",
                    BlockDevice::Delay(_) => "adapter",
                };
                Err(Failure::usage(format!("`{name}` needs a driver"))
                    .with_help(format!("add --driver {driver}, or leave the option out")))
            }
        }
    }

    fn nvme(&self, mut config: Config, source: &Source) -> Result<Attach, Failure> {
        config.nvme.get_or_insert_with(ControllerConfig::default);
        let usual = NvmeConfig::default();
        let (io_timeout, admin_timeout) = match self.time_limit {
            Some(Span(limit)) => (limit, limit * 2),
            None => (usual.io_timeout, usual.admin_timeout),
        };
        let driver = NvmeConfig {
            io_timeout,
            admin_timeout,
            policy: self.queues.map_or(QueuePolicy::PerCore, QueuesArg::policy),
            // A driver as the wish wants it.
            scsi: self.stack() == Some(Stack::Scsi),
            entries: 4096,
            transfer_bytes_max: 1 << 20,
            head_doorbell: match self.doorbell {
                Some(DoorbellArg::Each) => HeadDoorbell::PerCompletion,
                _ => HeadDoorbell::PerBatch,
            },
            features: self.power_state.map(Feature::PowerState).into_iter().collect(),
            ..usual
        };
        let host = Box::new(self.plan(source)?);
        Ok(Attach::Nvme { device: Box::new(config), driver: Box::new(driver), host })
    }

    /// The network that `--network` names.
    fn network(&self, settings: &[Setting]) -> Result<NetworkConfig, Failure> {
        let name = self.network.as_deref().unwrap_or(NETWORKS[0].name);
        Ok(load::network(name, settings)?.config)
    }
}

/// A time that a driver may wait.
fn time_limit(text: &str) -> Result<Span, String> {
    let span: Span =
        text.parse().map_err(|error: ssdyno_block::units::UnitError| error.to_string())?;
    match (Time::from_ms(1)..=Time::from_s(3600)).contains(&span.0) {
        true => Ok(span),
        false => Err("write a time of 1ms to 1h, such as 100ms".to_owned()),
    }
}

fn cannot(driver: DriverArg, device: &str) -> Failure {
    let what = format!("the driver `{}` cannot drive {device}", driver.name());
    Failure::usage(what).with_help("leave --driver out to use the one that can")
}
