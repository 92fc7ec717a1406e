//! The path between the workload and a simulated device: driver, host, network.

use ssdyno_block::units::Span;
use ssdyno_controller_ring::RingConfig;
use ssdyno_device::DeviceSpec;
use ssdyno_driver_nvme::{Feature, HeadDoorbell, NvmeConfig, QueuePolicy, Weights};
use ssdyno_rig::{
    Attach, DevicePath, HostOptions, HostPlan, NETWORKS, NetworkConfig, Source, Stack,
};
use ssdyno_ssd::Config;
use ssdyno_workload::WorkloadConfig;

use crate::failure::Failure;
use crate::named;
use crate::overlay::Setting;
use crate::schema_keys::NETWORK;
use crate::spec::{
    DEFAULT_HOST, Doorbell, DriverSpec, FileContents, HostSpec, Queues, StackKind, given,
};

impl Queues {
    fn policy(self) -> QueuePolicy {
        match self {
            Queues::RoundRobin => QueuePolicy::RoundRobin { as_printed: false },
            Queues::RoundRobinAsPrinted => QueuePolicy::RoundRobin { as_printed: true },
            Queues::PerCore => QueuePolicy::PerCore,
            Queues::PerCorePool => QueuePolicy::PerCorePool,
            Queues::Single => QueuePolicy::Single,
            Queues::Weighted => {
                let weights = Weights { burst_shift: 3, high: 32, medium: 16, low: 8 };
                QueuePolicy::Weighted { queues: [2; 4], weights }
            }
            Queues::MoreQueues => QueuePolicy::MoreQueues { queues: [8, 4, 2, 1] },
        }
    }
}

/// A device with its host before it, and what decided it.
pub(crate) struct Attached {
    pub(crate) attach: Attach,
    /// The options, those that were chosen for the user with the rest.
    pub(crate) host: HostSpec,
    /// The files of host and network, where they have a part.
    pub(crate) contents: FileContents,
}

/// The requirements on a host.
pub(crate) struct HostRequest<'a> {
    pub(crate) spec: &'a HostSpec,
    pub(crate) contents: &'a FileContents,
    pub(crate) source: &'a Source,
    pub(crate) settings: &'a [Setting],
}

/// A failure about a key of the host.
fn about(key: &str, what: impl Into<String>, help: impl Into<String>) -> Failure {
    Failure::usage(what).with_help(help).with_key(format!("host.{key}"))
}

