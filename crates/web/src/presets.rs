//! The presets that the page offers by name.

use serde::Serialize;
use ssdyno_session::{CatalogueEntry, catalogue};

/// Names with what they are.
#[derive(Serialize)]
pub(crate) struct Presets {
    targets: Vec<CatalogueEntry>,
    workloads: Vec<CatalogueEntry>,
    hosts: Vec<CatalogueEntry>,
}

pub(crate) fn presets() -> Presets {
    Presets {
        targets: catalogue::devices(),
        workloads: catalogue::workloads(),
        hosts: catalogue::hosts(),
    }
}
