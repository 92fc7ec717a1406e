//! `ssdyno schema`.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use ssdyno_session::Failure;
use ssdyno_session::reference::schema_of as of;

use crate::commands::compare::CompareOutput;
use crate::commands::explain::ExplainOutput;
use crate::commands::papers::PapersOutput;
use crate::commands::pci::PciOutput;
use crate::commands::plan::PlanOutput;
use crate::commands::profile::ProfileOutput;
use crate::commands::pts::PtsOutput;
use crate::commands::repeat::RepeatOutput;
use crate::commands::run::RunOutput;
use crate::commands::sweep::SweepOutput;
use crate::diagnose::ErrorObject;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Schema to print [default: the names of all schemas, one per line].
    pub(crate) name: Option<SchemaName>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SchemaName {
    Run,
    Device,
    RingCard,
    Delay,
    Array,
    Disk,
    Volume,
    Network,
    Host,
    Workload,
    Spec,
    Compare,
    Papers,
    Pci,
    Plan,
    PlanResult,
    Profile,
    Pts,
    Repeat,
    #[cfg(target_os = "linux")]
    Verify,
    #[cfg(target_os = "linux")]
    Probe,
    Error,
    Explain,
    Snapshot,
    Task,
    Sweep,
    SweepResult,
    Failure,
}

pub(crate) fn run(args: &SchemaArgs, output: Output) -> Result<(), Failure> {
    if let Some(name) = args.name {
        return output.object(&schema(name));
    }
    let values = SchemaName::value_variants().iter().filter_map(|name| name.to_possible_value());
    let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
    output.either(|| names.join("\n") + "\n", || json!({ "schemas": names }))
}

fn schema(name: SchemaName) -> Value {
    match name {
        SchemaName::Run => of::<RunOutput<'_>>(),
        SchemaName::Device => of::<ssdyno_ssd::Config>(),
        SchemaName::RingCard => of::<ssdyno_controller_ring::RingConfig>(),
        SchemaName::Delay => of::<ssdyno_device::delay::DelayConfig>(),
        SchemaName::Array => of::<ssdyno_device::array::ArrayConfig>(),
        SchemaName::Disk => of::<ssdyno_disk::DiskConfig>(),
        SchemaName::Volume => of::<ssdyno_device::volume::VolumeConfig>(),
        SchemaName::Network => of::<ssdyno_rig::NetworkConfig>(),
        SchemaName::Host => of::<ssdyno_host::HostConfig>(),
        SchemaName::Workload => of::<ssdyno_workload::WorkloadConfig>(),
        SchemaName::Spec => of::<ssdyno_session::RunSpec>(),
        SchemaName::Compare => of::<CompareOutput>(),
        SchemaName::Papers => of::<PapersOutput<'_>>(),
        SchemaName::Pci => of::<PciOutput>(),
        SchemaName::Plan => of::<ssdyno_cluster::ClusterPlan>(),
        SchemaName::PlanResult => of::<PlanOutput>(),
        SchemaName::Profile => of::<ProfileOutput<'_>>(),
        SchemaName::Pts => of::<PtsOutput<'_>>(),
        SchemaName::Repeat => of::<RepeatOutput>(),
        #[cfg(target_os = "linux")]
        SchemaName::Verify => of::<crate::commands::verify::VerifyOutput<'_>>(),
        #[cfg(target_os = "linux")]
        SchemaName::Probe => of::<crate::commands::probe::ProbeOutput>(),
        SchemaName::Error => of::<ErrorObject>(),
        SchemaName::Explain => of::<ExplainOutput>(),
        SchemaName::Snapshot => of::<ssdyno_session::RunSnapshot>(),
        SchemaName::Task => of::<ssdyno_task::Task>(),
        SchemaName::Sweep => of::<ssdyno_sweep::SweepPlan>(),
        SchemaName::SweepResult => of::<SweepOutput<'_>>(),
        SchemaName::Failure => of::<Failure>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The descriptions in `node` that have a link of the documentation in them.
    fn linked<'a>(node: &'a Value, found: &mut Vec<&'a str>) {
        match node {
            Value::Object(fields) => {
                let text = fields.get("description").and_then(Value::as_str);
                found.extend(text.filter(|text| text.contains("[`") || text.contains("](")));
                fields.values().for_each(|value| linked(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| linked(value, found)),
            _ => {}
        }
    }

    #[test]
    fn descriptions_have_no_links() {
        for &name in SchemaName::value_variants() {
            let (schema, mut found) = (schema(name), Vec::new());
            linked(&schema, &mut found);
            assert!(found.is_empty(), "{name:?}: {found:?}");
        }
    }
}
