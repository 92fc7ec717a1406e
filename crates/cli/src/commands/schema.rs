//! `ssdyno schema`.

use clap::Args;
use clap::builder::PossibleValuesParser;
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

/// The name of a schema, and what makes it.
type Named = (&'static str, fn() -> Value);

const SCHEMAS: &[Named] = &[
    ("run", of::<RunOutput<'static>>),
    ("device", of::<ssdyno_ssd::Config>),
    ("ring-card", of::<ssdyno_controller_ring::RingConfig>),
    ("delay", of::<ssdyno_device::delay::DelayConfig>),
    ("array", of::<ssdyno_device::array::ArrayConfig>),
    ("disk", of::<ssdyno_disk::DiskConfig>),
    ("volume", of::<ssdyno_device::volume::VolumeConfig>),
    ("network", of::<ssdyno_rig::NetworkConfig>),
    ("host", of::<ssdyno_host::HostConfig>),
    ("workload", of::<ssdyno_workload::WorkloadConfig>),
    ("spec", of::<ssdyno_session::RunSpec>),
    ("compare", of::<CompareOutput>),
    ("papers", of::<PapersOutput<'static>>),
    ("pci", of::<PciOutput>),
    ("plan", of::<ssdyno_cluster::ClusterPlan>),
    ("plan-result", of::<PlanOutput>),
    ("profile", of::<ProfileOutput<'static>>),
    ("pts", of::<PtsOutput<'static>>),
    ("repeat", of::<RepeatOutput>),
    #[cfg(target_os = "linux")]
    ("verify", of::<crate::commands::verify::VerifyOutput<'static>>),
    #[cfg(target_os = "linux")]
    ("probe", of::<crate::commands::probe::ProbeOutput>),
    ("error", of::<ErrorObject>),
    ("explain", of::<ExplainOutput>),
    ("snapshot", of::<ssdyno_session::RunSnapshot>),
    ("task", of::<ssdyno_task::Task>),
    ("sweep", of::<ssdyno_sweep::SweepPlan>),
    ("sweep-result", of::<SweepOutput<'static>>),
    ("failure", of::<Failure>),
];

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Schema to print [default: the names of all schemas, one per line].
    #[arg(value_parser = PossibleValuesParser::new(SCHEMAS.iter().map(|(name, _)| *name)))]
    pub(crate) name: Option<String>,
}

pub(crate) fn run(args: &SchemaArgs, output: Output) -> Result<(), Failure> {
    let wanted = args.name.as_deref();
    if let Some((_, schema)) = SCHEMAS.iter().find(|(name, _)| Some(*name) == wanted) {
        return output.object(&schema());
    }
    let names: Vec<&str> = SCHEMAS.iter().map(|(name, _)| *name).collect();
    output.either(|| names.join("\n") + "\n", || json!({ "schemas": names }))
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
        for (name, schema) in SCHEMAS {
            let (schema, mut found) = (schema(), Vec::new());
            linked(&schema, &mut found);
            assert!(found.is_empty(), "{name}: {found:?}");
        }
    }
}