impl HostRequest<'_> {
    /// Puts the host before the device.
    pub(crate) fn attach(&self, device: DeviceSpec) -> Result<Attached, Failure> {
        let spec = self.spec;
        let driver = spec.driver.unwrap_or(match () {
            () if spec.network.is_some() => DriverSpec::Network,
            () if device.own_driver() => DriverSpec::Ring,
            () if device.nvme().is_some() => DriverSpec::Nvme,
            () => DriverSpec::Direct,
        });
        if let Some(ring) = spec.ring.as_ref().filter(|_| driver != DriverSpec::Ring) {
            let what = format!("`host.ring={}` is for the ring driver", ring.typed);
            return Err(about("ring", what, "leave it out, or run sim:zc706-ring"));
        }
        if driver != DriverSpec::Network && spec.network.is_some() {
            let what = "`host.network` needs the driver `network`";
            return Err(about("network", what, "leave `host.driver` out, or `host.network`"));
        }
        let of_network = self.settings.iter().find(|setting| setting.key.starts_with(NETWORK));
        if let Some(setting) = of_network.filter(|_| driver != DriverSpec::Network) {
            return Err(Failure::usage(format!("there is no network for `{}`", setting.key))
                .with_help("add `host.network=s4-iscsi`, or leave the setting out")
                .with_key(&setting.key)
                .at(Some(setting.place(true, "no effect here"))));
        }
        self.check_effect(driver)?;
        let mut done = Attached {
            attach: self.between(driver, device)?,
            host: HostSpec { driver: Some(driver), ..spec.clone() },
            contents: FileContents::default(),
        };
        self.write_out(driver, &mut done)?;
        Ok(done)
    }

    fn between(&self, driver: DriverSpec, device: DeviceSpec) -> Result<Attach, Failure> {
        let refused = || cannot(driver, device.what());
        match driver {
            DriverSpec::Nvme => self.nvme(device),
            DriverSpec::Ring => {
                device.get::<RingConfig>().ok_or_else(refused)?;
                let options = self.spec.ring.as_ref().map(|ring| ring.options).unwrap_or_default();
                Ok(Attach::behind(device, self.plan()?, DevicePath::Ring(Box::new(options))))
            }
            _ if device.own_driver() => Err(refused()),
            DriverSpec::Direct => self.direct(device),
            DriverSpec::Adapter => Ok(Attach::behind(device, self.plan()?, DevicePath::Adapter)),
            DriverSpec::Network => {
                let network = DevicePath::Network(Box::new(self.network()?.config));
                Ok(Attach::behind(device, self.plan()?, network))
            }
        }
    }

    /// The driver's own choice, written down: a changed default then changes no repeated run.
    fn write_out(&self, driver: DriverSpec, done: &mut Attached) -> Result<(), Failure> {
        let Some(plan) = done.attach.host() else { return Ok(()) };
        let host = named::host(self.contents.host.as_ref(), self.host_name())?;
        done.contents.host = Some(host.document.written_out(&host.config));
        let spec = &mut done.host;
        spec.name = Some(self.host_name().to_owned());
        spec.cores = Some(plan.plan.cores);
        spec.threads = Some(plan.plan.mode);
        spec.completion = Some(plan.plan.waiting);
        match driver {
            DriverSpec::Network => {
                let network = self.network()?;
                done.contents.network = Some(network.document.written_out(&network.config));
                spec.network = Some(network.name);
            }
            DriverSpec::Nvme => {
                spec.queues = Some(spec.queues.unwrap_or(Queues::PerCore));
                spec.time_limit = Some(self.time_limits().0);
                spec.retries = Some(spec.retries.unwrap_or(0));
            }
            DriverSpec::Direct | DriverSpec::Adapter | DriverSpec::Ring => {}
        }
        Ok(())
    }

    fn host_name(&self) -> &str {
        self.spec.name.as_deref().unwrap_or(DEFAULT_HOST)
    }

    fn options(&self) -> HostOptions {
        let spec = self.spec;
        HostOptions {
            cores: spec.cores,
            mode: spec.threads,
            waiting: spec.completion.unwrap_or_default(),
            stack: self.stack(),
            doorbell_per_batch: spec.doorbell == Some(Doorbell::Batch),
            classes: spec.classes.clone(),
            namespaces: spec.namespaces.clone(),
            retries: spec.retries.unwrap_or(0),
        }
    }

    fn stack(&self) -> Option<Stack> {
        self.spec.stack.map(|stack| match stack {
            StackKind::Block => Stack::Block,
            StackKind::Scsi => Stack::Scsi,
        })
    }

    fn plan(&self) -> Result<HostPlan, Failure> {
        let host = named::host(self.contents.host.as_ref(), self.host_name())?;
        if self.spec.namespaces.len() > 1 && !matches!(self.source, Source::Generator(_)) {
            let what = "several `host.namespaces` need a generated workload: requests of a trace or a job file are not bound to threads";
            return Err(about("namespaces", what, "choose one namespace, or a generated workload"));
        }
        let threads = match self.source {
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

    /// Refuses what `driver` would not look at: a run must not seem to have what it has not.
    fn check_effect(&self, driver: DriverSpec) -> Result<(), Failure> {
        let spec = self.spec;
        // With no driver at all any option is refused, later.
        let other = !matches!(driver, DriverSpec::Nvme | DriverSpec::Direct);
        let by_class = matches!(spec.queues, Some(Queues::Weighted | Queues::MoreQueues));
        let ssd = "leave it out, or run an SSD such as sim:p3600";
        let (key, what, help) = if other && spec.queues.is_some() {
            ("queues", "`host.queues` is for the NVMe driver", ssd)
        } else if other && !spec.namespaces.is_empty() {
            ("namespaces", "`host.namespaces` is for the NVMe driver", ssd)
        } else if other && spec.power_state.is_some() {
            let help = "leave it out, or run an SSD such as sim:gen4-consumer";
            ("power_state", "`host.power_state` is for the NVMe driver", help)
        } else if other && spec.time_limit.is_some() {
            let help = "leave it out; a ring card has `host.ring=timeout=1s`";
            ("time_limit", "`host.time_limit` is for the NVMe driver", help)
        } else if other && spec.retries.is_some() {
            ("retries", "`host.retries` is for the NVMe driver", ssd)
        } else if driver == DriverSpec::Ring && spec.stack == Some(StackKind::Scsi) {
            let what = "the ring card does not accept SCSI commands: the translation produces NVMe commands";
            ("stack", what, "leave `host.stack` out, or run an SSD such as sim:p3600")
        } else if !spec.classes.is_empty() && driver != DriverSpec::Direct && !by_class {
            let what = "`host.classes` has no effect with these queues";
            ("classes", what, "add `host.queues=weighted` or `host.queues=more-queues`")
        } else {
            return Ok(());
        };
        Err(about(key, what, help))
    }

    /// The workload on the device alone: no option of a host has an effect.
    fn direct(&self, device: DeviceSpec) -> Result<Attach, Failure> {
        let given = given("host", self.spec).into_iter().map(|(key, _)| key);
        match given.into_iter().find(|key| key != "host.driver") {
            None => Ok(device.into()),
            Some(key) => {
                let is_ssd = device.get::<Config>().is_some();
                let driver = if is_ssd { "nvme" } else { "adapter" };
                let help = format!("add `host.driver={driver}`, or leave it out");
                let what = format!("`{key}` needs a driver");
                Err(Failure::usage(what).with_help(help).with_key(key))
            }
        }
    }

    /// For commands of I/O, and for those of the admin queue.
    fn time_limits(&self) -> (Span, Span) {
        let usual = NvmeConfig::default();
        match self.spec.time_limit {
            Some(Span(limit)) => (Span(limit), Span(limit * 2)),
            None => (Span(usual.io_timeout), Span(usual.admin_timeout)),
        }
    }

    fn nvme(&self, mut device: DeviceSpec) -> Result<Attach, Failure> {
        if !device.add_nvme() {
            return Err(cannot(DriverSpec::Nvme, device.what()));
        }
        let (io_timeout, admin_timeout) = self.time_limits();
        let driver = NvmeConfig {
            io_timeout: io_timeout.0,
            admin_timeout: admin_timeout.0,
            policy: self.spec.queues.map_or(QueuePolicy::PerCore, Queues::policy),
            // A driver as the wish wants it.
            scsi: self.stack() == Some(Stack::Scsi),
            entries: 4096,
            transfer_bytes_max: 1 << 20,
            head_doorbell: match self.spec.doorbell {
                Some(Doorbell::Each) => HeadDoorbell::PerCompletion,
                _ => HeadDoorbell::PerBatch,
            },
            features: self.spec.power_state.map(Feature::PowerState).into_iter().collect(),
            ..NvmeConfig::default()
        };
        Ok(Attach::behind(device, self.plan()?, DevicePath::Nvme(Box::new(driver))))
    }

    /// The network that is named, or the first of the presets.
    fn network(&self) -> Result<named::NamedConfig<NetworkConfig>, Failure> {
        let name = self.spec.network.as_deref().unwrap_or(NETWORKS[0].name);
        named::network(self.contents.network.as_ref(), name, self.settings)
    }
}

fn cannot(driver: DriverSpec, device: &str) -> Failure {
    let what = format!("the driver `{}` cannot drive {device}", driver.name());
    about("driver", what, "leave `host.driver` out to use the driver that can")
}
